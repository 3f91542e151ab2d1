// One pass over blocks of cells of an assay (features x cells). Sums run over the cells in order and
// a zero changes none of them, so dense, sparse and block-wise passes give the same bits.
#include "glue.hpp"

#include <cmath>
#include <limits>

namespace {

// Columns of the state of a pass, one row a feature.
enum { count, sum, sum_squares, smallest, largest, missing, infinite, fractional, n_columns };

void add(arma::mat &state, arma::uword feature, double value) {
  if (std::isnan(value)) {
    state(feature, missing) += 1;
    return;
  }
  if (std::isinf(value)) {
    state(feature, infinite) += 1;
    return;
  }
  state(feature, count) += 1;
  state(feature, sum) += value;
  state(feature, sum_squares) += value * value;
  state(feature, smallest) = std::min(state(feature, smallest), value);
  state(feature, largest) = std::max(state(feature, largest), value);
  if (value != std::floor(value))
    state(feature, fractional) += 1;
}

} // namespace

// [[Rcpp::export(rng = false)]]
arma::mat scan_new(int n_features) {
  arma::mat state(n_features, n_columns, arma::fill::zeros);
  state.col(smallest).fill(std::numeric_limits<double>::infinity());
  state.col(largest).fill(-std::numeric_limits<double>::infinity());
  return state;
}

// [[Rcpp::export(rng = false)]]
arma::mat scan_dense(arma::mat state, const arma::mat &block) {
  for (arma::uword j = 0; j < block.n_cols; ++j)
    for (arma::uword i = 0; i < block.n_rows; ++i)
      add(state, i, block(i, j));
  return state;
}

// i, x: the slots of a dgCMatrix with n_cells columns.
// [[Rcpp::export(rng = false)]]
arma::mat scan_sparse(arma::mat state, const Rcpp::IntegerVector &i, const Rcpp::NumericVector &x,
                      double n_cells) {
  std::vector<double> stored(state.n_rows);
  for (R_xlen_t e = 0; e < i.size(); ++e) {
    add(state, i[e], x[e]);
    stored[i[e]] += 1;
  }
  for (arma::uword f = 0; f < state.n_rows; ++f)
    if (const double zeros = n_cells - stored[f]; zeros > 0) {
      state(f, count) += zeros;
      state(f, smallest) = std::min(state(f, smallest), 0.0);
      state(f, largest) = std::max(state(f, largest), 0.0);
    }
  return state;
}

// Sums of the cells, NaN left out, in the order of the features.
// [[Rcpp::export(rng = false)]]
Rcpp::NumericVector cell_sums_dense(const arma::mat &block) {
  Rcpp::NumericVector out(block.n_cols);
  for (arma::uword j = 0; j < block.n_cols; ++j)
    for (arma::uword i = 0; i < block.n_rows; ++i)
      if (!std::isnan(block(i, j)))
        out[j] += block(i, j);
  return out;
}

// p, x: the slots of a dgCMatrix.
// [[Rcpp::export(rng = false)]]
Rcpp::NumericVector cell_sums_sparse(const Rcpp::IntegerVector &p, const Rcpp::NumericVector &x) {
  Rcpp::NumericVector out(p.size() - 1);
  for (R_xlen_t j = 0; j < out.size(); ++j)
    for (int e = p[j]; e < p[j + 1]; ++e)
      if (!std::isnan(x[e]))
        out[j] += x[e];
  return out;
}
