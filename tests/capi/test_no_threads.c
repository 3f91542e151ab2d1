/* A system that starts no more threads: the call fails and says so, or does with one; later it
 * works. */
#define _GNU_SOURCE
#include "check.h"
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>

static int refused, n_refused;

/* In place of the C library's, for libcape.so too. */
__attribute__((visibility("default"))) int pthread_create(pthread_t* thread,
                                                          const pthread_attr_t* attributes,
                                                          void* (*start)(void*), void* argument) {
  if (refused) {
    ++n_refused;
    return EAGAIN;
  }
  int (*create)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  *(void**)&create = dlsym(RTLD_NEXT, "pthread_create");
  return create(thread, attributes, start, argument);
}

static cape_status fit(double* angles, int64_t threads) {
  double x[N_ROWS * N_COLS];
  fill_chain(x);
  const cape_matrix_view view = CAPE_MATRIX_VIEW(x, N_ROWS, N_COLS);
  cape_options* o = quick_options();
  CHECK_OK(cape_options_set_i64(o, "run.threads", threads));
  CHECK_OK(cape_options_set_str(o, "dag.refine", "always"));
  cape_result* result = NULL;
  const cape_status status = cape_fit(&result, &view, o);
  if (status == CAPE_OK) CHECK_OK(cape_result_angles(angles, N_COLS, 4, result));
  cape_result_free(result);
  char text[4096];
  CHECK_OK(cape_options_error(text, sizeof text, o));
  CHECK(status == CAPE_OK || strstr(text, "run.threads") != NULL);
  cape_options_free(o);
  return status;
}

int main(void) {
  double one[N_COLS * 4], two[N_COLS * 4];
  CHECK(fit(one, 1) == CAPE_OK);
  refused = 1;
  for (int i = 0; i < 5; ++i) {
    const cape_status status = fit(two, 2);
    CHECK(status == CAPE_OUT_OF_MEMORY || status == CAPE_OK);
    if (status == CAPE_OK) CHECK(memcmp(one, two, sizeof one) == 0);
  }
  CHECK(fit(two, 1) == CAPE_OK); /* needs none */
  refused = 0;
  CHECK(fit(two, 2) == CAPE_OK);
  CHECK(memcmp(one, two, sizeof one) == 0);
  printf("%d threads refused\n", n_refused);
  return n_failed != 0;
}
