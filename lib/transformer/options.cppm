// What a backbone is built of and how it is trained, and the presets of published models.
module;
#include <cstdint>
#include <numbers>
#include <string_view>
export module cape.transformer:options;
import cape.core;
import cape.layers;

export namespace cape {

/// Where layer norms stand. post: x = norm(x + f(x)), as in the first transformers and scGPT; pre:
/// x = x + f(norm(x)), and a norm after the last block (scBERT); stream: x = norm(x), x = x + f(x),
/// which scGPT's flash layers do when told to norm first.
enum class NormOrder : std::int32_t { post, pre, stream };

/// exact: softmax attention, see attention_forward(). linear: by random features, see
/// linear_attention_forward(), for many thousand tokens. performer: the same as scBERT has it, see
/// performer_attention_forward(), for its models: a cell's result depends on its batch.
enum class AttentionKind : std::int32_t { exact, linear, performer };

/// What the number of a token is. continuous: the value of the table. quantile_bins: the quantile
/// of the value among the cell's values that are not 0 (scGPT), 0 .. bins - 1. fixed_bins:
/// trunc(min(log2(1 + value), bins - 1)) (scBERT).
enum class Values : std::int32_t { continuous, quantile_bins, fixed_bins };

/// How that number becomes a vector. network: two linear layers with a ReLU between them (scGPT).
/// table: a row for each bin (scBERT, scGPT's category style); needs bins.
enum class ValueEmbedding : std::int32_t { network, table };

/// What hidden values are predicted by. square: as numbers, mean squared error. cross_entropy: as
/// classes, one for each bin; needs bins.
enum class ValueLoss : std::int32_t { square, cross_entropy };

/// What stands in for the order of the features (paper, sec_position).
enum class PositionKind : std::int32_t {
  none,           ///< nothing: features differ by their values alone
  trained,        ///< a trained vector for each feature is added (scGPT's gene embedding)
  fixed,          ///< the user's vector, as wide as the model, is added (scBERT's gene2vec)
  projected,      ///< the user's vector, through a trained projection (the paper's w/o-rotary)
  rotary,         ///< queries and keys are turned by the user's angles, and nothing else (paper)
  rotary_trained, ///< both: turned, beside a trained vector
  /// Scores know how far two features are apart in the model's order of features, by trained
  /// projections of sines and cosines (Z. Dai et al., Transformer-XL, 2019; paper, supp_pos_enc).
  relative,
  relative_trained, ///< beside a trained vector
  /// Scores fall with the distance of two features, the user's points in the Poincare ball:
  /// - beta d(m, n), beta > 0 trained for each head and block. <cls> is the origin.
  distance,
  distance_trained ///< beside a trained vector
};

/// How angles are scaled. literal: as they are (paper: pi/4 times coordinates). largest: by one
/// factor, so that the largest of all is largest_angle in magnitude.
enum class AngleScale : std::int32_t { literal, largest };

/// The shape of a model. Presets: backbone_preset().
struct BackboneOptions {
  std::int64_t width = 64;
  std::int64_t heads = 4;
  std::int64_t head_width = -1; ///< of a head's queries, keys and values; -1: width / heads
  std::int64_t blocks = 2;
  std::int64_t context_blocks = 0; ///< the first of them, which know no positions (the paper's G)
  std::int64_t feed_forward = 128;
  NormOrder norm_order = NormOrder::pre;
  layers::Activation activation = layers::Activation::relu; ///< relu, gelu or gelu_tanh
  AttentionKind attention = AttentionKind::exact;
  std::int64_t random_features = 266; ///< of linear attention and performers, for each head
  bool attention_bias = true;         ///< of the products that give queries, keys and values
  bool zeros = true;                  ///< whether values of 0 are tokens (scGPT: not)
  Values values = Values::continuous;
  std::int64_t bins = 51;
  ValueEmbedding value_embedding = ValueEmbedding::network;
  double hidden_value = 0;     ///< the number of a hidden token, beside a trained vector
  bool embedding_norm = false; ///< layer norms after the embeddings of features and values (scGPT)
  std::int64_t decoder_layers = 1; ///< hidden layers between a token and its predicted value
  ValueLoss loss = ValueLoss::square;
  PositionKind positions = PositionKind::rotary_trained;
  AngleScale angle_scale = AngleScale::largest;
  double largest_angle = std::numbers::pi;
  bool learn_angle_factor = false; ///< one factor of the angles for each head, 1 at first
  double dropout = 0.1;            ///< after embeddings, attention and feed-forward layers
};
/// Their keys ("model.width"), ranges and documentation.
OptionFields fields(BackboneOptions& options);

/// "small" (the default: for a laptop, docs/method.md has what it rests on), "scgpt", "scbert" or
/// "methylgpt" with the sizes of the paper's table; what follows which source is said at the
/// fields. Error(invalid_argument) for another name.
BackboneOptions backbone_preset(std::string_view name);

/// How a model is trained, whatever it is to predict.
struct TrainingOptions {
  std::int64_t epochs = 60;      ///< passes over the training cells, at most
  std::int64_t batch_cells = 16; ///< cells of a step
  std::int64_t length = 512;     ///< tokens of a cell in a step, at most: features drawn anew
  double learning_rate = 3e-3;
  double warm_up = 0.1; ///< share of the steps in which the rate rises
  double weight_decay = 0.1;
  double clip = 1;            ///< longest gradient
  double validation = 0.1;    ///< share of the cells that tell when to stop; 0: none
  std::int64_t patience = 10; ///< epochs without a better validation loss before the end
};

/// How a backbone is trained to predict values that are hidden.
struct PretrainOptions : TrainingOptions {
  double hidden = 0.4;    ///< share of a cell's tokens whose value is hidden
  double cell_weight = 0; ///< of the loss of what <cls> alone predicts (scGPT's GEPC)
};
/// Their keys ("pretrain.epochs"), ranges and documentation.
OptionFields fields(PretrainOptions& options);
/// How the model of that preset is trained.
PretrainOptions pretrain_preset(std::string_view name);

/// How the rows of a cell become its vector: that of <cls>, the mean or the maximum over the
/// others, or the first two side by side.
enum class Pooling : std::int32_t { cls, mean, max, cls_mean };

/// How a model is trained to tell something of cells, see finetune().
struct FinetuneOptions : TrainingOptions {
  FinetuneOptions() { epochs = 30, learning_rate = 1e-3, length = 4096; }
  /// Blocks, from the last, that are trained beside the head; -1: the whole model.
  std::int64_t blocks = -1;
  Pooling pooling = Pooling::cls_mean;
  std::int64_t hidden_layers = 1; ///< between a cell's vector and what is told of it
  bool balanced = true;           ///< whether classes count alike, however many cells they have
};
/// Their keys ("finetune.epochs"), ranges and documentation.
OptionFields fields(FinetuneOptions& options);

} // namespace cape
