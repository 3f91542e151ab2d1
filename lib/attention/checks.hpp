// What a call must hold: sizes, pointers, and values for which no score or sum overflows.
#pragma once
#include "attention/tensors.hpp"

namespace cape {

inline void check_at_least(std::int64_t value, std::int64_t least, const char* name) {
  if (value < least)
    throw Error(Status::invalid_argument,
                message(name, " is ", value, "; it must be at least ", least));
}

inline void check_pointer(const void* pointer, std::int64_t size, const char* name) {
  if (pointer == nullptr && size > 0)
    throw Error(Status::invalid_argument,
                message(name, " is null; it must hold ", size, " elements"));
}

template <class T>
void check_sizes(const AttentionInput<T>& in) {
  check_at_least(in.batch, 0, "batch");
  check_at_least(in.heads, 1, "heads");
  check_at_least(in.q_length, 0, "q_length");
  check_at_least(in.k_length, 0, "k_length");
  check_at_least(in.head_dim, 1, "head_dim");
  // One by one too, as the rest of a product may be 0.
  for (const auto& [size, name] :
       {std::pair(in.q_length, "q_length"), std::pair(in.k_length, "k_length")})
    checked_size(size, 1, name);
  checked_size(in.batch, in.heads, "batch x heads");
  const std::int64_t width = checked_size(in.heads, in.head_dim, "heads x head_dim");
  checked_size(checked_size(in.batch, in.q_length, "batch x q_length"), width, "q");
  checked_size(checked_size(in.batch, in.k_length, "batch x k_length"), width, "k");
}

// Sizes and pointers; `values` says whether v is read.
template <class T>
void check_shapes(const AttentionInput<T>& in, bool values) {
  check_sizes(in);
  const std::int64_t width = checked_size(in.heads, in.head_dim, "heads x head_dim");
  const std::int64_t q_rows = checked_size(in.batch, in.q_length, "batch x q_length");
  const std::int64_t k_rows = checked_size(in.batch, in.k_length, "batch x k_length");
  const auto check_stride = [&](std::int64_t stride, std::int64_t rows, const char* name) {
    if (stride != 0 && stride < width)
      throw Error(Status::invalid_argument,
                  message(name, " is ", stride,
                          "; it must be 0 (no gaps) or at least heads x head_dim, which is ",
                          width));
    checked_size(rows, stride, name);
  };
  check_stride(in.q_stride, q_rows, "q_stride");
  check_stride(in.k_stride, k_rows, "k_stride");
  check_stride(in.v_stride, k_rows, "v_stride");
  check_stride(in.out_stride, q_rows, "out_stride");
  check_pointer(in.q, checked_size(q_rows, width, "q"), "q");
  check_pointer(in.k, checked_size(k_rows, width, "k"), "k");
  if (values) check_pointer(in.v, k_rows * width, "v");
  if (has_angles(in)) {
    if (in.head_dim % 2 != 0)
      throw Error(Status::dim_mismatch,
                  message("head_dim is ", in.head_dim,
                          " but angles turn pairs of elements: it must be even, here ",
                          in.head_dim - 1, " or ", in.head_dim + 1));
    if (in.angle_heads != 1 && in.angle_heads != in.heads)
      throw Error(Status::dim_mismatch, message("angle_heads is ", in.angle_heads,
                                                "; it must be 1 or heads, which is ", in.heads));
    check_pointer(in.q_angles, angle_count(in, in.q_length), "q_angles");
    check_pointer(in.k_angles, angle_count(in, in.k_length), "k_angles");
  }
  if (in.bias != nullptr && in.bias_heads != 1 && in.bias_heads != in.heads)
    throw Error(Status::dim_mismatch, message("bias_heads is ", in.bias_heads,
                                              "; it must be 1 or heads, which is ", in.heads));
  if (std::isinf(in.scale))
    throw Error(Status::invalid_argument,
                "scale is infinite; it must be finite, or NaN for the default");
}

template <class T>
T checked_magnitude(const T* x, std::int64_t size, const char* name) {
  const T largest = size > 0 ? simd::max_abs(x, size) : 0;
  if (std::isinf(largest))
    throw Error(Status::invalid_argument, message(name, " has a value that is not finite"));
  return largest;
}

template <class T>
T checked_magnitude(const Tensor<const T>& x, const char* name) {
  const std::int64_t rows = x.batch * x.length, width = x.heads * x.head_dim;
  if (x.stride == width) return checked_magnitude(x.data, rows * width, name);
  T largest = 0;
  for (std::int64_t i = 0; i < rows; ++i)
    largest = std::max(largest, checked_magnitude(x.data + i * x.stride, width, name));
  return largest;
}

// The largest magnitude of the keys or values that are not padding.
template <class T>
T checked_key_magnitude(const AttentionInput<T>& in, const Tensor<const T>& x, const char* name) {
  if (in.key_mask == nullptr) return checked_magnitude(x, name);
  T largest = 0;
  for (std::int64_t b = 0; b < in.batch; ++b)
    for (std::int64_t j = 0; j < in.k_length; ++j)
      if (is_key(in, b, j))
        largest =
            std::max(largest, checked_magnitude(x.row(b, j, 0), in.heads * in.head_dim, name));
  return largest;
}

template <class T>
void check_bias(const AttentionInput<T>& in) {
  if (in.bias == nullptr) return;
  const std::int64_t size = bias_size(in);
  constexpr T most = std::numeric_limits<T>::max() / 8;
  int bad = 0;
  for (std::int64_t i = 0; i < size; ++i) bad |= static_cast<int>(!(in.bias[i] <= most));
  if (bad != 0)
    throw Error(Status::invalid_argument,
                "bias has a value that is neither finite nor minus infinity, or is too large");
}

// Finite, and small enough that no score can overflow.
template <class T>
void check_scored_values(const AttentionInput<T>& in) {
  const double q = static_cast<double>(checked_magnitude(q_of(in), "q"));
  const double k = static_cast<double>(checked_key_magnitude(in, k_of(in), "k"));
  if (has_angles(in)) {
    checked_magnitude(in.q_angles, angle_count(in, in.q_length), "q_angles");
    checked_magnitude(in.k_angles, angle_count(in, in.k_length), "k_angles");
  }
  check_bias(in);
  constexpr auto most = static_cast<double>(std::numeric_limits<T>::max());
  const double scale = std::fabs(static_cast<double>(scale_of(in)));
  if (!(2 * scale <= most)) // the kernel takes powers of 2
    throw Error(Status::invalid_argument,
                message("scale is ", in.scale, "; its magnitude must be at most ", most / 2));
  // Twice for the rotation, twice for the difference of two scores, twice for powers of 2.
  const double reach = 8.0 * static_cast<double>(in.head_dim) * scale * q * std::max(k, 1.0);
  // What is turned may be twice as large before a small scale makes it smaller.
  if (!(reach <= most) || (has_angles(in) && std::max(q, k) > most / 2))
    throw Error(Status::invalid_argument, message("the largest magnitudes, ", q, " in q and ", k,
                                                  " in k, are too large: scores could overflow"));
}

template <class T>
void check_values(const AttentionInput<T>& in) {
  check_scored_values(in);
  const double v = static_cast<double>(checked_key_magnitude(in, v_of(in), "v"));
  // The weights of the forward kernel are up to 2^8.
  if (256 * v * static_cast<double>(in.k_length) >
      static_cast<double>(std::numeric_limits<T>::max()))
    throw Error(Status::invalid_argument, message("the largest magnitude in v, ", v,
                                                  ", is too large: sums over keys could overflow"));
}

template <class T>
void check_gradient(const AttentionInput<T>& in, const AttentionGradient<T>& gradient) {
  if ((gradient.q_angles != nullptr || gradient.k_angles != nullptr) && !has_angles(in))
    throw Error(Status::invalid_argument,
                "a gradient of angles is asked for but there are no angles");
  if (gradient.q_angles != nullptr)
    check_pointer(gradient.q, q_size(in), "gradient.q, on which q_angles rests,");
  if (gradient.k_angles != nullptr)
    check_pointer(gradient.k, k_size(in), "gradient.k, on which k_angles rests,");
  if (gradient.bias != nullptr && in.bias == nullptr)
    throw Error(Status::invalid_argument, "a gradient of the bias is asked for but there is none");
}

template <class T>
void check_result(const T* gradient, std::int64_t size, const char* name) {
  if (gradient != nullptr && size > 0 && std::isinf(simd::max_abs(gradient, size)))
    throw Error(Status::invalid_argument,
                message(name, " overflows: the values in d_out or out are too large"));
}

template <class T>
void check_workspace(const AttentionInput<T>& in, double bytes) {
  check_memory(bytes, message("attention of ", in.q_length, " queries to ", in.k_length, " keys"));
}

// Of attention by random features, whose workspace is bytes().
template <class T, class F>
void check_linear(const AttentionInput<T>& in, std::int64_t features, const T* directions,
                  F bytes) {
  check_shapes(in, true);
  check_at_least(features, 1, "features");
  if (has_angles(in) && features % 2 != 0)
    throw Error(Status::dim_mismatch,
                message("features is ", features, "; to be turned in pairs it must be even"));
  const std::int64_t size = checked_size(features, in.head_dim, "directions");
  check_pointer(directions, size, "directions");
  checked_magnitude(directions, size, "directions");
  if (in.bias != nullptr)
    throw Error(Status::unsupported, "bias is given; linear attention has none");
  if (!(scale_of(in) > 0))
    throw Error(Status::invalid_argument,
                message("scale is ", in.scale, "; for linear attention it must be positive"));
  check_workspace(in, bytes());
  check_values(in);
  const double q = static_cast<double>(checked_magnitude(q_of(in), "q"));
  const double k = static_cast<double>(checked_key_magnitude(in, k_of(in), "k"));
  const double largest = std::max(q, k), d = static_cast<double>(in.head_dim);
  if (!(4 * d * static_cast<double>(scale_of(in)) * largest * largest <=
        static_cast<double>(std::numeric_limits<T>::max())))
    throw Error(Status::invalid_argument, message("the largest magnitude in q and k, ", largest,
                                                  ", is too large: features could overflow"));
}

} // namespace cape
