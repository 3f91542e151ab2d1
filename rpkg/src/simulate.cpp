// Random graphs and data with a known truth.
#include "glue.hpp"

using namespace capeomics;

// [[Rcpp::export(rng = false)]]
Rcpp::List core_simulate_dag(int n, const Rcpp::CharacterVector &settings) {
  const Options options(settings, R_NilValue);
  Dag dag;
  check(cape_simulate_dag(dag.out(), n, options.get()));
  return dag_to_list(dag.get());
}

// cells x features.
// [[Rcpp::export(rng = false)]]
Rcpp::NumericMatrix core_simulate_data(int n_cells, int n, const Rcpp::IntegerVector &from,
                                       const Rcpp::IntegerVector &to,
                                       const Rcpp::NumericVector &weight,
                                       const Rcpp::CharacterVector &settings) {
  const Options options(settings, R_NilValue);
  Dag dag;
  make_graph(dag, n, from, to, weight);
  Rcpp::NumericMatrix out = allocate_matrix(n_cells, n);
  check(cape_simulate_data(out.begin(), n_cells, n, dag.get(), options.get()));
  return out;
}

// Counts around x (cells x features).
// [[Rcpp::export(rng = false)]]
Rcpp::NumericMatrix core_simulate_counts(const arma::mat &x, double mean, double dispersion,
                                         const Rcpp::CharacterVector &settings) {
  const Options options(settings, R_NilValue);
  const cape_matrix_view table = view(x);
  Rcpp::NumericMatrix out = allocate_matrix(table.n_rows, table.n_cols);
  check(cape_simulate_counts(out.begin(), table.n_rows, table.n_cols, &table, mean, dispersion,
                             options.get()));
  return out;
}
