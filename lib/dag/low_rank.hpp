// What the linear model of low rank needs, and what it cannot have.
#pragma once

namespace cape::sem {

/// What training at that rank holds beside the table, in bytes, with minibatches of so many rows.
double low_rank_memory(std::int64_t features, double batch, std::int64_t rank);
/// Error(invalid_argument) if options.rank is above 0 and the number of columns, the other options
/// or the knowledge exclude it.
void check_low_rank(std::int64_t columns, const Knowledge& knowledge, const DagOptions& options);

} // namespace cape::sem
