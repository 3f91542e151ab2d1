// Rotary attention, in double and float.
#include <cmath>
#include <limits>
#include <string>

#include "handle.hpp"

using namespace cape::capi;

namespace {

// The sizes, with those that an older client does not know at their defaults.
cape_attention_shape read_shape(const cape_attention_shape* shape) {
  const double automatic = std::numeric_limits<double>::quiet_NaN();
  return read_struct(shape, "shape", cape_attention_shape{0, 1, 1, 0, 0, 0, 1, automatic});
}

template <class T>
cape::AttentionInput<T> input(const cape_attention_shape* shape, const T* q, const T* k, const T* v,
                              const T* q_angles, const T* k_angles, const uint8_t* key_mask) {
  const cape_attention_shape s = read_shape(shape);
  return {s.batch,
          s.heads,
          s.q_length,
          s.k_length,
          s.head_dim,
          q,
          k,
          v,
          q_angles,
          k_angles,
          s.angle_heads,
          key_mask,
          static_cast<T>(s.scale)};
}

// Attention needs no option but the threads, so that options may be null.
template <class Body>
cape_status attend(const cape_options* options, Body&& body) noexcept {
  return guard([&] {
    if (options == nullptr) {
      cape::Run run;
      return body(run);
    }
    cape::Run run = make_run(object(options, "options"));
    body(run);
  });
}

template <class T>
cape_status forward(T* out, T* lse_out, const cape_attention_shape* shape, const T* q, const T* k,
                    const T* v, const T* q_angles, const T* k_angles, const uint8_t* key_mask,
                    const cape_options* options) noexcept {
  return attend(options, [&](cape::Run& run) {
    attention_forward(input(shape, q, k, v, q_angles, k_angles, key_mask), out, lse_out, run);
  });
}

template <class T>
cape_status backward(const cape::AttentionGradient<T>& gradient, const cape_attention_shape* shape,
                     const T* q, const T* k, const T* v, const T* q_angles, const T* k_angles,
                     const uint8_t* key_mask, const T* out, const T* lse, const T* d_out,
                     const cape_options* options) noexcept {
  return attend(options, [&](cape::Run& run) {
    attention_backward(input(shape, q, k, v, q_angles, k_angles, key_mask), out, lse, d_out,
                       gradient, run);
  });
}

} // namespace

cape_status cape_attention(double* out, double* lse_out, const cape_attention_shape* shape,
                           const double* q, const double* k, const double* v,
                           const double* q_angles, const double* k_angles, const uint8_t* key_mask,
                           const cape_options* options) {
  return forward(out, lse_out, shape, q, k, v, q_angles, k_angles, key_mask, options);
}

cape_status cape_attention_f32(float* out, float* lse_out, const cape_attention_shape* shape,
                               const float* q, const float* k, const float* v,
                               const float* q_angles, const float* k_angles,
                               const uint8_t* key_mask, const cape_options* options) {
  return forward(out, lse_out, shape, q, k, v, q_angles, k_angles, key_mask, options);
}

cape_status cape_attention_backward(double* dq, double* dk, double* dv, double* dq_angles,
                                    double* dk_angles, const cape_attention_shape* shape,
                                    const double* q, const double* k, const double* v,
                                    const double* q_angles, const double* k_angles,
                                    const uint8_t* key_mask, const double* out, const double* lse,
                                    const double* d_out, const cape_options* options) {
  return backward<double>({dq, dk, dv, dq_angles, dk_angles}, shape, q, k, v, q_angles, k_angles,
                          key_mask, out, lse, d_out, options);
}

cape_status cape_attention_backward_f32(float* dq, float* dk, float* dv, float* dq_angles,
                                        float* dk_angles, const cape_attention_shape* shape,
                                        const float* q, const float* k, const float* v,
                                        const float* q_angles, const float* k_angles,
                                        const uint8_t* key_mask, const float* out, const float* lse,
                                        const float* d_out, const cape_options* options) {
  return backward<float>({dq, dk, dv, dq_angles, dk_angles}, shape, q, k, v, q_angles, k_angles,
                         key_mask, out, lse, d_out, options);
}

cape_status cape_attention_scores(double* out, const cape_attention_shape* shape, const double* q,
                                  const double* k, const double* q_angles, const double* k_angles,
                                  const uint8_t* key_mask, const cape_options* options) {
  return attend(options, [&](cape::Run& run) {
    const double* no_values = nullptr; // the scores do not depend on them
    attention_scores(input(shape, q, k, no_values, q_angles, k_angles, key_mask), out, run);
  });
}
