// cape.transformer: a transformer over the features of a cell, which are tokens without an order:
// what stands in for positions is the user's (CAPE's angles, a trained vector, ...). It is trained
// to predict values that are hidden from it, and gives vectors of cells and of features.
module;
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>
export module cape.transformer;
export import :bins;
export import :options;
import cape.core;
import cape.layers;
import cape.tensors;

export namespace cape {

/// Cells x features that are read some cells at a time. `read` writes the values of these cells to
/// out, cell by cell; NaN is a missing value. It is called on the thread that called us.
struct Cells {
  std::int64_t cells = 0, features = 0;
  std::function<void(std::span<const std::int64_t> numbers, double* out)> read;
};
/// Of a matrix, or a sparse one in row_major form, which outlive it. Error as check_view().
Cells cells_of(const MatrixView& x);
Cells cells_of(const SparseView& x);

/// The tokens of some cells, one cell behind the other: no token stands for nothing. The first of
/// each cell is <cls>, whose number is 0.
struct Tokens {
  std::vector<std::int64_t> start;   ///< the first token of every cell, and behind the last
  std::vector<std::int32_t> feature; ///< of every token; -1: <cls>
  std::vector<float> value;          ///< the number that the model sees
  std::vector<std::uint8_t> hidden;  ///< whether the model sees that a value is hidden

  std::int64_t cells() const { return start.empty() ? 0 : std::ssize(start) - 1; }
  std::int64_t size() const { return std::ssize(feature); }
};

/// The tokens of whole cells: all features that have a value (not NaN), or that are not 0 where
/// options.zeros is false. values: cells x features, row-major. Error(invalid_argument) for
/// infinite values, and for negative ones where bins need counts. O(size of values).
Tokens tokenize(std::span<const double> values, std::int64_t features,
                const BackboneOptions& options);

/// A tensor of the parameters: rows x columns, row-major, from `first` on; a vector has one row.
struct Slot {
  std::string name;
  std::int64_t first = 0, rows = 0, columns = 0;
  std::int64_t size() const { return rows * columns; }
};
/// All parameters of a model without a head, of that many features whose positions have that many
/// columns, in their order. Error(invalid_argument) for options that do not fit together,
/// Error(dim_mismatch) for angles that do not fit the heads, with the numbers.
std::vector<Slot> layout(const BackboneOptions& options, std::int64_t features,
                         std::int64_t position_columns);

/// What a model tells of a cell: of which class it is, or numbers.
enum class HeadKind : std::int32_t { none, classes, numbers };

/// Layers on a cell's vector that tell something of it, see finetune().
struct Head {
  HeadKind kind = HeadKind::none;
  std::vector<std::string> names; ///< of the classes, two at least, or of the numbers
  Pooling pooling = Pooling::cls_mean;
  std::int64_t hidden_layers = 1;
  std::vector<double> mean, sd; ///< of the numbers: what the head tells is (number - mean) / sd
};

/// A model. Plain data: parameters are one vector, and layout() says where each tensor stands.
struct Backbone {
  BackboneOptions options;
  std::vector<std::string> features; ///< their names, unlike each other
  /// Features x columns: angles in radians (rotary: before angle_scale), vectors (fixed,
  /// projected), points of the Poincare ball (distance), or empty. relative: the order of the
  /// features counts.
  Matrix positions;
  std::vector<float> parameters;
  Head head;
};
/// All parameters of that model. Errors as make_backbone().
std::vector<Slot> layout(const Backbone& backbone);

/// A model before training: linear layers uniform in +- 1/sqrt(inputs), norms 1 and 0, tables of
/// vectors uniform in +-.1. Errors as layout(), and invalid_argument for features of the same name,
/// or one that is not UTF-8, and for positions that are not finite, or that are given or missing
/// against options.positions, or points that are not in the ball. Positions are rounded to float,
/// as which they are saved.
Backbone make_backbone(std::vector<std::string> features, Matrix positions,
                       const BackboneOptions& options, Run& run);

/// The model as tensors for a file, see write_safetensors(): those of layout(), of its shapes, and
/// "positions" if there are any. Metadata: "cape.format", "cape.version", "features" (a JSON array
/// of texts) and every option by its key. Errors as make_backbone(), and dim_mismatch for
/// parameters that are not as many as the layout says, invalid_argument if one is not finite.
Tensors to_tensors(const Backbone& backbone, Run& run);
/// The model that to_tensors() has saved, the same to the bit. Error(bad_format) with what is
/// wrong, for tensors that are none: a text, option or tensor that is missing, of another form, not
/// finite or not known. Metadata whose keys are neither "cape." nor "model." and more are others'.
Backbone from_tensors(const Tensors& tensors, Run& run);

/// A model of scGPT's state dict, by the names that its tensors have there, those of PyTorch's or
/// of the flash layers; MethylGPT's are of the same form. vocabulary: the name of each row of the
/// gene embedding, "<cls>" among them; "<pad>" and "<eoc>" become no features. options: what a
/// state does not say (heads, norm_order, values, hidden_value, bins of values that a network
/// embeds, dropout); the others are those of the state. Heads of other tasks are left aside;
/// without "mvc_decoder" that part is as at the start of training. Error(bad_format) with what is
/// wrong for a state that is none, Error(unsupported) for embeddings of batches; others as
/// make_backbone(). The largest value was 512 there, here it has no limit.
Backbone load_scgpt(const Tensors& state, const std::vector<std::string>& vocabulary,
                    const BackboneOptions& options, Run& run);

/// A model of scBERT's state dict. features: the name of each row of "pos_emb.emb.weight" but the
/// last, that of the token at the end, which becomes <cls>. options: what a state does not say
/// (heads, dropout), and positions: fixed, vectors of features as they are (there gene2vec's), or
/// trained, from them on; the others are those of the state. Hidden values, which are a class
/// there that is never true, are not predicted. Errors as load_scgpt(), and invalid_argument for
/// other positions.
Backbone load_scbert(const Tensors& state, const std::vector<std::string>& features,
                     const BackboneOptions& options, Run& run);

/// What the model makes of cells: tokens x width rows of all tokens, what it predicts of each
/// (tokens x 1 numbers, or x bins logits), and what it predicts of each by the row of its cell's
/// <cls> (tokens x 1; empty for cross_entropy).
template <class T>
struct Encoded {
  std::vector<T> tokens, predictions, by_cell;
};
/// `parameters` stand in for those of the model, in float or, for tests, in double. A cell's result
/// does not depend on the others. Errors: invalid_argument for tokens that are none of the model,
/// a result that is not finite. O(tokens width (width + feed_forward) + attention).
template <class T>
Encoded<T> encode(const Backbone& backbone, std::span<const T> parameters, const Tokens& tokens,
                  Run& run);

/// The loss of a training step: the mean over the hidden tokens of the loss of their value, and
/// cell_weight times that of what <cls> predicts. target: the true number of every token (its bin
/// for cross_entropy); step: of the dropout, -1: without. If `gradient` is not empty (as long as
/// the parameters) it gets the gradient.
template <class T>
double pretrain_loss(const Backbone& backbone, std::span<const T> parameters, const Tokens& tokens,
                     std::span<const float> target, double cell_weight, std::int64_t step,
                     std::span<T> gradient, Run& run);

/// One epoch of training. validation and relative are NaN without validation cells.
struct TrainingEpoch {
  std::int64_t epoch = 0;
  double loss = 0;       ///< mean over the steps
  double validation = 0; ///< of the validation cells, always of the same tokens
  /// The same over the loss of guessing by the training cells alone, by means (square loss) or
  /// shares of bins or classes: 1 is no better than that.
  double relative = 0;
};
struct Trained {
  Backbone backbone; ///< of the best epoch
  std::vector<TrainingEpoch> history;
  std::int64_t best_epoch = 0;
};

/// Train a model on cells: AdamW with a warm-up and half a cosine; the same bits for any number of
/// threads. Reports progress as "pretrain". checkpoint: null, or where it goes on and what it keeps
/// up to date after every epoch. Errors: invalid_argument for options or cells that cannot be
/// trained on (fewer than two, another number of features than the model, no value to hide);
/// not_converged if the loss is not finite.
Trained pretrain(const Backbone& start, const Cells& cells, const PretrainOptions& options,
                 Run& run, Checkpoint* checkpoint = nullptr);

/// What is known of cells: of each a class, or some numbers.
struct Targets {
  HeadKind kind = HeadKind::classes;
  std::vector<std::string> names; ///< of the classes or numbers
  /// Of each cell the number of its class, from 0; or cells x names, row-major. NaN: not known.
  std::vector<double> values;
};

/// Train a model to tell of cells what is known of these: classes by cross-entropy, numbers by
/// their squared error after scaling. A head of the start that tells the same is trained on, with
/// its pooling and layers; else there is a new one. With options.blocks what comes before the last
/// blocks stays as it is. Reports progress as "finetune". Errors: as pretrain(); invalid_argument
/// for targets without names, a class without a cell, or a number that is the same in all training
/// cells; dim_mismatch for values of another length.
Trained finetune(const Backbone& start, const Cells& cells, const Targets& targets,
                 const FinetuneOptions& options, Run& run, Checkpoint* checkpoint = nullptr);

/// The loss of a training step of finetune(): target is of every cell of the tokens, as in
/// Targets::values. class_weight: how much each class counts; empty: all alike. `gradient`, unless
/// it is empty, is 0 for what comes before first_block.
template <class T>
double finetune_loss(const Backbone& backbone, std::span<const T> parameters, const Tokens& tokens,
                     std::span<const double> target, std::span<const double> class_weight,
                     std::int64_t first_block, std::int64_t step, std::span<T> gradient, Run& run);

/// What the model's head tells of cells: cells x names, probabilities of classes or numbers. All
/// values of a cell are looked at. Error(unsupported) for a model without a head; others, and
/// progress, as embed_cells().
Matrix tell(const Backbone& backbone, const Cells& cells, Run& run);

/// How well a model predicts hidden values of cells, which it should not have been trained on: a
/// share options.hidden of at most options.length values of each cell is hidden, by the seed.
struct HiddenLoss {
  double loss = 0;     ///< mean over the hidden values, see ValueLoss
  double relative = 0; ///< over the loss of guessing each feature by its values in these cells
};
/// Errors as pretrain(). Reports progress as "encode".
HiddenLoss hidden_loss(const Backbone& backbone, const Cells& cells, const PretrainOptions& options,
                       Run& run);

/// Bytes that pretrain(), finetune() of a model with its head, and embed_cells() need at the peak
/// beside the model, the table and the result, within 15 %: linear in the tokens of a cell, but for
/// positions that are relative or distances. Not counted: validation cells (13 bytes for each of
/// their tokens), and a checkpoint, 32 bytes for each parameter, twice that while it is renewed.
/// keep: as attention_map() needs it beside its weights. O(1).
double pretrain_memory(const Backbone& backbone, const PretrainOptions& options, int threads);
double finetune_memory(const Backbone& backbone, const FinetuneOptions& options, int threads);
double encode_memory(const Backbone& backbone, int threads, bool keep = false);

/// A vector of every cell: cells x width, twice that for cls_mean. Means and maxima of a cell
/// without a value are 0. Reports progress as "encode".
Matrix embed_cells(const Backbone& backbone, const Cells& cells, Pooling pooling, Run& run);
/// A vector of every feature: the mean over the cells, in which it has a value, of its row;
/// features x width. NaN for a feature without any.
Matrix embed_features(const Backbone& backbone, const Cells& cells, Run& run);

/// Which feature attends to which: element (m, n) is the mean weight that feature m gives to
/// feature n in a block (from 0; -1: the mean over all), over the heads and over the cells that
/// have both; (features + 1) x features, the last row being that of <cls>. What a row gives to
/// <cls> is left out, so that rows sum to 1 or less; 0 for two that no cell has. Error(unsupported)
/// for linear attention. Reports progress as "encode". O(as embed_cells(), and tokens^2 of every
/// cell).
Matrix attention_map(const Backbone& backbone, const Cells& cells, std::int64_t block, Run& run);

} // namespace cape
