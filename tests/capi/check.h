/* Checks for the tests in C: a failing one says where, and the program goes on. */
#ifndef CAPE_TESTS_CHECK_H
#define CAPE_TESTS_CHECK_H

#include <cape/cape.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int n_failed = 0;

static inline void check(int ok, const char* what, const char* file, int line) {
  if (ok) return;
  ++n_failed;
  fprintf(stderr, "%s:%d: %s\n", file, line, what);
}
#define CHECK(condition) check(!!(condition), #condition, __FILE__, __LINE__)

static inline void check_status(cape_status got, cape_status expected, const char* what,
                                const char* file, int line) {
  if (got == expected) return;
  ++n_failed;
  fprintf(stderr, "%s:%d: %s\n  gave %s (%s), expected %s\n", file, line, what,
          cape_status_name(got), cape_last_error(), cape_status_name(expected));
}
#define CHECK_STATUS(call, expected) check_status((call), (expected), #call, __FILE__, __LINE__)
#define CHECK_OK(call) CHECK_STATUS(call, CAPE_OK)
/* The call fails with this status and its message names the argument. */
#define CHECK_ERROR(call, expected, argument)          \
  do {                                                 \
    CHECK_STATUS(call, expected);                      \
    CHECK(strstr(cape_last_error(), argument) != NULL); \
  } while (0)
#define CHECK_NULL(call, argument) CHECK_ERROR(call, CAPE_INVALID_ARGUMENT, argument)
#define CHECK_NEAR(a, b, tolerance) CHECK(fabs((a) - (b)) <= (tolerance))

/* A chain x0 -> x1 -> x2 -> x3 of N_ROWS observations, column-major. */
enum { N_ROWS = 60, N_COLS = 4 };

static inline double noise(uint64_t* state) { /* roughly normal: twelve uniforms */
  double sum = -6;
  for (int i = 0; i < 12; ++i) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    sum += (double)(*state >> 11) / 9007199254740992.0;
  }
  return sum;
}

static inline void fill_chain(double* x) {
  uint64_t state = 7;
  for (int j = 0; j < N_COLS; ++j)
    for (int i = 0; i < N_ROWS; ++i)
      x[j * N_ROWS + i] = (j > 0 ? 1.5 * x[(j - 1) * N_ROWS + i] : 0) + noise(&state);
}

/* Options for a fit of a fraction of a second. */
static inline cape_options* quick_options(void) {
  cape_options* options = NULL;
  CHECK_OK(cape_options_new(&options));
  CHECK_OK(cape_options_set_str(options, "dag.refine", "never"));
  CHECK_OK(cape_options_set_i64(options, "dag.epochs", 5));
  CHECK_OK(cape_options_set_i64(options, "embed.dims", 4));
  CHECK_OK(cape_options_set_i64(options, "embed.epochs", 20));
  return options;
}

#endif
