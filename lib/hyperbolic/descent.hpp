// What is descended, from where, and its state between two epochs. Points are columns.
#pragma once

namespace cape {

/// The objective of some options: the losses at the points and, unless it is null, their gradient.
/// The number of the epoch says which negatives are drawn.
using ObjectiveFunction = std::function<EmbedEpoch(const Matrix&, Matrix*, std::int64_t, Run&)>;

/// The objective alone. The options are settled, here and below.
ObjectiveFunction objective_of(const Digraph& graph, const EmbedOptions& options, Run& run);

struct Descent {
  ObjectiveFunction objective;
  std::function<std::int64_t(Matrix&, const Matrix&, std::int64_t, double, Run&)> step;
  std::vector<std::span<double>> optimizer_state; ///< in `step`
  Matrix points;
  double truncated_mass = 0;

  Descent(const Digraph& graph, const EmbedOptions& options, Run& run);
  /// To a checkpoint, with the history of the result and its count of clamped points, and back.
  /// Room is made first, for some more epochs: between the old state and the new one nothing can
  /// fail.
  void save(const Embedding& result, Checkpoint& checkpoint);
  void restore(const Checkpoint& checkpoint, Embedding& result);

private:
  std::vector<std::span<double>> state();
};

} // namespace cape
