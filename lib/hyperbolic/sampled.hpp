// The objective by drawn negatives. Points are columns.
#pragma once
#include "hyperbolic/radial.hpp"

namespace cape {

/// The soft objective for many nodes: targets are cut to the nearest nodes, whose share is 1 again,
/// and of the others a sample is drawn anew at every evaluation, the same for all anchors. Memory
/// and time are linear in the nodes.
class SampledObjective {
public:
  SampledObjective(const Digraph& graph, const EmbedOptions& options, Run& run);
  /// The sample is that of this epoch.
  EmbedEpoch operator()(const Matrix& points, Matrix* gradient, std::int64_t epoch, Run& run);
  inline double truncated_mass() const noexcept { return truncated_mass_; }

private:
  struct Sample {
    std::vector<std::int64_t> nodes, places; ///< and where in the pool they are
    Matrix points;
    std::vector<std::vector<std::int64_t>> drawn; ///< where in the sample a node is
  };
  struct Incoming {
    std::int64_t anchor = 0, pair = 0;
  };
  void set_positives(const Digraph& graph, Run& run);
  double weight_of(std::int64_t m, double distance) const;
  std::span<const std::int64_t> positives_of(std::int64_t m) const;
  double stand_for(std::int64_t m, std::span<const std::int64_t> apart, const Sample& sample) const;
  double block_terms(const Matrix& points, const Sample& sample, std::int64_t first,
                     std::int64_t count);
  void block_gradient(const Matrix& points, const Sample& sample, std::int64_t first,
                      std::int64_t count, Matrix& gradient) const;

  std::int64_t nodes_ = 0;
  EmbedOptions options_;
  RadialTerms radial_;
  std::vector<std::int64_t> pool_;
  BasicMatrix<float> pool_weights_;     ///< pool x nodes: exp((nearest - D*)/ts)
  std::vector<double> nearest_;         ///< D* to the nearest node
  std::vector<double> total_;           ///< sum of exp((nearest - D*)/ts) over all nodes
  std::vector<std::int64_t> positives_; ///< anchor by anchor
  std::vector<std::int64_t> offsets_;   ///< where an anchor's begin
  std::vector<double> targets_;         ///< T of each
  std::vector<Incoming> incoming_;      ///< node by node: the anchors that it is a positive of
  std::vector<std::int64_t> incoming_offsets_;
  std::vector<double> pair_push_, pair_pull_; ///< of positives: exp(-d/tau) and T, over sinh d
  Matrix push_, pull_;                        ///< the same of sample x nodes
  std::vector<double> mass_;                  ///< Z
  double truncated_mass_ = 0;
};

} // namespace cape
