// Rotary attention, in double and float.
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "handle.hpp"

using namespace cape::capi;

namespace {

// The sizes, with those that an older client does not know at their defaults.
cape_attention_shape read_shape(const cape_attention_shape* shape) {
  const double automatic = std::numeric_limits<double>::quiet_NaN();
  return read_struct(
      shape, "shape",
      cape_attention_shape{0, 1, 1, 0, 0, 0, 1, automatic, nullptr, 1, 0, 0, 0, 0, nullptr});
}

template <class T>
cape::AttentionInput<T> input(const cape_attention_shape* shape, const T* q, const T* k, const T* v,
                              const T* q_angles, const T* k_angles, const uint8_t* key_mask) {
  const cape_attention_shape s = read_shape(shape);
  return {.batch = s.batch,
          .heads = s.heads,
          .q_length = s.q_length,
          .k_length = s.k_length,
          .head_dim = s.head_dim,
          .q = q,
          .k = k,
          .v = v,
          .q_angles = q_angles,
          .k_angles = k_angles,
          .angle_heads = s.angle_heads,
          .key_mask = key_mask,
          .scale = static_cast<T>(s.scale),
          .bias = static_cast<const T*>(s.bias),
          .bias_heads = s.bias_heads,
          .q_stride = s.q_stride,
          .k_stride = s.k_stride,
          .v_stride = s.v_stride,
          .out_stride = s.out_stride};
}

template <class T>
cape_status forward(T* out, T* lse_out, const cape_attention_shape* shape, const T* q, const T* k,
                    const T* v, const T* q_angles, const T* k_angles, const uint8_t* key_mask,
                    const cape_options* options) noexcept {
  return guard_run(options, [&](cape::Run& run) {
    attention_forward(input(shape, q, k, v, q_angles, k_angles, key_mask), out, lse_out, run);
  });
}

template <class T>
cape_status backward(cape::AttentionGradient<T> gradient, const cape_attention_shape* shape,
                     const T* q, const T* k, const T* v, const T* q_angles, const T* k_angles,
                     const uint8_t* key_mask, const T* out, const T* lse, const T* d_out,
                     const cape_options* options) noexcept {
  return guard_run(options, [&](cape::Run& run) {
    gradient.bias = static_cast<T*>(read_shape(shape).d_bias);
    attention_backward(input(shape, q, k, v, q_angles, k_angles, key_mask), out, lse, d_out,
                       gradient, run);
  });
}

template <class T>
cape_status workspace(double* forward_out, double* backward_out, const cape_attention_shape* shape,
                      const cape_options* options) noexcept {
  return guard_run(options, [&](cape::Run& run) {
    const T* none = nullptr;
    const cape::AttentionWorkspace bytes = cape::attention_workspace(
        input(shape, none, none, none, none, none, nullptr), run.threads());
    if (forward_out != nullptr) *forward_out = bytes.forward;
    if (backward_out != nullptr) *backward_out = bytes.backward;
  });
}

// GCC 14 crashes on a vector that is returned inside a lambda of a template.
void draw_directions(std::vector<double>& out, int64_t n_features, int64_t head_dim, uint64_t draw,
                     cape::Run& run) {
  out = cape::attention_directions<double>(n_features, head_dim, draw, run);
}
void draw_directions(std::vector<float>& out, int64_t n_features, int64_t head_dim, uint64_t draw,
                     cape::Run& run) {
  out = cape::attention_directions<float>(n_features, head_dim, draw, run);
}

// The directions are drawn after a look at the rest: many of them take time.
template <class T>
void check_before_drawing(const cape::AttentionInput<T>& in) {
  cape::attention_workspace(in, 1); // the sizes
  if (in.batch > 0 && in.q_length > 0) required(in.q, "q");
  if (in.batch > 0 && in.k_length > 0) {
    required(in.k, "k");
    required(in.v, "v");
  }
}

template <class T>
cape_status linear(T* out, const cape_attention_shape* shape, int64_t n_features, uint64_t draw,
                   const T* q, const T* k, const T* v, const T* q_angles, const T* k_angles,
                   const uint8_t* key_mask, const cape_options* options) noexcept {
  return guard_run(options, [&](cape::Run& run) {
    const auto in = input(shape, q, k, v, q_angles, k_angles, key_mask);
    check_before_drawing(in);
    std::vector<T> directions;
    draw_directions(directions, n_features, in.head_dim, draw, run);
    linear_attention_forward(in, n_features, directions.data(), out, run);
  });
}

template <class T>
cape_status linear_backward(const cape::AttentionGradient<T>& gradient,
                            const cape_attention_shape* shape, int64_t n_features, uint64_t draw,
                            const T* q, const T* k, const T* v, const T* q_angles,
                            const T* k_angles, const uint8_t* key_mask, const T* d_out,
                            const cape_options* options) noexcept {
  return guard_run(options, [&](cape::Run& run) {
    const auto in = input(shape, q, k, v, q_angles, k_angles, key_mask);
    check_before_drawing(in);
    std::vector<T> directions;
    draw_directions(directions, n_features, in.head_dim, draw, run);
    linear_attention_backward(in, n_features, directions.data(), d_out, gradient, run);
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
  return guard_run(options, [&](cape::Run& run) {
    const double* no_values = nullptr; // the scores do not depend on them
    attention_scores(input(shape, q, k, no_values, q_angles, k_angles, key_mask), out, run);
  });
}

cape_status cape_attention_workspace(double* forward_out, double* backward_out,
                                     const cape_attention_shape* shape,
                                     const cape_options* options) {
  return workspace<double>(forward_out, backward_out, shape, options);
}

cape_status cape_attention_workspace_f32(double* forward_out, double* backward_out,
                                         const cape_attention_shape* shape,
                                         const cape_options* options) {
  return workspace<float>(forward_out, backward_out, shape, options);
}

cape_status cape_linear_attention(double* out, const cape_attention_shape* shape,
                                  int64_t n_features, uint64_t draw, const double* q,
                                  const double* k, const double* v, const double* q_angles,
                                  const double* k_angles, const uint8_t* key_mask,
                                  const cape_options* options) {
  return linear(out, shape, n_features, draw, q, k, v, q_angles, k_angles, key_mask, options);
}

cape_status cape_linear_attention_f32(float* out, const cape_attention_shape* shape,
                                      int64_t n_features, uint64_t draw, const float* q,
                                      const float* k, const float* v, const float* q_angles,
                                      const float* k_angles, const uint8_t* key_mask,
                                      const cape_options* options) {
  return linear(out, shape, n_features, draw, q, k, v, q_angles, k_angles, key_mask, options);
}

cape_status cape_linear_attention_backward(double* dq, double* dk, double* dv, double* dq_angles,
                                           double* dk_angles, const cape_attention_shape* shape,
                                           int64_t n_features, uint64_t draw, const double* q,
                                           const double* k, const double* v, const double* q_angles,
                                           const double* k_angles, const uint8_t* key_mask,
                                           const double* d_out, const cape_options* options) {
  return linear_backward<double>({dq, dk, dv, dq_angles, dk_angles}, shape, n_features, draw, q, k,
                                 v, q_angles, k_angles, key_mask, d_out, options);
}

cape_status cape_linear_attention_backward_f32(float* dq, float* dk, float* dv, float* dq_angles,
                                               float* dk_angles, const cape_attention_shape* shape,
                                               int64_t n_features, uint64_t draw, const float* q,
                                               const float* k, const float* v,
                                               const float* q_angles, const float* k_angles,
                                               const uint8_t* key_mask, const float* d_out,
                                               const cape_options* options) {
  return linear_backward<float>({dq, dk, dv, dq_angles, dk_angles}, shape, n_features, draw, q, k,
                                v, q_angles, k_angles, key_mask, d_out, options);
}
