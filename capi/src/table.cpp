// Preprocessing: counts to a table.
#include <array>
#include <span>
#include <vector>

#include "handle.hpp"

using namespace cape::capi;

namespace {

template <class View>
cape_status preprocess(cape_table** out, const View* counts, const cape_options* options) noexcept {
  return create(out, options, [&](const cape_options& o) {
    const auto table = view_of(counts, "counts");
    cape::Run run = make_run(o);
    return cape::preprocess(table, o.values.preprocess, run);
  });
}

template <class View>
cape_status most_variable(int64_t* out, int64_t n, const View* x) noexcept {
  return guard([&] {
    if (n > 0) required(out, "out");
    copy_vector(out, n, cape::most_variable(view_of(x, "x"), n), "out");
  });
}

} // namespace

cape_status cape_preprocess(cape_table** out, const cape_matrix_view* counts,
                            const cape_options* options) {
  return preprocess(out, counts, options);
}

cape_status cape_preprocess_sparse(cape_table** out, const cape_sparse_view* counts,
                                   const cape_options* options) {
  return preprocess(out, counts, options);
}

void cape_table_free(cape_table* table) { release(table); }

cape_status cape_table_size(int64_t* n_rows_out, int64_t* n_cols_out, const cape_table* table) {
  clear(n_rows_out, n_cols_out);
  return guard([&] {
    required(n_rows_out, "n_rows_out");
    required(n_cols_out, "n_cols_out");
    const cape::Matrix& x = object(table, "table").data.x;
    *n_rows_out = x.rows();
    *n_cols_out = x.cols();
  });
}

cape_status cape_table_values(double* out, int64_t n_rows, int64_t n_cols,
                              const cape_table* table) {
  return guard([&] { copy_matrix(out, n_rows, n_cols, object(table, "table").data.x); });
}

cape_status cape_table_rows(int64_t* out, int64_t n, const cape_table* table) {
  return guard([&] { copy_vector(out, n, object(table, "table").data.cells, "out"); });
}

cape_status cape_table_cols(int64_t* out, int64_t n, const cape_table* table) {
  return guard([&] { copy_vector(out, n, object(table, "table").data.features, "out"); });
}

cape_status cape_most_variable(int64_t* out, int64_t n, const cape_matrix_view* x) {
  return most_variable(out, n, x);
}

cape_status cape_most_variable_sparse(int64_t* out, int64_t n, const cape_sparse_view* x) {
  return most_variable(out, n, x);
}

// Counts in blocks of cells.

namespace {

cape::Transform transform_of(const double* factor, int64_t n_cells, int32_t logarithm) {
  cape::Transform how;
  if (factor != nullptr) how.factor = {factor, static_cast<std::size_t>(n_cells)};
  how.logarithm = static_cast<cape::Logarithm>(logarithm);
  return how;
}

template <class View>
cape_status cell_sums(double* library_size_out, int64_t* detected_out, int64_t n,
                      const View* cells) noexcept {
  return guard([&] {
    const auto block = view_of(cells, "cells");
    check_length(n, block.rows, "n");
    const cape::CellSums sums = cape::cell_sums(block);
    if (library_size_out != nullptr)
      copy_vector(library_size_out, n, sums.library_size, "library_size_out");
    if (detected_out != nullptr) copy_vector(detected_out, n, sums.detected, "detected_out");
  });
}

template <class View>
cape_status transform_by_row(double* out, int64_t n_rows, int64_t n_cols, const View* cells,
                             const double* factor, int32_t logarithm,
                             const int64_t* features) noexcept {
  return guard([&] {
    const auto block = view_of(cells, "cells");
    check_output(out, n_rows, n_cols, block.rows, features == nullptr ? block.cols : n_cols);
    const cape::Transform how = transform_of(factor, block.rows, logarithm);
    if (features == nullptr)
      transformed_rows(block, how, out);
    else
      transformed_rows(block, how, values(features, n_cols, "features", "n_cols"), out);
  });
}

template <class View>
cape_status scan_add(cape_scan* scan, const View* cells, const double* factor,
                     int32_t logarithm) noexcept {
  return guard([&] {
    cape::FeatureScan& s = object(scan, "scan").scan;
    const auto block = view_of(cells, "cells");
    s.add(block, transform_of(factor, block.rows, logarithm));
  });
}

} // namespace

cape_status cape_cell_sums(double* library_size_out, int64_t* detected_out, int64_t n,
                           const cape_matrix_view* cells) {
  return cell_sums(library_size_out, detected_out, n, cells);
}

cape_status cape_cell_sums_sparse(double* library_size_out, int64_t* detected_out, int64_t n,
                                  const cape_sparse_view* cells) {
  return cell_sums(library_size_out, detected_out, n, cells);
}

cape_status cape_cell_factors(double* out, int64_t n, const double* library_size,
                              const double* size_factor, double target_sum) {
  return guard([&] {
    const auto sizes = values(library_size, n, "library_size");
    const auto own =
        size_factor == nullptr ? std::span<const double>{} : values(size_factor, n, "size_factor");
    copy_vector(out, n, cape::cell_factors(sizes, own, target_sum), "out");
  });
}

cape_status cape_transform_by_row(double* out, int64_t n_rows, int64_t n_cols,
                                  const cape_matrix_view* cells, const double* factor,
                                  int32_t logarithm, const int64_t* features) {
  return transform_by_row(out, n_rows, n_cols, cells, factor, logarithm, features);
}

cape_status cape_transform_by_row_sparse(double* out, int64_t n_rows, int64_t n_cols,
                                         const cape_sparse_view* cells, const double* factor,
                                         int32_t logarithm, const int64_t* features) {
  return transform_by_row(out, n_rows, n_cols, cells, factor, logarithm, features);
}

cape_status cape_transform_stored(double* out, int64_t n, const cape_sparse_view* cells,
                                  const double* factor, int32_t logarithm) {
  return guard([&] {
    const cape::SparseView block = view_of(cells, "cells");
    check_output(out, n, block.nonzeros());
    transformed_stored(block, transform_of(factor, block.rows, logarithm), out);
  });
}

cape_status cape_scan_new(cape_scan** out, int64_t n_columns, const int64_t* features, int64_t n) {
  return create(out, [&] {
    return features == nullptr ? cape::FeatureScan(n_columns)
                               : cape::FeatureScan(n_columns, values(features, n, "features"));
  });
}

void cape_scan_free(cape_scan* scan) { release(scan); }

cape_status cape_scan_add(cape_scan* scan, const cape_matrix_view* cells, const double* factor,
                          int32_t logarithm) {
  return scan_add(scan, cells, factor, logarithm);
}

cape_status cape_scan_add_sparse(cape_scan* scan, const cape_sparse_view* cells,
                                 const double* factor, int32_t logarithm) {
  return scan_add(scan, cells, factor, logarithm);
}

cape_status cape_scan_end_group(cape_scan* scan) {
  return guard([&] { object(scan, "scan").scan.end_group(); });
}

cape_status cape_scan_summary(double* out, int64_t n_rows, int64_t n_cols, const cape_scan* scan) {
  return guard([&] {
    copy_records<8>(out, n_rows, n_cols, object(scan, "scan").scan.summaries(),
                    [](const cape::FeatureSummary& f) {
                      return std::array{static_cast<double>(f.count),
                                        static_cast<double>(f.detected),
                                        static_cast<double>(f.missing),
                                        static_cast<double>(f.infinite),
                                        static_cast<double>(f.fractional),
                                        f.smallest,
                                        f.largest,
                                        f.variance};
                    });
  });
}

cape_status cape_largest_variances(int64_t* out, int64_t n, const double* variance,
                                   int64_t n_features) {
  return guard([&] {
    const auto given = values(variance, n_features, "variance", "n_features");
    if (n > 0) required(out, "out");
    copy_vector(out, n, cape::most_variable(given, n), "out");
  });
}
