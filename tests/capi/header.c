/* The header stands alone: in C99 and in C++17, without a warning. */
#include <cape/cape.h>

int cape_header_compiles(void);
int cape_header_compiles(void) {
  cape_matrix_view view = CAPE_MATRIX_VIEW(NULL, 0, 0);
  return (int)view.n_rows;
}
