// Missing values, drawn from their distribution given the rest of the row.
#pragma once
#include "dag/table.hpp"

namespace cape::sem {

/// Draw the values of x that are missing (0 there, columns of mean 0). Equations hold where the
/// weight is positive.
void draw_missing(Matrix& x, const Mask& missing, const Matrix& weight, const DagOptions& options,
                  Run& run);

} // namespace cape::sem
