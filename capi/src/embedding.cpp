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

// Of matrices that are worked on row by row; their points and tangents are looked at by the core.
void check_same_shape(const cape::MatrixView& given, const cape::MatrixView& right,
                      std::string_view name) {
  if (given.rows != right.rows || given.cols != right.cols)
    throw cape::Error(cape::Status::dim_mismatch,
                      cape::message(name, " is ", given.rows, " x ", given.cols, "; it must be ",
                                    right.rows, " x ", right.cols));
}

void check_columns(const cape::MatrixView& points, int64_t least, std::string_view name) {
  if (points.cols < least)
    throw cape::Error(cape::Status::dim_mismatch,
                      cape::message(name, " has ", points.cols, " columns; it must have at least ",
                                    least));
}
// Points on the hyperboloid, and in the ball.
void check_hyperboloid(const cape::MatrixView& points, std::string_view name) {
  check_columns(points, 2, name);
}
void check_ball(const cape::MatrixView& points, std::string_view name) {
  check_columns(points, 1, name);
}

// Row i of out: f(rows i of the inputs..., the row of `width` elements to fill).
template <class F, class... Views>
void by_row(double* out, int64_t n_rows, int64_t n_cols, int64_t width, F f,
            const cape::MatrixView& first, const Views&... rest) {
  check_output(out, n_rows, n_cols, first.rows, width);
  cape::Matrix result(n_rows, n_cols);
  std::vector<double> values(static_cast<std::size_t>(width));
  for (int64_t i = 0; i < n_rows; ++i) {
    in_row(i, [&] { f(row_of(first, i), row_of(rest, i)..., std::span<double>(values)); });
    for (int64_t j = 0; j < n_cols; ++j) result(i, j) = values[static_cast<std::size_t>(j)];
  }
  check_finite(result, "the result");
  copy_matrix(out, n_rows, n_cols, result);
}

const cape::Embedding& embedding_of(const cape_embedding* embedding) {
  return object(embedding, "embedding").embedding;
}

} // namespace

cape_status cape_embedding_fit_from(cape_embedding** out, const cape_dag* dag,
                                    cape_checkpoint* checkpoint, const cape_options* options) {
  return create(out, options, [&](const cape_options& o) {
    const cape::Digraph graph = graph_to_embed(object(dag, "dag").dag, o.values.embed);
    cape::Run run = make_run(o);
    if (checkpoint == nullptr) return embed_dag(graph, o.values.embed, run);
    cape::Checkpoint& state = object(checkpoint, "checkpoint").state.embedding;
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
    *out = warning_of(embedding_of(embedding).warnings, index, "embedding");
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

namespace {

using Distances = cape::Matrix (*)(const cape::MatrixView&, const cape::MatrixView&, cape::Run&);

cape_status all_distances(Distances distances, double* out, int64_t n_rows, int64_t n_cols,
                          const cape_matrix_view* a, const cape_matrix_view* b,
                          const cape_options* options) noexcept {
  return guard_run(options, [&](cape::Run& run) {
    const cape::MatrixView p = view_of(a, "a"), q = view_of(b, "b");
    check_output(out, n_rows, n_cols, p.rows, q.rows);
    copy_matrix(out, n_rows, n_cols, distances(p, q, run));
  });
}

} // namespace

cape_status cape_lorentz_distances_with(double* out, int64_t n_rows, int64_t n_cols,
                                        const cape_matrix_view* a, const cape_matrix_view* b,
                                        const cape_options* options) {
  return all_distances(lorentz::distances, out, n_rows, n_cols, a, b, options);
}

cape_status cape_lorentz_exp(double* out, int64_t n_rows, int64_t n_cols, const cape_matrix_view* p,
                             const cape_matrix_view* v) {
  return guard([&] {
    const cape::MatrixView points = view_of(p, "p"), tangents = view_of(v, "v");
    check_hyperboloid(points, "p");
    check_same_shape(tangents, points, "v");
    by_row(out, n_rows, n_cols, points.cols, lorentz::exp, points, tangents);
  });
}

cape_status cape_lorentz_log(double* out, int64_t n_rows, int64_t n_cols, const cape_matrix_view* p,
                             const cape_matrix_view* q) {
  return guard([&] {
    const cape::MatrixView from = view_of(p, "p"), to = view_of(q, "q");
    check_hyperboloid(from, "p");
    check_same_shape(to, from, "q");
    by_row(out, n_rows, n_cols, from.cols, lorentz::log, from, to);
  });
}

cape_status cape_lorentz_project_tangent(double* out, int64_t n_rows, int64_t n_cols,
                                         const cape_matrix_view* p, const cape_matrix_view* u) {
  return guard([&] {
    const cape::MatrixView points = view_of(p, "p"), vectors = view_of(u, "u");
    check_hyperboloid(points, "p");
    check_same_shape(vectors, points, "u");
    by_row(out, n_rows, n_cols, points.cols, lorentz::project_tangent, points, vectors);
  });
}

cape_status cape_lorentz_transport(double* out, int64_t n_rows, int64_t n_cols,
                                   const cape_matrix_view* p, const cape_matrix_view* q,
                                   const cape_matrix_view* v) {
  return guard([&] {
    const cape::MatrixView from = view_of(p, "p"), to = view_of(q, "q"), tangents = view_of(v, "v");
    check_hyperboloid(from, "p");
    check_same_shape(to, from, "q");
    check_same_shape(tangents, from, "v");
    by_row(out, n_rows, n_cols, from.cols, lorentz::transport, from, to, tangents);
  });
}

cape_status cape_lorentz_to_poincare(double* out, int64_t n_rows, int64_t n_cols,
                                     const cape_matrix_view* p) {
  return guard([&] {
    const cape::MatrixView points = view_of(p, "p");
    check_hyperboloid(points, "p");
    by_row(out, n_rows, n_cols, points.cols - 1, lorentz::to_poincare, points);
  });
}

cape_status cape_poincare_to_lorentz(double* out, int64_t n_rows, int64_t n_cols,
                                     const cape_matrix_view* e) {
  return guard([&] {
    const cape::MatrixView points = view_of(e, "e");
    check_ball(points, "e");
    by_row(out, n_rows, n_cols, points.cols + 1, poincare::to_lorentz, points);
  });
}

cape_status cape_poincare_distances_with(double* out, int64_t n_rows, int64_t n_cols,
                                         const cape_matrix_view* a, const cape_matrix_view* b,
                                         const cape_options* options) {
  return all_distances(poincare::distances, out, n_rows, n_cols, a, b, options);
}
