#define BOOST_TEST_MODULE rotary
#include <boost/test/unit_test.hpp>
#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <numbers>
#include <string>
#include <variant>
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

} // namespace

BOOST_AUTO_TEST_CASE(pairs_are_interleaved) {
  // cases.md C1; in closed form with cos pi/6 = sin pi/3 = sqrt(3)/2, sin pi/6 = cos pi/3 = 1/2.
  const double h = std::numbers::sqrt3 / 2;
  const Matrix out = cape::rotate(row({1, 2, 3, 4}), row({pi / 6, pi / 3}));
  const double closed[] = {h - 1, 0.5 + 2 * h, 1.5 - 4 * h, 3 * h + 2};
  const double published[] = {-0.1339746, 2.2320508, -1.9641016, 4.5980762};
  for (std::int64_t j = 0; j < 4; ++j) {
    BOOST_TEST(std::fabs(out(0, j) - closed[j]) < 1e-14);
    BOOST_TEST(std::fabs(out(0, j) - published[j]) < 1e-7);
  }
}

BOOST_AUTO_TEST_CASE(rotation_preserves_norms_and_rotate_back_undoes_it) {
  cape::Rng rng(11);
  for (const std::int64_t d : {1, 2, 5, 17, 64}) {
    const Matrix v = random_matrix(rng, 7, 2 * d, 10), phi = random_matrix(rng, 7, d, 50);
    const Matrix turned = cape::rotate(v, phi), back = cape::rotate_back(turned, phi);
    for (std::int64_t i = 0; i < 7; ++i) {
      double before = 0, after = 0;
      for (std::int64_t j = 0; j < 2 * d; ++j) {
        before += v(i, j) * v(i, j);
        after += turned(i, j) * turned(i, j);
        BOOST_TEST(std::fabs(back(i, j) - v(i, j)) < 1e-13);
      }
      BOOST_TEST(std::fabs(std::sqrt(after) - std::sqrt(before)) < 1e-12);
    }
  }
}

BOOST_AUTO_TEST_CASE(gradients_of_a_rotation_agree_with_central_differences) {
  cape::Rng rng(71);
  Matrix v = random_matrix(rng, 4, 6, 2), phi = random_matrix(rng, 4, 3, 3);
  const Matrix w = random_matrix(rng, 4, 6, 1);
  const Matrix d_v = cape::rotate_back(w, phi), d_phi = cape::rotate_angle_gradient(v, phi, w);
  const auto compare = [&](Matrix& x, const Matrix& analytic) {
    for (std::int64_t i = 0; i < x.size(); ++i) {
      const double step = 1e-6, kept = x.data()[i];
      x.data()[i] = kept + step;
      const double above = dot(cape::rotate(v, phi), w);
      x.data()[i] = kept - step;
      const double below = dot(cape::rotate(v, phi), w);
      x.data()[i] = kept;
      BOOST_TEST(std::fabs((above - below) / (2 * step) - analytic.data()[i]) < 1e-8);
    }
  };
  compare(v, d_v);
  compare(phi, d_phi);
  const std::string wrong = error_of(cape::Status::dim_mismatch, [&] {
    cape::rotate_angle_gradient(v, phi, Matrix(4, 5));
  });
  BOOST_TEST(wrong.find("d_rotated is 4 x 5 and v is 4 x 6") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(rotate_back_is_the_transpose) {
  cape::Rng rng(12);
  const Matrix v = random_matrix(rng, 5, 8, 2), w = random_matrix(rng, 5, 8, 2);
  const Matrix phi = random_matrix(rng, 5, 4, 3);
  BOOST_TEST(std::fabs(dot(cape::rotate(v, phi), w) - dot(v, cape::rotate_back(w, phi))) < 1e-12);
}

BOOST_AUTO_TEST_CASE(the_layout_of_the_input_does_not_matter) {
  cape::Rng rng(13);
  const Matrix v = random_matrix(rng, 6, 4, 2), phi = random_matrix(rng, 6, 2, 2);
  std::vector<double> rows(6 * 5, -1); // row-major with a gap of one
  for (std::int64_t i = 0; i < 6; ++i)
    for (std::int64_t j = 0; j < 4; ++j) rows[static_cast<std::size_t>(i * 5 + j)] = v(i, j);
  const cape::MatrixView by_row{rows.data(), 6, 4, 5, cape::Layout::row_major};
  BOOST_TEST((cape::rotate(by_row, phi) == cape::rotate(v, phi)));
}

BOOST_AUTO_TEST_CASE(angles_are_scaled_ball_coordinates) {
  const Matrix phi = cape::rotary_angles(row({0.5, -0.25}));
  BOOST_TEST(phi(0, 0) == pi / 8);
  BOOST_TEST(phi(0, 1) == -pi / 16);
  BOOST_TEST((cape::rotary_angles(row({0.5, -0.25}), 2.0) == row({1.0, -0.5})));
  const Matrix none(0, 4);
  BOOST_TEST(cape::rotary_angles(none).rows() == 0);
}

BOOST_AUTO_TEST_CASE(points_outside_the_ball_and_bad_scales_are_refused) {
  using cape::Status;
  Matrix two(2, 2);
  two(0, 0) = 0.9;
  two(1, 0) = 0.6;
  two(1, 1) = 0.8; // norm 1 in row 2
  const auto refusal = [](const Matrix& ball, double scale = 1) {
    return error_of(Status::invalid_argument, [&] { cape::rotary_angles(ball, scale); });
  };
  BOOST_TEST(has(refusal(two), {"row 1", "norm"}));
  BOOST_TEST(has(refusal(row({1e308, 1e308})), {"row 0", "norm"}));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  BOOST_TEST(has(refusal(row({nan})), {"NaN"}));
  for (const double scale : {0.0, -1.0, nan, std::numeric_limits<double>::infinity()})
    BOOST_TEST(has(refusal(row({0.5}), scale), {"rotary.scale"}));
}

BOOST_AUTO_TEST_CASE(wrong_shapes_are_refused_with_both_numbers) {
  using cape::Status;
  const auto refusal = [](auto f) { return error_of(Status::dim_mismatch, f); };
  BOOST_TEST(has(refusal([] { cape::rotate(Matrix(2, 7), Matrix(2, 3)); }), {"7", "3"}));
  BOOST_TEST(has(refusal([] { cape::rotate(Matrix(2, 6), Matrix(2, 4)); }), {"6", "4"}));
  BOOST_TEST(has(refusal([] { cape::rotate(Matrix(5, 8), Matrix(9, 4)); }), {"5", "9"}));
  BOOST_TEST(has(refusal([] { cape::rotate_back(Matrix(1, 4), Matrix(1, 3)); }), {"4", "3"}));
  BOOST_TEST(cape::rotate(Matrix(0, 4), Matrix(0, 2)).cols() == 4);
  BOOST_TEST(cape::rotate(Matrix(3, 0), Matrix(3, 0)).rows() == 3);
}

BOOST_AUTO_TEST_CASE(nothing_that_is_not_finite_goes_in_or_out) {
  using cape::Status;
  const double inf = std::numeric_limits<double>::infinity(), huge = 1.7e308;
  const auto refusal = [](auto f) { return error_of(Status::invalid_argument, f); };
  BOOST_TEST(has(refusal([&] { cape::rotate(row({inf, 0}), row({0})); }), {"v has", "Inf"}));
  BOOST_TEST(has(refusal([&] { cape::rotate(row({1, 0}), row({-inf})); }), {"angles", "-Inf"}));
  BOOST_TEST(has(refusal([&] { cape::rotate(row({huge, huge}), row({pi / 4})); }), {"rotated v"}));
}

BOOST_AUTO_TEST_CASE(the_option_is_bound_to_its_field) {
  cape::RotaryOptions options;
  const cape::OptionFields all = cape::fields(options);
  BOOST_TEST(all.size() == 1u);
  BOOST_TEST(std::string(all[0].name) == "rotary.scale");
  BOOST_TEST(*std::get<double*>(all[0].value) == pi / 4);
}
