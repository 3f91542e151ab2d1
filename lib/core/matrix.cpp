module;
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
module cape.core;

namespace cape {
namespace {

template <class T>
void check_dense(const BasicMatrixView<T>& view, std::string_view name) {
  const std::int64_t size = checked_size(view.rows, view.cols, name);
  const bool by_column = view.layout == Layout::col_major;
  if (!by_column && view.layout != Layout::row_major)
    throw Error(Status::invalid_argument,
                std::string(name) + ": layout is " +
                    std::to_string(static_cast<std::int32_t>(view.layout)) +
                    "; use 0 (column-major) or 1 (row-major)");
  if (size == 0) return;
  if (view.data == nullptr)
    throw Error(Status::invalid_argument, std::string(name) + ": data is null but the matrix is " +
                                              std::to_string(view.rows) + " x " +
                                              std::to_string(view.cols));
  const std::int64_t length = by_column ? view.rows : view.cols;
  if (view.ld < length)
    throw Error(Status::dim_mismatch, std::string(name) + ": ld is " + std::to_string(view.ld) +
                                          " but a " + (by_column ? "column" : "row") + " has " +
                                          std::to_string(length) +
                                          " elements; ld must be at least that");
  checked_size(view.ld, by_column ? view.cols : view.rows, name);
}

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
                who + ": offsets[0] is " + std::to_string(view.offsets[0]) + "; it must be 0");
  for (std::int64_t o = 0; o < outer; ++o)
    if (view.offsets[o + 1] < view.offsets[o] || view.offsets[o + 1] - view.offsets[o] > inner)
      throw Error(Status::invalid_argument,
                  who + ": offsets[" + std::to_string(o + 1) + "] is " +
                      std::to_string(view.offsets[o + 1]) + " after " +
                      std::to_string(view.offsets[o]) +
                      "; offsets must not fall and a row (column) has at most " +
                      std::to_string(inner) + " entries");
  if (view.nonzeros() == 0) return;
  if (view.values == nullptr || view.indices == nullptr)
    throw Error(Status::invalid_argument, who + ": values or indices is null");
  for (std::int64_t o = 0; o < outer; ++o)
    for (std::int64_t e = view.offsets[o]; e < view.offsets[o + 1]; ++e)
      if (view.indices[e] < 0 || view.indices[e] >= inner ||
          (e > view.offsets[o] && view.indices[e] <= view.indices[e - 1]))
        throw Error(Status::invalid_argument, who + ": indices[" + std::to_string(e) + "] is " +
                                                  std::to_string(view.indices[e]) +
                                                  "; indices must lie in [0, " +
                                                  std::to_string(inner) + ") and increase");
}

void check_finite(const MatrixView& view, std::string_view name) {
  std::int64_t count = 0, first_row = 0, first_col = 0;
  double first = 0;
  for (std::int64_t j = 0; j < view.cols; ++j)
    for (std::int64_t i = 0; i < view.rows; ++i)
      if (!std::isfinite(view(i, j)) && count++ == 0) {
        first_row = i;
        first_col = j;
        first = view(i, j);
      }
  if (count > 0)
    throw Error(Status::invalid_argument, std::string(name) + " has " + std::to_string(count) +
                                              " value(s) that are not finite; the first is " +
                                              (std::isnan(first) ? "NaN"
                                               : first > 0       ? "Inf"
                                                                 : "-Inf") +
                                              " at row " + std::to_string(first_row + 1) +
                                              ", column " + std::to_string(first_col + 1) +
                                              " (counted from 1)");
}

Matrix to_matrix(const MatrixView& view) {
  Matrix out(view.rows, view.cols);
  for (std::int64_t j = 0; j < view.cols; ++j)
    for (std::int64_t i = 0; i < view.rows; ++i) out(i, j) = view(i, j);
  return out;
}

} // namespace cape
