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
/// Where a checkpoint keeps the state of a training: behind what was there before it.
struct Place {
  Checkpoint* checkpoint = nullptr; ///< null: none
  std::int64_t epochs_before = 0, values_before = 0;
  /// Whole epochs of this training that are done.
  inline std::int64_t epochs() const { return checkpoint ? checkpoint->epoch - epochs_before : 0; }
};
/// The paper's alternating updates of the model of the options, in their precision: proximal Adam
/// on minibatches of these rows of the table; alpha and rho now and then.
/// factor: inputs x features factors of lambda, infinite where there can be no edge; or empty.
/// start: edges from input `from` of effect `to`, with the weights that they start from.
/// place: where to go on, kept up to date.
TrainedModel train(const Table& table, std::span<const std::int64_t> rows, const Causes& causes,
                   double lambda, const Matrix& factor, const std::vector<Edge>& start,
                   const DagOptions& options, Run& run, const Place& place);

} // namespace cape::sem
