module;
#include "internal/message.hpp"
#include "internal/sizes.hpp"
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <new>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <typeinfo>
#include <variant>
#include <vector>
module cape.transformer;
import cape.attention;
import cape.hyperbolic;
#include "transformer/pair_bias.hpp"

namespace cape {
namespace {

// Row r: sines and then cosines of (r - reach) w_i, w_i = 10000^(-2i / width).
template <class T>
std::vector<T> waves(std::int64_t reach, std::int64_t width) {
  const std::int64_t sines = (width + 1) / 2;
  std::vector<T> out;
  for (std::int64_t r = -reach; r <= reach; ++r)
    for (std::int64_t j = 0; j < width; ++j) {
      const std::int64_t i = j < sines ? j : j - sines;
      const double angle =
          static_cast<double>(r) *
          std::pow(10000.0, -2.0 * static_cast<double>(i) / static_cast<double>(width));
      out.push_back(static_cast<T>(j < sines ? std::sin(angle) : std::cos(angle)));
    }
  return out;
}

// Rows x (heads side by side) to heads x rows, or back.
template <class T>
void exchange_heads(std::span<const T> from, std::int64_t heads, std::int64_t width, bool back,
                    std::span<T> to) {
  const std::int64_t rows = std::ssize(from) / (heads * width);
  for (std::int64_t h = 0; h < heads; ++h)
    for (std::int64_t i = 0; i < rows; ++i) {
      const std::int64_t side = (i * heads + h) * width, below = (h * rows + i) * width;
      std::copy_n(from.begin() + (back ? below : side), width, to.begin() + (back ? side : below));
    }
}

// W_q among the parameters.
Slot queries_of(const BlockSlots& slots) {
  Slot slot = slots.in_weight;
  slot.rows /= 3;
  return slot;
}

} // namespace

template <class T>
PairBias<T>::PairBias(const Backbone& backbone, const Slots& slots)
    : backbone_(backbone), options_(backbone.options), slots_(slots),
      features_(std::ssize(backbone.features)), offsets_(2 * features_ + 1) {}

template <class T>
void PairBias<T>::measure(Run& run) {
  const std::int64_t n = features_ + 1, columns = backbone_.positions.cols();
  std::vector<double> points(at(n * columns)); // the first: the origin
  for (std::int64_t i = 1; i < n; ++i)
    for (std::int64_t j = 0; j < columns; ++j)
      points[at(i * columns + j)] = backbone_.positions(i - 1, j);
  resize(distances_, n * n, run);
  const auto point = [&](std::int64_t i) {
    return std::span<const double>(points).subspan(at(i * columns), at(columns));
  };
  run.parallel_for(n, [&](std::int64_t i) {
    for (std::int64_t j = 0; j < n; ++j)
      distances_[at(i * n + j)] = static_cast<T>(poincare::distance(point(i), point(j)));
  });
}

template <class T>
void PairBias<T>::begin(std::span<const T> p, Run& run) {
  const std::int64_t heads = options_.heads, width = options_.width;
  if (has_distances(options_.positions)) {
    if (distances_.empty()) measure(run);
    factor_.resize(slots_.blocks.size() * at(heads));
    for (std::size_t b = 0; b < slots_.blocks.size(); ++b)
      std::ranges::transform(part(p, slots_.blocks[b].distance_factor),
                             factor_.begin() + static_cast<std::ptrdiff_t>(b) * heads,
                             [](T f) { return std::exp(static_cast<double>(f)); });
    return;
  }
  if (waves_.empty()) waves_ = waves<T>(features_, width);
  relative_.resize(slots_.blocks.size());
  const std::int64_t inner = inner_width(options_);
  std::vector<T> rows(at(offsets_ * inner));
  for (std::size_t b = 0; b < relative_.size(); ++b) {
    Relative& r = relative_[b];
    const BlockSlots& block = slots_.blocks[b];
    if (block.relative_weight.size() == 0) continue; // it knows no positions
    layers::linear<T>(waves_, offsets_, part(p, block.relative_weight), {}, rows, run);
    r.keys.resize(rows.size());
    exchange_heads<T>(rows, heads, head_width(options_), false, r.keys);
    for (std::vector<T>* shift : {&r.content, &r.position}) shift->resize(at(inner));
    const std::span<const T> weight = part(p, queries_of(block));
    layers::linear<T>(part(p, slots_.relative_content), 1, weight, {}, r.content, run);
    layers::linear<T>(part(p, slots_.relative_position), 1, weight, {}, r.position, run);
  }
  slope_.keys.assign(rows.size(), T(0));
  slope_.content.assign(at(inner), T(0));
  slope_.position.assign(at(inner), T(0));
}

template <class T>
void PairBias<T>::put(std::int64_t block, std::span<const std::int32_t> feature,
                      AttentionInput<T>& in, Run& run) {
  bias_.resize(at(in.heads * in.q_length * in.k_length));
  if (has_distances(options_.positions))
    put_distances(block, feature, run);
  else
    put_relative(block, feature, in, run);
  in.bias = bias_.data();
  in.bias_heads = in.heads;
}

template <class T>
void PairBias<T>::put_distances(std::int64_t block, std::span<const std::int32_t> feature,
                                Run& run) {
  const std::int64_t length = std::ssize(feature), heads = options_.heads;
  run.parallel_for(heads * length, [&](std::int64_t row) {
    const auto factor = static_cast<T>(factor_[at(block * heads + row / length)]);
    const T* from = distances_.data() + (feature[at(row % length)] + 1) * (features_ + 1) + 1;
    T* to = bias_.data() + row * length;
    for (std::int64_t j = 0; j < length; ++j) to[j] = -factor * from[feature[at(j)]];
  });
}

// The queries of a head, shifted to meet positions.
template <class T>
std::vector<T> PairBias<T>::position_queries(std::int64_t block, std::int64_t head,
                                             std::int64_t length) const {
  const std::int64_t width = head_width(options_);
  const T* shift = relative_[at(block)].position.data() + head * width;
  std::vector<T> out(at(length * width));
  for (std::int64_t i = 0; i < length; ++i)
    for (std::int64_t c = 0; c < width; ++c)
      out[at(i * width + c)] = q_[(i * options_.heads + head) * width + c] + shift[c];
  return out;
}

template <class T>
void PairBias<T>::put_relative(std::int64_t block, std::span<const std::int32_t> feature,
                               AttentionInput<T>& in, Run& run) {
  const std::int64_t length = in.q_length, width = in.head_dim, inner = in.heads * width;
  q_ = in.q;
  const Relative& r = relative_[at(block)];
  shifted_.resize(at(length * inner));
  for (std::int64_t i = 0; i < length; ++i)
    for (std::int64_t c = 0; c < inner; ++c)
      shifted_[at(i * inner + c)] = q_[i * inner + c] + r.content[at(c)];
  in.q = shifted_.data();
  const T scale = 1 / std::sqrt(static_cast<T>(width));
  run.parallel_for(in.heads, [&](std::int64_t h) {
    const std::vector<T> q = position_queries(block, h, length);
    std::vector<T> scores(at(length * offsets_));
    layers::linear<T>(q, length,
                      std::span(r.keys).subspan(at(h * offsets_ * width), at(offsets_ * width)), {},
                      scores, run);
    for (std::int64_t i = 0; i < length; ++i)
      for (std::int64_t j = 0; j < length; ++j)
        bias_[at((h * length + i) * length + j)] =
            scale * scores[at(i * offsets_ + offset(feature[at(i)], feature[at(j)]))];
  });
}

template <class T>
T* PairBias<T>::gradient_of(const AttentionInput<T>& in) {
  d_bias_.resize(at(in.heads * in.q_length * in.k_length));
  return d_bias_.data();
}

template <class T>
void PairBias<T>::backward(std::int64_t block, std::span<const std::int32_t> feature, T* d_q,
                           std::span<T> gradient, Run& run) {
  if (!has_distances(options_.positions)) return relative_backward(block, feature, d_q, run);
  const std::span<T> slope = part(gradient, slots_.blocks[at(block)].distance_factor);
  const std::int64_t of_head = std::ssize(d_bias_) / options_.heads;
  run.parallel_for(options_.heads, [&](std::int64_t h) {
    const T* d = d_bias_.data() + h * of_head;
    const double sum = std::transform_reduce(
        d, d + of_head, bias_.data() + h * of_head, 0.0, std::plus<>(),
        [](T x, T y) { return static_cast<double>(x) * static_cast<double>(y); });
    slope[at(h)] += static_cast<T>(sum);
  });
}

template <class T>
void PairBias<T>::relative_backward(std::int64_t block, std::span<const std::int32_t> feature,
                                    T* d_q, Run& run) {
  const std::int64_t length = std::ssize(feature), heads = options_.heads,
                     width = head_width(options_), inner = heads * width;
  for (std::int64_t i = 0; i < length; ++i)
    for (std::int64_t c = 0; c < inner; ++c) slope_.content[at(c)] += d_q[i * inner + c];
  const T scale = 1 / std::sqrt(static_cast<T>(width));
  run.parallel_for(heads, [&](std::int64_t h) {
    const std::vector<T> q = position_queries(block, h, length);
    std::vector<T> d_scores(at(length * offsets_)), d_position(q.size());
    for (std::int64_t i = 0; i < length; ++i)
      for (std::int64_t j = 0; j < length; ++j)
        d_scores[at(i * offsets_ + offset(feature[at(i)], feature[at(j)]))] +=
            scale * d_bias_[at((h * length + i) * length + j)];
    const std::size_t first = at(h * offsets_ * width), size = at(offsets_ * width);
    layers::linear_backward<T>(q, length, std::span(relative_[at(block)].keys).subspan(first, size),
                               d_scores, d_position, std::span(slope_.keys).subspan(first, size),
                               {}, run);
    for (std::int64_t i = 0; i < length; ++i)
      for (std::int64_t c = 0; c < width; ++c) {
        const T d = d_position[at(i * width + c)];
        d_q[(i * heads + h) * width + c] += d;
        slope_.position[at(h * width + c)] += d;
      }
  });
}

template <class T>
void PairBias<T>::finish(std::int64_t block, std::span<const T> p, std::span<T> gradient,
                         Run& run) {
  if (has_distances(options_.positions)) return;
  const BlockSlots& b = slots_.blocks[at(block)];
  const auto slope = [&](const Slot& slot) { return part(gradient, slot); };
  std::vector<T> rows(slope_.keys.size());
  exchange_heads<T>(slope_.keys, options_.heads, head_width(options_), true, rows);
  layers::linear_backward<T>(waves_, offsets_, part(p, b.relative_weight), rows, {},
                             slope(b.relative_weight), {}, run);
  const auto shift = [&](const Slot& vector, const std::vector<T>& d) {
    layers::linear_backward<T>(part(p, vector), 1, part(p, queries_of(b)), d, slope(vector),
                               slope(queries_of(b)), {}, run, layers::Into::added);
  };
  shift(slots_.relative_content, slope_.content);
  shift(slots_.relative_position, slope_.position);
  for (std::vector<T>* sums : {&slope_.keys, &slope_.content, &slope_.position})
    std::ranges::fill(*sums, T(0));
}

template class PairBias<float>;
template class PairBias<double>;

} // namespace cape
