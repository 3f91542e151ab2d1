// The header stands alone in C++17 too.
#include <cape/cape.h>

int64_t cape_header_compiles_as_cpp();
int64_t cape_header_compiles_as_cpp() {
  const cape_matrix_view view = CAPE_MATRIX_VIEW(nullptr, 3, 0);
  return view.n_rows;
}
