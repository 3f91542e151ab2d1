/* Every function that returns numbers either fails or returns finite ones, whatever it is given. */
#include "check.h"

/* The next of the values of a palette of extremes, by a generator. */
static uint64_t state = 1;
static uint64_t bits(void) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return state >> 33;
}
static double extreme(void) {
  static const double palette[] = {
      0,     -0.0,   1,     -1,    0.5,     3,       20,        1e8,      -1e8,
      1e-8,  1e37,   1e38,  1e100, 1e150,   1e154,   -1e154,    1e200,    1e300,
      1e308, -1e308, 1e-37, 1e-45, 1e-150,  1e-154,  1e-300,    1e-308,   5e-324,
      355,   700,    -745,  1e4,   1.7e308, 0.99999, 1 - 1e-16, 1 - 1e-9, 4e5};
  return palette[bits() % (sizeof palette / sizeof *palette)];
}
/* Values of a table: of one extreme size, or of all sizes, or ordinary. */
static void fill(double* x, int64_t n) {
  const uint64_t kind = bits() % 3;
  const double size = kind == 1 ? extreme() : 1;
  for (int64_t i = 0; i < n; ++i)
    x[i] = kind == 0 ? extreme() : size * (((double)(bits() % 2001) - 1000) / 1000);
}
static void fill_f32(float* x, int64_t n) {
  double value;
  for (int64_t i = 0; i < n; ++i) {
    fill(&value, 1);
    x[i] = (float)(fabs(value) < 3e38 ? value : value > 0 ? 3e38 : -3e38);
  }
}

static int all_finite(const double* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    if (!isfinite(x[i])) return 0;
  return 1;
}
static int all_finite_f32(const float* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    if (!isfinite(x[i])) return 0;
  return 1;
}

static int64_t n_calls, n_answers;
/* A call that is CAPE_OK has given numbers; another says why. */
static void look(cape_status status, int numbers, const char* what, int line) {
  ++n_calls;
  n_answers += status == CAPE_OK;
  check(status == CAPE_OK ? numbers : strlen(cape_last_error()) > 0, what, __FILE__, line);
}
#define LOOK(call, ...)                                                                            \
  do {                                                                                             \
    const cape_status status_ = (call);                                                            \
    look(status_, (__VA_ARGS__), #call, __LINE__);                                                 \
  } while (0)

enum { MOST = 8, SIZE = MOST * MOST * 2 };
static double a[SIZE], b[SIZE], c[SIZE], d[SIZE], e[SIZE], f[SIZE], out[SIZE], out2[SIZE],
    out3[SIZE];

static cape_matrix_view view(double* x, int64_t rows, int64_t cols) {
  return (cape_matrix_view)CAPE_MATRIX_VIEW(x, rows, cols);
}

static void graphs(void) {
  const int64_t n = 1 + (int64_t)(bits() % 4);
  for (int64_t i = 0; i < n * n; ++i) a[i] = bits() % 3 ? extreme() : 0;
  for (int64_t i = 0; i < n; ++i) a[i * n + i] = 0;
  const cape_matrix_view adjacency = view(a, n, n);
  LOOK(cape_acyclicity(out, out2, n, n, &adjacency, "expm"),
       all_finite(out, 1) && all_finite(out2, n * n));
  LOOK(cape_acyclicity(out, out2, n, n, &adjacency, "logdet"),
       all_finite(out, 1) && all_finite(out2, n * n));
  LOOK(cape_acyclicity(out, NULL, n, n, &adjacency, "expm"), all_finite(out, 1));
  cape_dag* dag = NULL;
  if (cape_dag_from_adjacency(&dag, &adjacency) != CAPE_OK) return;
  LOOK(cape_pagerank(out, n, dag, bits() % 2 ? 0.15 : fabs(extreme())), all_finite(out, n));
  LOOK(cape_path_strengths(out, n, n, dag), all_finite(out, n * n));
  LOOK(cape_dag_adjacency(out, n, n, dag), all_finite(out, n * n));
  cape_graph_metrics metrics = {.struct_size = sizeof metrics};
  LOOK(cape_compare_graphs(&metrics, dag, dag), 1);
  fill(b, n * n);
  fill(c, n);
  const cape_matrix_view scores = view(b, n, n);
  cape_compare_scores(out, out + 1, &scores, dag, NULL);
  cape_options* options = quick_options();
  cape_embedding* embedding = NULL;
  if (bits() % 8 == 0 && cape_embedding_fit(&embedding, dag, options) == CAPE_OK) {
    cape_embedding_info info = {.struct_size = sizeof info};
    CHECK_OK(cape_embedding_describe(&info, embedding));
    LOOK(cape_embedding_hyperboloid(out, n, 5, embedding), all_finite(out, n * 5));
    LOOK(cape_embedding_poincare(out, n, 4, embedding), all_finite(out, n * 4));
    LOOK(cape_embedding_nodes(out, out2, out3, n, embedding),
         all_finite(out, n) && all_finite(out2, n) && all_finite(out3, n));
    LOOK(cape_rotary_angles(out, n, 4, embedding, extreme()), all_finite(out, n * 4));
  }
  cape_embedding_free(embedding);
  cape_options_free(options);
  cape_dag_free(dag);
}

static void geometry(void) {
  const int64_t n = 1 + (int64_t)(bits() % 3), m = 2 + (int64_t)(bits() % 3);
  double* all[] = {a, b, c};
  for (int i = 0; i < 3; ++i) {
    fill(all[i], n * m);
    if (bits() % 2) /* points of the hyperboloid, as far as doubles go */
      for (int64_t r = 0; r < n; ++r) {
        double squares = 1;
        for (int64_t j = 1; j < m; ++j) squares += all[i][j * n + r] * all[i][j * n + r];
        all[i][r] = sqrt(squares);
      }
  }
  const cape_matrix_view p = view(a, n, m), q = view(b, n, m), v = view(c, n, m);
  LOOK(cape_lorentz_distances(out, n, n, &p, &q), all_finite(out, n * n));
  LOOK(cape_lorentz_exp(out, n, m, &p, &v), all_finite(out, n * m));
  LOOK(cape_lorentz_log(out, n, m, &p, &q), all_finite(out, n * m));
  LOOK(cape_lorentz_project_tangent(out, n, m, &p, &v), all_finite(out, n * m));
  LOOK(cape_lorentz_transport(out, n, m, &p, &q, &v), all_finite(out, n * m));
  LOOK(cape_lorentz_to_poincare(out, n, m - 1, &p), all_finite(out, n * (m - 1)));
  LOOK(cape_poincare_to_lorentz(out, n, m + 1, &p), all_finite(out, n * (m + 1)));
  LOOK(cape_poincare_distances(out, n, n, &p, &q), all_finite(out, n * n));
}

static void theory(void) {
  const int64_t n = 1 + (int64_t)(bits() % 3), pairs = 1 + (int64_t)(bits() % 3), m = 2 * pairs;
  fill(a, n * m), fill(b, n * m), fill(c, n * pairs), fill(d, n * pairs), fill(e, n * pairs),
      fill(f, n * pairs);
  const cape_matrix_view q = view(a, n, m), k = view(b, n, m), phi_m = view(c, n, pairs),
                         phi_n = view(d, n, pairs);
  for (int64_t i = 0; i < n * pairs; ++i) e[i] = fabs(e[i]), f[i] = fabs(f[i]);
  const cape_matrix_view sd_m = view(e, n, pairs), sd_n = view(f, n, pairs);
  LOOK(cape_rotate(out, n, m, &q, &phi_m), all_finite(out, n * m));
  LOOK(cape_rotate_back(out, n, m, &q, &phi_m), all_finite(out, n * m));
  LOOK(cape_rotate_angle_gradient(out, n, pairs, &q, &phi_m, &k), all_finite(out, n * pairs));
  LOOK(cape_rotary_scores(out, out2, out3, n, &q, &k, &phi_m, &phi_n),
       all_finite(out, n) && all_finite(out2, n) && all_finite(out3, n));
  LOOK(cape_score_envelopes(out, out2, n, &q, &k), all_finite(out, n) && all_finite(out2, n));
  LOOK(cape_expected_scores(out, n, &q, &k, &phi_m, &phi_n, &sd_m, &sd_n), all_finite(out, n));
  LOOK(cape_mean_square_product(out, &q, &k), all_finite(out, 1));
  LOOK(cape_approximation_accuracy(out, extreme(), extreme()), all_finite(out, 1));
  LOOK(cape_hoeffding_bound(out, extreme(), n, extreme()), all_finite(out, 1));
  double distance[4], norm_m[4], norm_n[4], limit[4];
  for (int64_t i = 0; i < n; ++i)
    distance[i] = fabs(extreme()), norm_m[i] = fabs(extreme()), norm_n[i] = fabs(extreme());
  if (bits() % 2) /* a distance that is there: along a ray */
    for (int64_t i = 0; i < n; ++i) {
      norm_m[i] = fmod(norm_m[i], 1), norm_n[i] = fmod(norm_n[i], 1);
      distance[i] = 2 * fabs(atanh(norm_m[i]) - atanh(norm_n[i]));
    }
  LOOK(cape_envelope_at(out, out2, out3, limit, n, fabs(extreme()), fabs(extreme()), pairs,
                        distance, norm_m, norm_n, 0.5),
       all_finite(out, n) && all_finite(out2, n) && all_finite(out3, n) && all_finite(limit, n));
  const cape_matrix_view covariance = view(a, 2, 2);
  a[3] = a[0] = fabs(a[0]), a[1] = a[2] = a[0] * 0.5;
  LOOK(cape_expected_margin(out, &covariance, c, d, 1), all_finite(out, 1));
  const cape_matrix_view one_q = view(b, 1, m), one_k = view(out3, 1, m);
  fill(out3, m);
  LOOK(cape_average_bias(out, 3, &one_q, &one_k, c, d, pairs, fabs(extreme()), 4, NULL),
       all_finite(out, 3));
}

static void attention(void) {
  const int64_t n = 1 + (int64_t)(bits() % 4), m = 1 + (int64_t)(bits() % 4),
                pairs = 1 + (int64_t)(bits() % 2);
  const int64_t width = 2 * pairs, features = 2 * (1 + (int64_t)(bits() % 3));
  static float fa[SIZE], fb[SIZE], fc[SIZE], fd[SIZE], fe[SIZE], ff[SIZE], fout[SIZE], flse[SIZE];
  double lse[MOST], g1[SIZE], g2[SIZE], g3[SIZE], g4[SIZE], g5[SIZE];
  static float h1[SIZE], h2[SIZE], h3[SIZE], h4[SIZE], h5[SIZE];
  fill(a, n * width), fill(b, m * width), fill(c, m * width), fill(d, n * pairs),
      fill(e, m * pairs), fill(f, n * width);
  if (bits() % 2) { /* so that doubles of moderate size are seen as well */
    for (int64_t i = 0; i < n * width; ++i) a[i] = remainder(a[i], 300);
    for (int64_t i = 0; i < m * width; ++i)
      b[i] = remainder(b[i], 300), c[i] = remainder(c[i], 300);
  }
  fill_f32(fd, n * pairs), fill_f32(fe, m * pairs), fill_f32(ff, n * width);
  for (int64_t i = 0; i < n * width; ++i) fa[i] = (float)(fabs(a[i]) < 3e38 ? a[i] : 1e38);
  for (int64_t i = 0; i < m * width; ++i)
    fb[i] = (float)(fabs(b[i]) < 3e38 ? b[i] : 1e38), fc[i] = (float)(fabs(c[i]) < 3e38 ? c[i] : 1);
  cape_attention_shape s = CAPE_ATTENTION_SHAPE(1, 1, n, m, width);
  if (bits() % 4 == 0) s.scale = extreme();
  const int turned = bits() % 2;
  const double *qa = turned ? d : NULL, *ka = turned ? e : NULL;
  const float *fqa = turned ? fd : NULL, *fka = turned ? fe : NULL;
  const int64_t nq = n * width, nk = m * width, np = n * pairs, mp = m * pairs;
  double *da = turned ? g4 : NULL, *db = turned ? g5 : NULL;
  float *ha = turned ? h4 : NULL, *hb = turned ? h5 : NULL;
#define GRADIENTS                                                                                  \
  (all_finite(g1, nq) && all_finite(g2, nk) && all_finite(g3, nk) &&                               \
   (!turned || (all_finite(g4, np) && all_finite(g5, mp))))
#define GRADIENTS_F32                                                                              \
  (all_finite_f32(h1, nq) && all_finite_f32(h2, nk) && all_finite_f32(h3, nk) &&                   \
   (!turned || (all_finite_f32(h4, np) && all_finite_f32(h5, mp))))
  cape_status st = cape_attention(out, lse, &s, a, b, c, qa, ka, NULL, NULL);
  LOOK(st, all_finite(out, nq) && all_finite(lse, n));
  if (st == CAPE_OK)
    LOOK(cape_attention_backward(g1, g2, g3, da, db, &s, a, b, c, qa, ka, NULL, out, lse, f, NULL),
         GRADIENTS);
  st = cape_attention_f32(fout, flse, &s, fa, fb, fc, fqa, fka, NULL, NULL);
  LOOK(st, all_finite_f32(fout, nq) && all_finite_f32(flse, n));
  if (st == CAPE_OK)
    LOOK(cape_attention_backward_f32(h1, h2, h3, ha, hb, &s, fa, fb, fc, fqa, fka, NULL, fout, flse,
                                     ff, NULL),
         GRADIENTS_F32);
  LOOK(cape_attention_scores(out, &s, a, b, qa, ka, NULL, NULL), all_finite(out, n * m));
  cape_options* options = quick_options();
  LOOK(cape_linear_attention(out, &s, features, 0, a, b, c, qa, ka, NULL, options),
       all_finite(out, nq));
  LOOK(cape_linear_attention_f32(fout, &s, features, 0, fa, fb, fc, fqa, fka, NULL, options),
       all_finite_f32(fout, nq));
  LOOK(cape_linear_attention_backward(g1, g2, g3, da, db, &s, features, 0, a, b, c, qa, ka, NULL, f,
                                      options),
       GRADIENTS);
  LOOK(cape_linear_attention_backward_f32(h1, h2, h3, ha, hb, &s, features, 0, fa, fb, fc, fqa, fka,
                                          NULL, ff, options),
       GRADIENTS_F32);
  cape_options_free(options);
}

static void tables(void) {
  const int64_t n = 2 + (int64_t)(bits() % 6), m = 1 + (int64_t)(bits() % 3);
  fill(a, n * m);
  const cape_matrix_view x = view(a, n, m);
  int64_t labels[MOST];
  for (int64_t i = 0; i < n; ++i) labels[i] = (int64_t)(bits() % 2);
  LOOK(cape_silhouette(out, &x, labels, n, NULL), all_finite(out, 1) || isnan(out[0]));
  LOOK(cape_compare_labels(out, out2, labels, labels, n),
       all_finite(out, 1) && all_finite(out2, 1));
  cape_options* options = quick_options();
  LOOK(cape_most_variable(labels, 1, &x), labels[0] >= 0 && labels[0] < m);
  for (int64_t i = 0; i < n * m; ++i) b[i] = fabs(a[i]);
  const cape_matrix_view counts = view(b, n, m);
  CHECK_OK(cape_options_set_i64(options, "preprocess.min_features", 1));
  CHECK_OK(cape_options_set_i64(options, "preprocess.min_cells", 1));
  CHECK_OK(cape_options_set_bool(options, "preprocess.log1p", bits() % 2));
  if (bits() % 4 == 0) cape_options_set_f64(options, "preprocess.target_sum", fabs(extreme()));
  cape_table* table = NULL;
  const cape_status made = cape_preprocess(&table, &counts, options);
  LOOK(made, table != NULL);
  if (made == CAPE_OK) {
    int64_t rows = 0, cols = 0;
    CHECK_OK(cape_table_size(&rows, &cols, table));
    LOOK(cape_table_values(out, rows, cols, table), all_finite(out, rows * cols));
  }
  cape_table_free(table);
  LOOK(cape_simulate_counts(out, n, m, &x, fabs(extreme()), fabs(extreme()), options),
       all_finite(out, n * m));
  LOOK(cape_estimate(out, out2, (int64_t)bits() << bits() % 32, (int64_t)bits(), options),
       all_finite(out, 1) && all_finite(out2, 1));
  /* More rows never take less; the largest have a table that no machine holds. */
  if (bits() % 2) CHECK_OK(cape_options_set_str(options, "dag.refine", "always"));
  CHECK_OK(cape_options_set_i64(options, "dag.batch_size", bits() % 2 ? 1000000000 : 1));
  const int64_t columns = 2 + (int64_t)(bits() % 1000);
  double seconds = 0, memory = 0;
  for (int power = 4; power < 48; power += 4) {
    CHECK_OK(cape_estimate(out, out2, (int64_t)1 << power, columns, options));
    CHECK(out[0] >= 0.99 * memory && out2[0] >= 0.1 * seconds && isfinite(out2[0]));
    memory = out[0], seconds = out2[0];
  }
  cape_options_free(options);
}

/* What may be known of n rows and m columns, of any size. */
static void know(cape_prior* prior, int64_t n, int64_t m) {
  double weight[16], pull = extreme();
  int64_t batch[16], cause = 0, effect = 1;
  for (int64_t i = 0; i < n; ++i) {
    weight[i] = bits() % 3 ? 1 : fabs(extreme());
    batch[i] = i % 2;
  }
  if (bits() % 2) CHECK_OK(cape_prior_row_weights(prior, weight, n));
  if (bits() % 2) CHECK_OK(cape_prior_batches(prior, batch, n));
  if (bits() % 4 == 0) {
    static double value[16];
    for (int64_t i = 0; i < n; ++i) value[i] = bits() % 2 ? extreme() : (double)(bits() % 9);
    const cape_matrix_view covariate = view(value, n, 1);
    CHECK_OK(cape_prior_covariates(prior, &covariate));
  }
  if (bits() % 2)
    for (int64_t i = bits() % 3 ? n / 2 : 0; i < n; ++i)
      CHECK_OK(cape_prior_perturb(prior, &i, &effect, 1));
  if (bits() % 3 == 0) CHECK_OK(cape_prior_start(prior, &cause, &effect, &pull, 1));
  if (bits() % 3 == 0) {
    static double factor[16];
    for (int64_t i = 0; i < m * m; ++i) factor[i] = fabs(extreme());
    const cape_matrix_view penalty = view(factor, m, m);
    CHECK_OK(cape_prior_penalty(prior, &penalty));
  }
}

/* Fits of tables of any values: what comes out, the course of the training included. */
static void fits(void) {
  const int64_t n = 8 + (int64_t)(bits() % 8), m = 2 + (int64_t)(bits() % 3);
  static double x[64], weights[16], history[256];
  for (int64_t i = 0; i < n * m; ++i)
    x[i] = bits() % 12 ? ((double)(bits() % 2001) - 1000) / 1000 : extreme();
  const double size = bits() % 2 ? 1 : extreme();
  for (int64_t i = 0; i < n * m; ++i) x[i] *= fabs(x[i]) <= 1 || fabs(size) <= 1 ? size : 1;
  const cape_matrix_view table = view(x, n, m);
  cape_options* options = quick_options();
  static const char* const models[] = {"linear", "mlp", "paper"};
  cape_options_set_str(options, "dag.sem", models[bits() % 3]);
  if (bits() % 2) CHECK_OK(cape_options_set_str(options, "dag.refine", "always"));
  if (bits() % 2) CHECK_OK(cape_options_set_bool(options, "dag.standardize", 1));
  if (bits() % 2) CHECK_OK(cape_options_set_f64(options, "dag.threshold", 0));
  if (bits() % 4 == 0) CHECK_OK(cape_options_set_str(options, "dag.constraint", "logdet"));
  if (bits() % 4 == 0) CHECK_OK(cape_options_set_f64(options, "dag.learning_rate", 1));
  if (bits() % 4 == 0) CHECK_OK(cape_options_set_i64(options, "dag.candidates", 1));
  if (bits() % 4 == 0) CHECK_OK(cape_options_set_i64(options, "dag.rank", 1));
  if (bits() % 4 == 0) {
    CHECK_OK(cape_options_set_str(options, "dag.missing", "mask"));
    for (int64_t i = 0; i < n * m; ++i)
      if (bits() % 8 == 0) x[i] = NAN;
  }
  cape_prior* prior = NULL;
  CHECK_OK(cape_prior_new(&prior));
  if (bits() % 2) know(prior, n, m);
  cape_result* result = NULL;
  const cape_status status = cape_fit_with(&result, &table, prior, options);
  cape_prior_free(prior);
  LOOK(status, result != NULL);
  if (status == CAPE_OK) {
    const cape_dag* dag = NULL;
    const cape_embedding* embedding = NULL;
    CHECK_OK(cape_result_dag(&dag, result));
    CHECK_OK(cape_result_embedding(&embedding, result));
    cape_dag_info info = {.struct_size = sizeof info};
    CHECK_OK(cape_dag_describe(&info, dag));
    cape_threshold_suggestion suggestion = {.struct_size = sizeof suggestion};
    LOOK(cape_dag_suggest_threshold(&suggestion, dag, &table, options),
         isfinite(suggestion.threshold));
    cape_dag* pruned = NULL;
    LOOK(cape_dag_prune(&pruned, dag, fabs(extreme()), NULL), pruned != NULL);
    cape_dag_free(pruned);
    LOOK(cape_dag_weights(weights, m, m, dag), all_finite(weights, m * m));
    LOOK(cape_dag_adjacency(weights, m, m, dag), all_finite(weights, m * m));
    LOOK(cape_dag_scaling(out, out2, m, dag), all_finite(out, m) && all_finite(out2, m));
    LOOK(cape_dag_history(history, info.n_epochs, 7, dag), all_finite(history, info.n_epochs * 7));
    LOOK(cape_result_angles(out, m, 4, result), all_finite(out, m * 4));
    LOOK(cape_embedding_hyperboloid(out, m, 5, embedding), all_finite(out, m * 5));
    LOOK(cape_embedding_nodes(out, out2, out3, m, embedding),
         all_finite(out, m) && all_finite(out2, m) && all_finite(out3, m));
  }
  cape_result_free(result);
  cape_options_free(options);
}

int main(void) {
  for (int round = 0; round < 4000; ++round) {
    graphs();
    geometry();
    theory();
    attention();
    tables();
    if (round % 10 == 0) fits();
    if (n_failed > 20) break;
  }
  /* The sweep says something only if many calls get through. */
  CHECK(n_answers > n_calls / 5);
  printf("%lld calls, %lld answered\n", (long long)n_calls, (long long)n_answers);
  return n_failed > 0;
}
