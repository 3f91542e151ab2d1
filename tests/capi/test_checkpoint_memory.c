/* Running out of memory leaves the checkpoint as it was: the same call goes on from there. Every
 * larger allocation of a fit fails once, by the malloc() below, which stands before that of the C
 * library (glibc). */
#include <errno.h>
#include <limits.h>
#include "check.h"

extern void* __libc_malloc(size_t);
extern void* __libc_calloc(size_t, size_t);
extern void* __libc_realloc(void*, size_t);
extern void* __libc_memalign(size_t, size_t);

static long n_calls, failing; /* the call that fails; 0: none */
static int fails(size_t n) {
  if (failing == 0 || n < 512 || ++n_calls != failing)
    return 0; /* what is smaller is too much to try */
  errno = ENOMEM;
  return 1;
}
#define SEEN __attribute__((visibility("default"))) /* by the library */
SEEN void* malloc(size_t n) { return fails(n) ? NULL : __libc_malloc(n); }
SEEN void* calloc(size_t n, size_t size) { return fails(n * size) ? NULL : __libc_calloc(n, size); }
SEEN void* realloc(void* p, size_t n) { return fails(n) ? NULL : __libc_realloc(p, n); }
SEEN void* memalign(size_t alignment, size_t n) {
  return fails(n) ? NULL : __libc_memalign(alignment, n);
}
SEEN void* aligned_alloc(size_t alignment, size_t n) { return memalign(alignment, n); }
SEEN int posix_memalign(void** out, size_t alignment, size_t n) {
  *out = memalign(alignment, n);
  return *out == NULL ? ENOMEM : 0;
}

static void embedding_of(double* e, cape_result* result) {
  const cape_embedding* embedding = NULL;
  CHECK_OK(cape_result_embedding(&embedding, result));
  CHECK_OK(cape_embedding_poincare(e, N_COLS, 4, embedding));
  cape_result_free(result);
}

int main(void) {
  double x[N_ROWS * N_COLS], whole[N_COLS * 4], resumed[N_COLS * 4];
  fill_chain(x);
  const cape_matrix_view view = CAPE_MATRIX_VIEW(x, N_ROWS, N_COLS);
  cape_options* o = quick_options();
  cape_prior* prior = NULL;
  cape_result* result = NULL;
  CHECK_OK(cape_prior_new(&prior));
  CHECK_OK(cape_options_set_str(o, "dag.refine", "always"));
  CHECK_OK(cape_options_set_str(o, "dag.sem", "linear"));
  CHECK_OK(cape_options_set_i64(o, "dag.epochs", 12));
  CHECK_OK(cape_options_set_i64(o, "embed.epochs", 12));
  CHECK_OK(cape_fit_with(&result, &view, prior, o));
  embedding_of(whole, result);

  cape_checkpoint* checkpoint = NULL;
  CHECK_OK(cape_checkpoint_new(&checkpoint));
  failing = LONG_MAX;
  CHECK_OK(cape_fit_from(&result, &view, prior, checkpoint, o));
  const long total = n_calls;
  failing = 0;
  embedding_of(resumed, result);
  CHECK(memcmp(resumed, whole, sizeof whole) == 0);
  cape_checkpoint_free(checkpoint);

  int failed = 0, refined = 0;
  for (long n = 1; n <= total; ++n) {
    CHECK_OK(cape_checkpoint_new(&checkpoint));
    n_calls = 0;
    failing = n;
    const cape_status status = cape_fit_from(&result, &view, prior, checkpoint, o);
    failing = 0;
    if (status != CAPE_OK) {
      CHECK(status == CAPE_OUT_OF_MEMORY);
      int64_t bytes = 0, epochs = 0;
      CHECK_OK(cape_checkpoint_size(&bytes, &epochs, checkpoint));
      ++failed;
      refined += epochs == 12;
      CHECK_OK(cape_fit_from(&result, &view, prior, checkpoint, o));
    }
    embedding_of(resumed, result);
    CHECK(memcmp(resumed, whole, sizeof whole) == 0);
    cape_checkpoint_free(checkpoint);
  }
  CHECK(failed > 100 && refined > 5);
  printf("%ld allocations; %d attempts failed, %d of them between Step I and Step II\n", total,
         failed, refined);
  cape_prior_free(prior);
  cape_options_free(o);
  return n_failed != 0;
}
