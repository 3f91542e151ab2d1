module;
#include "internal/sizes.hpp"
#include <algorithm>
#include <cstdint>
#include <functional>
#include <new>
#include <typeinfo>
#include <variant>
module cape.dag;
#include "dag/training_plan.hpp"

namespace cape::sem {
namespace {

constexpr std::int64_t penalty_updates = 20; // in a fit, unless rho_interval is given

// An epoch passes over a table with few rows several times: what matters is the number of steps in
// which rho grows by its factor, and with 1 step an epoch nothing is learned at all. Steps on wide
// tables cost more, so there are fewer of them.
std::int64_t least_steps_per_epoch(std::int64_t features) {
  return std::clamp<std::int64_t>(3600 / features, 15, 120);
}

} // namespace

TrainingPlan::TrainingPlan(std::int64_t rows, std::int64_t features, const DagOptions& options)
    : epochs(options.epochs), batch_rows(std::min(options.batch_size, rows)) {
  // An epoch is one or more passes over the rows, rounded up to whole batches.
  const std::int64_t passes = ceil_div(least_steps_per_epoch(features) * batch_rows, rows);
  steps_per_epoch = ceil_div(passes * rows, batch_rows);
  steps = checked_size(epochs, steps_per_epoch, "steps");
  // exp(S) costs as much as the rest of a step from about here on, and hardly changes in a few
  // steps. Every step may leave the domain of the log-det form.
  if (options.constraint == Constraint::expm)
    constraint_interval = std::clamp<std::int64_t>(features / 64, 1, 64);
  update_interval = options.rho_interval > 0
                        ? options.rho_interval
                        : std::max<std::int64_t>(1, epochs / penalty_updates);
}

bool TrainingPlan::ends_with_h(std::int64_t epoch) const {
  return 4 * constraint_interval <= steps_per_epoch || epoch % update_interval == 0 ||
         epoch == epochs;
}

// The weights grow from almost nothing: h goes through orders of magnitude within a few steps.
std::int64_t TrainingPlan::next_renewal(std::int64_t step) const {
  return step + std::min(std::max<std::int64_t>(step / 4, 4), constraint_interval);
}

std::int64_t TrainingPlan::renewals() const {
  // In a time that does not grow with the steps: they come to regular intervals soon.
  std::int64_t count = 0, step = 0;
  for (; step < steps && next_renewal(step) - step < constraint_interval;
       step = next_renewal(step))
    ++count;
  if (step < steps) count += ceil_div(steps - step, constraint_interval);
  return count + (4 * constraint_interval <= steps_per_epoch ? epochs
                                                             : ceil_div(epochs, update_interval));
}

} // namespace cape::sem
