// What is known of the rows, as weights of every value's own equation and as batches.
#pragma once

namespace cape {

inline constexpr std::int64_t least_rows = 10; ///< to learn an equation from, or to test an edge

/// The rows that count: those with a weight and, where values may be missing, with a value.
std::vector<std::int64_t> counted_rows(const MatrixView& x, const Design& design, Missing missing);
/// What is known of these rows of a table: without weights if they are equal.
Design design_of_rows(const Design& design, std::span<const std::int64_t> rows);
/// The rows of every batch, which are one where none are given.
std::map<std::int64_t, std::vector<std::int64_t>> rows_by_batch(const Design& design,
                                                                std::int64_t rows);
/// What every value's own equation counts (rows x columns): the weight of its row, of mean 1, or 0
/// where the value is perturbed. Empty if all count 1.
Matrix equation_weights(std::int64_t rows, std::int64_t columns, const Design& design);
/// Weights 0 for the equations of x that cannot be learned: of columns that have fewer than 10 rows
/// with a weight, or do not vary within any batch of them.
void drop_equations(const MatrixView& x, const Design& design, Matrix& weight);
/// What these rows count in the mean by which a column is centred: the weight of their equations,
/// or, where none of them has one, of the rows.
std::vector<double> centering_weights(std::span<const std::int64_t> rows, std::int64_t column,
                                      const Matrix& weight, const Design& design);
/// x without the mean of every batch, which values that were set from outside have no part in;
/// exactly 0 where a batch does not vary. weight: of the equations. Without batches all rows are
/// one. Every row counts.
Matrix center_batches(const MatrixView& x, const Matrix& weight, const Design& design);

} // namespace cape
