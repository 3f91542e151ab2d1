module;
#include "hyperbolic/kernels/contrastive.hpp"
#include "internal/borrow.hpp"
#include "internal/message.hpp"
#include "internal/sizes.hpp"
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <typeinfo>
#include <vector>
module cape.hyperbolic;
#include "hyperbolic/lorentz.hpp"
#include "hyperbolic/poincare.hpp"

namespace cape {
namespace {

// Of points: products of two, and of sinh of their distance with one, are in the range of double.
constexpr double largest_radius = 350.0;
const double largest_p0 = std::cosh(largest_radius) * (1 + 1e-9);

void check_radius(double p0, const std::string& name) {
  if (p0 > largest_p0)
    throw Error(Status::invalid_argument, message(name, " is ", std::acosh(p0),
                                                  " from the origin; it must be within ",
                                                  largest_radius));
}

} // namespace

Matrix hyperboloid_points(const MatrixView& view, std::string_view name) {
  check_view(view, name);
  if (view.cols < 2)
    throw Error(Status::dim_mismatch,
                message(name, " has ", view.cols,
                        " columns; points of the hyperboloid have d+1, at least 2"));
  check_finite(view, name);
  Matrix points(view.cols, view.rows);
  for (std::int64_t i = 0; i < view.rows; ++i) {
    for (std::int64_t k = 0; k < view.cols; ++k) points(k, i) = view(i, k);
    const std::span p(points.column(i), static_cast<std::size_t>(view.cols));
    const double given = p[0];
    lorentz::project(p);
    if (!(std::abs(given - p[0]) <= 1e-6 * p[0]))
      throw Error(Status::invalid_argument,
                  message("row ", i, " of ", name,
                          " (counted from 0) is not on the hyperboloid: its first coordinate is ",
                          given, "; sqrt(1 + the squares of the others) is ", p[0]));
    check_radius(p[0], message("row ", i, " of ", name, " (counted from 0)"));
  }
  return points;
}

void check_sizes(std::span<const double> given, std::span<const double> right,
                 std::string_view name) {
  if (given.size() != right.size())
    throw Error(Status::dim_mismatch,
                message(name, " has ", given.size(), " elements; it must have ", right.size()));
}

void check_vector(std::span<const double> v, std::string_view name) {
  if (std::ranges::all_of(v, [](double x) { return std::isfinite(x); })) return;
  const auto n = static_cast<std::int64_t>(v.size());
  check_finite({v.data(), 1, n, n, Layout::row_major}, name);
}

void check_same_columns(const Matrix& a, const Matrix& b) {
  if (a.rows() != b.rows())
    throw Error(Status::dim_mismatch, message("a has ", a.rows(), " columns and b has ", b.rows(),
                                              "; they must have the same"));
}

namespace lorentz {
namespace {

// exp() goes no farther: squares of coordinates, and products of two, stay finite.
constexpr double farthest = 300.0;
// Points and tangents may be off by this much of their size.
constexpr double tolerance = 1e-6;

// Where cosh d - 1 is below this part of p0 q0, the product that it comes from has eaten more than
// three of its digits.
constexpr double lost_in_distances = 1e-3;
constexpr std::int64_t panel_cols = 64;

// The sum of term(i) over the spatial coordinates, in four partial sums: one chain of additions
// would take several times as long.
template <class Term>
double sum_spatial(std::size_t size, Term term) {
  double sums[4] = {};
  std::size_t i = 1;
  for (; i + 4 <= size; i += 4)
    for (std::size_t lane = 0; lane < 4; ++lane) sums[lane] += term(i + lane);
  for (; i < size; ++i) sums[0] += term(i);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

// The product of the spatial parts.
double dot(std::span<const double> a, std::span<const double> b) {
  return sum_spatial(a.size(), [&](std::size_t i) { return a[i] * b[i]; });
}

// sinh(d(p,q) / 2) without cancellation at any radius, from the spatial parts, for |p~| <= |q~|.
// With D = q~ - p~ and D_|_ its part across p~, <p-q,p-q>_L (1 + p0 q0 + p~.q~) / 2 = |D|^2 +
// |p~|^2 |D_|_|^2: positive terms only. For points on opposite sides of the origin <p-q,p-q>_L = 2
// (p0 q0 - 1 - p~.q~) is itself a sum of positive terms.
double half_distance_sinh_ordered(std::span<const double> p, std::span<const double> q, double pp,
                                  double qq, double pq) {
  if (pq <= 0) {
    const double a = pp / (1 + p[0]), b = qq / (1 + q[0]); // p0 - 1 and q0 - 1
    return std::sqrt((a + b + a * b - pq) / 2);
  }
  const double dd =
      sum_spatial(p.size(), [&](std::size_t i) { return (q[i] - p[i]) * (q[i] - p[i]); });
  const double pd = sum_spatial(p.size(), [&](std::size_t i) { return p[i] * (q[i] - p[i]); });
  const double along = pp > 0 ? pd / pp : 0;
  const double across = sum_spatial(p.size(), [&](std::size_t i) {
    const double t = (q[i] - p[i]) - along * p[i];
    return t * t;
  });
  return std::hypot(std::sqrt(dd), std::sqrt(pp) * std::sqrt(across)) /
         std::sqrt(2 * (1 + p[0] * q[0] + pq));
}

double half_distance_sinh(std::span<const double> p, std::span<const double> q) {
  const double pp = dot(p, p), qq = dot(q, q), pq = dot(p, q);
  const bool in_order =
      pp != qq ? pp < qq : std::lexicographical_compare(p.begin(), p.end(), q.begin(), q.end());
  return in_order ? half_distance_sinh_ordered(p, q, pp, qq, pq)
                  : half_distance_sinh_ordered(q, p, qq, pp, pq);
}

// Of squares: that rounding is all that they have lost.
bool in_range(double squares) { return squares > 1e-280 && squares < 1e280; }

// The largest magnitude, for vectors whose squares are not; throws unless all are finite.
double largest(std::span<const double> v, std::string_view name) {
  check_vector(v, name);
  double out = 0;
  for (const double x : v) out = std::max(out, std::abs(x));
  return out;
}

void check_point(std::span<const double> p, std::string_view name) {
  if (p.size() < 2)
    throw Error(
        Status::dim_mismatch,
        message(name, " has ", p.size(), " elements; points of the hyperboloid have at least 2"));
  const double right = std::sqrt(1 + dot(p, p));
  if (!(std::abs(p[0] - right) <= tolerance * right && std::isfinite(right)))
    throw Error(Status::invalid_argument,
                message(name, " is not on the hyperboloid: its first coordinate is ", p[0],
                        "; sqrt(1 + the squares of the others) is ", right));
  if (p[0] > largest_p0) check_radius(p[0], std::string(name));
}

double check_result(double x, std::string_view name) {
  if (!std::isfinite(x))
    throw Error(Status::invalid_argument, message(name, " is beyond the range of a double"));
  return x;
}

void check_two_points(std::span<const double> p, std::span<const double> q) {
  check_point(p, "p");
  check_point(q, "q");
  check_sizes(q, p, "q");
}

void check_tangent(std::span<const double> p, std::span<const double> v) {
  check_sizes(v, p, "v");
  const double squares = dot(v, v) + v[0] * v[0];
  const double size = in_range(squares) ? std::sqrt(squares) : largest(v, "v");
  if (!(std::abs(dot(p, v) - p[0] * v[0]) <= tolerance * p[0] * size))
    throw Error(Status::invalid_argument, message("v is not tangent at p: <p,v> is ",
                                                  dot(p, v) - p[0] * v[0], "; it must be 0"));
}

// <v,v>_L = |v~_|_|^2 + (|v~_||| / p0)^2, since v0 = <p~,v~> / p0.
double length_of_tangent(std::span<const double> p, std::span<const double> v) {
  const double pp = dot(p, p), along = pp > 0 ? dot(p, v) / pp : 0;
  const double across = sum_spatial(v.size(), [&](std::size_t i) {
    const double t = v[i] - along * p[i];
    return t * t;
  });
  return std::hypot(std::sqrt(across), along * std::sqrt(pp) / p[0]);
}

// <q,v>_L for a tangent v at p, cosh_d = -<p,q>_L. Far out the terms of the sum are far larger than
// the sum; with q~ and v~ cut into parts along and across p~, v~_|| = a p~, and v0 = <p~,v~> / p0,
// it is <q~_|_,v~_|_> + a (q0/p0 - cosh d).
double product_with_tangent(std::span<const double> p, std::span<const double> q,
                            std::span<const double> v, double cosh_d) {
  const double pp = dot(p, p);
  if (pp <= 1) return dot(q, v) - q[0] * v[0];
  const double along = dot(p, v) / pp, q_along = dot(p, q) / pp;
  double across = 0;
  for (std::size_t i = 1; i < p.size(); ++i)
    across += (q[i] - q_along * p[i]) * (v[i] - along * p[i]);
  return across + along * (q[0] / p[0] - cosh_d);
}

} // namespace

double inner(std::span<const double> p, std::span<const double> q) {
  if (p.empty()) throw Error(Status::dim_mismatch, "p has no elements; it must have at least 1");
  check_sizes(q, p, "q");
  check_vector(p, "p");
  check_vector(q, "q");
  return check_result(dot(p, q) - p[0] * q[0], "<p,q>");
}

double norm(std::span<const double> p, std::span<const double> v) {
  check_point(p, "p");
  check_sizes(v, p, "v");
  if (in_range(dot(v, v))) return length_of_tangent(p, v);
  const double scale = largest(v.subspan(1), "v");
  if (scale == 0) return 0;
  std::vector<double> scaled(v.begin(), v.end());
  for (double& x : scaled) x /= scale;
  return check_result(scale * length_of_tangent(p, scaled), "the length of v");
}

double distance(std::span<const double> p, std::span<const double> q) {
  check_two_points(p, q);
  return 2 * std::asinh(half_distance_sinh(p, q));
}

void project(std::span<double> p) {
  if (p.size() < 2)
    throw Error(
        Status::dim_mismatch,
        message("p has ", p.size(), " elements; points of the hyperboloid have at least 2"));
  const double p0 = std::sqrt(1 + dot(p, p));
  if (!std::isfinite(p0))
    throw Error(Status::invalid_argument,
                "p has coordinates that are not finite, or too large for their squares");
  p[0] = p0;
}

void project_tangent(std::span<const double> p, std::span<const double> u, std::span<double> out) {
  check_point(p, "p");
  check_sizes(u, p, "u");
  check_vector(u, "u");
  check_sizes(out, p, "out");
  const double c = dot(p, u) - p[0] * u[0], p0 = p[0];
  double pv = 0;
  for (std::size_t i = 1; i < p.size(); ++i) {
    const double pi = p[i], value = u[i] + c * pi;
    pv += pi * value;
    out[i] = value;
  }
  out[0] = check_result(pv / p0, "the projected u"); // tangent to rounding at any radius
}

void exp(std::span<const double> p, std::span<const double> v, std::span<double> out) {
  check_point(p, "p");
  check_tangent(p, v);
  check_sizes(out, p, "out");
  const double length = norm(p, v);
  const double t = std::min(length, std::max(0.0, farthest - std::asinh(std::sqrt(dot(p, p)))));
  const double along = length > 0 ? std::sinh(t) : 1, over = length > 0 ? length : 1;
  const double c = std::cosh(t);
  for (std::size_t i = 1; i < p.size(); ++i) out[i] = c * p[i] + along * (v[i] / over);
  project(out);
}

void follow(std::span<const double> p, std::span<double> u, double t, std::span<double> end) {
  const double c = std::cosh(t), s = std::sinh(t);
  for (std::size_t i = 1; i < p.size(); ++i) {
    const double pi = p[i], ui = u[i];
    end[i] = c * pi + s * ui;
    u[i] = s * pi + c * ui;
  }
  project(end);
  u[0] = dot(end, u) / end[0];
}

void log(std::span<const double> p, std::span<const double> q, std::span<double> out) {
  check_two_points(p, q);
  check_sizes(out, p, "out");
  const double half = half_distance_sinh(p, q), d = 2 * std::asinh(half), p0 = p[0];
  const double factor = d > 0 ? d / std::sinh(d) : 1;
  const double excess = 2 * half * half; // cosh d - 1
  double pv = 0;
  for (std::size_t i = 1; i < p.size(); ++i) {
    const double pi = p[i], value = factor * (q[i] - pi) - factor * excess * pi;
    pv += pi * value;
    out[i] = value;
  }
  out[0] = pv / p0;
}

void transport(std::span<const double> p, std::span<const double> q, std::span<const double> v,
               std::span<double> out) {
  check_two_points(p, q);
  check_tangent(p, v);
  check_sizes(out, p, "out");
  const double half = half_distance_sinh(p, q), q0 = q[0];
  const double c = product_with_tangent(p, q, v, 1 + 2 * half * half) / (2 + 2 * half * half);
  double sum = 0;
  for (std::size_t i = 1; i < p.size(); ++i) {
    const double qi = q[i], value = v[i] + c * (p[i] + qi);
    sum += qi * value;
    out[i] = value;
  }
  out[0] = sum / q0;
  check_vector(out, "the transported v");
}

void to_poincare(std::span<const double> p, std::span<double> e) {
  check_point(p, "p");
  check_sizes(e, p.subspan(1), "e");
  const double denominator = 1 + p[0];
  for (std::size_t i = 0; i < e.size(); ++i) e[i] = p[i + 1] / denominator;
  keep_in_ball(e);
}

// cosh d - 1 for all pairs by one product a panel; pairs whose rounding matters are done again from
// their points.
Matrix distances(const MatrixView& a, const MatrixView& b, Run& run) {
  const Matrix p = hyperboloid_points(a, "a");
  const Matrix q = hyperboloid_points(b, "b");
  check_same_columns(p, q);
  const auto point = [](const Matrix& m, std::int64_t i) {
    return std::span(m.column(i), static_cast<std::size_t>(m.rows()));
  };
  std::vector<double> p0(static_cast<std::size_t>(p.cols()));
  for (std::int64_t i = 0; i < p.cols(); ++i) p0[static_cast<std::size_t>(i)] = p(0, i);
  Matrix out(p.cols(), q.cols(), run);
  run.parallel_for(ceil_div(q.cols(), panel_cols), [&](std::int64_t k) {
    const std::int64_t first = k * panel_cols, cols = std::min(panel_cols, q.cols() - first);
    const arma::mat own = borrow_columns(q, first, cols);
    arma::mat turned = own; // a copy: the initialiser itself would be q's memory
    turned.tail_rows(turned.n_rows - 1) *= -1;
    arma::mat gram = borrow_columns(out, first, cols);
    gram = borrow(p).t() * turned;
    for (std::int64_t j = first; j < first + cols; ++j) {
      double* x = out.column(j);
      const bool again = simd::subtract_one(x, p0.data(), q(0, j), lost_in_distances, p.cols());
      for (std::int64_t i = 0; i < p.cols(); ++i)
        x[i] = again && x[i] < lost_in_distances * p(0, i) * q(0, j)
                   ? 2 * std::asinh(half_distance_sinh(point(p, i), point(q, j)))
                   : std::log1p(x[i] + std::sqrt(x[i]) * std::sqrt(x[i] + 2));
    }
  });
  return out;
}

} // namespace lorentz
} // namespace cape
