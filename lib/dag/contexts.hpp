// Interventions as columns of their own.
#pragma once

namespace cape {

/// A table, and what is known of it, with a column for each that interventions aim at.
struct WithContexts {
  Matrix x;
  Prior prior;                      ///< without Design::targeted
  std::vector<std::int64_t> target; ///< of every added column
};
/// Columns that are 0 but in the rows of the interventions, with the standard deviation of their
/// targets (1 if that is 0), missing where a whole row is. They are roots, and may cause their
/// target and what that may cause. Columns that interventions aim at in all rows have none.
WithContexts with_contexts(const MatrixView& x, const Prior& prior);
/// What was learned from such a table, as of the columns that are not added.
Dag without_contexts(Dag dag, std::span<const std::int64_t> target, Run& run);

} // namespace cape
