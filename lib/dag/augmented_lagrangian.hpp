// Training by the paper's augmented Lagrangian (eq_lossdag).
#pragma once
#include "dag/model.hpp"

namespace cape::sem {

/// What training finds.
struct TrainedModel {
  LearnedEdges edges;
  std::vector<DagEpoch> history;
  double h = 0;
};
/// The paper's alternating updates of the model of the options, in their precision: proximal Adam
/// on minibatches; alpha and rho now and then.
/// factor: inputs x features factors of lambda, infinite where there can be no edge; or empty.
/// start: edges from input `from` of effect `to`, with the weights that they start from.
/// checkpoint: null, or where to go on, kept up to date.
TrainedModel train(const Table& table, const Causes& causes, double lambda, const Matrix& factor,
                   const std::vector<Edge>& start, const DagOptions& options, Run& run,
                   Checkpoint* checkpoint);

} // namespace cape::sem
