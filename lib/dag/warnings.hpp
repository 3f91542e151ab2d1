// What the user should know of a fit.
#pragma once

namespace cape {

/// Fill Dag::warnings of a fit of so many rows. exogenous: columns without an equation.
void add_warnings(const DagOptions& options, std::int64_t rows, bool not_refined,
                  const std::vector<std::int64_t>& exogenous, Dag& dag);

} // namespace cape
