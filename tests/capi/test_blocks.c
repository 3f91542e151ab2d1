/* Counts in blocks of cells: the pieces together give what cape_preprocess() gives, to the bit,
 * however the blocks are cut and stored. */
#include "check.h"

enum { CELLS = 40, FEATURES = 12, KEPT = 5 };

static double counts[CELLS * FEATURES]; /* row by row */
static double factor[CELLS];

static void fill(void) {
  uint64_t state = 3;
  for (int i = 0; i < CELLS * FEATURES; ++i) {
    const double value = noise(&state) * (1 + i % FEATURES);
    counts[i] = value > 0 ? floor(value) : 0;
  }
  for (int j = 0; j < FEATURES; ++j) counts[7 * FEATURES + j] = 0; /* a cell without counts */
}

/* A block as CSR. */
typedef struct {
  double values[CELLS * FEATURES];
  int32_t columns[CELLS * FEATURES];
  int64_t offsets[CELLS + 1];
  cape_sparse_view view;
} sparse;

static const cape_sparse_view* as_sparse(sparse* s, int first, int n) {
  int64_t e = 0;
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < FEATURES; ++j) {
      const double value = counts[(first + i) * FEATURES + j];
      if (value == 0) continue;
      s->values[e] = value;
      s->columns[e++] = j;
    }
    s->offsets[i + 1] = e;
  }
  const cape_sparse_view view =
      CAPE_SPARSE_VIEW(s->values, s->columns, s->offsets, n, FEATURES, CAPE_ROW_MAJOR);
  s->view = view;
  return &s->view;
}

static cape_matrix_view dense(int first, int n) {
  const cape_matrix_view view = CAPE_ROW_MATRIX_VIEW(counts + first * FEATURES, n, FEATURES);
  return view;
}

static void pieces_give_the_whole(int width, int is_sparse) {
  static sparse s;
  double size[CELLS], summary[FEATURES * 8], variance[FEATURES], x[CELLS * KEPT],
      expected[CELLS * KEPT];
  int64_t detected[CELLS], chosen[KEPT], cols[KEPT];
  cape_options* o = NULL;
  CHECK_OK(cape_options_new(&o));
  CHECK_OK(cape_options_set_i64(o, "preprocess.min_features", 0));
  CHECK_OK(cape_options_set_i64(o, "preprocess.min_cells", 0));
  CHECK_OK(cape_options_set_i64(o, "preprocess.n_variable", KEPT));
  cape_table* table = NULL;
  const cape_matrix_view whole = dense(0, CELLS);
  CHECK_OK(cape_preprocess(&table, &whole, o));
  CHECK_OK(cape_table_cols(cols, KEPT, table));
  CHECK_OK(cape_table_values(expected, CELLS, KEPT, table));

  for (int at = 0; at < CELLS; at += width) {
    const int n = CELLS - at < width ? CELLS - at : width;
    const cape_matrix_view d = dense(at, n);
    CHECK_OK(is_sparse ? cape_cell_sums_sparse(size + at, detected + at, n, as_sparse(&s, at, n))
                       : cape_cell_sums(size + at, detected + at, n, &d));
  }
  CHECK(size[7] == 0 && detected[7] == 0);
  CHECK_OK(cape_cell_factors(factor, CELLS, size, NULL, 1e4));
  cape_scan* scan = NULL;
  CHECK_OK(cape_scan_new(&scan, FEATURES, NULL, 0));
  for (int at = 0; at < CELLS; at += width) {
    const int n = CELLS - at < width ? CELLS - at : width;
    const cape_matrix_view d = dense(at, n);
    CHECK_OK(is_sparse ? cape_scan_add_sparse(scan, as_sparse(&s, at, n), factor + at,
                                              CAPE_LOG_NATURAL)
                       : cape_scan_add(scan, &d, factor + at, CAPE_LOG_NATURAL));
  }
  CHECK_OK(cape_scan_summary(summary, FEATURES, 8, scan));
  for (int j = 0; j < FEATURES; ++j) {
    CHECK(summary[j] == CELLS && summary[5 * FEATURES + j] == 0);
    variance[j] = summary[7 * FEATURES + j];
  }
  CHECK_OK(cape_largest_variances(chosen, KEPT, variance, FEATURES));
  CHECK(memcmp(chosen, cols, sizeof cols) == 0);
  for (int at = 0; at < CELLS; at += width) {
    const int n = CELLS - at < width ? CELLS - at : width;
    const cape_matrix_view d = dense(at, n);
    double* to = x + at * KEPT;
    CHECK_OK(is_sparse
                 ? cape_transform_by_row_sparse(to, n, KEPT, as_sparse(&s, at, n), factor + at,
                                                CAPE_LOG_NATURAL, chosen)
                 : cape_transform_by_row(to, n, KEPT, &d, factor + at, CAPE_LOG_NATURAL, chosen));
  }
  for (int i = 0; i < CELLS; ++i)
    for (int k = 0; k < KEPT; ++k) CHECK(x[i * KEPT + k] == expected[k * CELLS + i]);
  cape_scan_free(scan);
  cape_table_free(table);
  cape_options_free(o);
}

static void stored_values_keep_their_places(void) {
  static sparse s;
  static double out[CELLS * FEATURES];
  const cape_sparse_view* view = as_sparse(&s, 0, CELLS);
  const int64_t n = s.offsets[CELLS];
  CHECK_OK(cape_transform_stored(out, n, view, factor, CAPE_LOG_BINARY));
  for (int i = 0; i < CELLS; ++i)
    for (int64_t e = s.offsets[i]; e < s.offsets[i + 1]; ++e)
      CHECK(out[e] == log1p(s.values[e] * factor[i]) / log(2));
  CHECK_OK(cape_transform_stored(out, n, view, NULL, CAPE_LOG_NONE));
  CHECK(memcmp(out, s.values, (size_t)n * sizeof *out) == 0);
  CHECK_ERROR(cape_transform_stored(out, n - 1, view, NULL, 0), CAPE_DIM_MISMATCH, "n is");
  CHECK_NULL(cape_transform_stored(NULL, n, view, NULL, 0), "out");
  CHECK_ERROR(cape_transform_stored(out, n, view, NULL, 9), CAPE_INVALID_ARGUMENT, "logarithm");
}

static void errors_are_named(void) {
  double out[FEATURES * 8];
  int64_t index[2] = {0, 99};
  const cape_matrix_view block = dense(0, 2), narrow = CAPE_ROW_MATRIX_VIEW(counts, 2, 3);
  cape_scan *scan = NULL, *none = (cape_scan*)index;
  CHECK_NULL(cape_scan_new(NULL, 3, NULL, 0), "out");
  CHECK_ERROR(cape_scan_new(&none, FEATURES, index, 2), CAPE_INVALID_ARGUMENT, "99");
  CHECK(none == NULL);
  out[0] = 42; /* none is not all */
  CHECK_OK(cape_scan_new(&scan, FEATURES, index, 0));
  CHECK_OK(cape_scan_add(scan, &block, NULL, 0));
  CHECK_OK(cape_scan_summary(out, 0, 8, scan));
  cape_scan_free(scan);
  CHECK_OK(cape_transform_by_row(out, 2, 0, &block, NULL, 0, index));
  CHECK(out[0] == 42);
  CHECK_STATUS(cape_scan_new(&none, -1, NULL, 0), CAPE_INVALID_ARGUMENT);
  CHECK_OK(cape_scan_new(&scan, FEATURES, index, 1));
  CHECK_NULL(cape_scan_add(NULL, &block, NULL, 0), "scan");
  CHECK_NULL(cape_scan_add(scan, NULL, NULL, 0), "cells");
  CHECK_NULL(cape_scan_add_sparse(scan, NULL, NULL, 0), "cells");
  CHECK_ERROR(cape_scan_add(scan, &narrow, NULL, 0), CAPE_DIM_MISMATCH, "3 features");
  CHECK_ERROR(cape_scan_add(scan, &block, NULL, -1), CAPE_INVALID_ARGUMENT, "logarithm");
  CHECK_NULL(cape_scan_end_group(NULL), "scan");
  CHECK_OK(cape_scan_add(scan, &block, NULL, 0));
  CHECK_ERROR(cape_scan_summary(out, 2, 8, scan), CAPE_DIM_MISMATCH, "out");
  CHECK_NULL(cape_scan_summary(NULL, 1, 8, scan), "out");
  CHECK_OK(cape_scan_summary(out, 1, 8, scan));
  CHECK(out[0] == 2);
  cape_scan_free(scan);
  cape_scan_free(NULL);
  CHECK_NULL(cape_cell_sums(out, NULL, 2, NULL), "cells");
  CHECK_ERROR(cape_cell_sums(out, NULL, 3, &block), CAPE_DIM_MISMATCH, "n is 3");
  CHECK_OK(cape_cell_sums(NULL, NULL, 2, &block));
  CHECK_NULL(cape_cell_factors(out, 2, NULL, NULL, 1), "library_size");
  CHECK_NULL(cape_cell_factors(NULL, 2, counts, NULL, 1), "out");
  CHECK_ERROR(cape_cell_factors(out, 2, counts, NULL, 0), CAPE_INVALID_ARGUMENT, "target_sum");
  CHECK_NULL(cape_transform_by_row(NULL, 2, FEATURES, &block, NULL, 0, NULL), "out");
  CHECK_NULL(cape_transform_by_row(out, 2, FEATURES, NULL, NULL, 0, NULL), "cells");
  CHECK_ERROR(cape_transform_by_row(out, 2, 3, &block, NULL, 0, NULL), CAPE_DIM_MISMATCH, "out");
  CHECK_ERROR(cape_transform_by_row(out, 2, 2, &block, NULL, 0, index), CAPE_INVALID_ARGUMENT,
              "99");
  CHECK_NULL(cape_largest_variances(NULL, 1, counts, 2), "out");
  CHECK_NULL(cape_largest_variances(index, 1, NULL, 2), "variance");
  CHECK_ERROR(cape_largest_variances(index, 3, counts, 2), CAPE_INVALID_ARGUMENT, "n is 3");
}

int main(void) {
  fill();
  const int widths[] = {1, 7, CELLS};
  for (int k = 0; k < 6; ++k) pieces_give_the_whole(widths[k / 2], k % 2);
  stored_values_keep_their_places();
  errors_are_named();
  return n_failed != 0;
}
