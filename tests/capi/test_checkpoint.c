/* A cancelled fit goes on, in this process or, through bytes, in another one. */
#include "check.h"

static int cancel_at_once(const cape_progress* progress, void* ctx) {
  const int64_t* step = ctx;
  return progress->step >= *step;
}

static void embedding_of(double* e, const cape_result* result) {
  const cape_embedding* embedding = NULL;
  CHECK_OK(cape_result_embedding(&embedding, result));
  CHECK_OK(cape_embedding_poincare(e, N_COLS, 4, embedding));
}

/* Step II alone, cancelled at its last epoch, which is when it is always asked. */
static void embedding_goes_on(cape_options* o) {
  const int64_t from[] = {0, 1, 1}, to[] = {1, 2, 3};
  const double weight[] = {0.9, -0.5, 0.7};
  double whole[4 * 4], resumed[4 * 4];
  cape_dag *dag = NULL, *other = NULL;
  cape_embedding* embedding = NULL;
  cape_embedding_info info = {.struct_size = sizeof info};
  cape_checkpoint *checkpoint = NULL, *loaded = NULL;
  int64_t bytes = 0, epochs = 0, step = 10;
  CHECK_OK(cape_dag_from_edges(&dag, 4, from, to, weight, 3));
  CHECK_OK(cape_dag_from_edges(&other, 4, from, to, weight, 2));
  CHECK_OK(cape_options_set_i64(o, "embed.epochs", 10));
  CHECK_OK(cape_embedding_fit(&embedding, dag, o));
  CHECK_OK(cape_embedding_poincare(whole, 4, 4, embedding));
  cape_embedding_free(embedding);

  CHECK_OK(cape_checkpoint_new(&checkpoint));
  CHECK_OK(cape_options_set_progress(o, cancel_at_once, &step));
  CHECK_STATUS(cape_embedding_fit_from(&embedding, dag, checkpoint, o), CAPE_CANCELLED);
  CHECK_OK(cape_options_set_progress(o, NULL, NULL));
  CHECK_OK(cape_checkpoint_size(&bytes, &epochs, checkpoint));
  CHECK(epochs == 10);
  char* saved = malloc((size_t)bytes);
  CHECK_OK(cape_checkpoint_save(saved, bytes, checkpoint));
  CHECK_OK(cape_checkpoint_load(&loaded, saved, bytes));
  CHECK_OK(cape_embedding_fit_from(&embedding, dag, loaded, o));
  CHECK_OK(cape_embedding_poincare(resumed, 4, 4, embedding));
  CHECK(memcmp(resumed, whole, sizeof whole) == 0);
  CHECK_OK(cape_embedding_describe(&info, embedding));
  CHECK(info.n_epochs == 10 && !info.stopped_early);
  cape_embedding_free(embedding);
  CHECK_ERROR(cape_embedding_fit_from(&embedding, other, loaded, o), CAPE_INVALID_ARGUMENT,
              "another graph");
  CHECK(embedding == NULL);

  /* Ended by a plateau. */
  CHECK_OK(cape_options_set_i64(o, "embed.epochs", 5000));
  CHECK_OK(cape_options_set_f64(o, "embed.tolerance", 0.5));
  CHECK_OK(cape_embedding_fit(&embedding, dag, o));
  CHECK_OK(cape_embedding_describe(&info, embedding));
  CHECK(info.n_epochs < 5000 && info.stopped_early);
  cape_embedding_free(embedding);
  free(saved);
  cape_checkpoint_free(loaded);
  cape_checkpoint_free(checkpoint);
  cape_dag_free(other);
  cape_dag_free(dag);
}

/* A bit that is not as it was saved is found, wherever it is. */
static void damage_is_found(char* saved, int64_t bytes) {
  cape_checkpoint* loaded = NULL;
  for (int64_t at = 0; at < bytes; at += at < 200 ? 1 : 97)
    for (int bit = 0; bit < 8; ++bit) {
      saved[at] ^= (char)(1 << bit);
      CHECK_STATUS(cape_checkpoint_load(&loaded, saved, bytes), CAPE_BAD_FORMAT);
      CHECK(loaded == NULL);
      saved[at] ^= (char)(1 << bit);
    }
  CHECK_OK(cape_checkpoint_load(&loaded, saved, bytes));
  cape_checkpoint_free(loaded);
}

/* Saved by the progress callback, while two threads work on the refinement. */
struct saving {
  const cape_checkpoint* checkpoint;
  char* saved;
  int64_t bytes, refined;
};

static int save_and_cancel(const cape_progress* progress, void* ctx) {
  struct saving* s = ctx;
  int64_t epochs = 0;
  CHECK_OK(cape_checkpoint_size(&s->bytes, &epochs, s->checkpoint));
  s->saved = realloc(s->saved, (size_t)s->bytes);
  CHECK_OK(cape_checkpoint_save(s->saved, s->bytes, s->checkpoint));
  return strcmp(progress->stage, "dag.refine") == 0 && ++s->refined == 4;
}

static void saved_by_the_callback(const cape_matrix_view* view, const cape_prior* prior) {
  cape_options* o = quick_options();
  cape_dag* dag = NULL;
  double whole[N_COLS * N_COLS], resumed[N_COLS * N_COLS];
  struct saving s = {NULL, NULL, 0, 0};
  cape_checkpoint *checkpoint = NULL, *loaded = NULL;
  CHECK_OK(cape_options_set_str(o, "dag.refine", "always"));
  CHECK_OK(cape_options_set_i64(o, "run.threads", 2));
  CHECK_OK(cape_dag_learn_with(&dag, view, prior, o));
  CHECK_OK(cape_dag_statistic(whole, N_COLS, N_COLS, dag));
  cape_dag_free(dag);
  CHECK_OK(cape_checkpoint_new(&checkpoint));
  s.checkpoint = checkpoint;
  CHECK_OK(cape_options_set_progress(o, save_and_cancel, &s));
  const cape_status status = cape_dag_learn_from(&dag, view, prior, checkpoint, o);
  CHECK(status == CAPE_CANCELLED || status == CAPE_OK);
  cape_dag_free(dag);
  CHECK_OK(cape_options_set_progress(o, NULL, NULL));
  damage_is_found(s.saved, s.bytes);
  CHECK_OK(cape_checkpoint_load(&loaded, s.saved, s.bytes));
  CHECK_OK(cape_dag_learn_from(&dag, view, prior, loaded, o));
  CHECK_OK(cape_dag_statistic(resumed, N_COLS, N_COLS, dag));
  CHECK(memcmp(resumed, whole, sizeof whole) == 0);
  cape_dag_free(dag);
  free(s.saved);
  cape_checkpoint_free(loaded);
  cape_checkpoint_free(checkpoint);
  cape_options_free(o);
}

/* A table that is read in parts: the source gives up again and again, and once a call is cancelled.
 */
struct source {
  const double* x;
  int64_t calls, last;
};

static int read_some(double* out, const int64_t* rows, int64_t n, void* ctx) {
  struct source* s = ctx;
  if (++s->calls > s->last) return 1;
  for (int64_t j = 0; j < N_COLS; ++j)
    for (int64_t i = 0; i < n; ++i) out[j * n + i] = s->x[j * N_ROWS + rows[i]];
  return 0;
}

static void rows_go_on(const double* x, const cape_matrix_view* view, const cape_prior* prior) {
  cape_options* o = quick_options();
  cape_dag* dag = NULL;
  cape_checkpoint* checkpoint = NULL;
  double whole[N_COLS * N_COLS], resumed[N_COLS * N_COLS];
  CHECK_OK(cape_dag_learn_with(&dag, view, prior, o));
  CHECK_OK(cape_dag_weights(whole, N_COLS, N_COLS, dag));
  cape_dag_free(dag);
  struct source s = {x, 0, 300};
  const cape_row_source source = {sizeof source, N_ROWS, N_COLS, read_some, &s};
  CHECK_OK(cape_checkpoint_new(&checkpoint));
  int attempts = 0;
  int64_t bytes = 0, epochs = 0, before = -1;
  for (;; ++attempts) {
    s.calls = 0;
    const cape_status status = cape_dag_learn_rows_from(&dag, &source, prior, checkpoint, o);
    if (status == CAPE_OK) break;
    CHECK(status == CAPE_IO && dag == NULL);
    CHECK_OK(cape_checkpoint_size(&bytes, &epochs, checkpoint));
    CHECK(epochs > before); /* 300 reads are more than an epoch */
    if (epochs <= before) break;
    before = epochs;
  }
  CHECK(attempts > 1);
  CHECK_OK(cape_dag_weights(resumed, N_COLS, N_COLS, dag));
  CHECK(memcmp(resumed, whole, sizeof whole) == 0);
  cape_dag_free(dag);
  /* The checkpoint of the same table, in memory or not. */
  CHECK_OK(cape_dag_learn_from(&dag, view, prior, checkpoint, o));
  cape_dag_free(dag);
  cape_checkpoint_free(checkpoint);
  cape_options_free(o);
}

int main(void) {
  double x[N_ROWS * N_COLS], whole[N_COLS * 4], resumed[N_COLS * 4];
  fill_chain(x);
  const cape_matrix_view view = CAPE_MATRIX_VIEW(x, N_ROWS, N_COLS);
  cape_options* o = quick_options();
  cape_result* result = NULL;
  CHECK_OK(cape_fit(&result, &view, o));
  embedding_of(whole, result);
  cape_result_free(result);

  cape_prior* prior = NULL;
  cape_checkpoint* checkpoint = NULL;
  int64_t bytes = 0, epochs = -1, step = 300; /* an epoch has 120 steps */
  CHECK_OK(cape_prior_new(&prior));
  CHECK_OK(cape_checkpoint_new(&checkpoint));
  CHECK_OK(cape_checkpoint_size(&bytes, &epochs, checkpoint));
  CHECK(bytes > 0 && epochs == 0);
  CHECK_OK(cape_options_set_progress(o, cancel_at_once, &step));
  CHECK_STATUS(cape_fit_from(&result, &view, prior, checkpoint, o), CAPE_CANCELLED);
  CHECK_OK(cape_checkpoint_size(&bytes, &epochs, checkpoint));
  CHECK(epochs >= 2);

  char* saved = malloc((size_t)bytes);
  CHECK_STATUS(cape_checkpoint_save(saved, bytes - 1, checkpoint), CAPE_DIM_MISMATCH);
  CHECK_OK(cape_checkpoint_save(saved, bytes, checkpoint));
  cape_checkpoint_free(checkpoint);
  cape_checkpoint_free(NULL);
  CHECK_OK(cape_checkpoint_load(&checkpoint, saved, bytes));
  CHECK_OK(cape_options_set_progress(o, NULL, NULL));
  CHECK_OK(cape_fit_from(&result, &view, prior, checkpoint, o));
  embedding_of(resumed, result);
  CHECK(memcmp(resumed, whole, sizeof whole) == 0);
  cape_result_free(result);
  cape_dag* dag = NULL;
  CHECK_OK(cape_dag_learn_from(&dag, &view, prior, checkpoint, o));
  cape_dag_free(dag);

  damage_is_found(saved, bytes);
  saved_by_the_callback(&view, prior);
  rows_go_on(x, &view, prior);
  x[3] += 1; /* another table */
  CHECK_ERROR(cape_dag_learn_from(&dag, &view, prior, checkpoint, o), CAPE_INVALID_ARGUMENT,
              "checkpoint");
  cape_checkpoint* other = (cape_checkpoint*)&bytes;
  CHECK_ERROR(cape_checkpoint_load(&other, saved, bytes - 8), CAPE_BAD_FORMAT, "not all");
  CHECK(other == NULL);
  CHECK_STATUS(cape_checkpoint_load(&other, saved, 3), CAPE_BAD_FORMAT);
  saved[0] = 'X';
  CHECK_STATUS(cape_checkpoint_load(&other, saved, bytes), CAPE_BAD_FORMAT);
  CHECK_NULL(cape_checkpoint_load(&other, NULL, 8), "bytes");
  CHECK_NULL(cape_checkpoint_load(NULL, saved, bytes), "out");
  CHECK_NULL(cape_checkpoint_new(NULL), "out");
  CHECK_NULL(cape_checkpoint_save(NULL, bytes, checkpoint), "out");
  CHECK_NULL(cape_checkpoint_save(saved, bytes, NULL), "checkpoint");
  CHECK_NULL(cape_checkpoint_size(&bytes, NULL, checkpoint), "epochs_out");
  CHECK_ERROR(cape_fit_from(&result, &view, NULL, checkpoint, o), CAPE_INVALID_ARGUMENT,
              "checkpoint");
  CHECK(result == NULL);

  embedding_goes_on(o);
  free(saved);
  cape_checkpoint_free(checkpoint);
  cape_prior_free(prior);
  cape_options_free(o);
  return n_failed != 0;
}
