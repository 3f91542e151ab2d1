module;
#include "internal/message.hpp"
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numbers>
#include <span>
#include <string_view>
#include <vector>
module cape.theory;

namespace cape {
namespace {

void check_vector(std::span<const double> v, std::string_view name) {
  const auto n = static_cast<std::int64_t>(v.size());
  check_finite({v.data(), 1, n, n, Layout::row_major}, name);
}

void check_length(std::span<const double> v, std::size_t right, std::string_view name) {
  if (v.size() != right)
    throw Error(Status::dim_mismatch,
                message(name, " has ", v.size(), " elements; it must have ", right));
  check_vector(v, name);
}

void check_not_negative(double value, std::string_view name) {
  if (!(value >= 0 && std::isfinite(value)))
    throw Error(Status::invalid_argument,
                message(name, " is ", value, "; it must be finite and not negative"));
}

void check_deviations(std::span<const double> sd, std::size_t right, std::string_view name) {
  check_length(sd, right, name);
  for (const double s : sd) check_not_negative(s, name);
}

void check_scale(double scale) {
  if (!(scale > 0 && scale <= std::numbers::pi / 4))
    throw Error(Status::invalid_argument,
                message("scale is ", scale, "; it must lie in (0, pi/4]"));
}

double checked(double value, std::string_view name) {
  check_finite({&value, 1, 1, 1, Layout::col_major}, name);
  return value;
}

// C of eq_inverse: (cosh d - 1) / 2.
double half_excess(double distance) {
  const double s = std::sinh(distance / 2);
  return s * s;
}

double shrink(double norm) { return (1 - norm) * (1 + norm); }

// Without checks; see score_terms().
ScoreTerms terms_of(std::span<const double> q, std::span<const double> k) {
  ScoreTerms terms;
  for (std::size_t i = 0; i < q.size(); i += 2) {
    terms.alpha.push_back(q[i] * k[i] + q[i + 1] * k[i + 1]);
    terms.beta.push_back(q[i + 1] * k[i] - q[i] * k[i + 1]);
  }
  return terms;
}

// (The last line of the paper's eq_A_cos_sin turns the sign of x; the bounds do not change.)
ScoreEnvelope envelope_of(const ScoreTerms& terms) {
  ScoreEnvelope e{.pairs = std::ssize(terms.alpha)};
  for (std::size_t t = 0; t < terms.alpha.size(); ++t) {
    e.amplitude = std::max(e.amplitude, std::fabs(terms.alpha[t]));
    e.offset += std::fabs(terms.beta[t]);
  }
  e.amplitude *= static_cast<double>(e.pairs);
  return e;
}

double score(const ScoreTerms& terms, std::span<const double> phi_m,
             std::span<const double> phi_n) {
  double sum = 0;
  for (std::size_t t = 0; t < terms.alpha.size(); ++t) {
    const double x = phi_n[t] - phi_m[t];
    sum += terms.alpha[t] * std::cos(x) + terms.beta[t] * std::sin(x);
  }
  return sum;
}

void check_pair(std::span<const double> q, std::span<const double> k, std::span<const double> phi_m,
                std::span<const double> phi_n) {
  const std::size_t sizes[] = {q.size(), k.size(), 2 * phi_m.size(), 2 * phi_n.size()};
  if (std::ranges::count(sizes, q.size()) != 4)
    throw Error(
        Status::dim_mismatch,
        message("q, k, phi_m and phi_n have ", q.size(), ", ", k.size(), ", ", phi_m.size(),
                " and ", phi_n.size(),
                " elements; q and k must have the same even number, and the angles half of it"));
  check_vector(q, "q");
  check_vector(k, "k");
  check_vector(phi_m, "phi_m");
  check_vector(phi_n, "phi_n");
}

std::vector<double> row(const MatrixView& m, std::int64_t i) {
  std::vector<double> out(static_cast<std::size_t>(m.cols));
  for (std::int64_t j = 0; j < m.cols; ++j) out[static_cast<std::size_t>(j)] = m(i, j);
  return out;
}

void check_rows(const MatrixView& q, const MatrixView& k) {
  check_view(q, "q");
  check_view(k, "k");
  if (q.rows != k.rows || q.cols != k.cols || q.rows < 1)
    throw Error(Status::dim_mismatch, message("q is ", q.rows, " x ", q.cols, " and k is ", k.rows,
                                              " x ", k.cols, "; they must be alike, with a row"));
}

} // namespace

ScoreTerms score_terms(std::span<const double> q, std::span<const double> k) {
  if (q.size() != k.size() || q.size() % 2 != 0 || q.empty())
    throw Error(Status::dim_mismatch, message("q and k have ", q.size(), " and ", k.size(),
                                              " elements; they must have the same even number"));
  check_vector(q, "q");
  check_vector(k, "k");
  ScoreTerms terms = terms_of(q, k);
  for (const double a : terms.alpha) checked(a, "alpha of q and k");
  for (const double b : terms.beta) checked(b, "beta of q and k");
  return terms;
}

ScoreEnvelope score_envelope(std::span<const double> q, std::span<const double> k) {
  const ScoreEnvelope e = envelope_of(score_terms(q, k));
  checked(e.amplitude, "the amplitude of q and k");
  checked(e.offset, "the offset of q and k");
  return e;
}

double rotary_score(std::span<const double> q, std::span<const double> k,
                    std::span<const double> phi_m, std::span<const double> phi_n) {
  check_pair(q, k, phi_m, phi_n);
  return checked(score(terms_of(q, k), phi_m, phi_n), "the score of q and k");
}

ScoreBounds rotary_bounds(std::span<const double> q, std::span<const double> k,
                          std::span<const double> phi_m, std::span<const double> phi_n) {
  check_pair(q, k, phi_m, phi_n);
  if (q.empty()) return {0, 0};
  const ScoreEnvelope e = envelope_of(terms_of(q, k));
  double distance = 0;
  for (std::size_t t = 0; t < phi_m.size(); ++t)
    distance = std::hypot(distance, phi_m[t] - phi_n[t]);
  const double upper =
      checked(e.amplitude * std::cos(distance / static_cast<double>(e.pairs)) + e.offset,
              "the score bound of q and k");
  return {upper, -upper};
}

double ball_gap(const BallPair& pair) {
  check_not_negative(pair.distance, "distance");
  for (const double norm : {pair.norm_m, pair.norm_n})
    if (!(norm >= 0 && norm < 1))
      throw Error(Status::invalid_argument, message("a norm is ", norm, "; it must lie in [0, 1)"));
  const double r_m = 2 * std::atanh(pair.norm_m), r_n = 2 * std::atanh(pair.norm_n);
  const double slack = 1e-9 * (1 + r_m + r_n);
  if (pair.distance > r_m + r_n + slack || pair.distance < std::fabs(r_m - r_n) - slack)
    throw Error(Status::invalid_argument,
                message("distance is ", pair.distance, "; points of norms ", pair.norm_m, " and ",
                        pair.norm_n, " are between ", std::fabs(r_m - r_n), " and ", r_m + r_n,
                        " apart"));
  return std::sqrt(half_excess(pair.distance) * shrink(pair.norm_m) * shrink(pair.norm_n));
}

double envelope_at(const ScoreEnvelope& e, const BallPair& pair, double scale) {
  check_scale(scale);
  return checked(e.amplitude * std::cos(scale * ball_gap(pair) / static_cast<double>(e.pairs)) +
                     e.offset,
                 "the bound");
}

// dA+/dgap = -scale |alpha*| sin(scale gap / d), and |alpha*| = amplitude / d.
double envelope_slope_distance(const ScoreEnvelope& e, const BallPair& pair, double scale) {
  check_scale(scale);
  const double gap = ball_gap(pair), d = static_cast<double>(e.pairs);
  const double by_gap = -scale * e.amplitude / d * std::sin(scale * gap / d);
  return checked(by_gap * std::sqrt(gap * gap + shrink(pair.norm_m) * shrink(pair.norm_n)) / 2,
                 "the slope of the bound with the distance");
}

double envelope_slope_generality(const ScoreEnvelope& e, const BallPair& pair, double scale) {
  check_scale(scale);
  const double gap = ball_gap(pair), d = static_cast<double>(e.pairs);
  const double by_gap = -scale * e.amplitude / d * std::sin(scale * gap / d);
  return checked(by_gap * pair.norm_m / std::sqrt(shrink(pair.norm_m)) *
                     std::sqrt(half_excess(pair.distance) * shrink(pair.norm_n)),
                 "the slope of the bound with the generality");
}

// At the origin the other point has the norm tanh(d_p / 2) = sqrt(C / (C + 1)).
double envelope_limit(const ScoreEnvelope& e, double distance, double scale) {
  check_scale(scale);
  check_not_negative(distance, "distance");
  return checked(e.amplitude *
                         std::cos(scale * std::tanh(distance / 2) / static_cast<double>(e.pairs)) +
                     e.offset,
                 "the limit of the bound");
}

double expected_margin(const MatrixView& covariance, std::span<const double> phi_m,
                       std::span<const double> phi_n) {
  check_view(covariance, "covariance");
  if (covariance.rows != covariance.cols ||
      static_cast<std::size_t>(covariance.cols) != 2 * phi_m.size())
    throw Error(Status::dim_mismatch,
                message("covariance is ", covariance.rows, " x ", covariance.cols, "; with ",
                        phi_m.size(), " angles it must be ", 2 * phi_m.size(), " square"));
  check_finite(covariance, "covariance");
  check_vector(phi_m, "phi_m");
  check_length(phi_n, phi_m.size(), "phi_n");
  double margin = 0;
  for (std::size_t t = 0; t < phi_m.size(); ++t) {
    const auto i = static_cast<std::int64_t>(2 * t), j = i + 1;
    const double x = phi_n[t] - phi_m[t];
    margin += (covariance(i, i) + covariance(j, j)) * std::cos(x) +
              (covariance(j, i) - covariance(i, j)) * std::sin(x);
  }
  return checked(margin, "the margin");
}

double expected_score(std::span<const double> q, std::span<const double> k,
                      std::span<const double> phi_m, std::span<const double> phi_n,
                      std::span<const double> sd_m, std::span<const double> sd_n) {
  ScoreTerms terms = score_terms(q, k);
  const std::size_t d = terms.alpha.size();
  check_length(phi_m, d, "phi_m");
  check_length(phi_n, d, "phi_n");
  check_deviations(sd_m, d, "sd_m");
  check_deviations(sd_n, d, "sd_n");
  for (std::size_t t = 0; t < d; ++t) {
    const double accuracy = approximation_accuracy(sd_m[t], sd_n[t]);
    terms.alpha[t] *= accuracy;
    terms.beta[t] *= accuracy;
  }
  return checked(score(terms, phi_m, phi_n), "the expected score");
}

double approximation_accuracy(double sd_m, double sd_n) {
  check_not_negative(sd_m, "sd_m");
  check_not_negative(sd_n, "sd_n");
  return std::exp(-(sd_m * sd_m + sd_n * sd_n) / 2);
}

double average_bias(const MatrixView& q, const MatrixView& k, std::span<const double> phi_m,
                    std::span<const double> phi_n, double sd, std::int64_t n, Rng& rng) {
  check_rows(q, k);
  check_not_negative(sd, "sd");
  if (n < 1 || (q.rows != 1 && q.rows != n))
    throw Error(Status::invalid_argument, message("n is ", n, " with ", q.rows,
                                                  " rows of q; there must be one row, or n >= 1"));
  const ScoreTerms first = score_terms(row(q, 0), row(k, 0));
  check_length(phi_m, first.alpha.size(), "phi_m");
  check_length(phi_n, first.alpha.size(), "phi_n");
  std::vector<double> noisy_m(phi_m.size()), noisy_n(phi_n.size());
  double sum = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const ScoreTerms terms = q.rows == 1 || i == 0 ? first : score_terms(row(q, i), row(k, i));
    for (std::size_t t = 0; t < phi_m.size(); ++t) {
      noisy_m[t] = phi_m[t] + sd * rng.normal();
      noisy_n[t] = phi_n[t] + sd * rng.normal();
    }
    sum += score(terms, noisy_m, noisy_n) - score(terms, phi_m, phi_n);
  }
  return checked(sum / static_cast<double>(n), "the average bias");
}

double mean_square_product(const MatrixView& q, const MatrixView& k) {
  check_rows(q, k);
  check_finite(q, "q");
  check_finite(k, "k");
  double sum = 0;
  for (std::int64_t i = 0; i < q.rows; ++i) {
    double qq = 0, kk = 0;
    for (std::int64_t j = 0; j < q.cols; ++j) {
      qq += q(i, j) * q(i, j);
      kk += k(i, j) * k(i, j);
    }
    sum += qq * kk;
  }
  return checked(sum / static_cast<double>(q.rows), "the mean square of |q||k|");
}

double hoeffding_bound(double epsilon, std::int64_t n, double second_moment) {
  check_not_negative(epsilon, "epsilon");
  check_not_negative(second_moment, "second_moment");
  if (n < 1) throw Error(Status::invalid_argument, message("n is ", n, "; it must be at least 1"));
  if (epsilon == 0) return 1;
  if (second_moment == 0) return 0;
  return std::min(1.0,
                  2 * std::exp(-epsilon * epsilon * static_cast<double>(n) / (8 * second_moment)));
}

} // namespace cape
