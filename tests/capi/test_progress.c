/* The callback: where it is called, and that it cancels; handles of one's own on four threads. */
#include "check.h"
#include <dirent.h>
#include <pthread.h>
#include <time.h>

typedef struct {
  pthread_t caller;
  int n_calls, on_other_threads, n_bad;
  int cancel_at; /* the call that cancels; 0: none */
} watch;

static int on_progress(const cape_progress* progress, void* ctx) {
  watch* w = ctx;
  ++w->n_calls;
  w->on_other_threads += !pthread_equal(pthread_self(), w->caller);
  w->n_bad += progress->struct_size != sizeof *progress || progress->stage == NULL ||
              progress->step < 0 || (progress->total > 0 && progress->step > progress->total);
  return w->cancel_at > 0 && w->n_calls >= w->cancel_at;
}

static int count_threads(const cape_progress* progress, void* ctx) {
  (void)progress;
  int* most = ctx;
  int n = 0;
  DIR* tasks = opendir("/proc/self/task");
  for (const struct dirent* task; (task = readdir(tasks)) != NULL;) n += task->d_name[0] != '.';
  closedir(tasks);
  if (n > *most) *most = n;
  return 0;
}

/* One thread by default, BLAS included; run.threads and no more otherwise. */
static void threads_are_limited(void) {
  double x[N_ROWS * N_COLS];
  fill_chain(x);
  const cape_matrix_view view = CAPE_MATRIX_VIEW(x, N_ROWS, N_COLS);
  cape_options* o = quick_options();
  int most = 0;
  CHECK_OK(cape_options_set_str(o, "dag.refine", "always"));
  CHECK_OK(cape_options_set_progress(o, count_threads, &most));
  for (int threads = 1; threads <= 2; ++threads) {
    cape_result* result = NULL;
    CHECK_OK(cape_options_set_i64(o, "run.threads", threads));
    CHECK_OK(cape_fit(&result, &view, o));
    CHECK(most >= 1 && most <= threads);
    cape_result_free(result);
  }
  cape_options_free(o);
}

enum { N_NODES = 40 };

/* Functions of all pairs: call number k of them with these options, which may be NULL. */
static cape_status of_pairs(int k, double* out, const cape_options* o) {
  static double square[N_NODES * N_NODES], weights[N_NODES * N_NODES], points[N_NODES * 3],
      ball[N_NODES * 2], radius[N_NODES];
  int64_t labels[N_NODES];
  uint64_t state = 5;
  for (int i = 0; i < N_NODES; ++i) {
    labels[i] = i % 3;
    radius[i] = i;
    double norm = 0;
    for (int j = 0; j < 2; ++j) {
      points[(j + 1) * N_NODES + i] = noise(&state);
      norm += points[(j + 1) * N_NODES + i] * points[(j + 1) * N_NODES + i];
      ball[j * N_NODES + i] = 0.1 * noise(&state);
    }
    points[i] = sqrt(1 + norm);
    for (int j = 0; j < N_NODES; ++j) {
      square[j * N_NODES + i] = fabs((double)(i - j));
      weights[j * N_NODES + i] = i < j ? 0.1 * noise(&state) : 0;
    }
  }
  const cape_matrix_view s = CAPE_MATRIX_VIEW(square, N_NODES, N_NODES),
                         w = CAPE_MATRIX_VIEW(weights, N_NODES, N_NODES),
                         p = CAPE_MATRIX_VIEW(points, N_NODES, 3),
                         b = CAPE_MATRIX_VIEW(ball, N_NODES, 2);
  cape_dag *dag = NULL, *made = NULL;
  cape_sparse_view lent = CAPE_SPARSE_VIEW(NULL, NULL, NULL, 0, 0, CAPE_COL_MAJOR);
  cape_status status = cape_dag_from_adjacency(&dag, &w);
  if (status != CAPE_OK) return status;
  const int64_t n = N_NODES;
  switch (k) {
  case 0: status = cape_acyclicity_with(out, NULL, 0, 0, &w, "expm", o); break;
  case 1: status = cape_pagerank_with(out, n, dag, 0.15, o); break;
  case 2: status = cape_path_strengths_with(out, n, n, dag, o); break;
  case 3: status = cape_lorentz_distances_with(out, n, n, &p, &p, o); break;
  case 4: status = cape_poincare_distances_with(out, n, n, &b, &b, o); break;
  case 5: status = cape_compare_scores(out, out + 1, &s, dag, o); break;
  case 6:
    status = cape_compare_embedding(out, out + 1, out + 2, out + 3, out + 4, dag, &s, radius, n, o);
    break;
  case 7: status = cape_silhouette(out, &p, labels, n, o); break;
  case 8: status = cape_dag_prune(&made, dag, 0.1, o); break;
  default: status = cape_dag_restore(&made, &lent, NULL, NULL, 0, NULL, NULL, 0, 0, o);
  }
  if (made != NULL && k == 8) {
    const cape_status copied = cape_dag_adjacency(out, n, n, made);
    status = status == CAPE_OK ? copied : status;
  }
  cape_dag_free(made);
  cape_dag_free(dag);
  return status;
}

static void functions_of_pairs_take_options(void) {
  static double one[N_NODES * N_NODES], two[N_NODES * N_NODES];
  cape_options* o = NULL;
  CHECK_OK(cape_options_new(&o));
  CHECK_OK(cape_options_set_i64(o, "run.threads", 2));
  for (int k = 0; k < 10; ++k) {
    memset(one, 0, sizeof one);
    memset(two, 0, sizeof two);
    CHECK_OK(of_pairs(k, one, NULL));
    CHECK_OK(of_pairs(k, two, o));
    CHECK(memcmp(one, two, sizeof one) == 0);
    cape_options_cancel(o, 1);
    CHECK_STATUS(of_pairs(k, two, o), CAPE_CANCELLED);
    cape_options_cancel(o, 0);
  }
  /* And in the middle of the work, some 2e10 operations. */
  const int64_t n = 1000;
  double *a = calloc((size_t)(n * n), sizeof *a), h = 0;
  uint64_t state = 9;
  for (int64_t i = 0; i < n * n; ++i) a[i] = i / n == i % n ? 0 : noise(&state);
  const cape_matrix_view view = CAPE_MATRIX_VIEW(a, n, n);
  watch w = {.caller = pthread_self(), .cancel_at = 1};
  CHECK_OK(cape_options_set_progress(o, on_progress, &w));
  CHECK_STATUS(cape_acyclicity_with(&h, NULL, 0, 0, &view, "expm", o), CAPE_CANCELLED);
  CHECK(w.n_calls == 1 && w.n_bad == 0 && w.on_other_threads == 0);
  free(a);
  cape_options_free(o);
}

static void callback_on_the_calling_thread(void) {
  double x[N_ROWS * N_COLS];
  fill_chain(x);
  const cape_matrix_view view = CAPE_MATRIX_VIEW(x, N_ROWS, N_COLS);
  watch w = {.caller = pthread_self()};
  cape_options* o = quick_options();
  CHECK_OK(cape_options_set_i64(o, "run.threads", 2));
  CHECK_OK(cape_options_set_progress(o, on_progress, &w));
  cape_result* result = NULL;
  CHECK_OK(cape_fit(&result, &view, o));
  CHECK(w.n_calls >= 2); /* at least once for each of Steps I and II */
  CHECK(w.on_other_threads == 0 && w.n_bad == 0);
  cape_result_free(result);

  const int before = w.n_calls;
  CHECK_OK(cape_options_set_progress(o, NULL, NULL)); /* and off again */
  CHECK_OK(cape_fit(&result, &view, o));
  CHECK(w.n_calls == before);
  cape_result_free(result);
  cape_options_free(o);
}

/* Whenever it cancels, in whatever stage: the status, no object, and a library that goes on. */
static void callback_cancels(void) {
  double x[N_ROWS * N_COLS];
  fill_chain(x);
  const cape_matrix_view view = CAPE_MATRIX_VIEW(x, N_ROWS, N_COLS);
  cape_options* o = quick_options();
  for (int threads = 1; threads <= 2; ++threads)
    for (int cancel_at = 1; cancel_at <= 2; ++cancel_at) {
      watch w = {.caller = pthread_self(), .cancel_at = cancel_at};
      CHECK_OK(cape_options_set_i64(o, "run.threads", threads));
      CHECK_OK(cape_options_set_progress(o, on_progress, &w));
      cape_result* result = (cape_result*)&w;
      CHECK_STATUS(cape_fit(&result, &view, o), CAPE_CANCELLED);
      CHECK(result == NULL && w.n_calls == cancel_at);
    }
  CHECK_OK(cape_options_set_progress(o, NULL, NULL));
  cape_result* result = NULL;
  CHECK_OK(cape_fit(&result, &view, o));
  cape_result_free(result);
  cape_options_free(o);
}

/* A fit that would take hours is cancelled in whatever stage it is; how long the pauses between two
 * calls are is measured by bench/silence.cpp. */
static void long_fit_is_cancelled(int n, int m, const char* long_option) {
  double* x = malloc((size_t)(n * m) * sizeof *x);
  uint64_t state = 3;
  for (int i = 0; i < n * m; ++i) x[i] = noise(&state) + (i >= n ? sin(x[i - n]) : 0);
  const cape_matrix_view view = CAPE_MATRIX_VIEW(x, n, m);
  cape_options* o = NULL;
  CHECK_OK(cape_options_new(&o));
  CHECK_OK(cape_options_set_i64(o, long_option, 100000));
  watch w = {.caller = pthread_self(), .cancel_at = 20};
  CHECK_OK(cape_options_set_progress(o, on_progress, &w));
  cape_result* result = NULL;
  CHECK_STATUS(cape_fit(&result, &view, o), CAPE_CANCELLED);
  CHECK(result == NULL && w.n_calls == w.cancel_at && w.n_bad == 0);
  cape_options_free(o);
  free(x);
}

/* A callback slower than the interval between two calls does not stand in for the work. */
static int slow_progress(const cape_progress* progress, void* ctx) {
  (void)progress;
  const struct timespec pause = {.tv_nsec = 60000000};
  nanosleep(&pause, NULL);
  return ++*(int*)ctx > 1000;
}

static void slow_callback_lets_the_fit_end(void) {
  double x[N_ROWS * N_COLS];
  fill_chain(x);
  const cape_matrix_view view = CAPE_MATRIX_VIEW(x, N_ROWS, N_COLS);
  cape_options* o = quick_options();
  int n_calls = 0;
  CHECK_OK(cape_options_set_progress(o, slow_progress, &n_calls));
  cape_result* result = NULL;
  CHECK_OK(cape_fit(&result, &view, o));
  CHECK(n_calls >= 2);
  cape_result_free(result);
  cape_options_free(o);
}

typedef struct {
  double e[N_COLS * 4];
  char message[256];
  cape_status bad;
} outcome;

static void* run_alone(void* ctx) {
  outcome* out = ctx;
  double x[N_ROWS * N_COLS];
  fill_chain(x);
  const cape_matrix_view view = CAPE_MATRIX_VIEW(x, N_ROWS, N_COLS);
  cape_options* o = quick_options();
  out->bad = cape_options_set_i64(o, "embed.dims", -5);
  snprintf(out->message, sizeof out->message, "%s", cape_last_error());
  cape_result* result = NULL;
  const cape_embedding* embedding = NULL;
  CHECK_OK(cape_fit(&result, &view, o));
  CHECK_OK(cape_result_embedding(&embedding, result));
  CHECK_OK(cape_embedding_poincare(out->e, N_COLS, 4, embedding));
  cape_result_free(result);
  cape_options_free(o);
  return NULL;
}

/* Four threads at once, often, give what one gives, and each has its own message. */
static void four_threads(void) {
  enum { n_threads = 4, n_rounds = 10 };
  outcome alone, all[n_threads];
  run_alone(&alone);
  cape_dag_free(NULL);
  CHECK_STATUS(cape_dag_learn(NULL, NULL, NULL), CAPE_INVALID_ARGUMENT);
  char mine[256];
  snprintf(mine, sizeof mine, "%s", cape_last_error());
  for (int round = 0; round < n_rounds; ++round) {
    pthread_t threads[n_threads];
    for (int i = 0; i < n_threads; ++i) pthread_create(&threads[i], NULL, run_alone, &all[i]);
    for (int i = 0; i < n_threads; ++i) pthread_join(threads[i], NULL);
    for (int i = 0; i < n_threads; ++i) {
      CHECK(memcmp(all[i].e, alone.e, sizeof alone.e) == 0);
      CHECK(all[i].bad == CAPE_INVALID_ARGUMENT);
      CHECK(strstr(all[i].message, "embed.dims") != NULL);
    }
  }
  CHECK(strcmp(mine, cape_last_error()) == 0); /* their errors are not ours */
}

int main(void) {
#ifndef CAPE_SANITIZED /* sanitizers have threads of their own */
  threads_are_limited(); /* first: threads outlive the call that they were started for */
#endif
  callback_on_the_calling_thread();
  callback_cancels();
  long_fit_is_cancelled(2000, 12, "dag.epochs");
  long_fit_is_cancelled(2000, 12, "dag.refine_epochs");
  long_fit_is_cancelled(2000, 12, "embed.epochs");
  long_fit_is_cancelled(200, 800, "dag.epochs"); /* large products between the polls */
  slow_callback_lets_the_fit_end();
  four_threads();
  functions_of_pairs_take_options(); /* after the threads were counted: they stay */
  return n_failed != 0;
}
