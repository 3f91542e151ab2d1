// The gradients of attention.
module;
#include "attention/kernels/attention.hpp"
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
#include <numeric>
#include <string>
#include <typeinfo>
#include <unistd.h>
#include <utility>
#include <vector>
module cape.attention;
#include "attention/checks.hpp"
#include "attention/exact.hpp"

namespace cape {
namespace {

constexpr std::int64_t rows_at_once = 256; ///< between two polls

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

// The queries of a head: scale log2(e) R(phi) q, and d_out, side by side and below each other.
template <class T>
struct HeadQueries {
  explicit HeadQueries(const Call<T>& c)
      : call(c), padded(round_up(c.in.q_length, c.tiling.columns.panel)), q(padded * c.in.head_dim),
        q_rows(padded * c.tiling.width), d_out(padded * c.in.head_dim),
        d_out_rows(padded * c.tiling.width), log_sum(padded), correction(padded),
        turned(c.tiling.columns.panel * c.in.head_dim) {
    for (simd::Aligned<T>* x : {&q, &q_rows, &d_out, &d_out_rows, &correction}) x->fill(0);
  }
  void load(std::int64_t b, std::int64_t h, const Output<T>& output);
  // Divide d_out, and what comes of it, by a number for every query: as if its weights were.
  void divide(const T* by);

  const Call<T>& call;
  std::int64_t padded;
  simd::Aligned<T> q, q_rows, d_out, d_out_rows, log_sum, correction, turned;
};

template <class T>
void HeadQueries<T>::load(std::int64_t b, std::int64_t h, const Output<T>& output) {
  const AttentionInput<T>& in = call.in;
  const simd::Columns columns = call.tiling.columns;
  log_sum.fill(std::numeric_limits<T>::infinity());
  const T* sums = output.log_sum_exp + (b * in.heads + h) * in.q_length;
  for (std::int64_t first = 0; first < in.q_length; first += columns.panel) {
    const std::int64_t some = std::min(columns.panel, in.q_length - first);
    call.run.poll();
    for (std::int64_t j = 0; j < some; ++j) {
      const std::int64_t i = first + j;
      T* row = turned.data() + j * in.head_dim;
      for (const auto& x : {q_of(in), outputs(in, output.out), outputs(in, output.d_out)})
        prefetch(x, b, i + rows_ahead, h);
      call.turn_q.turn(i, h, T(1), log2_e<T> * scale_of(in), q_of(in).row(b, i, h), row);
      const T* d_row = outputs(in, output.d_out).row(b, i, h);
      pack_row(columns, i, padded, row, in.head_dim, q_rows.data());
      pack_row(columns, i, padded, d_row, in.head_dim, d_out_rows.data());
      correction.data()[i] = dot(outputs(in, output.out).row(b, i, h), d_row, in.head_dim);
      if (std::isfinite(sums[i])) log_sum.data()[i] = log2_e<T> * sums[i];
    }
    simd::transpose(turned.data(), in.head_dim, some, in.head_dim, q.data() + first * in.head_dim,
                    columns.panel);
    simd::transpose(outputs(in, output.d_out).row(b, first, h), outputs(in, output.d_out).stride,
                    some, in.head_dim, d_out.data() + first * in.head_dim, columns.panel);
  }
}

template <class T>
void HeadQueries<T>::divide(const T* by) {
  const AttentionInput<T>& in = call.in;
  const std::int64_t panel = call.tiling.columns.panel;
  std::vector<T> row(static_cast<std::size_t>(in.head_dim));
  for (std::int64_t i = 0; i < in.q_length; ++i) {
    T* side = d_out.data() + i / panel * panel * in.head_dim + i % panel;
    for (std::int64_t c = 0; c < in.head_dim; ++c)
      row[static_cast<std::size_t>(c)] = side[c * panel] /= by[i];
    pack_row(call.tiling.columns, i, padded, row.data(), in.head_dim, d_out_rows.data());
    correction.data()[i] /= by[i];
  }
}

// The keys of a head that are not padding, R(phi) k, in strips and below each other, and their
// values.
template <class T>
struct HeadKeys {
  explicit HeadKeys(const Call<T>& c)
      : call(c), most(round_up(c.in.k_length, simd::strip_rows)), k(most * c.tiling.strip_width),
        k_rows(most * c.tiling.width), v(most * c.tiling.strip_width), padding(most),
        turned(c.in.head_dim) {}
  void load(std::int64_t b, std::int64_t h);

  const Call<T>& call;
  std::int64_t most;              // keys
  std::int64_t padded = 0;        // how many there are, up to a strip
  std::vector<std::int64_t> rows; // their numbers
  simd::Aligned<T> k, k_rows, v, padding, turned;
};

template <class T>
void HeadKeys<T>::load(std::int64_t b, std::int64_t h) {
  const AttentionInput<T>& in = call.in;
  rows = key_rows(in, b);
  padded = round_up(std::ssize(rows), simd::strip_rows);
  if (std::ssize(rows) < padded || in.head_dim < call.tiling.width)
    for (simd::Aligned<T>* x : {&k, &k_rows, &v}) x->fill(0);
  padding.fill(-std::numeric_limits<T>::infinity());
  std::fill_n(padding.data(), rows.size(), T(0));
  for (std::int64_t j = 0; j < std::ssize(rows); ++j) {
    const std::int64_t row = rows[static_cast<std::size_t>(j)];
    if (j % rows_at_once == 0) call.run.poll();
    for (const auto& x : {k_of(in), v_of(in)}) prefetch(x, b, row + rows_ahead, h);
    call.turn_k.turn(row, h, T(1), T(1), k_of(in).row(b, row, h), turned.data());
    pack_strip_row(call.tiling.columns, j, turned.data(), in.head_dim, k.data());
    pack_row(call.tiling.columns, j, padded, turned.data(), in.head_dim, k_rows.data());
    pack_strip_row(call.tiling.columns, j, v_of(in).row(b, row, h), in.head_dim, v.data());
  }
}

// body(key, first query, their number, where they stand in the tile) for the queries and keys of a
// tile that are no padding.
template <class T, class F>
void for_pieces(const Call<T>& call, const HeadKeys<T>& keys, const simd::GradientTile<T>& t,
                F body) {
  const std::int64_t panel = call.tiling.columns.panel, strip = simd::strip_rows;
  const std::int64_t end = std::min(t.first_key + t.strips * strip, std::ssize(keys.rows));
  for (std::int64_t j = t.first_key; j < end; ++j)
    for (std::int64_t p = 0; p < t.panels; ++p) {
      const std::int64_t first = t.first_query + p * panel;
      body(keys.rows[static_cast<std::size_t>(j)], first, std::min(panel, call.in.q_length - first),
           (((j - t.first_key) / strip * t.panels + p) * strip + (j - t.first_key) % strip) *
               panel);
    }
}

template <class T>
void put_bias(const Call<T>& call, std::int64_t h, const HeadKeys<T>& keys,
              const simd::GradientTile<T>& t) {
  const AttentionInput<T>& in = call.in;
  std::fill_n(t.weights, t.strips * simd::strip_rows * t.panels * call.tiling.columns.panel, T(0));
  for_pieces(call, keys, t, [&](std::int64_t key, std::int64_t i, std::int64_t n, std::int64_t at) {
    const T* bias = bias_row(in, in.bias, h, i) + key;
    for (std::int64_t q = 0; q < n; ++q) t.weights[at + q] = log2_e<T> * bias[q * in.k_length];
  });
}

// Add the gradients of the scores, times a factor for every query, to that of the bias.
template <class T>
void add_bias_gradient(const Call<T>& call, std::int64_t h, const HeadKeys<T>& keys,
                       const simd::GradientTile<T>& t, const T* factor, T* d_bias) {
  const AttentionInput<T>& in = call.in;
  for_pieces(call, keys, t, [&](std::int64_t key, std::int64_t i, std::int64_t n, std::int64_t at) {
    T* to = bias_row(in, d_bias, h, i) + key;
    for (std::int64_t q = 0; q < n; ++q) to[q * in.k_length] += factor[i + q] * t.d_scores[at + q];
  });
}

// The weights of a query sum to 1, but for the rounding of log_sum_exp and of the scores, which
// grows with their size. Says whether some sum is so far from it (2e-9 in double, 4e-5 in float)
// that the weights must be divided by it: that takes a second pass, and rounds what would cancel.
template <class T>
bool check_weights(const Call<T>& call, std::int64_t b, std::int64_t h, const HeadKeys<T>& keys,
                   const T* log_sum_exp, T* sums) {
  constexpr T epsilon = std::numeric_limits<T>::epsilon();
  const AttentionInput<T>& in = call.in;
  log_sum_exp += (b * in.heads + h) * in.q_length;
  bool far = false;
  for (std::int64_t i = 0; i < in.q_length && !keys.rows.empty(); ++i) {
    const bool sees_none = in.bias != nullptr && sums[i] == 0;
    if (sees_none && log_sum_exp[i] == -std::numeric_limits<T>::infinity()) {
      sums[i] = 1;
      continue;
    }
    if (!std::isfinite(log_sum_exp[i]))
      throw Error(Status::invalid_argument, "log_sum_exp has a value that is not finite");
    const T rounding = 1 + 8 * epsilon * std::fabs(log_sum_exp[i]);
    if (!(std::fabs(std::log2(sums[i])) < rounding))
      throw Error(
          Status::invalid_argument,
          message("the weights of query ", i, " (counted from 0) sum to ", sums[i],
                  " and not to 1: log_sum_exp, here ", log_sum_exp[i],
                  ", must be that of attention_forward for the same input, and small enough "
                  "for its differences to be known in this type"));
    far |= std::fabs(sums[i] - 1) > std::sqrt(epsilon) / 8;
  }
  return far;
}

// The gradients of one head after the other, a block of keys against a block of queries at a time.
// The weights are computed again from log_sum_exp.
template <class T>
class HeadBackward {
public:
  HeadBackward(const Call<T>& call, const Output<T>& output, const AttentionGradient<T>& gradient)
      : call_(call), output_(output), gradient_(gradient),
        parts_(parts_of_head(call.in, call.in.k_length)), q_(call), k_(call),
        d_q_(parts_ * q_size()), sums_(parts_ * q_.padded), d_k_(k_.most * call.tiling.width),
        d_v_(k_.most * call.tiling.width), weights_(parts_ * block_size()),
        d_scores_(parts_ * block_size()), bias_factor_(q_.padded) {}

  void operator()(std::int64_t b, std::int64_t h) {
    q_.load(b, h, output_);
    k_.load(b, h);
    bias_factor_.fill(1);
    add_all(h);
    if (check_weights(call_, b, h, k_, output_.log_sum_exp, sums_.data())) {
      q_.divide(sums_.data());
      // What the first pass has added to the bias's gradient is that many times too large.
      for (std::int64_t i = 0; i < call_.in.q_length; ++i)
        bias_factor_.data()[i] = 1 - sums_.data()[i];
      add_all(h);
    }
    put(b, h);
  }

private:
  void add_all(std::int64_t h) {
    for (simd::Aligned<T>* x : {&d_k_, &d_v_}) {
      call_.run.poll();
      x->fill(0);
    }
    call_.run.parallel_for(parts_, [&](std::int64_t part) { add_part(part, h); });
    for (std::int64_t part = 1; part < parts_; ++part) {
      const auto add = [&](simd::Aligned<T>& x, std::int64_t n) {
        call_.run.poll();
        std::transform(x.data(), x.data() + n, x.data() + part * n, x.data(), std::plus<>());
      };
      add(d_q_, q_size());
      add(sums_, q_.padded);
    }
  }

  std::int64_t q_size() const { return q_.padded * call_.tiling.width; }
  std::int64_t block_size() const { return call_.tiling.keys * call_.tiling.block; }

  void add_part(std::int64_t part, std::int64_t h) {
    const Tiling<T>& tiling = call_.tiling;
    const std::int64_t panel = tiling.columns.panel, strip = simd::strip_rows;
    simd::GradientTile<T> tile{
        .head_dim = call_.in.head_dim,
        .width = tiling.width,
        .queries = q_.padded,
        .q = q_.q.data(),
        .q_rows = q_.q_rows.data(),
        .d_out = q_.d_out.data(),
        .d_out_rows = q_.d_out_rows.data(),
        .log_sum = q_.log_sum.data(),
        .correction = q_.correction.data(),
        .sum = sums_.data() + part * q_.padded,
        .d_q = gradient_.q != nullptr ? d_q_.data() + part * q_size() : nullptr,
        .keys = k_.padded,
        .k = k_.k.data(),
        .k_rows = k_.k_rows.data(),
        .v = k_.v.data(),
        .padding = k_.padding.data(),
        .d_k = gradient_.k != nullptr ? d_k_.data() : nullptr,
        .d_v = gradient_.v != nullptr ? d_v_.data() : nullptr,
        .weights = weights_.data() + part * block_size(),
        .d_scores = scores_wanted() ? d_scores_.data() + part * block_size() : nullptr,
        .biased = call_.in.bias != nullptr};
    std::fill_n(d_q_.data() + part * q_size(), q_size(), T(0));
    std::fill_n(tile.sum, q_.padded, T(0));
    const std::int64_t share = round_up(ceil_div(k_.padded, parts_), strip);
    const std::int64_t end = std::min(k_.padded, (part + 1) * share);
    for (tile.first_key = part * share; tile.first_key < end; tile.first_key += tiling.keys) {
      tile.strips = std::min(tiling.keys, end - tile.first_key) / strip;
      for (tile.first_query = 0; tile.first_query < q_.padded; tile.first_query += tiling.block) {
        call_.run.poll();
        tile.panels = std::min(tiling.block, q_.padded - tile.first_query) / panel;
        if (tile.biased) put_bias(call_, h, k_, tile);
        simd::add_gradients(tile);
        if (gradient_.bias != nullptr)
          add_bias_gradient(call_, h, k_, tile, bias_factor_.data(), gradient_.bias);
      }
    }
  }

  bool scores_wanted() const {
    return gradient_.q != nullptr || gradient_.k != nullptr || gradient_.bias != nullptr;
  }

  void put(std::int64_t b, std::int64_t h) {
    const AttentionInput<T>& in = call_.in;
    const std::int64_t width = call_.tiling.width;
    if (gradient_.q != nullptr)
      for (std::int64_t i = 0; i < in.q_length; ++i) {
        if (i % rows_at_once == 0) call_.run.poll();
        call_.turn_q.turn(i, h, T(-1), scale_of(in), d_q_.data() + i * width,
                          queries(in, gradient_.q).row(b, i, h));
      }
    for (std::int64_t j = 0; j < std::ssize(k_.rows); ++j) {
      const std::int64_t row = k_.rows[static_cast<std::size_t>(j)];
      if (j % rows_at_once == 0) call_.run.poll();
      if (gradient_.k != nullptr) // the queries have a factor of log2(e)
        call_.turn_k.turn(row, h, T(-1), ln_2<T>, d_k_.data() + j * width,
                          keys(in, gradient_.k).row(b, row, h));
      if (gradient_.v != nullptr)
        std::copy_n(d_v_.data() + j * width, in.head_dim, keys(in, gradient_.v).row(b, row, h));
    }
  }

  const Call<T>& call_;
  const Output<T>& output_;
  const AttentionGradient<T>& gradient_;
  std::int64_t parts_;
  HeadQueries<T> q_;
  HeadKeys<T> k_;
  simd::Aligned<T> d_q_, sums_, d_k_, d_v_, weights_, d_scores_;
  simd::Aligned<T> bias_factor_; // per query, of what is added to the bias's gradient
};

// As for_heads(), where heads that share a bias come one after the other.
template <class T, class F>
void for_heads_by_bias(const AttentionInput<T>& in, Run& run, F make) {
  const bool in_parts = parts_of_head(in, std::max(in.q_length, in.k_length)) > 1;
  const std::int64_t tasks = in_parts ? 1 : in.bias_heads;
  run.parallel_for(tasks, [&](std::int64_t task) {
    auto body = make();
    for (std::int64_t h = task; h < in.bias_heads; h += tasks)
      for (std::int64_t b = 0; b < in.batch; ++b)
        for (std::int64_t head = h; head < in.heads; head += in.bias_heads) body(b, head);
  });
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
  const std::int64_t n_q = q_size(in), n_k = k_size(in);
  check_pointer(out, n_q, "out");
  check_pointer(log_sum_exp, n_q / in.head_dim, "log_sum_exp");
  check_pointer(d_out, n_q, "d_out");
  check_workspace(in, attention_workspace(in, run.threads()).backward);
  check_values(in);
  checked_magnitude(outputs(in, out), "out");
  checked_magnitude(outputs(in, d_out), "d_out");

  if (gradient.k != nullptr) std::fill_n(gradient.k, n_k, T(0)); // padded keys stay 0
  if (gradient.v != nullptr) std::fill_n(gradient.v, n_k, T(0));
  if (gradient.bias != nullptr) std::fill_n(gradient.bias, bias_size(in), T(0));
  const Call<T> call(in, run);
  const Output<T> output{out, log_sum_exp, d_out};
  const auto head_backward = [&] { return HeadBackward<T>(call, output, gradient); };
  if (n_q + n_k > 0 && gradient.bias != nullptr)
    for_heads_by_bias(in, run, head_backward);
  else if (n_q + n_k > 0)
    for_heads(in, run, head_backward);
  if (gradient.q_angles != nullptr)
    angle_gradient(call, q_of(in), queries<T, const T>(in, gradient.q), gradient.q_angles,
                   [](std::int64_t, std::int64_t) { return true; });
  if (gradient.k_angles != nullptr)
    angle_gradient(call, k_of(in), keys<T, const T>(in, gradient.k), gradient.k_angles,
                   [&](std::int64_t b, std::int64_t j) { return is_key(in, b, j); });

  check_result(gradient.q, n_q, "gradient.q");
  check_result(gradient.k, n_k, "gradient.k");
  check_result(gradient.v, n_k, "gradient.v");
  check_result(gradient.q_angles, angle_count(in, in.q_length), "gradient.q_angles");
  check_result(gradient.k_angles, angle_count(in, in.k_length), "gradient.k_angles");
  if (gradient.bias != nullptr) check_result(gradient.bias, bias_size(in), "gradient.bias");
}

template void attention_backward<double>(const AttentionInput<double>&, const double*,
                                         const double*, const double*,
                                         const AttentionGradient<double>&, Run&);
template void attention_backward<float>(const AttentionInput<float>&, const float*, const float*,
                                        const float*, const AttentionGradient<float>&, Run&);

} // namespace cape
