// How much of lambda an edge has to bear, by how much its ends have to do with each other.
#pragma once
#include "dag/causes.hpp"
#include "dag/table.hpp"

namespace cape::sem {

/// Factors of lambda for every cause of every effect (as `causes` has them, or all), from these
/// rows of a table: (q* / q)^g within [0.3, 4]. q = cor(x_i, x_j)^2 + max(0, cor(u_i, x_j)^2 - 2
/// log M / N), where u_i is what a line in x_i leaves of x_i^2; q* is the floor(1.5 M)-th largest
/// q, and g = min(1, 5 M / N): with many rows all factors come near 1. Rows count by their weight
/// in the effect's equation; 8192 evenly spaced ones at most are looked at. O(N M^2), or O(N M p)
/// for p causes of each.
Matrix adaptive_factors(const Table& table, std::span<const std::int64_t> rows,
                        const Causes& causes, Run& run);

} // namespace cape::sem
