// Matrices of the fuzzers: small, of either layout, with gaps, and now and then described wrongly.
#pragma once
#include "fuzz.hpp"

namespace fuzz {

struct Matrix {
  std::vector<double> values; ///< no more than the view may reach, so that sanitizers see the rest
  cape_matrix_view view;

  Matrix(Input& in, std::int64_t rows, std::int64_t cols) {
    if (in.one_in(24)) rows = in.in(0, 6);
    if (in.one_in(24)) cols = in.in(0, 6);
    const bool by_row = in.flip();
    const std::int64_t length = by_row ? cols : rows, count = by_row ? rows : cols;
    const std::int64_t ld = length + (in.flip() ? 0 : in.in(0, 3));
    values = in.numbers(length > 0 && count > 0 ? ld * (count - 1) + length : 0);
    view = {
        sizeof view, values.data(), rows, cols, ld, by_row ? CAPE_ROW_MAJOR : CAPE_COL_MAJOR, 0};
    if (!in.one_in(12)) return;
    switch (in.in(0, 7)) {
    case 0: view.data = nullptr; break;
    case 1: view.ld = std::min(in.integer(), ld - 1); break;
    case 2: view.layout = 7; break;
    case 3: view.struct_size = static_cast<std::size_t>(in.in(0, 7)); break;
    case 4: view.n_rows = std::numeric_limits<std::int64_t>::min(); break;
    case 5: view.n_rows = view.n_cols = std::numeric_limits<std::int64_t>::max(); break;
    case 6: view.n_rows = std::int64_t{1} << 40, view.data = nullptr; break;
    default: view.n_cols = -1;
    }
  }
  void shrink(double below) {
    for (double& v : values) v = std::fmod(v, below);
  }
};

/// Such a sparse matrix, of values that are not negative (unless `any`), with about half of them.
struct Sparse {
  std::vector<std::int64_t> offsets = {0};
  std::vector<std::int32_t> indices;
  std::vector<double> values;
  cape_sparse_view view;

  Sparse(Input& in, std::int64_t rows, std::int64_t cols, bool any = false) {
    const bool by_row = in.flip();
    const std::int64_t outer = by_row ? rows : cols, inner = by_row ? cols : rows;
    for (std::int64_t o = 0; o < outer; ++o) {
      for (std::int64_t i = 0; i < inner; ++i)
        if (in.flip()) {
          indices.push_back(static_cast<std::int32_t>(i));
          values.push_back(in.mostly_ordinary());
          if (!any) values.back() = std::fabs(values.back());
        }
      offsets.push_back(static_cast<std::int64_t>(indices.size()));
    }
    view = CAPE_SPARSE_VIEW(values.data(), indices.data(), offsets.data(), rows, cols, by_row);
    switch (in.in(0, 20)) {
    case 0: offsets.front() = in.integer(); break;
    case 1: // not the last, which says how many values there are
      if (const std::int64_t wrong = in.integer(); offsets.size() > 2)
        offsets[offsets.size() / 2] = wrong;
      break;
    case 2:
      if (!indices.empty()) indices[0] = static_cast<std::int32_t>(in.bits(4));
      break;
    case 3: view.offsets = nullptr; break;
    case 4: view.values = nullptr; break;
    case 5: view.n_rows = -1; break;
    case 6: view.layout = 5; break;
    default: break;
    }
  }
};

/// A buffer of rows x cols, or now and then of other dimensions.
struct Output {
  std::int64_t rows, cols;
  std::vector<double> values;

  Output(Input& in, std::int64_t r, std::int64_t c) : rows(r), cols(c) {
    if (in.one_in(32)) rows = in.in(0, 8);
    values.assign(static_cast<std::size_t>(rows * cols), -7);
  }
  double* data() { return values.data(); }
  cape_matrix_view view() const { return CAPE_MATRIX_VIEW(values.data(), rows, cols); }
};

} // namespace fuzz
