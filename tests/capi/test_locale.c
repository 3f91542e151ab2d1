/* Numbers in messages have a decimal point, also where the program's locale has a comma. */
#define _GNU_SOURCE
#include "check.h"
#include <locale.h>

enum { SKIPPED = 77 };

/* The locale, made in a directory of its own that is gone again once it is read. */
static int make_locale(void) {
  char where[] = "/tmp/cape_locale.XXXXXX", command[128];
  if (mkdtemp(where) == NULL) return 0;
  snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 2>/dev/null",
           where);
  int made = system(command) == 0;
  if (made) {
    setenv("LOCPATH", where, 1);
    made = setlocale(LC_ALL, "de_DE.UTF-8") != NULL;
  }
  snprintf(command, sizeof command, "rm -r %s", where);
  CHECK(system(command) == 0);
  return made;
}

static void fails_with_point(cape_status status, const char* number) {
  CHECK(status != CAPE_OK);
  CHECK(strstr(cape_last_error(), number) != NULL);
  if (strstr(cape_last_error(), number) == NULL) fprintf(stderr, "  %s\n", cape_last_error());
}

int main(void) {
  if (setlocale(LC_ALL, "de_DE.UTF-8") == NULL && !make_locale()) return SKIPPED;
  char text[8];
  snprintf(text, sizeof text, "%.1f", 0.5);
  CHECK(strcmp(text, "0,5") == 0);

  double out[8];
  double far[] = {1.5, 0.25}, outside[] = {1.5, 0};
  cape_matrix_view view = CAPE_MATRIX_VIEW(far, 1, 2);
  fails_with_point(cape_lorentz_to_poincare(out, 1, 1, &view), "first coordinate is 1.5;");
  view.data = outside;
  fails_with_point(cape_poincare_to_lorentz(out, 1, 3, &view), "norm 1.5");

  double counts[] = {1, -2.5, 1, 1, 1, 1};
  view = (cape_matrix_view)CAPE_MATRIX_VIEW(counts, 3, 2);
  cape_table* table = NULL;
  cape_options* options = quick_options();
  fails_with_point(cape_preprocess(&table, &view, options), "-2.5 at");
  fails_with_point(cape_options_set_f64(options, "dag.lambda", -1.5), "-1.5");
  CHECK(cape_options_set_text(options, "dag.lambda", "0,05") != CAPE_OK);
  CHECK_OK(cape_options_set_text(options, "dag.lambda", "0.0625"));

  /* A fit that has not converged says so with lambda. */
  double x[N_ROWS * N_COLS];
  fill_chain(x);
  view = (cape_matrix_view)CAPE_MATRIX_VIEW(x, N_ROWS, N_COLS);
  CHECK_OK(cape_options_set_i64(options, "dag.epochs", 1));
  CHECK_OK(cape_options_set_f64(options, "dag.h_tolerance", 1e-12));
  cape_dag* dag = NULL;
  CHECK_OK(cape_dag_learn(&dag, &view, options));
  cape_dag_info info = {.struct_size = sizeof info};
  CHECK_OK(cape_dag_describe(&info, dag));
  int n_points = 0;
  for (int64_t i = 0; i < info.n_warnings; ++i) {
    const char* warning = NULL;
    CHECK_OK(cape_dag_warning(&warning, dag, i));
    n_points += strstr(warning, "h(A) ended at ") != NULL && strstr(warning, "0.") != NULL;
    CHECK(strstr(warning, "0,") == NULL);
  }
  CHECK(n_points > 0);
  cape_dag_free(dag);
  cape_options_free(options);
  return n_failed > 0;
}
