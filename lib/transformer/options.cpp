module;
#include "internal/message.hpp"
#include <cmath>
#include <cstdint>
#include <functional>
#include <numbers>
#include <string>
#include <string_view>
#include <variant>
#include <vector>
module cape.transformer;

namespace cape {
namespace {

constexpr std::string_view section = "docs/method.md, section 6";

// Keys of the same settings of two trainings.
struct TrainingKeys {
  std::string_view epochs, batch_cells, length, learning_rate, warm_up, weight_decay, clip,
      validation, patience;
};

OptionFields training_fields(TrainingOptions& o, const TrainingKeys& keys) {
  return {
      {.name = keys.epochs,
       .value = &o.epochs,
       .min = 1,
       .max = 1e6,
       .doc = "Passes over the training cells, at most",
       .source = section},
      {.name = keys.batch_cells,
       .value = &o.batch_cells,
       .min = 1,
       .max = 1e6,
       .doc = "Cells of a step",
       .source = section},
      {.name = keys.length,
       .value = &o.length,
       .min = 1,
       .max = 1e6,
       .doc = "Tokens of a cell in a step, at most; features are drawn anew each time",
       .source = section},
      {.name = keys.learning_rate,
       .value = &o.learning_rate,
       .min = 0,
       .max = 1,
       .open_min = true,
       .doc = "Largest learning rate of AdamW",
       .source = section},
      {.name = keys.warm_up,
       .value = &o.warm_up,
       .min = 0,
       .max = 1,
       .open_max = true,
       .doc = "Share of the steps in which the learning rate rises; then it falls along a cosine",
       .source = section},
      {.name = keys.weight_decay,
       .value = &o.weight_decay,
       .min = 0,
       .max = 10,
       .doc = "Decoupled decay of weights; norms and biases have none",
       .source = section},
      {.name = keys.clip,
       .value = &o.clip,
       .min = 0,
       .max = 1e6,
       .open_min = true,
       .doc = "Longest gradient",
       .source = section},
      {.name = keys.validation,
       .value = &o.validation,
       .min = 0,
       .max = 0.9,
       .doc = "Share of the cells that are not trained on and tell when to stop",
       .source = section},
      {.name = keys.patience,
       .value = &o.patience,
       .min = 1,
       .max = 1e6,
       .doc = "Epochs without a better validation loss before training ends",
       .source = section},
  };
}

} // namespace

OptionFields fields(BackboneOptions& o) {
  constexpr std::string_view sizes = "paper, supp_implement; docs/method.md, section 6";
  return {
      {.name = "model.width",
       .value = &o.width,
       .min = 2,
       .max = 16384,
       .doc = "Width D of a token's row",
       .source = sizes},
      {.name = "model.heads",
       .value = &o.heads,
       .min = 1,
       .max = 1024,
       .doc = "Heads of attention; the width is a multiple of them",
       .source = sizes},
      {.name = "model.head_width",
       .value = &o.head_width,
       .min = 1,
       .max = 4096,
       .automatic = true,
       .doc = "Width of a head's queries, keys and values (scBERT's code: 64); -1: the model's "
              "width over the heads",
       .source = section},
      {.name = "model.blocks",
       .value = &o.blocks,
       .min = 1,
       .max = 256,
       .doc = "Blocks of attention and feed-forward layer",
       .source = sizes},
      {.name = "model.context_blocks",
       .value = &o.context_blocks,
       .min = 0,
       .max = 256,
       .doc = "How many of the blocks, from the first, attend without rotations, distances or "
              "relative positions: what they make of a cell is what the others turn",
       .source = "paper, supp_implement (the general function G); docs/method.md, section 6"},
      {.name = "model.feed_forward",
       .value = &o.feed_forward,
       .min = 1,
       .max = 65536,
       .doc = "Width inside the feed-forward layers",
       .source = sizes},
      {.name = "model.norm_order",
       .value = choice(o.norm_order, {"post", "pre", "stream"}),
       .doc = "Where layer norms stand: post, behind each sum (scGPT); pre, in front of each "
              "branch and after the last block (scBERT); stream, on the sum that passes by "
              "(scGPT's flash layers)",
       .source = section},
      {.name = "model.activation",
       .value = choice(o.activation, {"relu", "leaky_relu", "gelu", "gelu_tanh", "sigmoid"}),
       .doc = "Activation of the feed-forward layers",
       .source = section},
      {.name = "model.attention",
       .value = choice(o.attention, {"exact", "linear", "performer"}),
       .doc = "exact: softmax attention; linear: by random features, for many thousand tokens; "
              "performer: linear as in scBERT, where cells depend on their batch",
       .source = "paper, supp_implement; docs/method.md, section 6"},
      {.name = "model.random_features",
       .value = &o.random_features,
       .min = 1,
       .max = 16384,
       .doc = "Random features of each head, for linear attention and performers",
       .source = section},
      {.name = "model.attention_bias",
       .value = &o.attention_bias,
       .doc = "Whether queries, keys and values have a bias",
       .source = section},
      {.name = "model.zeros",
       .value = &o.zeros,
       .doc = "Whether values of 0 are tokens",
       .source = section},
      {.name = "model.values",
       .value = choice(o.values, {"continuous", "quantile_bins", "fixed_bins"}),
       .doc = "What the model sees of a value: the value; its quantile among those of the cell "
              "that are not 0 (scGPT); trunc(min(log2(1 + value), bins - 1)) (scBERT)",
       .source = "paper, supp_preprocess; docs/method.md, section 6"},
      {.name = "model.bins",
       .value = &o.bins,
       .min = 2,
       .max = 10000,
       .doc = "Bins of values, zero's included",
       .source = section},
      {.name = "model.value_embedding",
       .value = choice(o.value_embedding, {"network", "table"}),
       .doc = "How a number becomes a vector: by a network, or by a table of the bins",
       .source = section},
      {.name = "model.hidden_value",
       .value = &o.hidden_value,
       .min = -1e6,
       .max = 1e6,
       .doc = "The number that stands for a hidden value, beside a trained vector",
       .source = section},
      {.name = "model.embedding_norm",
       .value = &o.embedding_norm,
       .doc = "Layer norms behind the embeddings of features and values (scGPT)",
       .source = section},
      {.name = "model.decoder_layers",
       .value = &o.decoder_layers,
       .min = 0,
       .max = 16,
       .doc = "Hidden layers between a token's row and its predicted value",
       .source = section},
      {.name = "model.loss",
       .value = choice(o.loss, {"square", "cross_entropy"}),
       .doc = "What predictions of hidden values are: numbers, or shares of bins",
       .source = section},
      {.name = "model.positions",
       .value =
           choice(o.positions, {"none", "trained", "fixed", "projected", "rotary", "rotary_trained",
                                "relative", "relative_trained", "distance", "distance_trained"}),
       .doc = "What tells features apart: nothing; a trained vector; the user's vector, as it is "
              "or projected; rotation by CAPE's angles (alone: the paper's form); how far two "
              "features are apart in the model's order (Transformer-XL), or as points of the "
              "Poincare ball; and these beside a trained vector",
       .source = "paper, sec_position; docs/method.md, section 6"},
      {.name = "model.angle_scale",
       .value = choice(o.angle_scale, {"literal", "largest"}),
       .doc = "Angles as they are, or all times one factor so that the largest is largest_angle",
       .source = section},
      {.name = "model.largest_angle",
       .value = &o.largest_angle,
       .min = 0,
       .max = 1000,
       .open_min = true,
       .doc = "The largest angle in radians; pi/4 is the domain of the paper's theorems",
       .source = section},
      {.name = "model.learn_angle_factor",
       .value = &o.learn_angle_factor,
       .doc = "Whether each head learns a factor of its angles, 1 at first",
       .source = section},
      {.name = "model.dropout",
       .value = &o.dropout,
       .min = 0,
       .max = 0.999,
       .doc = "Share of numbers dropped behind embeddings, attention and feed-forward layers",
       .source = section},
  };
}

OptionFields fields(PretrainOptions& o) {
  OptionFields all =
      training_fields(o, {"pretrain.epochs", "pretrain.batch_cells", "pretrain.length",
                          "pretrain.learning_rate", "pretrain.warm_up", "pretrain.weight_decay",
                          "pretrain.clip", "pretrain.validation", "pretrain.patience"});
  all.push_back({.name = "pretrain.hidden",
                 .value = &o.hidden,
                 .min = 0,
                 .max = 1,
                 .open_min = true,
                 .open_max = true,
                 .doc = "Share of a cell's tokens whose value is hidden and to be predicted",
                 .source = section});
  all.push_back({.name = "pretrain.cell_weight",
                 .value = &o.cell_weight,
                 .min = 0,
                 .max = 1000,
                 .doc = "Weight of the loss of what the row of <cls> alone predicts (scGPT)",
                 .source = section});
  return all;
}

OptionFields fields(FinetuneOptions& o) {
  OptionFields all =
      training_fields(o, {"finetune.epochs", "finetune.batch_cells", "finetune.length",
                          "finetune.learning_rate", "finetune.warm_up", "finetune.weight_decay",
                          "finetune.clip", "finetune.validation", "finetune.patience"});
  all.push_back({.name = "finetune.blocks",
                 .value = &o.blocks,
                 .min = 0,
                 .max = 256,
                 .automatic = true,
                 .doc = "Blocks, from the last, that are trained beside the head; 0: the head "
                        "alone; -1: the whole model",
                 .source = section});
  all.push_back({.name = "finetune.pooling",
                 .value = choice(o.pooling, {"cls", "mean", "max", "cls_mean"}),
                 .doc = "What a head sees of a cell: the row of <cls>, the mean or maximum over "
                        "its features, or <cls> and the mean",
                 .source = section});
  all.push_back({.name = "finetune.hidden_layers",
                 .value = &o.hidden_layers,
                 .min = 0,
                 .max = 16,
                 .doc = "Hidden layers of a head, as wide as the model",
                 .source = section});
  all.push_back({.name = "finetune.balanced",
                 .value = &o.balanced,
                 .doc = "Whether classes count alike in the loss, however many cells they have",
                 .source = section});
  return all;
}

BackboneOptions backbone_preset(std::string_view name) {
  BackboneOptions o; // small
  if (name == "small") return o;
  if (name == "scgpt") {
    o.width = 512, o.heads = 8, o.blocks = 4, o.feed_forward = 512;
    o.norm_order = NormOrder::post;
    o.zeros = false;
    o.values = Values::quantile_bins;
    o.hidden_value = -1;
    o.embedding_norm = true;
    o.decoder_layers = 2;
    o.dropout = 0.2;
    return o;
  }
  if (name == "scbert") {
    o.width = 200, o.heads = 10, o.blocks = 6, o.feed_forward = 800;
    o.activation = layers::Activation::gelu;
    o.attention = AttentionKind::linear;
    o.attention_bias = false;
    o.values = Values::fixed_bins, o.bins = 6;
    o.value_embedding = ValueEmbedding::table;
    o.decoder_layers = 0;
    o.loss = ValueLoss::cross_entropy;
    o.dropout = 0;
    return o;
  }
  if (name == "methylgpt") {
    o.width = 64, o.heads = 4, o.blocks = 6, o.feed_forward = 64;
    o.norm_order = NormOrder::post;
    o.hidden_value = -1;
    o.embedding_norm = true;
    o.decoder_layers = 2;
    return o;
  }
  throw Error(Status::invalid_argument,
              message("preset is \"", name, "\"; it must be small, scgpt, scbert or methylgpt"));
}

PretrainOptions pretrain_preset(std::string_view name) {
  backbone_preset(name); // checks the name
  PretrainOptions o;
  if (name == "scgpt") {
    o.batch_cells = 5, o.length = 1200, o.cell_weight = 1, o.learning_rate = 1e-4;
  } else if (name == "scbert") {
    o.epochs = 100, o.batch_cells = 3, o.length = 16906, o.hidden = 0.15, o.learning_rate = 1e-4;
    o.clip = 100;
  } else if (name == "methylgpt") {
    o.epochs = 100, o.batch_cells = 32, o.length = 2048, o.hidden = 0.3, o.cell_weight = 1;
    o.learning_rate = 1e-3;
  }
  return o;
}

} // namespace cape
