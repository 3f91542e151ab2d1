// What covariates explain of a table.
#pragma once

namespace cape {

/// x, centred in its batches, becomes its residuals of a linear regression on design.covariates
/// within batches, by the weight of every column's equation (Frisch, Waugh, Lovell: as if each
/// equation had the covariates among its causes, unpenalised); exactly 0 in a column that they
/// explain whole. Values without a weight are moved by the same coefficients; missing ones stay.
/// O(rows columns K), and as often K more for columns with missing or perturbed values.
void take_out_covariates(Matrix& x, const Matrix& weight, const Design& design, Run& run);

} // namespace cape
