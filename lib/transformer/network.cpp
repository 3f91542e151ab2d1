module;
#include "internal/message.hpp"
#include "internal/sizes.hpp"
#include "simd/vector_math.hpp"
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <typeinfo>
#include <utility>
#include <variant>
#include <vector>
module cape.transformer;
import cape.attention;
#include "transformer/network.hpp"

namespace cape {
namespace {

constexpr auto hidden_activation = layers::Activation::leaky_relu; // of the decoder

// The angles of all pairs of a row, features x heads head_width/2: a head's own come first, its
// other pairs are not turned.
template <class T>
std::vector<T> angles_of_pairs(const Backbone& backbone) {
  const BackboneOptions& o = backbone.options;
  const Matrix& positions = backbone.positions;
  double factor = 1;
  if (o.angle_scale == AngleScale::largest) {
    double largest = 0;
    for (std::int64_t i = 0; i < positions.size(); ++i)
      largest = std::max(largest, std::fabs(positions.data()[i]));
    if (largest > 0) factor = o.largest_angle / largest;
  }
  const std::int64_t pairs = inner_width(o) / 2, of_head = pairs / o.heads,
                     given = positions.cols() / o.heads;
  std::vector<T> angles(at(positions.rows() * pairs));
  for (std::int64_t i = 0; i < positions.rows(); ++i)
    for (std::int64_t j = 0; j < positions.cols(); ++j)
      angles[at(i * pairs + j / given * of_head + j % given)] =
          static_cast<T>(factor * positions(i, j));
  return angles;
}

template <class T>
std::vector<T> row_major(const Matrix& m) {
  std::vector<T> values;
  values.reserve(at(m.size()));
  for (std::int64_t i = 0; i < m.rows(); ++i)
    for (std::int64_t j = 0; j < m.cols(); ++j) values.push_back(static_cast<T>(m(i, j)));
  return values;
}

} // namespace

void check_tokens(const Tokens& t, const Backbone& backbone) {
  const auto wrong = [](const auto&... text) {
    throw Error(Status::invalid_argument, message(text...));
  };
  const std::int64_t features = std::ssize(backbone.features);
  const auto n = t.feature.size();
  if (t.value.size() != n || t.hidden.size() != n || n > 0x7fffffff)
    wrong("tokens have ", n, " features, ", t.value.size(), " values and ", t.hidden.size(),
          " marks of hidden ones; there must be one each, below 2^31");
  if (t.start.empty() || t.start.front() != 0 || t.start.back() != t.size() ||
      std::ranges::adjacent_find(t.start, std::greater_equal<>()) != t.start.end())
    wrong("tokens.start must rise from 0 to the number of tokens, ", n);
  for (std::size_t i = 0; i < n; ++i) {
    if (t.feature[i] < -1 || t.feature[i] >= features)
      wrong("token ", i, " is of feature ", t.feature[i], "; there are ", features, ", from 0");
    if (!std::isfinite(t.value[i])) wrong("token ", i, " has the value ", t.value[i]);
    if (backbone.options.value_embedding == ValueEmbedding::table &&
        !(t.value[i] >= 0 && t.value[i] < static_cast<float>(backbone.options.bins) &&
          t.value[i] == std::floor(t.value[i])))
      wrong("token ", i, " has the value ", t.value[i], ", which is none of the ",
            backbone.options.bins, " bins");
  }
  for (std::int64_t c = 0; c < t.cells(); ++c)
    if (t.feature[at(t.start[at(c)])] != -1)
      wrong("the first token of cell ", c, " is of feature ", t.feature[at(t.start[at(c)])],
            "; it must be that of <cls>, -1");
}

template <class T>
Network<T>::Network(const Backbone& backbone)
    : backbone_(backbone), options_(backbone.options), slots_(backbone) {
  for (std::int64_t b = 0; b < options_.blocks; ++b)
    blocks_.emplace_back(options_, slots_.blocks[at(b)], b);
  if (cape::has_angles(options_.positions)) {
    positions_ = angles_of_pairs<T>(backbone);
    columns_ = inner_width(options_) / 2;
    cosine_.resize(positions_.size());
    sine_.resize(positions_.size());
  } else {
    positions_ = row_major<T>(backbone.positions);
    columns_ = backbone.positions.cols();
  }
  if (is_relative(options_.positions) || has_distances(options_.positions))
    pair_bias_ = std::make_unique<PairBias<T>>(backbone, slots_);
}

template <class T>
void Network<T>::turn_by(std::span<const T> p, Run& run) {
  if (!cape::has_angles(options_.positions)) return;
  sequence_.turns = {columns_, cosine_, sine_};
  const std::span<const T> factor = part(p, slots_.angle_factor);
  const std::int64_t of_head = columns_ / options_.heads;
  constexpr std::int64_t rows = 64;
  run.parallel_for(ceil_div(std::ssize(backbone_.features), rows), [&](std::int64_t block) {
    std::vector<T> angles(at(columns_));
    const std::int64_t end = std::min(std::ssize(backbone_.features), (block + 1) * rows);
    for (std::int64_t i = block * rows; i < end; ++i) {
      for (std::int64_t t = 0; t < columns_; ++t)
        angles[at(t)] =
            positions_[at(i * columns_ + t)] * (factor.empty() ? T(1) : factor[at(t / of_head)]);
      simd::sin_cos(angles.data(), sine_.data() + i * columns_, cosine_.data() + i * columns_,
                    columns_);
    }
  });
}

template <class T>
void Network<T>::embed_values(std::span<const T> p, Run& run) {
  const Tokens& t = *tokens_;
  const std::int64_t n = t.size(), width = options_.width;
  assign_zeros(start_, n * width, run);
  if (options_.value_embedding == ValueEmbedding::table) {
    bin_.resize(at(n));
    for (std::size_t i = 0; i < bin_.size(); ++i)
      bin_[i] = t.hidden[i] != 0 ? static_cast<std::int32_t>(options_.bins)
                                 : static_cast<std::int32_t>(t.value[i]);
    layers::add_rows<T>(part(p, slots_.value_table), width, bin_, start_, run);
  } else {
    number_.resize(at(n));
    hidden_.resize(at(n));
    for (std::size_t i = 0; i < number_.size(); ++i) {
      hidden_[i] = t.hidden[i] != 0 ? 0 : -1;
      number_[i] = static_cast<T>(t.hidden[i] != 0 ? options_.hidden_value
                                                   : static_cast<double>(t.value[i]));
    }
    resize(value1_, n * width, run);
    resize(value1_active_, n * width, run);
    layers::linear<T>(number_, n, part(p, slots_.value1_weight), part(p, slots_.value1_bias),
                      value1_, run);
    layers::activate<T>(layers::Activation::relu, value1_, value1_active_, run);
    layers::linear<T>(value1_active_, n, part(p, slots_.value2_weight), part(p, slots_.value2_bias),
                      start_, run);
  }
  if (options_.embedding_norm) {
    value_moments_.resize(at(n));
    assign<T>(value_sum_, start_, run);
    layers::layer_norm<T>(value_sum_, {}, part(p, slots_.value_gain), part(p, slots_.value_bias),
                          norm_epsilon, start_, value_moments_, run);
  }
  if (options_.value_embedding == ValueEmbedding::network)
    layers::add_rows<T>(part(p, slots_.hidden), width, hidden_, start_, run);
}

template <class T>
void Network<T>::embed(std::span<const T> p, Run& run) {
  const Tokens& t = *tokens_;
  const std::int64_t n = t.size(), width = options_.width;
  const bool trained = has_trained_vectors(options_.positions);
  row_.resize(at(n));
  for (std::size_t i = 0; i < row_.size(); ++i)
    row_[i] = t.feature[i] < 0 ? 0 : trained ? t.feature[i] + 1 : -1;
  assign_zeros(identity_, n * width, run);
  layers::add_rows<T>(part(p, slots_.embedding), width, row_, identity_, run);
  if (options_.positions == PositionKind::fixed)
    layers::add_rows<T>(positions_, width, t.feature, identity_, run);
  if (options_.positions == PositionKind::projected) {
    resize(projected_, std::ssize(backbone_.features) * width, run);
    layers::linear<T>(positions_, std::ssize(backbone_.features), part(p, slots_.projection), {},
                      projected_, run);
    layers::add_rows<T>(projected_, width, t.feature, identity_, run);
  }
  if (options_.embedding_norm) {
    identity_moments_.resize(at(n));
    assign<T>(identity_sum_, identity_, run);
    layers::layer_norm<T>(identity_sum_, {}, part(p, slots_.embedding_gain),
                          part(p, slots_.embedding_bias), norm_epsilon, identity_,
                          identity_moments_, run);
  }
  embed_values(p, run);
  layers::add<T>(identity_, start_, run);
  dropout_(std::span<T>(start_), 0, run);
}

template <class T>
std::span<const T> Network<T>::forward(std::span<const T> p, const Tokens& tokens,
                                       std::int64_t step, bool keep, Run& run) {
  tokens_ = &tokens;
  dropout_ = {options_.dropout, step};
  rows_.clear();
  cell_rows_.clear();
  d_identity_.clear();
  sequence_.tokens = tokens.size();
  sequence_.feature = tokens.feature;
  sequence_.groups.clear();
  cls_.clear();
  for (std::int64_t c = 0; c < tokens.cells(); ++c) {
    const std::int64_t first = tokens.start[at(c)], length = tokens.start[at(c + 1)] - first;
    cls_.push_back(static_cast<std::int32_t>(first));
    if (sequence_.groups.empty() || sequence_.groups.back().length != length)
      sequence_.groups.push_back({first, 0, length});
    ++sequence_.groups.back().cells;
  }
  turn_by(p, run);
  sequence_.pair_bias = pair_bias_.get();
  if (pair_bias_ != nullptr) pair_bias_->begin(p, run);
  embed(p, run);
  // Without a backward pass all blocks share a state, which leaves its rows in out_.
  states_.resize(keep ? blocks_.size() : std::min<std::size_t>(blocks_.size(), 1));
  std::span<const T> x = start_;
  for (std::size_t b = 0; b < blocks_.size(); ++b) {
    BlockState<T>& state = states_[keep ? b : 0];
    blocks_[b].forward(p, sequence_, x, dropout_, state, run);
    if (!keep) out_.swap(state.out);
    x = keep ? state.out : out_;
  }
  if (x.data() != out_.data()) assign(out_, x, run);
  if (options_.norm_order == NormOrder::pre) {
    out_moments_.resize(at(tokens.size()));
    layers::layer_norm<T>(out_, {}, part(p, slots_.norm_gain), part(p, slots_.norm_bias),
                          norm_epsilon, out_, out_moments_, run);
  }
  return out_;
}

template <class T>
void Network<T>::for_weights(
    std::int64_t block,
    const std::function<void(std::int64_t, std::int64_t, std::span<const T>)>& body,
    Run& run) const {
  std::int64_t cell = 0;
  std::vector<T> weights;
  for (auto group : sequence_.groups) {
    const std::int64_t length = group.length, end = cell + group.cells;
    weights.resize(at(options_.heads * length * length));
    for (group.cells = 1; cell < end; ++cell, group.first += length) {
      blocks_[at(block)].for_calls(
          sequence_, group, states_[at(block)],
          [&](const AttentionInput<T>& in, std::int64_t) {
            attention_scores<T>(in, weights.data(), run);
          },
          run);
      run.parallel_for(options_.heads * length, [&](std::int64_t row) {
        const std::span<T> w = std::span(weights).subspan(at(row * length), at(length));
        const T top = *std::ranges::max_element(w);
        T sum = 0;
        for (T& v : w) sum += v = std::exp(v - top);
        for (T& v : w) v /= sum;
      });
      for (std::int64_t h = 0; h < options_.heads; ++h)
        body(cell, h,
             std::span<const T>(weights).subspan(at(h * length * length), at(length * length)));
    }
  }
}

template <class T>
std::span<const T> Network<T>::predict(std::span<const T> p, std::span<const std::int32_t> rows,
                                       Run& run) {
  rows_.assign(rows.begin(), rows.end());
  const std::int64_t n = std::ssize(rows), layers = options_.decoder_layers;
  decoded_.resize(at(layers + 1));
  active_.resize(at(layers + 1));
  assign_zeros(active_[0], n * options_.width, run);
  layers::add_rows<T>(out_, options_.width, rows_, active_[0], run);
  for (std::int64_t l = 0; l <= layers; ++l) {
    resize(decoded_[at(l)], n * slots_.decoder_weight[at(l)].rows, run);
    layers::linear<T>(active_[at(l)], n, part(p, slots_.decoder_weight[at(l)]),
                      part(p, slots_.decoder_bias[at(l)]), decoded_[at(l)], run);
    if (l == layers) break;
    resize(active_[at(l + 1)], std::ssize(decoded_[at(l)]), run);
    layers::activate<T>(hidden_activation, decoded_[at(l)], active_[at(l + 1)], run);
  }
  return decoded_.back();
}

template <class T>
std::span<const T> Network<T>::predict_by_cell(std::span<const T> p,
                                               std::span<const std::int32_t> rows, Run& run) {
  const std::int64_t n = std::ssize(rows), width = options_.width;
  cell_rows_.assign(rows.begin(), rows.end());
  cell_of_.clear();
  for (const std::int32_t row : rows) {
    const auto next = std::ranges::upper_bound(tokens_->start, row);
    cell_of_.push_back(cls_[at(next - tokens_->start.begin() - 1)]);
  }
  for (std::vector<T>* x : {&query_in_, &cell_}) assign_zeros(*x, n * width, run);
  for (std::vector<T>* x : {&query_, &query_active_, &key_}) resize(*x, n * width, run);
  layers::add_rows<T>(identity_, width, cell_rows_, query_in_, run);
  layers::add_rows<T>(out_, width, cell_of_, cell_, run);
  layers::linear<T>(query_in_, n, part(p, slots_.query_weight), part(p, slots_.query_bias), query_,
                    run);
  layers::activate<T>(layers::Activation::sigmoid, query_, query_active_, run);
  layers::linear<T>(query_active_, n, part(p, slots_.cell_weight), {}, key_, run);
  by_cell_.resize(at(n));
  for (std::int64_t i = 0; i < n; ++i) {
    T sum = 0;
    for (std::int64_t j = i * width; j < (i + 1) * width; ++j) sum += key_[at(j)] * cell_[at(j)];
    by_cell_[at(i)] = sum;
  }
  return by_cell_;
}

template <class T>
void Network<T>::backward(std::span<const T> p, std::span<const T> d_predicted,
                          std::span<const T> d_by_cell, std::span<T> gradient, Run& run) {
  using layers::Into;
  const std::int64_t width = options_.width;
  const auto slope = [&](const Slot& slot) { return part(gradient, slot); };
  const std::span<T> d = no_slopes(run);
  if (!d_predicted.empty()) {
    const std::int64_t n = std::ssize(rows_);
    std::vector<T> d_out, d_in;
    assign(d_out, d_predicted, run);
    for (std::int64_t l = options_.decoder_layers; l >= 0; --l) {
      resize(d_in, std::ssize(active_[at(l)]), run);
      layers::linear_backward<T>(active_[at(l)], n, part(p, slots_.decoder_weight[at(l)]), d_out,
                                 d_in, slope(slots_.decoder_weight[at(l)]),
                                 slope(slots_.decoder_bias[at(l)]), run);
      if (l > 0)
        layers::activate_backward<T>(hidden_activation, decoded_[at(l - 1)], d_in, d_in, run);
      d_out.swap(d_in);
    }
    layers::add_rows_backward<T>(d_out, width, rows_, d, run);
  }
  if (!d_by_cell.empty()) {
    const std::int64_t n = std::ssize(cell_rows_);
    std::vector<T> d_key, d_cell, d_query;
    for (std::vector<T>* x : {&d_key, &d_cell, &d_query}) resize(*x, n * width, run);
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = i * width; j < (i + 1) * width; ++j) {
        d_key[at(j)] = d_by_cell[at(i)] * cell_[at(j)];
        d_cell[at(j)] = d_by_cell[at(i)] * key_[at(j)];
      }
    layers::add_rows_backward<T>(d_cell, width, cell_of_, d, run);
    layers::linear_backward<T>(query_active_, n, part(p, slots_.cell_weight), d_key, d_query,
                               slope(slots_.cell_weight), {}, run);
    layers::activate_backward<T>(layers::Activation::sigmoid, query_, d_query, d_query, run);
    layers::linear_backward<T>(query_in_, n, part(p, slots_.query_weight), d_query, d_key,
                               slope(slots_.query_weight), slope(slots_.query_bias), run);
    resize(d_identity_, std::ssize(identity_), run);
    layers::add_rows_backward<T>(d_key, width, cell_rows_, d_identity_, run);
  }
  backward_rows(p, 0, gradient, run);
}

template <class T>
std::span<T> Network<T>::no_slopes(Run& run) {
  assign_zeros(slopes_.rows, std::ssize(out_), run);
  return slopes_.rows;
}

template <class T>
void Network<T>::backward_rows(std::span<const T> p, std::int64_t first_block,
                               std::span<T> gradient, Run& run) {
  std::vector<T>& d = slopes_.rows;
  const auto slope = [&](const Slot& slot) { return part(gradient, slot); };
  const std::vector<T>& last = blocks_.empty() ? start_ : states_.back().out;
  if (options_.norm_order == NormOrder::pre)
    layers::layer_norm_backward<T>(last, part(p, slots_.norm_gain), out_moments_, d, d,
                                   slope(slots_.norm_gain), slope(slots_.norm_bias), run);
  const std::span<T> d_factor = slope(slots_.angle_factor);
  std::vector<T> d_angle;
  resize(d_angle, d_factor.empty() ? 0 : tokens_->size() * columns_, run);
  for (std::size_t b = blocks_.size(); b-- > at(first_block);) {
    blocks_[b].backward(p, sequence_, b == 0 ? start_ : states_[b - 1].out, dropout_, states_[b],
                        slopes_, gradient, d_angle, run);
    const std::int64_t of_head = d_factor.empty() ? 1 : columns_ / options_.heads;
    for (std::size_t i = 0; i < d_angle.size(); ++i) {
      const std::int64_t token = static_cast<std::int64_t>(i) / columns_,
                         t = static_cast<std::int64_t>(i) % columns_;
      const std::int32_t feature = tokens_->feature[at(token)];
      if (feature >= 0)
        d_factor[at(t / of_head)] += d_angle[i] * positions_[at(feature * columns_ + t)];
    }
  }
  if (first_block == 0) embed_backward(p, gradient, run);
}

template <class T>
void Network<T>::release(Run& run) {
  for (; !states_.empty(); states_.pop_back()) run.poll();
  slopes_ = {};
  run.poll();
}

template <class T>
void Network<T>::embed_backward(std::span<const T> p, std::span<T> gradient, Run& run) {
  std::vector<T>& d = slopes_.rows;
  const std::int64_t width = options_.width;
  const auto slope = [&](const Slot& slot) { return part(gradient, slot); };
  dropout_(std::span<T>(d), 0, run);
  embed_values_backward(p, gradient, run);
  if (!d_identity_.empty()) layers::add<T>(d_identity_, d, run);
  // Now that of the features' part.
  if (options_.embedding_norm)
    layers::layer_norm_backward<T>(identity_sum_, part(p, slots_.embedding_gain), identity_moments_,
                                   d, d, slope(slots_.embedding_gain), slope(slots_.embedding_bias),
                                   run);
  layers::add_rows_backward<T>(d, width, row_, slope(slots_.embedding), run);
  if (options_.positions == PositionKind::projected) {
    std::vector<T> d_projected;
    resize(d_projected, std::ssize(projected_), run);
    layers::add_rows_backward<T>(d, width, tokens_->feature, d_projected, run);
    layers::linear_backward<T>(positions_, std::ssize(backbone_.features),
                               part(p, slots_.projection), d_projected, {},
                               slope(slots_.projection), {}, run);
  }
}

template <class T>
void Network<T>::embed_values_backward(std::span<const T> p, std::span<T> gradient, Run& run) {
  const std::vector<T>& d = slopes_.rows;
  const std::int64_t n = tokens_->size(), width = options_.width;
  const auto slope = [&](const Slot& slot) { return part(gradient, slot); };
  const bool table = options_.value_embedding == ValueEmbedding::table;
  if (!table) layers::add_rows_backward<T>(d, width, hidden_, slope(slots_.hidden), run);
  std::vector<T>& d_value = slopes_.branch;
  assign<T>(d_value, d, run);
  if (options_.embedding_norm)
    layers::layer_norm_backward<T>(value_sum_, part(p, slots_.value_gain), value_moments_, d_value,
                                   d_value, slope(slots_.value_gain), slope(slots_.value_bias),
                                   run);
  if (table) {
    layers::add_rows_backward<T>(d_value, width, bin_, slope(slots_.value_table), run);
    return;
  }
  std::vector<T>& d_active = slopes_.hidden;
  resize(d_active, std::ssize(d_value), run);
  layers::linear_backward<T>(value1_active_, n, part(p, slots_.value2_weight), d_value, d_active,
                             slope(slots_.value2_weight), slope(slots_.value2_bias), run);
  layers::activate_backward<T>(layers::Activation::relu, value1_, d_active, d_active, run);
  layers::linear_backward<T>(number_, n, part(p, slots_.value1_weight), d_active, {},
                             slope(slots_.value1_weight), slope(slots_.value1_bias), run);
}

template class Network<float>;
template class Network<double>;

} // namespace cape
