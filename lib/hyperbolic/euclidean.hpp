// The ablation without hyperbolic space. Points are columns.
#pragma once
#include "hyperbolic/optimizer.hpp"
#include "hyperbolic/radial.hpp"

namespace cape {

/// The soft objective in flat space, and its descent; points are kept as those of the hyperboloid
/// whose normal coordinates they are. Dense and on one thread: for ablations.
class EuclideanDescent {
public:
  EuclideanDescent(const Digraph& graph, const EmbedOptions& options, Run& run);
  /// The gradient is with respect to the normal coordinates (rows 1 .. d; row 0 is 0).
  EmbedEpoch operator()(const Matrix& points, Matrix* gradient, Run& run) const;
  std::int64_t step(Matrix& points, const Matrix& gradient, std::int64_t epoch,
                    double learning_rate);
  std::vector<std::span<double>> state(); ///< as that of RiemannianOptimizer

private:
  EmbedOptions options_;
  RadialTerms radial_;
  Matrix targets_; ///< T
  NodeAdam adam_;
};

} // namespace cape
