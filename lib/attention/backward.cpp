// The gradients of attention.
module;
#include "internal/arma.hpp"
#include "internal/message.hpp"
#include "simd/attention.hpp"
#include "simd/softmax.hpp"
#include "simd/vector_math.hpp"
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <new>
#include <numeric>
#include <span>
#include <string>
#include <unistd.h>
#include <vector>
module cape.attention;
#include "attention/call.hpp"

namespace cape {
namespace {

constexpr std::int64_t query_tile = 256;
constexpr std::int64_t key_tile = 256;

using RowNumbers = std::span<const std::int64_t>;

// The rows of head (b, h) as the columns of a matrix.
template <class T>
arma::Mat<T> pack(const Tensor<const T>& x, std::int64_t b, std::int64_t h, RowNumbers rows) {
  arma::Mat<T> packed(static_cast<arma::uword>(x.head_dim), rows.size(), arma::fill::none);
  for (std::size_t j = 0; j < rows.size(); ++j)
    std::copy_n(x.row(b, rows[j], h), x.head_dim, packed.colptr(j));
  return packed;
}

template <class T>
void unpack(const arma::Mat<T>& packed, const Tensor<T>& x, std::int64_t b, std::int64_t h,
            RowNumbers rows) {
  for (std::size_t j = 0; j < rows.size(); ++j)
    std::copy_n(packed.colptr(j), x.head_dim, x.row(b, rows[j], h));
}

template <class T>
void turn_columns(arma::Mat<T>& packed, const Rotation<T>& rotation, std::int64_t h, RowNumbers rows,
                  T direction) {
  for (std::size_t j = 0; j < rows.size(); ++j)
    rotation.turn(rows[j], h, direction, T(1), packed.colptr(j), packed.colptr(j));
}

// The columns first .. first+n-1 without a copy. (Armadillo has no view of constant memory: do not
// write to the view of a constant.)
template <class T>
arma::Mat<T> columns(const arma::Mat<T>& x, std::int64_t first, std::int64_t n) {
  return arma::Mat<T>(const_cast<T*>(x.colptr(static_cast<arma::uword>(first))), x.n_rows,
                      static_cast<arma::uword>(n), false, true);
}

// The keys of one head that are not padding, R(phi) k, and their values.
template <class T>
struct PackedKeys {
  std::vector<std::int64_t> rows;
  arma::Mat<T> k, v;

  // body(first, n) for each tile of keys.
  template <class F>
  void for_tiles(Run& run, F body) const {
    const auto size = static_cast<std::int64_t>(rows.size());
    for (std::int64_t first = 0; first < size; first += key_tile) {
      run.poll();
      body(first, std::min(key_tile, size - first));
    }
  }
};

template <class T>
PackedKeys<T> pack_keys(const Call<T>& call, std::int64_t b, std::int64_t h) {
  PackedKeys<T> packed;
  packed.rows = key_rows(call.in, b);
  packed.k = pack(keys(call.in, call.in.k), b, h, packed.rows);
  turn_columns(packed.k, call.turn_k, h, packed.rows, T(1));
  packed.v = pack(keys(call.in, call.in.v), b, h, packed.rows);
  return packed;
}

template <class T>
void check_gradient(const AttentionInput<T>& in, const AttentionGradient<T>& gradient) {
  if ((gradient.q_angles != nullptr || gradient.k_angles != nullptr) && !has_angles(in))
    throw Error(Status::invalid_argument, "a gradient of angles is asked for but there are no angles");
  if (gradient.q_angles != nullptr)
    check_pointer(gradient.q, queries(in, in.q).size(), "gradient.q, on which q_angles rests,");
  if (gradient.k_angles != nullptr)
    check_pointer(gradient.k, keys(in, in.k).size(), "gradient.k, on which k_angles rests,");
}

template <class T>
void check_result(const T* gradient, std::int64_t size, const char* name) {
  if (gradient != nullptr && size > 0 && std::isinf(simd::max_abs(gradient, size)))
    throw Error(Status::invalid_argument,
           std::string(name) + " overflows: the values in d_out or out are too large");
}

// The weights of a query sum to 1, but for the rounding of a large log_sum_exp.
template <class T>
void check_weights(const std::vector<T>& sums, RowNumbers rows) {
  for (std::size_t i = 0; i < sums.size(); ++i)
    if (!(sums[i] > T(0.5) && sums[i] < T(2)))
      throw Error(Status::invalid_argument, "the weights of query " + std::to_string(rows[i]) +
                                           " (counted from 0) sum to " + std::to_string(sums[i]) +
                                           " and not to 1: log_sum_exp must be that of "
                                           "attention_forward for the same input");
}

// The gradients of one head: the weights of a tile are computed again from log_sum_exp.
template <class T>
void head_backward(const Call<T>& call, std::int64_t b, std::int64_t h, const T* out,
                   const T* log_sum_exp, const T* d_out, const AttentionGradient<T>& gradient) {
  const AttentionInput<T>& in = call.in;
  const PackedKeys<T> packed = pack_keys(call, b, h);
  arma::Mat<T> d_k(arma::size(packed.k), arma::fill::zeros);
  arma::Mat<T> d_v(arma::size(packed.v), arma::fill::zeros);
  std::vector<std::int64_t> all(static_cast<std::size_t>(in.q_length));
  std::iota(all.begin(), all.end(), std::int64_t{0});
  for (std::int64_t first = 0; first < in.q_length; first += query_tile) {
    const RowNumbers rows = RowNumbers(all).subspan(
        static_cast<std::size_t>(first),
        static_cast<std::size_t>(std::min(query_tile, in.q_length - first)));
    const T* shifts = log_sum_exp + (b * in.heads + h) * in.q_length + rows.front();
    if (!packed.rows.empty()) checked_magnitude(shifts, std::ssize(rows), "log_sum_exp");
    arma::Mat<T> q = pack(queries(in, in.q), b, h, rows);
    turn_columns(q, call.turn_q, h, rows, T(1));
    q *= scale_of(in);
    const arma::Mat<T> d_o = pack(queries(in, d_out), b, h, rows);
    const arma::Row<T> correction = arma::sum(pack(queries(in, out), b, h, rows) % d_o, 0);
    arma::Mat<T> weights, d_scores, d_q(arma::size(q), arma::fill::zeros);
    std::vector<T> weight_sums(rows.size(), 0);
    packed.for_tiles(call.run, [&](std::int64_t first_key, std::int64_t n) {
      const arma::Mat<T> k = columns(packed.k, first_key, n);
      weights = k.t() * q;
      if (in.bias != nullptr)
        for (std::size_t i = 0; i < rows.size(); ++i)
          for (std::int64_t j = 0; j < n; ++j)
            weights(static_cast<arma::uword>(j), i) +=
                in.bias[((in.bias_heads == 1 ? 0 : h) * in.q_length + rows[i]) * in.k_length +
                        packed.rows[static_cast<std::size_t>(first_key + j)]];
      for (arma::uword i = 0; i < weights.n_cols; ++i)
        weight_sums[i] += simd::exp_sum(weights.colptr(i), shifts[i], n);
      if (gradient.v != nullptr) columns(d_v, first_key, n) += d_o * weights.t();
      if (gradient.q == nullptr && gradient.k == nullptr) return;
      d_scores = columns(packed.v, first_key, n).t() * d_o;
      d_scores.each_row() -= correction;
      d_scores %= weights;
      if (gradient.q != nullptr) d_q += k * d_scores;
      if (gradient.k != nullptr) columns(d_k, first_key, n) += q * d_scores.t();
    });
    if (!packed.rows.empty()) check_weights(weight_sums, rows);
    if (gradient.q == nullptr) continue;
    d_q *= scale_of(in);
    turn_columns(d_q, call.turn_q, h, rows, T(-1));
    unpack(d_q, queries(in, gradient.q), b, h, rows);
  }
  if (gradient.k != nullptr) {
    turn_columns(d_k, call.turn_k, h, packed.rows, T(-1));
    unpack(d_k, keys(in, gradient.k), b, h, packed.rows);
  }
  if (gradient.v != nullptr) unpack(d_v, keys(in, gradient.v), b, h, packed.rows);
}

// A turn by a small angle moves the pair (x, y) by (-y, x), so that the gradient of the angle is
// x dy - y dx; turning both the pair and its gradient back does not change that. Summed over the
// batch, and over the heads that share the angle, in a fixed order. used(b, i): row i counts in b.
template <class T, class F>
void angle_gradient(const Call<T>& call, const Tensor<const T>& x, const Tensor<const T>& d_x,
                    T* d_angles, F used) {
  const std::int64_t pairs = x.head_dim / 2, angle_heads = call.in.angle_heads;
  call.run.parallel_for(x.length, [&](std::int64_t i) {
    T* row = d_angles + i * angle_heads * pairs;
    std::fill_n(row, angle_heads * pairs, T(0));
    for (std::int64_t b = 0; b < x.batch; ++b) {
      if (!used(b, i)) continue;
      for (std::int64_t h = 0; h < x.heads; ++h) {
        const T* v = x.row(b, i, h);
        const T* d_v = d_x.row(b, i, h);
        T* sum = row + (angle_heads == 1 ? 0 : h) * pairs;
        for (std::int64_t t = 0; t < pairs; ++t)
          sum[t] += v[2 * t] * d_v[2 * t + 1] - v[2 * t + 1] * d_v[2 * t];
      }
    }
  });
}

} // namespace

template <class T>
void attention_backward(const AttentionInput<T>& in, const T* out, const T* log_sum_exp,
                        const T* d_out, const AttentionGradient<T>& gradient, Run& run) {
  check_shapes(in, true);
  check_gradient(in, gradient);
  const std::int64_t q_size = queries(in, in.q).size(), k_size = keys(in, in.k).size();
  check_pointer(out, q_size, "out");
  check_pointer(log_sum_exp, q_size / in.head_dim, "log_sum_exp");
  check_pointer(d_out, q_size, "d_out");
  check_values(in);
  checked_magnitude(out, q_size, "out");
  checked_magnitude(d_out, q_size, "d_out");

  if (gradient.k != nullptr) std::fill_n(gradient.k, k_size, T(0)); // padded keys stay 0
  if (gradient.v != nullptr) std::fill_n(gradient.v, k_size, T(0));
  const Call<T> call(in, run);
  run.parallel_for(q_size + k_size > 0 ? in.batch * in.heads : 0, [&](std::int64_t bh) {
    head_backward(call, bh / in.heads, bh % in.heads, out, log_sum_exp, d_out, gradient);
  });
  if (gradient.q_angles != nullptr)
    angle_gradient(call, queries(in, in.q), queries<T, const T>(in, gradient.q), gradient.q_angles,
                   [](std::int64_t, std::int64_t) { return true; });
  if (gradient.k_angles != nullptr)
    angle_gradient(call, keys(in, in.k), keys<T, const T>(in, gradient.k), gradient.k_angles,
                   [&](std::int64_t b, std::int64_t j) { return is_key(in, b, j); });

  check_result(gradient.q, q_size, "gradient.q");
  check_result(gradient.k, k_size, "gradient.k");
  check_result(gradient.v, k_size, "gradient.v");
  check_result(gradient.q_angles, angle_count(in, in.q_length), "gradient.q_angles");
  check_result(gradient.k_angles, angle_count(in, in.k_length), "gradient.k_angles");
}

template void attention_backward<double>(const AttentionInput<double>&, const double*,
                                         const double*, const double*,
                                         const AttentionGradient<double>&, Run&);
template void attention_backward<float>(const AttentionInput<float>&, const float*, const float*,
                                        const float*, const AttentionGradient<float>&, Run&);

} // namespace cape
