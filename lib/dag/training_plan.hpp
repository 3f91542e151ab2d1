// How often the training does what.
#pragma once

namespace cape::sem {

struct TrainingPlan {
  TrainingPlan(std::int64_t rows, std::int64_t features, const DagOptions& options);
  std::int64_t epochs, batch_rows, steps_per_epoch, steps;
  std::int64_t constraint_interval = 1; ///< steps that h and its gradient hold for, at most
  std::int64_t update_interval;         ///< epochs between updates of alpha and rho
  /// With h at its end an epoch leaves a state to go on from. Where that would make h much more
  /// work, only the epochs do after which the multipliers need it.
  bool ends_with_h(std::int64_t epoch) const;
  /// The step before which h is renewed next, from the one before which it was.
  std::int64_t next_renewal(std::int64_t step) const;
  /// Of h, in a whole fit.
  std::int64_t renewals() const;
};

} // namespace cape::sem
