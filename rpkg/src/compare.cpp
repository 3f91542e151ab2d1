// How close a graph is to the true one.
#include "glue.hpp"

using namespace capeomics;

// [[Rcpp::export(rng = false)]]
Rcpp::List core_compare_graphs(const arma::mat &estimated, const arma::mat &truth) {
  using Rcpp::_;
  const cape_matrix_view a = view(estimated), b = view(truth);
  Dag left, right;
  check(cape_dag_from_adjacency(left.out(), &a));
  check(cape_dag_from_adjacency(right.out(), &b));
  cape_graph_metrics m{};
  m.struct_size = sizeof m;
  check(cape_compare_graphs(&m, left.get(), right.get()));
  return Rcpp::List::create(
      _["shd"] = static_cast<int>(m.shd), _["true_edges"] = static_cast<int>(m.true_edges),
      _["estimated_edges"] = static_cast<int>(m.estimated_edges),
      _["correct"] = static_cast<int>(m.correct), _["reversed"] = static_cast<int>(m.reversed),
      _["missing"] = static_cast<int>(m.missing), _["extra"] = static_cast<int>(m.extra),
      _["tpr"] = m.tpr, _["fdr"] = m.fdr, _["fpr"] = m.fpr, _["precision"] = m.precision,
      _["recall"] = m.recall, _["f1"] = m.f1);
}

// [[Rcpp::export(rng = false)]]
Rcpp::List core_compare_scores(const arma::mat &scores, const arma::mat &truth) {
  const cape_matrix_view s = view(scores), b = view(truth);
  Dag right;
  check(cape_dag_from_adjacency(right.out(), &b));
  double auprc = 0, auroc = 0;
  check(cape_compare_scores(&auprc, &auroc, &s, right.get(), Options().get()));
  return Rcpp::List::create(Rcpp::_["auprc"] = auprc, Rcpp::_["auroc"] = auroc);
}
