// What the paper proves about attention scores, and what an embedding keeps of its graph.
#include "glue.hpp"

using namespace capeomics;

// One row a score: q, k are n x D, angles and deviations n x D/2.
// [[Rcpp::export(rng = false)]]
Rcpp::List core_scores(const arma::mat &q, const arma::mat &k, const arma::mat &phi_m,
                       const arma::mat &phi_n, const arma::mat &sd_m, const arma::mat &sd_n) {
  const cape_matrix_view a = view(q), b = view(k), m = view(phi_m), n = view(phi_n),
                         s = view(sd_m), t = view(sd_n);
  Rcpp::NumericVector score = allocate<REALSXP>(a.n_rows), lower = allocate<REALSXP>(a.n_rows),
                      upper = allocate<REALSXP>(a.n_rows), expected = allocate<REALSXP>(a.n_rows);
  check(cape_rotary_scores(score.begin(), upper.begin(), lower.begin(), a.n_rows, &a, &b, &m, &n));
  check(cape_expected_scores(expected.begin(), a.n_rows, &a, &b, &m, &n, &s, &t));
  return Rcpp::List::create(Rcpp::_["score"] = score, Rcpp::_["lower"] = lower,
                            Rcpp::_["upper"] = upper, Rcpp::_["expected"] = expected);
}

// [[Rcpp::export(rng = false)]]
Rcpp::List core_envelope(const arma::mat &q, const arma::mat &k,
                         const Rcpp::NumericVector &distance, const Rcpp::NumericVector &norm_m,
                         const Rcpp::NumericVector &norm_n, double scale) {
  const cape_matrix_view a = view(q), b = view(k);
  const R_xlen_t n = distance.size();
  double amplitude = 0, offset = 0;
  check(cape_score_envelopes(&amplitude, &offset, 1, &a, &b));
  Rcpp::NumericVector upper = allocate<REALSXP>(n), by_distance = allocate<REALSXP>(n),
                      by_generality = allocate<REALSXP>(n), limit = allocate<REALSXP>(n);
  check(cape_envelope_at(upper.begin(), by_distance.begin(), by_generality.begin(), limit.begin(),
                         n, amplitude, offset, a.n_cols / 2, distance.begin(), norm_m.begin(),
                         norm_n.begin(), scale));
  return Rcpp::List::create(Rcpp::_["upper"] = upper, Rcpp::_["by_distance"] = by_distance,
                            Rcpp::_["by_generality"] = by_generality, Rcpp::_["limit"] = limit);
}

// [[Rcpp::export(rng = false)]]
Rcpp::NumericVector core_accuracy(const Rcpp::NumericVector &sd_m,
                                  const Rcpp::NumericVector &sd_n) {
  Rcpp::NumericVector out = allocate<REALSXP>(sd_m.size());
  for (R_xlen_t i = 0; i < out.size(); ++i)
    check(cape_approximation_accuracy(&out[i], sd_m[i], sd_n[i]));
  return out;
}

// [[Rcpp::export(rng = false)]]
double core_margin(const arma::mat &covariance, const Rcpp::NumericVector &phi_m,
                   const Rcpp::NumericVector &phi_n) {
  const cape_matrix_view c = view(covariance);
  double out = 0;
  check(cape_expected_margin(&out, &c, phi_m.begin(), phi_n.begin(), phi_m.size()));
  return out;
}

// [[Rcpp::export(rng = false)]]
Rcpp::NumericVector core_average_bias(int repeats, const arma::mat &q, const arma::mat &k,
                                      const Rcpp::NumericVector &phi_m,
                                      const Rcpp::NumericVector &phi_n, double sd, int n,
                                      const Rcpp::CharacterVector &settings) {
  const Options options(settings, R_NilValue);
  const cape_matrix_view a = view(q), b = view(k);
  Rcpp::NumericVector out = allocate<REALSXP>(repeats);
  check(cape_average_bias(out.begin(), repeats, &a, &b, phi_m.begin(), phi_n.begin(),
                          phi_m.size(), sd, n, options.get()));
  return out;
}

// [[Rcpp::export(rng = false)]]
double core_hoeffding(const arma::mat &q, const arma::mat &k, double epsilon, double n) {
  const cape_matrix_view a = view(q), b = view(k);
  double second = 0, out = 0;
  check(cape_mean_square_product(&second, &a, &b));
  check(cape_hoeffding_bound(&out, epsilon, static_cast<int64_t>(n), second));
  return out;
}

// [[Rcpp::export(rng = false)]]
Rcpp::NumericMatrix core_distances(const arma::mat &hyperboloid) {
  const cape_matrix_view p = view(hyperboloid);
  Rcpp::NumericMatrix out = allocate_matrix(p.n_rows, p.n_rows);
  check(cape_lorentz_distances_with(out.begin(), p.n_rows, p.n_rows, &p, &p, Options().get()));
  return out;
}

// [[Rcpp::export(rng = false)]]
Rcpp::List core_compare_embedding(int n, const Rcpp::IntegerVector &from,
                                  const Rcpp::IntegerVector &to, const Rcpp::NumericVector &weight,
                                  const arma::mat &distances, const Rcpp::NumericVector &radius) {
  Dag dag;
  make_graph(dag, n, from, to, weight);
  const cape_matrix_view d = view(distances);
  double distance = 0, strength = 0, closer = 0, specificity = 0, precision = 0;
  check(cape_compare_embedding(&distance, &strength, &closer, &specificity, &precision, dag.get(),
                               &d, radius.begin(), radius.size(), Options().get()));
  return Rcpp::List::create(Rcpp::_["distance"] = distance, Rcpp::_["strength"] = strength,
                            Rcpp::_["parents_closer"] = closer,
                            Rcpp::_["specificity"] = specificity,
                            Rcpp::_["precision"] = precision);
}

// [[Rcpp::export(rng = false)]]
Rcpp::NumericMatrix core_path_strengths(int n, const Rcpp::IntegerVector &from,
                                        const Rcpp::IntegerVector &to,
                                        const Rcpp::NumericVector &weight) {
  Dag dag;
  make_graph(dag, n, from, to, weight);
  Rcpp::NumericMatrix out = allocate_matrix(n, n);
  check(cape_path_strengths_with(out.begin(), n, n, dag.get(), Options().get()));
  return out;
}
