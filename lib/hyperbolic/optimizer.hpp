// The steps of the descent. Points are columns.
#pragma once

namespace cape {

/// Adam with one second moment a node, or empty for plain descent.
using NodeAdam = std::optional<optim::GroupAdam>;
NodeAdam node_adam(const EmbedOptions& options, std::int64_t coordinates, std::int64_t nodes);

/// Full-batch Riemannian descent: Adam with the means of the gradients carried along
/// (docs/method.md, section 3), or the paper's RSGD (Eq_euc_rieman, eq_proj_tangent, eq_exp).
class RiemannianOptimizer {
public:
  RiemannianOptimizer(const EmbedOptions& options, std::int64_t nodes);
  /// Move the points against the Euclidean gradient, in the epoch with this number (from 1); how
  /// many were held at max_radius.
  std::int64_t step(Matrix& points, const Matrix& gradient, std::int64_t epoch,
                    double learning_rate, Run& run);
  /// All that it remembers from one step to the next.
  std::vector<std::span<double>> state();

private:
  bool move(std::span<double> point, std::span<const double> gradient, std::int64_t node,
            std::int64_t epoch, double learning_rate);
  double max_radius_;
  NodeAdam adam_;
};

} // namespace cape
