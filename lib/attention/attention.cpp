// Blocked attention with an online softmax (M. Milakov and N. Gimelshein, Online normalizer
// calculation for softmax, 2018; T. Dao et al., FlashAttention, 2022). Tensors are row-major and
// Armadillo is column-major, so that a packed head is a head_dim x length matrix whose columns are
// queries or keys, and the scores of a tile are K'Q: one contiguous column for each query.
module;
#include "internal/arma.hpp"
#include "simd/softmax.hpp"
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <type_traits>
#include <vector>
module cape.attention;

namespace cape {
namespace {

// Rows of a tile: its scores stay in the second-level cache, and are long enough for the BLAS.
constexpr std::int64_t query_tile = 256;
constexpr std::int64_t key_tile = 256;

// A length x heads*head_dim tensor for every element of the batch.
template <class T>
struct Tensor {
  T* data;
  std::int64_t batch, length, heads, head_dim;

  std::int64_t size() const { return batch * length * heads * head_dim; }
  T* row(std::int64_t b, std::int64_t i, std::int64_t h) const {
    return data + ((b * length + i) * heads + h) * head_dim;
  }
};

template <class T, class U>
Tensor<U> queries(const AttentionInput<T>& in, U* data) {
  return {data, in.batch, in.q_length, in.heads, in.head_dim};
}
template <class T, class U>
Tensor<U> keys(const AttentionInput<T>& in, U* data) {
  return {data, in.batch, in.k_length, in.heads, in.head_dim};
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
bool is_key(const AttentionInput<T>& in, std::int64_t b, std::int64_t j) {
  return in.key_mask == nullptr || in.key_mask[b * in.k_length + j] != 0;
}

template <class T>
T scale_of(const AttentionInput<T>& in) {
  return std::isnan(in.scale) ? T(1) / std::sqrt(static_cast<T>(in.head_dim)) : in.scale;
}

// ------------------------------------------------------------------------------------ validation

[[noreturn]] void refuse(Status status, const std::string& message) {
  throw Error(status, message);
}

void check_at_least(std::int64_t value, std::int64_t least, const char* name) {
  if (value < least)
    refuse(Status::invalid_argument, std::string(name) + " is " + std::to_string(value) +
                                         "; it must be at least " + std::to_string(least));
}

void check_pointer(const void* pointer, std::int64_t size, const char* name) {
  if (pointer == nullptr && size > 0)
    refuse(Status::invalid_argument,
           std::string(name) + " is null; it must hold " + std::to_string(size) + " elements");
}

// Sizes and pointers; `values` says whether v is read.
template <class T>
void check_shapes(const AttentionInput<T>& in, bool values) {
  check_at_least(in.batch, 0, "batch");
  check_at_least(in.heads, 1, "heads");
  check_at_least(in.q_length, 0, "q_length");
  check_at_least(in.k_length, 0, "k_length");
  check_at_least(in.head_dim, 1, "head_dim");
  if (in.head_dim > std::numeric_limits<int>::max())
    refuse(Status::invalid_argument,
           "head_dim is " + std::to_string(in.head_dim) + "; it must be below 2^31");
  const std::int64_t width = checked_size(in.heads, in.head_dim, "heads x head_dim");
  const std::int64_t q_rows = checked_size(in.batch, in.q_length, "batch x q_length");
  const std::int64_t k_rows = checked_size(in.batch, in.k_length, "batch x k_length");
  check_pointer(in.q, checked_size(q_rows, width, "q"), "q");
  check_pointer(in.k, checked_size(k_rows, width, "k"), "k");
  if (values) check_pointer(in.v, k_rows * width, "v");
  if (has_angles(in)) {
    if (in.head_dim % 2 != 0)
      refuse(Status::dim_mismatch,
             "head_dim is " + std::to_string(in.head_dim) +
                 " but angles turn pairs of elements: it must be even, here " +
                 std::to_string(in.head_dim - 1) + " or " + std::to_string(in.head_dim + 1));
    if (in.angle_heads != 1 && in.angle_heads != in.heads)
      refuse(Status::dim_mismatch, "angle_heads is " + std::to_string(in.angle_heads) +
                                       "; it must be 1 or heads, which is " +
                                       std::to_string(in.heads));
    check_pointer(in.q_angles, angle_count(in, in.q_length), "q_angles");
    check_pointer(in.k_angles, angle_count(in, in.k_length), "k_angles");
  }
  if (std::isinf(in.scale))
    refuse(Status::invalid_argument,
           "scale is infinite; it must be finite, or NaN for the default");
}

template <class T>
T checked_magnitude(const T* x, std::int64_t size, const char* name) {
  const T largest = size > 0 ? simd::max_abs(x, size) : 0;
  if (std::isinf(largest))
    refuse(Status::invalid_argument, std::string(name) + " has a value that is not finite");
  return largest;
}

// The largest magnitude of the keys or values that are not padding.
template <class T>
T checked_key_magnitude(const AttentionInput<T>& in, const T* x, const char* name) {
  const Tensor<const T> tensor = keys(in, x);
  if (in.key_mask == nullptr) return checked_magnitude(x, tensor.size(), name);
  T largest = 0;
  for (std::int64_t b = 0; b < in.batch; ++b)
    for (std::int64_t j = 0; j < in.k_length; ++j)
      if (is_key(in, b, j))
        largest =
            std::max(largest, checked_magnitude(tensor.row(b, j, 0), in.heads * in.head_dim, name));
  return largest;
}

// Finite, and small enough that no score can overflow.
template <class T>
void check_scored_values(const AttentionInput<T>& in) {
  const double q = static_cast<double>(checked_magnitude(in.q, queries(in, in.q).size(), "q"));
  const double k = static_cast<double>(checked_key_magnitude(in, in.k, "k"));
  if (has_angles(in)) {
    checked_magnitude(in.q_angles, angle_count(in, in.q_length), "q_angles");
    checked_magnitude(in.k_angles, angle_count(in, in.k_length), "k_angles");
  }
  // Twice for the rotation, twice for the difference of two scores.
  const double reach = 4.0 * static_cast<double>(in.head_dim) *
                       std::fabs(static_cast<double>(scale_of(in))) * q * std::max(k, 1.0);
  if (!(reach <= static_cast<double>(std::numeric_limits<T>::max())))
    refuse(Status::invalid_argument, "the largest magnitudes, " + std::to_string(q) + " in q and " +
                                         std::to_string(k) +
                                         " in k, are too large: scores could overflow");
}

template <class T>
void check_values(const AttentionInput<T>& in) {
  check_scored_values(in);
  const double v = static_cast<double>(checked_key_magnitude(in, in.v, "v"));
  if (v * static_cast<double>(in.k_length) > static_cast<double>(std::numeric_limits<T>::max()))
    refuse(Status::invalid_argument, "the largest magnitude in v, " + std::to_string(v) +
                                         ", is too large: sums over keys could overflow");
}

// --------------------------------------------------------------------------------------- packing

// The rotations of the queries or of the keys; without angles they leave vectors as they are.
template <class T>
class Rotation {
public:
  Rotation() = default;
  Rotation(const AttentionInput<T>& in, const T* angles, std::int64_t length, Run& run) {
    if (!has_angles(in)) return;
    pairs_ = in.head_dim / 2;
    heads_ = in.angle_heads;
    const std::int64_t columns = heads_ * pairs_;
    cosine_.resize(static_cast<std::size_t>(length * columns));
    sine_.resize(cosine_.size());
    run.parallel_for(length, [&](std::int64_t i) {
      for (std::int64_t c = i * columns; c < (i + 1) * columns; ++c) {
        cosine_[static_cast<std::size_t>(c)] = std::cos(angles[c]);
        sine_[static_cast<std::size_t>(c)] = std::sin(angles[c]);
      }
    });
  }

  // x = R(direction * phi) x for head h of row i; direction is 1 or -1.
  void turn(std::int64_t i, std::int64_t h, T direction, T* x) const {
    const std::int64_t first = (i * heads_ + (heads_ == 1 ? 0 : h)) * pairs_;
    const T* cosine = cosine_.data() + first;
    const T* sine = sine_.data() + first;
    for (std::int64_t t = 0; t < pairs_; ++t) {
      const T c = cosine[t], s = direction * sine[t], a = x[2 * t], b = x[2 * t + 1];
      x[2 * t] = c * a - s * b;
      x[2 * t + 1] = s * a + c * b;
    }
  }

private:
  std::int64_t pairs_ = 0, heads_ = 1;
  std::vector<T> cosine_, sine_;
};

using Rows = std::span<const std::int64_t>;

// The rows of head (b, h) as the columns of a matrix.
template <class T>
arma::Mat<T> pack(const Tensor<const T>& x, std::int64_t b, std::int64_t h, Rows rows) {
  arma::Mat<T> packed(static_cast<arma::uword>(x.head_dim), rows.size(), arma::fill::none);
  for (std::size_t j = 0; j < rows.size(); ++j)
    std::copy_n(x.row(b, rows[j], h), x.head_dim, packed.colptr(j));
  return packed;
}

template <class T>
void unpack(const arma::Mat<T>& packed, const Tensor<T>& x, std::int64_t b, std::int64_t h,
            Rows rows) {
  for (std::size_t j = 0; j < rows.size(); ++j)
    std::copy_n(packed.colptr(j), x.head_dim, x.row(b, rows[j], h));
}

template <class T>
void turn_columns(arma::Mat<T>& packed, const Rotation<T>& rotation, std::int64_t h, Rows rows,
                  T direction) {
  for (std::size_t j = 0; j < rows.size(); ++j)
    rotation.turn(rows[j], h, direction, packed.colptr(j));
}

// The columns first .. first+n-1 without a copy. (Armadillo has no view of constant memory: do not
// write to the view of a constant.)
template <class T>
arma::Mat<T> columns(const arma::Mat<T>& x, std::int64_t first, std::int64_t n) {
  return arma::Mat<T>(const_cast<T*>(x.colptr(static_cast<arma::uword>(first))), x.n_rows,
                      static_cast<arma::uword>(n), false, true);
}

// What the heads of one call share.
template <class T>
struct Call {
  Call(const AttentionInput<T>& input, Run& r)
      : in(input), run(r), scale(scale_of(input)), turn_q(input, input.q_angles, input.q_length, r),
        turn_k(input, input.k_angles, input.k_length, r),
        rows(static_cast<std::size_t>(input.q_length)) {
    std::iota(rows.begin(), rows.end(), std::int64_t{0});
  }

  std::int64_t tiles() const { return (in.q_length + query_tile - 1) / query_tile; }
  Rows tile(std::int64_t t) const {
    return Rows(rows).subspan(
        static_cast<std::size_t>(t * query_tile),
        static_cast<std::size_t>(std::min(query_tile, in.q_length - t * query_tile)));
  }
  // scale R(phi) q of these queries.
  arma::Mat<T> pack_queries(std::int64_t b, std::int64_t h, Rows some) const {
    arma::Mat<T> q = pack(queries(in, in.q), b, h, some);
    turn_columns(q, turn_q, h, some, T(1));
    q *= scale;
    return q;
  }

  const AttentionInput<T>& in;
  Run& run;
  T scale;
  Rotation<T> turn_q, turn_k;
  std::vector<std::int64_t> rows; // 0 .. q_length-1
};

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
PackedKeys<T> pack_keys(const Call<T>& call, std::int64_t b, std::int64_t h, bool values) {
  PackedKeys<T> packed;
  for (std::int64_t j = 0; j < call.in.k_length; ++j)
    if (is_key(call.in, b, j)) packed.rows.push_back(j);
  packed.k = pack(keys(call.in, call.in.k), b, h, packed.rows);
  turn_columns(packed.k, call.turn_k, h, packed.rows, T(1));
  if (values) packed.v = pack(keys(call.in, call.in.v), b, h, packed.rows);
  return packed;
}

// Pack the keys of every head, then body(packed keys, b, h, queries) for every tile of queries.
template <class T, class F>
void for_query_tiles(const Call<T>& call, bool values, F body) {
  const std::int64_t heads = call.in.heads, tiles = call.tiles();
  std::vector<PackedKeys<T>> packed(static_cast<std::size_t>(call.in.batch * heads));
  call.run.parallel_for(call.in.batch * heads, [&](std::int64_t bh) {
    packed[static_cast<std::size_t>(bh)] = pack_keys(call, bh / heads, bh % heads, values);
  });
  call.run.parallel_for(call.in.batch * heads * tiles, [&](std::int64_t task) {
    const std::int64_t bh = task / tiles;
    body(packed[static_cast<std::size_t>(bh)], bh / heads, bh % heads, call.tile(task % tiles));
  });
}

// --------------------------------------------------------------------------------------- forward

// The softmax of scores that come a tile of keys at a time, one column for each query.
template <class T>
class OnlineSoftmax {
public:
  explicit OnlineSoftmax(std::size_t queries)
      : top_(queries, -std::numeric_limits<T>::infinity()), sum_(queries, 0) {}

  // Scores become weights exp(score - top); what was weighted before is shrunk to the new top.
  void update(arma::Mat<T>& scores, arma::Mat<T>& weighted) {
    const auto n = static_cast<std::int64_t>(scores.n_rows);
    for (arma::uword i = 0; i < scores.n_cols; ++i) {
      const T top = std::max(top_[i], simd::max(scores.colptr(i), n));
      if (top > top_[i]) {
        const T shrink = std::exp(top_[i] - top);
        sum_[i] *= shrink;
        weighted.col(i) *= shrink;
        top_[i] = top;
      }
      sum_[i] += simd::exp_sum(scores.colptr(i), top, n);
    }
  }
  // Weighted values become means; without any key they are 0 already.
  void finish(arma::Mat<T>& weighted) const {
    for (arma::uword i = 0; i < weighted.n_cols; ++i)
      if (sum_[i] > 0) weighted.col(i) /= sum_[i];
  }
  T log_sum_exp(std::size_t i) const { return top_[i] + std::log(sum_[i]); }

private:
  std::vector<T> top_, sum_;
};

} // namespace

template <class T>
void attention_forward(const AttentionInput<T>& in, T* out, std::type_identity_t<T>* log_sum_exp,
                       Run& run) {
  check_shapes(in, true);
  const Tensor<T> output = queries(in, out);
  check_pointer(out, output.size(), "out");
  check_values(in);
  if (output.size() == 0) return;
  const Call<T> call(in, run);
  for_query_tiles(call, true,
                  [&](const PackedKeys<T>& keys, std::int64_t b, std::int64_t h, Rows rows) {
                    const arma::Mat<T> q = call.pack_queries(b, h, rows);
                    arma::Mat<T> scores, o(q.n_rows, q.n_cols, arma::fill::zeros);
                    OnlineSoftmax<T> softmax(rows.size());
                    keys.for_tiles(run, [&](std::int64_t first, std::int64_t n) {
                      scores = columns(keys.k, first, n).t() * q;
                      softmax.update(scores, o);
                      o += columns(keys.v, first, n) * scores;
                    });
                    softmax.finish(o);
                    unpack(o, output, b, h, rows);
                    if (log_sum_exp == nullptr) return;
                    T* sums = log_sum_exp + (b * in.heads + h) * in.q_length + rows.front();
                    for (std::size_t i = 0; i < rows.size(); ++i) sums[i] = softmax.log_sum_exp(i);
                  });
}

template <class T>
void attention_scores(const AttentionInput<T>& in, T* scores, Run& run) {
  check_shapes(in, false);
  const std::int64_t q_rows = checked_size(checked_size(in.batch, in.heads, "batch x heads"),
                                           in.q_length, "batch x heads x q_length");
  const std::int64_t size = checked_size(q_rows, in.k_length, "scores");
  check_pointer(scores, size, "scores");
  check_scored_values(in);
  if (size == 0) return;
  const Call<T> call(in, run);
  std::fill_n(scores, size, -std::numeric_limits<T>::infinity());
  for_query_tiles(
      call, false, [&](const PackedKeys<T>& keys, std::int64_t b, std::int64_t h, Rows rows) {
        const arma::Mat<T> q = call.pack_queries(b, h, rows);
        T* out = scores + ((b * in.heads + h) * in.q_length + rows.front()) * in.k_length;
        keys.for_tiles(run, [&](std::int64_t first, std::int64_t n) {
          const arma::Mat<T> tile = columns(keys.k, first, n).t() * q;
          for (std::int64_t j = 0; j < n; ++j) {
            const std::int64_t key = keys.rows[static_cast<std::size_t>(first + j)];
            for (std::int64_t i = 0; i < static_cast<std::int64_t>(rows.size()); ++i)
              out[i * in.k_length + key] =
                  tile(static_cast<arma::uword>(j), static_cast<arma::uword>(i));
          }
        });
      });
}

// -------------------------------------------------------------------------------------- backward

namespace {

template <class T>
void check_gradient(const AttentionInput<T>& in, const AttentionGradient<T>& gradient) {
  if ((gradient.q_angles != nullptr || gradient.k_angles != nullptr) && !has_angles(in))
    refuse(Status::invalid_argument, "a gradient of angles is asked for but there are no angles");
  if (gradient.q_angles != nullptr)
    check_pointer(gradient.q, queries(in, in.q).size(), "gradient.q, on which q_angles rests,");
  if (gradient.k_angles != nullptr)
    check_pointer(gradient.k, keys(in, in.k).size(), "gradient.k, on which k_angles rests,");
}

template <class T>
void check_result(const T* gradient, std::int64_t size, const char* name) {
  if (gradient != nullptr && size > 0 && std::isinf(simd::max_abs(gradient, size)))
    refuse(Status::invalid_argument,
           std::string(name) + " overflows: the values in d_out or out are too large");
}

// The weights of a query sum to 1, but for the rounding of a large log_sum_exp.
template <class T>
void check_weights(const std::vector<T>& sums, Rows rows) {
  for (std::size_t i = 0; i < sums.size(); ++i)
    if (!(sums[i] > T(0.5) && sums[i] < T(2)))
      refuse(Status::invalid_argument, "the weights of query " + std::to_string(rows[i]) +
                                           " (counted from 0) sum to " + std::to_string(sums[i]) +
                                           " and not to 1: log_sum_exp must be that of "
                                           "attention_forward for the same input");
}

// The gradients of one head: the weights of a tile are computed again from log_sum_exp.
template <class T>
void head_backward(const Call<T>& call, std::int64_t b, std::int64_t h, const T* out,
                   const T* log_sum_exp, const T* d_out, const AttentionGradient<T>& gradient) {
  const AttentionInput<T>& in = call.in;
  const PackedKeys<T> packed = pack_keys(call, b, h, true);
  arma::Mat<T> d_k(arma::size(packed.k), arma::fill::zeros);
  arma::Mat<T> d_v(arma::size(packed.v), arma::fill::zeros);
  for (std::int64_t t = 0; t < call.tiles(); ++t) {
    const Rows rows = call.tile(t);
    const T* shifts = log_sum_exp + (b * in.heads + h) * in.q_length + rows.front();
    if (!packed.rows.empty()) checked_magnitude(shifts, std::ssize(rows), "log_sum_exp");
    const arma::Mat<T> q = call.pack_queries(b, h, rows);
    const arma::Mat<T> d_o = pack(queries(in, d_out), b, h, rows);
    const arma::Row<T> correction = arma::sum(pack(queries(in, out), b, h, rows) % d_o, 0);
    arma::Mat<T> weights, d_scores, d_q(arma::size(q), arma::fill::zeros);
    std::vector<T> weight_sums(rows.size(), 0);
    packed.for_tiles(call.run, [&](std::int64_t first, std::int64_t n) {
      const arma::Mat<T> k = columns(packed.k, first, n);
      weights = k.t() * q;
      for (arma::uword i = 0; i < weights.n_cols; ++i)
        weight_sums[i] += simd::exp_sum(weights.colptr(i), shifts[i], n);
      if (gradient.v != nullptr) columns(d_v, first, n) += d_o * weights.t();
      if (gradient.q == nullptr && gradient.k == nullptr) return;
      d_scores = columns(packed.v, first, n).t() * d_o;
      d_scores.each_row() -= correction;
      d_scores %= weights;
      if (gradient.q != nullptr) d_q += k * d_scores;
      if (gradient.k != nullptr) columns(d_k, first, n) += q * d_scores.t();
    });
    if (!packed.rows.empty()) check_weights(weight_sums, rows);
    if (gradient.q == nullptr) continue;
    d_q *= call.scale;
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

template void attention_forward<double>(const AttentionInput<double>&, double*, double*, Run&);
template void attention_forward<float>(const AttentionInput<float>&, float*, float*, Run&);
template void attention_backward<double>(const AttentionInput<double>&, const double*,
                                         const double*, const double*,
                                         const AttentionGradient<double>&, Run&);
template void attention_backward<float>(const AttentionInput<float>&, const float*, const float*,
                                        const float*, const AttentionGradient<float>&, Run&);
template void attention_scores<double>(const AttentionInput<double>&, double*, Run&);
template void attention_scores<float>(const AttentionInput<float>&, float*, Run&);

} // namespace cape
