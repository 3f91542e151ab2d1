module;
#include "internal/message.hpp"
#include "internal/sizes.hpp"
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <typeinfo>
#include <utility>
#include <variant>
#include <vector>
module cape.transformer;
#include "transformer/parameters.hpp"
#include "transformer/tensor_source.hpp"

namespace cape {
namespace {

// Puts tensors of public code where ours stand.
class Loader {
public:
  Loader(TensorSource& source, std::vector<float>& parameters)
      : source_(source), parameters_(parameters) {}

  void matrix(const Slot& slot, const std::string& name) {
    rows(slot, source_.take(name, {slot.rows, slot.columns}));
  }
  void vector(const Slot& slot, const std::string& name) {
    rows(slot, source_.take(name, {slot.columns}));
  }
  void linear(const Slot& weight, const Slot& bias, const std::string& name) {
    matrix(weight, name + ".weight");
    vector(bias, name + ".bias");
  }
  void norm(const Slot& gain, const Slot& bias, const std::string& name) {
    vector(gain, name + ".weight");
    vector(bias, name + ".bias");
  }
  /// One row or more, from that of the slot on.
  void rows(const Slot& slot, std::span<const float> values, std::int64_t first = 0) {
    std::ranges::copy(values, part<float>(parameters_, slot).begin() + first * slot.columns);
  }

private:
  void rows(const Slot& slot, const Tensor& tensor) { rows(slot, tensor.values); }

  TensorSource& source_;
  std::vector<float>& parameters_;
};

std::int64_t count_blocks(const TensorSource& source, std::string_view before,
                          std::string_view behind) {
  std::int64_t n = 0;
  while (source.has(message(before, n, behind))) ++n;
  if (n == 0) source.refuse("there is no tensor \"", before, 0, behind, "\"");
  return n;
}

// Row i of a tensor.
std::span<const float> row(const Tensor& tensor, std::int64_t i) {
  const std::int64_t columns = tensor.shape[1];
  return std::span(tensor.values).subspan(at(i * columns), at(columns));
}

// What is another head's, or of a task that is not ours.
bool is_aside(std::string_view name) {
  return std::ranges::any_of(std::array{"cls_decoder.", "decoder.zero_logit.",
                                        "mvc_decoder.W_zero_logit.", "grad_reverse_discriminator.",
                                        "flag_encoder."},
                             [&](const char* prefix) { return name.starts_with(prefix); });
}

// The options that a state of scGPT has, the others as they are.
BackboneOptions options_of(const TensorSource& source, BackboneOptions o) {
  o.width = source.sides("encoder.embedding.weight").second;
  o.blocks = count_blocks(source, "transformer_encoder.layers.", ".linear1.weight");
  o.feed_forward = source.sides("transformer_encoder.layers.0.linear1.weight").first;
  o.activation = layers::Activation::relu;
  o.attention = AttentionKind::exact;
  o.attention_bias = true;
  o.embedding_norm = true;
  o.decoder_layers = 2;
  o.loss = ValueLoss::square;
  o.positions = PositionKind::trained;
  o.value_embedding = ValueEmbedding::network;
  if (source.has("value_encoder.embedding.weight")) {
    o.value_embedding = ValueEmbedding::table;
    // Behind the bins stand the rows of padding and of hidden values.
    const std::int64_t n = source.sides("value_encoder.embedding.weight").first;
    if (n < 4)
      source.refuse("tensor \"value_encoder.embedding.weight\" has ", n,
                    " rows; there must be two of bins at least, one of padding and one of hidden "
                    "values");
    o.bins = n - 2;
  }
  return o;
}

} // namespace

Backbone load_scgpt(const Tensors& state, const std::vector<std::string>& vocabulary,
                    const BackboneOptions& options, Run& run) {
  TensorSource source(state, "these tensors are no state of scGPT", run);
  if (source.has("batch_encoder.embedding.weight"))
    throw Error(Status::unsupported,
                "the state has embeddings of batches (\"batch_encoder.embedding.weight\"); models "
                "with batch labels are not supported");
  std::vector<std::string> features;
  std::vector<std::int64_t> rows; // of the vocabulary: <cls>, then the features
  rows.push_back(std::ranges::find(vocabulary, "<cls>") - vocabulary.begin());
  if (rows[0] == std::ssize(vocabulary))
    throw Error(Status::invalid_argument, "the vocabulary has no \"<cls>\"");
  for (std::int64_t i = 0; i < std::ssize(vocabulary); ++i)
    if (const std::string& name = vocabulary[at(i)];
        name != "<cls>" && name != "<pad>" && name != "<eoc>") {
      features.push_back(name);
      rows.push_back(i);
    }
  Backbone b = make_backbone(std::move(features), {}, options_of(source, options), run);
  const Slots slots(b);
  Loader to(source, b.parameters);
  const Tensor& embedding =
      source.take("encoder.embedding.weight", {std::ssize(vocabulary), b.options.width});
  for (std::int64_t i = 0; i < std::ssize(rows); ++i)
    to.rows(slots.embedding, row(embedding, rows[at(i)]), i);
  to.norm(slots.embedding_gain, slots.embedding_bias, "encoder.enc_norm");
  if (b.options.value_embedding == ValueEmbedding::table) {
    const std::int64_t bins = b.options.bins;
    const Tensor& table =
        source.take("value_encoder.embedding.weight", {bins + 2, b.options.width});
    for (std::int64_t i = 0; i < bins; ++i) to.rows(slots.value_table, row(table, i), i);
    to.rows(slots.value_table, row(table, bins + 1), bins);
    to.norm(slots.value_gain, slots.value_bias, "value_encoder.enc_norm");
  } else {
    to.linear(slots.value1_weight, slots.value1_bias, "value_encoder.linear1");
    to.linear(slots.value2_weight, slots.value2_bias, "value_encoder.linear2");
    to.norm(slots.value_gain, slots.value_bias, "value_encoder.norm");
  }
  for (std::int64_t i = 0; i < b.options.blocks; ++i) {
    const BlockSlots& block = slots.blocks[at(i)];
    const std::string name = message("transformer_encoder.layers.", i, "."),
                      attention = name + "self_attn.";
    if (source.has(attention + "in_proj_weight")) { // PyTorch's layers
      to.matrix(block.in_weight, attention + "in_proj_weight");
      to.vector(block.in_bias, attention + "in_proj_bias");
    } else // flash layers
      to.linear(block.in_weight, block.in_bias, attention + "Wqkv");
    to.linear(block.out_weight, block.out_bias, attention + "out_proj");
    to.linear(block.ff1_weight, block.ff1_bias, name + "linear1");
    to.linear(block.ff2_weight, block.ff2_bias, name + "linear2");
    to.norm(block.norm1_gain, block.norm1_bias, name + "norm1");
    to.norm(block.norm2_gain, block.norm2_bias, name + "norm2");
  }
  for (std::int64_t i = 0; i <= b.options.decoder_layers; ++i)
    to.linear(slots.decoder_weight[at(i)], slots.decoder_bias[at(i)],
              message("decoder.fc.", 2 * i));
  if (source.has("mvc_decoder.W.weight")) {
    to.linear(slots.query_weight, slots.query_bias, "mvc_decoder.gene2query");
    to.matrix(slots.cell_weight, "mvc_decoder.W.weight");
  }
  source.check_empty(is_aside);
  return b;
}

Backbone load_scbert(const Tensors& state, const std::vector<std::string>& features,
                     const BackboneOptions& options, Run& run) {
  TensorSource source(state, "these tensors are no state of scBERT", run);
  const bool fixed = options.positions == PositionKind::fixed;
  if (!fixed && options.positions != PositionKind::trained)
    throw Error(Status::invalid_argument,
                "model.positions of a state of scBERT must be fixed or trained");
  const std::int64_t n = std::ssize(features);
  const Tensor& vectors = source.take("pos_emb.emb.weight", {n + 1, any_side});
  const std::string first = "performer.net.layers.0.0.fn.";
  BackboneOptions o = options;
  o.width = vectors.shape[1];
  o.blocks = count_blocks(source, "performer.net.layers.", ".0.fn.to_q.weight");
  const std::int64_t inner = source.sides(first + "to_q.weight").first;
  if (inner % o.heads != 0)
    throw Error(Status::invalid_argument,
                message("the heads of the state are ", inner, " wide together and model.heads is ",
                        o.heads, "; that must divide it"));
  o.head_width = inner / o.heads;
  o.feed_forward = source.sides("performer.net.layers.0.1.fn.fn.w1.weight").first;
  o.random_features = source.sides(first + "fast_attention.projection_matrix").first;
  const std::int64_t classes = source.sides("token_emb.weight").first;
  if (classes < 3)
    source.refuse("tensor \"token_emb.weight\" has ", classes,
                  " rows; there must be two of bins at least and one of hidden values");
  o.bins = classes - 1; // the last one is of hidden values
  o.norm_order = NormOrder::pre;
  o.activation = layers::Activation::gelu;
  o.attention = AttentionKind::performer;
  o.attention_bias = false;
  o.values = Values::fixed_bins;
  o.value_embedding = ValueEmbedding::table;
  o.embedding_norm = false;
  o.decoder_layers = 0;
  o.loss = ValueLoss::cross_entropy;
  Matrix positions;
  if (fixed) {
    positions = Matrix(n, o.width, run);
    for (std::int64_t i = 0; i < n; ++i)
      for (std::int64_t j = 0; j < o.width; ++j)
        positions(i, j) = static_cast<double>(row(vectors, i)[at(j)]);
  }
  Backbone b = make_backbone(features, std::move(positions), o, run);
  const Slots slots(b);
  Loader to(source, b.parameters);
  to.rows(slots.embedding, row(vectors, n)); // the last token's, which has the place of <cls>
  if (!fixed) to.rows(slots.embedding, std::span(vectors.values).first(at(n * o.width)), 1);
  to.matrix(slots.value_table, "token_emb.weight");
  for (std::int64_t i = 0; i < o.blocks; ++i) {
    const BlockSlots& block = slots.blocks[at(i)];
    const std::string name = message("performer.net.layers.", i, "."), attention = name + "0.fn.";
    to.norm(block.norm1_gain, block.norm1_bias, name + "0.norm");
    std::int64_t part = 0;
    for (const char* which : {"to_q", "to_k", "to_v"})
      to.rows(block.in_weight, source.take(attention + which + ".weight", {inner, o.width}).values,
              inner * part++);
    to.matrix(block.directions, attention + "fast_attention.projection_matrix");
    to.linear(block.out_weight, block.out_bias, attention + "to_out");
    to.norm(block.norm2_gain, block.norm2_bias, name + "1.norm");
    to.linear(block.ff1_weight, block.ff1_bias, name + "1.fn.fn.w1");
    to.linear(block.ff2_weight, block.ff2_bias, name + "1.fn.fn.w2");
  }
  to.norm(slots.norm_gain, slots.norm_bias, "norm");
  const auto of_bins = [&](const Tensor& tensor, std::int64_t columns) {
    return std::span(tensor.values).first(at(o.bins * columns));
  };
  to.rows(slots.decoder_weight[0],
          of_bins(source.take("to_out.weight", {classes, o.width}), o.width));
  to.rows(slots.decoder_bias[0], of_bins(source.take("to_out.bias", {classes}), 1));
  source.check_empty(
      [](std::string_view name) { return name.ends_with("calls_since_last_redraw"); });
  return b;
}

} // namespace cape
