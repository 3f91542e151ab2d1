// Step I: learning a DAG, graphs that the user brings, pruning.
#include "glue.hpp"

#include <climits>

using namespace capeomics;

namespace {

using Lend = cape_status (*)(cape_sparse_view *, const cape_dag *);

Rcpp::S4 sparse(Lend lend, const cape_dag *dag) {
  cape_sparse_view view{};
  view.struct_size = sizeof view;
  check(lend(&view, dag));
  const int64_t stored = view.n_cols > 0 ? view.offsets[view.n_cols] : 0;
  if (stored > INT_MAX)
    Rcpp::stop("a matrix of the fit has %.0f entries that are not 0; a dgCMatrix has room for 2^31 - 1",
               static_cast<double>(stored));
  Rcpp::S4 out("dgCMatrix");
  out.slot("Dim") = Rcpp::IntegerVector::create(static_cast<int>(view.n_rows),
                                                static_cast<int>(view.n_cols));
  out.slot("p") = copied<INTSXP>(view.offsets, view.n_cols + 1);
  out.slot("i") = copied<INTSXP>(view.indices, stored);
  out.slot("x") = copied<REALSXP>(view.values, stored);
  return out;
}

Rcpp::NumericVector to_vector(const cape_threshold_suggestion &s) {
  using Rcpp::_;
  return Rcpp::NumericVector::create(
      _["threshold"] = s.threshold, _["tested"] = static_cast<double>(s.n_effects),
      _["causes"] = static_cast<double>(s.n_causes),
      _["differing"] = static_cast<double>(s.n_differing));
}

} // namespace

namespace {

// The graph, without what its fit knows.
Rcpp::List graph_to_list(const cape_dag *dag, const cape_dag_info &info) {
  using Rcpp::_;
  const int64_t n = info.n_nodes;
  const std::size_t n_edges = static_cast<std::size_t>(info.n_edges);

  std::vector<int64_t> from(n_edges), to(n_edges);
  Rcpp::NumericVector weight = allocate<REALSXP>(info.n_edges);
  check(cape_dag_edges(from.data(), to.data(), weight.begin(), info.n_edges, dag));

  std::vector<int64_t> order(info.acyclic ? static_cast<std::size_t>(n) : 0);
  if (info.acyclic)
    check(cape_dag_order(order.data(), n, dag));

  return Rcpp::List::create(
      _["from"] = one_based(from), _["to"] = one_based(to), _["weight"] = weight,
      _["order"] = one_based(order),
      _["info"] = Rcpp::List::create(
          _["learned"] = info.learned != 0, _["acyclic"] = info.acyclic != 0,
          _["converged"] = info.converged != 0, _["refined"] = info.refined != 0, _["h"] = info.h,
          _["lambda"] = info.lambda, _["threshold"] = info.threshold,
          _["effective_threshold"] = info.effective_threshold,
          _["n_removed_for_acyclicity"] = static_cast<double>(info.n_removed_for_acyclicity),
          _["n_bags"] = static_cast<int>(info.n_bags),
          _["false_discovery_rate"] = info.false_discovery_rate,
          _["n_tested_pairs"] = static_cast<double>(info.n_tested_pairs),
          _["rising_variance"] = info.rising_variance,
          _["rising_variance_sd"] = info.rising_variance_sd));
}

cape_dag_info describe(const cape_dag *dag) {
  cape_dag_info info{};
  info.struct_size = sizeof info;
  check(cape_dag_describe(&info, dag));
  return info;
}

} // namespace

Rcpp::List capeomics::dag_to_list(const cape_dag *dag) {
  const cape_dag_info info = describe(dag);
  const int64_t n = info.n_nodes;
  Rcpp::List out = graph_to_list(dag, info);
  if (!info.learned)
    return out;

  out["weights"] = sparse(cape_dag_weights_view, dag);
  out["sign"] = sparse(cape_dag_sign_view, dag);
  out["statistic"] =
      info.refined ? sparse(cape_dag_statistic_view, dag) : Rcpp::S4("dgCMatrix");
  out["support"] = sparse(cape_dag_support_view, dag);
  out["partners"] = sparse(cape_dag_partners_view, dag);
  out["bag_share"] =
      info.n_bags > 0 ? sparse(cape_dag_bag_share_view, dag) : Rcpp::S4("dgCMatrix");
  Rcpp::NumericMatrix history = allocate_matrix(info.n_epochs, 7);
  check(cape_dag_history(history.begin(), info.n_epochs, 7, dag));
  out["history"] = history;
  Rcpp::NumericVector center = allocate<REALSXP>(n), scale = allocate<REALSXP>(n);
  check(cape_dag_scaling(center.begin(), scale.begin(), n, dag));
  out["center"] = center;
  out["scale"] = scale;
  std::vector<int64_t> constant(static_cast<std::size_t>(info.n_constant));
  check(cape_dag_constant(constant.data(), info.n_constant, dag));
  out["constant"] = one_based(constant);
  Rcpp::CharacterVector warnings = allocate<STRSXP>(info.n_warnings);
  for (int64_t i = 0; i < info.n_warnings; ++i) {
    const char *text = nullptr;
    check(cape_dag_warning(&text, dag, i));
    warnings[i] = text;
  }
  out["warnings"] = warnings;
  cape_threshold_suggestion suggestion{};
  suggestion.struct_size = sizeof suggestion;
  check(cape_dag_suggestion(&suggestion, dag));
  out["suggestion"] = to_vector(suggestion);
  return out;
}

void capeomics::make_prior(Prior &out, const Rcpp::List &known) {
  check(cape_prior_new(out.out()));
  cape_prior *prior = out.get();
  const auto pairs = [&](const char *name, auto add) {
    const Rcpp::IntegerMatrix table = known[name];
    const std::vector<int64_t> first = zero_based(table(Rcpp::_, 0)),
                               second = zero_based(table(Rcpp::_, 1));
    check(add(prior, first.data(), second.data(), table.nrow()));
  };
  const auto columns = [&](const char *name, auto add) {
    const std::vector<int64_t> column = zero_based(known[name]);
    check(add(prior, column.data(), static_cast<int64_t>(column.size())));
  };
  pairs("required", cape_prior_require);
  pairs("forbidden", cape_prior_forbid);
  const std::string interventions = Rcpp::as<std::string>(known["interventions"]);
  pairs("perturbed", interventions == "unknown" ? cape_prior_target : cape_prior_perturb);
  columns("roots", cape_prior_roots);
  columns("leaves", cape_prior_leaves);
  columns("regulators", cape_prior_regulators);
  columns("tiers", cape_prior_tiers);
  columns("batch", cape_prior_batches);
  const Rcpp::NumericVector weights = known["weights"];
  check(cape_prior_row_weights(prior, weights.begin(), weights.size()));
  const arma::mat covariates = known["covariates"];
  if (!covariates.is_empty()) {
    const cape_matrix_view values = view(covariates);
    check(cape_prior_covariates(prior, &values));
  }
  const arma::mat penalty = known["penalty"];
  if (!penalty.is_empty()) {
    const cape_matrix_view factor = view(penalty);
    check(cape_prior_penalty(prior, &factor));
  }
  const Rcpp::List start = known["start"];
  const std::vector<int64_t> from = zero_based(start["from"]), to = zero_based(start["to"]);
  const Rcpp::NumericVector weight = start["weight"];
  check(cape_prior_start(prior, from.data(), to.data(), weight.begin(), weight.size()));
}

// assay: features x cells.
// [[Rcpp::export(rng = false)]]
Rcpp::List core_learn_dag(const arma::mat &assay, const Rcpp::List &known,
                          const Rcpp::CharacterVector &settings, SEXP progress,
                          const Rcpp::Nullable<Rcpp::Environment> &store = R_NilValue) {
  Options options(settings, progress);
  const cape_matrix_view x = table_view(assay);
  Prior prior;
  make_prior(prior, known);
  Dag dag;
  Checkpoint checkpoint(store, options);
  checkpoint.check_or_keep(
      cape_dag_learn_from(dag.out(), &x, prior.get(), checkpoint.get(), options.get()));
  return dag_to_list(dag.get());
}

// [[Rcpp::export(rng = false)]]
Rcpp::List core_describe_graph(int n, const Rcpp::IntegerVector &from,
                               const Rcpp::IntegerVector &to, const Rcpp::NumericVector &weight) {
  Dag dag;
  make_graph(dag, n, from, to, weight);
  return dag_to_list(dag.get());
}

// The fit, or graph, that has these weights before pruning, signs, order (empty if there is a cycle) and
// required edges (or NULL), cut at tau.
// [[Rcpp::export(rng = false)]]
Rcpp::List core_prune(const Rcpp::S4 &weights, const Rcpp::S4 &sign,
                      const Rcpp::IntegerVector &order,
                      const Rcpp::Nullable<Rcpp::IntegerMatrix> &required, double tau) {
  const SparseColumns norms(weights), directions(sign);
  const cape_sparse_view w = norms.view(), s = directions.view();
  const std::vector<int64_t> nodes = zero_based(order);
  std::vector<int64_t> from, to;
  if (required.isNotNull()) {
    const Rcpp::IntegerMatrix ends(required.get());
    from = zero_based(ends(Rcpp::_, 0));
    to = zero_based(ends(Rcpp::_, 1));
  }
  Dag dag;
  check(cape_dag_restore(dag.out(), &w, &s, nodes.data(), static_cast<int64_t>(nodes.size()),
                         from.data(), to.data(), static_cast<int64_t>(from.size()), tau,
                         Options().get()));
  return graph_to_list(dag.get(), describe(dag.get()));
}

// assay: features x cells; edges: all weights before pruning.
// [[Rcpp::export(rng = false)]]
Rcpp::NumericVector core_suggest_threshold(const arma::mat &assay, const Rcpp::IntegerVector &from,
                                           const Rcpp::IntegerVector &to,
                                           const Rcpp::NumericVector &weight,
                                           const Rcpp::CharacterVector &settings, SEXP progress) {
  const Options options(settings, progress);
  const cape_matrix_view x = table_view(assay);
  Dag graph;
  make_graph(graph, static_cast<int>(assay.n_rows), from, to, weight);
  cape_threshold_suggestion suggestion{};
  suggestion.struct_size = sizeof suggestion;
  check(cape_dag_suggest_threshold(&suggestion, graph.get(), &x, options.get()));
  return to_vector(suggestion);
}
