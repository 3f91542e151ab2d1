/* The functions without a fit, against closed forms: this proves that arguments arrive in their
 * places; the tests of the stages go deeper. */
#include "check.h"

static const double pi = 3.14159265358979323846;

/* A chain 0 -> 1 -> 2 of weights 0.5 and -0.8. */
static void graphs(void) {
  const int64_t from[] = {1, 0}, to[] = {2, 1};
  const double weight[] = {-0.8, 0.5};
  cape_dag* chain = NULL;
  CHECK_OK(cape_dag_from_edges(&chain, 3, from, to, weight, 2));
  int64_t f[2], t[2], order[3];
  double w[2], a[9], s[9], rank[3];
  CHECK_OK(cape_dag_edges(f, t, w, 2, chain)); /* sorted by (from, to) */
  CHECK(f[0] == 0 && t[0] == 1 && w[0] == 0.5 && f[1] == 1 && t[1] == 2 && w[1] == -0.8);
  CHECK_OK(cape_dag_adjacency(a, 3, 3, chain));
  CHECK(a[1 * 3 + 0] == 0.5 && a[2 * 3 + 1] == -0.8 && a[0 * 3 + 1] == 0); /* row = cause */
  CHECK_OK(cape_dag_order(order, 3, chain));
  CHECK(order[0] == 0 && order[1] == 1 && order[2] == 2);
  CHECK_OK(cape_path_strengths(s, 3, 3, chain));
  CHECK_NEAR(s[2 * 3 + 0], 0.4, 1e-15); /* 0 -> 1 -> 2: 0.5 * 0.8 */
  CHECK(s[0 * 3 + 2] == 0);
  CHECK_OK(cape_pagerank(rank, 3, chain, 0.15));
  CHECK_NEAR(rank[0] + rank[1] + rank[2], 1, 1e-12);
  CHECK(rank[0] > rank[1] && rank[1] > rank[2]);

  /* The same graph as a matrix. */
  const cape_matrix_view view = CAPE_MATRIX_VIEW(a, 3, 3);
  cape_dag* same = NULL;
  CHECK_OK(cape_dag_from_adjacency(&same, &view));
  cape_graph_metrics m = {.struct_size = sizeof m};
  CHECK_OK(cape_compare_graphs(&m, same, chain));
  CHECK(m.shd == 0 && m.correct == 2 && m.f1 == 1);
  double auprc = 0, auroc = 0;
  CHECK_OK(cape_compare_scores(&auprc, &auroc, &view, chain, NULL)); /* -0.8 scores lowest of all */
  CHECK(auprc > 0 && auprc < 1 && auroc > 0 && auroc < 1);
  cape_dag_free(same);
  cape_dag_free(chain);

  /* h of a 2-cycle of weights a, b: A o A has the eigenvalues +-ab, so tr exp - 2 = 2 cosh(ab) - 2
   * and -log det = -log(1 - (ab)^2); dh/da = 2 b sinh(ab) for the first. */
  const double two[] = {0, 0.6, 0.7, 0};
  const cape_matrix_view cycle = CAPE_MATRIX_VIEW(two, 2, 2);
  double h = 0, gradient[4];
  CHECK_OK(cape_acyclicity(&h, gradient, 2, 2, &cycle, "expm"));
  CHECK_NEAR(h, 2 * cosh(0.42) - 2, 1e-14);
  CHECK_NEAR(gradient[1], 2 * 0.7 * sinh(0.42), 1e-14);
  CHECK_NEAR(gradient[2], 2 * 0.6 * sinh(0.42), 1e-14);
  CHECK_OK(cape_acyclicity(&h, NULL, 0, 0, &cycle, "logdet"));
  CHECK_NEAR(h, -log(1 - 0.42 * 0.42), 1e-14);
}

/* Two rows on the hyperboloid, (cosh r, sinh r, 0) for r = 0.5 and 2: distances are differences. */
static void geometry(void) {
  const double p[] = {cosh(0.5), cosh(2), sinh(0.5), sinh(2), 0, 0};
  const double origin[] = {1, 1, 0, 0, 0, 0};
  const cape_matrix_view points = CAPE_MATRIX_VIEW(p, 2, 3);
  const cape_matrix_view origins = CAPE_MATRIX_VIEW(origin, 2, 3);
  double d[4], v[6], back[6], e[4], q[6];
  CHECK_OK(cape_lorentz_distances(d, 2, 2, &points, &points));
  CHECK_NEAR(d[0 * 2 + 1], 1.5, 1e-13);
  CHECK(d[0] == 0 && d[3] == 0);
  CHECK_OK(cape_lorentz_log(v, 2, 3, &origins, &points)); /* (0, r, 0) */
  CHECK_NEAR(v[2], 0.5, 1e-13);
  CHECK_NEAR(v[3], 2, 1e-13);
  const cape_matrix_view tangents = CAPE_MATRIX_VIEW(v, 2, 3);
  CHECK_OK(cape_lorentz_exp(back, 2, 3, &origins, &tangents));
  for (int i = 0; i < 6; ++i) CHECK_NEAR(back[i], p[i], 1e-12);
  CHECK_OK(cape_lorentz_project_tangent(back, 2, 3, &origins, &points));
  CHECK(back[0] == 0 && back[1] == 0); /* at the origin the time-like part goes */
  CHECK_NEAR(back[3], sinh(2), 1e-13);
  /* Along its own geodesic a tangent (0, r, 0) turns into r (sinh r, cosh r, 0). */
  CHECK_OK(cape_lorentz_transport(back, 2, 3, &origins, &points, &tangents));
  CHECK_NEAR(back[1], 2 * sinh(2), 1e-11);
  CHECK_NEAR(back[3], 2 * cosh(2), 1e-11);

  CHECK_OK(cape_lorentz_to_poincare(e, 2, 2, &points)); /* tanh(r / 2) */
  CHECK_NEAR(e[0], tanh(0.25), 1e-14);
  CHECK_NEAR(e[1], tanh(1), 1e-14);
  const cape_matrix_view ball = CAPE_MATRIX_VIEW(e, 2, 2);
  CHECK_OK(cape_poincare_to_lorentz(q, 2, 3, &ball));
  for (int i = 0; i < 6; ++i) CHECK_NEAR(q[i], p[i], 1e-12);
  CHECK_OK(cape_poincare_distances(d, 2, 2, &ball, &ball));
  CHECK_NEAR(d[0 * 2 + 1], 1.5, 1e-12);
}

static void rotary(void) {
  const double v[] = {1, 0, 0, 2}; /* one row: pairs (1, 0) and (0, 2) */
  const double angles[] = {pi / 2, pi};
  const cape_matrix_view view = CAPE_MATRIX_VIEW(v, 1, 4), phi = CAPE_MATRIX_VIEW(angles, 1, 2);
  double r[4], back[4];
  CHECK_OK(cape_rotate(r, 1, 4, &view, &phi));
  CHECK_NEAR(r[0], 0, 1e-15);
  CHECK_NEAR(r[1], 1, 1e-15);
  CHECK_NEAR(r[2], 0, 1e-15);
  CHECK_NEAR(r[3], -2, 1e-15);
  const cape_matrix_view rotated = CAPE_MATRIX_VIEW(r, 1, 4);
  CHECK_OK(cape_rotate_back(back, 1, 4, &rotated, &phi));
  for (int i = 0; i < 4; ++i) CHECK_NEAR(back[i], v[i], 1e-15);
  /* R(phi) v = (0, 1, 0, -2): d/dphi_1 of its first element is -1, d/dphi_2 of its third is 2. */
  const double d_r[] = {1, 0, 1, 0};
  const cape_matrix_view d_rotated = CAPE_MATRIX_VIEW(d_r, 1, 4);
  double d_phi[2];
  CHECK_OK(cape_rotate_angle_gradient(d_phi, 1, 2, &view, &phi, &d_rotated));
  CHECK_NEAR(d_phi[0], -1, 1e-15);
  CHECK_NEAR(d_phi[1], 2, 1e-15);

  const double same[] = {0.3, -0.2};
  const cape_matrix_view at = CAPE_MATRIX_VIEW(same, 1, 2);
  double score = 0, upper = 0, lower = 0;
  CHECK_OK(cape_rotary_scores(&score, &upper, &lower, 1, &view, &view, &at, &at));
  CHECK_NEAR(score, 5, 1e-14); /* no relative angle: the plain inner product */
  CHECK(lower <= score && score <= upper && lower == -upper);
}

/* A query of one pair and itself: alpha = 1, beta = 0. */
static void theory(void) {
  const double q[] = {1, 0}, zero[] = {0}, noise[] = {0.3}, covariance[] = {2, 0, 0, 3};
  const cape_matrix_view query = CAPE_MATRIX_VIEW(q, 1, 2), at = CAPE_MATRIX_VIEW(zero, 1, 1),
                         sd = CAPE_MATRIX_VIEW(noise, 1, 1),
                         square = CAPE_MATRIX_VIEW(covariance, 2, 2);
  double amplitude = 0, offset = 1;
  CHECK_OK(cape_score_envelopes(&amplitude, &offset, 1, &query, &query));
  CHECK(amplitude == 1 && offset == 0);
  /* From the origin to tanh(1/2), which is 1 away. */
  const double distance[] = {1}, origin[] = {0}, norm[] = {tanh(0.5)};
  double upper = 0, by_distance = 1, by_generality = 1, limit = 0;
  CHECK_OK(cape_envelope_at(&upper, &by_distance, &by_generality, &limit, 1, amplitude, offset, 1,
                            distance, origin, norm, pi / 4));
  CHECK_NEAR(upper, cos(pi / 4 * tanh(0.5)), 1e-14);
  CHECK_NEAR(limit, upper, 1e-14);
  CHECK(by_distance < 0 && by_generality == 0);
  double mean = 0, accuracy = 0, margin = 0, second = 0, bound = 0, bias[2];
  CHECK_OK(cape_expected_scores(&mean, 1, &query, &query, &at, &at, &sd, &sd));
  CHECK_NEAR(mean, exp(-0.09), 1e-14);
  CHECK_OK(cape_approximation_accuracy(&accuracy, 0.3, 0.3));
  CHECK_NEAR(accuracy, exp(-0.09), 1e-14);
  CHECK_OK(cape_expected_margin(&margin, &square, zero, zero, 1));
  CHECK_NEAR(margin, 5, 1e-14);
  CHECK_OK(cape_mean_square_product(&second, &query, &query));
  CHECK(second == 1);
  CHECK_OK(cape_hoeffding_bound(&bound, 1, 80, second));
  CHECK_NEAR(bound, 2 * exp(-10), 1e-14);
  cape_options* options = NULL;
  CHECK_OK(cape_options_new(&options));
  CHECK_OK(cape_average_bias(bias, 2, &query, &query, zero, zero, 1, 0.3, 2000, options));
  CHECK_NEAR(bias[0], exp(-0.09) - 1, 0.02);
  CHECK(bias[0] != bias[1]);
  cape_options_free(options);

  const int64_t from[] = {0}, to[] = {1};
  const double weight[] = {1}, apart[] = {0, 1, 1, 0}, radius[] = {0, 1};
  const cape_matrix_view distances = CAPE_MATRIX_VIEW(apart, 2, 2);
  cape_dag* dag = NULL;
  double closer = 0, precision = 0;
  CHECK_OK(cape_dag_from_edges(&dag, 2, from, to, weight, 1));
  CHECK_OK(
      cape_compare_embedding(NULL, NULL, &closer, NULL, &precision, dag, &distances, radius, 2,
                             NULL));
  CHECK(closer == 1 && precision == 1);
  cape_dag_free(dag);
}

/* One query, two keys, the values (1, 0) and (0, 1): the output is the softmax itself. */
static void attention(void) {
  const double q[] = {1, 2}, k[] = {1, 0, 0, 1}, v[] = {1, 0, 0, 1};
  const float q_f32[] = {1, 2}, k_f32[] = {1, 0, 0, 1}, v_f32[] = {1, 0, 0, 1};
  const double s0 = 1 / sqrt(2), s1 = 2 / sqrt(2), sum = exp(s0) + exp(s1);
  const cape_attention_shape shape = CAPE_ATTENTION_SHAPE(1, 1, 1, 2, 2);
  double out[2], lse, scores[2];
  float out_f32[2];
  CHECK_OK(cape_attention(out, &lse, &shape, q, k, v, NULL, NULL, NULL, NULL));
  CHECK_NEAR(out[0], exp(s0) / sum, 1e-14);
  CHECK_NEAR(out[1], exp(s1) / sum, 1e-14);
  CHECK_NEAR(lse, log(sum), 1e-14);
  CHECK_OK(cape_attention_f32(out_f32, NULL, &shape, q_f32, k_f32, v_f32, NULL, NULL, NULL, NULL));
  CHECK_NEAR(out_f32[0], exp(s0) / sum, 1e-6);
  const uint8_t mask[] = {1, 0};
  CHECK_OK(cape_attention_scores(scores, &shape, q, k, NULL, NULL, mask, NULL));
  CHECK_NEAR(scores[0], s0, 1e-15);
  CHECK(scores[1] == -INFINITY);

  /* A quarter turn of the query makes it (-2, 1). */
  const double q_angles[] = {pi / 2}, k_angles[] = {0, 0};
  CHECK_OK(cape_attention_scores(scores, &shape, q, k, q_angles, k_angles, NULL, NULL));
  CHECK_NEAR(scores[0], -2 / sqrt(2), 1e-15);
  CHECK_NEAR(scores[1], 1 / sqrt(2), 1e-15);

  /* d out[0] / d v[0] is the weight of key 0; the gradient of q by central differences. */
  const double d_out[] = {1, 0};
  double dq[2], dk[4], dv[4];
  CHECK_OK(cape_attention_backward(dq, dk, dv, NULL, NULL, &shape, q, k, v, NULL, NULL, NULL, out,
                                   &lse, d_out, NULL));
  CHECK_NEAR(dv[0], out[0], 1e-14);
  CHECK_NEAR(dv[2], out[1], 1e-14);
  for (int i = 0; i < 2; ++i) {
    const double step = 1e-6;
    double up[] = {q[0], q[1]}, down[] = {q[0], q[1]}, out_up[2], out_down[2];
    up[i] += step;
    down[i] -= step;
    CHECK_OK(cape_attention(out_up, NULL, &shape, up, k, v, NULL, NULL, NULL, NULL));
    CHECK_OK(cape_attention(out_down, NULL, &shape, down, k, v, NULL, NULL, NULL, NULL));
    CHECK_NEAR(dq[i], (out_up[0] - out_down[0]) / (2 * step), 1e-9);
  }

  /* The gradient of a bias, in both types: d out[0] / d bias[j] = w_j (v_j - out[0]). */
  const double bias[] = {0.3, -0.2};
  double d_bias[2];
  cape_attention_shape biased = shape;
  biased.bias = bias;
  biased.d_bias = d_bias;
  CHECK_OK(cape_attention(out, &lse, &biased, q, k, v, NULL, NULL, NULL, NULL));
  CHECK_OK(cape_attention_backward(NULL, NULL, NULL, NULL, NULL, &biased, q, k, v, NULL, NULL, NULL,
                                   out, &lse, d_out, NULL));
  float out_f[2], lse_f, bias_f[2], d_bias_f[2], q_f[2], k_f[4], v_f[4], d_out_f[] = {1, 0};
  for (int i = 0; i < 2; ++i) bias_f[i] = (float)bias[i], q_f[i] = (float)q[i];
  for (int i = 0; i < 4; ++i) k_f[i] = (float)k[i], v_f[i] = (float)v[i];
  cape_attention_shape biased_f = biased;
  biased_f.bias = bias_f;
  biased_f.d_bias = d_bias_f;
  CHECK_OK(cape_attention_f32(out_f, &lse_f, &biased_f, q_f, k_f, v_f, NULL, NULL, NULL, NULL));
  CHECK_OK(cape_attention_backward_f32(NULL, NULL, NULL, NULL, NULL, &biased_f, q_f, k_f, v_f, NULL,
                                       NULL, NULL, out_f, &lse_f, d_out_f, NULL));
  CHECK_OK(cape_attention_scores(scores, &biased, q, k, NULL, NULL, NULL, NULL));
  const double w0 = 1 / (1 + exp(scores[1] - scores[0]));
  CHECK_NEAR(d_bias[0], w0 * (v[0] - out[0]), 1e-14);
  CHECK_NEAR(d_bias[1], (1 - w0) * (v[2] - out[0]), 1e-14);
  for (int i = 0; i < 2; ++i) CHECK_NEAR(d_bias_f[i], d_bias[i], 1e-6);
  /* An older client's shape ends before the member, which is then not looked at. */
  biased.struct_size = offsetof(cape_attention_shape, d_bias);
  biased.d_bias = (void*)1;
  CHECK_OK(cape_attention_backward(dq, dk, dv, NULL, NULL, &biased, q, k, v, NULL, NULL, NULL, out,
                                   &lse, d_out, NULL));
}

/* The same keys again, with a bias, with gaps, and by features. */
static void attention_extended(void) {
  const double q[] = {1, 2}, k[] = {1, 0, 0, 1}, v[] = {1, 0, 0, 1};
  const float q_f32[] = {1, 2}, k_f32[] = {1, 0, 0, 1}, v_f32[] = {1, 0, 0, 1};
  const double s0 = 1 / sqrt(2), s1 = 2 / sqrt(2);
  double out[2], plain[2];
  float out_f32[2];
  cape_attention_shape shape = CAPE_ATTENTION_SHAPE(1, 1, 1, 2, 2);
  CHECK_OK(cape_attention(plain, NULL, &shape, q, k, v, NULL, NULL, NULL, NULL));
  const double bias[] = {0.5, 0};
  const float bias_f32[] = {-INFINITY, 0};
  shape.bias = bias;
  CHECK_OK(cape_attention(out, NULL, &shape, q, k, v, NULL, NULL, NULL, NULL));
  CHECK_NEAR(out[0], exp(s0 + 0.5) / (exp(s0 + 0.5) + exp(s1)), 1e-14);
  shape.bias = bias_f32;
  CHECK_OK(cape_attention_f32(out_f32, NULL, &shape, q_f32, k_f32, v_f32, NULL, NULL, NULL, NULL));
  CHECK(out_f32[0] == 0 && out_f32[1] == 1);
  shape.bias = NULL;

  /* Keys and values side by side. */
  const double joint[] = {1, 0, 1, 0, 0, 1, 0, 1};
  shape.k_stride = shape.v_stride = 4;
  CHECK_OK(cape_attention(out, NULL, &shape, q, joint, joint + 2, NULL, NULL, NULL, NULL));
  CHECK(out[0] == plain[0] && out[1] == plain[1]);
  shape.k_stride = 1;
  CHECK_ERROR(cape_attention(out, NULL, &shape, q, k, v, NULL, NULL, NULL, NULL),
              CAPE_INVALID_ARGUMENT, "k_stride is 1");
  shape.k_stride = shape.v_stride = 0;

  double forward = 0, backward = 0, forward_f32 = 0;
  CHECK_OK(cape_attention_workspace(&forward, &backward, &shape, NULL));
  CHECK_OK(cape_attention_workspace_f32(&forward_f32, NULL, &shape, NULL));
  CHECK(forward > 0 && backward > 0 && forward_f32 > 0 && forward_f32 < 1.5 * forward);
  shape.heads = 0;
  CHECK_ERROR(cape_attention_workspace(&forward, NULL, &shape, NULL), CAPE_INVALID_ARGUMENT,
              "heads is 0");
  shape.heads = 1;

  /* Many features come near; another draw is another estimate; both types draw the same. */
  double other[2];
  CHECK_OK(cape_linear_attention(out, &shape, 20000, 0, q, k, v, NULL, NULL, NULL, NULL));
  CHECK_NEAR(out[0], plain[0], 0.03);
  CHECK_OK(cape_linear_attention(other, &shape, 20000, 1, q, k, v, NULL, NULL, NULL, NULL));
  CHECK_NEAR(other[0], plain[0], 0.03);
  CHECK(other[0] != out[0]);
  CHECK_OK(cape_linear_attention_f32(out_f32, &shape, 20000, 0, q_f32, k_f32, v_f32, NULL, NULL,
                                     NULL, NULL));
  CHECK_NEAR(out_f32[0], out[0], 1e-4);
  CHECK_ERROR(cape_linear_attention(out, &shape, 0, 0, q, k, v, NULL, NULL, NULL, NULL),
              CAPE_INVALID_ARGUMENT, "features is 0");
  CHECK_NULL(cape_linear_attention(NULL, &shape, 4, 0, q, k, v, NULL, NULL, NULL, NULL), "out");
  CHECK_NULL(cape_linear_attention(out, NULL, 4, 0, q, k, v, NULL, NULL, NULL, NULL), "shape");

  /* The gradient of q[0] and of an angle by central differences. */
  const double d_out[] = {1, -0.5}, step = 1e-6, k_angles[] = {0, 0.3};
  double dq[2], dk[4], dv[4], dq_angles[1], dk_angles[2], ends[2];
  const double phi[] = {0.4};
  CHECK_OK(cape_linear_attention_backward(dq, dk, dv, dq_angles, dk_angles, &shape, 8, 0, q, k, v,
                                          phi, k_angles, NULL, d_out, NULL));
  for (int i = 0; i < 2; ++i) { /* q[0], then phi */
    for (int side = 0; side < 2; ++side) {
      const double h = side ? step : -step;
      const double moved[] = {q[0] + (i == 0 ? h : 0), q[1]}, angle[] = {phi[0] + (i == 1 ? h : 0)};
      CHECK_OK(cape_linear_attention(out, &shape, 8, 0, moved, k, v, angle, k_angles, NULL, NULL));
      ends[side] = d_out[0] * out[0] + d_out[1] * out[1];
    }
    CHECK_NEAR((ends[1] - ends[0]) / (2 * step), i == 0 ? dq[0] : dq_angles[0], 1e-8);
  }
  const float d_out_f32[] = {1, -0.5f};
  float dv_f32[4];
  CHECK_OK(cape_linear_attention_backward(NULL, NULL, dv, NULL, NULL, &shape, 8, 0, q, k, v, NULL,
                                          NULL, NULL, d_out, NULL));
  CHECK_OK(cape_linear_attention_backward_f32(NULL, NULL, dv_f32, NULL, NULL, &shape, 8, 0, q_f32,
                                              k_f32, v_f32, NULL, NULL, NULL, d_out_f32, NULL));
  CHECK_NEAR(dv_f32[0], dv[0], 1e-5);
  CHECK_NULL(cape_linear_attention_backward(dq, NULL, NULL, NULL, NULL, &shape, 8, 0, q, k, v, NULL,
                                            NULL, NULL, NULL, NULL),
             "d_out");
}

/* Counts, dense and sparse alike: cells x features from both compressed forms. */
static void preprocessing(void) {
  /* 3 cells x 2 features: (1, 3), (0, 2), (5, 0). */
  const double dense[] = {1, 0, 5, 3, 2, 0};
  const double by_row[] = {1, 3, 2, 5}, by_column[] = {1, 5, 3, 2};
  const int32_t columns[] = {0, 1, 1, 0}, rows[] = {0, 2, 0, 1};
  const int64_t row_offsets[] = {0, 2, 3, 4}, column_offsets[] = {0, 2, 4};
  const cape_matrix_view x = CAPE_MATRIX_VIEW(dense, 3, 2);
  const cape_sparse_view csr =
      CAPE_SPARSE_VIEW(by_row, columns, row_offsets, 3, 2, CAPE_ROW_MAJOR);
  const cape_sparse_view csc =
      CAPE_SPARSE_VIEW(by_column, rows, column_offsets, 3, 2, CAPE_COL_MAJOR);
  cape_options* o = NULL;
  CHECK_OK(cape_options_new(&o));
  CHECK_OK(cape_options_set_i64(o, "preprocess.min_features", 1));
  CHECK_OK(cape_options_set_i64(o, "preprocess.min_cells", 1));
  cape_table* tables[3] = {NULL};
  CHECK_OK(cape_preprocess(&tables[0], &x, o));
  CHECK_OK(cape_preprocess_sparse(&tables[1], &csr, o));
  CHECK_OK(cape_preprocess_sparse(&tables[2], &csc, o));
  for (int i = 0; i < 3; ++i) {
    double values[6] = {0};
    int64_t kept_rows[3] = {-1, -1, -1}, kept_cols[2] = {-1, -1};
    CHECK_OK(cape_table_values(values, 3, 2, tables[i]));
    CHECK_OK(cape_table_rows(kept_rows, 3, tables[i]));
    CHECK_OK(cape_table_cols(kept_cols, 2, tables[i]));
    CHECK_NEAR(values[0], log1p(1e4 * 1 / 4), 1e-12); /* log(1 + 10000 count / library size) */
    CHECK_NEAR(values[3], log1p(1e4 * 3 / 4), 1e-12);
    CHECK_NEAR(values[2], log1p(1e4), 1e-12);
    CHECK(values[1] == 0 && kept_rows[2] == 2 && kept_cols[1] == 1);
    cape_table_free(tables[i]);
  }
  int64_t top = -1; /* variances: 7 (1, 0, 5) and 2.33 (3, 2, 0) */
  CHECK_OK(cape_most_variable(&top, 1, &x));
  CHECK(top == 0);
  top = -1;
  CHECK_OK(cape_most_variable_sparse(&top, 1, &csr));
  CHECK(top == 0);

  /* Offsets and indices that lie are found before they are followed. */
  const int64_t falling[] = {0, 3, 2, 4}, beyond[] = {0, 2, 3, 400};
  const int32_t outside[] = {0, 2, 1, 0};
  cape_sparse_view bad = csr;
  cape_table* t = NULL;
  bad.offsets = falling;
  CHECK_ERROR(cape_preprocess_sparse(&t, &bad, o), CAPE_INVALID_ARGUMENT, "offsets");
  bad.offsets = beyond;
  CHECK_ERROR(cape_preprocess_sparse(&t, &bad, o), CAPE_INVALID_ARGUMENT, "offsets");
  bad.offsets = row_offsets;
  bad.indices = outside;
  CHECK_ERROR(cape_preprocess_sparse(&t, &bad, o), CAPE_INVALID_ARGUMENT, "indices");
  bad.indices = NULL;
  CHECK_ERROR(cape_preprocess_sparse(&t, &bad, o), CAPE_INVALID_ARGUMENT, "indices");
  cape_options_free(o);
}

static void simulation(void) {
  cape_options* o = NULL;
  CHECK_OK(cape_options_new(&o));
  cape_dag *first = NULL, *second = NULL, *other = NULL;
  CHECK_OK(cape_simulate_dag(&first, 12, o));
  CHECK_OK(cape_simulate_dag(&second, 12, o));
  CHECK_OK(cape_options_set_i64(o, "run.seed", 2));
  CHECK_OK(cape_simulate_dag(&other, 12, o));
  cape_graph_metrics m = {.struct_size = sizeof m};
  CHECK_OK(cape_compare_graphs(&m, second, first));
  CHECK(m.shd == 0 && m.true_edges > 0); /* same seed, same graph */
  CHECK_OK(cape_compare_graphs(&m, other, first));
  CHECK(m.shd > 0);
  double x[40 * 12], counts[40 * 12];
  CHECK_OK(cape_simulate_data(x, 40, 12, first, o));
  const cape_matrix_view view = CAPE_MATRIX_VIEW(x, 40, 12);
  CHECK_OK(cape_simulate_counts(counts, 40, 12, &view, 5, 0.2, o));
  double sum = 0;
  for (int i = 0; i < 40 * 12; ++i) {
    CHECK(isfinite(x[i]) && counts[i] >= 0 && counts[i] == floor(counts[i]));
    sum += counts[i];
  }
  CHECK(sum / (40 * 12) > 2.5 && sum / (40 * 12) < 10); /* about 5 */
  cape_dag_free(first);
  cape_dag_free(second);
  cape_dag_free(other);
  cape_options_free(o);
}

/* y is twice x and noise; w is noise. Tests keep x -> y, weaker than w -> y, or stronger. */
static void threshold(void) {
  enum { N = 200 };
  static double x[3 * N];
  unsigned state = 1;
  for (int e = 0; e < 3 * N; ++e) { /* Lehmer's generator: uniform on (-1, 1) */
    state = (unsigned)((unsigned long long)state * 48271 % 2147483647);
    x[e] = state / 1073741823.5 - 1;
  }
  for (int i = 0; i < N; ++i) x[N + i] += 2 * x[i];
  const cape_matrix_view table = CAPE_MATRIX_VIEW(x, N, 3);
  cape_options* options;
  CHECK_OK(cape_options_new(&options));
  CHECK_OK(cape_options_set_str(options, "dag.sem", "linear"));
  const int64_t from[] = {0, 2}, to[] = {1, 1};
  const double weight[] = {0.4, 0.1}, swapped[] = {0.1, 0.4};
  cape_dag* dag;
  cape_threshold_suggestion s = {.struct_size = sizeof s};
  CHECK_OK(cape_dag_from_edges(&dag, 3, from, to, weight, 2));
  CHECK_OK(cape_dag_suggest_threshold(&s, dag, &table, options));
  CHECK_NEAR(s.threshold, 0.2, 1e-12); /* the geometric mean */
  CHECK(s.n_effects == 3 && s.n_causes == 1 && s.n_differing == 0);
  cape_dag_free(dag);
  CHECK_OK(cape_dag_from_edges(&dag, 3, from, to, swapped, 2));
  CHECK_OK(cape_dag_suggest_threshold(&s, dag, &table, options));
  CHECK(s.n_causes == 1 && s.n_differing == 1); /* none, or both, of the edges */
  cape_dag_free(dag);

  CHECK_OK(cape_dag_learn(&dag, &table, options)); /* few columns: refined, no suggestion */
  CHECK_OK(cape_dag_suggestion(&s, dag));
  CHECK(s.n_effects == 0);
  cape_dag_free(dag);
  cape_options_free(options);
}

static void clustering(void) {
  const int64_t a[] = {0, 0, 1, 1}, b[] = {5, 5, 2, 2};
  const double points[] = {0, 0, 10, 10};
  const cape_matrix_view x = CAPE_MATRIX_VIEW(points, 4, 1);
  double ari = 0, nmi = 0, width = 0;
  CHECK_OK(cape_compare_labels(&ari, &nmi, a, b, 4));
  CHECK_NEAR(ari, 1, 1e-14);
  CHECK_NEAR(nmi, 1, 1e-14);
  CHECK_OK(cape_silhouette(&width, &x, a, 4, NULL)); /* distance 0 inside, 10 outside */
  CHECK_NEAR(width, 1, 1e-14);
}

/* The cause of an edge is nearer the origin than its effect, or it is said that it is not. */
static void order_of_radii(void) {
  const int64_t from[] = {0, 1, 2, 2}, to[] = {1, 2, 0, 3};
  const double weight[] = {1, 1, 1, 1};
  cape_options* o = quick_options();
  for (int64_t n_edges = 2; n_edges <= 4; n_edges += 2) {
    cape_dag* dag = NULL;
    cape_embedding* embedding = NULL;
    cape_embedding_info info = {.struct_size = sizeof info};
    const char* text = NULL;
    double r[4];
    CHECK_OK(cape_dag_from_edges(&dag, 4, from, to, weight, n_edges));
    CHECK_OK(cape_embedding_fit(&embedding, dag, o));
    CHECK_OK(cape_embedding_describe(&info, embedding));
    CHECK_OK(cape_embedding_nodes(NULL, r, NULL, 4, embedding));
    int64_t against = 0;
    for (int64_t e = 0; e < n_edges; ++e) against += !(r[from[e]] < r[to[e]]);
    CHECK(info.n_out_of_order == against);
    CHECK((against > 0) == (n_edges == 4)); /* with a cycle */
    CHECK(info.n_warnings == (against > 0));
    if (info.n_warnings > 0) {
      CHECK_OK(cape_embedding_warning(&text, embedding, 0));
      CHECK(text != NULL && strstr(text, "of 4 edges") != NULL);
    }
    CHECK_ERROR(cape_embedding_warning(&text, embedding, info.n_warnings), CAPE_INVALID_ARGUMENT,
                "index");
    CHECK(text == NULL);
    cape_embedding_free(embedding);
    cape_dag_free(dag);
  }
  cape_options_free(o);
}

int main(void) {
  graphs();
  order_of_radii();
  geometry();
  rotary();
  theory();
  attention();
  attention_extended();
  preprocessing();
  simulation();
  clustering();
  threshold();
  return n_failed != 0;
}
