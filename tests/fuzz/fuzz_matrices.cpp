// What takes matrices and computes at once: rotation, theory, geometry, preprocessing, evaluation,
// graphs.
#include "matrix.hpp"

using fuzz::Input;
using fuzz::Matrix;
using fuzz::Output;

namespace {

using Numbers = std::vector<double>;

void rotation(Input& in, std::int64_t n, std::int64_t d) {
  const Matrix v(in, n, 2 * d), angles(in, n, d), gradient(in, n, 2 * d);
  Output out(in, n, 2 * d), d_angles(in, n, d);
  FINITE(out.values, cape_rotate, out.data(), out.rows, out.cols, &v.view, &angles.view);
  FINITE(out.values, cape_rotate_back, out.data(), out.rows, out.cols, &v.view, &angles.view);
  FINITE(d_angles.values, cape_rotate_angle_gradient, d_angles.data(), d_angles.rows, d_angles.cols,
         &v.view, &angles.view, &gradient.view);
}

void scores(Input& in, std::int64_t n, std::int64_t d) {
  const Matrix q(in, n, 2 * d), k(in, n, 2 * d), m(in, n, d), other(in, n, d), sd(in, n, d);
  const auto size = static_cast<std::size_t>(n);
  Numbers score(size), upper(size), lower(size);
  if (CALL(cape_rotary_scores, score.data(), upper.data(), lower.data(), n, &q.view, &k.view,
           &m.view, &other.view))
    for (const Numbers* x : {&score, &upper, &lower}) fuzz::finite(*x, "cape_rotary_scores");
  if (CALL(cape_score_envelopes, upper.data(), lower.data(), n, &q.view, &k.view))
    for (const Numbers* x : {&upper, &lower}) fuzz::finite(*x, "cape_score_envelopes");
  FINITE(score, cape_expected_scores, score.data(), n, &q.view, &k.view, &m.view, &other.view,
         &sd.view, &sd.view);
  double mean[1] = {};
  FINITE(mean, cape_mean_square_product, mean, &q.view, &k.view);
}

void bounds(Input& in, std::int64_t n, std::int64_t d) {
  const auto size = static_cast<std::size_t>(n);
  Numbers distance(size), a(size), b(size), upper(size), slope(size), generality(size), limit(size);
  for (std::size_t i = 0; i < size; ++i) {
    a[i] = std::fabs(in.mostly_ordinary());
    b[i] = std::fabs(in.mostly_ordinary());
    if (in.flip()) a[i] = std::fmod(a[i], 1), b[i] = std::fmod(b[i], 1);
    const double farthest = 2 * (std::atanh(std::fmin(a[i], 1)) + std::atanh(std::fmin(b[i], 1)));
    distance[i] =
        in.one_in(8) ? std::fabs(in.number()) : farthest * static_cast<double>(in.in(0, 255)) / 255;
  }
  const double amplitude = in.number(), offset = in.number(), scale = in.flip() ? 0.7 : in.number();
  if (CALL(cape_envelope_at, upper.data(), slope.data(), generality.data(), limit.data(), n,
           amplitude, offset, in.in(-1, 9), distance.data(), a.data(), b.data(), scale))
    for (const Numbers* x : {&upper, &slope, &generality, &limit})
      fuzz::finite(*x, "cape_envelope_at");
  double out[1] = {};
  const double first = in.number(), second = in.number();
  FINITE(out, cape_approximation_accuracy, out, first, second);
  FINITE(out, cape_hoeffding_bound, out, first, in.integer(), second);
  const Matrix covariance(in, 2 * d, 2 * d);
  const Numbers phi = in.numbers(d), psi = in.numbers(d);
  FINITE(out, cape_expected_margin, out, &covariance.view, phi.data(), psi.data(), d);
}

void bias(Input& in, std::int64_t n, std::int64_t d, const cape_options* options) {
  const Matrix q(in, in.flip() ? 1 : n, 2 * d), k(in, in.flip() ? 1 : n, 2 * d);
  const Numbers phi = in.numbers(d), psi = in.numbers(d);
  Numbers out(static_cast<std::size_t>(in.in(0, 4)));
  const double sd = std::fabs(in.mostly_ordinary());
  FINITE(out, cape_average_bias, out.data(), static_cast<std::int64_t>(out.size()), &q.view,
         &k.view, phi.data(), psi.data(), d, sd, in.in(-1, 6), options);
}

void geometry(Input& in, std::int64_t n, std::int64_t d) {
  Matrix ball(in, n, d), other(in, n, d);
  const Matrix vectors(in, n, d + 1);
  if (in.flip()) ball.shrink(0.4), other.shrink(0.4);
  Output pairs(in, n, n), points(in, n, d + 1), tangents(in, n, d + 1), far(in, n, d + 1),
      back(in, n, d);
  FINITE(pairs.values, cape_poincare_distances, pairs.data(), pairs.rows, pairs.cols, &ball.view,
         &other.view);
  FINITE(far.values, cape_lorentz_log, far.data(), far.rows, far.cols, &vectors.view,
         &vectors.view);
  if (!CALL(cape_poincare_to_lorentz, points.data(), points.rows, points.cols, &ball.view)) return;
  fuzz::finite(points.values, "cape_poincare_to_lorentz");
  const cape_matrix_view p = points.view();
  FINITE(pairs.values, cape_lorentz_distances, pairs.data(), pairs.rows, pairs.cols, &p, &p);
  FINITE(back.values, cape_lorentz_to_poincare, back.data(), back.rows, back.cols, &p);
  if (!CALL(cape_lorentz_project_tangent, tangents.data(), tangents.rows, tangents.cols, &p,
            &vectors.view))
    return;
  fuzz::finite(tangents.values, "cape_lorentz_project_tangent");
  const cape_matrix_view v = tangents.view();
  if (!CALL(cape_lorentz_exp, far.data(), far.rows, far.cols, &p, &v)) return;
  fuzz::finite(far.values, "cape_lorentz_exp");
  const cape_matrix_view q = far.view();
  Output out(in, n, d + 1);
  FINITE(out.values, cape_lorentz_log, out.data(), out.rows, out.cols, &p, &q);
  FINITE(out.values, cape_lorentz_transport, out.data(), out.rows, out.cols, &p, &q, &v);
}

void look(cape_table* table) {
  std::int64_t rows = 0, cols = 0;
  MUST(cape_table_size, &rows, &cols, table);
  Numbers values(static_cast<std::size_t>(rows * cols));
  std::vector<std::int64_t> kept(static_cast<std::size_t>(std::max(rows, cols)));
  MUST(cape_table_values, values.data(), rows, cols, table);
  MUST(cape_table_rows, kept.data(), rows, table);
  MUST(cape_table_cols, kept.data(), cols, table);
  fuzz::finite(values, "cape_preprocess");
}

void dense_counts(Input& in, std::int64_t n, std::int64_t m, const cape_options* options) {
  Matrix counts(in, n, m);
  if (in.flip())
    for (double& v : counts.values) v = std::fabs(v);
  cape_table* table = nullptr;
  if (CALL(cape_preprocess, &table, &counts.view, options)) look(table);
  cape_table_free(table);
  std::vector<std::int64_t> chosen(static_cast<std::size_t>(m));
  CALL(cape_most_variable, chosen.data(), in.in(0, m), &counts.view);
  Output out(in, n, m);
  const double mean = in.one_in(8) ? in.number() : 2, dispersion = in.one_in(8) ? in.number() : 0.5;
  FINITE(out.values, cape_simulate_counts, out.data(), out.rows, out.cols, &counts.view,
         std::fmin(mean, 1e3), dispersion, options);
}

void sparse_counts(Input& in, std::int64_t n, std::int64_t m, const cape_options* options) {
  const fuzz::Sparse counts(in, n, m);
  cape_table* table = nullptr;
  if (CALL(cape_preprocess_sparse, &table, &counts.view, options)) look(table);
  cape_table_free(table);
  std::vector<std::int64_t> chosen(static_cast<std::size_t>(m));
  CALL(cape_most_variable_sparse, chosen.data(), in.in(0, m), &counts.view);
}

void labels(Input& in, std::int64_t n, std::int64_t d) {
  const Matrix x(in, n, d);
  const std::vector<std::int64_t> a = in.indices(n, 3), b = in.indices(n, 2);
  double out[2] = {};
  FINITE(out, cape_silhouette, out, &x.view, a.data(), n, nullptr);
  FINITE(out, cape_compare_labels, &out[0], &out[1], a.data(), b.data(), n);
}

void matrix_graph(Input& in, std::int64_t m) {
  Matrix a(in, m, m);
  if (a.view.n_rows == m && a.view.n_cols == m && a.view.ld >= m)
    for (std::int64_t i = 0; i < m && i * a.view.ld + i < std::ssize(a.values); ++i)
      a.values[static_cast<std::size_t>(i * a.view.ld + i)] = 0;
  Numbers h(1), gradient(static_cast<std::size_t>(m * m));
  static constexpr const char* constraints[] = {"expm", "logdet", "x"};
  if (CALL(cape_acyclicity, h.data(), gradient.data(), m, m, &a.view, in.one_of(constraints))) {
    fuzz::finite(h, "cape_acyclicity");
    fuzz::finite(gradient, "cape_acyclicity, gradient");
  }
  cape_dag *graph = nullptr, *pruned = nullptr;
  if (!CALL(cape_dag_from_adjacency, &graph, &a.view)) return;
  const Matrix score(in, m, m), distances(in, m, m);
  double out[5] = {};
  FINITE(out, cape_compare_scores, &out[0], &out[1], &score.view, graph, nullptr);
  const Numbers radius = in.numbers(m);
  FINITE(out, cape_compare_embedding, &out[0], &out[1], &out[2], &out[3], &out[4], graph,
         &distances.view, radius.data(), m, nullptr);
  Numbers rank(static_cast<std::size_t>(m));
  FINITE(rank, cape_pagerank, rank.data(), m, graph, in.flip() ? 0.15 : in.number());
  FINITE(gradient, cape_path_strengths, gradient.data(), m, m, graph);
  std::vector<std::int64_t> order(static_cast<std::size_t>(m));
  CALL(cape_dag_order, order.data(), m, graph);
  if (CALL(cape_dag_prune, &pruned, graph, std::fabs(in.number()), nullptr)) {
    cape_dag_info info{};
    info.struct_size = sizeof info;
    MUST(cape_dag_describe, &info, pruned);
    if (!info.acyclic) fuzz::fail("cape_dag_prune", "a cycle");
    cape_graph_metrics metrics{};
    metrics.struct_size = sizeof metrics;
    MUST(cape_compare_graphs, &metrics, pruned, graph);
    fuzz::finite(std::span(&metrics.tpr, 6), "cape_compare_graphs");
  }
  cape_dag_free(pruned);
  cape_dag_free(graph);
}

void simulated_graph(Input& in, const cape_options* options) {
  static constexpr std::int64_t impossible[] = {std::numeric_limits<std::int64_t>::min(), 0,
                                                std::int64_t{1} << 40,
                                                std::numeric_limits<std::int64_t>::max()};
  cape_dag* graph = nullptr;
  if (CALL(cape_simulate_dag, &graph, in.one_in(4) ? in.one_of(impossible) : in.in(-1, 12),
           options)) {
    cape_dag_info info{};
    info.struct_size = sizeof info;
    MUST(cape_dag_describe, &info, graph);
    Output x(in, in.in(0, 5), info.n_nodes);
    FINITE(x.values, cape_simulate_data, x.data(), x.rows, x.cols, graph, options);
  }
  cape_dag_free(graph);
}

const cape_options* keep_all() {
  static cape_options* const options = [] {
    cape_options* o = nullptr;
    MUST(cape_options_new, &o);
    MUST(cape_options_set_i64, o, "preprocess.min_features", 0);
    MUST(cape_options_set_i64, o, "preprocess.min_cells", 0);
    return o;
  }();
  return options;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input in(data, size);
  const std::int64_t kind = in.in(0, 9), n = in.in(0, 5), m = in.in(0, 6);
  switch (kind) {
  case 0: rotation(in, n, m); break;
  case 1: scores(in, n, m); break;
  case 2: bounds(in, n, m); break;
  case 3: bias(in, n, m, keep_all()); break;
  case 4: geometry(in, n, m); break;
  case 5: dense_counts(in, n, m, keep_all()); break;
  case 6: sparse_counts(in, n, m, keep_all()); break;
  case 7: labels(in, n, m); break;
  case 8: matrix_graph(in, m); break;
  default: simulated_graph(in, keep_all());
  }
  return 0;
}
