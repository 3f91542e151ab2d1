module;
#include "internal/message.hpp"
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
module cape.rotary;

namespace cape {
namespace {

void check_scale(double scale) {
  RotaryOptions options{.scale = scale};
  check_options(fields(options));
}

void check_shapes(const MatrixView& v, const MatrixView& angles) {
  check_view(v, "v");
  check_view(angles, "angles");
  if (v.cols % 2 != 0 || v.cols / 2 != angles.cols)
    throw Error(Status::dim_mismatch,
                "v has " + std::to_string(v.cols) + " columns and angles has " +
                    std::to_string(angles.cols) +
                    "; each angle turns one pair, so v must have twice the columns of angles");
  if (v.rows != angles.rows)
    throw Error(Status::dim_mismatch, "v has " + std::to_string(v.rows) + " rows and angles has " +
                                          std::to_string(angles.rows) +
                                          "; every row of v needs its own row of angles");
  check_finite(v, "v");
  check_finite(angles, "angles");
}

// R(direction * angles) v; direction is 1 or -1.
Matrix turn(const MatrixView& v, const MatrixView& angles, double direction) {
  check_shapes(v, angles);
  Matrix out(v.rows, v.cols);
  for (std::int64_t t = 0; t < angles.cols; ++t)
    for (std::int64_t i = 0; i < v.rows; ++i) {
      const double c = std::cos(angles(i, t)), s = direction * std::sin(angles(i, t));
      const double x = v(i, 2 * t), y = v(i, 2 * t + 1);
      out(i, 2 * t) = c * x - s * y;
      out(i, 2 * t + 1) = s * x + c * y;
    }
  check_finite(out, "the rotated v");
  return out;
}

MatrixView as_row(std::span<const double> x) {
  const auto n = static_cast<std::int64_t>(x.size());
  return {x.data(), 1, n, n, Layout::row_major};
}

void check_pair(std::span<const double> q, std::span<const double> k, std::span<const double> phi_m,
                std::span<const double> phi_n) {
  const std::size_t sizes[] = {q.size(), k.size(), 2 * phi_m.size(), 2 * phi_n.size()};
  if (std::ranges::count(sizes, q.size()) != 4)
    throw Error(Status::dim_mismatch,
                "q, k, phi_m and phi_n have " + std::to_string(q.size()) + ", " +
                    std::to_string(k.size()) + ", " + std::to_string(phi_m.size()) + " and " +
                    std::to_string(phi_n.size()) +
                    " elements; q and k must have the same even number, and the angles half of it");
  check_finite(as_row(q), "q");
  check_finite(as_row(k), "k");
  check_finite(as_row(phi_m), "phi_m");
  check_finite(as_row(phi_n), "phi_n");
}

double checked_result(double value, const char* name) {
  check_finite({&value, 1, 1, 1, Layout::col_major}, name);
  return value;
}

// alpha and beta of pair t: its part of the score is alpha cos(x) + beta sin(x), x = phi_n - phi_m.
// (Paper, after eq_A_cos_sin, whose last line turns the sign of x; the bounds do not change.)
double alpha(std::span<const double> q, std::span<const double> k, std::size_t t) {
  return q[2 * t] * k[2 * t] + q[2 * t + 1] * k[2 * t + 1];
}
double beta(std::span<const double> q, std::span<const double> k, std::size_t t) {
  return q[2 * t + 1] * k[2 * t] - q[2 * t] * k[2 * t + 1];
}

} // namespace

OptionFields fields(RotaryOptions& options) {
  return {{.name = "rotary.scale",
           .value = &options.scale,
           .min = 0,
           .open_min = true,
           .doc = "Angle, in radians, of a ball coordinate of 1. The score bounds hold up to pi/4.",
           .source = "sec_position (c)"}};
}

Matrix rotary_angles(const MatrixView& ball, double scale) {
  check_scale(scale);
  check_view(ball, "ball");
  check_finite(ball, "ball");
  Matrix angles(ball.rows, ball.cols);
  for (std::int64_t i = 0; i < ball.rows; ++i) {
    double norm = 0;
    for (std::int64_t t = 0; t < ball.cols; ++t) {
      norm = std::hypot(norm, ball(i, t));
      angles(i, t) = scale * ball(i, t);
    }
    if (norm >= 1)
      throw Error(Status::invalid_argument,
                  "row " + std::to_string(i + 1) + " of ball (counted from 1) has the norm " +
                      message(norm) + "; points of the Poincare ball have norms below 1");
  }
  return angles;
}

Matrix rotate(const MatrixView& v, const MatrixView& angles) { return turn(v, angles, 1); }
Matrix rotate_back(const MatrixView& v, const MatrixView& angles) { return turn(v, angles, -1); }

Matrix rotate_angle_gradient(const MatrixView& v, const MatrixView& angles,
                             const MatrixView& d_rotated) {
  const Matrix rotated = rotate(v, angles);
  check_view(d_rotated, "d_rotated");
  if (d_rotated.rows != v.rows || d_rotated.cols != v.cols)
    throw Error(Status::dim_mismatch,
                "d_rotated is " + std::to_string(d_rotated.rows) + " x " +
                    std::to_string(d_rotated.cols) + " and v is " + std::to_string(v.rows) + " x " +
                    std::to_string(v.cols) + "; they must be of one shape");
  check_finite(d_rotated, "d_rotated");
  // A small turn moves the pair (x, y) by (-y, x).
  Matrix gradient(angles.rows, angles.cols);
  for (std::int64_t t = 0; t < angles.cols; ++t)
    for (std::int64_t i = 0; i < v.rows; ++i)
      gradient(i, t) = rotated(i, 2 * t) * d_rotated(i, 2 * t + 1) -
                       rotated(i, 2 * t + 1) * d_rotated(i, 2 * t);
  check_finite(gradient, "the gradient of the angles");
  return gradient;
}

double rotary_score(std::span<const double> q, std::span<const double> k,
                    std::span<const double> phi_m, std::span<const double> phi_n) {
  check_pair(q, k, phi_m, phi_n);
  double score = 0;
  for (std::size_t t = 0; t < phi_m.size(); ++t) {
    const double difference = phi_n[t] - phi_m[t];
    score += alpha(q, k, t) * std::cos(difference) + beta(q, k, t) * std::sin(difference);
  }
  return checked_result(score, "the score of q and k");
}

ScoreBounds rotary_bounds(std::span<const double> q, std::span<const double> k,
                          std::span<const double> phi_m, std::span<const double> phi_n) {
  check_pair(q, k, phi_m, phi_n);
  if (q.empty()) return {0, 0};
  const auto d = static_cast<double>(phi_m.size());
  double largest = 0, betas = 0, distance = 0;
  for (std::size_t t = 0; t < phi_m.size(); ++t) {
    largest = std::max(largest, std::fabs(alpha(q, k, t)));
    betas += std::fabs(beta(q, k, t));
    distance = std::hypot(distance, phi_m[t] - phi_n[t]);
  }
  const double upper =
      checked_result(largest * d * std::cos(distance / d) + betas, "the score bound of q and k");
  return {upper, -upper};
}

} // namespace cape
