// A threshold by tests of a sample of the effects.
#pragma once
#include "dag/table.hpp"

namespace cape {

inline constexpr std::int64_t sampled_effects = 60, sampled_rows = 5000; ///< at most

/// suggest_threshold() from the table that these weights, by its source's columns, were learned
/// from.
ThresholdSuggestion suggest_threshold(const sem::Table& table, const std::vector<Edge>& weights,
                                      const DagOptions& options, Run& run, Journal* journal);

} // namespace cape
