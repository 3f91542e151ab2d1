// What each column has most to do with.
#pragma once
#include "dag/edge_factors.hpp"
#include "dag/table.hpp"

namespace cape::sem {

/// Of every feature that has one above noise its partner, see Dag::partners: edges from the partner
/// to the feature, by rising feature. causes: those that the model had, whose pairs alone are
/// looked at; empty: all.
std::vector<Edge> partners_of(const Table& table, const Causes& causes, const EdgeFactors& known,
                              Run& run);
/// What that holds beside the table, in bytes, and the operations of its products.
double partners_memory(std::int64_t rows, std::int64_t features);
double partners_operations(std::int64_t rows, std::int64_t features, std::int64_t inputs);

} // namespace cape::sem
