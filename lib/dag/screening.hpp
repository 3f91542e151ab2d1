// The columns that may be causes of an effect, by association.
#pragma once
#include "dag/edge_factors.hpp"

namespace cape::sem {

/// The `count` columns most associated with each column of a centred table, see candidate_causes().
/// What is required is chosen first, what is excluded last.
Causes screen(const MatrixView& x, const EdgeFactors& factors, std::int64_t count, Run& run);
/// Rows that the screening looks at: its time grows with them and with the square of the columns.
std::int64_t screened_rows(std::int64_t rows, std::int64_t columns);
/// The products of all columns with all columns, over those rows, that it takes.
std::int64_t screening_products();

} // namespace cape::sem
