/* Run with CAPE_SIMD_TARGET=nonsense: refused, with the variable and what would be right. */
#include "check.h"

int main(void) {
  double x[N_ROWS * N_COLS];
  fill_chain(x);
  const cape_matrix_view view = CAPE_MATRIX_VIEW(x, N_ROWS, N_COLS);
  cape_options* o = quick_options();
  cape_result* result = NULL;
  CHECK_ERROR(cape_fit(&result, &view, o), CAPE_INVALID_ARGUMENT,
              "CAPE_SIMD_TARGET is \"nonsense\"");
  cape_options_free(o);
  return n_failed != 0;
}
