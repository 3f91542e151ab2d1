// A ranking of pairs by how early one enters the lasso's path of the other.
#pragma once
#include "dag/edge_factors.hpp"
#include "dag/table.hpp"

namespace cape::sem {

/// How early each feature (row of the result) enters the lasso's path of each other one, on average
/// over 200 halves of the rows and random penalties: from 1, always first, to 0, never among the
/// first five. What is excluded never enters. Rows count by their weight in the effect's equation;
/// 2,000 evenly spaced ones at most are looked at. O(N M^2) for the weights that
/// many effects share, O(N M) for every effect of others.
Matrix stability_scores(const Table& table, const EdgeFactors& known, Run& run);
/// How many of so many rows that looks at.
std::int64_t ranked_rows(std::int64_t rows);

} // namespace cape::sem
