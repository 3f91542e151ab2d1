module;
#include "internal/message.hpp"
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>
module cape.core;

namespace cape {
namespace {

template <class T>
void check_dense(const BasicMatrixView<T>& view, std::string_view name) {
  const std::int64_t size = checked_size(view.rows, view.cols, name);
  const bool by_column = view.layout == Layout::col_major;
  if (!by_column && view.layout != Layout::row_major)
    throw Error(Status::invalid_argument,
                message(name, ": layout is ", static_cast<std::int32_t>(view.layout),
                        "; use 0 (column-major) or 1 (row-major)"));
  if (size == 0) {
    // No memory bounds the other side, which loops go over all the same.
    constexpr std::int64_t most = std::int64_t{1} << 24;
    if (std::max(view.rows, view.cols) > most)
      throw Error(Status::invalid_argument,
                  message(name, " is ", view.rows, " x ", view.cols,
                          "; the sides of a matrix without elements must be at most ", most));
    return;
  }
  if (view.data == nullptr)
    throw Error(Status::invalid_argument,
                message(name, ": data is null but the matrix is ", view.rows, " x ", view.cols));
  const std::int64_t length = by_column ? view.rows : view.cols;
  if (view.ld < length)
    throw Error(Status::dim_mismatch,
                message(name, ": ld is ", view.ld, " but a ", (by_column ? "column" : "row"),
                        " has ", length, " elements; ld must be at least that"));
  checked_size(view.ld, by_column ? view.cols : view.rows, name);
}

// The values that are not finite: how many, and the first.
struct NotFinite {
  std::int64_t count = 0, row = 0, column = 0;
  double value = 0;

  void look(double v, std::int64_t i, std::int64_t j) {
    if (std::isfinite(v) || count++ > 0) return;
    value = v;
    row = i;
    column = j;
  }
  void refuse(std::string_view name) const {
    if (count == 0) return;
    throw Error(Status::invalid_argument,
                message(name, " has ", count, " value(s) that are not finite; the first is ",
                        (std::isnan(value) ? "NaN"
                         : value > 0       ? "Inf"
                                           : "-Inf"),
                        " at row ", row, ", column ", column, " (counted from 0)"));
  }
};

} // namespace

void check_view(const MatrixView& view, std::string_view name) { check_dense(view, name); }
void check_view(const BasicMatrixView<float>& view, std::string_view name) {
  check_dense(view, name);
}

void check_view(const SparseView& view, std::string_view name) {
  const std::string who(name);
  checked_size(view.rows, view.cols, name);
  if (view.layout != Layout::col_major && view.layout != Layout::row_major)
    throw Error(Status::invalid_argument, who + ": layout must be 0 (CSC) or 1 (CSR)");
  const std::int64_t outer = view.outer(), inner = view.inner();
  if (outer == 0) return;
  if (view.offsets == nullptr) throw Error(Status::invalid_argument, who + ": offsets is null");
  if (view.offsets[0] != 0)
    throw Error(Status::invalid_argument,
                message(who, ": offsets[0] is ", view.offsets[0], "; it must be 0"));
  for (std::int64_t o = 0; o < outer; ++o)
    if (view.offsets[o + 1] < view.offsets[o] || view.offsets[o + 1] - view.offsets[o] > inner)
      throw Error(Status::invalid_argument,
                  message(who, ": offsets[", o + 1, "] is ", view.offsets[o + 1], " after ",
                          view.offsets[o],
                          "; offsets must not fall and a row (column) has at most ", inner,
                          " entries"));
  if (view.nonzeros() == 0) return;
  if (view.values == nullptr || view.indices == nullptr)
    throw Error(Status::invalid_argument, who + ": values or indices is null");
  for (std::int64_t o = 0; o < outer; ++o)
    for (std::int64_t e = view.offsets[o]; e < view.offsets[o + 1]; ++e)
      if (view.indices[e] < 0 || view.indices[e] >= inner ||
          (e > view.offsets[o] && view.indices[e] <= view.indices[e - 1]))
        throw Error(Status::invalid_argument,
                    message(who, ": indices[", e, "] is ", view.indices[e],
                            "; indices must lie in [0, ", inner, ") and increase"));
}

void check_finite(const MatrixView& view, std::string_view name) {
  NotFinite found;
  for (std::int64_t j = 0; j < view.cols; ++j)
    for (std::int64_t i = 0; i < view.rows; ++i) found.look(view(i, j), i, j);
  found.refuse(name);
}

void check_finite(const SparseView& view, std::string_view name) {
  NotFinite found;
  const bool by_column = view.layout == Layout::col_major;
  for (std::int64_t o = 0; o < view.outer(); ++o)
    for (std::int64_t e = view.offsets[o]; e < view.offsets[o + 1]; ++e)
      found.look(view.values[e], by_column ? view.indices[e] : o, by_column ? o : view.indices[e]);
  found.refuse(name);
}

double SparseMatrix::operator()(std::int64_t i, std::int64_t j) const {
  const auto outer = static_cast<std::size_t>(layout == Layout::col_major ? j : i);
  const auto inner = static_cast<std::int32_t>(layout == Layout::col_major ? i : j);
  const auto first = indices.begin() + offsets[outer], last = indices.begin() + offsets[outer + 1];
  const auto at = std::lower_bound(first, last, inner);
  return at == last || *at != inner ? 0 : values[static_cast<std::size_t>(at - indices.begin())];
}

Matrix to_matrix(const MatrixView& view) {
  Matrix out(view.rows, view.cols);
  for (std::int64_t j = 0; j < view.cols; ++j)
    for (std::int64_t i = 0; i < view.rows; ++i) out(i, j) = view(i, j);
  return out;
}

Matrix to_matrix(const SparseView& view) {
  check_memory(8 * static_cast<double>(view.rows) * static_cast<double>(view.cols),
               message("a dense matrix of ", view.rows, " x ", view.cols));
  Matrix out(view.rows, view.cols);
  const bool by_column = view.layout == Layout::col_major;
  for (std::int64_t o = 0; o < view.outer(); ++o)
    for (std::int64_t e = view.offsets[o]; e < view.offsets[o + 1]; ++e)
      (by_column ? out(view.indices[e], o) : out(o, view.indices[e])) = view.values[e];
  return out;
}

SparseMatrix to_sparse(const MatrixView& view) {
  const bool by_column = view.layout == Layout::col_major;
  const std::int64_t outer = by_column ? view.cols : view.rows,
                     inner = by_column ? view.rows : view.cols;
  if (std::max(inner, outer) > std::numeric_limits<std::int32_t>::max())
    throw Error(Status::invalid_argument, message("a matrix has a side of ", std::max(inner, outer),
                                                  "; compressed, it must be below 2^31"));
  SparseMatrix sparse;
  sparse.rows = view.rows;
  sparse.cols = view.cols;
  sparse.layout = view.layout;
  sparse.offsets.reserve(static_cast<std::size_t>(outer) + 1);
  sparse.offsets.push_back(0);
  for (std::int64_t o = 0; o < outer; ++o) {
    for (std::int64_t i = 0; i < inner; ++i) {
      const double value = by_column ? view(i, o) : view(o, i);
      if (value == 0) continue;
      sparse.values.push_back(value);
      sparse.indices.push_back(static_cast<std::int32_t>(i));
    }
    sparse.offsets.push_back(std::ssize(sparse.values));
  }
  return sparse;
}

} // namespace cape
