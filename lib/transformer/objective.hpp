// The loss of what a model predicts of hidden values.
#pragma once
#include "transformer/network.hpp"

namespace cape {

/// The loss of a batch, see pretrain_loss(), and, if `gradient` is not empty, its gradient.
template <class T>
class Objective {
public:
  explicit Objective(const Backbone& backbone) : backbone_(backbone), network_(backbone) {}
  const Slots& slots() const { return network_.slots(); }
  double operator()(std::span<const T> parameters, const Tokens& tokens,
                    std::span<const float> target, double cell_weight, std::int64_t step,
                    std::span<T> gradient, Run& run);
  void release(Run& run) { network_.release(run); }

private:
  const Backbone& backbone_;
  Network<T> network_;
  std::vector<std::int32_t> rows_, label_; ///< of the hidden tokens
  std::vector<T> target_, d_predicted_, d_by_cell_;
};

/// Tokens whose value is hidden.
std::int64_t hidden_tokens(const Tokens& tokens);

} // namespace cape
