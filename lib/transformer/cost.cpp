// What trainings and passes allocate, counted as it is in network.cpp, block.cpp, pair_bias.cpp,
// training.cpp and the attention that they call: what is kept from batch to batch, and the most
// that a moment adds to it. Cells of more batches that are read ahead, up to values_in_a_read, are
// left out: how many there are is not known here.
module;
#include "internal/sizes.hpp"
#include <algorithm>
#include <cstdint>
#include <functional>
#include <new>
#include <span>
#include <string>
#include <typeinfo>
#include <variant>
#include <vector>
module cape.transformer;
import cape.attention;
#include "transformer/parameters.hpp"
#include "transformer/tokens.hpp"

namespace cape {
namespace {

constexpr double number = sizeof(float);

double real(std::int64_t n) { return static_cast<double>(n); }

// So many cells of so many tokens.
struct Batch {
  std::int64_t cells, length;
  double tokens() const { return real(cells) * real(length); }
};

// Bytes of what Network keeps, and adds for a moment.
class Passes {
public:
  Passes(const Backbone& backbone, int threads)
      : backbone_(backbone), o_(backbone.options), threads_(threads), width_(real(o_.width)),
        inner_(real(inner_width(o_))), feed_forward_(real(o_.feed_forward)),
        features_(real(std::ssize(backbone.features))) {}

  // For all batches.
  double tables() const {
    double n = has_angles(o_.positions) ? 3 * features_ * inner_ / 2 : positions();
    if (o_.positions == PositionKind::projected) n += features_ * width_;
    if (has_distances(o_.positions)) n += (features_ + 1) * (features_ + 1);
    if (is_relative(o_.positions)) // waves, keys of every block that knows them, their gradient
      n += offsets() * (width_ + real(o_.blocks - o_.context_blocks + 1) * inner_);
    return number * n;
  }
  // For a token before the first block and after the last.
  double ends() const {
    const bool network = o_.value_embedding == ValueEmbedding::network;
    return number * (width_ * (3 + (network ? 2 : 0) + (o_.embedding_norm ? 2 : 0)) +
                     (o_.embedding_norm ? 4 : 0) + (network ? 3 : 2) +
                     (o_.norm_order == NormOrder::pre ? 2 : 0));
  }
  // For a token in a block.
  double block() const {
    return number * (4 * (inner_ + width_) + 2 * feed_forward_ + real(o_.heads) + 4);
  }
  // For a token whose value is predicted, and for what <cls> predicts of it.
  double decoder() const {
    return number * (real(2 * o_.decoder_layers + 1) * width_ + outputs() + 1);
  }
  double decoder_by_cell() const { return number * (5 * width_ + 3); }
  double outputs() const { return o_.loss == ValueLoss::cross_entropy ? real(o_.bins) : 1; }
  // For a cell of that length, if scores know of pairs.
  double pairs(std::int64_t length, bool backward) const {
    if (!knows_pairs()) return 0;
    return number * real(length) *
           ((backward ? 2 : 1) * real(o_.heads) * real(length) +
            (is_relative(o_.positions) ? inner_ : 0));
  }

  // The most that a block adds on its way forward.
  double forward(const Batch& batch) const { return attention(batch, false); }
  // For a token, the gradients of a block's rows.
  double slopes() const { return number * (2 * width_ + 4 * inner_ + feed_forward_); }
  // The most that a block adds on its way back.
  double backward(const Batch& batch) const {
    const double angles =
        has_angles(o_.positions) && o_.learn_angle_factor ? batch.tokens() * inner_ / 2 : 0;
    return number * angles + attention(batch, true);
  }
  // The decoder on its way back.
  double decoder_backward(const Batch& batch, double predicted, bool by_cell) const {
    return number * width_ * (by_cell ? 3 : 2) * predicted;
  }

private:
  double positions() const { return real(backbone_.positions.size()); }
  double offsets() const { return 2 * features_ + 1; }
  bool knows_pairs() const { return is_relative(o_.positions) || has_distances(o_.positions); }

  // What the calls of attention allocate.
  double attention(const Batch& batch, bool backward) const {
    const double m = real(o_.random_features), d = real(head_width(o_)),
                 length = real(batch.length);
    const double heads = real(knows_pairs() ? 1 : batch.cells) * real(o_.heads),
                 at_once = std::min(heads, real(threads_));
    switch (o_.attention) {
    case AttentionKind::exact: {
      AttentionInput<float> in;
      in.batch = knows_pairs() ? 1 : batch.cells;
      in.heads = o_.heads;
      in.q_length = in.k_length = batch.length;
      in.head_dim = head_width(o_);
      const AttentionWorkspace workspace = attention_workspace(in, threads_);
      // Relative positions: scores of all offsets before and after.
      const double scores = is_relative(o_.positions)
                                ? number * std::min(real(o_.heads), real(threads_)) * length *
                                      (offsets() + (backward ? 2 : 1) * d)
                                : 0;
      return std::max(backward ? workspace.backward : workspace.forward, scores);
    }
    case AttentionKind::linear: // tiles, and sums over keys
      return number * (m * d + at_once * 8 * (128 * (m + d) + 2 * m * (d + 3)));
    case AttentionKind::performer: // a head's features, and their gradients
      return number * at_once * length * (backward ? 5 * m + 8 * d : 2 * m + 4 * d);
    }
    return 0;
  }

  const Backbone& backbone_;
  const BackboneOptions& o_;
  int threads_;
  double width_, inner_, feed_forward_, features_;
};

// How many blocks' rows stay until the way back, or until the next block's stand in their place.
double states(const Backbone& backbone, bool back) {
  const std::int64_t blocks = backbone.options.blocks;
  return real(back ? blocks : std::min<std::int64_t>(blocks, 1));
}

// Of a training in which that share of the tokens is predicted. back: blocks are trained.
double training_memory(const Backbone& backbone, const TrainingOptions& options, int threads,
                       bool back, double share, bool by_cell) {
  const std::int64_t features = std::ssize(backbone.features),
                     length = std::min(options.length, features) + 1;
  const Passes passes(backbone, threads);
  const Batch batch{options.batch_cells, length},
      held{options.validation > 0 ? cells_at_once(features) : 0, length};
  const double tokens = batch.tokens(), most = std::max(tokens, held.tokens());
  // The best parameters, those in work, gradient and two moments; the table of a batch, its tokens.
  double bytes = number * 5 * static_cast<double>(backbone.parameters.size()) +
                 8 * static_cast<double>(backbone.positions.size()) +
                 static_cast<double>(sizeof(std::string)) * real(features) +
                 8 * real(batch.cells) * real(features) + 13 * tokens;
  bytes += passes.tables() + most * passes.ends() + passes.pairs(length, back) +
           (states(backbone, back) * tokens + most - tokens) * passes.block();
  if (back) bytes += tokens * passes.slopes();
  const double predicted = share * tokens;
  if (share > 0)
    bytes += share * most * passes.decoder() + predicted * (number * passes.outputs() + 13);
  if (by_cell)
    bytes += predicted * passes.decoder_by_cell() + number * tokens * real(backbone.options.width);
  return bytes + std::max(back ? passes.backward(batch) : passes.forward(batch),
                          share > 0 ? passes.decoder_backward(batch, predicted, by_cell) : 0);
}

} // namespace

double pretrain_memory(const Backbone& backbone, const PretrainOptions& options, int threads) {
  return training_memory(backbone, options, threads, true, options.hidden, options.cell_weight > 0);
}

double finetune_memory(const Backbone& backbone, const FinetuneOptions& options, int threads) {
  // The model with its head stands beside the one that is trained.
  return number * static_cast<double>(backbone.parameters.size()) +
         8 * static_cast<double>(backbone.positions.size()) +
         training_memory(backbone, options, threads, options.blocks != 0, 0, false);
}

double encode_memory(const Backbone& backbone, int threads, bool keep) {
  const std::int64_t features = std::ssize(backbone.features);
  const Passes passes(backbone, threads);
  const Batch batch{cells_at_once(features), features + 1};
  return passes.tables() + passes.pairs(batch.length, false) + passes.forward(batch) +
         batch.tokens() * (passes.ends() + states(backbone, keep) * passes.block() + 8 + 9);
}

} // namespace cape
