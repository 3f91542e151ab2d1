// The tensors of a call: where their rows stand, and which of them count.
#pragma once

namespace cape {

// A length x heads*head_dim tensor for every element of the batch, its rows `stride` apart.
template <class T>
struct Tensor {
  T* data;
  std::int64_t batch, length, heads, head_dim, stride;

  T* row(std::int64_t b, std::int64_t i, std::int64_t h) const {
    return data + (b * length + i) * stride + h * head_dim;
  }
};

// A tensor of queries or keys; stride 0: without gaps.
template <class T, class U>
Tensor<U> queries(const AttentionInput<T>& in, U* data, std::int64_t stride = 0) {
  const std::int64_t width = in.heads * in.head_dim;
  return {data, in.batch, in.q_length, in.heads, in.head_dim, stride == 0 ? width : stride};
}
template <class T, class U>
Tensor<U> keys(const AttentionInput<T>& in, U* data, std::int64_t stride = 0) {
  const std::int64_t width = in.heads * in.head_dim;
  return {data, in.batch, in.k_length, in.heads, in.head_dim, stride == 0 ? width : stride};
}

template <class T>
Tensor<const T> q_of(const AttentionInput<T>& in) {
  return queries(in, in.q, in.q_stride);
}
template <class T>
Tensor<const T> k_of(const AttentionInput<T>& in) {
  return keys(in, in.k, in.k_stride);
}
template <class T>
Tensor<const T> v_of(const AttentionInput<T>& in) {
  return keys(in, in.v, in.v_stride);
}
template <class T, class U>
Tensor<U> outputs(const AttentionInput<T>& in, U* data) {
  return queries(in, data, in.out_stride);
}

// Elements of a tensor without gaps.
template <class T>
std::int64_t q_size(const AttentionInput<T>& in) {
  return in.batch * in.q_length * in.heads * in.head_dim;
}
template <class T>
std::int64_t k_size(const AttentionInput<T>& in) {
  return in.batch * in.k_length * in.heads * in.head_dim;
}

template <class T>
bool has_angles(const AttentionInput<T>& in) {
  return in.q_angles != nullptr || in.k_angles != nullptr;
}

template <class T>
std::int64_t angle_count(const AttentionInput<T>& in, std::int64_t length) {
  return checked_size(length, in.angle_heads * in.head_dim / 2, "angles");
}

template <class T>
std::int64_t bias_size(const AttentionInput<T>& in) {
  const std::int64_t rows = checked_size(in.bias_heads, in.q_length, "bias_heads x q_length");
  return checked_size(rows, in.k_length, "bias");
}

// The row of a query of a head in the bias, or in its gradient.
template <class T, class U>
U* bias_row(const AttentionInput<T>& in, U* bias, std::int64_t h, std::int64_t i) {
  return bias + ((in.bias_heads == 1 ? 0 : h) * in.q_length + i) * in.k_length;
}

template <class T>
bool is_key(const AttentionInput<T>& in, std::int64_t b, std::int64_t j) {
  return in.key_mask == nullptr || in.key_mask[b * in.k_length + j] != 0;
}

// Numbers of the keys that are not padding.
template <class T>
std::vector<std::int64_t> key_rows(const AttentionInput<T>& in, std::int64_t b) {
  std::vector<std::int64_t> rows;
  for (std::int64_t j = 0; j < in.k_length; ++j)
    if (is_key(in, b, j)) rows.push_back(j);
  return rows;
}

template <class T>
T scale_of(const AttentionInput<T>& in) {
  return std::isnan(in.scale) ? T(1) / std::sqrt(static_cast<T>(in.head_dim)) : in.scale;
}

// Ask for the row of a head that is so many rows ahead: rows of a head are too far apart for the
// CPU to foresee which comes next.
inline constexpr std::int64_t rows_ahead = 8;
template <class T>
void prefetch(const Tensor<const T>& x, std::int64_t b, std::int64_t i, std::int64_t h) {
  if (i >= x.length) return;
  const T* row = x.row(b, i, h);
  for (std::int64_t c = 0; c < x.head_dim; c += static_cast<std::int64_t>(64 / sizeof(T)))
    __builtin_prefetch(row + c);
}

template <class T>
inline constexpr T log2_e = T(1.44269504088896340735992468100189214L);
template <class T>
inline constexpr T ln_2 = T(0.693147180559945309417232121458176568L);

} // namespace cape
