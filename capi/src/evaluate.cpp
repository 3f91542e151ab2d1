// Simulation and evaluation.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "handle.hpp"

using namespace cape::capi;

namespace {

const cape::Digraph& graph(const cape_dag* dag, std::string_view name) {
  return object(dag, name).dag.graph;
}

} // namespace

cape_status cape_simulate_dag(cape_dag** out, int64_t n_nodes, const cape_options* options) {
  return create(out, options, [&](const cape_options& o) {
    cape::Run run = make_run(o);
    return simulate_dag(n_nodes, o.values.graph, run);
  });
}

cape_status cape_simulate_data(double* out, int64_t n_rows, int64_t n_cols, const cape_dag* dag,
                               const cape_options* options) {
  return guard(options, [&](const cape_options& o) {
    const cape::Digraph& g = graph(dag, "dag");
    check_output(out, n_rows, n_cols, n_rows, g.size());
    cape::Run run = make_run(o);
    copy_matrix(out, n_rows, n_cols, simulate_data(g, n_rows, o.values.data, run));
  });
}

cape_status cape_simulate_counts(double* out, int64_t n_rows, int64_t n_cols,
                                 const cape_matrix_view* x, double mean, double dispersion,
                                 const cape_options* options) {
  return guard(options, [&](const cape_options& o) {
    const cape::MatrixView table = view_of(x, "x");
    check_output(out, n_rows, n_cols, table.rows, table.cols);
    cape::Run run = make_run(o);
    const cape::SparseMatrix counts = simulate_counts(table, mean, dispersion, run);
    std::fill_n(out, n_rows * n_cols, 0.0);
    for (int64_t i = 0; i < n_rows; ++i)
      for (int64_t e = counts.offsets[static_cast<std::size_t>(i)];
           e < counts.offsets[static_cast<std::size_t>(i) + 1]; ++e)
        out[counts.indices[static_cast<std::size_t>(e)] * n_rows + i] =
            counts.values[static_cast<std::size_t>(e)];
  });
}

cape_status cape_compare_graphs(cape_graph_metrics* out, const cape_dag* estimated,
                                const cape_dag* truth) {
  return guard([&] {
    check_struct_size(required(out, "out").struct_size, sizeof *out, "out");
    const cape::GraphMetrics m =
        compare_graphs(graph(estimated, "estimated"), graph(truth, "truth"));
    cape_graph_metrics metrics{};
    metrics.true_edges = m.true_edges;
    metrics.estimated_edges = m.estimated_edges;
    metrics.correct = m.correct;
    metrics.reversed = m.reversed;
    metrics.missing = m.missing;
    metrics.extra = m.extra;
    metrics.shd = m.shd;
    metrics.tpr = m.tpr;
    metrics.fdr = m.fdr;
    metrics.fpr = m.fpr;
    metrics.precision = m.precision;
    metrics.recall = m.recall;
    metrics.f1 = m.f1;
    write_struct(out, metrics);
  });
}

cape_status cape_compare_scores(double* auprc_out, double* auroc_out,
                                const cape_matrix_view* scores, const cape_dag* truth,
                                const cape_options* options) {
  clear(auprc_out, auroc_out);
  return guard_run(options, [&](cape::Run& run) {
    required(auprc_out, "auprc_out");
    required(auroc_out, "auroc_out");
    const cape::ScoreMetrics m =
        compare_scores(view_of(scores, "scores"), graph(truth, "truth"), run);
    *auprc_out = m.auprc;
    *auroc_out = m.auroc;
  });
}

cape_status cape_compare_embedding(double* distance_out, double* strength_out,
                                   double* parents_closer_out, double* specificity_out,
                                   double* precision_out, const cape_dag* of,
                                   const cape_matrix_view* distances, const double* radius,
                                   int64_t n, const cape_options* options) {
  clear(distance_out, strength_out, parents_closer_out, specificity_out, precision_out);
  return guard_run(options, [&](cape::Run& run) {
    const cape::Digraph& g = graph(of, "graph");
    check_length(n, g.size(), "n");
    const cape::EmbeddingMetrics m = compare_embedding(g, view_of(distances, "distances"),
                                                       values(radius, n, "radius"), run);
    if (distance_out != nullptr) *distance_out = m.distance;
    if (strength_out != nullptr) *strength_out = m.strength;
    if (parents_closer_out != nullptr) *parents_closer_out = m.parents_closer;
    if (specificity_out != nullptr) *specificity_out = m.specificity;
    if (precision_out != nullptr) *precision_out = m.precision;
  });
}

cape_status cape_compare_labels(double* ari_out, double* nmi_out, const int64_t* a,
                                const int64_t* b, int64_t n) {
  clear(ari_out, nmi_out);
  return guard([&] {
    required(ari_out, "ari_out");
    required(nmi_out, "nmi_out");
    const auto first = values(a, n, "a"), second = values(b, n, "b");
    const double ari = cape::adjusted_rand_index(first, second);
    *nmi_out = cape::normalized_mutual_information(first, second);
    *ari_out = ari;
  });
}

cape_status cape_silhouette(double* out, const cape_matrix_view* x, const int64_t* labels,
                            int64_t n, const cape_options* options) {
  clear(out);
  return guard_run(options, [&](cape::Run& run) {
    required(out, "out");
    const cape::MatrixView table = view_of(x, "x");
    check_length(n, table.rows, "n");
    *out = silhouette(table, values(labels, n, "labels"), run);
  });
}
