#include <hwy/detect_targets.h>
#undef HWY_DISABLED_TARGETS // vectors without a size cannot stand in arrays
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/kernels/attention.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "attention/kernels/attention.hpp"
#include "simd/exp2-inl.hpp"
#include <algorithm>
#include <cmath>
#include <type_traits>

HWY_BEFORE_NAMESPACE();
namespace cape::simd {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
using Tag = hn::CappedTag<T, 64 / sizeof(T)>;
template <class T>
using Vec = hn::Vec<Tag<T>>;
template <class T>
constexpr std::int64_t lanes = static_cast<std::int64_t>(hn::MaxLanes(Tag<T>{}));

// A strip of sums takes 6 x 4 of 32 registers, or 6 x 2 of 16.
constexpr int rows = strip_rows;
constexpr int vectors = HWY_MAX_BYTES == 64 || HWY_ARCH_ARM ? 4 : 2;
template <class T>
constexpr std::int64_t panel = vectors * lanes<T>;

// The sums of a strip stay in registers only if all their indices are constants.
#if defined(__clang__)
#define CAPE_UNROLL _Pragma("clang loop unroll(full)")
#else
#define CAPE_UNROLL _Pragma("GCC unroll 8")
#endif

template <class T, int N, int R = rows>
using Strip = Vec<T>[R][N];

template <int N, int R = rows, class T>
HWY_INLINE void load(Strip<T, N, R>& x, const T* from, std::int64_t stride) {
  const Tag<T> d;
  CAPE_UNROLL
  for (int r = 0; r < R; ++r) CAPE_UNROLL
  for (int n = 0; n < N; ++n) x[r][n] = hn::Load(d, from + r * stride + n * lanes<T>);
}

template <int N, int R = rows, class T>
HWY_INLINE void store(const Strip<T, N, R>& x, T* to, std::int64_t stride) {
  const Tag<T> d;
  CAPE_UNROLL
  for (int r = 0; r < R; ++r) CAPE_UNROLL
  for (int n = 0; n < N; ++n) hn::Store(x[r][n], d, to + r * stride + n * lanes<T>);
}

// Elements of a strip of k columns.
template <class T>
constexpr std::int64_t strip_size(std::int64_t k) {
  return rows * ((k + panel<T> - 1) / panel<T>)*panel<T>;
}

// sums += a b for one panel of the columns of a: 6 x k with rows `panel` apart, and b: k x N
// vectors with rows `stride` apart.
template <int N, class T>
HWY_INLINE void multiply(const T* HWY_RESTRICT a, const T* HWY_RESTRICT b, std::int64_t stride,
                         std::int64_t k, Strip<T, N>& sums) {
  const Tag<T> d;
  for (const T* end = a + k; a != end; ++a, b += stride) {
    Vec<T> row[N];
    CAPE_UNROLL
    for (int n = 0; n < N; ++n) row[n] = hn::Load(d, b + n * lanes<T>);
    CAPE_UNROLL
    for (int r = 0; r < rows; ++r) {
      const Vec<T> x = hn::Set(d, a[r * panel<T>]);
      CAPE_UNROLL
      for (int n = 0; n < N; ++n) sums[r][n] = hn::MulAdd(x, row[n], sums[r][n]);
    }
  }
}

// The same for all columns of a.
template <int N, class T>
HWY_INLINE void multiply_all(const T* a, const T* b, std::int64_t stride, std::int64_t k,
                             Strip<T, N>& sums) {
  for (std::int64_t first = 0; first < k; first += panel<T>, a += rows * panel<T>)
    multiply<N>(a, b + first * stride, stride, std::min(k - first, panel<T>), sums);
}

// Scores - top of a strip, of which one is above its limit, are in the weights of panel number p:
// raise the tops, and shrink what was weighted by the old ones.
template <class T>
HWY_NOINLINE void raise_tops(const QueryTile<T>& tile, std::int64_t s, T* weights, std::int64_t p) {
  constexpr T room = 8; // a weight is at most 2^8, and tops seldom rise
  const Tag<T> d;
  for (std::int64_t r = 0; r < rows; ++r) {
    T* scores = weights + (p * rows + r) * panel<T>;
    const std::int64_t i = s * rows + r;
    // (Highway's emulated MaxOfLanes() of -inf is not -inf.)
    const T rise = *std::max_element(scores, scores + panel<T>);
    if (!(rise > tile.limit[i])) continue;
    for (std::int64_t j = 0; j < panel<T>; j += lanes<T>)
      hn::Store(hn::Sub(hn::Load(d, scores + j), hn::Set(d, rise)), d, scores + j);
    tile.top[i] += rise;
    const bool first = tile.limit[i] < 0;
    tile.limit[i] = room;
    if (first) continue; // all weights are 0
    const Vec<T> factor = hn::Set(d, std::exp2(-rise));
    const auto shrink = [&](T* x, std::int64_t n) HWY_ATTR {
      for (std::int64_t j = 0; j < n; j += lanes<T>)
        hn::Store(hn::Mul(hn::Load(d, x + j), factor), d, x + j);
    };
    for (std::int64_t before = 0; before < p; ++before)
      shrink(weights + (before * rows + r) * panel<T>, panel<T>);
    shrink(tile.sum + i * lanes<T>, lanes<T>);
    shrink(tile.out + i * tile.width, tile.width);
  }
}

// The weights of a strip of queries and panel number p of a block. k: the panel's keys; offset:
// null, or what is to be added to the scores, a row being offset_stride behind the one before.
template <class T>
HWY_INLINE void weigh(const QueryTile<T>& tile, std::int64_t s, const T* q, const T* k, T* weights,
                      std::int64_t p, const T* offset, std::int64_t offset_stride) {
  const Tag<T> d;
  Strip<T, vectors> x;
  CAPE_UNROLL
  for (int r = 0; r < rows; ++r) CAPE_UNROLL
  for (int n = 0; n < vectors; ++n) x[r][n] = hn::Set(d, -tile.top[s * rows + r]);
  multiply_all<vectors>(q, k, panel<T>, tile.head_dim, x);
  if (offset != nullptr) CAPE_UNROLL
  for (int r = 0; r < rows; ++r) CAPE_UNROLL
  for (int n = 0; n < vectors; ++n)
    x[r][n] = hn::Add(x[r][n], hn::Load(d, offset + r * offset_stride + n * lanes<T>));

  T* to = weights + p * rows * panel<T>;
  const auto above_limit = [&](int r) HWY_ATTR {
    Vec<T> most = x[r][0];
    CAPE_UNROLL
    for (int n = 1; n < vectors; ++n) most = hn::Max(most, x[r][n]);
    return hn::Gt(most, hn::Set(d, tile.limit[s * rows + r]));
  };
  auto above = above_limit(0);
  CAPE_UNROLL
  for (int r = 1; r < rows; ++r) above = hn::Or(above, above_limit(r));
  if (HWY_UNLIKELY(!hn::AllFalse(d, above))) {
    store<vectors>(x, to, panel<T>);
    raise_tops(tile, s, weights, p);
    load<vectors>(x, to, panel<T>);
  }
  CAPE_UNROLL
  for (int r = 0; r < rows; ++r) {
    T* sum_at = tile.sum + (s * rows + r) * lanes<T>;
    Vec<T> sum = hn::Load(d, sum_at);
    CAPE_UNROLL
    for (int n = 0; n < vectors; ++n) {
      const Vec<T> weight = power_of_2(d, x[r][n]);
      hn::Store(weight, d, to + r * panel<T> + n * lanes<T>);
      sum = hn::Add(sum, weight);
    }
    hn::Store(sum, d, sum_at);
  }
}

// out += weights V for a strip and N vectors of columns.
template <int N, class T>
HWY_INLINE void add_values(const T* weights, const T* v, std::int64_t keys, T* out,
                           std::int64_t width) {
  Strip<T, N> x;
  load<N>(x, out, width);
  multiply_all<N>(weights, v, N * lanes<T>, keys, x);
  store<N>(x, out, width);
}

// f(number of vectors as a constant, first column) for the panels of `width` columns.
template <class T, class F>
HWY_INLINE void for_panels(std::int64_t width, F f) {
  for (std::int64_t c = 0; c < width; c += panel<T>) {
    const std::int64_t n = std::min(width - c, panel<T>) / lanes<T>;
    if constexpr (vectors == 4) {
      if (n == 4) f(std::integral_constant<int, 4>(), c);
      if (n == 3) f(std::integral_constant<int, 3>(), c);
    }
    if (n == 2) f(std::integral_constant<int, 2>(), c);
    if (n == 1) f(std::integral_constant<int, 1>(), c);
  }
}

// Rows first .. of a panel of columns (see GradientTile::q_rows) that starts at column c.
template <int N, class T>
HWY_INLINE const T* panel_rows(const T* x, std::int64_t rows_of_x, std::int64_t first,
                               std::int64_t c) {
  return x + c * rows_of_x + first * N * lanes<T>;
}

template <class T>
HWY_INLINE void Attend(const QueryTile<T>& tile, const KeyBlock<T>& block) {
  const std::int64_t q_strip = strip_size<T>(tile.head_dim);
  const std::int64_t keys = block.panels * panel<T>, w_strip = strip_size<T>(keys);
  for (std::int64_t p = 0; p < block.panels; ++p) {
    const T* k = block.k + (block.first + p * panel<T>)*tile.head_dim;
    const T* padding = p + 1 == block.panels ? block.padding : nullptr;
    for (std::int64_t s = 0; s < tile.strips; ++s) {
      T* weights = tile.weights + s * w_strip;
      if (block.biased)
        weigh(tile, s, tile.q + s * q_strip, k, weights, p, weights + p * rows * panel<T>,
              panel<T>);
      else
        weigh(tile, s, tile.q + s * q_strip, k, weights, p, padding, 0);
    }
  }
  for_panels<T>(tile.width, [&](auto vectors_of_panel, std::int64_t c) HWY_ATTR {
    constexpr int N = vectors_of_panel;
    const T* v = panel_rows<N>(block.v, block.keys, block.first, c);
    for (std::int64_t s = 0; s < tile.strips; ++s)
      add_values<N>(tile.weights + s * w_strip, v, keys, tile.out + s * rows * tile.width + c,
                    tile.width);
  });
}

template <class T>
HWY_INLINE void Finish(const QueryTile<T>& tile) {
  const Tag<T> d;
  for (std::int64_t i = 0; i < tile.strips * rows; ++i) {
    T* parts = tile.sum + i * lanes<T>;
    *parts = hn::GetLane(hn::SumOfLanes(d, hn::Load(d, parts)));
    const Vec<T> inverse = hn::Set(d, *parts > 0 ? 1 / *parts : T(0));
    T* out = tile.out + i * tile.width;
    for (std::int64_t c = 0; c < tile.width; c += lanes<T>)
      hn::Store(hn::Mul(hn::Load(d, out + c), inverse), d, out + c);
  }
}

// The weights of a strip of keys for a panel of queries, and the gradients of the scores.
template <class T>
HWY_INLINE void weigh_again(const GradientTile<T>& t, std::int64_t s, std::int64_t p) {
  const Tag<T> d;
  const std::int64_t query = t.first_query + p * panel<T>, strip = strip_size<T>(t.head_dim);
  const std::int64_t key_strip = t.first_key / rows + s;
  const std::int64_t place = (s * t.panels + p) * rows * panel<T>;
  T* weights = t.weights + place;
  Strip<T, vectors> x;
  CAPE_UNROLL
  for (int r = 0; r < rows; ++r) CAPE_UNROLL
  for (int n = 0; n < vectors; ++n)
    x[r][n] = hn::Sub(hn::Set(d, t.padding[t.first_key + s * rows + r]),
                      hn::Load(d, t.log_sum + query + n * lanes<T>));
  multiply_all<vectors>(t.k + key_strip * strip, t.q + query * t.head_dim, panel<T>, t.head_dim, x);
  if (t.biased) CAPE_UNROLL
  for (int r = 0; r < rows; ++r) CAPE_UNROLL
  for (int n = 0; n < vectors; ++n)
    x[r][n] = hn::Add(x[r][n], hn::Load(d, weights + r * panel<T> + n * lanes<T>));
  CAPE_UNROLL
  for (int n = 0; n < vectors; ++n) {
    T* sum_at = t.sum + query + n * lanes<T>;
    Vec<T> sum = hn::Load(d, sum_at);
    CAPE_UNROLL
    for (int r = 0; r < rows; ++r) {
      // No weight is above 1 but for rounding, unless log_sum is of another input.
      const Vec<T> weight = power_of_2(d, hn::Min(x[r][n], hn::Set(d, T(100))));
      hn::Store(weight, d, weights + r * panel<T> + n * lanes<T>);
      sum = hn::Add(sum, weight);
    }
    hn::Store(sum, d, sum_at);
  }
  if (t.d_scores == nullptr) return;

  CAPE_UNROLL
  for (int r = 0; r < rows; ++r) CAPE_UNROLL
  for (int n = 0; n < vectors; ++n)
    x[r][n] = hn::Neg(hn::Load(d, t.correction + query + n * lanes<T>));
  multiply_all<vectors>(t.v + key_strip * strip, t.d_out + query * t.head_dim, panel<T>, t.head_dim,
                        x);
  CAPE_UNROLL
  for (int r = 0; r < rows; ++r) CAPE_UNROLL
  for (int n = 0; n < vectors; ++n) {
    const std::int64_t at = r * panel<T> + n * lanes<T>;
    hn::Store(hn::Mul(x[r][n], hn::Load(d, weights + at)), d, t.d_scores + place + at);
  }
}

// sums(keys) += x rows, where x is in strips of the queries of the block.
template <class T>
HWY_INLINE void add_to_keys(const GradientTile<T>& t, const T* x, const T* q_rows, T* sums) {
  const std::int64_t queries = t.panels * panel<T>;
  for_panels<T>(t.width, [&](auto vectors_of_panel, std::int64_t c) HWY_ATTR {
    constexpr int N = vectors_of_panel;
    for (std::int64_t s = 0; s < t.strips; ++s)
      add_values<N>(x + s * rows * queries, panel_rows<N>(q_rows, t.queries, t.first_query, c),
                    queries, sums + (t.first_key + s * rows) * t.width + c, t.width);
  });
}

// d_q += d_scores' k for R queries of a panel and N vectors of columns. d_scores: of the first key
// and query; k_rows: of the first key.
template <int R, int N, class T>
HWY_INLINE void add_to_queries(const GradientTile<T>& t, const T* d_scores, const T* k_rows,
                               T* d_q) {
  const Tag<T> d;
  Strip<T, N, R> x;
  load<N, R>(x, d_q, t.width);
  for (std::int64_t s = 0; s < t.strips; ++s, d_scores += t.panels * rows * panel<T>)
    for (const T *a = d_scores, *end = a + rows * panel<T>; a != end; a += panel<T>) {
      Vec<T> row[N];
      CAPE_UNROLL
      for (int n = 0; n < N; ++n) row[n] = hn::Load(d, k_rows + n * lanes<T>);
      CAPE_UNROLL
      for (int r = 0; r < R; ++r) {
        const Vec<T> factor = hn::Set(d, a[r]);
        CAPE_UNROLL
        for (int n = 0; n < N; ++n) x[r][n] = hn::MulAdd(factor, row[n], x[r][n]);
      }
      k_rows += N * lanes<T>;
    }
  store<N, R>(x, d_q, t.width);
}

template <class T>
HWY_INLINE void AddGradients(const GradientTile<T>& t) {
  for (std::int64_t p = 0; p < t.panels; ++p)
    for (std::int64_t s = 0; s < t.strips; ++s) weigh_again(t, s, p);
  if (t.d_v != nullptr) add_to_keys(t, t.weights, t.d_out_rows, t.d_v);
  if (t.d_k != nullptr) add_to_keys(t, t.d_scores, t.q_rows, t.d_k);
  if (t.d_q == nullptr) return;
  constexpr int rest = panel<T> % rows;
  for_panels<T>(t.width, [&](auto vectors_of_panel, std::int64_t c) HWY_ATTR {
    constexpr int N = vectors_of_panel;
    const T* k_rows = panel_rows<N>(t.k_rows, t.keys, t.first_key, c);
    for (std::int64_t p = 0; p < t.panels; ++p) {
      const T* d_scores = t.d_scores + p * rows * panel<T>;
      T* d_q = t.d_q + (t.first_query + p * panel<T>)*t.width + c;
      std::int64_t i = 0;
      for (; i + rows <= panel<T>; i += rows)
        add_to_queries<rows, N>(t, d_scores + i, k_rows, d_q + i * t.width);
      add_to_queries<rest, N>(t, d_scores + i, k_rows, d_q + i * t.width);
    }
  });
}

template <class T>
HWY_INLINE void Turn(const T* from, const T* cosine, const T* sine, T cosine_factor, T sine_factor,
                     std::int64_t n, T* to) {
  const Tag<T> d;
  const Vec<T> c_factor = hn::Set(d, cosine_factor), s_factor = hn::Set(d, sine_factor);
  std::int64_t t = 0;
  for (; t + lanes<T> <= n; t += lanes<T>) {
    const Vec<T> c = hn::Mul(c_factor, hn::LoadU(d, cosine + t));
    const Vec<T> s = hn::Mul(s_factor, hn::LoadU(d, sine + t));
    Vec<T> x, y;
    hn::LoadInterleaved2(d, from + 2 * t, x, y);
    hn::StoreInterleaved2(hn::NegMulAdd(s, y, hn::Mul(c, x)), hn::MulAdd(s, x, hn::Mul(c, y)), d,
                          to + 2 * t);
  }
  for (; t < n; ++t) {
    const T c = cosine_factor * cosine[t], s = sine_factor * sine[t];
    const T x = from[2 * t], y = from[2 * t + 1];
    to[2 * t] = c * x - s * y;
    to[2 * t + 1] = s * x + c * y;
  }
}

// Four rows (floats) or two (doubles) of 128 bits at a time.
HWY_INLINE void transpose_square(const float* from, std::int64_t from_stride, float* to,
                                 std::int64_t to_stride) {
  const hn::Full128<float> d;
  const hn::Full128<double> wide;
  const auto a = hn::LoadU(d, from), b = hn::LoadU(d, from + from_stride);
  const auto c = hn::LoadU(d, from + 2 * from_stride), e = hn::LoadU(d, from + 3 * from_stride);
  const auto pairs = [&](auto x) HWY_ATTR { return hn::BitCast(wide, x); };
  const auto ab0 = pairs(hn::InterleaveLower(d, a, b)), ab1 = pairs(hn::InterleaveUpper(d, a, b));
  const auto ce0 = pairs(hn::InterleaveLower(d, c, e)), ce1 = pairs(hn::InterleaveUpper(d, c, e));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(wide, ab0, ce0)), d, to);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(wide, ab0, ce0)), d, to + to_stride);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(wide, ab1, ce1)), d, to + 2 * to_stride);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(wide, ab1, ce1)), d, to + 3 * to_stride);
}
HWY_INLINE void transpose_square(const double* from, std::int64_t from_stride, double* to,
                                 std::int64_t to_stride) {
  const hn::Full128<double> d;
  const auto a = hn::LoadU(d, from), b = hn::LoadU(d, from + from_stride);
  hn::StoreU(hn::InterleaveLower(d, a, b), d, to);
  hn::StoreU(hn::InterleaveUpper(d, a, b), d, to + to_stride);
}

template <class T>
HWY_INLINE void Transpose(const T* from, std::int64_t from_stride, std::int64_t n_rows,
                          std::int64_t columns, T* to, std::int64_t to_stride) {
  constexpr std::int64_t square = 16 / sizeof(T);
  const std::int64_t whole_rows = n_rows - n_rows % square, whole = columns - columns % square;
  for (std::int64_t c = 0; c < whole; c += square)
    for (std::int64_t r = 0; r < whole_rows; r += square)
      transpose_square(from + r * from_stride + c, from_stride, to + c * to_stride + r, to_stride);
  for (std::int64_t c = 0; c < columns; ++c)
    for (std::int64_t r = c < whole ? whole_rows : 0; r < n_rows; ++r)
      to[c * to_stride + r] = from[r * from_stride + c];
}

template <class T>
HWY_INLINE void Score(const QueryTile<T>& tile, const KeyBlock<T>& block) {
  const Tag<T> d;
  const std::int64_t q_strip = strip_size<T>(tile.head_dim);
  for (std::int64_t p = 0; p < block.panels; ++p)
    for (std::int64_t s = 0; s < tile.strips; ++s) {
      Strip<T, vectors> x;
      CAPE_UNROLL
      for (int r = 0; r < rows; ++r) CAPE_UNROLL
      for (int n = 0; n < vectors; ++n) x[r][n] = hn::Zero(d);
      multiply_all<vectors>(tile.q + s * q_strip,
                            block.k + (block.first + p * panel<T>)*tile.head_dim, panel<T>,
                            tile.head_dim, x);
      store(x, tile.weights + (s * block.panels + p) * rows * panel<T>, panel<T>);
    }
}

Columns ColumnsF64() { return {lanes<double>, panel<double>}; }
Columns ColumnsF32() { return {lanes<float>, panel<float>}; }
void AttendF64(const QueryTile<double>& tile, const KeyBlock<double>& block) {
  Attend(tile, block);
}
void AttendF32(const QueryTile<float>& tile, const KeyBlock<float>& block) { Attend(tile, block); }
void ScoreF64(const QueryTile<double>& tile, const KeyBlock<double>& block) { Score(tile, block); }
void ScoreF32(const QueryTile<float>& tile, const KeyBlock<float>& block) { Score(tile, block); }
void FinishF64(const QueryTile<double>& tile) { Finish(tile); }
void FinishF32(const QueryTile<float>& tile) { Finish(tile); }
void AddGradientsF64(const GradientTile<double>& tile) { AddGradients(tile); }
void AddGradientsF32(const GradientTile<float>& tile) { AddGradients(tile); }
void TurnF64(const double* from, const double* cosine, const double* sine, double cosine_factor,
             double sine_factor, std::int64_t n, double* to) {
  Turn(from, cosine, sine, cosine_factor, sine_factor, n, to);
}
void TurnF32(const float* from, const float* cosine, const float* sine, float cosine_factor,
             float sine_factor, std::int64_t n, float* to) {
  Turn(from, cosine, sine, cosine_factor, sine_factor, n, to);
}
void TransposeF64(const double* from, std::int64_t from_stride, std::int64_t n_rows,
                  std::int64_t columns, double* to, std::int64_t to_stride) {
  Transpose(from, from_stride, n_rows, columns, to, to_stride);
}
void TransposeF32(const float* from, std::int64_t from_stride, std::int64_t n_rows,
                  std::int64_t columns, float* to, std::int64_t to_stride) {
  Transpose(from, from_stride, n_rows, columns, to, to_stride);
}

} // namespace HWY_NAMESPACE
} // namespace cape::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cape::simd {

HWY_EXPORT(ColumnsF64);
HWY_EXPORT(ColumnsF32);
HWY_EXPORT(AttendF64);
HWY_EXPORT(AttendF32);
HWY_EXPORT(ScoreF64);
HWY_EXPORT(ScoreF32);
HWY_EXPORT(FinishF64);
HWY_EXPORT(FinishF32);
HWY_EXPORT(AddGradientsF64);
HWY_EXPORT(AddGradientsF32);
HWY_EXPORT(TurnF64);
HWY_EXPORT(TurnF32);
HWY_EXPORT(TransposeF64);
HWY_EXPORT(TransposeF32);

template <>
Columns attention_columns<double>() {
  return HWY_DYNAMIC_DISPATCH(ColumnsF64)();
}
template <>
Columns attention_columns<float>() {
  return HWY_DYNAMIC_DISPATCH(ColumnsF32)();
}
void attend(const QueryTile<double>& tile, const KeyBlock<double>& block) {
  HWY_DYNAMIC_DISPATCH(AttendF64)(tile, block);
}
void attend(const QueryTile<float>& tile, const KeyBlock<float>& block) {
  HWY_DYNAMIC_DISPATCH(AttendF32)(tile, block);
}
void score(const QueryTile<double>& tile, const KeyBlock<double>& block) {
  HWY_DYNAMIC_DISPATCH(ScoreF64)(tile, block);
}
void score(const QueryTile<float>& tile, const KeyBlock<float>& block) {
  HWY_DYNAMIC_DISPATCH(ScoreF32)(tile, block);
}
void finish(const QueryTile<double>& tile) { HWY_DYNAMIC_DISPATCH(FinishF64)(tile); }
void finish(const QueryTile<float>& tile) { HWY_DYNAMIC_DISPATCH(FinishF32)(tile); }
void add_gradients(const GradientTile<double>& tile) {
  HWY_DYNAMIC_DISPATCH(AddGradientsF64)(tile);
}
void add_gradients(const GradientTile<float>& tile) { HWY_DYNAMIC_DISPATCH(AddGradientsF32)(tile); }
void turn(const double* from, const double* cosine, const double* sine, double cosine_factor,
          double sine_factor, std::int64_t n, double* to) {
  HWY_DYNAMIC_DISPATCH(TurnF64)(from, cosine, sine, cosine_factor, sine_factor, n, to);
}
void turn(const float* from, const float* cosine, const float* sine, float cosine_factor,
          float sine_factor, std::int64_t n, float* to) {
  HWY_DYNAMIC_DISPATCH(TurnF32)(from, cosine, sine, cosine_factor, sine_factor, n, to);
}
void transpose(const double* from, std::int64_t from_stride, std::int64_t rows,
               std::int64_t columns, double* to, std::int64_t to_stride) {
  HWY_DYNAMIC_DISPATCH(TransposeF64)(from, from_stride, rows, columns, to, to_stride);
}
void transpose(const float* from, std::int64_t from_stride, std::int64_t rows, std::int64_t columns,
               float* to, std::int64_t to_stride) {
  HWY_DYNAMIC_DISPATCH(TransposeF32)(from, from_stride, rows, columns, to, to_stride);
}

} // namespace cape::simd
#endif
