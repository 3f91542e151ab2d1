// Backward elimination of causes by held-out tests.
#pragma once
#include "dag/regressions.hpp"
#include "dag/table.hpp"

namespace cape {

/// What the journal, which may be null, has under this key.
std::optional<double> recorded(const Journal* journal, std::uint64_t key);
/// A checkpoint holds finite numbers alone.
void record(Journal* journal, std::uint64_t key, double value);

/// For all families at once; causes that are required stay. report gets the number of regressions
/// that come next, and of families that may still lose a cause. An edge is tested on the rows where
/// neither end is missing. journal, here and below: null, or where finished regressions are kept
/// and looked for, all of one fit.
TestedEdges eliminate(std::vector<Family> open, const Regressions& regressions,
                      const sem::Mask& missing, double least_t,
                      const std::function<bool(std::int64_t, std::int64_t)>& required, Run& run,
                      Journal* journal,
                      const std::function<void(std::size_t, std::size_t)>& report);

} // namespace cape
