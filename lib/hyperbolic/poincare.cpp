module;
#include "internal/message.hpp"
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
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

double norm(std::span<const double> a) {
  double sum = 0, largest = 0;
  for (const double x : a) {
    sum += x * x;
    largest = std::max(largest, std::abs(x));
  }
  if (largest == 0 || (sum > 1e-280 && sum < 1e280)) return std::sqrt(sum);
  sum = 0; // the squares left the range of double
  for (const double x : a) sum += (x / largest) * (x / largest);
  return largest * std::sqrt(sum);
}

// 1 - |a|^2, exact to rounding of |a|.
double conformal_gap(std::span<const double> a) {
  const double length = norm(a);
  return (1 - length) * (1 + length);
}

void check_in_ball(std::span<const double> e, const std::string& name) {
  if (e.empty())
    throw Error(Status::dim_mismatch, name + " has no elements; it must have at least 1");
  const double length = norm(e);
  if (!(length < 1))
    throw Error(
        Status::invalid_argument,
        message(name, " has norm ", length, "; points of the Poincare ball have norm below 1"));
}

void check_two_points(std::span<const double> a, std::span<const double> b) {
  check_in_ball(a, "a");
  check_in_ball(b, "b");
  check_sizes(b, a, "b");
}

double distance_inside(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return 2 * std::asinh(std::sqrt(sum) / std::sqrt(conformal_gap(a) * conformal_gap(b)));
}

Matrix ball_points(const MatrixView& view, std::string_view name) {
  check_view(view, name);
  if (view.cols < 1)
    throw Error(Status::dim_mismatch,
                std::string(name) + " has no columns; points of the ball have at least 1");
  check_finite(view, name);
  Matrix points(view.cols, view.rows);
  for (std::int64_t i = 0; i < view.rows; ++i) {
    for (std::int64_t k = 0; k < view.cols; ++k) points(k, i) = view(i, k);
    check_in_ball({points.column(i), static_cast<std::size_t>(view.cols)},
                  message("row ", i, " of ", name, " (counted from 0)"));
  }
  return points;
}

} // namespace

void keep_in_ball(std::span<double> e) {
  // So far from 1 that the norm stays below it in whatever order the squares are summed.
  const double largest =
      1 - static_cast<double>(e.size() + 2) * std::numeric_limits<double>::epsilon();
  const double length = norm(e);
  if (length <= largest) return;
  for (double& x : e) x *= largest / length;
}

namespace poincare {

double distance(std::span<const double> a, std::span<const double> b) {
  check_two_points(a, b);
  return distance_inside(a, b);
}

void to_lorentz(std::span<const double> e, std::span<double> p) {
  check_in_ball(e, "e");
  check_sizes(e, p.subspan(p.empty() ? 0 : 1), "e");
  const double gap = conformal_gap(e);
  for (std::size_t i = e.size(); i > 0; --i) p[i] = 2 * e[i - 1] / gap;
  lorentz::project(p);
}

void add(std::span<const double> a, std::span<const double> b, std::span<double> out) {
  check_two_points(a, b);
  check_sizes(out, a, "out");
  // ((1 + 2<a,b> + |b|^2) a + (1 - |a|^2) b) / (1 + 2<a,b> + |a|^2 |b|^2), with the sums written so
  // that nothing cancels when b is nearly -a.
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] + b[i]) * (a[i] + b[i]);
  const double gap = conformal_gap(a), denominator = gap * conformal_gap(b) + sum;
  for (std::size_t i = 0; i < a.size(); ++i)
    out[i] = (gap * (a[i] + b[i]) + sum * a[i]) / denominator;
  keep_in_ball(out);
}

void exp(std::span<const double> a, std::span<const double> v, std::span<double> out) {
  check_in_ball(a, "a");
  check_sizes(v, a, "v");
  check_vector(v, "v");
  check_sizes(out, a, "out");
  const double length = norm(v);
  const double factor = length > 0 ? std::tanh(length / conformal_gap(a)) / length : 0;
  std::vector<double> step(v.begin(), v.end());
  for (double& x : step) x *= factor;
  keep_in_ball(step);
  add(a, step, out);
}

void log(std::span<const double> a, std::span<const double> b, std::span<double> out) {
  check_sizes(out, a, "out");
  const double d = distance(a, b), gap = conformal_gap(a);
  std::vector<double> direction(a.begin(), a.end());
  for (double& x : direction) x = -x;
  add(direction, b, direction);
  const double length = norm(direction);
  for (std::size_t i = 0; i < a.size(); ++i)
    out[i] = length > 0 ? d * gap / 2 * (direction[i] / length) : 0;
}

Matrix distances(const MatrixView& a, const MatrixView& b, Run& run) {
  const Matrix from = ball_points(a, "a"), to = ball_points(b, "b");
  check_same_columns(from, to);
  const auto n = static_cast<std::size_t>(from.rows());
  Matrix out(from.cols(), to.cols(), run);
  run.parallel_for(to.cols(), [&](std::int64_t j) {
    for (std::int64_t i = 0; i < from.cols(); ++i)
      out(i, j) = distance_inside({from.column(i), n}, {to.column(j), n});
  });
  return out;
}

} // namespace poincare
} // namespace cape
