// The whole model: embeddings, blocks, and what predicts values.
#pragma once
#include "transformer/block.hpp"

namespace cape {

/// Error(invalid_argument) unless these are tokens of this model.
void check_tokens(const Tokens& tokens, const Backbone& backbone);

/// A model's passes over batches; buffers are kept from batch to batch.
template <class T>
class Network {
public:
  explicit Network(const Backbone& backbone);
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  const Slots& slots() const { return slots_; }
  std::int64_t blocks() const { return std::ssize(blocks_); }

  /// The rows of all tokens after the last block. keep: backward() will be called. The tokens must
  /// outlive the calls that belong to them.
  std::span<const T> forward(std::span<const T> parameters, const Tokens& tokens, std::int64_t step,
                             bool keep, Run& run);

  /// The softmax weights of a block in the last call, which kept what it needs: body(cell, head,
  /// length x length weights, by query), one after the other.
  void for_weights(std::int64_t block,
                   const std::function<void(std::int64_t, std::int64_t, std::span<const T>)>& body,
                   Run& run) const;

  /// What is predicted from the rows of these tokens: rows x 1, or x bins.
  std::span<const T> predict(std::span<const T> parameters, std::span<const std::int32_t> rows,
                             Run& run);
  /// What <cls> predicts of the features of these tokens: a number for each.
  std::span<const T> predict_by_cell(std::span<const T> parameters,
                                     std::span<const std::int32_t> rows, Run& run);

  /// The gradients of the last calls: of the predictions (one may be empty), to be called once.
  void backward(std::span<const T> parameters, std::span<const T> d_predicted,
                std::span<const T> d_by_cell, std::span<T> gradient, Run& run);

  /// Where backward_rows() takes the gradient of forward()'s rows from: zeros.
  std::span<T> no_slopes(Run& run);
  /// The gradient of the last forward() from that of its rows. first_block: what comes before it
  /// has none, 0: all has one.
  void backward_rows(std::span<const T> parameters, std::int64_t first_block, std::span<T> gradient,
                     Run& run);

  /// Give back the rows of the blocks, polling: half a gigabyte takes longer than a callback may
  /// wait.
  void release(Run& run);

private:
  void embed(std::span<const T> parameters, Run& run);
  void embed_values(std::span<const T> parameters, Run& run);
  void embed_backward(std::span<const T> parameters, std::span<T> gradient, Run& run);
  void embed_values_backward(std::span<const T> parameters, std::span<T> gradient, Run& run);
  void turn_by(std::span<const T> parameters, Run& run);

  const Backbone& backbone_;
  const BackboneOptions& options_;
  Slots slots_;
  std::vector<Block<T>> blocks_;
  std::vector<T> positions_; ///< features x columns, row-major; or the angles of all pairs
  std::int64_t columns_ = 0;
  std::vector<T> cosine_, sine_;           ///< of the angles in use
  std::unique_ptr<PairBias<T>> pair_bias_; ///< of relative positions and distances, else null

  // Of the last batch.
  const Tokens* tokens_ = nullptr;
  Sequence<T> sequence_;
  Dropout dropout_;
  std::vector<std::int32_t> row_, hidden_, bin_, cls_; ///< of tables, by token; of tokens, by cell
  std::vector<T> projected_;                           ///< positions
  std::vector<T> identity_, identity_sum_;             ///< of features: after and before its norm
  std::vector<T> number_, value1_, value1_active_, value_sum_;
  std::vector<T> start_; ///< what the first block is given; until then values
  std::vector<layers::RowMoments<T>> identity_moments_, value_moments_, out_moments_;
  std::vector<BlockState<T>> states_;
  std::vector<T> out_;
  std::vector<std::int32_t> rows_;                ///< that were predicted
  std::vector<std::vector<T>> decoded_, active_;  ///< of each layer, before and after activation
  std::vector<std::int32_t> cell_rows_, cell_of_; ///< of what <cls> predicts
  std::vector<T> d_identity_;                     ///< of what <cls> predicts by, or empty
  BlockSlopes<T> slopes_;                         ///< and of what comes before the first
  std::vector<T> query_in_, query_, query_active_, key_, cell_, by_cell_;
};

} // namespace cape
