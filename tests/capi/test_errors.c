/* Whatever is wrong with a call, it says so by its status and a message that names the argument;
 * handles become NULL, numbers 0, and buffers stay as they were. */
#include "check.h"

static double x[N_ROWS * N_COLS];
static cape_matrix_view view;
static cape_options* options;
static cape_result* result;
static const cape_dag* dag;
static const cape_embedding* embedding;
static cape_table* table;

static void set_up(void) {
  fill_chain(x);
  const cape_matrix_view v = CAPE_MATRIX_VIEW(x, N_ROWS, N_COLS);
  view = v;
  options = quick_options();
  CHECK_OK(cape_fit(&result, &view, options));
  CHECK_OK(cape_result_dag(&dag, result));
  CHECK_OK(cape_result_embedding(&embedding, result));

  double counts[N_ROWS * N_COLS];
  for (int i = 0; i < N_ROWS * N_COLS; ++i) counts[i] = i % 5;
  const cape_matrix_view c = CAPE_MATRIX_VIEW(counts, N_ROWS, N_COLS);
  CHECK_OK(cape_options_set_i64(options, "preprocess.min_features", 1));
  CHECK_OK(cape_preprocess(&table, &c, options));
}

static void tear_down(void) {
  cape_table_free(table);
  cape_result_free(result);
  cape_options_free(options);
}

static void null_options(void) {
  double f;
  int64_t i;
  int b;
  const char* s;
  cape_options* o;
  cape_option_desc d = {.struct_size = sizeof d};
  CHECK_NULL(cape_options_new(NULL), "out");
  CHECK_NULL(cape_options_clone(NULL, options), "out");
  CHECK_NULL(cape_options_clone(&o, NULL), "options");
  CHECK(o == NULL);
  CHECK_NULL(cape_options_set_f64(NULL, "dag.lambda", 1), "options");
  CHECK_NULL(cape_options_set_f64(options, NULL, 1), "key");
  CHECK_NULL(cape_options_set_i64(NULL, "dag.epochs", 1), "options");
  CHECK_NULL(cape_options_set_i64(options, NULL, 1), "key");
  CHECK_NULL(cape_options_set_bool(NULL, "dag.standardize", 1), "options");
  CHECK_NULL(cape_options_set_bool(options, NULL, 1), "key");
  CHECK_NULL(cape_options_set_str(NULL, "dag.sem", "mlp"), "options");
  CHECK_NULL(cape_options_set_str(options, NULL, "mlp"), "key");
  CHECK_NULL(cape_options_set_str(options, "dag.sem", NULL), "value");
  CHECK_NULL(cape_options_set_text(NULL, "dag.sem", "mlp"), "options");
  CHECK_NULL(cape_options_set_text(options, NULL, "mlp"), "key");
  CHECK_NULL(cape_options_set_text(options, "dag.sem", NULL), "value");
  CHECK_NULL(cape_options_get_f64(NULL, options, "dag.lambda"), "out");
  CHECK_NULL(cape_options_get_f64(&f, NULL, "dag.lambda"), "options");
  CHECK_NULL(cape_options_get_f64(&f, options, NULL), "key");
  CHECK_NULL(cape_options_get_i64(NULL, options, "dag.epochs"), "out");
  CHECK_NULL(cape_options_get_i64(&i, NULL, "dag.epochs"), "options");
  CHECK_NULL(cape_options_get_i64(&i, options, NULL), "key");
  CHECK_NULL(cape_options_get_bool(NULL, options, "dag.standardize"), "out");
  CHECK_NULL(cape_options_get_bool(&b, NULL, "dag.standardize"), "options");
  CHECK_NULL(cape_options_get_bool(&b, options, NULL), "key");
  CHECK_NULL(cape_options_get_str(NULL, options, "dag.sem"), "out");
  CHECK_NULL(cape_options_get_str(&s, NULL, "dag.sem"), "options");
  CHECK_NULL(cape_options_get_str(&s, options, NULL), "key");
  CHECK(f == 0 && i == 0 && b == 0 && s == NULL);
  CHECK_NULL(cape_option_info(NULL, 0), "out");
  CHECK_ERROR(cape_option_info(&d, cape_option_count()), CAPE_INVALID_ARGUMENT, "index");
  CHECK_NULL(cape_options_set_progress(NULL, NULL, NULL), "options");
}

static void null_table(void) {
  cape_table* t;
  int64_t n, m, cols[N_COLS];
  double values[N_ROWS * N_COLS];
  const cape_sparse_view empty = {.struct_size = sizeof empty};
  CHECK_NULL(cape_preprocess(NULL, &view, options), "out");
  CHECK_NULL(cape_preprocess(&t, NULL, options), "counts");
  CHECK(t == NULL);
  CHECK_NULL(cape_preprocess(&t, &view, NULL), "options");
  CHECK_NULL(cape_preprocess_sparse(NULL, &empty, options), "out");
  CHECK_NULL(cape_preprocess_sparse(&t, NULL, options), "counts");
  CHECK_NULL(cape_preprocess_sparse(&t, &empty, NULL), "options");
  CHECK_OK(cape_table_size(&n, &m, table));
  CHECK(n > 0 && m == N_COLS);
  CHECK_NULL(cape_table_size(NULL, &m, table), "n_rows_out");
  CHECK(m == 0);
  CHECK_NULL(cape_table_size(&n, NULL, table), "n_cols_out");
  CHECK_NULL(cape_table_size(&n, &m, NULL), "table");
  CHECK(n == 0 && m == 0);
  CHECK_OK(cape_table_size(&n, &m, table));
  CHECK_NULL(cape_table_values(NULL, n, m, table), "out");
  CHECK_NULL(cape_table_values(values, n, m, NULL), "table");
  CHECK_NULL(cape_table_rows(NULL, n, table), "out");
  CHECK_NULL(cape_table_rows(cols, n, NULL), "table");
  CHECK_NULL(cape_table_cols(NULL, m, table), "out");
  CHECK_NULL(cape_table_cols(cols, m, NULL), "table");
  CHECK_NULL(cape_most_variable(NULL, 1, &view), "out");
  CHECK_NULL(cape_most_variable(cols, 1, NULL), "x");
  CHECK_NULL(cape_most_variable_sparse(cols, 1, NULL), "x");
}

static void null_dag(void) {
  cape_dag* d;
  double out[N_COLS * N_COLS], h;
  int64_t index[N_COLS * N_COLS];
  const int64_t from[] = {0}, to[] = {1};
  const double weight[] = {1};
  const char* s;
  cape_dag_info info = {.struct_size = sizeof info};
  const double square[] = {0, 0, 1, 0};
  const cape_matrix_view a = CAPE_MATRIX_VIEW(square, 2, 2);
  CHECK_NULL(cape_dag_learn(NULL, &view, options), "out");
  CHECK_NULL(cape_dag_learn(&d, NULL, options), "x");
  CHECK_NULL(cape_dag_learn(&d, &view, NULL), "options");
  CHECK_NULL(cape_dag_from_adjacency(NULL, &a), "out");
  CHECK_NULL(cape_dag_from_adjacency(&d, NULL), "adjacency");
  CHECK_NULL(cape_dag_from_edges(NULL, 2, from, to, weight, 1), "out");
  CHECK_NULL(cape_dag_from_edges(&d, 2, NULL, to, weight, 1), "from");
  CHECK_NULL(cape_dag_from_edges(&d, 2, from, NULL, weight, 1), "to");
  CHECK_NULL(cape_dag_from_edges(&d, 2, from, to, NULL, 1), "weight");
  CHECK_NULL(cape_dag_prune(NULL, dag, 0.2, NULL), "out");
  CHECK_NULL(cape_dag_prune(&d, NULL, 0.2, NULL), "dag");
  CHECK(d == NULL);
  cape_threshold_suggestion suggestion = {.struct_size = sizeof suggestion};
  CHECK_NULL(cape_dag_suggest_threshold(NULL, dag, &view, options), "out");
  CHECK_NULL(cape_dag_suggest_threshold(&suggestion, NULL, &view, options), "dag");
  CHECK_NULL(cape_dag_suggest_threshold(&suggestion, dag, NULL, options), "x");
  CHECK_NULL(cape_dag_suggest_threshold(&suggestion, dag, &view, NULL), "options");
  CHECK_NULL(cape_dag_suggestion(NULL, dag), "out");
  CHECK_NULL(cape_dag_suggestion(&suggestion, NULL), "dag");
  CHECK_NULL(cape_dag_describe(NULL, dag), "out");
  CHECK_NULL(cape_dag_describe(&info, NULL), "dag");
  CHECK_NULL(cape_dag_warning(NULL, dag, 0), "out");
  CHECK_NULL(cape_dag_warning(&s, NULL, 0), "dag");
  CHECK_ERROR(cape_dag_warning(&s, dag, -1), CAPE_INVALID_ARGUMENT, "index");
  CHECK(s == NULL);
  CHECK_NULL(cape_dag_edges(index, index, out, 16, NULL), "dag");
  CHECK_OK(cape_dag_from_edges(&d, 2, from, to, weight, 1));
  CHECK_NULL(cape_dag_edges(NULL, index, out, 16, d), "from_out");
  CHECK_NULL(cape_dag_edges(index, NULL, out, 16, d), "to_out");
  CHECK_NULL(cape_dag_edges(index, index, NULL, 16, d), "weight_out");
  cape_dag_free(d);
  CHECK_NULL(cape_dag_adjacency(NULL, N_COLS, N_COLS, dag), "out");
  CHECK_NULL(cape_dag_adjacency(out, N_COLS, N_COLS, NULL), "dag");
  CHECK_NULL(cape_dag_weights(NULL, N_COLS, N_COLS, dag), "out");
  CHECK_NULL(cape_dag_weights(out, N_COLS, N_COLS, NULL), "dag");
  CHECK_NULL(cape_dag_sign(NULL, N_COLS, N_COLS, dag), "out");
  CHECK_NULL(cape_dag_sign(out, N_COLS, N_COLS, NULL), "dag");
  CHECK_NULL(cape_dag_statistic(out, N_COLS, N_COLS, NULL), "dag");
  cape_sparse_view lent = {.struct_size = sizeof lent};
  CHECK_NULL(cape_dag_weights_view(NULL, dag), "out");
  CHECK_NULL(cape_dag_weights_view(&lent, NULL), "dag");
  CHECK_NULL(cape_dag_sign_view(NULL, dag), "out");
  CHECK_NULL(cape_dag_sign_view(&lent, NULL), "dag");
  CHECK_NULL(cape_dag_statistic_view(&lent, NULL), "dag");
  CHECK_NULL(cape_dag_partners(NULL, N_COLS, N_COLS, dag), "out");
  CHECK_NULL(cape_dag_partners(out, N_COLS, N_COLS, NULL), "dag");
  CHECK_NULL(cape_dag_partners_view(NULL, dag), "out");
  CHECK_NULL(cape_dag_partners_view(&lent, NULL), "dag");
  CHECK_NULL(cape_dag_order(NULL, N_COLS, dag), "out");
  CHECK_NULL(cape_dag_order(index, N_COLS, NULL), "dag");
  CHECK_NULL(cape_dag_history(NULL, 5, 7, dag), "out");
  CHECK_NULL(cape_dag_history(out, 5, 7, NULL), "dag");
  CHECK_NULL(cape_dag_scaling(NULL, out, N_COLS, dag), "center_out");
  CHECK_NULL(cape_dag_scaling(out, NULL, N_COLS, dag), "scale_out");
  CHECK_NULL(cape_dag_scaling(out, out, N_COLS, NULL), "dag");
  CHECK_NULL(cape_dag_constant(index, 0, NULL), "dag");
  CHECK_NULL(cape_acyclicity(NULL, NULL, 0, 0, &a, "expm"), "h_out");
  CHECK_NULL(cape_acyclicity(&h, NULL, 0, 0, NULL, "expm"), "a");
  CHECK_NULL(cape_acyclicity(&h, NULL, 0, 0, &a, NULL), "constraint");
  CHECK_NULL(cape_pagerank(NULL, N_COLS, dag, 0.15), "out");
  CHECK_NULL(cape_pagerank(out, N_COLS, NULL, 0.15), "dag");
  CHECK_NULL(cape_path_strengths(NULL, N_COLS, N_COLS, dag), "out");
  CHECK_NULL(cape_path_strengths(out, N_COLS, N_COLS, NULL), "dag");
}

static void null_embedding(void) {
  cape_embedding* e;
  double out[64];
  const double origin[] = {1, 0}, ball[] = {0.5};
  const cape_matrix_view p = CAPE_MATRIX_VIEW(origin, 1, 2), b = CAPE_MATRIX_VIEW(ball, 1, 1);
  cape_embedding_info info = {.struct_size = sizeof info};
  CHECK_NULL(cape_embedding_fit(NULL, dag, options), "out");
  CHECK_NULL(cape_embedding_fit(&e, NULL, options), "dag");
  CHECK_NULL(cape_embedding_fit(&e, dag, NULL), "options");

  CHECK(e == NULL);
  CHECK_NULL(cape_embedding_describe(NULL, embedding), "out");
  CHECK_NULL(cape_embedding_describe(&info, NULL), "embedding");
  const char* s = NULL;
  CHECK_NULL(cape_embedding_warning(NULL, embedding, 0), "out");
  CHECK_NULL(cape_embedding_warning(&s, NULL, 0), "embedding");
  CHECK_ERROR(cape_embedding_warning(&s, embedding, -1), CAPE_INVALID_ARGUMENT, "index");
  CHECK_NULL(cape_embedding_hyperboloid(NULL, N_COLS, 5, embedding), "out");
  CHECK_NULL(cape_embedding_hyperboloid(out, N_COLS, 5, NULL), "embedding");
  CHECK_NULL(cape_embedding_poincare(NULL, N_COLS, 4, embedding), "out");
  CHECK_NULL(cape_embedding_poincare(out, N_COLS, 4, NULL), "embedding");
  CHECK_NULL(cape_embedding_nodes(out, out, out, N_COLS, NULL), "embedding");
  CHECK_NULL(cape_embedding_history(NULL, 20, 5, embedding), "out");
  CHECK_NULL(cape_embedding_history(out, 20, 5, NULL), "embedding");
  CHECK_NULL(cape_lorentz_distances(NULL, 1, 1, &p, &p), "out");
  CHECK_NULL(cape_lorentz_distances(out, 1, 1, NULL, &p), "a");
  CHECK_NULL(cape_lorentz_distances(out, 1, 1, &p, NULL), "b");
  CHECK_NULL(cape_lorentz_exp(out, 1, 2, NULL, &p), "p");
  CHECK_NULL(cape_lorentz_exp(out, 1, 2, &p, NULL), "v");
  CHECK_NULL(cape_lorentz_log(NULL, 1, 2, &p, &p), "out");
  CHECK_NULL(cape_lorentz_log(out, 1, 2, NULL, &p), "p");
  CHECK_NULL(cape_lorentz_log(out, 1, 2, &p, NULL), "q");
  CHECK_NULL(cape_lorentz_project_tangent(NULL, 1, 2, &p, &p), "out");
  CHECK_NULL(cape_lorentz_project_tangent(out, 1, 2, NULL, &p), "p");
  CHECK_NULL(cape_lorentz_project_tangent(out, 1, 2, &p, NULL), "u");
  CHECK_NULL(cape_lorentz_transport(out, 1, 2, NULL, &p, &p), "p");
  CHECK_NULL(cape_lorentz_transport(out, 1, 2, &p, NULL, &p), "q");
  CHECK_NULL(cape_lorentz_transport(out, 1, 2, &p, &p, NULL), "v");
  CHECK_NULL(cape_lorentz_to_poincare(NULL, 1, 1, &p), "out");
  CHECK_NULL(cape_lorentz_to_poincare(out, 1, 1, NULL), "p");
  CHECK_NULL(cape_poincare_to_lorentz(NULL, 1, 2, &b), "out");
  CHECK_NULL(cape_poincare_to_lorentz(out, 1, 2, NULL), "e");
  CHECK_NULL(cape_poincare_distances(NULL, 1, 1, &b, &b), "out");
  CHECK_NULL(cape_poincare_distances(out, 1, 1, NULL, &b), "a");
  CHECK_NULL(cape_poincare_distances(out, 1, 1, &b, NULL), "b");
}

static void null_rotary_and_attention(void) {
  double out[64] = {0}, lse[4] = {0};
  float out_f32[4] = {0}, lse_f32[4] = {0};
  const double v[] = {1, 2}, angle[] = {0.5};
  const float v_f32[] = {1, 2};
  const cape_matrix_view m = CAPE_MATRIX_VIEW(v, 1, 2), phi = CAPE_MATRIX_VIEW(angle, 1, 1);
  const cape_attention_shape shape = CAPE_ATTENTION_SHAPE(1, 1, 1, 1, 2);
  CHECK_NULL(cape_rotary_angles(NULL, N_COLS, 4, embedding, 1), "out");
  CHECK_NULL(cape_rotary_angles(out, N_COLS, 4, NULL, 1), "embedding");
  CHECK_NULL(cape_rotate(NULL, 1, 2, &m, &phi), "out");
  CHECK_NULL(cape_rotate(out, 1, 2, NULL, &phi), "v");
  CHECK_NULL(cape_rotate(out, 1, 2, &m, NULL), "angles");
  CHECK_NULL(cape_rotate_back(NULL, 1, 2, &m, &phi), "out");
  CHECK_NULL(cape_rotate_back(out, 1, 2, NULL, &phi), "v");
  CHECK_NULL(cape_rotate_back(out, 1, 2, &m, NULL), "angles");
  CHECK_NULL(cape_rotate_angle_gradient(NULL, 1, 1, &m, &phi, &m), "out");
  CHECK_NULL(cape_rotate_angle_gradient(out, 1, 1, NULL, &phi, &m), "v");
  CHECK_NULL(cape_rotate_angle_gradient(out, 1, 1, &m, NULL, &m), "angles");
  CHECK_NULL(cape_rotate_angle_gradient(out, 1, 1, &m, &phi, NULL), "d_rotated");
  CHECK_NULL(cape_rotary_scores(out, NULL, NULL, 1, NULL, &m, &phi, &phi), "q");
  CHECK_NULL(cape_rotary_scores(out, NULL, NULL, 1, &m, NULL, &phi, &phi), "k");
  CHECK_NULL(cape_rotary_scores(out, NULL, NULL, 1, &m, &m, NULL, &phi), "phi_m");
  CHECK_NULL(cape_rotary_scores(out, NULL, NULL, 1, &m, &m, &phi, NULL), "phi_n");
  CHECK_NULL(cape_score_envelopes(out, NULL, 1, NULL, &m), "q");
  CHECK_NULL(cape_score_envelopes(out, NULL, 1, &m, NULL), "k");
  CHECK_NULL(cape_envelope_at(out, NULL, NULL, NULL, 1, 1, 1, 1, NULL, out, out, 0.5), "distance");
  CHECK_NULL(cape_envelope_at(out, NULL, NULL, NULL, 1, 1, 1, 1, out, NULL, out, 0.5), "norm_m");
  CHECK_NULL(cape_envelope_at(out, NULL, NULL, NULL, 1, 1, 1, 1, out, out, NULL, 0.5), "norm_n");
  CHECK_NULL(cape_expected_scores(NULL, 1, &m, &m, &phi, &phi, &phi, &phi), "out");
  CHECK_NULL(cape_expected_scores(out, 1, NULL, &m, &phi, &phi, &phi, &phi), "q");
  CHECK_NULL(cape_expected_scores(out, 1, &m, &m, &phi, &phi, &phi, NULL), "sd_n");
  CHECK_NULL(cape_expected_margin(NULL, &m, v, v, 1), "out");
  CHECK_NULL(cape_expected_margin(out, NULL, v, v, 1), "covariance");
  CHECK_NULL(cape_expected_margin(out, &m, NULL, v, 1), "phi_m");
  CHECK_NULL(cape_approximation_accuracy(NULL, 0, 0), "out");
  CHECK_NULL(cape_average_bias(NULL, 1, &m, &m, v, v, 1, 0, 1, options), "out");
  CHECK_NULL(cape_average_bias(out, 1, NULL, &m, v, v, 1, 0, 1, options), "q");
  CHECK_NULL(cape_average_bias(out, 1, &m, &m, NULL, v, 1, 0, 1, options), "phi_m");
  CHECK_NULL(cape_average_bias(out, 1, &m, &m, v, v, 1, 0, 1, NULL), "options");
  CHECK_NULL(cape_mean_square_product(NULL, &m, &m), "out");
  CHECK_NULL(cape_mean_square_product(out, NULL, &m), "q");
  CHECK_NULL(cape_hoeffding_bound(NULL, 1, 1, 1), "out");
  CHECK_OK(cape_attention(out, lse, &shape, v, v, v, NULL, NULL, NULL, NULL));
  CHECK_NULL(cape_attention(NULL, NULL, &shape, v, v, v, NULL, NULL, NULL, NULL), "out");
  CHECK_NULL(cape_attention(out, NULL, NULL, v, v, v, NULL, NULL, NULL, NULL), "shape");
  CHECK_NULL(cape_attention(out, NULL, &shape, NULL, v, v, NULL, NULL, NULL, NULL), "q");
  CHECK_NULL(cape_attention(out, NULL, &shape, v, NULL, v, NULL, NULL, NULL, NULL), "k");
  CHECK_NULL(cape_attention(out, NULL, &shape, v, v, NULL, NULL, NULL, NULL, NULL), "v");
  CHECK_NULL(cape_attention(out, NULL, &shape, v, v, v, angle, NULL, NULL, NULL), "k_angles");
  CHECK_NULL(cape_attention(out, NULL, &shape, v, v, v, NULL, angle, NULL, NULL), "q_angles");
  CHECK_NULL(cape_attention_f32(NULL, NULL, &shape, v_f32, v_f32, v_f32, NULL, NULL, NULL, NULL),
             "out");
  CHECK_NULL(cape_attention_f32(out_f32, NULL, NULL, v_f32, v_f32, v_f32, NULL, NULL, NULL, NULL),
             "shape");
  CHECK_OK(cape_attention_backward(NULL, NULL, NULL, NULL, NULL, &shape, v, v, v, NULL, NULL, NULL,
                                   out, lse, v, NULL));
  CHECK_NULL(cape_attention_backward(out, NULL, NULL, NULL, NULL, NULL, v, v, v, NULL, NULL, NULL,
                                     out, lse, v, NULL),
             "shape");
  CHECK_NULL(cape_attention_backward(out, NULL, NULL, NULL, NULL, &shape, v, v, v, NULL, NULL, NULL,
                                     NULL, lse, v, NULL),
             "out");
  CHECK_NULL(cape_attention_backward(out, NULL, NULL, NULL, NULL, &shape, v, v, v, NULL, NULL, NULL,
                                     out, NULL, v, NULL),
             "log_sum_exp");
  CHECK_NULL(cape_attention_backward(out, NULL, NULL, NULL, NULL, &shape, v, v, v, NULL, NULL, NULL,
                                     out, lse, NULL, NULL),
             "d_out");
  CHECK_NULL(cape_attention_backward_f32(out_f32, NULL, NULL, NULL, NULL, NULL, v_f32, v_f32, v_f32,
                                         NULL, NULL, NULL, out_f32, lse_f32, v_f32, NULL),
             "shape");
  CHECK_NULL(cape_attention_scores(NULL, &shape, v, v, NULL, NULL, NULL, NULL), "scores");
  CHECK_NULL(cape_attention_scores(out, NULL, v, v, NULL, NULL, NULL, NULL), "shape");
  CHECK_NULL(cape_attention_scores(out, &shape, NULL, v, NULL, NULL, NULL, NULL), "q");
  CHECK_NULL(cape_attention_scores(out, &shape, v, NULL, NULL, NULL, NULL, NULL), "k");
}

static void null_rest(void) {
  cape_result* r;
  cape_dag* d;
  const cape_dag* borrowed_dag;
  const cape_embedding* borrowed_embedding;
  double out[N_ROWS * N_COLS], other;
  const int64_t labels[] = {0, 1};
  const double two[] = {0, 1};
  const cape_matrix_view points = CAPE_MATRIX_VIEW(two, 2, 1);
  const double scores[N_COLS * N_COLS] = {0};
  const cape_matrix_view s = CAPE_MATRIX_VIEW(scores, N_COLS, N_COLS);
  cape_graph_metrics metrics = {.struct_size = sizeof metrics};
  CHECK_NULL(cape_fit(NULL, &view, options), "out");
  CHECK_NULL(cape_fit(&r, NULL, options), "x");
  CHECK_NULL(cape_fit(&r, &view, NULL), "options");
  CHECK(r == NULL);
  CHECK_NULL(cape_result_dag(NULL, result), "out");
  CHECK_NULL(cape_result_dag(&borrowed_dag, NULL), "result");
  CHECK_NULL(cape_result_embedding(NULL, result), "out");
  CHECK_NULL(cape_result_embedding(&borrowed_embedding, NULL), "result");
  CHECK(borrowed_dag == NULL && borrowed_embedding == NULL);
  CHECK_NULL(cape_result_angles(NULL, N_COLS, 4, result), "out");
  CHECK_NULL(cape_result_angles(out, N_COLS, 4, NULL), "result");
  CHECK_NULL(cape_estimate(NULL, &other, 10, 10, options), "bytes_out");
  CHECK_NULL(cape_estimate(&other, NULL, 10, 10, options), "seconds_out");
  CHECK_NULL(cape_estimate(out, &other, 10, 10, NULL), "options");
  CHECK_NULL(cape_simulate_dag(NULL, 5, options), "out");
  CHECK_NULL(cape_simulate_dag(&d, 5, NULL), "options");
  CHECK_NULL(cape_simulate_data(NULL, N_ROWS, N_COLS, dag, options), "out");
  CHECK_NULL(cape_simulate_data(out, N_ROWS, N_COLS, NULL, options), "dag");
  CHECK_NULL(cape_simulate_data(out, N_ROWS, N_COLS, dag, NULL), "options");
  CHECK_NULL(cape_simulate_counts(NULL, N_ROWS, N_COLS, &view, 1, 0.1, options), "out");
  CHECK_NULL(cape_simulate_counts(out, N_ROWS, N_COLS, NULL, 1, 0.1, options), "x");
  CHECK_NULL(cape_simulate_counts(out, N_ROWS, N_COLS, &view, 1, 0.1, NULL), "options");
  CHECK_NULL(cape_compare_graphs(NULL, dag, dag), "out");
  CHECK_NULL(cape_compare_graphs(&metrics, NULL, dag), "estimated");
  CHECK_NULL(cape_compare_graphs(&metrics, dag, NULL), "truth");
  CHECK_NULL(cape_compare_embedding(NULL, NULL, NULL, NULL, NULL, NULL, &s, out, 1, NULL), "graph");
  CHECK_NULL(cape_compare_embedding(NULL, NULL, NULL, NULL, NULL, dag, NULL, out, N_COLS, NULL),
             "distances");
  CHECK_NULL(cape_compare_scores(NULL, &other, &s, dag, NULL), "auprc_out");
  CHECK_NULL(cape_compare_scores(&other, NULL, &s, dag, NULL), "auroc_out");
  CHECK_NULL(cape_compare_scores(out, &other, NULL, dag, NULL), "scores");
  CHECK_NULL(cape_compare_scores(out, &other, &s, NULL, NULL), "truth");
  CHECK_NULL(cape_compare_labels(NULL, &other, labels, labels, 2), "ari_out");
  CHECK_NULL(cape_compare_labels(&other, NULL, labels, labels, 2), "nmi_out");
  CHECK_NULL(cape_compare_labels(out, &other, NULL, labels, 2), "a");
  CHECK_NULL(cape_compare_labels(out, &other, labels, NULL, 2), "b");
  CHECK_NULL(cape_silhouette(NULL, &points, labels, 2, NULL), "out");
  CHECK_NULL(cape_silhouette(&other, NULL, labels, 2, NULL), "x");
  CHECK_NULL(cape_silhouette(&other, &points, NULL, 2, NULL), "labels");
}

/* Values that are out of range, of another type, or not known; the option keeps its value. */
static void bad_options(void) {
  double before = 0, after = 0;
  int64_t dims = 0;
  CHECK_OK(cape_options_get_f64(&before, options, "dag.lambda"));
  CHECK_ERROR(cape_options_set_f64(options, "dag.lambda", -1), CAPE_INVALID_ARGUMENT, "dag.lambda");
  CHECK_ERROR(cape_options_set_f64(options, "dag.lambda", INFINITY), CAPE_INVALID_ARGUMENT,
              "dag.lambda");
  CHECK_OK(cape_options_get_f64(&after, options, "dag.lambda"));
  CHECK(memcmp(&before, &after, sizeof before) == 0);
  CHECK_ERROR(cape_options_set_f64(options, "dag.l2", NAN), CAPE_INVALID_ARGUMENT,
              "dag.l2"); /* not one of those with an automatic choice */
  CHECK_ERROR(cape_options_set_f64(options, "dag.lamda", 1), CAPE_INVALID_ARGUMENT, "dag.lambda");
  CHECK_ERROR(cape_options_set_f64(options, "lambda", 1), CAPE_INVALID_ARGUMENT, "dag.");
  CHECK_ERROR(cape_options_set_f64(options, "", 1), CAPE_INVALID_ARGUMENT, "dag.");
  CHECK_ERROR(cape_options_set_f64(options, "dag.epochs", 1), CAPE_INVALID_ARGUMENT, "integer");
  CHECK_ERROR(cape_options_set_i64(options, "dag.lambda", 1), CAPE_INVALID_ARGUMENT, "double");
  CHECK_ERROR(cape_options_set_i64(options, "embed.dims", 0), CAPE_INVALID_ARGUMENT, "embed.dims");
  CHECK_ERROR(cape_options_set_i64(options, "embed.dims", INT64_MAX), CAPE_INVALID_ARGUMENT,
              "embed.dims");
  CHECK_ERROR(cape_options_set_i64(options, "run.threads", 0), CAPE_INVALID_ARGUMENT,
              "run.threads");
  CHECK_ERROR(cape_options_set_i64(options, "run.seed", -1), CAPE_INVALID_ARGUMENT, "run.seed");
  CHECK_ERROR(cape_options_set_bool(options, "dag.sem", 1), CAPE_INVALID_ARGUMENT, "choice");
  CHECK_ERROR(cape_options_set_str(options, "dag.sem", "tree"), CAPE_INVALID_ARGUMENT, "linear");
  CHECK_ERROR(cape_options_set_str(options, "embed.dims", "7"), CAPE_INVALID_ARGUMENT, "integer");
  CHECK_ERROR(cape_options_set_text(options, "embed.dims", "7.5"), CAPE_INVALID_ARGUMENT, "7.5");
  CHECK_ERROR(cape_options_set_text(options, "embed.dims", ""), CAPE_INVALID_ARGUMENT,
              "embed.dims");
  CHECK_ERROR(cape_options_set_text(options, "dag.lambda", "0.1 "), CAPE_INVALID_ARGUMENT, "0.1 ");
  CHECK_ERROR(cape_options_set_text(options, "dag.standardize", "1"), CAPE_INVALID_ARGUMENT,
              "true or false");
  CHECK_OK(cape_options_get_i64(&dims, options, "embed.dims"));
  CHECK(dims == 4);
}

static void bad_tables(void) {
  cape_dag* d = (cape_dag*)&view;
  double y[N_ROWS * N_COLS];
  memcpy(y, x, sizeof y);
  cape_matrix_view v = CAPE_MATRIX_VIEW(y, N_ROWS, N_COLS);

  y[N_ROWS + 2] = NAN;
  CHECK_ERROR(cape_dag_learn(&d, &v, options), CAPE_INVALID_ARGUMENT, "row 2, column 1");
  CHECK(d == NULL);
  y[N_ROWS + 2] = -INFINITY;
  CHECK_ERROR(cape_dag_learn(&d, &v, options), CAPE_INVALID_ARGUMENT, "Inf");
  memcpy(y, x, sizeof y);

  /* A rank that the model or the table does not have. */
  CHECK_OK(cape_options_set_i64(options, "dag.rank", N_COLS + 1));
  CHECK_ERROR(cape_dag_learn(&d, &v, options), CAPE_INVALID_ARGUMENT, "at most");
  CHECK_OK(cape_options_set_i64(options, "dag.rank", 1));
  CHECK_ERROR(cape_dag_learn(&d, &v, options), CAPE_INVALID_ARGUMENT, "dag.sem linear");
  CHECK_OK(cape_options_set_i64(options, "dag.rank", 0));

  v.n_rows = 9; /* too few observations, none, one column */
  CHECK_ERROR(cape_dag_learn(&d, &v, options), CAPE_INVALID_ARGUMENT, "9");
  v.n_rows = 0;
  CHECK_STATUS(cape_dag_learn(&d, &v, options), CAPE_INVALID_ARGUMENT);
  v.n_rows = N_ROWS;
  v.n_cols = 0;
  CHECK_STATUS(cape_dag_learn(&d, &v, options), CAPE_INVALID_ARGUMENT);
  v.n_cols = -1;
  CHECK_ERROR(cape_dag_learn(&d, &v, options), CAPE_INVALID_ARGUMENT, "-1");
  v.n_cols = N_COLS;
  v.ld = N_ROWS - 1;
  CHECK_ERROR(cape_dag_learn(&d, &v, options), CAPE_DIM_MISMATCH, "ld");
  v.ld = N_ROWS;
  v.layout = 7;
  CHECK_ERROR(cape_dag_learn(&d, &v, options), CAPE_INVALID_ARGUMENT, "layout");

  for (int i = 0; i < N_ROWS * N_COLS; ++i) y[i] = 3; /* nothing varies */
  v.layout = CAPE_COL_MAJOR;
  CHECK_STATUS(cape_dag_learn(&d, &v, options), CAPE_INVALID_ARGUMENT);
}

/* More than 2^31 rows, products beyond 2^63: an error before anything is allocated or read. */
static void huge_sizes(void) {
  cape_dag* d;
  cape_table* t;
  double bytes, seconds;
  cape_matrix_view v = CAPE_MATRIX_VIEW(NULL, 3000000000, 2);
  const cape_matrix_view v2 = CAPE_MATRIX_VIEW(x, 1, 2);
  CHECK_ERROR(cape_dag_learn(&d, &v, options), CAPE_INVALID_ARGUMENT, "data is null");
  CHECK_ERROR(cape_preprocess(&t, &v, options), CAPE_INVALID_ARGUMENT, "data is null");
  v.n_cols = v.ld = 3000000000;
  CHECK_STATUS(cape_dag_learn(&d, &v, options), CAPE_INVALID_ARGUMENT);
  v.data = x;
  v.n_rows = v.n_cols = v.ld = INT64_MAX;
  CHECK_ERROR(cape_dag_learn(&d, &v, options), CAPE_INVALID_ARGUMENT, "2^57");
  CHECK_STATUS(cape_estimate(&bytes, &seconds, INT64_MAX, INT64_MAX, options),
               CAPE_INVALID_ARGUMENT);
  CHECK_STATUS(cape_estimate(&bytes, &seconds, -1, 3, options), CAPE_INVALID_ARGUMENT);
  const int64_t node = 0;
  const double weight = 1;
  CHECK_ERROR(cape_dag_from_edges(&d, 2, &node, &node, &weight, -1), CAPE_INVALID_ARGUMENT,
              "n_edges");
  CHECK_ERROR(cape_dag_from_edges(&d, INT64_MAX, NULL, NULL, NULL, 0), CAPE_INVALID_ARGUMENT,
              "2^57");
  CHECK_ERROR(cape_dag_from_edges(&d, INT64_C(1) << 40, NULL, NULL, NULL, 0), CAPE_OUT_OF_MEMORY,
              "memory");
  /* Refused at once: nothing loops over a side that no memory bounds. */
  CHECK_ERROR(cape_simulate_dag(&d, INT64_C(1) << 40, options), CAPE_OUT_OF_MEMORY, "memory");
  CHECK_OK(cape_options_set_str(options, "simulate.model", "erdos_renyi"));
  CHECK_ERROR(cape_simulate_dag(&d, INT64_C(1) << 40, options), CAPE_INVALID_ARGUMENT, "Erd");
  CHECK_OK(cape_options_set_str(options, "simulate.model", "barabasi_albert"));
  const cape_matrix_view tall = CAPE_MATRIX_VIEW(NULL, INT64_C(1) << 40, 0);
  const cape_matrix_view wide = CAPE_MATRIX_VIEW(NULL, 0, INT64_C(1) << 40);
  const cape_matrix_view flat = CAPE_MATRIX_VIEW(NULL, 5, 0);
  CHECK_ERROR(cape_poincare_to_lorentz(x, INT64_C(1) << 40, 1, &tall), CAPE_INVALID_ARGUMENT,
              "without elements");
  CHECK_ERROR(cape_poincare_to_lorentz(x, 5, 1, &flat), CAPE_DIM_MISMATCH, "e has 0 columns");
  CHECK_ERROR(cape_preprocess(&t, &tall, options), CAPE_INVALID_ARGUMENT, "without elements");
  CHECK_ERROR(cape_rotate(x, 0, 0, &wide, &wide), CAPE_INVALID_ARGUMENT, "without elements");
  CHECK_ERROR(cape_mean_square_product(x, &tall, &tall), CAPE_INVALID_ARGUMENT, "without elements");
  CHECK_ERROR(cape_average_bias(x, 1, &tall, &tall, x, x, 0, 1, INT64_MAX, options),
              CAPE_INVALID_ARGUMENT, "without elements");
  CHECK_ERROR(cape_average_bias(x, 1, &v2, &v2, x, x, 1, 1, INT64_MAX, options),
              CAPE_INVALID_ARGUMENT, "at most 2147483648");
  CHECK(d == NULL);
  cape_attention_shape scaled = CAPE_ATTENTION_SHAPE(1, 1, 1, 1, 1);
  const float tiny_f32 = 1e-3f;
  float out_f32 = 7;
  scaled.scale = 3e38; /* times log2(e) beyond float */
  CHECK_ERROR(cape_attention_f32(&out_f32, NULL, &scaled, &tiny_f32, &tiny_f32, &tiny_f32, NULL,
                                 NULL, NULL, NULL),
              CAPE_INVALID_ARGUMENT, "scale is 3e+38");
  CHECK(out_f32 == 7);
  const double tiny = 1e-3;
  scaled.scale = -1.7e308;
  CHECK_ERROR(cape_attention(x, NULL, &scaled, &tiny, &tiny, &tiny, NULL, NULL, NULL, NULL),
              CAPE_INVALID_ARGUMENT, "scale is -1.7e+308");
  const cape_attention_shape shape = CAPE_ATTENTION_SHAPE(INT64_MAX, 2, INT64_MAX, 1, 2);
  CHECK_STATUS(cape_attention(x, NULL, &shape, x, x, x, NULL, NULL, NULL, NULL),
               CAPE_INVALID_ARGUMENT);
}

/* 2.5e9 cells of which one is not zero: never made dense. */
static void huge_sparse(void) {
  enum { n = 50000 };
  int64_t* offsets = calloc(n + 1, sizeof *offsets);
  for (int i = 4321; i <= n; ++i) offsets[i] = 1; /* in column 4320 */
  const int32_t row[] = {n - 1};
  const double value[] = {7};
  const cape_sparse_view v = CAPE_SPARSE_VIEW(value, row, offsets, n, n, CAPE_COL_MAJOR);
  int64_t top = -1;
  CHECK_OK(cape_most_variable_sparse(&top, 1, &v));
  CHECK(top == 4320);
  cape_table* t;
  CHECK_STATUS(cape_preprocess_sparse(&t, &v, options),
               CAPE_INVALID_ARGUMENT); /* nothing is left */
  free(offsets);
}

/* The dimensions that are passed along are compared, and a buffer that is one short stays as it is.
 */
static void wrong_dimensions(void) {
  enum { n = N_COLS };
  double out[N_ROWS * N_COLS];
  int64_t index[N_COLS];
  for (int i = 0; i < N_ROWS * N_COLS; ++i) out[i] = -7;
  for (int i = 0; i < N_COLS; ++i) index[i] = -7;
  int64_t n_rows = 0, n_cols = 0;
  CHECK_OK(cape_table_size(&n_rows, &n_cols, table));
  CHECK_ERROR(cape_table_values(out, n_rows - 1, n_cols, table), CAPE_DIM_MISMATCH, "out");
  CHECK_ERROR(cape_table_rows(index, n_rows - 1, table), CAPE_DIM_MISMATCH, "n is");
  CHECK_ERROR(cape_table_cols(index, n_cols - 1, table), CAPE_DIM_MISMATCH, "n is");
  CHECK_ERROR(cape_dag_adjacency(out, n, n - 1, dag), CAPE_DIM_MISMATCH, "out");
  CHECK_ERROR(cape_dag_weights(out, n - 1, n, dag), CAPE_DIM_MISMATCH, "out");
  CHECK_ERROR(cape_dag_sign(out, n * n, 1, dag), CAPE_DIM_MISMATCH, "out");
  CHECK_ERROR(cape_dag_order(index, n - 1, dag), CAPE_DIM_MISMATCH, "n is");
  CHECK_ERROR(cape_dag_history(out, 4, 7, dag), CAPE_DIM_MISMATCH, "out");
  CHECK_ERROR(cape_dag_scaling(out, out, n + 1, dag), CAPE_DIM_MISMATCH, "n is");
  CHECK_ERROR(cape_dag_constant(index, 1, dag), CAPE_DIM_MISMATCH, "n is");
  CHECK_ERROR(cape_pagerank(out, n - 1, dag, 0.15), CAPE_DIM_MISMATCH, "n is");
  CHECK_ERROR(cape_path_strengths(out, n, n - 1, dag), CAPE_DIM_MISMATCH, "out");
  CHECK_ERROR(cape_embedding_hyperboloid(out, n, 4, embedding), CAPE_DIM_MISMATCH, "out");
  CHECK_ERROR(cape_embedding_poincare(out, n, 5, embedding), CAPE_DIM_MISMATCH, "out");
  CHECK_ERROR(cape_embedding_nodes(out, out, out, n - 1, embedding), CAPE_DIM_MISMATCH, "n is");
  CHECK_ERROR(cape_embedding_history(out, 19, 5, embedding), CAPE_DIM_MISMATCH, "out");
  CHECK_ERROR(cape_result_angles(out, n, 3, result), CAPE_DIM_MISMATCH, "out");
  CHECK_ERROR(cape_rotary_angles(out, n - 1, 4, embedding, 1), CAPE_DIM_MISMATCH, "out");
  CHECK_ERROR(cape_simulate_data(out, N_ROWS, n - 1, dag, options), CAPE_DIM_MISMATCH, "out");
  CHECK_ERROR(cape_simulate_counts(out, N_ROWS - 1, n, &view, 1, 0.1, options), CAPE_DIM_MISMATCH,
              "out");
  int64_t from[] = {0, 1}, to[] = {1, 2}, edge_index[1] = {-7};
  const double weight[] = {1, 1};
  cape_dag* d;
  CHECK_OK(cape_dag_from_edges(&d, 3, from, to, weight, 2));
  CHECK_ERROR(cape_dag_edges(edge_index, edge_index, out, 1, d), CAPE_DIM_MISMATCH, "capacity");
  cape_graph_metrics metrics = {.struct_size = sizeof metrics, .shd = -7};
  CHECK_STATUS(cape_compare_graphs(&metrics, d, dag), CAPE_DIM_MISMATCH);
  cape_dag_free(d);

  const double square[] = {0, 0, 1, 0}, two_rows[] = {1, 1, 0, 0}, three[] = {1, 0, 0};
  const cape_matrix_view a = CAPE_MATRIX_VIEW(square, 2, 2);
  const cape_matrix_view p2 = CAPE_MATRIX_VIEW(two_rows, 2, 2);
  const cape_matrix_view p3 = CAPE_MATRIX_VIEW(three, 1, 3);
  const cape_matrix_view line = CAPE_MATRIX_VIEW(three, 3, 1);
  double h = 5;
  CHECK_ERROR(cape_acyclicity(&h, out, 2, 1, &a, "expm"), CAPE_DIM_MISMATCH, "out");
  CHECK(h == 0);
  CHECK_ERROR(cape_lorentz_distances(out, 1, 1, &p2, &p2), CAPE_DIM_MISMATCH, "out");
  CHECK_ERROR(cape_lorentz_distances(out, 2, 1, &p2, &p3), CAPE_DIM_MISMATCH, "b has");
  CHECK_ERROR(cape_lorentz_log(out, 2, 2, &p2, &p3), CAPE_DIM_MISMATCH, "q is");
  CHECK_ERROR(cape_lorentz_exp(out, 2, 2, &p2, &p3), CAPE_DIM_MISMATCH, "v is");
  /* Points with too few coordinates, whatever is done with them, and also if there are none. */
  const cape_matrix_view no_line = CAPE_MATRIX_VIEW(three, 0, 1);
  const cape_matrix_view* const lines[] = {&line, &no_line};
  for (int i = 0; i < 2; ++i) {
    const cape_matrix_view* l = lines[i];
    const int64_t k = l->n_rows;
    const char* p_has = "p has 1 columns; it must have at least 2";
    CHECK_ERROR(cape_lorentz_to_poincare(out, k, 0, l), CAPE_DIM_MISMATCH, p_has);
    CHECK_ERROR(cape_lorentz_exp(out, k, 1, l, l), CAPE_DIM_MISMATCH, p_has);
    CHECK_ERROR(cape_lorentz_log(out, k, 1, l, l), CAPE_DIM_MISMATCH, p_has);
    CHECK_ERROR(cape_lorentz_project_tangent(out, k, 1, l, l), CAPE_DIM_MISMATCH, p_has);
    CHECK_ERROR(cape_lorentz_transport(out, k, 1, l, l, l), CAPE_DIM_MISMATCH, p_has);
    CHECK_ERROR(cape_lorentz_distances(out, k, k, l, l), CAPE_DIM_MISMATCH, "a has 1 columns");
    const cape_matrix_view none = CAPE_MATRIX_VIEW(three, k, 0);
    CHECK_ERROR(cape_poincare_to_lorentz(out, k, 1, &none), CAPE_DIM_MISMATCH, "e has 0 columns");
    CHECK_ERROR(cape_poincare_distances(out, k, k, &none, &none), CAPE_DIM_MISMATCH,
                "a has no columns");
  }
  CHECK_STATUS(cape_rotate(out, 1, 3, &p3, &p3), CAPE_DIM_MISMATCH); /* odd */
  CHECK_ERROR(cape_rotary_scores(out, NULL, NULL, 2, &p2, &p2, &p3, &p3), CAPE_DIM_MISMATCH,
              "phi_m");
  CHECK_ERROR(cape_approximation_accuracy(&h, -1, 0), CAPE_INVALID_ARGUMENT, "sd_m");
  CHECK(h == 0);
  CHECK_ERROR(cape_hoeffding_bound(&h, 1, 0, 1), CAPE_INVALID_ARGUMENT, "n is 0");
  const int64_t labels[3] = {0, 1, 1};
  CHECK_ERROR(cape_silhouette(&h, &p2, labels, 3, NULL), CAPE_DIM_MISMATCH, "n is");

  int untouched = 1;
  for (int i = 0; i < N_ROWS * N_COLS; ++i) untouched &= out[i] == -7;
  for (int i = 0; i < N_COLS; ++i) untouched &= index[i] == -7;
  CHECK(untouched && edge_index[0] == -7 && metrics.shd == -7);
}

/* A handle of another type, an object that lacks what is asked, a graph with a cycle. */
static void bad_state(void) {
  double out[16];
  int64_t index[4];
  CHECK_ERROR(cape_dag_adjacency(out, 4, 4, (const cape_dag*)options), CAPE_BAD_STATE, "dag");
  CHECK_ERROR(cape_options_set_i64((cape_options*)table, "dag.epochs", 1), CAPE_BAD_STATE,
              "options");
  cape_dag_free((cape_dag*)options); /* not a DAG: left alone */
  CHECK_OK(cape_options_set_i64(options, "dag.epochs", 5));
  CHECK_ERROR(cape_dag_statistic(out, 4, 4, dag), CAPE_BAD_STATE, "refine");
  CHECK_ERROR(
      cape_dag_statistic_view(&(cape_sparse_view){.struct_size = sizeof(cape_sparse_view)}, dag),
      CAPE_BAD_STATE, "refine");
  CHECK_ERROR(cape_dag_weights_view(&(cape_sparse_view){.struct_size = 0}, dag),
              CAPE_INVALID_ARGUMENT, "out");

  const int64_t from[] = {0, 1}, to[] = {1, 0};
  const double weight[] = {0.5, -0.25};
  cape_dag *cycle, *cut;
  CHECK_OK(cape_dag_from_edges(&cycle, 2, from, to, weight, 2));
  cape_dag_info info = {.struct_size = sizeof info};
  CHECK_OK(cape_dag_describe(&info, cycle));
  CHECK(!info.acyclic && !info.learned && info.n_edges == 2);
  CHECK_ERROR(cape_dag_order(index, 2, cycle), CAPE_BAD_STATE, "cycle");
  CHECK_ERROR(cape_dag_weights(out, 2, 2, cycle), CAPE_BAD_STATE, "learned");
  CHECK_ERROR(cape_dag_sign(out, 2, 2, cycle), CAPE_BAD_STATE, "learned");
  cape_sparse_view lent = {.struct_size = sizeof lent};
  CHECK_ERROR(cape_dag_weights_view(&lent, cycle), CAPE_BAD_STATE, "learned");
  CHECK_ERROR(cape_dag_sign_view(&lent, cycle), CAPE_BAD_STATE, "learned");
  CHECK_ERROR(cape_dag_history(out, 0, 7, cycle), CAPE_BAD_STATE, "learned");
  cape_threshold_suggestion suggestion = {.struct_size = sizeof suggestion};
  CHECK_ERROR(cape_dag_suggestion(&suggestion, cycle), CAPE_BAD_STATE, "learned");
  CHECK_ERROR(cape_dag_suggest_threshold(&suggestion, cycle, &view, options), CAPE_DIM_MISMATCH,
              "columns");
  CHECK_ERROR(cape_dag_scaling(out, out, 2, cycle), CAPE_BAD_STATE, "learned");
  CHECK_STATUS(cape_simulate_data(out, 2, 2, cycle, options), CAPE_INVALID_ARGUMENT);

  CHECK_OK(cape_dag_prune(&cut, cycle, 0, NULL)); /* the weaker edge of the cycle goes */
  CHECK_OK(cape_dag_order(index, 2, cut));
  CHECK(index[0] == 0 && index[1] == 1);
  CHECK_OK(cape_dag_describe(&info, cut));
  CHECK(info.acyclic && info.n_edges == 1 && info.n_removed_for_acyclicity == 1);
  cape_dag_free(cut);
  CHECK_STATUS(cape_dag_prune(&cut, cycle, -1, NULL), CAPE_INVALID_ARGUMENT);
  CHECK_STATUS(cape_dag_prune(&cut, cycle, NAN, NULL), CAPE_INVALID_ARGUMENT);
  CHECK(cut == NULL);
  cape_dag_free(cycle);
}

static void bad_graphs_and_points(void) {
  cape_dag* d;
  double h, out[4], ones[] = {1, 0, 0, 1}, nan[] = {0, NAN, 0, 0};
  const cape_matrix_view loops = CAPE_MATRIX_VIEW(ones, 2, 2);
  const cape_matrix_view wide = CAPE_MATRIX_VIEW(ones, 1, 4);
  const cape_matrix_view not_finite = CAPE_MATRIX_VIEW(nan, 2, 2);
  CHECK_STATUS(cape_dag_from_adjacency(&d, &loops), CAPE_INVALID_ARGUMENT);
  CHECK(cape_dag_from_adjacency(&d, &wide) != CAPE_OK && d == NULL);
  CHECK_STATUS(cape_dag_from_adjacency(&d, &not_finite), CAPE_INVALID_ARGUMENT);
  const int64_t from[] = {0, 0}, to[] = {1, 1}, far[] = {2, 2};
  const double weight[] = {1, 1}, bad[] = {NAN, 1};
  CHECK_STATUS(cape_dag_from_edges(&d, 2, from, to, weight, 2), CAPE_INVALID_ARGUMENT); /* twice */
  CHECK_STATUS(cape_dag_from_edges(&d, 2, from, from, weight, 1), CAPE_INVALID_ARGUMENT); /* loop */
  CHECK_STATUS(cape_dag_from_edges(&d, 2, from, far, weight, 1), CAPE_INVALID_ARGUMENT);
  CHECK_STATUS(cape_dag_from_edges(&d, 2, from, to, bad, 1), CAPE_INVALID_ARGUMENT);
  CHECK_STATUS(cape_dag_from_edges(&d, -1, NULL, NULL, NULL, 0), CAPE_INVALID_ARGUMENT);
  CHECK_ERROR(cape_acyclicity(&h, NULL, 0, 0, &not_finite, "expm"), CAPE_INVALID_ARGUMENT, "NaN");
  CHECK_ERROR(cape_acyclicity(&h, NULL, 0, 0, &loops, "trace"), CAPE_INVALID_ARGUMENT, "logdet");
  CHECK_STATUS(cape_pagerank(out, N_COLS, dag, 0), CAPE_INVALID_ARGUMENT);
  CHECK_STATUS(cape_pagerank(out, N_COLS, dag, NAN), CAPE_INVALID_ARGUMENT);
  CHECK_STATUS(cape_rotary_angles(x, N_COLS, 4, embedding, NAN), CAPE_INVALID_ARGUMENT);

  double off[] = {2, 0}, outside[] = {1, 0}, origin[] = {1, 0}, slanted[] = {1, 0};
  const cape_matrix_view off_view = CAPE_MATRIX_VIEW(off, 1, 2);
  const cape_matrix_view outside_view = CAPE_MATRIX_VIEW(outside, 1, 2);
  const cape_matrix_view p = CAPE_MATRIX_VIEW(origin, 1, 2), v = CAPE_MATRIX_VIEW(slanted, 1, 2);
  CHECK_ERROR(cape_lorentz_distances(out, 1, 1, &p, &off_view), CAPE_INVALID_ARGUMENT,
              "of b (counted from");
  CHECK_ERROR(cape_lorentz_exp(out, 1, 2, &p, &v), CAPE_INVALID_ARGUMENT, "tangent");
  CHECK_ERROR(cape_poincare_to_lorentz(out, 1, 3, &outside_view), CAPE_INVALID_ARGUMENT,
              "row 0 (counted from 0): e");
}

int main(void) {
  CHECK(strcmp(cape_last_error(), "") == 0); /* none yet */
  set_up();
  if (n_failed == 0) {
    null_options();
    null_table();
    null_dag();
    null_embedding();
    null_rotary_and_attention();
    null_rest();
    bad_options();
    bad_tables();
    huge_sizes();
    huge_sparse();
    wrong_dimensions();
    bad_state();
    bad_graphs_and_points();
  }
  tear_down();
  return n_failed != 0;
}
