// Held-out tests of the causes of single columns among their strongest partners.
#pragma once
#include "dag/edge_factors.hpp"
#include "dag/options.hpp"
#include "dag/table.hpp"

namespace cape {

/// Smaller ones have no say.
inline constexpr double least_tested_weight = 0.1 * automatic_threshold;

/// Edges between the source's columns, with the weights that were learned, by features of the
/// table: all weights positive, what is required the largest, and nothing that has no say.
std::vector<Edge> tested_weights(const std::vector<Edge>& weights, const sem::Table& table,
                                 const EdgeFactors& known);
/// Of each of these effects its `most` strongest partners in these edges, one way or the other,
/// that are earlier in the order and may be its causes, by rising number; and all that are
/// required.
std::vector<std::vector<std::int64_t>>
possible_causes(std::span<const std::int64_t> effects, const std::vector<Edge>& edges,
                std::span<const std::int64_t> order, const EdgeFactors& known, std::int64_t most);
/// What the tests say of these effects, by features, on so many rows of the table. Of that only the
/// columns that take part are in memory. report is called before every round of regressions, with
/// the number of effects that may still lose a cause. journal: see eliminate().
TestedEdges test_causes(const sem::Table& table, std::int64_t rows,
                        std::span<const std::int64_t> effects,
                        const std::vector<std::vector<std::int64_t>>& causes,
                        const EdgeFactors& known, const DagOptions& options, Run& run,
                        Journal* journal, const std::function<void(std::size_t)>& report);

/// The refinement where columns are many: their order is that of the weights (by the source's
/// columns), and each is tested against its strongest partners. The result is by features of the
/// table. O(M) regressions, and a part of the table in memory.
TestedGraph refine_along_weights(const sem::Table& table, const std::vector<Edge>& weights,
                                 const EdgeFactors& known, const DagOptions& options, Run& run,
                                 Journal* journal);

} // namespace cape
