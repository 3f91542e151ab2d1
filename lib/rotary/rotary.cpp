module;
#include "internal/message.hpp"
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <variant>
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
                message("v has ", v.cols, " columns and angles has ", angles.cols,
                        "; each angle turns one pair, so v must have twice the columns of angles"));
  if (v.rows != angles.rows)
    throw Error(Status::dim_mismatch,
                message("v has ", v.rows, " rows and angles has ", angles.rows,
                        "; every row of v needs its own row of angles"));
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
                  message("row ", i, " of ball (counted from 0) has the norm ", message(norm),
                          "; points of the Poincare ball have norms below 1"));
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
                message("d_rotated is ", d_rotated.rows, " x ", d_rotated.cols, " and v is ",
                        v.rows, " x ", v.cols, "; they must be of one shape"));
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

} // namespace cape
