// The paper's statements about attention scores, each over random draws in its stated domain, and
// the counter-examples to those that do not hold (docs/method.md, section 5).
#define BOOST_TEST_MODULE theory
#include <boost/test/unit_test.hpp>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numbers>
#include <vector>
import cape;
#include "errors.hpp"

using namespace cape;
using test::fails_with;
using Vec = std::vector<double>;

namespace {

constexpr double pi = std::numbers::pi;
constexpr int draws = 200;

Vec normals(Rng& rng, std::size_t n) {
  Vec out(n);
  for (double& x : out) x = rng.normal();
  return out;
}

double norm(const Vec& v) {
  double sum = 0;
  for (const double x : v) sum += x * x;
  return std::sqrt(sum);
}

// In a random direction, of a given Euclidean norm.
Vec in_ball(Rng& rng, std::size_t d, double length) {
  Vec out = normals(rng, d);
  const double factor = length / norm(out);
  for (double& x : out) x *= factor;
  return out;
}

Vec angles(const Vec& e) {
  Vec out = e;
  for (double& x : out) x *= pi / 4;
  return out;
}

double gap(const Vec& a, const Vec& b) {
  Vec out = a;
  for (std::size_t i = 0; i < a.size(); ++i) out[i] -= b[i];
  return norm(out);
}

// Norms in (0, 1) and a distance that points of these norms can have.
BallPair random_pair(Rng& rng) {
  const double m = rng.uniform(0.05, 0.95), n = rng.uniform(0.05, 0.95);
  const double r_m = 2 * std::atanh(m), r_n = 2 * std::atanh(n);
  const double least = std::abs(r_m - r_n), most = r_m + r_n;
  return {least + rng.uniform(0.1, 0.9) * (most - least), m, n};
}

// q, k and a dimension.
void for_draws(const std::function<void(Rng&, std::size_t)>& body) {
  for (const std::size_t d : {1, 2, 8, 64})
    for (int i = 0; i < draws; ++i) {
      Rng rng(17, {hash("theory"), d, static_cast<std::uint64_t>(i)});
      body(rng, d);
    }
}

MatrixView as_row(const Vec& v) {
  const auto n = static_cast<std::int64_t>(v.size());
  return {v.data(), 1, n, n, Layout::row_major};
}

} // namespace

BOOST_AUTO_TEST_SUITE(envelope)

// eq_A_cos_sin against the definition by rotation.
BOOST_AUTO_TEST_CASE(terms_give_the_score) {
  for_draws([](Rng& rng, std::size_t d) {
    const Vec q = normals(rng, 2 * d), k = normals(rng, 2 * d), a = normals(rng, d),
              b = normals(rng, d);
    const ScoreTerms terms = score_terms(q, k);
    double sum = 0;
    for (std::size_t t = 0; t < d; ++t)
      sum += terms.alpha[t] * std::cos(b[t] - a[t]) + terms.beta[t] * std::sin(b[t] - a[t]);
    const Matrix left = rotate(as_row(q), as_row(a)), right = rotate(as_row(k), as_row(b));
    double product = 0;
    for (std::int64_t i = 0; i < left.cols(); ++i) product += left(0, i) * right(0, i);
    BOOST_TEST(std::abs(sum - product) <= 1e-12 * (1 + norm(q) * norm(k)));
  });
}

// prop_distance (1): A- <= A <= A+ in the ball, and A+ of the pair is that of the angles.
BOOST_AUTO_TEST_CASE(scores_lie_between_the_bounds) {
  for_draws([](Rng& rng, std::size_t d) {
    const Vec q = normals(rng, 2 * d), k = normals(rng, 2 * d);
    const Vec m = in_ball(rng, d, rng.uniform(0, 0.999)),
              n = in_ball(rng, d, rng.uniform(0, 0.999));
    const ScoreEnvelope e = score_envelope(q, k);
    const BallPair pair{poincare::distance(m, n), norm(m), norm(n)};
    const double upper = envelope_at(e, pair), score = rotary_score(q, k, angles(m), angles(n));
    BOOST_TEST(std::abs(score) <= upper * (1 + 1e-12));
    BOOST_TEST(std::abs(upper - rotary_bounds(q, k, angles(m), angles(n)).upper) <= 1e-10 * upper);
    BOOST_TEST(upper > 0);
  });
}

// eq_inverse.
BOOST_AUTO_TEST_CASE(gap_is_the_euclidean_distance) {
  for_draws([](Rng& rng, std::size_t d) {
    const Vec m = in_ball(rng, d, rng.uniform(0, 0.99)), n = in_ball(rng, d, rng.uniform(0, 0.99));
    BOOST_TEST(std::abs(ball_gap({poincare::distance(m, n), norm(m), norm(n)}) - gap(m, n)) <=
               1e-11);
  });
}

// prop_distance (2), eq_partialA: by central differences, and not positive.
BOOST_AUTO_TEST_CASE(bound_falls_with_distance_at_fixed_norms) {
  for_draws([](Rng& rng, std::size_t d) {
    const ScoreEnvelope e = score_envelope(normals(rng, 2 * d), normals(rng, 2 * d));
    const BallPair pair = random_pair(rng);
    const double h = 1e-4 * pair.distance, slope = envelope_slope_distance(e, pair);
    const double numeric = (envelope_at(e, {pair.distance + h, pair.norm_m, pair.norm_n}) -
                            envelope_at(e, {pair.distance - h, pair.norm_m, pair.norm_n})) /
                           (2 * h);
    BOOST_TEST(slope <= 0);
    BOOST_TEST(std::abs(slope - numeric) <= 1e-6 * std::abs(slope) + 1e-11 * e.amplitude / h);
  });
}

// prop_specificity: the same for psi_m, and by symmetry psi_n, at a fixed distance.
BOOST_AUTO_TEST_CASE(bound_falls_with_generality_at_fixed_distance) {
  for_draws([](Rng& rng, std::size_t d) {
    const ScoreEnvelope e = score_envelope(normals(rng, 2 * d), normals(rng, 2 * d));
    const BallPair pair = random_pair(rng);
    const double h = 1e-5, slope = envelope_slope_generality(e, pair);
    const double numeric = (envelope_at(e, {pair.distance, pair.norm_m - h, pair.norm_n}) -
                            envelope_at(e, {pair.distance, pair.norm_m + h, pair.norm_n})) /
                           (2 * h);
    BOOST_TEST(slope <= 0);
    BOOST_TEST(std::abs(slope - numeric) <= 1e-6 * std::abs(slope) + 1e-11 * e.amplitude / h);
    const BallPair turned{pair.distance, pair.norm_n, pair.norm_m};
    BOOST_TEST(envelope_slope_generality(e, turned) <= 0);
  });
}

// The corollary of prop_specificity: A+ -> a as psi_m -> 1, and a falls with the distance.
BOOST_AUTO_TEST_CASE(bound_tends_to_a_at_the_origin) {
  for_draws([](Rng& rng, std::size_t d) {
    const ScoreEnvelope e = score_envelope(normals(rng, 2 * d), normals(rng, 2 * d));
    const double distance = rng.uniform(0.1, 6), a = envelope_limit(e, distance);
    double last = std::abs(
        envelope_at(e, {distance, 0.5 * std::tanh(distance / 4), std::tanh(distance / 2)}) - a);
    for (const double m : {1e-2, 1e-4, 1e-8}) {
      const double error = std::abs(
          envelope_at(e, {distance, m * std::tanh(distance / 4), std::tanh(distance / 2)}) - a);
      BOOST_TEST(error <= last);
      last = error;
    }
    BOOST_TEST(last <= 1e-12 * a);
    BOOST_TEST(a > 0);
    BOOST_TEST(envelope_limit(e, distance + 0.1) < a);
    // Its formula: C = (cosh d - 1) / 2.
    const double c = (std::cosh(distance) - 1) / 2, dd = static_cast<double>(d);
    BOOST_TEST(std::abs(a - (e.amplitude * std::cos(pi / (4 * dd) * std::sqrt(c / (c + 1))) +
                             e.offset)) <= 1e-13 * a);
  });
}

// coro_attenuation and coro_specificity hold along a fixed direction of phi_m - phi_n.
BOOST_AUTO_TEST_CASE(collinear_scores_fall_along_a_direction) {
  for_draws([](Rng& rng, std::size_t d) {
    const Vec q = normals(rng, 2 * d), direction = in_ball(rng, d, 1), zero(d);
    for (const double c : {2.0, -0.5}) {
      Vec k = q;
      for (double& x : k) x *= c;
      double last = c < 0 ? 1e300 : -1e300;
      for (double length = pi / 2; length >= 0; length -= pi / 20) {
        Vec x = direction;
        for (double& v : x) v *= length;
        const double score = rotary_score(q, k, x, zero);
        BOOST_TEST((c > 0 ? score >= last : score <= last));
        last = score;
      }
    }
  });
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(counter_examples)

// coro_attenuation does not hold for any move that takes the points apart: eq_partial_A_vs_e takes
// the inverse of d|x|/dx_t for dx_t/d|x|.
BOOST_AUTO_TEST_CASE(collinear_scores_can_rise_with_distance) {
  const Vec q{0, 0, 1, 0}, n{0, 0};
  const Vec near{0, 0.5}, far{0.6, 0.2};
  BOOST_TEST(poincare::distance(far, n) > poincare::distance(near, n));
  BOOST_TEST(rotary_score(q, q, angles(far), angles(n)) >
             rotary_score(q, q, angles(near), angles(n)));
}

// prop_distance needs fixed norms: nearer the rim, a pair can be farther apart with a higher A+.
BOOST_AUTO_TEST_CASE(bound_can_rise_with_distance_when_norms_change) {
  const ScoreEnvelope e = score_envelope(Vec{1, 0}, Vec{1, 0});
  const Vec a{0.999}, b{0.5}, zero{0}, c{0.9};
  const BallPair outer{poincare::distance(a, b), 0.999, 0.5},
      inner{poincare::distance(c, zero), 0.9, 0};
  BOOST_TEST(outer.distance > inner.distance);
  BOOST_TEST(envelope_at(e, outer) > envelope_at(e, inner));
}

// remark_distance: the range "shrinks significantly". In 64 dimensions it shrinks by 0.03 % at
// most.
BOOST_AUTO_TEST_CASE(bound_hardly_moves_in_many_dimensions) {
  Rng rng(3);
  const ScoreEnvelope e = score_envelope(normals(rng, 128), normals(rng, 128));
  const double widest = envelope_at(e, {0, 0.5, 0.5});
  const double r = 2 * std::atanh(0.999999);
  const double narrowest = envelope_at(e, {2 * r, 0.999999, 0.999999}); // opposite, at the rim
  BOOST_TEST(narrowest < widest);
  BOOST_TEST(1 - narrowest / widest < 3.1e-4);
}

// prop_distinguish: Cov(q_t, k_t) > 0 for all t, angles in range, and yet a negative margin, by the
// sines that eq_ED leaves out.
BOOST_AUTO_TEST_CASE(margin_can_be_negative) {
  Matrix covariance(2, 2);
  covariance(0, 0) = covariance(1, 1) = 0.1;
  covariance(0, 1) = 1;
  covariance(1, 0) = -1;
  BOOST_TEST(expected_margin(covariance, Vec{0}, Vec{0.7}) < 0);
}

// remark_approx says 93.8 % within pi/12; it is 93.4 %.
BOOST_AUTO_TEST_CASE(accuracy_within_a_twelfth_of_pi_is_934_per_mille) {
  const double least = approximation_accuracy(pi / 12, pi / 12);
  BOOST_TEST(least > 0.933);
  BOOST_TEST(least < 0.934);
}

// prop_asymptotic: xi_N comes near its mean, which is not 0.
BOOST_AUTO_TEST_CASE(average_bias_does_not_vanish) {
  const Vec q{1, 0}, zero{0};
  const double mean = expected_score(q, q, zero, zero, Vec{0.3}, Vec{0.3}) - 1;
  Rng rng(5);
  const double bias = average_bias(as_row(q), as_row(q), zero, zero, 0.3, 100000, rng);
  BOOST_TEST(mean < -0.08); // exp(-0.09) - 1
  BOOST_TEST(std::abs(bias - mean) < 0.005);
  BOOST_TEST(hoeffding_bound(0.04, 100000, 1) < 1e-8); // what the paper says of |xi_N| >= 0.04
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(robustness)

// prop_unbias, eq_EnoiseA: against the mean of many noisy scores (noise as a stated number of
// standard errors), and tends to the score as the noise does to 0.
BOOST_AUTO_TEST_CASE(expected_score_is_the_mean_of_noisy_scores) {
  for (const std::size_t d : {1, 4}) {
    Rng rng(23, {d});
    const Vec q = normals(rng, 2 * d), k = normals(rng, 2 * d);
    const Vec m = angles(in_ball(rng, d, 0.6)), n = angles(in_ball(rng, d, 0.8));
    Vec sd_m(d), sd_n(d);
    for (std::size_t t = 0; t < d; ++t) {
      sd_m[t] = rng.uniform(0, 0.5);
      sd_n[t] = rng.uniform(0, 0.5);
    }
    double sum = 0, squares = 0;
    constexpr int n_noise = 200000;
    for (int i = 0; i < n_noise; ++i) {
      Vec a = m, b = n;
      for (std::size_t t = 0; t < d; ++t) {
        const double shared = 0.3; // the mean mu of both disturbances cancels
        a[t] += shared + sd_m[t] * rng.normal();
        b[t] += shared + sd_n[t] * rng.normal();
      }
      const double s = rotary_score(q, k, a, b);
      sum += s;
      squares += s * s;
    }
    const double mean = sum / n_noise,
                 error = std::sqrt((squares / n_noise - mean * mean) / n_noise);
    BOOST_TEST(std::abs(mean - expected_score(q, k, m, n, sd_m, sd_n)) <= 4.5 * error);
    const Vec none(d);
    BOOST_TEST(std::abs(expected_score(q, k, m, n, none, none) - rotary_score(q, k, m, n)) <=
               1e-14 * norm(q) * norm(k));
  }
}

// eq_Acc is the ratio of the two.
BOOST_AUTO_TEST_CASE(accuracy_is_the_ratio_to_the_true_score) {
  for_draws([](Rng& rng, std::size_t d) {
    const Vec q = normals(rng, 2 * d), k = normals(rng, 2 * d), m = angles(in_ball(rng, d, 0.5)),
              n(d);
    const double s = rng.uniform(0, pi / 12), t = rng.uniform(0, pi / 12);
    const double accuracy = approximation_accuracy(s, t);
    BOOST_TEST(std::abs(expected_score(q, k, m, n, Vec(d, s), Vec(d, t)) -
                        accuracy * rotary_score(q, k, m, n)) <= 1e-13 * norm(q) * norm(k));
    BOOST_TEST(accuracy >= 0.933);
    BOOST_TEST(accuracy <= 1);
  });
}

// eq_ED: against the mean over draws of v with W_q, W_k, and positive for symmetric blocks.
BOOST_AUTO_TEST_CASE(margin_is_the_mean_difference_of_scores) {
  const std::size_t d = 2, size = 2 * d;
  Rng rng(29);
  std::vector<Vec> wq(size), wk(size);
  for (std::size_t i = 0; i < size; ++i) {
    wq[i] = normals(rng, size);
    wk[i] = normals(rng, size);
  }
  const auto image = [&](const std::vector<Vec>& w, const Vec& v) {
    Vec out(size);
    for (std::size_t i = 0; i < size; ++i)
      for (std::size_t j = 0; j < size; ++j) out[i] += w[i][j] * v[j];
    return out;
  };
  Matrix covariance(4, 4); // of W_q v and W_k v for Cov(v) = 1
  for (std::size_t i = 0; i < size; ++i)
    for (std::size_t j = 0; j < size; ++j)
      for (std::size_t l = 0; l < size; ++l)
        covariance(std::int64_t(i), std::int64_t(j)) += wq[i][l] * wk[j][l];
  const Vec m{0.3, -0.5}, n{-0.2, 0.6};
  double sum = 0, squares = 0;
  constexpr int n_draws = 200000;
  for (int i = 0; i < n_draws; ++i) {
    Vec v = normals(rng, size), w = normals(rng, size), noisy = v;
    for (std::size_t j = 0; j < size; ++j) {
      v[j] += 1; // a mean that is not 0 cancels
      w[j] += 1;
      noisy[j] = v[j] + 0.5 * rng.normal();
    }
    const Vec q = image(wq, v);
    const double x = rotary_score(q, image(wk, noisy), m, n) - rotary_score(q, image(wk, w), m, n);
    sum += x;
    squares += x * x;
  }
  const double mean = sum / n_draws, error = std::sqrt((squares / n_draws - mean * mean) / n_draws);
  BOOST_TEST(std::abs(mean - expected_margin(covariance, m, n)) <= 4.5 * error);

  for_draws([](Rng& r, std::size_t pairs) { // prop_distinguish where it holds: W_q = W_k
    const auto size2 = static_cast<std::int64_t>(2 * pairs);
    Matrix c(size2, size2), w(size2, size2);
    for (std::int64_t i = 0; i < size2 * size2; ++i) w.data()[i] = r.normal();
    for (std::int64_t i = 0; i < size2; ++i)
      for (std::int64_t j = 0; j < size2; ++j)
        for (std::int64_t l = 0; l < size2; ++l) c(i, j) += w(i, l) * w(j, l);
    BOOST_TEST(expected_margin(c, angles(in_ball(r, pairs, 0.9)), angles(in_ball(r, pairs, 0.9))) >
               0);
  });
}

// eq_xiHoeffding: xi_N leaves its mean by epsilon less often than the bound says.
BOOST_AUTO_TEST_CASE(deviations_of_the_average_bias_keep_the_bound) {
  const std::size_t d = 2;
  Rng rng(31);
  const Vec q = normals(rng, 2 * d), k = normals(rng, 2 * d), m{0.2, -0.1}, n{-0.4, 0.3};
  const double sd = 0.8, s = mean_square_product(as_row(q), as_row(k));
  BOOST_TEST(std::abs(s - std::pow(norm(q) * norm(k), 2)) <= 1e-12 * s);
  const double mean = expected_score(q, k, m, n, Vec(d, sd), Vec(d, sd)) - rotary_score(q, k, m, n);
  constexpr int repeats = 2000;
  for (const std::int64_t size : {1, 10, 50})
    for (const double epsilon : {0.5, 1.0, 2.0}) {
      int beyond = 0;
      for (int i = 0; i < repeats; ++i)
        beyond +=
            std::abs(average_bias(as_row(q), as_row(k), m, n, sd, size, rng) - mean) >= epsilon;
      BOOST_TEST(beyond / double(repeats) <= hoeffding_bound(epsilon, size, s));
    }
  double last = 1;
  for (const std::int64_t size : {1, 100, 10000}) { // and it tends to 0
    BOOST_TEST(hoeffding_bound(5, size, s) <= last);
    last = hoeffding_bound(5, size, s);
  }
  BOOST_TEST(last < 1e-6);
}

BOOST_AUTO_TEST_CASE(every_observation_may_have_its_own_query) {
  Rng rng(37), a(41), b(41);
  Matrix q(3, 4), k(3, 4);
  for (std::int64_t i = 0; i < 12; ++i) {
    q.data()[i] = rng.normal();
    k.data()[i] = rng.normal();
  }
  const Vec m{0.1, 0.2}, n{0.3, -0.2};
  double sum = 0;
  for (std::int64_t i = 0; i < 3; ++i) {
    const MatrixView qi{q.data() + i, 1, 4, 3, Layout::col_major},
        ki{k.data() + i, 1, 4, 3, Layout::col_major};
    sum += average_bias(qi, ki, m, n, 0.2, 1, b) / 3;
  }
  BOOST_TEST(std::abs(average_bias(q, k, m, n, 0.2, 3, a) - sum) <= 1e-14);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_CASE(bad_arguments_are_refused) {
  // Each pair's terms are finite, the amplitude or the sum over pairs is not.
  const Vec huge{1e308, 0, 1e308, 0}, along{1, 0, 1, 0}, across{0, 1, 0, 1};
  BOOST_CHECK_THROW(score_envelope(huge, along), cape::Error);
  BOOST_CHECK_THROW(score_envelope(huge, across), cape::Error);
  const Vec two{1, 2}, three{1, 2, 3}, nan{1, std::nan("")}, one{0.1}, negative{-0.1}, none;
  const ScoreEnvelope e = score_envelope(two, two);
  const auto wrong = [](const std::function<void()>& call) {
    return fails_with(Status::invalid_argument, call);
  };
  const auto unfit = [](const std::function<void()>& call) {
    return fails_with(Status::dim_mismatch, call);
  };
  BOOST_TEST(unfit([&] { score_terms(two, three); }));
  BOOST_TEST(unfit([&] { score_terms(three, three); }));
  BOOST_TEST(unfit([&] { score_terms(none, none); }));
  BOOST_TEST(wrong([&] { score_terms(two, nan); }));
  BOOST_TEST(wrong([&] { score_terms(Vec{1e200, 0}, Vec{1e200, 0}); }));
  BOOST_TEST(wrong([&] { ball_gap({-1, 0.5, 0.5}); }));
  BOOST_TEST(wrong([&] { ball_gap({1, 1.0, 0.5}); }));
  BOOST_TEST(wrong([&] { ball_gap({1, 0.5, -0.1}); }));
  BOOST_TEST(wrong([&] { ball_gap({5, 0.5, 0.5}); }));   // farther than such points can be
  BOOST_TEST(wrong([&] { ball_gap({0.1, 0.1, 0.9}); })); // nearer
  BOOST_TEST(wrong([&] { envelope_at(e, {0.5, 0.5, 0.5}, 0); }));
  BOOST_TEST(wrong([&] { envelope_slope_distance(e, {0.5, 0.5, 0.5}, 1); }));
  BOOST_TEST(wrong([&] { envelope_slope_generality(e, {0.5, 0.5, 0.5}, std::nan("")); }));
  BOOST_TEST(wrong([&] { envelope_limit(e, -1); }));
  BOOST_TEST(unfit([&] { expected_score(two, two, one, one, one, two); }));
  BOOST_TEST(wrong([&] { expected_score(two, two, one, one, one, negative); }));
  BOOST_TEST(wrong([&] { approximation_accuracy(-1, 0); }));
  BOOST_TEST(unfit([&] { expected_margin(Matrix(2, 3), one, one); }));
  BOOST_TEST(unfit([&] { expected_margin(Matrix(2, 2), one, two); }));
  Rng rng(1);
  BOOST_TEST(wrong([&] { average_bias(as_row(two), as_row(two), one, one, 0.1, 0, rng); }));
  BOOST_TEST(wrong([&] { average_bias(as_row(two), as_row(two), one, one, -0.1, 1, rng); }));
  BOOST_TEST(wrong([&] { average_bias(Matrix(2, 2), Matrix(2, 2), one, one, 0.1, 3, rng); }));
  BOOST_TEST(unfit([&] { average_bias(Matrix(0, 2), Matrix(0, 2), one, one, 0.1, 3, rng); }));
  BOOST_TEST(unfit([&] { average_bias(as_row(two), as_row(two), two, one, 0.1, 1, rng); }));
  BOOST_TEST(unfit([&] { mean_square_product(Matrix(1, 2), Matrix(2, 2)); }));
  BOOST_TEST(wrong([&] { hoeffding_bound(-1, 1, 1); }));
  BOOST_TEST(wrong([&] { hoeffding_bound(1, 0, 1); }));
  BOOST_TEST(wrong([&] { hoeffding_bound(1, 1, -1); }));
  BOOST_TEST(hoeffding_bound(0, 5, 1) == 1);
  BOOST_TEST(hoeffding_bound(1, 5, 0) == 0);
}
