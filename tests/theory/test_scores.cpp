// Rotary scores and their bounds, against the rotation of queries and keys.
#define BOOST_TEST_MODULE scores
#include <boost/test/unit_test.hpp>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <numbers>
#include <span>
#include <string>
#include <vector>
import cape;
#include "errors.hpp"
#include "tables.hpp"

namespace {

using cape::Matrix;
using std::numbers::pi;
using test::dot;
using test::error_of;
using test::has;
using test::random_matrix;
using test::row;

std::span<const double> span(const Matrix& m) {
  return {m.data(), static_cast<std::size_t>(m.size())};
}

// A pseudo-random q, k, phi_m, phi_n with pairs <= 9 and |phi| <= pi/4.
struct Draw {
  Matrix q, k, phi_m, phi_n;
};
Draw draw(cape::Rng& rng) {
  const std::int64_t d = 1 + rng.integer(9);
  return {random_matrix(rng, 1, 2 * d, 3), random_matrix(rng, 1, 2 * d, 3),
          random_matrix(rng, 1, d, pi / 4), random_matrix(rng, 1, d, pi / 4)};
}

} // namespace

BOOST_AUTO_TEST_CASE(scores_depend_on_relative_positions_only) {
  cape::Rng rng(14);
  for (int trial = 0; trial < 200; ++trial) {
    const Draw x = draw(rng);
    Matrix difference = x.phi_n;
    for (std::int64_t t = 0; t < difference.cols(); ++t) difference(0, t) -= x.phi_m(0, t);
    const double both = dot(cape::rotate(x.q, x.phi_m), cape::rotate(x.k, x.phi_n));
    const double relative = dot(x.q, cape::rotate(x.k, difference));
    const double score = cape::rotary_score(span(x.q), span(x.k), span(x.phi_m), span(x.phi_n));
    BOOST_TEST(std::fabs(both - relative) < 1e-12);
    BOOST_TEST(std::fabs(score - relative) < 1e-12);
  }
}

BOOST_AUTO_TEST_CASE(scores_lie_between_their_bounds) {
  cape::Rng rng(15);
  for (int trial = 0; trial < 5000; ++trial) {
    const Draw x = draw(rng);
    const double score = cape::rotary_score(span(x.q), span(x.k), span(x.phi_m), span(x.phi_n));
    const auto bounds = cape::rotary_bounds(span(x.q), span(x.k), span(x.phi_m), span(x.phi_n));
    BOOST_TEST(bounds.lower <= score);
    BOOST_TEST(score <= bounds.upper);
    BOOST_TEST(bounds.lower == -bounds.upper);
  }
}

BOOST_AUTO_TEST_CASE(the_bound_of_one_pair_has_its_closed_form) {
  // d = 1, q = (1, 0), k = (0.6, 0.8), phi_n - phi_m = 0 - pi/3: alpha = 0.6, beta = -0.8, so
  // A+ = 0.6 cos(pi/3) + 0.8 = 1.1; the score is 0.6 cos(pi/3) + 0.8 sin(pi/3).
  const Matrix q = row({1, 0}), k = row({0.6, 0.8}), phi_m = row({pi / 3}), phi_n = row({0});
  const auto bounds = cape::rotary_bounds(span(q), span(k), span(phi_m), span(phi_n));
  BOOST_TEST(std::fabs(bounds.upper - 1.1) < 1e-15);
  BOOST_TEST(std::fabs(cape::rotary_score(span(q), span(k), span(phi_m), span(phi_n)) -
                       (0.3 + 0.4 * std::numbers::sqrt3)) < 1e-15);
}

BOOST_AUTO_TEST_CASE(bounds_narrow_with_distance) {
  // Proposition prop_distance: along a ray from e_m = 0, A+ falls and A- rises.
  cape::Rng rng(16);
  for (int trial = 0; trial < 100; ++trial) {
    const Draw x = draw(rng);
    const Matrix origin(1, x.phi_m.cols());
    double last = std::numeric_limits<double>::infinity();
    for (double r = 0; r < 1; r += 0.05) {
      Matrix phi = x.phi_n;
      for (std::int64_t t = 0; t < phi.cols(); ++t) phi(0, t) *= r;
      const double upper = cape::rotary_bounds(span(x.q), span(x.k), span(origin), span(phi)).upper;
      BOOST_TEST(upper <= last);
      last = upper;
    }
  }
}

BOOST_AUTO_TEST_CASE(collinear_scores_attenuate_with_distance) {
  // Corollary coro_attenuation: k = c q; the score times the sign of c does not rise with distance.
  cape::Rng rng(17);
  for (const double c : {2.0, -0.5}) {
    const std::int64_t d = 6;
    const Matrix q = random_matrix(rng, 1, 2 * d, 3), origin(1, d);
    Matrix k = q, point = random_matrix(rng, 1, d, 1);
    for (std::int64_t j = 0; j < k.cols(); ++j) k(0, j) *= c;
    const double norm = std::sqrt(dot(point, point));
    double last = std::numeric_limits<double>::infinity();
    for (double r = 0; r < 1; r += 0.01) {
      Matrix e = point;
      for (std::int64_t t = 0; t < d; ++t) e(0, t) *= r / norm;
      const Matrix phi = cape::rotary_angles(e);
      const double signed_score =
          std::copysign(1.0, c) * cape::rotary_score(span(q), span(k), span(origin), span(phi));
      BOOST_TEST(signed_score < last);
      last = signed_score;
    }
  }
}

BOOST_AUTO_TEST_CASE(wrong_shapes_are_refused_with_both_numbers) {
  const auto refusal = [](auto f) { return error_of(cape::Status::dim_mismatch, f); };
  const std::vector<double> four(4), three(3), two(2);
  BOOST_TEST(has(refusal([&] { cape::rotary_score(four, four, two, three); }), {"4", "3"}));
  BOOST_TEST(has(refusal([&] { cape::rotary_bounds(three, three, two, two); }), {"3", "2"}));
}

BOOST_AUTO_TEST_CASE(nothing_that_is_not_finite_comes_out) {
  const auto refusal = [](auto f) { return error_of(cape::Status::invalid_argument, f); };
  const std::vector<double> big{1e200, 0}, zero{0};
  BOOST_TEST(has(refusal([&] { cape::rotary_score(big, big, zero, zero); }), {"score"}));
  BOOST_TEST(has(refusal([&] { cape::rotary_bounds(big, big, zero, zero); }), {"bound"}));
}
