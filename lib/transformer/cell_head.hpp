// The layers on a cell's vector that tell something of it.
#pragma once
#include "transformer/block.hpp"

namespace cape {

/// The vectors of cells from the rows of their tokens, and the gradient back to the rows.
template <class T>
class CellVectors {
public:
  explicit CellVectors(Pooling pooling) : pooling_(pooling) {}

  /// Cells x width, or twice that.
  std::span<const T> operator()(std::span<const T> rows, const Tokens& tokens);
  /// Adds to d_rows.
  void backward(std::span<const T> d, const Tokens& tokens, std::span<T> d_rows) const;
  std::int64_t width(std::int64_t of_rows) const {
    return pooling_ == Pooling::cls_mean ? 2 * of_rows : of_rows;
  }

private:
  Pooling pooling_;
  std::vector<T> out_;
  std::vector<std::int64_t> largest_; ///< the token that has the maximum
};

template <class T>
class CellHead {
public:
  CellHead(const Backbone& backbone, const Slots& slots)
      : slots_(slots), dropout_rate_(backbone.options.dropout), vectors_(backbone.head.pooling) {}

  /// Cells x names: logits, or scaled numbers. step: of the dropout, -1: without.
  std::span<const T> forward(std::span<const T> parameters, std::span<const T> rows,
                             const Tokens& tokens, std::int64_t step, Run& run);
  /// Of the last call: adds to d_rows, unless it is empty, and to the gradient.
  void backward(std::span<const T> parameters, std::span<const T> d_out, const Tokens& tokens,
                std::span<T> d_rows, std::span<T> gradient, Run& run);

private:
  const Slots& slots_;
  double dropout_rate_;
  Dropout dropout_;
  CellVectors<T> vectors_;
  std::vector<std::vector<T>> in_, out_; ///< of each layer
};

} // namespace cape
