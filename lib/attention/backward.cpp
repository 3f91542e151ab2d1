// The gradients of attention.
module;
#include "internal/message.hpp"
#include "simd/attention.hpp"
#include "simd/vector_math.hpp"
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <new>
#include <numeric>
#include <string>
#include <unistd.h>
#include <vector>
module cape.attention;
#include "attention/call.hpp"

namespace cape {
namespace {

template <class T>
T dot(const T* x, const T* y, std::int64_t n) {
  constexpr std::int64_t few = 8; // sums at a time
  T parts[few] = {};
  std::int64_t i = 0;
  for (; i + few <= n; i += few)
    for (std::int64_t j = 0; j < few; ++j) parts[j] += x[i + j] * y[i + j];
  for (; i < n; ++i) parts[i % few] += x[i] * y[i];
  return std::accumulate(parts, parts + few, T(0));
}

// What is known of the output.
template <class T>
struct Output {
  const T* out;
  const T* log_sum_exp;
  const T* d_out;
};

// The queries of one head: scale log2(e) R(phi) q, and d_out, side by side and below each other.
template <class T>
struct HeadQueries {
  HeadQueries(const Call<T>& call, std::int64_t b, std::int64_t h, const Output<T>& output);

  std::int64_t padded;
  Buffer<T> q, q_rows, d_out, d_out_rows, log_sum, correction;
};

template <class T>
HeadQueries<T>::HeadQueries(const Call<T>& call, std::int64_t b, std::int64_t h,
                            const Output<T>& output)
    : padded(round_up(call.in.q_length, call.tiling.columns.panel)), q(padded * call.in.head_dim),
      q_rows(padded * call.tiling.width), d_out(padded * call.in.head_dim),
      d_out_rows(padded * call.tiling.width), log_sum(padded), correction(padded) {
  const AttentionInput<T>& in = call.in;
  const simd::Columns columns = call.tiling.columns;
  for (Buffer<T>* x : {&q, &q_rows, &d_out, &d_out_rows, &correction}) x->fill(0);
  log_sum.fill(std::numeric_limits<T>::infinity());
  const T* sums = output.log_sum_exp + (b * in.heads + h) * in.q_length;
  Buffer<T> turned(columns.panel * in.head_dim);
  for (std::int64_t first = 0; first < in.q_length; first += columns.panel) {
    const std::int64_t some = std::min(columns.panel, in.q_length - first);
    for (std::int64_t j = 0; j < some; ++j) {
      const std::int64_t i = first + j;
      T* row = turned.data() + j * in.head_dim;
      call.turn_q.turn(i, h, T(1), log2_e<T> * scale_of(in), queries(in, in.q).row(b, i, h), row);
      const T* d_row = queries(in, output.d_out).row(b, i, h);
      pack_row(columns, i, padded, row, in.head_dim, q_rows.data());
      pack_row(columns, i, padded, d_row, in.head_dim, d_out_rows.data());
      correction.data()[i] = dot(queries(in, output.out).row(b, i, h), d_row, in.head_dim);
      if (std::isfinite(sums[i])) log_sum.data()[i] = log2_e<T> * sums[i];
    }
    simd::transpose(turned.data(), in.head_dim, some, in.head_dim, q.data() + first * in.head_dim,
                    columns.panel);
    simd::transpose(queries(in, output.d_out).row(b, first, h), in.heads * in.head_dim, some,
                    in.head_dim, d_out.data() + first * in.head_dim, columns.panel);
  }
}

// The keys of one head that are not padding, R(phi) k, in strips and below each other, and their
// values.
template <class T>
struct HeadKeys {
  HeadKeys(const Call<T>& call, std::int64_t b, std::int64_t h);

  std::vector<std::int64_t> rows; // their numbers
  std::int64_t padded;            // how many they are, up to a strip
  Buffer<T> k, k_rows, v, padding;
};

template <class T>
HeadKeys<T>::HeadKeys(const Call<T>& call, std::int64_t b, std::int64_t h)
    : rows(key_rows(call.in, b)), padded(round_up(std::ssize(rows), simd::strip_rows)),
      k(padded * call.tiling.strip_width), k_rows(padded * call.tiling.width),
      v(padded * call.tiling.strip_width), padding(padded) {
  const AttentionInput<T>& in = call.in;
  for (Buffer<T>* x : {&k, &k_rows, &v}) x->fill(0);
  padding.fill(-std::numeric_limits<T>::infinity());
  Buffer<T> turned(in.head_dim);
  for (std::int64_t j = 0; j < std::ssize(rows); ++j) {
    const std::int64_t row = rows[static_cast<std::size_t>(j)];
    call.turn_k.turn(row, h, T(1), T(1), keys(in, in.k).row(b, row, h), turned.data());
    pack_strip_row(call.tiling.columns, j, turned.data(), in.head_dim, k.data());
    pack_row(call.tiling.columns, j, padded, turned.data(), in.head_dim, k_rows.data());
    pack_strip_row(call.tiling.columns, j, keys(in, in.v).row(b, row, h), in.head_dim, v.data());
    padding.data()[j] = 0;
  }
}

template <class T>
void put_bias(const Call<T>& call, std::int64_t h, const HeadKeys<T>& keys,
              const simd::GradientTile<T>& t) {
  const AttentionInput<T>& in = call.in;
  const std::int64_t panel = call.tiling.columns.panel, strip = simd::strip_rows;
  const std::int64_t some_queries = std::min(t.panels * panel, in.q_length - t.first_query);
  const std::int64_t some_keys = std::min(t.strips * strip, std::ssize(keys.rows) - t.first_key);
  std::fill_n(t.weights, t.strips * strip * t.panels * panel, T(0));
  for (std::int64_t i = 0; i < some_queries; ++i) {
    const std::int64_t row = (in.bias_heads == 1 ? 0 : h) * in.q_length + t.first_query + i;
    for (std::int64_t j = 0; j < some_keys; ++j)
      t.weights[((j / strip * t.panels + i / panel) * strip + j % strip) * panel + i % panel] =
          log2_e<T> *
          in.bias[row * in.k_length + keys.rows[static_cast<std::size_t>(t.first_key + j)]];
  }
}

// The weights of a query sum to 1, but for the rounding of a large log_sum_exp.
template <class T>
void check_weights(const Call<T>& call, std::int64_t b, std::int64_t h, const HeadKeys<T>& keys,
                   const T* log_sum_exp, const T* sums) {
  const AttentionInput<T>& in = call.in;
  log_sum_exp += (b * in.heads + h) * in.q_length;
  for (std::int64_t i = 0; i < in.q_length && !keys.rows.empty(); ++i) {
    const bool sees_none = in.bias != nullptr && sums[i] == 0;
    if (sees_none && log_sum_exp[i] == -std::numeric_limits<T>::infinity()) continue;
    if (!std::isfinite(log_sum_exp[i]))
      throw Error(Status::invalid_argument, "log_sum_exp has a value that is not finite");
    if (!(sums[i] > T(0.5) && sums[i] < T(2)))
      throw Error(Status::invalid_argument,
                  message("the weights of query ", i, " (counted from 0) sum to ", sums[i],
                          " and not to 1: log_sum_exp must be that of attention_forward for the "
                          "same input"));
  }
}

// The gradients of one head, a block of keys against a block of queries at a time. The weights are
// computed again from log_sum_exp.
template <class T>
void head_backward(const Call<T>& call, std::int64_t b, std::int64_t h, const Output<T>& output,
                   const AttentionGradient<T>& gradient) {
  const AttentionInput<T>& in = call.in;
  const Tiling<T>& tiling = call.tiling;
  const std::int64_t panel = tiling.columns.panel, strip = simd::strip_rows;
  const HeadQueries<T> q(call, b, h, output);
  const HeadKeys<T> k(call, b, h);
  Buffer<T> d_k(k.padded * tiling.width), d_v(k.padded * tiling.width);
  d_k.fill(0);
  d_v.fill(0);
  const std::int64_t parts = parts_of_head(in, in.k_length);
  const std::int64_t part_keys = round_up((k.padded + parts - 1) / parts, strip);
  const std::int64_t q_size = q.padded * tiling.width;
  Buffer<T> d_q(parts * q_size), sums(parts * q.padded);
  d_q.fill(0);
  sums.fill(0);

  call.run.parallel_for(parts, [&](std::int64_t part) {
    Buffer<T> weights(tiling.keys * tiling.block), d_scores(tiling.keys * tiling.block);
    simd::GradientTile<T> tile{.head_dim = in.head_dim,
                               .width = tiling.width,
                               .queries = q.padded,
                               .q = q.q.data(),
                               .q_rows = q.q_rows.data(),
                               .d_out = q.d_out.data(),
                               .d_out_rows = q.d_out_rows.data(),
                               .log_sum = q.log_sum.data(),
                               .correction = q.correction.data(),
                               .sum = sums.data() + part * q.padded,
                               .d_q = gradient.q != nullptr ? d_q.data() + part * q_size : nullptr,
                               .keys = k.padded,
                               .k = k.k.data(),
                               .k_rows = k.k_rows.data(),
                               .v = k.v.data(),
                               .padding = k.padding.data(),
                               .d_k = gradient.k != nullptr ? d_k.data() : nullptr,
                               .d_v = gradient.v != nullptr ? d_v.data() : nullptr,
                               .weights = weights.data(),
                               .d_scores = d_scores.data(),
                               .biased = in.bias != nullptr};
    const std::int64_t end = std::min(k.padded, (part + 1) * part_keys);
    for (tile.first_key = part * part_keys; tile.first_key < end; tile.first_key += tiling.keys) {
      tile.strips = std::min(tiling.keys, end - tile.first_key) / strip;
      for (tile.first_query = 0; tile.first_query < q.padded; tile.first_query += tiling.block) {
        call.run.poll();
        tile.panels = std::min(tiling.block, q.padded - tile.first_query) / panel;
        if (tile.biased) put_bias(call, h, k, tile);
        simd::add_gradients(tile);
      }
    }
  });

  for (std::int64_t part = 1; part < parts; ++part) {
    const auto add = [&](Buffer<T>& x, std::int64_t n) {
      std::transform(x.data(), x.data() + n, x.data() + part * n, x.data(), std::plus<>());
    };
    add(d_q, q_size);
    add(sums, q.padded);
  }
  check_weights(call, b, h, k, output.log_sum_exp, sums.data());
  if (gradient.q != nullptr)
    for (std::int64_t i = 0; i < in.q_length; ++i)
      call.turn_q.turn(i, h, T(-1), scale_of(in), d_q.data() + i * tiling.width,
                       queries(in, gradient.q).row(b, i, h));
  for (std::int64_t j = 0; j < std::ssize(k.rows); ++j) {
    const std::int64_t row = k.rows[static_cast<std::size_t>(j)];
    if (gradient.k != nullptr) // the queries have a factor of log2(e)
      call.turn_k.turn(row, h, T(-1), ln_2<T>, d_k.data() + j * tiling.width,
                       keys(in, gradient.k).row(b, row, h));
    if (gradient.v != nullptr)
      std::copy_n(d_v.data() + j * tiling.width, in.head_dim, keys(in, gradient.v).row(b, row, h));
  }
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
  if (q_size + k_size > 0)
    for_heads(in, run, [&](std::int64_t b, std::int64_t h) {
      head_backward(call, b, h, {out, log_sum_exp, d_out}, gradient);
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
