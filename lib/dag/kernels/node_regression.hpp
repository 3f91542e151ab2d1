// The node regression of the refinement (docs/method.md): a small network
//   f(x) = c + l.x + sum_k v_k sigmoid(clamp(b_k + w_k.x, -25, 25)),
// trained by Adam on the mean squared error of minibatches, in float32. One step is a few passes
// over a batch that stays in the first-level cache. Plain C++, so that kernels can be compiled once
// per target; simd/vector_math.hpp tells how the target is chosen. On one target the results are
// the same bit for bit; across targets sums are taken in another order (and without fused
// multiply-add on SSE2), so that fits agree only statistically.
#pragma once
#include "simd/aligned.hpp"
#include <cstdint>

namespace cape::simd {

/// What the kernels see of a network. Units and inputs are padded so that no loop has a remainder:
/// a padded input is always 0 and a padded unit has output weight 0, hence their gradients are 0.
struct NetworkView {
  std::int64_t units;   ///< a multiple of 32
  std::int64_t inputs;  ///< with the constant
  std::int64_t stride;  ///< of a table of observations
  const float* weights; ///< an input's weights side by side
  const float* outputs;
  const float* linear;
};

class NodeRegression {
public:
  /// A network of inputs >= 0 variables and hidden >= 1 units, all parameters zero.
  NodeRegression(std::int64_t inputs, std::int64_t hidden);

  /// Floats of a row of a table of observations: the inputs, the constant 1, and zeros up to a
  /// multiple of 16. A table starts at a cache line.
  std::int64_t stride() const { return stride_; }

  /// Where a parameter stands in parameters(), and its derivative in gradient(). Input number
  /// `inputs` is the constant 1: its weights are the biases b, its linear coefficient is c.
  std::int64_t weight(std::int64_t input, std::int64_t unit) const { return input * units_ + unit; }
  std::int64_t output(std::int64_t unit) const { return padded_inputs_ * units_ + unit; }
  std::int64_t linear(std::int64_t input) const { return (padded_inputs_ + 1) * units_ + input; }
  float* parameters() { return parameters_.data(); }
  const float* gradient() const { return gradient_.data(); }

  /// Mean squared error over the n >= 1 rows of a table whose numbers are in `rows`, and its
  /// gradient. O(n hidden inputs).
  float loss(const float* table, const float* target, const std::int64_t* rows, std::int64_t n);

  /// loss() and then one step of Adam (betas 0.9 and 0.99, epsilon 1e-8).
  void step(const float* table, const float* target, const std::int64_t* rows, std::int64_t n,
            double rate);

  /// out[r] = f(row r) for the rows 0 .. n-1 of a table.
  void predict(const float* table, std::int64_t n, float* out) const;

private:
  NetworkView view() const;

  std::int64_t hidden_, units_; ///< asked for, and padded
  std::int64_t inputs_, padded_inputs_, stride_;
  Aligned<float> parameters_, gradient_, mean_, square_; ///< the last two are Adam's
  std::int64_t batch_ = 0;                              ///< rows that the next two have room for
  Aligned<float> activation_, error_;
  double mean_decay_ = 1, square_decay_ = 1; ///< 0.9^steps and 0.99^steps
};

} // namespace cape::simd
