/* What the fragments of docs/c-api.md take for granted. */
#include <cape/cape.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

void wait_until_wanted(void);

#define FRAGMENT_VARIABLES                                                                         \
  cape_options *options, cape_result *result, cape_result *result_again, cape_dag *dag,            \
      cape_prior *prior, cape_status status, cape_matrix_view table,                               \
      cape_matrix_view age_and_phase, const int64_t *tf, int64_t n_tf, const int64_t *from,        \
      const int64_t *to, int64_t n_forbidden, const int64_t *donor, int64_t n_rows,                \
      const int64_t *cell, const int64_t *target, int64_t n_knockouts, float *out, const float *q, \
      const float *k, const float *v, float *angles, const void *file, int64_t n_bytes,            \
      const char *const *names, int64_t n_names, cape_model *model, cape_cells cells,              \
      cape_cells others, cape_matrix_view class_of_cells, double *probabilities, int64_t n
