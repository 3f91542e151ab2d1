// The hyperboloid and the ball, against closed forms in polar coordinates and the laws of the
// geometry. Tolerances: coordinates are rounded to eps = 2^-52 of themselves, which moves a point
// at radius r by up to eps sinh r on the manifold; nothing can be more accurate than this unit, eps
// cosh r (times about sqrt(d) for sums over d terms).
#define BOOST_TEST_MODULE manifold
#include <boost/test/unit_test.hpp>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <utility>
#include <vector>
import cape;
#include "errors.hpp"

using namespace cape;
using test::fails_with;
using Point = std::vector<double>;

namespace {

constexpr double eps = std::numeric_limits<double>::epsilon();
constexpr std::int64_t dimensions[] = {1, 2, 3, 8, 64, 512};
constexpr double radii[] = {0.01, 1, 4, 16};
constexpr std::uint64_t seeds = 20;

struct Polar {
  double radius;
  Point direction; // unit
};

Point unit(Rng& rng, std::int64_t d) {
  Point n(static_cast<std::size_t>(d));
  double sum = 0;
  for (double& x : n) {
    x = rng.normal();
    sum += x * x;
  }
  for (double& x : n) x /= std::sqrt(sum);
  return n;
}

Polar random_polar(Rng& rng, std::int64_t d, double largest) {
  return {rng.uniform(0, largest), unit(rng, d)};
}

Point on_hyperboloid(const Polar& polar) {
  Point p{std::cosh(polar.radius)};
  for (const double x : polar.direction) p.push_back(std::sinh(polar.radius) * x);
  lorentz::project(p);
  return p;
}

// sinh^2(d/2) = sinh^2((r1-r2)/2) + sinh r1 sinh r2 sin^2(angle/2): the hyperbolic law of cosines.
double polar_distance(const Polar& a, const Polar& b) {
  double chord = 0;
  for (std::size_t i = 0; i < a.direction.size(); ++i)
    chord += std::pow(a.direction[i] - b.direction[i], 2);
  const double radial = std::sinh((a.radius - b.radius) / 2);
  return 2 * std::asinh(std::sqrt(radial * radial +
                                  std::sinh(a.radius) * std::sinh(b.radius) * chord / 4));
}

// What rounding of the coordinates of these points can do to a distance.
double unit_error(const Point& p, const Point& q) {
  return 8 * eps * std::sqrt(static_cast<double>(p.size())) * (p[0] + q[0]);
}

// A tangent at p of a given Lorentz length and random direction.
Point random_tangent(Rng& rng, const Point& p, double length) {
  Point u(p.size());
  for (double& x : u) x = rng.normal();
  lorentz::project_tangent(p, u, u);
  const double factor = length / lorentz::norm(p, u);
  for (double& x : u) x *= factor;
  return u;
}

Point difference(const Point& a, const Point& b) {
  Point out(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) out[i] = a[i] - b[i];
  return out;
}

double euclidean(const Point& a) {
  double sum = 0;
  for (const double x : a) sum += x * x;
  return std::sqrt(sum);
}

// <p,v>_L against the size of the terms that it is the sum of.
double departure(const Point& p, const Point& v) {
  const double size = euclidean(p) * euclidean(v);
  return size > 0 ? std::abs(lorentz::inner(p, v)) / size : 0;
}

bool on_manifold(const Point& p) {
  const double sum = static_cast<double>(p.size() + 4) * eps;
  return std::isfinite(p[0]) && p[0] >= 1 &&
         std::abs(lorentz::inner(p, p) + 1) <= sum * p[0] * p[0];
}

// For every dimension and seed.
void for_all(const std::function<void(Rng&, std::int64_t, double)>& body) {
  for (const std::int64_t d : dimensions)
    for (const double largest : radii)
      for (std::uint64_t seed = 0; seed < seeds; ++seed) {
        Rng rng(seed, {static_cast<std::uint64_t>(d), hash("manifold")});
        body(rng, d, largest);
      }
}

Matrix rows(const std::vector<Point>& points) {
  Matrix m(static_cast<std::int64_t>(points.size()), static_cast<std::int64_t>(points[0].size()));
  for (std::int64_t i = 0; i < m.rows(); ++i)
    for (std::int64_t k = 0; k < m.cols(); ++k)
      m(i, k) = points[static_cast<std::size_t>(i)][static_cast<std::size_t>(k)];
  return m;
}

} // namespace

BOOST_AUTO_TEST_CASE(distance_is_that_of_the_law_of_cosines) {
  for_all([](Rng& rng, std::int64_t d, double largest) {
    const Polar a = random_polar(rng, d, largest), b = random_polar(rng, d, largest);
    const Point p = on_hyperboloid(a), q = on_hyperboloid(b);
    BOOST_TEST(std::abs(lorentz::distance(p, q) - polar_distance(a, b)) <= unit_error(p, q));
  });
}

BOOST_AUTO_TEST_CASE(distance_of_near_points_is_as_accurate_as_their_coordinates) {
  for_all([](Rng& rng, std::int64_t d, double largest) {
    for (const double shift : {1e-1, 1e-4, 1e-8}) {
      const Polar a = random_polar(rng, d, largest), b = {a.radius + shift, a.direction};
      const Point p = on_hyperboloid(a), q = on_hyperboloid(b);
      BOOST_TEST(std::abs(lorentz::distance(p, q) - (b.radius - a.radius)) <= unit_error(p, q));
    }
  });
}

BOOST_AUTO_TEST_CASE(distance_is_zero_at_coincidence_and_symmetric_to_the_bit) {
  for_all([](Rng& rng, std::int64_t d, double largest) {
    const Point p = on_hyperboloid(random_polar(rng, d, largest)),
                q = on_hyperboloid(random_polar(rng, d, largest));
    BOOST_TEST(lorentz::distance(p, p) == 0);
    BOOST_TEST(lorentz::distance(p, q) == lorentz::distance(q, p));
    BOOST_TEST(lorentz::distance(p, q) > 0);
  });
}

// The naive arcosh gives NaN at radius 20, and 0 for points 1e-8 apart.
BOOST_AUTO_TEST_CASE(distance_stands_where_arcosh_fails) {
  for (const double r : {1.0, 5.0, 9.0, 10.0, 20.0, 100.0}) {
    const Point p{std::cosh(r), std::sinh(r)};
    BOOST_TEST(lorentz::distance(p, p) == 0);
  }
  for (const double apart : {1e-4, 1e-8, 1e-12}) {
    const Point p = on_hyperboloid({1, {1}}), q = on_hyperboloid({1 + apart, {1}});
    BOOST_TEST(std::abs(lorentz::distance(p, q) - apart) <= unit_error(p, q));
  }
}

BOOST_AUTO_TEST_CASE(distance_to_the_origin_is_the_radius) {
  for_all([](Rng& rng, std::int64_t d, double largest) {
    const Polar a = random_polar(rng, d, largest);
    const Point p = on_hyperboloid(a);
    Point origin(p.size());
    origin[0] = 1;
    // No cancellation here: relative precision at any radius.
    BOOST_TEST(std::abs(lorentz::distance(p, origin) - a.radius) <=
               8 * eps * std::sqrt(static_cast<double>(d)) * (a.radius + 1e-3));
  });
}

BOOST_AUTO_TEST_CASE(triangle_inequality) {
  for_all([](Rng& rng, std::int64_t d, double largest) {
    const Point a = on_hyperboloid(random_polar(rng, d, largest)),
                b = on_hyperboloid(random_polar(rng, d, largest)),
                c = on_hyperboloid(random_polar(rng, d, largest));
    const double around = lorentz::distance(a, b) + lorentz::distance(b, c);
    BOOST_TEST(lorentz::distance(a, c) <= around + unit_error(a, c) + unit_error(a, b));
  });
}

BOOST_AUTO_TEST_CASE(projections_land_on_the_manifold_and_its_tangent_space) {
  for_all([](Rng& rng, std::int64_t d, double largest) {
    const Point p = on_hyperboloid(random_polar(rng, d, largest));
    BOOST_TEST(on_manifold(p));
    Point u(p.size()), v(p.size()), again(p.size());
    for (double& x : u) x = rng.normal();
    lorentz::project_tangent(p, u, v);
    BOOST_TEST(departure(p, v) <= eps * static_cast<double>(p.size() + 8));
    lorentz::project_tangent(p, v, again);
    BOOST_TEST(lorentz::norm(p, difference(again, v)) <=
               16 * eps * std::sqrt(static_cast<double>(p.size())) * (euclidean(v) * p[0]));
    // prop_proj: u + <p,u>_L p, in the spatial coordinates.
    const double c = lorentz::inner(p, u);
    for (std::size_t k = 1; k < p.size(); ++k)
      BOOST_TEST(std::abs(v[k] - (u[k] + c * p[k])) <=
                 4 * eps * (std::abs(u[k]) + std::abs(c * p[k])));
  });
}

BOOST_AUTO_TEST_CASE(exponential_moves_by_the_length_of_the_tangent) {
  for_all([](Rng& rng, std::int64_t d, double largest) {
    const Point p = on_hyperboloid(random_polar(rng, d, largest));
    for (const double length : {1e-9, 1e-3, 1.0, 4.0}) {
      const Point v = random_tangent(rng, p, length);
      BOOST_TEST(std::abs(lorentz::norm(p, v) - length) <= 1e-12 * length);
      Point q(p.size());
      lorentz::exp(p, v, q);
      BOOST_TEST(on_manifold(q));
      BOOST_TEST(std::abs(lorentz::distance(p, q) - length) <=
                 unit_error(p, q) * std::cosh(length));
    }
  });
}

// The rounding of a tangent, eps |v~| <= eps p0 |v|_L, is a turn that grows like sinh on the way.
BOOST_AUTO_TEST_CASE(exponential_undoes_the_logarithm) {
  for_all([](Rng& rng, std::int64_t d, double largest) {
    const Point p = on_hyperboloid(random_polar(rng, d, largest));
    Point q(p.size()), v(p.size()), back(p.size());
    lorentz::exp(p, random_tangent(rng, p, rng.uniform(0, 4)), q);
    lorentz::log(p, q, v);
    BOOST_TEST(departure(p, v) <= eps * static_cast<double>(p.size() + 8));
    lorentz::exp(p, v, back);
    BOOST_TEST(lorentz::distance(q, back) <=
               4 * unit_error(p, q) * std::cosh(lorentz::distance(p, q)));
  });
}

BOOST_AUTO_TEST_CASE(logarithm_undoes_the_exponential) {
  for_all([](Rng& rng, std::int64_t d, double largest) {
    const Point p = on_hyperboloid(random_polar(rng, d, largest));
    for (const double length : {1e-9, 1e-3, 1.0, 4.0}) {
      const Point v = random_tangent(rng, p, length);
      Point q(p.size()), back(p.size());
      lorentz::exp(p, v, q);
      lorentz::log(p, q, back);
      BOOST_TEST(lorentz::norm(p, difference(back, v)) <= 8 * unit_error(p, q) * (1 + length));
    }
  });
}

BOOST_AUTO_TEST_CASE(transport_is_an_isometry_that_carries_the_geodesic_along) {
  for_all([](Rng& rng, std::int64_t d, double largest) {
    const Point p = on_hyperboloid(random_polar(rng, d, largest));
    Point q(p.size()), forth(p.size()), back(p.size()), v_at_q(p.size()), w_at_q(p.size());
    lorentz::exp(p, random_tangent(rng, p, rng.uniform(0.1, 3)), q);
    const Point v = random_tangent(rng, p, 1), w = random_tangent(rng, p, 2);
    lorentz::transport(p, q, v, v_at_q);
    lorentz::transport(p, q, w, w_at_q);
    const double unit = unit_error(p, q) * std::cosh(lorentz::distance(p, q));
    BOOST_TEST(departure(q, v_at_q) <= eps * static_cast<double>(p.size() + 8));
    BOOST_TEST(std::abs(lorentz::norm(q, v_at_q) - 1) <= 8 * unit);
    // <v,w>_L by polarisation, since inner() cancels at large radii.
    BOOST_TEST(std::abs(lorentz::norm(q, difference(v_at_q, w_at_q)) -
                        lorentz::norm(p, difference(v, w))) <= 16 * unit);
    // The tangent towards q arrives as minus the tangent towards p.
    lorentz::log(p, q, forth);
    lorentz::log(q, p, back);
    lorentz::transport(p, q, forth, forth);
    for (std::size_t k = 0; k < p.size(); ++k) forth[k] += back[k];
    BOOST_TEST(lorentz::norm(q, forth) <= 16 * unit);
  });
}

BOOST_AUTO_TEST_CASE(the_two_models_agree) {
  for_all([](Rng& rng, std::int64_t d, double largest) {
    const Polar a = random_polar(rng, d, largest), b = random_polar(rng, d, largest);
    const Point p = on_hyperboloid(a), q = on_hyperboloid(b);
    const auto n = static_cast<std::size_t>(d);
    Point ep(n), eq(n), back(n + 1), again(n);
    lorentz::to_poincare(p, ep);
    lorentz::to_poincare(q, eq);
    BOOST_TEST(std::abs(euclidean(ep) - std::tanh(a.radius / 2)) <= 8 * eps);
    BOOST_TEST(euclidean(ep) < 1);
    BOOST_TEST(std::abs(poincare::distance(ep, eq) - lorentz::distance(p, q)) <= unit_error(p, q));
    BOOST_TEST(poincare::distance(ep, ep) == 0);
    BOOST_TEST(poincare::distance(ep, eq) == poincare::distance(eq, ep));
    poincare::to_lorentz(ep, back);
    BOOST_TEST(on_manifold(back));
    BOOST_TEST(lorentz::distance(p, back) <= unit_error(p, p));
    lorentz::to_poincare(back, again);
    BOOST_TEST(euclidean(difference(again, ep)) <= 16 * eps);
  });
}

BOOST_AUTO_TEST_CASE(
    exponential_and_logarithm_of_the_ball_are_inverse_and_agree_with_the_hyperboloid) {
  for_all([](Rng& rng, std::int64_t d, double largest) {
    const Point p = on_hyperboloid(random_polar(rng, d, largest));
    Point q(p.size());
    lorentz::exp(p, random_tangent(rng, p, rng.uniform(0, 4)), q);
    const auto n = static_cast<std::size_t>(d);
    Point a(n), b(n), v(n), back(n);
    lorentz::to_poincare(p, a);
    lorentz::to_poincare(q, b);
    poincare::log(a, b, v);
    const double lambda = 2 / (1 - euclidean(a) * euclidean(a)); // conformal factor
    const double length = lorentz::distance(p, q), unit = unit_error(p, q) * std::cosh(length);
    BOOST_TEST(std::abs(lambda * euclidean(v) - length) <= 8 * unit);
    poincare::exp(a, v, back);
    BOOST_TEST(poincare::distance(back, b) <= 16 * unit);
  });
}

BOOST_AUTO_TEST_CASE(mobius_addition_is_the_textbook_formula) {
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    Rng rng(seed);
    Point a = unit(rng, 3), b = unit(rng, 3), sum(3);
    for (double& x : a) x *= 0.6;
    for (double& x : b) x *= 0.5;
    double ab = 0;
    for (std::size_t k = 0; k < 3; ++k) ab += a[k] * b[k];
    const double aa = 0.36, bb = 0.25, denominator = 1 + 2 * ab + aa * bb;
    poincare::add(a, b, sum);
    for (std::size_t k = 0; k < 3; ++k)
      BOOST_TEST(std::abs(sum[k] - ((1 + 2 * ab + bb) * a[k] + (1 - aa) * b[k]) / denominator) <=
                 16 * eps / denominator);
  }
  Point a{0.3, -0.2}, minus{-0.3, 0.2}, zero{0, 0}, out(2);
  poincare::add(a, zero, out);
  BOOST_TEST(euclidean(difference(out, a)) <= 2 * eps);
  poincare::add(a, minus, out);
  BOOST_TEST(euclidean(out) == 0);
}

// Drift off the hyperboloid.
BOOST_AUTO_TEST_CASE(a_thousand_steps_stay_on_the_manifold) {
  Rng rng(7);
  Point p(9);
  p[0] = 1;
  for (int step = 0; step < 1000; ++step) {
    lorentz::exp(p, random_tangent(rng, p, 0.5), p);
    BOOST_REQUIRE(std::abs(lorentz::inner(p, p) + 1) <= 1e-12 * p[0] * p[0]);
  }
}

BOOST_AUTO_TEST_CASE(a_zero_tangent_stays) {
  for_all([](Rng& rng, std::int64_t d, double largest) {
    const Point p = on_hyperboloid(random_polar(rng, d, largest)), zero(p.size());
    Point q(p.size()), v(p.size());
    lorentz::exp(p, zero, q);
    BOOST_TEST(q == p);
    lorentz::log(p, p, v);
    BOOST_TEST(v == zero);
    Point e(static_cast<std::size_t>(d)), out(e.size());
    lorentz::to_poincare(p, e);
    poincare::log(e, e, out);
    BOOST_TEST(euclidean(out) == 0);
  });
}

BOOST_AUTO_TEST_CASE(tiny_and_huge_tangents_give_finite_points) {
  for (const std::int64_t d : dimensions) {
    Rng rng(11, {static_cast<std::uint64_t>(d)});
    for (const double r : {0.0, 1e-200, 1.0, 16.0}) {
      Polar a = random_polar(rng, d, 1);
      a.radius = r;
      const Point p = on_hyperboloid(a);
      for (const double length : {1e-300, 1e-160, 1e-20, 50.0, 700.0, 1e5, 1e200}) {
        const Point v = random_tangent(rng, p, length);
        Point q(p.size()), back(p.size()), carried(p.size()), e(static_cast<std::size_t>(d));
        lorentz::exp(p, v, q);
        BOOST_TEST(on_manifold(q));
        BOOST_TEST(std::isfinite(lorentz::distance(p, q)));
        lorentz::log(p, q, back);
        try {
          lorentz::transport(p, q, v, carried);
          for (const double x : carried) BOOST_TEST(std::isfinite(x));
        } catch (const Error&) {
          BOOST_TEST(length > 1e150); // refused where it would overflow
        }
        lorentz::to_poincare(q, e);
        for (const double x : back) BOOST_TEST(std::isfinite(x));
        BOOST_TEST(euclidean(e) < 1);
        // Squares of what is below 1e-154 are 0. At radius 16, a way of 50 back past the origin
        // turns on the tangent's last bits.
        if (length <= 250 && r <= 1)
          BOOST_TEST(std::abs(lorentz::distance(p, q) - length) <=
                     1e-12 * length + 1e-150 + unit_error(p, p));
        Point far(e.size()), at(e.size());
        lorentz::to_poincare(p, at);
        poincare::exp(at, Point(v.begin() + 1, v.end()), far);
        BOOST_TEST(euclidean(far) < 1);
      }
    }
  }
}

// Out to the largest radius: at right angles cosh d = cosh^2 r, so that d = 2 r - ln 2, and
// opposite the origin d = 2 r. The way there, by log, has that length, and exp goes it as far as it
// may.
BOOST_AUTO_TEST_CASE(distances_stand_out_to_the_largest_radius) {
  for (const double r : {17.0, 100.0, 177.0, 178.0, 200.0, 300.0, 349.0, 350.0})
    for (const std::int64_t d : {2, 7}) {
      std::vector<Point> points;
      for (const auto& [axis, sign] : {std::pair{1, 1.0}, {1, -1.0}, {2, 1.0}}) {
        Point p(static_cast<std::size_t>(d) + 1);
        p[0] = std::cosh(r);
        p[static_cast<std::size_t>(axis)] = sign * std::sinh(r);
        points.push_back(p);
      }
      Run run;
      const Matrix all = lorentz::distances(rows(points), rows(points), run);
      const double right[3][3] = {{0, 2 * r, 2 * r - std::log(2)},
                                  {2 * r, 0, 2 * r - std::log(2)},
                                  {2 * r - std::log(2), 2 * r - std::log(2), 0}};
      for (std::size_t i = 0; i < 3; ++i)
        for (std::size_t j = 0; j < 3; ++j) {
          BOOST_TEST(std::abs(all(static_cast<std::int64_t>(i), static_cast<std::int64_t>(j)) -
                              right[i][j]) <= 1e-12 * r);
          BOOST_TEST(std::abs(lorentz::distance(points[i], points[j]) - right[i][j]) <= 1e-12 * r);
          Point v(points[i].size()), end(points[i].size());
          lorentz::log(points[i], points[j], v);
          for (const double x : v) BOOST_TEST(std::isfinite(x));
          lorentz::exp(points[i], v, end);
          BOOST_TEST(on_manifold(end));
        }
    }
}

BOOST_AUTO_TEST_CASE(what_leaves_the_range_of_double_is_refused) {
  const double r = 351;
  const Point far{std::cosh(r), std::sinh(r), 0}, origin{1, 0, 0}, huge{1e200, 1e200, 1e200};
  Point out(3);
  Run run;
  const auto refused = [](auto call) {
    BOOST_CHECK_EXCEPTION(call(), Error,
                          [](const Error& e) { return e.code() == Status::invalid_argument; });
  };
  refused([&] { lorentz::distance(far, origin); });
  refused([&] { lorentz::distances(rows({origin, far}), rows({origin}), run); });
  refused([&] { lorentz::inner(huge, huge); });
  refused([&] { lorentz::norm(origin, Point{0, 1.5e308, 1.5e308}); });
  const Point out_there{std::cosh(300.0), std::sinh(300.0), 0};
  refused([&] { lorentz::project_tangent(out_there, huge, out); });
}

BOOST_AUTO_TEST_CASE(the_ball_is_open_even_where_double_ends) {
  for (const std::int64_t d : dimensions)
    for (const double r : {20.0, 30.0, 36.0, 40.0, 100.0, 290.0}) {
      Rng rng(3, {static_cast<std::uint64_t>(d)});
      const Point p = on_hyperboloid({r, unit(rng, d)});
      Point e(static_cast<std::size_t>(d)), back(p.size());
      lorentz::to_poincare(p, e);
      BOOST_TEST(euclidean(e) < 1);
      Point reversed(e.rbegin(), e.rend());
      BOOST_TEST(euclidean(reversed) < 1);
      // Only shortened, not turned.
      const double s = euclidean(e) / euclidean(Point(p.begin() + 1, p.end()));
      for (std::size_t k = 0; k < e.size(); ++k)
        BOOST_TEST(std::abs(e[k] - s * p[k + 1]) <= 8 * eps * std::abs(e[k]));
      poincare::to_lorentz(e, back);
      BOOST_TEST(on_manifold(back));
    }
}

BOOST_AUTO_TEST_CASE(outputs_may_be_inputs) {
  Rng rng(5);
  const Point p = on_hyperboloid(random_polar(rng, 5, 2)),
              q = on_hyperboloid(random_polar(rng, 5, 2)), v = random_tangent(rng, p, 1);
  const auto check = [](auto function, const Point& a, const Point& b) {
    Point apart(a.size()), first = a, second = b;
    function(a, b, apart);
    function(first, b, first);
    function(a, second, second);
    BOOST_TEST(first == apart);
    BOOST_TEST(second == apart);
  };
  check([](auto& a, auto& b, auto& c) { lorentz::exp(a, b, c); }, p, v);
  check([](auto& a, auto& b, auto& c) { lorentz::log(a, b, c); }, p, q);
  check([](auto& a, auto& b, auto& c) { lorentz::project_tangent(a, b, c); }, p, q);
  check([&](auto& a, auto& b, auto& c) { lorentz::transport(a, b, v, c); }, p, q);
  Point a(5), b(5);
  lorentz::to_poincare(p, a);
  lorentz::to_poincare(q, b);
  check([](auto& x, auto& y, auto& z) { poincare::add(x, y, z); }, a, b);
  check([](auto& x, auto& y, auto& z) { poincare::exp(x, y, z); }, a, b);
  check([](auto& x, auto& y, auto& z) { poincare::log(x, y, z); }, a, b);
}

BOOST_AUTO_TEST_CASE(matrices_of_distances_are_the_distances_of_their_rows) {
  Rng rng(9);
  std::vector<Point> a, b, ea, eb;
  for (int i = 0; i < 7; ++i) a.push_back(on_hyperboloid(random_polar(rng, 4, 5)));
  for (int i = 0; i < 5; ++i) b.push_back(on_hyperboloid(random_polar(rng, 4, 5)));
  for (const auto& [from, to] : {std::pair{&a, &ea}, std::pair{&b, &eb}})
    for (const Point& p : *from) {
      to->emplace_back(4);
      lorentz::to_poincare(p, to->back());
    }
  Run one(1, 1), two(1, 2);
  const Matrix d = lorentz::distances(rows(a), rows(b), one),
               e = poincare::distances(rows(ea), rows(eb), two);
  BOOST_TEST(d.rows() == 7);
  BOOST_TEST(d.cols() == 5);
  for (std::int64_t i = 0; i < 7; ++i)
    for (std::int64_t j = 0; j < 5; ++j) {
      const auto s = static_cast<std::size_t>(i), t = static_cast<std::size_t>(j);
      BOOST_TEST(std::abs(d(i, j) - lorentz::distance(a[s], b[t])) <= 1e-12 * (1 + d(i, j)));
      BOOST_TEST(e(i, j) == poincare::distance(ea[s], eb[t]));
    }
  BOOST_CHECK(d == lorentz::distances(rows(a), rows(b), two));
  const Matrix m = rows(a);
  std::vector<double> by_row;
  for (std::int64_t i = 0; i < m.rows(); ++i)
    for (std::int64_t k = 0; k < m.cols(); ++k) by_row.push_back(m(i, k));
  const MatrixView turned{by_row.data(), m.rows(), m.cols(), m.cols(), Layout::row_major};
  BOOST_CHECK(lorentz::distances(turned, rows(b), one) == d);
}

// Products for far pairs, the points themselves for near ones: no digit of either is lost.
BOOST_AUTO_TEST_CASE(matrices_of_distances_are_accurate_for_near_points_too) {
  for (const std::int64_t d : {1, 3, 64})
    for (const double largest : radii) {
      Rng rng(10, {static_cast<std::uint64_t>(d)});
      std::vector<Point> points;
      for (int i = 0; i < 70; ++i) {
        points.push_back(on_hyperboloid(random_polar(rng, d, largest)));
        points.emplace_back(points.back().size());
        const Point& p = points[points.size() - 2];
        lorentz::exp(p, random_tangent(rng, p, std::pow(10, -rng.uniform(0, 9))), points.back());
      }
      Run run;
      const Matrix all = lorentz::distances(rows(points), rows(points), run);
      for (std::int64_t i = 0; i < all.rows(); ++i) {
        BOOST_TEST(all(i, i) == 0);
        for (std::int64_t j = 0; j < i; ++j) {
          const Point &p = points[static_cast<std::size_t>(i)],
                      &q = points[static_cast<std::size_t>(j)];
          const double exact = lorentz::distance(p, q);
          BOOST_TEST(std::abs(all(i, j) - exact) <=
                     unit_error(p, q) + 1e-12 * std::sqrt(static_cast<double>(d)) * exact);
        }
      }
    }
}

BOOST_AUTO_TEST_CASE(bad_arguments_of_single_points_are_refused) {
  const Point p{std::sqrt(2.0), 1, 0}, off{1, 1, 0}, short_point{1, 0}, nan{1, std::nan(""), 0},
      v{1 / std::sqrt(2.0), 1, 0}, skew{0, 1, 0}, ball{0.5, 0}, outside{1, 0}, empty;
  Point out(3), two(2);
  const auto wrong = [](const std::function<void()>& call) {
    return fails_with(Status::invalid_argument, call);
  };
  const auto unfit = [](const std::function<void()>& call) {
    return fails_with(Status::dim_mismatch, call);
  };
  for (const Point& bad : {off, nan, Point{-1, 0, 0}, Point{1e200, 1e200, 0}}) {
    BOOST_TEST(wrong([&] { lorentz::distance(bad, p); }));
    BOOST_TEST(wrong([&] { lorentz::distance(p, bad); }));
    BOOST_TEST(wrong([&] { lorentz::exp(bad, v, out); }));
    BOOST_TEST(wrong([&] { lorentz::log(p, bad, out); }));
    BOOST_TEST(wrong([&] { lorentz::transport(p, bad, v, out); }));
    BOOST_TEST(wrong([&] { lorentz::project_tangent(bad, v, out); }));
    BOOST_TEST(wrong([&] { lorentz::to_poincare(bad, two); }));
    BOOST_TEST(wrong([&] { lorentz::norm(bad, v); }));
  }
  BOOST_TEST(wrong([&] { lorentz::exp(p, skew, out); }));
  BOOST_TEST(wrong([&] { lorentz::transport(p, p, skew, out); }));
  BOOST_TEST(wrong([&] { lorentz::exp(p, nan, out); }));
  BOOST_TEST(wrong([&] { lorentz::inner(p, nan); }));
  BOOST_TEST(wrong([&] {
    Point bad = nan;
    lorentz::project(bad);
  }));
  BOOST_TEST(unfit([&] { lorentz::distance(p, short_point); }));
  BOOST_TEST(unfit([&] { lorentz::inner(p, short_point); }));
  BOOST_TEST(unfit([&] { lorentz::exp(p, short_point, out); }));
  BOOST_TEST(unfit([&] { lorentz::exp(p, v, two); }));
  BOOST_TEST(unfit([&] { lorentz::log(p, p, two); }));
  BOOST_TEST(unfit([&] { lorentz::to_poincare(p, out); }));
  BOOST_TEST(unfit([&] { lorentz::distance(empty, empty); }));
  BOOST_TEST(unfit([&] {
    Point one{1};
    lorentz::project(one);
  }));
  for (const Point& bad : {outside, Point{std::nan(""), 0}}) {
    BOOST_TEST(wrong([&] { poincare::distance(bad, ball); }));
    BOOST_TEST(wrong([&] { poincare::add(ball, bad, two); }));
    BOOST_TEST(wrong([&] { poincare::exp(bad, ball, two); }));
    BOOST_TEST(wrong([&] { poincare::log(ball, bad, two); }));
  }
  BOOST_TEST(wrong([&] { poincare::exp(ball, Point{std::nan(""), 0}, two); }));
  BOOST_TEST(unfit([&] { poincare::distance(ball, Point{0.1}); }));
  BOOST_TEST(unfit([&] { poincare::distance(empty, empty); }));
  BOOST_TEST(unfit([&] { poincare::to_lorentz(ball, two); }));
  BOOST_TEST(unfit([&] { poincare::add(ball, ball, out); }));
}

BOOST_AUTO_TEST_CASE(bad_points_are_refused) {
  Run run;
  const Matrix good = rows({{1, 0, 0}}), off = rows({{1, 1, 0}}),
               nan = rows({{1, std::nan(""), 0}}), narrow = rows({{1, 0}}), one = rows({{1}}),
               outside = rows({{1, 0, 0.1}});
  BOOST_CHECK(fails_with(Status::invalid_argument, [&] { lorentz::distances(off, good, run); }));
  BOOST_CHECK(fails_with(Status::invalid_argument, [&] { lorentz::distances(good, nan, run); }));
  BOOST_CHECK(fails_with(Status::dim_mismatch, [&] { lorentz::distances(one, one, run); }));
  BOOST_CHECK(fails_with(Status::dim_mismatch, [&] {
    poincare::distances(Matrix(3, 0), Matrix(3, 0), run);
  }));
  BOOST_CHECK(fails_with(Status::dim_mismatch, [&] { lorentz::distances(good, narrow, run); }));
  BOOST_CHECK(
      fails_with(Status::invalid_argument, [&] { poincare::distances(outside, outside, run); }));
  // Values of any size can be read in the message.
  const Point origin{1, 0, 0};
  for (const auto& [p0, text] : {std::pair{1e-9, "is 1e-09;"}, std::pair{1e200, "is 1e+200;"}})
    BOOST_CHECK(fails_with(Status::invalid_argument, text, [&] {
      lorentz::distance(Point{p0, 0, 0}, origin);
    }));
  Point p(4);
  BOOST_CHECK(fails_with(Status::invalid_argument, [&] {
    poincare::to_lorentz(Point{1, 0, 0}, p);
  }));
  BOOST_CHECK(fails_with(Status::invalid_argument, [&] {
    poincare::to_lorentz(Point{std::nan(""), 0, 0}, p);
  }));
}
