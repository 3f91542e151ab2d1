// One pass over blocks of cells of an assay (features x cells). Sums run over the cells in order and
// a zero changes none of them, so dense, sparse and block-wise passes give the same bits. Sums and
// sums of squares carry their rounding errors along (106 bits), so that the variance of values far
// from 0 survives their difference.
#include "glue.hpp"

#include <cmath>
#include <limits>

namespace {

// Columns of the state of a pass, one row a feature.
enum {
  count,
  smallest,
  largest,
  missing,
  infinite,
  fractional,
  sum,
  sum_error,
  squares,
  squares_error,
  n_columns
};

// A number as the sum of two doubles, the second a rounding error of the first.
struct Pair {
  double high, low;
};

Pair two_sum(double a, double b) {
  const double s = a + b, t = s - a;
  return {s, (a - (s - t)) + (b - t)};
}

Pair product(double a, double b) {
  const double p = a * b;
  return {p, std::fma(a, b, -p)};
}

Pair plus(Pair a, Pair b) {
  const Pair high = two_sum(a.high, b.high), low = two_sum(a.low, b.low);
  const Pair first = two_sum(high.high, high.low + low.high);
  return two_sum(first.high, first.low + low.low);
}

void add_to(arma::mat &state, arma::uword feature, int column, Pair value) {
  const Pair total = plus({state(feature, column), state(feature, column + 1)}, value);
  state(feature, column) = total.high;
  state(feature, column + 1) = total.low;
}

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
  add_to(state, feature, sum, {value, 0});
  add_to(state, feature, squares, product(value, value));
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

// The variances: (n Q - S^2) / (n (n - 1)), where S is the sum of the values and Q that of their squares.
// [[Rcpp::export(rng = false)]]
Rcpp::NumericVector scan_variance(const arma::mat &state) {
  Rcpp::NumericVector out(state.n_rows);
  for (arma::uword f = 0; f < state.n_rows; ++f) {
    const double n = state(f, count);
    if (n < 2 || !(state(f, largest) > state(f, smallest)))
      continue;
    const double high = state(f, sum), low = state(f, sum_error);
    Pair nq = product(n, state(f, squares));
    nq = plus(nq, {n * state(f, squares_error), 0});
    const Pair s2 = plus(product(high, high), {2 * high * low, 0});
    const double difference = plus(nq, {-s2.high, -s2.low}).high;
    // Squares that no double holds are the largest variance there is.
    out[f] = std::isfinite(difference) ? std::max(0.0, difference / n / (n - 1))
                                       : std::numeric_limits<double>::infinity();
  }
  return out;
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
