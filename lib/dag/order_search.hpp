// The refinement of few columns, which searches for their order.
#pragma once
#include "dag/table.hpp"

namespace cape {

/// refine() within such factors, see factor_matrix(). An edge is tested on the rows where neither
/// end is missing. journal: see eliminate().
TestedGraph refine(const MatrixView& x, const sem::Mask& missing, const MatrixView& weights,
                   const Matrix& factor, bool unequal_variances, const DagOptions& options,
                   Run& run, Journal* journal);

} // namespace cape
