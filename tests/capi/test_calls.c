/* Calls of other threads: their error texts, cancelling them, options that change meanwhile. */
#define _POSIX_C_SOURCE 200809L
#include "check.h"
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>

static double x[N_ROWS * N_COLS];
static const cape_matrix_view table = CAPE_MATRIX_VIEW(x, N_ROWS, N_COLS);

typedef struct {
  cape_options* options;
  const cape_matrix_view* x;
  cape_status status;
} call;

static void* fit_call(void* ctx) {
  call* c = ctx;
  cape_result* result = NULL;
  c->status = cape_fit(&result, c->x, c->options);
  cape_result_free(result);
  return NULL;
}

static void on_another_thread(call* c) {
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, fit_call, c) == 0);
  CHECK(pthread_join(thread, NULL) == 0);
}

static void error_texts(void) {
  char text[4096] = "untouched";
  double nan_x[N_ROWS * N_COLS];
  memcpy(nan_x, x, sizeof nan_x);
  nan_x[3] = NAN;
  const cape_matrix_view bad = CAPE_MATRIX_VIEW(nan_x, N_ROWS, N_COLS);
  call good_call = {quick_options(), &table, CAPE_INTERNAL},
       bad_call = {quick_options(), &bad, CAPE_OK};
  CHECK_OK(cape_options_error(text, sizeof text, good_call.options));
  CHECK(strcmp(text, "") == 0); /* none yet */

  /* The text of a call of another thread; ours is not touched. */
  on_another_thread(&bad_call);
  CHECK(bad_call.status == CAPE_INVALID_ARGUMENT);
  CHECK(strcmp(cape_last_error(), "") == 0);
  CHECK_OK(cape_options_error(text, sizeof text, bad_call.options));
  CHECK(strstr(text, "row 3, column 0") != NULL);
  char start[6];
  CHECK_OK(cape_options_error(start, sizeof start, bad_call.options));
  CHECK(strlen(start) == 5 && strncmp(start, text, 5) == 0);
  /* Copies start without it, and the next call that succeeds takes it away. */
  cape_options* clone = NULL;
  CHECK_OK(cape_options_clone(&clone, bad_call.options));
  CHECK_OK(cape_options_error(text, sizeof text, clone));
  CHECK(strcmp(text, "") == 0);
  cape_options_free(clone);
  bad_call.x = &table;
  on_another_thread(&bad_call);
  CHECK(bad_call.status == CAPE_OK);
  CHECK_OK(cape_options_error(text, sizeof text, bad_call.options));
  CHECK(strcmp(text, "") == 0);

  /* Functions other than the fit. */
  cape_dag* dag = NULL;
  CHECK_STATUS(cape_simulate_dag(&dag, -1, good_call.options), CAPE_INVALID_ARGUMENT);
  CHECK_OK(cape_options_error(text, sizeof text, good_call.options));
  CHECK(strstr(text, "nodes is -1") != NULL);
  CHECK_STATUS(cape_attention(NULL, NULL, NULL, x, x, x, NULL, NULL, NULL, good_call.options),
               CAPE_INVALID_ARGUMENT);
  CHECK_OK(cape_options_error(text, sizeof text, good_call.options));
  CHECK(strstr(text, "shape") != NULL);
  CHECK_ERROR(cape_options_error(text, 0, good_call.options), CAPE_DIM_MISMATCH, "capacity");
  CHECK_NULL(cape_options_error(NULL, 8, good_call.options), "out");
  CHECK_NULL(cape_options_error(text, 8, NULL), "options");

  /* cape_last_error() never gives the text of an older call. */
  CHECK_STATUS(cape_options_set_i64(good_call.options, "embed.dims", -5), CAPE_INVALID_ARGUMENT);
  CHECK(strlen(cape_last_error()) > 0);
  CHECK_OK(cape_options_set_i64(good_call.options, "embed.dims", 4));
  CHECK(strcmp(cape_last_error(), "") == 0);
  cape_options_free(good_call.options);
  cape_options_free(bad_call.options);
}

static atomic_int n_progress;
static int count_progress(const cape_progress* progress, void* ctx) {
  (void)progress, (void)ctx;
  atomic_fetch_add(&n_progress, 1);
  return 0;
}

static cape_options* signalled;
static void on_signal(int number) {
  (void)number;
  cape_options_cancel(signalled, 1);
}

/* A fit that would take for hours ends when another thread says so, with a callback and without. */
static void cancelling(void) {
  enum { rows = 400, cols = 12 };
  double* big = malloc(sizeof(double) * rows * cols);
  uint64_t state = 5;
  for (int i = 0; i < rows * cols; ++i) big[i] = noise(&state);
  const cape_matrix_view view = CAPE_MATRIX_VIEW(big, rows, cols);
  for (int with_callback = 0; with_callback < 2; ++with_callback)
    for (int threads = 1; threads <= 2; ++threads) {
      call endless = {quick_options(), &view, CAPE_OK};
      CHECK_OK(cape_options_set_i64(endless.options, "dag.epochs", 100000000));
      CHECK_OK(cape_options_set_i64(endless.options, "run.threads", threads));
      atomic_store(&n_progress, 0);
      if (with_callback) CHECK_OK(cape_options_set_progress(endless.options, count_progress, NULL));
      pthread_t thread;
      CHECK(pthread_create(&thread, NULL, fit_call, &endless) == 0);
      while (with_callback && atomic_load(&n_progress) < 2) sched_yield();
      cape_options_cancel(endless.options, 1);
      CHECK(pthread_join(thread, NULL) == 0);
      CHECK(endless.status == CAPE_CANCELLED);
      char text[256];
      CHECK_OK(cape_options_error(text, sizeof text, endless.options));
      CHECK(strstr(text, "cape_options_cancel") != NULL);

      /* It stays so, for everything that takes these options, until it is taken back; not for
       * copies. */
      cape_result* result = NULL;
      CHECK_OK(cape_options_set_i64(endless.options, "dag.epochs", 5));
      CHECK_STATUS(cape_fit(&result, &table, endless.options), CAPE_CANCELLED);
      double out[1] = {0}, one[1] = {1};
      const cape_attention_shape shape = CAPE_ATTENTION_SHAPE(1, 1, 1, 1, 1);
      CHECK_STATUS(
          cape_attention(out, NULL, &shape, one, one, one, NULL, NULL, NULL, endless.options),
          CAPE_CANCELLED);
      CHECK(out[0] == 0);
      cape_options* clone = NULL;
      CHECK_OK(cape_options_clone(&clone, endless.options));
      CHECK_OK(cape_fit(&result, &table, clone));
      cape_result_free(result);
      cape_options_free(clone);
      cape_options_cancel(endless.options, 0);
      CHECK_OK(cape_fit(&result, &table, endless.options));
      cape_result_free(result);
      cape_options_free(endless.options);
    }
  cape_options_cancel(NULL, 1);

  /* From a signal handler. */
  signalled = quick_options();
  signal(SIGUSR1, on_signal);
  CHECK(raise(SIGUSR1) == 0);
  cape_result* result = NULL;
  CHECK_STATUS(cape_fit(&result, &table, signalled), CAPE_CANCELLED);
  CHECK(result == NULL);
  cape_options_free(signalled);
  free(big);
}

static int changes_options(const cape_progress* progress, void* ctx) {
  (void)progress;
  cape_options* o = ctx;
  CHECK_OK(cape_options_set_i64(o, "dag.epochs", 9));
  CHECK_OK(cape_options_set_i64(o, "embed.dims", 2));
  CHECK_OK(cape_options_set_i64(o, "run.seed", 77));
  CHECK_OK(cape_options_set_progress(o, NULL, NULL));
  return 0;
}
static int frees_options(const cape_progress* progress, void* ctx) {
  (void)progress;
  cape_options** o = ctx;
  cape_options_free(*o);
  *o = NULL;
  return 0;
}
/* A fit inside of a fit, whose failure is its own. */
static int fits(const cape_progress* progress, void* ctx) {
  (void)progress;
  cape_options* o = quick_options();
  cape_result* result = NULL;
  CHECK_OK(cape_fit(&result, &table, o));
  cape_result_free(result);
  CHECK_STATUS(cape_fit(&result, NULL, o), CAPE_INVALID_ARGUMENT);
  ++*(int*)ctx;
  cape_options_free(o);
  return 0;
}

static void angles_of(double* out, cape_options* o) {
  cape_result* result = NULL;
  CHECK_OK(cape_fit(&result, &table, o));
  const cape_dag* dag = NULL;
  cape_dag_info info = {.struct_size = sizeof info};
  CHECK_OK(cape_result_dag(&dag, result));
  CHECK_OK(cape_dag_describe(&info, dag));
  CHECK(info.n_epochs == 5);
  CHECK_OK(cape_result_angles(out, N_COLS, 4, result));
  cape_result_free(result);
}

/* What a callback does to the options is for the next call. */
static void callbacks(void) {
  double plain[N_COLS * 4], changed[N_COLS * 4], freed[N_COLS * 4], nested[N_COLS * 4];
  cape_options *o = quick_options(), *gone = quick_options();
  angles_of(plain, o);
  CHECK_OK(cape_options_set_progress(o, changes_options, o));
  angles_of(changed, o);
  CHECK(memcmp(plain, changed, sizeof plain) == 0);
  int64_t epochs = 0;
  CHECK_OK(cape_options_get_i64(&epochs, o, "dag.epochs"));
  CHECK(epochs == 9);
  cape_options_free(o);
  CHECK_OK(cape_options_set_progress(gone, frees_options, &gone));
  angles_of(freed, gone);
  CHECK(memcmp(plain, freed, sizeof plain) == 0 && gone == NULL);

  int n_fits = 0;
  o = quick_options();
  CHECK_OK(cape_options_set_progress(o, fits, &n_fits));
  cape_result* result = NULL;
  CHECK_OK(cape_fit(&result, &table, o));
  CHECK(strcmp(cape_last_error(), "") == 0 && n_fits > 0);
  CHECK_OK(cape_result_angles(nested, N_COLS, 4, result));
  CHECK(memcmp(plain, nested, sizeof plain) == 0);
  cape_result_free(result);
  cape_options_free(o);
}

int main(void) {
  fill_chain(x);
  error_texts();
  cancelling();
  callbacks();
  return n_failed != 0;
}
