// Tables as sources of rows, and what their values must be.
#pragma once

namespace cape {

/// A table in memory, which outlives the source.
RowSource source_of(const MatrixView& x);
/// The same source, whose values are looked at when they are read: Error(invalid_argument) unless
/// they are finite and small enough.
RowSource checked(const RowSource& source);
/// Whether any value of these rows is missing. Error(invalid_argument) for those that are not
/// finite, but NaN where it is masked, or too large.
bool check_values(const MatrixView& x, std::span<const std::int64_t> rows, Missing missing);
/// The r-th of `count` evenly spaced ones of so many rows, and all of them: floor(r rows / count).
std::int64_t spaced_row(std::int64_t r, std::int64_t rows, std::int64_t count);
std::vector<std::int64_t> spaced_rows_of(std::int64_t rows, std::int64_t count);
/// These rows of all columns.
Matrix rows_of(const MatrixView& x, std::span<const std::int64_t> rows);
/// These rows of these columns, which may be none.
Matrix rows_of(const MatrixView& x, std::span<const std::int64_t> rows,
               std::span<const std::int64_t> columns);

} // namespace cape
