// A ranking of pairs of columns.
#pragma once
#include "dag/edge_factors.hpp"
#include "dag/table.hpp"

namespace cape::sem {

/// How much speaks for each ordered pair, see Dag::support; by features of the table.
SparseMatrix support_of(const SparseMatrix& weights, const Table& table, const EdgeFactors& known,
                        Run& run);
/// What that holds beside the table, in bytes, and the products that it takes.
double support_memory(std::int64_t rows, std::int64_t features);
double support_operations(std::int64_t rows, std::int64_t features);

} // namespace cape::sem
