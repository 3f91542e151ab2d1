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

static int has_weight(const cape_dag* dag, double weight) {
  int64_t from[2], to[2];
  double found[2] = {0, 0};
  CHECK_OK(cape_dag_edges(from, to, found, 2, dag));
  return found[0] == weight || found[1] == weight;
}

/* From its weights, signs, order and required edges a fit is cut as the fit itself. */
static void made_again(const cape_dag* dag, const int64_t* from, const int64_t* to, int64_t n) {
  cape_sparse_view w = {.struct_size = sizeof w}, sign = {.struct_size = sizeof sign};
  int64_t order[N_COLS];
  CHECK_OK(cape_dag_weights_view(&w, dag));
  CHECK_OK(cape_dag_sign_view(&sign, dag));
  CHECK_OK(cape_dag_order(order, N_COLS, dag));
  for (double tau = 0; tau < 3; tau += 0.3) {
    cape_dag *direct = NULL, *restored = NULL, *again = NULL;
    CHECK_OK(cape_dag_prune(&direct, dag, tau, options));
    CHECK_OK(cape_dag_restore(&restored, &w, &sign, order, N_COLS, from, to, n, tau, options));
    CHECK_OK(cape_dag_prune(&again, restored, tau, NULL));
    double a[N_COLS * N_COLS], b[N_COLS * N_COLS];
    int64_t first[N_COLS], second[N_COLS];
    cape_dag_info i = {.struct_size = sizeof i}, j = {.struct_size = sizeof j};
    const cape_dag* others[] = {restored, again};
    CHECK_OK(cape_dag_adjacency(a, N_COLS, N_COLS, direct));
    CHECK_OK(cape_dag_order(first, N_COLS, direct));
    CHECK_OK(cape_dag_describe(&i, direct));
    CHECK(i.n_warnings == 0);
    for (int k = 0; k < 2; ++k) {
      CHECK_OK(cape_dag_adjacency(b, N_COLS, N_COLS, others[k]));
      CHECK(memcmp(a, b, sizeof a) == 0);
      CHECK_OK(cape_dag_order(second, N_COLS, others[k]));
      CHECK(memcmp(first, second, sizeof first) == 0);
      CHECK_OK(cape_dag_describe(&j, others[k]));
      CHECK(j.learned && !j.refined && j.acyclic && j.n_epochs == 0 && j.threshold == tau);
      CHECK(i.effective_threshold == j.effective_threshold);
      CHECK(i.n_removed_for_acyclicity == j.n_removed_for_acyclicity);
      CHECK_OK(cape_dag_scaling(a, b, N_COLS, others[k]));
      CHECK(a[0] == 0 && b[N_COLS - 1] == 1);
      CHECK_OK(cape_dag_adjacency(a, N_COLS, N_COLS, direct));
    }
    int64_t bytes = 0;
    CHECK_OK(cape_dag_save_size(&bytes, restored));
    char* saved = malloc((size_t)bytes);
    CHECK_OK(cape_dag_save(saved, bytes, restored));
    cape_dag_free(again);
    CHECK_OK(cape_dag_load(&again, saved, bytes));
    free(saved);
    cape_dag_free(direct);
    cape_dag_free(restored);
    cape_dag_free(again);
  }
}

/* NULL for a prior is one that says nothing, and NULL for a checkpoint keeps nothing. */
static void null_says_nothing(void) {
  cape_prior* nothing = NULL;
  CHECK_OK(cape_prior_new(&nothing));
  double expected[N_COLS * N_COLS], got[N_COLS * N_COLS];
  const cape_prior* priors[] = {NULL, nothing};
  for (int k = 0; k < 4; ++k) {
    cape_dag* dag = NULL;
    cape_result* result = NULL;
    cape_embedding* embedding = NULL;
    const cape_dag* of_result = NULL;
    cape_checkpoint *first = NULL, *second = NULL;
    if (k > 1) CHECK_OK(cape_checkpoint_new(&first));
    if (k > 1) CHECK_OK(cape_checkpoint_new(&second));
    CHECK_OK(cape_dag_learn_from(&dag, &view, priors[k % 2], first, options));
    CHECK_OK(cape_dag_weights(k == 0 ? expected : got, N_COLS, N_COLS, dag));
    if (k > 0) CHECK(memcmp(expected, got, sizeof got) == 0);
    CHECK_OK(cape_fit_from(&result, &view, priors[k % 2], second, options));
    CHECK_OK(cape_result_dag(&of_result, result));
    CHECK_OK(cape_dag_weights(got, N_COLS, N_COLS, of_result));
    CHECK(memcmp(expected, got, sizeof got) == 0);
    CHECK_OK(cape_embedding_fit_from(&embedding, dag, NULL, options));
    cape_embedding_free(embedding);
    cape_result_free(result);
    cape_dag_free(dag);
    cape_checkpoint_free(first);
    cape_checkpoint_free(second);
  }
  cape_prior_free(nothing);
}

static void bad_remains(void) {
  const double values[] = {0.5, -0.25}, infinite[] = {0.5, INFINITY};
  const int32_t rows[] = {1, 0};
  const int64_t offsets[] = {0, 1, 2}, order[] = {1, 0}, twice[] = {1, 1}, from[] = {0}, to[] = {2};
  cape_sparse_view w = CAPE_SPARSE_VIEW(values, rows, offsets, 2, 2, CAPE_COL_MAJOR);
  cape_sparse_view by_row = w, wide = w, bad = w;
  by_row.layout = CAPE_ROW_MAJOR;
  wide.n_rows = 3;
  bad.values = infinite;
  cape_dag* dag = NULL;
  /* A cycle, whose weaker edge goes; without signs weights have their own. */
  CHECK_OK(cape_dag_restore(&dag, &w, NULL, NULL, 0, NULL, NULL, 0, 0, NULL));
  CHECK(has_weight(dag, 0.5) && !has_weight(dag, -0.25));
  double sign[4];
  int64_t bytes = 0;
  char saved[4096];
  CHECK_OK(cape_dag_sign(sign, 2, 2, dag));
  CHECK(sign[1] == 1 && sign[2] == -1);
  CHECK_OK(cape_dag_save_size(&bytes, dag));
  CHECK(bytes <= (int64_t)sizeof saved);
  CHECK_OK(cape_dag_save(saved, bytes, dag));
  cape_dag_free(dag);
  CHECK_OK(cape_dag_load(&dag, saved, bytes));
  cape_dag_free(dag);
  CHECK_ERROR(cape_dag_restore(&dag, &w, &by_row, NULL, 0, NULL, NULL, 0, 0, NULL),
              CAPE_INVALID_ARGUMENT, "sign is compressed by rows");
  CHECK_ERROR(cape_dag_restore(&dag, &w, &w, NULL, 0, NULL, NULL, 0, 0, NULL),
              CAPE_INVALID_ARGUMENT, "sign has the value 0.5");
  CHECK_NULL(cape_dag_restore(NULL, &w, NULL, NULL, 0, NULL, NULL, 0, 0, NULL), "out");
  CHECK_NULL(cape_dag_restore(&dag, NULL, NULL, NULL, 0, NULL, NULL, 0, 0, NULL), "weights");
  CHECK_NULL(cape_dag_restore(&dag, &w, NULL, NULL, 2, NULL, NULL, 0, 0, NULL), "order");
  CHECK_NULL(cape_dag_restore(&dag, &w, NULL, NULL, 0, NULL, NULL, 1, 0, NULL), "from");
  CHECK_ERROR(cape_dag_restore(&dag, &wide, NULL, NULL, 0, NULL, NULL, 0, 0, NULL),
              CAPE_DIM_MISMATCH, "weights is 3 x 2");
  CHECK_ERROR(cape_dag_restore(&dag, &w, &wide, NULL, 0, NULL, NULL, 0, 0, NULL),
              CAPE_DIM_MISMATCH, "sign is 3 x 2");
  CHECK_ERROR(cape_dag_restore(&dag, &by_row, NULL, NULL, 0, NULL, NULL, 0, 0, NULL),
              CAPE_INVALID_ARGUMENT, "by rows");
  CHECK_ERROR(cape_dag_restore(&dag, &bad, NULL, NULL, 0, NULL, NULL, 0, 0, NULL),
              CAPE_INVALID_ARGUMENT, "weights");
  CHECK_ERROR(cape_dag_restore(&dag, &w, NULL, twice, 2, NULL, NULL, 0, 0, NULL),
              CAPE_INVALID_ARGUMENT, "order");
  CHECK_ERROR(cape_dag_restore(&dag, &w, NULL, order, 1, NULL, NULL, 0, 0, NULL),
              CAPE_INVALID_ARGUMENT, "order");
  CHECK_ERROR(cape_dag_restore(&dag, &w, NULL, order, 2, from, to, 1, 0, NULL),
              CAPE_INVALID_ARGUMENT, "required");
  CHECK_ERROR(cape_dag_restore(&dag, &w, NULL, order, 2, NULL, NULL, 0, NAN, NULL),
              CAPE_INVALID_ARGUMENT, "tau");
  CHECK(dag == NULL);
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
  CHECK_OK(cape_dag_prune(&pruned, dag, 100, NULL));
  CHECK(has_edge(pruned, N_COLS - 1, 0));
  cape_dag_free(pruned);
  made_again(dag, from, to, 1);
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

/* A level that differs between batches is not a cause; nor is it as a covariate. */
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
  double w[3][N_COLS * N_COLS], number[N_ROWS];
  for (int i = 0; i < N_ROWS; ++i) number[i] = (double)batch[i];
  const cape_matrix_view covariate = CAPE_MATRIX_VIEW(number, N_ROWS, 1);
  for (int k = 0; k < 3; ++k) {
    const cape_matrix_view table = CAPE_MATRIX_VIEW(k ? shifted : x, N_ROWS, N_COLS);
    cape_prior* prior = NULL;
    cape_dag* dag = NULL;
    CHECK_OK(cape_prior_new(&prior));
    if (k < 2) CHECK_OK(cape_prior_batches(prior, batch, N_ROWS));
    if (k == 2) CHECK_OK(cape_prior_covariates(prior, &covariate));
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
  for (int k = 1; k < 3; ++k)
    for (int i = 0; i < N_COLS * N_COLS; ++i) CHECK(fabs(w[0][i] - w[k][i]) < 1e-6);
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
  CHECK_NULL(cape_prior_leaves(prior, NULL, 1), "feature");
  CHECK_NULL(cape_prior_regulators(NULL, one, 1), "prior");
  CHECK_NULL(cape_prior_penalty(prior, NULL), "factor");
  CHECK_NULL(cape_prior_row_weights(prior, NULL, 1), "weight");
  CHECK_NULL(cape_prior_start(NULL, one, far, weight, 1), "prior");
  CHECK_NULL(cape_prior_start(prior, one, far, NULL, 1), "weight");
  CHECK_NULL(cape_prior_batches(NULL, one, 1), "prior");
  CHECK_NULL(cape_prior_covariates(NULL, &view), "prior");
  CHECK_NULL(cape_prior_covariates(prior, NULL), "values");
  CHECK_NULL(cape_prior_perturb(prior, one, NULL, 1), "feature");
  CHECK_STATUS(cape_prior_roots(prior, one, -1), CAPE_INVALID_ARGUMENT);
  CHECK_OK(cape_prior_roots(prior, NULL, 0));
  cape_prior* not_a_prior = (cape_prior*)options;
  CHECK_ERROR(cape_dag_learn_with(&dag, &view, not_a_prior, options), CAPE_BAD_STATE, "prior");
  CHECK(dag == NULL);
  CHECK_ERROR(cape_fit_with(&result, &view, not_a_prior, options), CAPE_BAD_STATE, "prior");
  CHECK(result == NULL);

  CHECK_OK(cape_prior_row_weights(prior, weight, 1));
  CHECK_ERROR(cape_dag_learn_with(&dag, &view, prior, options), CAPE_DIM_MISMATCH,
              "weight has 1 values");
  CHECK_OK(cape_prior_row_weights(prior, NULL, 0));
  CHECK_OK(cape_prior_start(prior, one, far, weight, 1));
  CHECK_ERROR(cape_dag_learn_with(&dag, &view, prior, options), CAPE_INVALID_ARGUMENT,
              "start has the number");
  CHECK_OK(cape_prior_require(prior, one, far, 1));
  CHECK_ERROR(cape_dag_learn_with(&dag, &view, prior, options), CAPE_INVALID_ARGUMENT,
              "required has the number");
  cape_prior_free(prior);
}

/* Feature 0 is aimed at in the first half of the rows, keeps its values, and moves the last one. */
static void targets_have_effects(void) {
  static double y[N_ROWS * N_COLS];
  memcpy(y, x, sizeof y);
  int64_t row[N_ROWS / 2], feature[N_ROWS / 2] = {0}, bad = N_COLS;
  for (int i = 0; i < N_ROWS / 2; ++i) {
    row[i] = i;
    y[i + (N_COLS - 1) * N_ROWS] += 50;
  }
  const cape_matrix_view moved = CAPE_MATRIX_VIEW(y, N_ROWS, N_COLS);
  cape_prior* prior = NULL;
  cape_dag* dag = NULL;
  CHECK_OK(cape_prior_new(&prior));
  CHECK_OK(cape_prior_target(prior, row, feature, N_ROWS / 2));
  CHECK_OK(cape_dag_learn_with(&dag, &moved, prior, options));
  CHECK(has_edge(dag, 0, N_COLS - 1));
  cape_dag_info info = {.struct_size = sizeof info};
  CHECK_OK(cape_dag_describe(&info, dag));
  CHECK(info.n_nodes == N_COLS && info.acyclic);
  CHECK(info.rising_variance > 0 && info.rising_variance <= 1 && info.rising_variance_sd > 0);
  cape_dag_free(dag);
  CHECK_OK(cape_prior_target(prior, row, &bad, 1));
  CHECK_ERROR(cape_dag_learn_with(&dag, &moved, prior, options), CAPE_INVALID_ARGUMENT, "targeted");
  CHECK_ERROR(cape_prior_target(NULL, row, feature, 1), CAPE_INVALID_ARGUMENT, "prior");
  cape_prior_free(prior);
}

int main(void) {
  fill_chain(x);
  const cape_matrix_view v = CAPE_MATRIX_VIEW(x, N_ROWS, N_COLS);
  view = v;
  options = quick_options();
  knowledge_holds();
  bad_remains();
  null_says_nothing();
  sets_of_columns_hold();
  rows_are_known();
  targets_have_effects();
  errors_are_named();
  cape_options_free(options);
  return n_failed != 0;
}
