// Which of the tested edges stay, given how many pairs there were to test.
#pragma once
#include "dag/edge_factors.hpp"
#include "dag/table.hpp"

namespace cape {

/// Edges that stay.
struct Discoveries {
  std::vector<Edge> kept; ///< by rising (from, to)
  /// Expected share of the kept edges, but those required, whose ends are not joined
  double false_share = 0;
  std::int64_t pairs = 0; ///< that may be joined and need not be
};
/// Those of the edges (by features, weights: t of the refinement) at which the rate of false
/// discoveries among these pairs is at most `rate` (Y. Benjamini and Y. Hochberg, 1995), by
/// edge_p_value() on 5,000 evenly spaced rows at most. Repeated without those that fall, until none
/// does. What is required stays.
Discoveries limit_false_discoveries(const std::vector<Edge>& edges, double rate,
                                    const sem::Table& table, const EdgeFactors& known, Run& run);

} // namespace cape
