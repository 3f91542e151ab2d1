module;
#include "internal/message.hpp"
#include "internal/sizes.hpp"
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <new>
#include <numbers>
#include <span>
#include <string>
#include <string_view>
#include <typeinfo>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>
module cape.transformer;
import cape.attention;
#include "transformer/parameters.hpp"

namespace cape {
namespace {

void check_fit(const BackboneOptions& o, std::int64_t position_columns) {
  const auto wrong = [](Status status, const auto&... text) {
    throw Error(status, message(text...));
  };
  if (o.head_width < 0 && o.width % o.heads != 0)
    wrong(Status::invalid_argument, "model.width is ", o.width, " and model.heads ", o.heads,
          "; the width must be a multiple of the heads, or model.head_width given");
  if (o.context_blocks > o.blocks)
    wrong(Status::invalid_argument, "model.context_blocks is ", o.context_blocks, "; there are ",
          o.blocks, " blocks (model.blocks)");
  const bool classes = o.values != Values::continuous;
  if (o.value_embedding == ValueEmbedding::table && !classes)
    wrong(Status::invalid_argument,
          "model.value_embedding is table, which needs bins; model.values is continuous");
  if (o.loss == ValueLoss::cross_entropy && !classes)
    wrong(Status::invalid_argument,
          "model.loss is cross_entropy, which needs bins; model.values is continuous");
  if (has_angles(o.positions)) {
    const std::int64_t pairs = head_width(o) / 2, each = position_columns / o.heads;
    if (head_width(o) % 2 != 0)
      wrong(Status::dim_mismatch, "a head is ", head_width(o), " wide (model.head_width, or ",
            "model.width ", o.width, " / model.heads ", o.heads,
            "), which splits a pair that an angle turns; it must be even");
    if (position_columns < 1 || position_columns % o.heads != 0 || each > pairs)
      wrong(Status::dim_mismatch, "there are ", position_columns, " angles of a feature for ",
            o.heads, " heads of ", pairs, " pairs; it must be a multiple of the heads, at most ",
            o.heads * pairs);
  }
  if ((is_relative(o.positions) || has_distances(o.positions)) &&
      o.attention != AttentionKind::exact)
    wrong(Status::unsupported, "model.positions change the scores of pairs, which ",
          "model.attention exact alone has");
  if (has_distances(o.positions) && position_columns < 1)
    wrong(Status::dim_mismatch, "positions have no columns; points must have one at least");
  if (o.positions == PositionKind::fixed && position_columns != o.width)
    wrong(Status::dim_mismatch, "positions have ", position_columns,
          " columns; fixed ones must have those of the model, ", o.width,
          " (model.positions projected takes any number)");
  if (o.positions == PositionKind::projected && position_columns < 1)
    wrong(Status::dim_mismatch, "positions have no columns; projected ones must have one at least");
}

} // namespace

Slot Slots::add(std::string name, std::int64_t rows, std::int64_t columns) {
  const Slot slot{std::move(name), size, rows, columns};
  size += checked_size(rows, columns, slot.name);
  all.push_back(slot);
  return slot;
}

void Slots::add_norm(const std::string& name, std::int64_t width, Slot& gain, Slot& bias) {
  gain = add(name + ".gain", 1, width);
  bias = add(name + ".bias", 1, width);
}

Slots::Slots(const BackboneOptions& options, std::int64_t features, std::int64_t position_columns,
             const Head& head) {
  BackboneOptions o = options;
  check_options(fields(o));
  if (features < 1)
    throw Error(Status::invalid_argument,
                message("a model of ", features, " features; there must be one at least"));
  check_fit(o, position_columns);
  const std::int64_t d = o.width, inner = inner_width(o);
  embedding = add("embedding", 1 + (has_trained_vectors(o.positions) ? features : 0), d);
  if (o.positions == PositionKind::projected)
    projection = add("positions.weight", d, position_columns);
  if (has_angles(o.positions) && o.learn_angle_factor)
    angle_factor = add("positions.factor", 1, o.heads);
  if (is_relative(o.positions)) {
    relative_content = add("positions.content", 1, d);
    relative_position = add("positions.position", 1, d);
  }
  if (o.embedding_norm) add_norm("embedding.norm", d, embedding_gain, embedding_bias);
  if (o.value_embedding == ValueEmbedding::table)
    value_table = add("value.table", o.bins + 1, d);
  else {
    value1_weight = add("value.1.weight", d, 1);
    value1_bias = add("value.1.bias", 1, d);
    value2_weight = add("value.2.weight", d, d);
    value2_bias = add("value.2.bias", 1, d);
    hidden = add("value.hidden", 1, d);
  }
  if (o.embedding_norm) add_norm("value.norm", d, value_gain, value_bias);
  for (std::int64_t b = 0; b < o.blocks; ++b) {
    const std::string name = message("blocks.", b, ".");
    BlockSlots& s = blocks.emplace_back();
    add_norm(name + "norm1", d, s.norm1_gain, s.norm1_bias);
    s.in_weight = add(name + "attention.in.weight", 3 * inner, d);
    if (o.attention_bias) s.in_bias = add(name + "attention.in.bias", 1, 3 * inner);
    if (o.attention != AttentionKind::exact)
      s.directions = add(name + "attention.directions", o.random_features, head_width(o));
    const bool positions = b >= o.context_blocks;
    if (positions && is_relative(o.positions))
      s.relative_weight = add(name + "attention.relative.weight", inner, d);
    if (positions && has_distances(o.positions))
      s.distance_factor = add(name + "attention.distance.log_factor", 1, o.heads);
    s.out_weight = add(name + "attention.out.weight", d, inner);
    s.out_bias = add(name + "attention.out.bias", 1, d);
    add_norm(name + "norm2", d, s.norm2_gain, s.norm2_bias);
    s.ff1_weight = add(name + "feed_forward.1.weight", o.feed_forward, d);
    s.ff1_bias = add(name + "feed_forward.1.bias", 1, o.feed_forward);
    s.ff2_weight = add(name + "feed_forward.2.weight", d, o.feed_forward);
    s.ff2_bias = add(name + "feed_forward.2.bias", 1, d);
  }
  if (o.norm_order == NormOrder::pre) add_norm("norm", d, norm_gain, norm_bias);
  for (std::int64_t l = 0; l <= o.decoder_layers; ++l) {
    const std::int64_t classes = o.loss == ValueLoss::cross_entropy ? o.bins : 1;
    const std::int64_t out = l < o.decoder_layers ? d : classes;
    decoder_weight.push_back(add(message("decoder.", l + 1, ".weight"), out, d));
    decoder_bias.push_back(add(message("decoder.", l + 1, ".bias"), 1, out));
  }
  if (o.loss == ValueLoss::square) {
    query_weight = add("cell.query.weight", d, d);
    query_bias = add("cell.query.bias", 1, d);
    cell_weight = add("cell.weight", d, d);
  }
  if (head.kind == HeadKind::none) return;
  std::int64_t in = head.pooling == Pooling::cls_mean ? 2 * d : d;
  for (std::int64_t l = 0; l <= head.hidden_layers; ++l) {
    const std::int64_t out = l < head.hidden_layers ? d : std::ssize(head.names);
    head_weight.push_back(add(message("head.", l + 1, ".weight"), out, in));
    head_bias.push_back(add(message("head.", l + 1, ".bias"), 1, out));
    in = d;
  }
}

void check_parameters(std::size_t given, const Slots& slots) {
  if (static_cast<std::int64_t>(given) != slots.size)
    throw Error(Status::dim_mismatch,
                message("there are ", given, " parameters; the model's options say ", slots.size));
}

std::vector<Slot> layout(const BackboneOptions& options, std::int64_t features,
                         std::int64_t position_columns) {
  return Slots(options, features, position_columns, {}).all;
}

namespace {

void check_names(const std::vector<std::string>& names, const char* one, const char* many) {
  std::unordered_set<std::string_view> seen;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!is_utf8(names[i]))
      throw Error(Status::invalid_argument,
                  message("the name of ", one, " ", i, " (counted from 0) is not UTF-8"));
    if (!seen.insert(names[i]).second)
      throw Error(Status::invalid_argument,
                  message("two ", many, " are called \"", names[i], "\"; names must differ"));
  }
}

void check_head(const Head& head) {
  if (head.kind == HeadKind::none) return;
  const bool classes = head.kind == HeadKind::classes;
  const char* many = classes ? "classes" : "numbers";
  const std::size_t n = head.names.size(), least = classes ? 2 : 1;
  if (n < least)
    throw Error(Status::invalid_argument,
                message("there are ", n, " ", many, "; there must be at least ", least));
  check_names(head.names, classes ? "class" : "number", many);
  if (head.hidden_layers < 0 || head.hidden_layers > 16)
    throw Error(Status::invalid_argument,
                message("a head has ", head.hidden_layers, " hidden layers; it must be 0 to 16"));
  const std::size_t scales = classes ? 0 : n;
  if (head.mean.size() != scales || head.sd.size() != scales)
    throw Error(Status::dim_mismatch,
                message("a head has ", head.mean.size(), " means and ", head.sd.size(),
                        " deviations; there must be ", scales));
  for (std::size_t i = 0; i < scales; ++i)
    if (!std::isfinite(head.mean[i]) || !(head.sd[i] > 0) || !std::isfinite(head.sd[i]))
      throw Error(Status::invalid_argument,
                  message("number ", i, " of a head has mean ", head.mean[i], " and deviation ",
                          head.sd[i], "; they must be finite, and the deviation above 0"));
}

} // namespace

std::vector<Slot> layout(const Backbone& backbone) { return checked_slots(backbone).all; }

Slots checked_slots(const Backbone& backbone) {
  const Matrix& positions = backbone.positions;
  const BackboneOptions& options = backbone.options;
  check_names(backbone.features, "feature", "features");
  const std::int64_t m = std::ssize(backbone.features);
  if (has_matrix(options.positions) != !positions.empty() ||
      (!positions.empty() && positions.rows() != m))
    throw Error(Status::dim_mismatch,
                message("positions are ", positions.rows(), " x ", positions.cols(), "; ",
                        has_matrix(options.positions)
                            ? message("there must be a row for each of the ", m, " features")
                            : std::string("model.positions takes none")));
  check_finite(positions, "positions");
  if (has_distances(options.positions))
    for (std::int64_t i = 0; i < m; ++i) {
      double square = 0;
      for (std::int64_t j = 0; j < positions.cols(); ++j)
        square += positions(i, j) * positions(i, j);
      if (!(square < 1))
        throw Error(Status::invalid_argument,
                    message("row ", i, " of positions (counted from 0) has length ",
                            std::sqrt(square), " in float; points of the ball are shorter than 1"));
    }
  check_head(backbone.head);
  return Slots(backbone);
}

Backbone make_backbone(std::vector<std::string> features, Matrix positions,
                       const BackboneOptions& options, Run& run) {
  // As they are saved, so that a model is the same after that.
  for (std::int64_t i = 0; i < positions.size(); ++i)
    positions.data()[i] = static_cast<float>(positions.data()[i]);
  Backbone backbone{options, std::move(features), std::move(positions), {}, {}};
  const Slots slots = checked_slots(backbone);
  check_memory(4.0 * static_cast<double>(slots.size),
               message("a model of ", slots.size, " parameters"));
  resize(backbone.parameters, slots.size, run);
  for (const Slot& slot : slots.all)
    start_values(slot, part<float>(backbone.parameters, slot), run);
  return backbone;
}

void start_values(const Slot& slot, std::span<float> values, Run& run) {
  run.poll();
  const auto ends_with = [&](const char* end) { return slot.name.ends_with(end); };
  Rng rng(run.seed(), {hash("transformer.start"), hash(slot.name)});
  if (ends_with(".gain") || ends_with(".factor"))
    std::ranges::fill(values, 1.0f);
  else if (ends_with(".log_factor")) // 2^-(8 h / heads), h from 1: ALiBi's
    for (std::int64_t h = 0; h < slot.columns; ++h)
      values[at(h)] = static_cast<float>(-8.0 * static_cast<double>(h + 1) /
                                         static_cast<double>(slot.columns) * std::numbers::ln2);
  else if (ends_with("attention.directions")) {
    const std::vector<float> directions =
        attention_directions<float>(slot.rows, slot.columns, hash(slot.name), run);
    std::ranges::copy(directions, values.begin());
  } else if (is_weight(slot) || is_table(slot)) {
    const double reach = is_weight(slot) ? 1 / std::sqrt(static_cast<double>(slot.columns)) : 0.1;
    for (float& v : values) v = static_cast<float>(rng.uniform(-reach, reach));
  }
}

} // namespace cape
