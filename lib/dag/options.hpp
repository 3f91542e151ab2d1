// What automatic options stand for.
#pragma once

namespace cape {

/// options.lambda, or the automatic choice for a table of this size.
double lambda_of(const DagOptions& options, std::int64_t rows, std::int64_t features);
/// options.h_tolerance, or the automatic choice for so many features.
double h_tolerance_of(const DagOptions& options, std::int64_t features);
/// The threshold where no tests suggest another: options.threshold, or the automatic one. Weights
/// of less than a tenth of the latter have no say in the tests.
inline constexpr double automatic_threshold = 0.2;
double threshold_of(const DagOptions& options);
/// The t at which the refinement keeps a parent: options.refine_t, or the automatic choice for N
/// rows.
double refine_t_of(const DagOptions& options, std::int64_t rows);
/// Folds of the cross-fitting of N rows.
std::int64_t refinement_folds(std::int64_t rows);
/// Inputs that an effect of this model has: the candidates of the options, or all features.
std::int64_t inputs_of_effect(const DagOptions& options, std::int64_t features);

/// Whether to train in float, and Error(invalid_argument) if the options ask for it in vain.
bool trains_in_float(const DagOptions& options);
/// Whether the refinement looks for a better order of the columns of a table of that size.
bool searches_order(const DagOptions& options, std::int64_t rows, std::int64_t columns);
/// Positions to either side that this search tries for a column.
std::int64_t search_window(const DagOptions& options, std::int64_t columns);
/// Whether the threshold is chosen by tests of a sample of the effects, as of too many columns to
/// test them all.
bool tests_sample(const DagOptions& options, std::int64_t columns);
/// Partners of a column that may be its causes. Least squares cost next to nothing; a network is
/// short of rows with more inputs.
std::int64_t most_partners(Sem sem);

} // namespace cape
