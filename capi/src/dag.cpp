// Step I: the DAG.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "handle.hpp"

using namespace cape::capi;

namespace {

const cape::Digraph& graph_of(const cape_dag* dag) { return object(dag, "dag").dag.graph; }

// What only a fit has. Error(bad_state) for a graph that the caller brought.
const cape::Dag& learned(const cape_dag* dag) {
  if (!object(dag, "dag").learned)
    throw cape::Error(cape::Status::bad_state,
                      "dag was not learned here, so it has no weights before pruning, no signs, no "
                      "history and no scaling");
  return dag->dag;
}

const cape::SparseMatrix& statistic_of(const cape_dag* dag) {
  if (!learned(dag).refined)
    throw cape::Error(cape::Status::bad_state,
                      "dag was not refined, so it has no t statistics; see dag.refine");
  return dag->dag.statistic;
}

const cape::SparseMatrix& support_of(const cape_dag* dag) {
  const cape::Dag& fit = learned(dag);
  if (fit.support.empty() && fit.graph.size() > 0)
    throw cape::Error(cape::Status::bad_state,
                      "dag was restored from its weights, so it has no support");
  return fit.support;
}

const cape::SparseMatrix& partners_of(const cape_dag* dag) {
  const cape::Dag& fit = learned(dag);
  if (fit.partners.empty() && fit.graph.size() > 0)
    throw cape::Error(cape::Status::bad_state,
                      "dag was restored from its weights, so it has no partners");
  return fit.partners;
}

const cape::SparseMatrix& bag_share_of(const cape_dag* dag) {
  if (learned(dag).bags == 0)
    throw cape::Error(cape::Status::bad_state,
                      "dag is one fit to all rows, so it has no shares of bags; see dag.bags");
  return dag->dag.bag_share;
}

void copy_sparse(double* out, int64_t n_rows, int64_t n_cols, const cape::SparseMatrix& values) {
  check_output(out, n_rows, n_cols, values.rows, values.cols);
  std::fill_n(out, n_rows * n_cols, 0.0);
  for (int64_t j = 0; j < n_cols; ++j)
    for (auto e = static_cast<std::size_t>(values.offsets[static_cast<std::size_t>(j)]);
         e < static_cast<std::size_t>(values.offsets[static_cast<std::size_t>(j) + 1]); ++e)
      out[j * n_rows + values.indices[e]] = values.values[e];
}

cape::SparseMatrix copied(const cape::SparseView& view) {
  cape::SparseMatrix out;
  out.rows = view.rows;
  out.cols = view.cols;
  out.layout = view.layout;
  if (view.outer() == 0) return out;
  out.offsets.assign(view.offsets, view.offsets + view.outer() + 1);
  out.indices.assign(view.indices, view.indices + view.nonzeros());
  out.values.assign(view.values, view.values + view.nonzeros());
  return out;
}

void lend(cape_sparse_view* out, const cape::SparseMatrix& values) {
  check_struct_size(required(out, "out").struct_size, sizeof *out, "out");
  write_struct(out, cape_sparse_view{0, values.values.data(), values.indices.data(),
                                     values.offsets.data(), values.rows, values.cols,
                                     CAPE_COL_MAJOR, 0});
}

void write(cape_threshold_suggestion* out, const cape::ThresholdSuggestion& s) {
  write_struct(out, cape_threshold_suggestion{0, s.threshold, s.effects, s.causes, s.differing});
}

cape::Checkpoint* state_of(cape_checkpoint* checkpoint) {
  return checkpoint == nullptr ? nullptr : &object(checkpoint, "checkpoint").state.dag;
}

cape::Constraint constraint_of(const char* name) {
  cape::Options options;
  set_option(options, "dag.constraint", text(name, "constraint"));
  return options.dag.constraint;
}

} // namespace

cape_status cape_dag_learn_from(cape_dag** out, const cape_matrix_view* x, const cape_prior* prior,
                                cape_checkpoint* checkpoint, const cape_options* options) {
  return compute(
      out, x, prior, options, [&](const auto& table, const auto& p, const auto& o, auto& run) {
        return cape_dag(learn_dag(table, o.values.dag, run, p, state_of(checkpoint)), true);
      });
}

cape_status cape_dag_learn_rows_from(cape_dag** out, const cape_row_source* source,
                                     const cape_prior* prior, cape_checkpoint* checkpoint,
                                     const cape_options* options) {
  return create(out, options, [&](const cape_options& o) {
    const cape_row_source given = checked_source(source);
    const cape_prior nothing;
    const cape_prior& p = prior == nullptr ? nothing : object(prior, "prior");
    if (!p.design.weight.empty() || !p.design.batch.empty() || !p.design.perturbed.empty() ||
        !p.design.targeted.empty() || !p.design.covariates.empty())
      throw cape::Error(
          cape::Status::unsupported,
          "prior has row weights, batches, covariates or perturbed values, which need "
          "the table in memory; see cape_dag_learn_from");
    const cape::RowSource rows{given.n_rows, given.n_cols, reader_of(given)};
    cape::Run run = make_run(o);
    return cape_dag(learn_dag(rows, o.values.dag, run, p.knowledge, state_of(checkpoint)), true);
  });
}

cape_status cape_dag_from_adjacency(cape_dag** out, const cape_matrix_view* adjacency) {
  return create(out,
                [&] { return cape::Digraph::from_adjacency(view_of(adjacency, "adjacency")); });
}

cape_status cape_dag_from_edges(cape_dag** out, int64_t n_nodes, const int64_t* from,
                                const int64_t* to, const double* weight, int64_t n_edges) {
  return create(
      out, [&] { return cape::Digraph(n_nodes, edges_of(from, to, weight, n_edges, "n_edges")); });
}

cape_status cape_dag_prune(cape_dag** out, const cape_dag* dag, double tau,
                           const cape_options* options) {
  return create_run(out, options, [&](cape::Run& run) {
    if (object(dag, "dag").learned) return cape_dag(prune(dag->dag, tau, run), true);
    cape::Dag pruned = prune(dag->dag.graph, tau, run);
    pruned.weights = {};
    pruned.order.clear();
    return cape_dag(std::move(pruned), false);
  });
}

cape_status cape_dag_restore(cape_dag** out, const cape_sparse_view* weights,
                             const cape_sparse_view* sign, const int64_t* order, int64_t n_order,
                             const int64_t* required_from, const int64_t* required_to,
                             int64_t n_required, double tau, const cape_options* options) {
  return create_run(out, options, [&](cape::Run& run) {
    cape::Dag dag;
    dag.weights = copied(view_of(weights, "weights"));
    if (sign != nullptr) {
      dag.sign = copied(view_of(sign, "sign"));
    } else { // the weights have their own
      dag.sign = dag.weights;
      for (double& s : dag.sign.values) s = (s > 0) - (s < 0);
    }
    dag.order = copied_values(order, n_order, "order", "n_order");
    dag.required = edges_of(required_from, required_to, n_required, "n_required");
    cape::Dag pruned = prune(dag, tau, run);
    const auto nodes = static_cast<std::size_t>(pruned.weights.rows);
    pruned.center.assign(nodes, 0);
    pruned.scale.assign(nodes, 1);
    return cape_dag(std::move(pruned), true);
  });
}

void cape_dag_free(cape_dag* dag) { release(dag); }

cape_status cape_dag_suggest_threshold(cape_threshold_suggestion* out, const cape_dag* dag,
                                       const cape_matrix_view* x, const cape_options* options) {
  return guard(options, [&](const cape_options& o) {
    check_struct_size(required(out, "out").struct_size, sizeof *out, "out");
    const cape_dag& given = object(dag, "dag");
    cape::Run run = make_run(o);
    write(out, suggest_threshold(view_of(x, "x"),
                                 given.learned ? unpruned_graph(given.dag) : given.dag.graph,
                                 o.values.dag, run));
  });
}

cape_status cape_dag_suggestion(cape_threshold_suggestion* out, const cape_dag* dag) {
  return guard([&] {
    check_struct_size(required(out, "out").struct_size, sizeof *out, "out");
    write(out, learned(dag).suggestion);
  });
}

cape_status cape_dag_describe(cape_dag_info* out, const cape_dag* dag) {
  return guard([&] {
    check_struct_size(required(out, "out").struct_size, sizeof *out, "out");
    const cape::Dag& d = object(dag, "dag").dag;
    cape_dag_info info{};
    info.n_nodes = d.graph.size();
    info.n_edges = static_cast<int64_t>(d.graph.edges().size());
    info.n_epochs = static_cast<int64_t>(d.history.size());
    info.n_constant = static_cast<int64_t>(d.constant.size());
    info.n_warnings = static_cast<int64_t>(d.warnings.size());
    info.n_removed_for_acyclicity = d.n_removed_for_acyclicity;
    info.h = d.h;
    info.lambda = d.lambda;
    info.threshold = d.threshold;
    info.effective_threshold = d.effective_threshold;
    info.learned = dag->learned;
    info.converged = d.converged;
    info.refined = d.refined;
    info.acyclic = is_acyclic(d.graph);
    info.n_bags = d.bags;
    info.false_discovery_rate = d.false_discovery_rate;
    info.n_tested_pairs = d.tested_pairs;
    if (!d.deviation.empty()) {
      const cape::VarianceOrder order = variance_order(d.graph, d.deviation);
      info.rising_variance = order.rising;
      info.rising_variance_sd = order.deviation;
    }
    write_struct(out, info);
  });
}

cape_status cape_dag_warning(const char** out, const cape_dag* dag, int64_t index) {
  clear(out);
  return guard([&] {
    required(out, "out");
    *out = warning_of(object(dag, "dag").dag.warnings, index, "dag");
  });
}

cape_status cape_dag_edges(int64_t* from_out, int64_t* to_out, double* weight_out, int64_t capacity,
                           const cape_dag* dag) {
  return guard([&] {
    const std::vector<cape::Edge>& edges = graph_of(dag).edges();
    if (capacity < static_cast<int64_t>(edges.size()))
      throw cape::Error(cape::Status::dim_mismatch,
                        "capacity is " + std::to_string(capacity) + " but dag has " +
                            std::to_string(edges.size()) + " edges; it must be at least that");
    if (edges.empty()) return;
    required(from_out, "from_out");
    required(to_out, "to_out");
    required(weight_out, "weight_out");
    for (std::size_t e = 0; e < edges.size(); ++e) {
      from_out[e] = edges[e].from;
      to_out[e] = edges[e].to;
      weight_out[e] = edges[e].weight;
    }
  });
}

cape_status cape_dag_adjacency(double* out, int64_t n_rows, int64_t n_cols, const cape_dag* dag) {
  return guard([&] {
    const cape::Digraph& graph = graph_of(dag);
    check_output(out, n_rows, n_cols, graph.size(), graph.size());
    copy_matrix(out, n_rows, n_cols, graph.adjacency());
  });
}

cape_status cape_dag_weights(double* out, int64_t n_rows, int64_t n_cols, const cape_dag* dag) {
  return guard([&] { copy_sparse(out, n_rows, n_cols, learned(dag).weights); });
}

cape_status cape_dag_sign(double* out, int64_t n_rows, int64_t n_cols, const cape_dag* dag) {
  return guard([&] { copy_sparse(out, n_rows, n_cols, learned(dag).sign); });
}

cape_status cape_dag_statistic(double* out, int64_t n_rows, int64_t n_cols, const cape_dag* dag) {
  return guard([&] { copy_sparse(out, n_rows, n_cols, statistic_of(dag)); });
}

cape_status cape_dag_support(double* out, int64_t n_rows, int64_t n_cols, const cape_dag* dag) {
  return guard([&] { copy_sparse(out, n_rows, n_cols, support_of(dag)); });
}

cape_status cape_dag_partners(double* out, int64_t n_rows, int64_t n_cols, const cape_dag* dag) {
  return guard([&] { copy_sparse(out, n_rows, n_cols, partners_of(dag)); });
}

cape_status cape_dag_bag_share(double* out, int64_t n_rows, int64_t n_cols, const cape_dag* dag) {
  return guard([&] { copy_sparse(out, n_rows, n_cols, bag_share_of(dag)); });
}

cape_status cape_dag_weights_view(cape_sparse_view* out, const cape_dag* dag) {
  return guard([&] { lend(out, learned(dag).weights); });
}

cape_status cape_dag_sign_view(cape_sparse_view* out, const cape_dag* dag) {
  return guard([&] { lend(out, learned(dag).sign); });
}

cape_status cape_dag_statistic_view(cape_sparse_view* out, const cape_dag* dag) {
  return guard([&] { lend(out, statistic_of(dag)); });
}

cape_status cape_dag_support_view(cape_sparse_view* out, const cape_dag* dag) {
  return guard([&] { lend(out, support_of(dag)); });
}

cape_status cape_dag_partners_view(cape_sparse_view* out, const cape_dag* dag) {
  return guard([&] { lend(out, partners_of(dag)); });
}

cape_status cape_dag_bag_share_view(cape_sparse_view* out, const cape_dag* dag) {
  return guard([&] { lend(out, bag_share_of(dag)); });
}

cape_status cape_dag_order(int64_t* out, int64_t n, const cape_dag* dag) {
  return guard([&] {
    const cape::Digraph& graph = graph_of(dag);
    check_output(out, n, graph.size());
    if (!is_acyclic(graph))
      throw cape::Error(cape::Status::bad_state,
                        "dag has a cycle, so there is no order; cape_dag_prune removes cycles");
    copy_vector(out, n, dag->learned ? dag->dag.order : topological_order(graph), "out");
  });
}

cape_status cape_dag_history(double* out, int64_t n_rows, int64_t n_cols, const cape_dag* dag) {
  return guard([&] {
    copy_records<7>(out, n_rows, n_cols, learned(dag).history, [](const cape::DagEpoch& e) {
      return std::array{
          static_cast<double>(e.epoch), e.loss, e.reconstruction, e.kl, e.h, e.rho, e.alpha};
    });
  });
}

cape_status cape_dag_scaling(double* center_out, double* scale_out, int64_t n,
                             const cape_dag* dag) {
  return guard([&] {
    const cape::Dag& d = learned(dag);
    check_length(n, static_cast<int64_t>(d.center.size()), "n");
    if (n > 0) required(center_out, "center_out"), required(scale_out, "scale_out");
    copy_vector(center_out, n, d.center, "center_out");
    copy_vector(scale_out, n, d.scale, "scale_out");
  });
}

cape_status cape_dag_constant(int64_t* out, int64_t n, const cape_dag* dag) {
  return guard([&] { copy_vector(out, n, object(dag, "dag").dag.constant, "out"); });
}

cape_status cape_acyclicity_with(double* h_out, double* gradient_out, int64_t n_rows,
                                 int64_t n_cols, const cape_matrix_view* a, const char* constraint,
                                 const cape_options* options) {
  clear(h_out);
  return guard_run(options, [&](cape::Run& run) {
    required(h_out, "h_out");
    const cape::MatrixView view = view_of(a, "a");
    cape::Matrix gradient;
    if (gradient_out != nullptr) check_output(gradient_out, n_rows, n_cols, view.rows, view.cols);
    const double h =
        acyclicity(view, constraint_of(constraint), gradient_out ? &gradient : nullptr, run);
    if (gradient_out != nullptr) copy_matrix(gradient_out, n_rows, n_cols, gradient);
    *h_out = h;
  });
}

cape_status cape_pagerank_with(double* out, int64_t n, const cape_dag* dag, double restart,
                               const cape_options* options) {
  return guard_run(options, [&](cape::Run& run) {
    const cape::Digraph& graph = graph_of(dag);
    check_output(out, n, graph.size());
    copy_vector(out, n, cape::pagerank(graph, restart, run), "out");
  });
}

cape_status cape_path_strengths_with(double* out, int64_t n_rows, int64_t n_cols,
                                     const cape_dag* dag, const cape_options* options) {
  return guard_run(options, [&](cape::Run& run) {
    const cape::Digraph& graph = graph_of(dag);
    check_output(out, n_rows, n_cols, graph.size(), graph.size());
    copy_matrix(out, n_rows, n_cols, best_path_strengths(graph, run));
  });
}
