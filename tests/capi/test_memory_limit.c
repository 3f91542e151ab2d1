/* Under a limit of address space, as batch queues set it: a status with a figure, never a wait
 * without end. Each call is made in a process of its own, which may have so much more than it has
 * now. */
#define _DEFAULT_SOURCE
#include "check.h"
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static cape_status fit(const cape_options* options) {
  static double x[N_ROWS * N_COLS];
  fill_chain(x);
  const cape_matrix_view view = CAPE_MATRIX_VIEW(x, N_ROWS, N_COLS);
  cape_result* result = NULL;
  return cape_fit(&result, &view, options);
}

static cape_status linear_attention(const cape_options* options) {
  double q[64], out[64];
  for (int i = 0; i < 64; ++i) q[i] = sin(i);
  const cape_attention_shape shape = CAPE_ATTENTION_SHAPE(1, 1, 8, 8, 8);
  return cape_linear_attention(out, &shape, 16, 0, q, q, q, NULL, NULL, NULL, options);
}

static cape_status self_test(const cape_options* options) {
  (void)options;
  return cape_self_test();
}

static cape_status rate(const cape_options* options) {
  (void)options;
  double rate = 0;
  return cape_blas_rate(&rate, 64);
}

static cape_status acyclicity(const cape_options* options) {
  (void)options;
  const double a[9] = {0, 1, 0, 0, 0, 1, 1, 0, 0};
  const cape_matrix_view view = CAPE_MATRIX_VIEW(a, 3, 3);
  double h = 0;
  return cape_acyclicity(&h, NULL, 3, 3, &view, "expm");
}

typedef cape_status (*call)(const cape_options*);

static cape_status status_within(long megabytes, call function, const cape_options* options) {
  fflush(NULL);
  const pid_t child = fork();
  if (child == 0) {
    long pages = 0;
    FILE* statm = fopen("/proc/self/statm", "r");
    if (statm == NULL || fscanf(statm, "%ld", &pages) != 1) _exit(99);
    fclose(statm);
    const rlim_t bytes = (rlim_t)(pages * sysconf(_SC_PAGESIZE) + (megabytes << 20));
    const struct rlimit limit = {bytes, bytes};
    setrlimit(RLIMIT_AS, &limit);
    alarm(60);
    const cape_status status = function(options);
    if (status != CAPE_OK && strstr(cape_last_error(), "MB") == NULL) {
      fprintf(stderr, "no figure: %s\n", cape_last_error());
      _exit(98);
    }
    _exit(status);
  }
  int ended = 0;
  waitpid(child, &ended, 0);
  return WIFEXITED(ended) ? (cape_status)WEXITSTATUS(ended) : (cape_status)97;
}

int main(void) {
  cape_options* options = quick_options();
  const call calls[] = {fit, linear_attention, self_test, rate, acyclicity};
  for (size_t i = 0; i < sizeof calls / sizeof *calls; ++i) {
    CHECK_STATUS(status_within(16, calls[i], options), CAPE_OUT_OF_MEMORY);
    CHECK_STATUS(status_within(64, calls[i], options), CAPE_OUT_OF_MEMORY);
    CHECK_STATUS(status_within(200, calls[i], options), CAPE_OK);
  }
  /* Room for one work buffer: two threads take turns. */
  CHECK_OK(cape_options_set_i64(options, "run.threads", 2));
  CHECK_OK(cape_options_set_str(options, "dag.refine", "always"));
  CHECK_STATUS(status_within(230, fit, options), CAPE_OK);
  cape_options_free(options);
  return n_failed != 0;
}
