module;
#include "internal/message.hpp"
#include <cmath>
#include <cstdint>
#include <functional>
#include <new>
#include <numeric>
#include <span>
#include <string>
#include <typeinfo>
#include <variant>
#include <vector>
module cape.dag;
#include "dag/row_source.hpp"

namespace cape {
namespace {

// A difference of two such values is finite.
constexpr double largest_value = 1e300;

std::string value_text(double v) {
  if (std::isnan(v)) return "NaN";
  return std::isinf(v) ? v > 0 ? "Inf" : "-Inf" : message(v);
}

} // namespace

// r rows may overflow.
std::int64_t spaced_row(std::int64_t r, std::int64_t rows, std::int64_t count) {
  return r * (rows / count) + r * (rows % count) / count;
}

std::vector<std::int64_t> spaced_rows_of(std::int64_t rows, std::int64_t count) {
  std::vector<std::int64_t> spaced;
  for (std::int64_t r = 0; r < count; ++r) spaced.push_back(spaced_row(r, rows, count));
  return spaced;
}

RowSource source_of(const MatrixView& x) {
  return {x.rows, x.cols, [x](std::span<const std::int64_t> numbers, double* out) {
            for (std::int64_t j = 0; j < x.cols; ++j)
              for (const std::int64_t row : numbers) *out++ = x(row, j);
          }};
}

RowSource checked(const RowSource& source) {
  return {source.rows, source.columns,
          [&source](std::span<const std::int64_t> numbers, double* out) {
            source.read(numbers, out);
            const double* value = out;
            for (std::int64_t j = 0; j < source.columns; ++j)
              for (const std::int64_t row : numbers)
                if (const double v = *value++; !(std::fabs(v) <= largest_value))
                  throw Error(Status::invalid_argument,
                              message("x has a value that is not finite, or beyond ", largest_value,
                                      ": ", value_text(v), " at row ", row, ", column ", j,
                                      " (counted from 0)"));
          }};
}

bool check_values(const MatrixView& x, std::span<const std::int64_t> rows, Missing missing) {
  bool any_missing = false;
  std::int64_t count = 0, row = 0, column = 0;
  for (std::int64_t j = 0; j < x.cols; ++j)
    for (const std::int64_t i : rows) {
      if (std::fabs(x(i, j)) <= largest_value) continue;
      const bool gap = std::isnan(x(i, j)) && missing == Missing::mask;
      any_missing |= gap;
      if (!gap && count++ == 0) row = i, column = j;
    }
  if (count > 0)
    throw Error(
        Status::invalid_argument,
        message("x has ", count, " value(s) that are not finite, or beyond ", largest_value,
                "; the first is ", value_text(x(row, column)), " at row ", row, ", column ", column,
                " (counted from 0)",
                missing == Missing::mask ? "; only NaN can stand for a missing value" : ""));
  return any_missing;
}

Matrix rows_of(const MatrixView& x, std::span<const std::int64_t> rows) {
  std::vector<std::int64_t> columns(static_cast<std::size_t>(x.cols));
  std::iota(columns.begin(), columns.end(), std::int64_t{0});
  return rows_of(x, rows, columns);
}

Matrix rows_of(const MatrixView& x, std::span<const std::int64_t> rows,
               std::span<const std::int64_t> columns) {
  Matrix out(std::ssize(rows), std::ssize(columns));
  for (std::size_t c = 0; c < columns.size(); ++c)
    for (std::size_t r = 0; r < rows.size(); ++r)
      out(static_cast<std::int64_t>(r), static_cast<std::int64_t>(c)) = x(rows[r], columns[c]);
  return out;
}

} // namespace cape
