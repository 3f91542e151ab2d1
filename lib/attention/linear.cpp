// Linear attention by positive orthogonal random features. All sums over keys are products of small
// matrices: with F the features x keys matrix of turned features, N = F V' and z the row sums of
// the unturned ones, a query with the features f and turned features u gives N'u / z'f.
module;
#include "attention/kernels/attention.hpp"
#include "internal/arma.hpp"
#include "internal/message.hpp"
#include "internal/sizes.hpp"
#include "simd/aligned.hpp"
#include "simd/vector_math.hpp"
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <typeinfo>
#include <unistd.h>
#include <utility>
#include <vector>
module cape.attention;
#include "attention/checks.hpp"
#include "attention/heads.hpp"
#include "attention/rotation.hpp"

namespace cape {

template <class T>
std::vector<T> attention_directions(std::int64_t features, std::int64_t head_dim,
                                    std::uint64_t draw, Run& run) {
  check_at_least(features, 1, "features");
  check_at_least(head_dim, 1, "head_dim");
  const std::int64_t size = checked_size(features, head_dim, "features x head_dim");
  check_memory(sizeof(T) * static_cast<double>(size) +
                   24 * static_cast<double>(head_dim) * static_cast<double>(head_dim),
               message(features, " directions of ", head_dim, " elements"));
  std::vector<T> directions(static_cast<std::size_t>(size));
  const auto d = static_cast<arma::uword>(head_dim);
  for (std::int64_t first = 0; first < features; first += head_dim) {
    Rng rng(run.seed(), {hash("attention.directions"), draw, static_cast<std::uint64_t>(first)});
    arma::mat gaussian(d, d), q, r;
    gaussian.imbue([&] { return rng.normal(); });
    arma::qr_econ(q, r, gaussian);
    for (std::int64_t i = first; i < std::min(features, first + head_dim); ++i) {
      const auto column = static_cast<arma::uword>(i - first);
      double square = 0;
      for (std::int64_t c = 0; c < head_dim; ++c) square += std::pow(rng.normal(), 2);
      // The sign that makes the orthogonal matrix uniform.
      const double length = std::copysign(std::sqrt(square), r(column, column));
      for (std::int64_t c = 0; c < head_dim; ++c)
        directions[static_cast<std::size_t>(i * head_dim + c)] =
            static_cast<T>(length * q(static_cast<arma::uword>(c), column));
    }
    run.poll();
  }
  return directions;
}

namespace {

constexpr std::int64_t tile_rows = 128;

template <class T>
struct LinearCall {
  LinearCall(const AttentionInput<T>& input, std::int64_t n_features, const T* directions, Run& r)
      : in(input), run(r), features(n_features), root(std::sqrt(scale_of(input))),
        weights(arma::Mat<T>(const_cast<T*>(directions), static_cast<arma::uword>(in.head_dim),
                             static_cast<arma::uword>(features), false, true)
                    .t() *
                log2_e<T>),
        turn_q(input, input.q_angles, input.q_length, r),
        turn_k(input, input.k_angles, input.k_length, r) {}

  const AttentionInput<T>& in;
  Run& run;
  std::int64_t features;
  T root;               // of the scale
  arma::Mat<T> weights; // features x head_dim, for powers of 2
  Rotation<T> turn_q, turn_k;
};

// Some queries or keys of a head, a column each.
template <class T>
struct Tile {
  std::vector<std::int64_t> rows;
  arma::Mat<T> x;      // head_dim x rows: sqrt(scale) q or k
  arma::Mat<T> f;      // features x rows, at first their logarithms of base 2
  arma::Mat<T> paired; // the same features, with another factor: see KeySums
  arma::Mat<T> turned; // R(phi) paired
};

template <class T>
Tile<T> load_tile(const LinearCall<T>& call, const Tensor<const T>& x, std::int64_t b,
                  std::int64_t h, const std::int64_t* rows, std::int64_t n) {
  Tile<T> tile;
  tile.rows.assign(rows, rows + n);
  tile.x.set_size(static_cast<arma::uword>(x.head_dim), static_cast<arma::uword>(n));
  for (std::int64_t j = 0; j < n; ++j) {
    const T* from = x.row(b, rows[j], h);
    std::transform(from, from + x.head_dim, tile.x.colptr(static_cast<arma::uword>(j)),
                   [&](T value) { return call.root * value; });
  }
  call.run.poll();
  tile.f = call.weights * tile.x;
  call.run.poll();
  tile.f.each_row() -= log2_e<T> / 2 * arma::sum(arma::square(tile.x), 0);
  return tile;
}

// to = R(direction phi) from, a column of features for each row of the tile.
template <class T>
void turn_features(const LinearCall<T>& call, const Rotation<T>& rotation, const Tile<T>& tile,
                   std::int64_t h, T direction, const arma::Mat<T>& from, arma::Mat<T>& to) {
  to.set_size(arma::size(from));
  const std::int64_t block = call.in.head_dim;
  for (std::size_t j = 0; j < tile.rows.size(); ++j)
    for (std::int64_t t = 0; t < call.features; t += block)
      rotation.turn_first(std::min(block, call.features - t), tile.rows[j], h, direction, T(1),
                          from.colptr(j) + t, to.colptr(j) + t);
}

// Logarithms become features, and the paired ones are turned.
template <class T>
void finish_features(const LinearCall<T>& call, const Rotation<T>& rotation, std::int64_t h,
                     Tile<T>& tile) {
  for (arma::Mat<T>* x : {&tile.f, &tile.paired}) {
    call.run.poll();
    simd::exp2(x->memptr(), x->memptr(), static_cast<std::int64_t>(x->n_elem));
  }
  call.run.poll();
  turn_features(call, rotation, tile, h, T(1), tile.paired, tile.turned);
}

// x times 2^from / 2^to, a factor for every row; those that are minus infinity belong to zeros.
template <class T>
void change_factor(arma::Mat<T>& x, const arma::Col<T>& from, const arma::Col<T>& to) {
  arma::Col<T> shrink = from - to;
  shrink.replace(arma::datum::nan, T(0)); // both minus infinity: nothing is summed yet
  simd::exp2(shrink.memptr(), shrink.memptr(), static_cast<std::int64_t>(shrink.n_elem));
  x.each_col() %= shrink;
}

// The sums over the keys of a head. So that none underflows, features are divided by 2^top, where
// top is the largest logarithm of the feature among the keys: no z is below 1. Where pairs are
// turned together, both need the same factor, 2^pair_top of the larger; a z of that factor could
// vanish. The factors are taken back in the features of the queries.
template <class T>
struct KeySums {
  KeySums(const LinearCall<T>& call)
      : top(static_cast<arma::uword>(call.features)), pair_top(top.n_elem),
        z(top.n_elem, 1, arma::fill::zeros),
        n(top.n_elem, static_cast<arma::uword>(call.in.head_dim), arma::fill::zeros) {
    top.fill(-std::numeric_limits<T>::infinity());
    pair_top = top;
  }

  void raise(const LinearCall<T>& call, const arma::Col<T>& higher) {
    arma::Col<T> pair_higher = higher;
    for (arma::uword t = 0; has_angles(call.in) && t + 1 < higher.n_elem; t += 2)
      pair_higher[t] = pair_higher[t + 1] = std::max(higher[t], higher[t + 1]);
    change_factor(z, top, higher);
    change_factor(n, pair_top, pair_higher);
    top = higher;
    pair_top = pair_higher;
  }
  void add(const LinearCall<T>& call, KeySums& other) {
    const arma::Col<T> higher = arma::max(top, other.top);
    raise(call, higher);
    other.raise(call, higher);
    z += other.z;
    n += other.n;
  }

  arma::Col<T> top, pair_top; // features
  arma::Mat<T> z;             // features x 1
  arma::Mat<T> n;             // features x head_dim
};

template <class T>
std::vector<KeySums<T>> sums_of_parts(const LinearCall<T>& call, std::int64_t parts) {
  std::vector<KeySums<T>> sums;
  for (std::int64_t part = 0; part < parts; ++part) {
    call.run.poll();
    sums.emplace_back(call);
  }
  return sums;
}

template <class T>
void divide_key_features(const KeySums<T>& sums, Tile<T>& tile) {
  tile.paired = tile.f.each_col() - sums.pair_top;
  tile.f.each_col() -= sums.top;
}

// body(part, first, rows) for the tiles of `rows` in each of `parts` parts; each of these is a
// task.
template <class T, class F>
void for_tiles(const LinearCall<T>& call, std::int64_t parts, const std::vector<std::int64_t>& rows,
               F body) {
  const std::int64_t length = std::ssize(rows), share = ceil_div(length, parts);
  call.run.parallel_for(parts, [&](std::int64_t part) {
    const std::int64_t end = std::min(length, (part + 1) * share);
    for (std::int64_t first = part * share; first < end; first += tile_rows) {
      call.run.poll();
      body(static_cast<std::size_t>(part), rows.data() + first, std::min(tile_rows, end - first));
    }
  });
}

template <class T>
arma::Mat<T> columns(const Tensor<const T>& x, std::int64_t b, std::int64_t h,
                     const std::vector<std::int64_t>& rows) {
  arma::Mat<T> tile(static_cast<arma::uword>(x.head_dim), rows.size());
  for (std::size_t j = 0; j < rows.size(); ++j)
    std::copy_n(x.row(b, rows[j], h), x.head_dim, tile.colptr(j));
  return tile;
}

template <class T>
KeySums<T> sum_keys(const LinearCall<T>& call, std::int64_t b, std::int64_t h,
                    const std::vector<std::int64_t>& rows) {
  const AttentionInput<T>& in = call.in;
  const std::int64_t parts = parts_of_head(in, in.k_length);
  std::vector<KeySums<T>> sums = sums_of_parts(call, parts);
  for_tiles(call, parts, rows, [&](std::size_t part, const std::int64_t* some, std::int64_t count) {
    Tile<T> tile = load_tile(call, k_of(in), b, h, some, count);
    KeySums<T>& sum = sums[part];
    sum.raise(call, arma::max(sum.top, arma::Col<T>(arma::max(tile.f, 1))));
    divide_key_features(sum, tile);
    finish_features(call, call.turn_k, h, tile);
    call.run.poll();
    sum.z += arma::sum(tile.f, 1);
    sum.n += tile.turned * columns(v_of(in), b, h, tile.rows).t();
  });
  for (std::size_t part = 1; part < sums.size(); ++part) {
    call.run.poll();
    sums[0].add(call, sums[part]);
  }
  return sums[0];
}

// Queries with their features, the largest of a row being 1 in either form but for the factors of
// the keys. The paired ones lack a factor `larger` of each row, at least 1, and 1 without angles.
template <class T>
struct Queries {
  Tile<T> tile;
  arma::Row<T> larger;
};

template <class T>
Queries<T> query_tile(const LinearCall<T>& call, std::int64_t b, std::int64_t h,
                      const KeySums<T>& keys, const std::int64_t* rows, std::int64_t n) {
  Queries<T> out{load_tile(call, q_of(call.in), b, h, rows, n), {}};
  Tile<T>& tile = out.tile;
  tile.paired = tile.f.each_col() + keys.pair_top;
  tile.f.each_col() += keys.top;
  const arma::Row<T> top = arma::max(tile.f, 0), pair_top = arma::max(tile.paired, 0);
  tile.f.each_row() -= top;
  tile.paired.each_row() -= pair_top;
  out.larger = pair_top - top;
  simd::exp2(out.larger.memptr(), out.larger.memptr(), n);
  finish_features(call, call.turn_q, h, tile);
  return out;
}

// The outputs of some queries, and the sums of weights that they were divided by.
template <class T>
struct Means {
  arma::Mat<T> means; // head_dim x rows
  arma::Row<T> weights;
};

template <class T>
Means<T> means_of(const Queries<T>& queries, const KeySums<T>& sums) {
  Means<T> out{sums.n.t() * queries.tile.turned, sums.z.t() * queries.tile.f};
  out.means.each_row() /= out.weights;
  out.means.each_row() %= queries.larger;
  return out;
}

std::vector<std::int64_t> all_rows(std::int64_t n) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) rows[static_cast<std::size_t>(i)] = i;
  return rows;
}

template <class T>
void head_forward(const LinearCall<T>& call, std::int64_t b, std::int64_t h, T* out) {
  const AttentionInput<T>& in = call.in;
  const std::vector<std::int64_t> rows = key_rows(in, b);
  if (rows.empty()) {
    for (std::int64_t i = 0; i < in.q_length; ++i)
      std::fill_n(outputs(in, out).row(b, i, h), in.head_dim, T(0));
    return;
  }
  const KeySums<T> sums = sum_keys(call, b, h, rows);
  for_tiles(call, parts_of_head(in, in.q_length), all_rows(in.q_length),
            [&](std::size_t, const std::int64_t* some, std::int64_t count) {
              const arma::Mat<T> means =
                  means_of(query_tile(call, b, h, sums, some, count), sums).means;
              for (std::int64_t i = 0; i < count; ++i)
                std::copy_n(means.colptr(static_cast<arma::uword>(i)), in.head_dim,
                            outputs(in, out).row(b, some[i], h));
            });
}

// ------------------------------------------------------------------------------------- gradients

// The gradients of a tile's x and angles, given those of its turned features and, as far as they do
// not come through the turn, of its features. d_angles: head_dim/2 for each row of the head, or
// null.
template <class T>
arma::Mat<T> tile_gradient(const LinearCall<T>& call, const Rotation<T>& rotation, std::int64_t h,
                           const Tile<T>& tile, const arma::Mat<T>& d_turned, arma::Mat<T> d_f,
                           T* d_angles) {
  const std::int64_t pairs = call.in.head_dim / 2;
  if (d_angles != nullptr)
    for (std::size_t j = 0; j < tile.rows.size(); ++j) {
      const T *u = tile.turned.colptr(j), *d_u = d_turned.colptr(j);
      T* sum = d_angles + tile.rows[j] * pairs;
      for (std::int64_t t = 0; t < call.features / 2; ++t)
        sum[t % pairs] += u[2 * t] * d_u[2 * t + 1] - u[2 * t + 1] * d_u[2 * t];
    }
  arma::Mat<T> back;
  call.run.poll();
  turn_features(call, rotation, tile, h, T(-1), d_turned, back);
  d_f = d_f % tile.f + back % tile.paired; // of the exponents
  arma::Mat<T> d_x = call.weights.t() * d_f * ln_2<T>;
  d_x -= tile.x.each_row() % arma::sum(d_f, 0);
  return d_x * call.root;
}

template <class T>
void put_tile(const arma::Mat<T>& x, const Tensor<T>& to, std::int64_t b, std::int64_t h,
              const std::vector<std::int64_t>& rows) {
  for (std::size_t j = 0; j < rows.size(); ++j)
    std::copy_n(x.colptr(j), to.head_dim, to.row(b, rows[j], h));
}

// d_q_angles, d_k_angles: length x head_dim/2 zeros, or null.
template <class T>
void head_backward(const LinearCall<T>& call, std::int64_t b, std::int64_t h, const T* d_out,
                   const AttentionGradient<T>& gradient, T* d_q_angles, T* d_k_angles) {
  const AttentionInput<T>& in = call.in;
  const std::vector<std::int64_t> rows = key_rows(in, b);
  if (rows.empty()) return;
  const KeySums<T> sums = sum_keys(call, b, h, rows);

  const std::int64_t parts = parts_of_head(in, in.q_length);
  std::vector<KeySums<T>> part_gradients = sums_of_parts(call, parts);
  for_tiles(call, parts, all_rows(in.q_length),
            [&](std::size_t part, const std::int64_t* some, std::int64_t count) {
              const Queries<T> queries_of_tile = query_tile(call, b, h, sums, some, count);
              const Tile<T>& tile = queries_of_tile.tile;
              const auto [means, weights] = means_of(queries_of_tile, sums);
              arma::Mat<T> d_sums = columns(outputs(in, d_out), b, h, tile.rows);
              d_sums.each_row() /= weights;
              const arma::Row<T> d_weights = -arma::sum(d_sums % means, 0);
              d_sums.each_row() %= queries_of_tile.larger;
              part_gradients[part].n += tile.turned * d_sums.t();
              part_gradients[part].z += tile.f * d_weights.t();
              if (gradient.q != nullptr)
                put_tile(tile_gradient<T>(call, call.turn_q, h, tile, sums.n * d_sums,
                                          sums.z * d_weights, d_q_angles),
                         queries(in, gradient.q), b, h, tile.rows);
            });
  for (std::size_t part = 1; part < part_gradients.size(); ++part) {
    call.run.poll();
    part_gradients[0].n += part_gradients[part].n;
    part_gradients[0].z += part_gradients[part].z;
  }

  const KeySums<T>& d_sums = part_gradients[0];
  for_tiles(call, parts_of_head(in, in.k_length), rows,
            [&](std::size_t, const std::int64_t* some, std::int64_t count) {
              Tile<T> tile = load_tile(call, k_of(in), b, h, some, count);
              divide_key_features(sums, tile);
              finish_features(call, call.turn_k, h, tile);
              if (gradient.v != nullptr)
                put_tile<T>(d_sums.n.t() * tile.turned, keys(in, gradient.v), b, h, tile.rows);
              if (gradient.k == nullptr) return;
              const arma::Mat<T> values = columns(v_of(in), b, h, tile.rows);
              arma::Mat<T> d_f(arma::size(tile.f));
              d_f.each_col() = d_sums.z.col(0);
              put_tile(
                  tile_gradient<T>(call, call.turn_k, h, tile, d_sums.n * values, d_f, d_k_angles),
                  keys(in, gradient.k), b, h, tile.rows);
            });
}

template <class T>
void check_call(const AttentionInput<T>& in, std::int64_t features, const T* directions) {
  check_linear(in, features, directions, [&] {
    const auto numbers = static_cast<double>(features);
    const std::int64_t parts = parts_of_head(in, std::max(in.q_length, in.k_length));
    const double sums =
        2 * static_cast<double>(parts) * numbers * static_cast<double>(in.head_dim + 3);
    const double tile =
        8 * static_cast<double>(tile_rows) * (numbers + static_cast<double>(in.head_dim));
    return sizeof(T) * (numbers * static_cast<double>(in.head_dim) + sums + tile);
  });
}

// The sum over batch and heads of parts (batch x heads x length x pairs), head h going to the
// columns of its own if the angles are not shared.
template <class T>
void sum_angle_gradients(const AttentionInput<T>& in, std::int64_t length,
                         const std::vector<T>& parts, T* d_angles) {
  const std::int64_t pairs = in.head_dim / 2, columns = in.angle_heads * pairs;
  std::fill_n(d_angles, length * columns, T(0));
  for (std::int64_t bh = 0; bh < in.batch * in.heads; ++bh)
    for (std::int64_t i = 0; i < length; ++i) {
      T* row = d_angles + i * columns + (in.angle_heads == 1 ? 0 : bh % in.heads) * pairs;
      const T* part = parts.data() + (bh * length + i) * pairs;
      std::transform(row, row + pairs, part, row, std::plus<>());
    }
}

} // namespace

template <class T>
void linear_attention_forward(const AttentionInput<T>& in, std::int64_t features,
                              const T* directions, T* out, Run& run) {
  check_call(in, features, directions);
  const std::int64_t size = q_size(in);
  check_pointer(out, size, "out");
  if (size == 0) return;
  const LinearCall<T> call(in, features, directions, run);
  for_heads(in, run,
            [&] { return [&](std::int64_t b, std::int64_t h) { head_forward(call, b, h, out); }; });
  const Tensor<const T> result = outputs<T, const T>(in, out);
  for (std::int64_t i = 0; i < in.batch * in.q_length; ++i)
    if (std::isinf(simd::max_abs(result.data + i * result.stride, in.heads * in.head_dim)))
      throw Error(Status::invalid_argument,
                  message("out overflows in row ", i,
                          " (counted from 0): the values in q and k are too "
                          "large for turned features"));
}

template <class T>
void linear_attention_backward(const AttentionInput<T>& in, std::int64_t features,
                               const T* directions, const T* d_out,
                               const AttentionGradient<T>& gradient, Run& run) {
  check_call(in, features, directions);
  check_gradient(in, gradient);
  const std::int64_t n_q = q_size(in), n_k = k_size(in);
  check_pointer(d_out, n_q, "d_out");
  checked_magnitude(outputs(in, d_out), "d_out");
  if (gradient.q != nullptr) std::fill_n(gradient.q, n_q, T(0));
  if (gradient.k != nullptr) std::fill_n(gradient.k, n_k, T(0)); // padded keys stay 0
  if (gradient.v != nullptr) std::fill_n(gradient.v, n_k, T(0));
  const std::int64_t q_angles = gradient.q_angles != nullptr ? n_q / 2 : 0;
  const std::int64_t k_angles = gradient.k_angles != nullptr ? n_k / 2 : 0;
  std::vector<T> d_q_angles(static_cast<std::size_t>(q_angles));
  std::vector<T> d_k_angles(static_cast<std::size_t>(k_angles));
  if (n_q + n_k > 0) {
    const LinearCall<T> call(in, features, directions, run);
    const std::int64_t heads = in.batch * in.heads;
    for_heads(in, run, [&] {
      return [&](std::int64_t b, std::int64_t h) {
        const std::int64_t bh = b * in.heads + h;
        head_backward(call, b, h, d_out, gradient,
                      q_angles > 0 ? d_q_angles.data() + bh * (q_angles / heads) : nullptr,
                      k_angles > 0 ? d_k_angles.data() + bh * (k_angles / heads) : nullptr);
      };
    });
  }
  if (gradient.q_angles != nullptr)
    sum_angle_gradients(in, in.q_length, d_q_angles, gradient.q_angles);
  if (gradient.k_angles != nullptr)
    sum_angle_gradients(in, in.k_length, d_k_angles, gradient.k_angles);
  check_result(gradient.q, n_q, "gradient.q");
  check_result(gradient.k, n_k, "gradient.k");
  check_result(gradient.v, n_k, "gradient.v");
  check_result(gradient.q_angles, angle_count(in, in.q_length), "gradient.q_angles");
  check_result(gradient.k_angles, angle_count(in, in.k_length), "gradient.k_angles");
}

template std::vector<double> attention_directions<double>(std::int64_t, std::int64_t, std::uint64_t,
                                                          Run&);
template std::vector<float> attention_directions<float>(std::int64_t, std::int64_t, std::uint64_t,
                                                        Run&);
template void linear_attention_forward<double>(const AttentionInput<double>&, std::int64_t,
                                               const double*, double*, Run&);
template void linear_attention_forward<float>(const AttentionInput<float>&, std::int64_t,
                                              const float*, float*, Run&);
template void linear_attention_backward<double>(const AttentionInput<double>&, std::int64_t,
                                                const double*, const double*,
                                                const AttentionGradient<double>&, Run&);
template void linear_attention_backward<float>(const AttentionInput<float>&, std::int64_t,
                                               const float*, const float*,
                                               const AttentionGradient<float>&, Run&);

} // namespace cape
