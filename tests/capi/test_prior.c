/* What is known before Step I, through C: it holds in the result; what is wrong is named. */
#include "check.h"

static double x[N_ROWS * N_COLS];
static cape_matrix_view view;
static cape_options* options;

static int has_edge(const cape_dag* dag, int from, int to) {
  double a[N_COLS * N_COLS];
  CHECK_OK(cape_dag_adjacency(a, N_COLS, N_COLS, dag));
  return a[from + to * N_COLS] != 0;
}

static void knowledge_holds(void) {
  cape_prior* prior = NULL;
  cape_dag* dag = NULL;
  CHECK_OK(cape_prior_new(&prior));
  const int64_t from[] = {N_COLS - 1}, to[] = {0}, first[] = {0}, second[] = {1};
  CHECK_OK(cape_prior_require(prior, from, to, 1)); /* against the chain 0 -> 1 -> ... */
  CHECK_OK(cape_prior_forbid(prior, first, second, 1));
  CHECK_OK(cape_dag_learn_with(&dag, &view, prior, options));
  CHECK(has_edge(dag, N_COLS - 1, 0) && !has_edge(dag, 0, 1));
  double w[N_COLS * N_COLS];
  CHECK_OK(cape_dag_weights(w, N_COLS, N_COLS, dag));
  CHECK(w[0 + 1 * N_COLS] == 0);
  cape_dag* pruned = NULL;
  CHECK_OK(cape_dag_prune(&pruned, dag, 100));
  CHECK(has_edge(pruned, N_COLS - 1, 0));
  cape_dag_free(pruned);
  cape_dag_free(dag);

  /* A start is a hint: what holds still holds. */
  const double strength[] = {-0.8};
  CHECK_OK(cape_prior_start(prior, first, second, strength, 1));
  CHECK_OK(cape_dag_learn_with(&dag, &view, prior, options));
  CHECK(has_edge(dag, N_COLS - 1, 0) && !has_edge(dag, 0, 1));
  cape_dag_free(dag);

  cape_result* result = NULL;
  const cape_dag* of_fit = NULL;
  CHECK_OK(cape_fit_with(&result, &view, prior, options));
  CHECK_OK(cape_result_dag(&of_fit, result));
  CHECK(has_edge(of_fit, N_COLS - 1, 0) && !has_edge(of_fit, 0, 1));
  cape_result_free(result);
  cape_prior_free(prior);
  cape_prior_free(NULL);
}

static void sets_of_columns_hold(void) {
  const int64_t column[] = {1};
  double w[N_COLS * N_COLS], all[N_COLS * N_COLS];
  for (int i = 0; i < N_COLS * N_COLS; ++i) all[i] = 1;
  const cape_matrix_view penalty = CAPE_MATRIX_VIEW(all, N_COLS, N_COLS);
  for (int kind = 0; kind < 3; ++kind) {
    cape_prior* prior = NULL;
    cape_dag* dag = NULL;
    CHECK_OK(cape_prior_new(&prior));
    CHECK_OK(cape_prior_penalty(prior, &penalty));
    CHECK_OK(kind == 0   ? cape_prior_roots(prior, column, 1)
             : kind == 1 ? cape_prior_leaves(prior, column, 1)
                         : cape_prior_regulators(prior, column, 1));
    CHECK_OK(cape_dag_learn_with(&dag, &view, prior, options));
    CHECK_OK(cape_dag_weights(w, N_COLS, N_COLS, dag));
    for (int j = 0; j < N_COLS; ++j)
      for (int i = 0; i < N_COLS; ++i)
        if (kind == 0 ? j == 1 : kind == 1 ? i == 1 : i != 1) CHECK(w[i + j * N_COLS] == 0);
    cape_dag_free(dag);
    cape_prior_free(prior);
  }
}

/* A level that differs between batches is not a cause. */
static void rows_are_known(void) {
  double shifted[N_ROWS * N_COLS];
  int64_t batch[N_ROWS], row[1] = {3}, column[1] = {2}, tier[N_COLS];
  double weight[N_ROWS];
  for (int i = 0; i < N_ROWS; ++i) {
    batch[i] = i % 2;
    weight[i] = 1 + i % 3;
    for (int j = 0; j < N_COLS; ++j) shifted[i + j * N_ROWS] = x[i + j * N_ROWS] + 64 * (i % 2);
  }
  for (int j = 0; j < N_COLS; ++j) tier[j] = j;
  double w[2][N_COLS * N_COLS];
  for (int k = 0; k < 2; ++k) {
    const cape_matrix_view table = CAPE_MATRIX_VIEW(k ? shifted : x, N_ROWS, N_COLS);
    cape_prior* prior = NULL;
    cape_dag* dag = NULL;
    CHECK_OK(cape_prior_new(&prior));
    CHECK_OK(cape_prior_batches(prior, batch, N_ROWS));
    CHECK_OK(cape_prior_row_weights(prior, weight, N_ROWS));
    CHECK_OK(cape_prior_perturb(prior, row, column, 1));
    CHECK_OK(cape_prior_tiers(prior, tier, N_COLS));
    cape_options* linear = NULL;
    CHECK_OK(cape_options_clone(&linear, options));
    CHECK_OK(cape_options_set_str(linear, "dag.sem", "linear"));
    CHECK_OK(cape_dag_learn_with(&dag, &table, prior, linear));
    CHECK_OK(cape_dag_weights(w[k], N_COLS, N_COLS, dag));
    cape_options_free(linear);
    cape_dag_free(dag);
    cape_prior_free(prior);
  }
  for (int i = 0; i < N_COLS * N_COLS; ++i) CHECK(fabs(w[0][i] - w[1][i]) < 1e-6);
}

static void errors_are_named(void) {
  cape_prior* prior = NULL;
  cape_dag* dag = (cape_dag*)&prior;
  cape_result* result = (cape_result*)&prior;
  const int64_t one[] = {0}, far[] = {N_COLS};
  const double weight[] = {1};
  CHECK_NULL(cape_prior_new(NULL), "out");
  CHECK_OK(cape_prior_new(&prior));
  CHECK_NULL(cape_prior_require(NULL, one, one, 1), "prior");
  CHECK_NULL(cape_prior_require(prior, NULL, one, 1), "from");
  CHECK_NULL(cape_prior_require(prior, one, NULL, 1), "to");
  CHECK_NULL(cape_prior_forbid(NULL, one, one, 1), "prior");
  CHECK_NULL(cape_prior_tiers(NULL, one, 1), "prior");
  CHECK_NULL(cape_prior_tiers(prior, NULL, 1), "tier");
  CHECK_NULL(cape_prior_roots(NULL, one, 1), "prior");
  CHECK_NULL(cape_prior_leaves(prior, NULL, 1), "column");
  CHECK_NULL(cape_prior_regulators(NULL, one, 1), "prior");
  CHECK_NULL(cape_prior_penalty(prior, NULL), "factor");
  CHECK_NULL(cape_prior_row_weights(prior, NULL, 1), "weight");
  CHECK_NULL(cape_prior_start(NULL, one, far, weight, 1), "prior");
  CHECK_NULL(cape_prior_start(prior, one, far, NULL, 1), "weight");
  CHECK_NULL(cape_prior_batches(NULL, one, 1), "prior");
  CHECK_NULL(cape_prior_perturb(prior, one, NULL, 1), "column");
  CHECK_STATUS(cape_prior_roots(prior, one, -1), CAPE_INVALID_ARGUMENT);
  CHECK_OK(cape_prior_roots(prior, NULL, 0));
  CHECK_NULL(cape_dag_learn_with(&dag, &view, NULL, options), "prior");
  CHECK(dag == NULL);
  CHECK_NULL(cape_fit_with(&result, &view, NULL, options), "prior");
  CHECK(result == NULL);

  CHECK_OK(cape_prior_row_weights(prior, weight, 1));
  CHECK_ERROR(cape_dag_learn_with(&dag, &view, prior, options), CAPE_DIM_MISMATCH, "weight has 1 values");
  CHECK_OK(cape_prior_row_weights(prior, NULL, 0));
  CHECK_OK(cape_prior_start(prior, one, far, weight, 1));
  CHECK_ERROR(cape_dag_learn_with(&dag, &view, prior, options), CAPE_INVALID_ARGUMENT, "start has the number");
  CHECK_OK(cape_prior_require(prior, one, far, 1));
  CHECK_ERROR(cape_dag_learn_with(&dag, &view, prior, options), CAPE_INVALID_ARGUMENT, "required has the number");
  cape_prior_free(prior);
}

int main(void) {
  fill_chain(x);
  const cape_matrix_view v = CAPE_MATRIX_VIEW(x, N_ROWS, N_COLS);
  view = v;
  options = quick_options();
  knowledge_holds();
  sets_of_columns_hold();
  rows_are_known();
  errors_are_named();
  cape_options_free(options);
  return n_failed != 0;
}
