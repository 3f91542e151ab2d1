// Preprocessing: counts to a table.
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
