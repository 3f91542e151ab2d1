// Step II: the embedding, and hyperbolic geometry on the rows of matrices.
#include <array>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "handle.hpp"

using namespace cape::capi;
namespace lorentz = cape::lorentz;
namespace poincare = cape::poincare;

namespace {

// Points and tangents are let off this much, relative to their size.
constexpr double tolerance = 1e-6;

std::string place(std::string_view name, int64_t i) {
  return "row " + std::to_string(i + 1) + " of " + std::string(name) + " (counted from 1)";
}

cape::MatrixView finite_view(const cape_matrix_view* m, std::string_view name) {
  const cape::MatrixView view = view_of(m, name);
  check_finite(view, name);
  return view;
}

// <p,v>_L, which may leave the range of double: what does is refused by the caller, with its row.
double product(const std::vector<double>& p, const std::vector<double>& v) {
  double sum = -p[0] * v[0];
  for (std::size_t k = 1; k < p.size(); ++k) sum += p[k] * v[k];
  return sum;
}

// A matrix whose rows are points of the hyperboloid.
cape::MatrixView hyperboloid_view(const cape_matrix_view* m, std::string_view name) {
  const cape::MatrixView view = finite_view(m, name);
  if (view.cols < 2)
    throw cape::Error(cape::Status::dim_mismatch,
                      std::string(name) + " has " + std::to_string(view.cols) +
                          " columns; points of the hyperboloid have at least 2 coordinates");
  for (int64_t i = 0; i < view.rows; ++i) {
    const std::vector<double> p = row_of(view, i);
    const double norm = product(p, p);
    if (!(p[0] > 0 && std::abs(norm + 1) <= tolerance * p[0] * p[0]))
      throw cape::Error(cape::Status::invalid_argument,
                        place(name, i) + " is not on the hyperboloid: <p,p> is " +
                            cape::message(norm) + " with p0 = " + cape::message(p[0]) +
                            "; it must be -1 with p0 > 0");
  }
  return view;
}

// A matrix whose rows are points of the open unit ball.
cape::MatrixView ball_view(const cape_matrix_view* m, std::string_view name) {
  const cape::MatrixView view = finite_view(m, name);
  if (view.cols < 1)
    throw cape::Error(cape::Status::dim_mismatch,
                      std::string(name) + " has 0 columns; points of the ball have at least 1");
  for (int64_t i = 0; i < view.rows; ++i) {
    double norm = 0;
    for (double e : row_of(view, i)) norm += e * e;
    if (!(norm < 1))
      throw cape::Error(cape::Status::invalid_argument,
                        place(name, i) + " has the norm " + cape::message(std::sqrt(norm)) +
                            "; points of the ball have a norm below 1");
  }
  return view;
}

void check_same_shape(const cape::MatrixView& given, const cape::MatrixView& right,
                      std::string_view name) {
  if (given.rows != right.rows || given.cols != right.cols)
    throw cape::Error(cape::Status::dim_mismatch,
                      std::string(name) + " is " + std::to_string(given.rows) + " x " +
                          std::to_string(given.cols) + "; it must be " +
                          std::to_string(right.rows) + " x " + std::to_string(right.cols));
}

void check_same_dimension(const cape::MatrixView& a, const cape::MatrixView& b) {
  if (a.cols != b.cols)
    throw cape::Error(cape::Status::dim_mismatch, "b has " + std::to_string(b.cols) +
                                                      " columns; it must have " +
                                                      std::to_string(a.cols) + ", as a has");
}

void check_tangents(const cape::MatrixView& points, const cape::MatrixView& vectors,
                    std::string_view name) {
  check_same_shape(vectors, points, name);
  for (int64_t i = 0; i < points.rows; ++i) {
    const std::vector<double> p = row_of(points, i), v = row_of(vectors, i);
    double size = 0;
    for (double x : v) size = std::fmax(size, std::abs(x));
    const double along = product(p, v);
    if (!(std::abs(along) <= tolerance * p[0] * size))
      throw cape::Error(cape::Status::invalid_argument,
                        place(name, i) + " is not tangent at its point: <p,v> is " +
                            cape::message(along) +
                            "; it must be 0 (cape_lorentz_project_tangent makes it so)");
  }
}

// Row i of out: f(rows i of the inputs..., the row of `width` elements to fill).
template <class F, class... Views>
void by_row(double* out, int64_t n_rows, int64_t n_cols, int64_t width, F f,
            const cape::MatrixView& first, const Views&... rest) {
  check_output(out, n_rows, n_cols, first.rows, width);
  cape::Matrix result(n_rows, n_cols);
  std::vector<double> values(static_cast<std::size_t>(width));
  for (int64_t i = 0; i < n_rows; ++i) {
    f(row_of(first, i), row_of(rest, i)..., std::span<double>(values));
    for (int64_t j = 0; j < n_cols; ++j) result(i, j) = values[static_cast<std::size_t>(j)];
  }
  check_finite(result, "the result");
  copy_matrix(out, n_rows, n_cols, result);
}

const cape::Embedding& embedding_of(const cape_embedding* embedding) {
  return object(embedding, "embedding").embedding;
}

} // namespace

cape_status cape_embedding_fit(cape_embedding** out, const cape_dag* dag,
                               const cape_options* options) {
  return create(out, options, [&](const cape_options& o) {
    const cape::Digraph& graph = object(dag, "dag").dag.graph;
    cape::Run run = make_run(o);
    return embed_dag(graph, o.values.embed, run);
  });
}

cape_status cape_embedding_fit_from(cape_embedding** out, const cape_dag* dag,
                                    cape_checkpoint* checkpoint, const cape_options* options) {
  return create(out, options, [&](const cape_options& o) {
    const cape::Digraph& graph = object(dag, "dag").dag.graph;
    cape::Checkpoint& state = object(checkpoint, "checkpoint").state.embedding;
    cape::Run run = make_run(o);
    return embed_dag(graph, o.values.embed, run, state);
  });
}

void cape_embedding_free(cape_embedding* embedding) { release(embedding); }

cape_status cape_embedding_describe(cape_embedding_info* out, const cape_embedding* embedding) {
  return guard([&] {
    check_struct_size(required(out, "out").struct_size, sizeof *out, "out");
    const cape::Embedding& e = embedding_of(embedding);
    cape_embedding_info info{};
    info.n_nodes = e.poincare.rows();
    info.n_dims = e.poincare.cols();
    info.n_epochs = static_cast<int64_t>(e.history.size());
    info.n_clamped = e.n_clamped;
    info.converged = e.converged;
    info.truncated_mass = e.truncated_mass;
    info.stopped_early = e.stopped_early;
    info.n_out_of_order = e.n_out_of_order;
    info.n_warnings = static_cast<int64_t>(e.warnings.size());
    write_struct(out, info);
  });
}

cape_status cape_embedding_warning(const char** out, const cape_embedding* embedding,
                                   int64_t index) {
  clear(out);
  return guard([&] {
    required(out, "out");
    const std::vector<std::string>& warnings = embedding_of(embedding).warnings;
    if (index < 0 || index >= static_cast<int64_t>(warnings.size()))
      throw cape::Error(cape::Status::invalid_argument,
                        "index is " + std::to_string(index) + "; embedding has " +
                            std::to_string(warnings.size()) + " warnings, counted from 0");
    *out = warnings[static_cast<std::size_t>(index)].c_str();
  });
}

cape_status cape_embedding_hyperboloid(double* out, int64_t n_rows, int64_t n_cols,
                                       const cape_embedding* embedding) {
  return guard([&] { copy_matrix(out, n_rows, n_cols, embedding_of(embedding).hyperboloid); });
}

cape_status cape_embedding_poincare(double* out, int64_t n_rows, int64_t n_cols,
                                    const cape_embedding* embedding) {
  return guard([&] { copy_matrix(out, n_rows, n_cols, embedding_of(embedding).poincare); });
}

cape_status cape_embedding_nodes(double* generality_out, double* radius_out, double* pagerank_out,
                                 int64_t n, const cape_embedding* embedding) {
  return guard([&] {
    const cape::Embedding& e = embedding_of(embedding);
    check_length(n, e.poincare.rows(), "n");
    if (generality_out != nullptr) copy_vector(generality_out, n, e.generality, "generality_out");
    if (radius_out != nullptr) copy_vector(radius_out, n, e.radius, "radius_out");
    if (pagerank_out != nullptr) copy_vector(pagerank_out, n, e.pagerank, "pagerank_out");
  });
}

cape_status cape_embedding_history(double* out, int64_t n_rows, int64_t n_cols,
                                   const cape_embedding* embedding) {
  return guard([&] {
    const std::vector<cape::EmbedEpoch>& history = embedding_of(embedding).history;
    copy_records<5>(out, n_rows, n_cols, history, [](const cape::EmbedEpoch& e) {
      return std::array{static_cast<double>(e.epoch), e.loss, e.contrastive, e.ranking,
                        e.generality};
    });
  });
}

cape_status cape_lorentz_distances(double* out, int64_t n_rows, int64_t n_cols,
                                   const cape_matrix_view* a, const cape_matrix_view* b) {
  return guard([&] {
    const cape::MatrixView p = hyperboloid_view(a, "a"), q = hyperboloid_view(b, "b");
    check_same_dimension(p, q);
    check_output(out, n_rows, n_cols, p.rows, q.rows);
    cape::Run run;
    copy_matrix(out, n_rows, n_cols, lorentz::distances(p, q, run));
  });
}

cape_status cape_lorentz_exp(double* out, int64_t n_rows, int64_t n_cols, const cape_matrix_view* p,
                             const cape_matrix_view* v) {
  return guard([&] {
    const cape::MatrixView points = hyperboloid_view(p, "p"), tangents = finite_view(v, "v");
    check_tangents(points, tangents, "v");
    by_row(out, n_rows, n_cols, points.cols, lorentz::exp, points, tangents);
  });
}

cape_status cape_lorentz_log(double* out, int64_t n_rows, int64_t n_cols, const cape_matrix_view* p,
                             const cape_matrix_view* q) {
  return guard([&] {
    const cape::MatrixView from = hyperboloid_view(p, "p"), to = hyperboloid_view(q, "q");
    check_same_shape(to, from, "q");
    by_row(out, n_rows, n_cols, from.cols, lorentz::log, from, to);
  });
}

cape_status cape_lorentz_project_tangent(double* out, int64_t n_rows, int64_t n_cols,
                                         const cape_matrix_view* p, const cape_matrix_view* u) {
  return guard([&] {
    const cape::MatrixView points = hyperboloid_view(p, "p"), vectors = finite_view(u, "u");
    check_same_shape(vectors, points, "u");
    by_row(out, n_rows, n_cols, points.cols, lorentz::project_tangent, points, vectors);
  });
}

cape_status cape_lorentz_transport(double* out, int64_t n_rows, int64_t n_cols,
                                   const cape_matrix_view* p, const cape_matrix_view* q,
                                   const cape_matrix_view* v) {
  return guard([&] {
    const cape::MatrixView from = hyperboloid_view(p, "p"), to = hyperboloid_view(q, "q"),
                           tangents = finite_view(v, "v");
    check_same_shape(to, from, "q");
    check_tangents(from, tangents, "v");
    by_row(out, n_rows, n_cols, from.cols, lorentz::transport, from, to, tangents);
  });
}

cape_status cape_lorentz_to_poincare(double* out, int64_t n_rows, int64_t n_cols,
                                     const cape_matrix_view* p) {
  return guard([&] {
    const cape::MatrixView points = hyperboloid_view(p, "p");
    by_row(out, n_rows, n_cols, points.cols - 1, lorentz::to_poincare, points);
  });
}

cape_status cape_poincare_to_lorentz(double* out, int64_t n_rows, int64_t n_cols,
                                     const cape_matrix_view* e) {
  return guard([&] {
    const cape::MatrixView points = ball_view(e, "e");
    by_row(out, n_rows, n_cols, points.cols + 1, poincare::to_lorentz, points);
  });
}

cape_status cape_poincare_distances(double* out, int64_t n_rows, int64_t n_cols,
                                    const cape_matrix_view* a, const cape_matrix_view* b) {
  return guard([&] {
    const cape::MatrixView p = ball_view(a, "a"), q = ball_view(b, "b");
    check_same_dimension(p, q);
    check_output(out, n_rows, n_cols, p.rows, q.rows);
    cape::Run run;
    copy_matrix(out, n_rows, n_cols, poincare::distances(p, q, run));
  });
}
