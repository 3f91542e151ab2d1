/* From options to results and back to nothing: values, ownership, and that inputs are not kept. */
#include "check.h"

static void build(void) {
  CHECK(cape_abi_version() == CAPE_ABI_VERSION);
  char version[32];
  snprintf(version, sizeof version, "%d.%d.%d", CAPE_VERSION_MAJOR, CAPE_VERSION_MINOR,
           CAPE_VERSION_PATCH);
  CHECK(strcmp(cape_version_string(), version) == 0);
  CHECK(strlen(cape_build_id()) > 0);
  CHECK(strstr(cape_build_info(), version) != NULL);
  CHECK(strstr(cape_build_info(), cape_blas_kernel()) != NULL);
  CHECK(strlen(cape_blas_best_kernel()) > 0);
  if (getenv("OPENBLAS_CORETYPE") == NULL) /* the library's choice, not the user's */
    CHECK(strcmp(cape_blas_kernel(), cape_blas_best_kernel()) == 0);
  CHECK_OK(cape_self_test());
  double gflops = 0;
  CHECK_OK(cape_blas_rate(&gflops, 300));
  CHECK(gflops > 0.01); /* a plain loop does a hundred times that */
  CHECK(cape_blas_rate(&gflops, 0) == CAPE_INVALID_ARGUMENT && gflops == 0);
  CHECK(strcmp(cape_status_name(CAPE_OK), "ok") == 0);
  CHECK(strcmp(cape_status_name(CAPE_BAD_STATE), "bad_state") == 0);
  CHECK(strcmp(cape_status_name(99), "unknown") == 0);
}

static void options(void) {
  cape_options* o = NULL;
  CHECK_OK(cape_options_new(&o));
  CHECK_OK(cape_options_set_f64(o, "dag.threshold", 0.35));
  CHECK_OK(cape_options_set_i64(o, "run.threads", 2));
  CHECK_OK(cape_options_set_bool(o, "dag.standardize", 1));
  CHECK_OK(cape_options_set_str(o, "dag.sem", "linear"));
  CHECK_OK(cape_options_set_text(o, "embed.dims", "7"));
  CHECK_OK(cape_options_set_f64(o, "dag.lambda", NAN)); /* automatic */

  cape_options* copy = NULL;
  CHECK_OK(cape_options_clone(&copy, o));
  CHECK_OK(cape_options_set_f64(o, "dag.threshold", 0.5)); /* the copy stands alone */
  cape_options_free(o);
  double threshold = 0, lambda = 0;
  int64_t threads = 0, dims = 0;
  int standardize = 0;
  const char* sem = NULL;
  CHECK_OK(cape_options_get_f64(&threshold, copy, "dag.threshold"));
  CHECK_OK(cape_options_get_f64(&lambda, copy, "dag.lambda"));
  CHECK_OK(cape_options_get_i64(&threads, copy, "run.threads"));
  CHECK_OK(cape_options_get_i64(&dims, copy, "embed.dims"));
  CHECK_OK(cape_options_get_bool(&standardize, copy, "dag.standardize"));
  CHECK_OK(cape_options_get_str(&sem, copy, "dag.sem"));
  cape_options_free(copy);
  CHECK(threshold == 0.35 && isnan(lambda) && threads == 2 && dims == 7 && standardize == 1);
  CHECK(sem != NULL && strcmp(sem, "linear") == 0); /* outlives the handle */
}

/* Every entry of the registry has all its texts, and its default can be set and reads back. */
static void registry(void) {
  cape_options* o = NULL;
  CHECK_OK(cape_options_new(&o));
  CHECK(cape_option_count() > 30);
  for (size_t i = 0; i < cape_option_count(); ++i) {
    cape_option_desc d = {.struct_size = sizeof d};
    CHECK_OK(cape_option_info(&d, i));
    CHECK(strchr(d.key, '.') != NULL && strlen(d.range) > 0 && strlen(d.doc) > 0);
    CHECK(strlen(d.source) > 0);
    CHECK_OK(cape_options_set_text(o, d.key, d.default_value));
    double f64 = 0;
    int64_t i64 = 0;
    int flag = 0;
    const char* name = NULL;
    if (strcmp(d.type, "double") == 0) {
      CHECK_OK(cape_options_get_f64(&f64, o, d.key));
      CHECK(isnan(f64) ? strcmp(d.default_value, "nan") == 0
                       : strtod(d.default_value, NULL) == f64);
    } else if (strcmp(d.type, "integer") == 0) {
      CHECK_OK(cape_options_get_i64(&i64, o, d.key));
      CHECK(strtoll(d.default_value, NULL, 10) == i64);
    } else if (strcmp(d.type, "logical") == 0) {
      CHECK_OK(cape_options_get_bool(&flag, o, d.key));
      CHECK(strcmp(d.default_value, flag ? "true" : "false") == 0);
    } else {
      CHECK(strcmp(d.type, "choice") == 0);
      CHECK_OK(cape_options_get_str(&name, o, d.key));
      CHECK(strcmp(d.default_value, name) == 0);
    }
  }
  cape_options_free(o);
}

static void fit(void) {
  double x[N_ROWS * N_COLS];
  fill_chain(x);
  const cape_matrix_view view = CAPE_MATRIX_VIEW(x, N_ROWS, N_COLS);
  cape_options* o = quick_options();
  cape_result* result = NULL;
  CHECK_OK(cape_fit(&result, &view, o));

  const cape_dag* dag = NULL;
  const cape_embedding* embedding = NULL;
  CHECK_OK(cape_result_dag(&dag, result));
  CHECK_OK(cape_result_embedding(&embedding, result));
  cape_dag_info info = {.struct_size = sizeof info};
  CHECK_OK(cape_dag_describe(&info, dag));
  CHECK(info.n_nodes == N_COLS && info.n_epochs == 5 && info.learned && info.acyclic);
  CHECK(!info.refined && info.n_constant == 0);

  /* The list of edges and the matrix tell the same. */
  double a[N_COLS * N_COLS];
  int64_t from[N_COLS * N_COLS], to[N_COLS * N_COLS];
  double weight[N_COLS * N_COLS];
  CHECK_OK(cape_dag_adjacency(a, N_COLS, N_COLS, dag));
  CHECK_OK(cape_dag_edges(from, to, weight, N_COLS * N_COLS, dag));
  int64_t n_nonzero = 0;
  for (int i = 0; i < N_COLS * N_COLS; ++i) n_nonzero += a[i] != 0;
  CHECK(n_nonzero == info.n_edges);
  for (int64_t e = 0; e < info.n_edges; ++e) {
    CHECK(a[to[e] * N_COLS + from[e]] == weight[e]);
    CHECK(fabs(weight[e]) > info.threshold);
  }

  /* The order is a permutation and every cause comes before its effect. */
  int64_t order[N_COLS], place[N_COLS] = {-1, -1, -1, -1};
  CHECK_OK(cape_dag_order(order, N_COLS, dag));
  for (int i = 0; i < N_COLS; ++i) place[order[i]] = i;
  for (int i = 0; i < N_COLS; ++i) CHECK(place[i] >= 0);
  for (int64_t e = 0; e < info.n_edges; ++e) CHECK(place[from[e]] < place[to[e]]);

  /* Column means are what was subtracted. */
  double center[N_COLS], scale[N_COLS], mean = 0;
  CHECK_OK(cape_dag_scaling(center, scale, N_COLS, dag));
  for (int i = 0; i < N_ROWS; ++i) mean += x[i] / N_ROWS;
  CHECK_NEAR(center[0], mean, 1e-12);

  double history[5 * 7];
  CHECK_OK(cape_dag_history(history, 5, 7, dag));
  for (int i = 0; i < 5; ++i) CHECK(history[i] == i + 1);
  for (int i = 0; i < 5 * 7; ++i) CHECK(isfinite(history[i]));

  /* Both models of the points agree: e = p~ / (1 + p0), psi = 1 - |e|; angles are pi/4 of e. */
  double p[N_COLS * 5], e[N_COLS * 4], phi[N_COLS * 4], generality[N_COLS], radius[N_COLS];
  CHECK_OK(cape_embedding_hyperboloid(p, N_COLS, 5, embedding));
  CHECK_OK(cape_embedding_poincare(e, N_COLS, 4, embedding));
  CHECK_OK(cape_result_angles(phi, N_COLS, 4, result));
  CHECK_OK(cape_embedding_nodes(generality, radius, NULL, N_COLS, embedding));
  for (int i = 0; i < N_COLS; ++i) {
    double norm = 0;
    for (int k = 0; k < 4; ++k) {
      CHECK_NEAR(e[k * N_COLS + i], p[(k + 1) * N_COLS + i] / (1 + p[i]), 1e-12);
      CHECK_NEAR(phi[k * N_COLS + i], 0.7853981633974483 * e[k * N_COLS + i], 1e-12);
      norm += e[k * N_COLS + i] * e[k * N_COLS + i];
    }
    CHECK_NEAR(generality[i], 1 - sqrt(norm), 1e-12);
    CHECK_NEAR(radius[i], acosh(fmax(p[i], 1)), 1e-6); /* acosh loses half the digits near 1 */
  }

  /* Pruned at infinity there is no edge; the fit it came from is unchanged. */
  cape_dag* pruned = NULL;
  CHECK_OK(cape_dag_prune(&pruned, dag, 1e300, NULL));
  cape_dag_info pruned_info = {.struct_size = sizeof pruned_info};
  CHECK_OK(cape_dag_describe(&pruned_info, pruned));
  CHECK(pruned_info.n_edges == 0 && pruned_info.n_nodes == N_COLS);
  cape_dag_free(pruned);

  double bytes = 0, seconds = 0;
  CHECK_OK(cape_estimate(&bytes, &seconds, N_ROWS, N_COLS, o));
  CHECK(bytes > sizeof x && seconds > 0 && isfinite(bytes) && isfinite(seconds));
  cape_result_free(result);
  cape_options_free(o);
}

static double coordinate_of_last(const cape_matrix_view* x, const cape_options* o, double* spoil) {
  cape_dag* dag = NULL;
  cape_embedding* embedding = NULL;
  double e[N_COLS * 4] = {0};
  CHECK_OK(cape_dag_learn(&dag, x, o));
  for (int i = 0; spoil != NULL && i < N_ROWS * N_COLS; ++i) spoil[i] = NAN;
  CHECK_OK(cape_embedding_fit(&embedding, dag, o));
  CHECK_OK(cape_embedding_poincare(e, N_COLS, 4, embedding));
  cape_embedding_free(embedding);
  cape_dag_free(dag);
  return e[N_COLS - 1];
}

/* Step II gives the same after the table of Step I has been overwritten. */
static void inputs_are_not_kept(void) {
  double x[N_ROWS * N_COLS];
  fill_chain(x);
  const cape_matrix_view view = CAPE_MATRIX_VIEW(x, N_ROWS, N_COLS);
  cape_options* o = quick_options();
  const double kept = coordinate_of_last(&view, o, NULL);
  const double spoiled = coordinate_of_last(&view, o, x);
  CHECK(kept == spoiled && kept != 0);
  cape_options_free(o);
}

/* Row-major input gives the bits of column-major input. */
static void layouts_agree(void) {
  double x[N_ROWS * N_COLS], rows[N_ROWS * N_COLS], a[16], b[16];
  fill_chain(x);
  for (int i = 0; i < N_ROWS; ++i)
    for (int j = 0; j < N_COLS; ++j) rows[i * N_COLS + j] = x[j * N_ROWS + i];
  const cape_matrix_view by_column = CAPE_MATRIX_VIEW(x, N_ROWS, N_COLS);
  const cape_matrix_view by_row = CAPE_ROW_MATRIX_VIEW(rows, N_ROWS, N_COLS);
  cape_options* o = quick_options();
  cape_dag *first = NULL, *second = NULL;
  CHECK_OK(cape_dag_learn(&first, &by_column, o));
  CHECK_OK(cape_dag_learn(&second, &by_row, o));
  CHECK_OK(cape_dag_weights(a, N_COLS, N_COLS, first));
  CHECK_OK(cape_dag_weights(b, N_COLS, N_COLS, second));
  CHECK(memcmp(a, b, sizeof a) == 0);
  cape_dag_free(first);
  cape_dag_free(second);
  cape_options_free(o);
}

/* Cut so that it has no edges, a chain lies at the origin or, as its features have partners, does
 * not; loaded again it lies where it did. */
static void coverage(void) {
  double x[N_ROWS * N_COLS], partners[N_COLS * N_COLS], radius[N_COLS], again[N_COLS];
  fill_chain(x);
  const cape_matrix_view table = CAPE_MATRIX_VIEW(x, N_ROWS, N_COLS);
  cape_options* o = quick_options();
  CHECK_OK(cape_options_set_str(o, "dag.refine", "never"));
  CHECK_OK(cape_options_set_f64(o, "dag.threshold", 1e6));
  cape_dag* dag = NULL;
  CHECK_OK(cape_dag_learn(&dag, &table, o));
  CHECK_OK(cape_dag_partners(partners, N_COLS, N_COLS, dag));
  for (int j = 0; j < N_COLS; ++j) {
    int found = 0;
    for (int i = 0; i < N_COLS; ++i) found += partners[j * N_COLS + i] != 0;
    CHECK(found == 1 && partners[j * N_COLS + j] == 0);
  }
  const char* const covers[] = {"support", "edges"};
  for (int k = 0; k < 2; ++k) {
    CHECK_OK(cape_options_set_str(o, "embed.coverage", covers[k]));
    cape_embedding* embedding = NULL;
    CHECK_OK(cape_embedding_fit(&embedding, dag, o));
    CHECK_OK(cape_embedding_nodes(NULL, radius, NULL, N_COLS, embedding));
    for (int j = 0; j < N_COLS; ++j) CHECK((radius[j] > 0) == (k == 0));
    int64_t size = 0;
    CHECK_OK(cape_dag_save_size(&size, dag));
    void* bytes = malloc((size_t)size);
    CHECK_OK(cape_dag_save(bytes, size, dag));
    cape_dag* loaded = NULL;
    CHECK_OK(cape_dag_load(&loaded, bytes, size));
    free(bytes);
    cape_embedding* same = NULL;
    CHECK_OK(cape_embedding_fit(&same, loaded, o));
    CHECK_OK(cape_embedding_nodes(NULL, again, NULL, N_COLS, same));
    CHECK(memcmp(radius, again, sizeof radius) == 0);
    cape_embedding_free(same);
    cape_embedding_free(embedding);
    cape_dag_free(loaded);
  }
  CHECK_STATUS(cape_options_set_str(o, "embed.coverage", "all"), CAPE_INVALID_ARGUMENT);
  cape_dag_free(dag);
  cape_options_free(o);
}

/* The sparse views hold what the dense matrices hold, and no zeros. */
static void sparse_views_agree(void) {
  typedef cape_status (*dense_fn)(double*, int64_t, int64_t, const cape_dag*);
  typedef cape_status (*sparse_fn)(cape_sparse_view*, const cape_dag*);
  const dense_fn dense[] = {cape_dag_weights, cape_dag_sign, cape_dag_statistic,
                            cape_dag_support, cape_dag_partners};
  const sparse_fn sparse[] = {cape_dag_weights_view, cape_dag_sign_view, cape_dag_statistic_view,
                              cape_dag_support_view, cape_dag_partners_view};
  double x[N_ROWS * N_COLS];
  fill_chain(x);
  const cape_matrix_view table = CAPE_MATRIX_VIEW(x, N_ROWS, N_COLS);
  cape_options* o = quick_options();
  CHECK_OK(cape_options_set_str(o, "dag.refine", "always"));
  cape_dag* dag = NULL;
  CHECK_OK(cape_dag_learn(&dag, &table, o));
  for (int k = 0; k < 5; ++k) {
    double a[N_COLS * N_COLS], b[N_COLS * N_COLS] = {0};
    for (int e = 0; e < N_COLS * N_COLS; ++e) a[e] = -7;
    cape_sparse_view view = {.struct_size = sizeof view};
    CHECK_OK(dense[k](a, N_COLS, N_COLS, dag));
    CHECK_OK(sparse[k](&view, dag));
    CHECK(view.n_rows == N_COLS && view.n_cols == N_COLS && view.layout == CAPE_COL_MAJOR);
    for (int64_t j = 0; j < N_COLS; ++j)
      for (int64_t e = view.offsets[j]; e < view.offsets[j + 1]; ++e) {
        CHECK(view.values[e] != 0);
        b[j * N_COLS + view.indices[e]] = view.values[e];
      }
    CHECK(view.offsets[N_COLS] > 0 && memcmp(a, b, sizeof a) == 0);
  }
  cape_dag_free(dag);
  cape_options_free(o);
}

/* ctx: the table. */
static int read_rows(double* out, const int64_t* rows, int64_t n, void* ctx) {
  const double* x = ctx;
  for (int j = 0; j < N_COLS; ++j)
    for (int64_t r = 0; r < n; ++r) *out++ = x[j * N_ROWS + rows[r]];
  return 0;
}

static int give_up(double* out, const int64_t* rows, int64_t n, void* ctx) {
  (void)out, (void)rows, (void)n;
  return ++*(int*)ctx;
}

/* A table that is read by rows gives the bits of the table in memory. */
static void rows_agree(void) {
  double x[N_ROWS * N_COLS], a[16], b[16];
  fill_chain(x);
  const cape_matrix_view table = CAPE_MATRIX_VIEW(x, N_ROWS, N_COLS);
  cape_row_source source = {sizeof source, N_ROWS, N_COLS, read_rows, x};
  cape_options* o = quick_options();
  cape_prior* prior = NULL;
  CHECK_OK(cape_prior_new(&prior));
  const int64_t from = 3, to = 0;
  CHECK_OK(cape_prior_forbid(prior, &from, &to, 1));
  cape_dag *first = NULL, *second = NULL, *none = NULL;
  CHECK_OK(cape_dag_learn_with(&first, &table, prior, o));
  CHECK_OK(cape_dag_learn_rows(&second, &source, prior, o));
  CHECK_OK(cape_dag_weights(a, N_COLS, N_COLS, first));
  CHECK_OK(cape_dag_weights(b, N_COLS, N_COLS, second));
  CHECK(memcmp(a, b, sizeof a) == 0);

  CHECK_NULL(cape_dag_learn_rows(NULL, &source, prior, o), "out");
  CHECK_NULL(cape_dag_learn_rows(&none, NULL, prior, o), "source");
  CHECK_NULL(cape_dag_learn_rows(&none, &source, prior, NULL), "options");
  int calls = 0;
  cape_row_source broken = {sizeof broken, N_ROWS, N_COLS, give_up, &calls};
  CHECK_ERROR(cape_dag_learn_rows(&none, &broken, prior, o), CAPE_IO, "gave up");
  CHECK(calls == 1 && none == NULL);
  broken.read = NULL;
  CHECK_NULL(cape_dag_learn_rows(&none, &broken, prior, o), "source.read");
  source.n_rows = -1;
  CHECK_ERROR(cape_dag_learn_rows(&none, &source, prior, o), CAPE_INVALID_ARGUMENT, "source");
  source.n_rows = N_ROWS;
  double weight[N_ROWS];
  for (int i = 0; i < N_ROWS; ++i) weight[i] = 1;
  CHECK_OK(cape_prior_row_weights(prior, weight, N_ROWS));
  CHECK_ERROR(cape_dag_learn_rows(&none, &source, prior, o), CAPE_UNSUPPORTED, "row weights");
  cape_dag_free(first);
  cape_dag_free(second);
  cape_prior_free(prior);
  cape_options_free(o);
}

/* For the leak checker. */
static void hundred_cycles(void) {
  double x[N_ROWS * N_COLS];
  fill_chain(x);
  const cape_matrix_view view = CAPE_MATRIX_VIEW(x, N_ROWS, N_COLS);
  for (int cycle = 0; cycle < 100; ++cycle) {
    cape_options* o = quick_options();
    CHECK_OK(cape_options_set_i64(o, "dag.epochs", 1));
    CHECK_OK(cape_options_set_i64(o, "embed.epochs", 2));
    cape_result* result = NULL;
    CHECK_OK(cape_fit(&result, &view, o));
    cape_result_free(result);
    cape_options_free(o);
  }
  cape_options_free(NULL);
  cape_table_free(NULL);
  cape_dag_free(NULL);
  cape_embedding_free(NULL);
  cape_result_free(NULL);
}

int main(void) {
  build();
  options();
  registry();
  fit();
  inputs_are_not_kept();
  layouts_agree();
  sparse_views_agree();
  coverage();
  rows_agree();
  hundred_cycles();
  return n_failed != 0;
}
