// No exception crosses the interface: what the callback throws ends as a status, whatever it is.
#include <cstring>
#include <new>
#include <stdexcept>

#include "check.h"

namespace {

cape_status fit_with(cape_progress_fn callback) {
  double x[N_ROWS * N_COLS];
  fill_chain(x);
  const cape_matrix_view view = CAPE_MATRIX_VIEW(x, N_ROWS, N_COLS);
  cape_options* options = quick_options();
  CHECK_OK(cape_options_set_progress(options, callback, nullptr));
  cape_result* result = nullptr;
  const cape_status status = cape_fit(&result, &view, options);
  CHECK(result == nullptr);
  cape_options_free(options);
  return status;
}

int throws_runtime_error(const cape_progress*, void*) {
  throw std::runtime_error("the callback's");
}
int throws_bad_alloc(const cape_progress*, void*) { throw std::bad_alloc(); }
int throws_a_number(const cape_progress*, void*) { throw 42; }

} // namespace

int main() {
  CHECK_ERROR(fit_with(throws_runtime_error), CAPE_INTERNAL, "the callback's");
  CHECK_ERROR(fit_with(throws_bad_alloc), CAPE_OUT_OF_MEMORY, "60 observations x 4 features");
  CHECK_ERROR(fit_with(throws_a_number), CAPE_INTERNAL, "unknown");
  return n_failed != 0;
}
