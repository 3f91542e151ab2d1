// The parts of a transformer: values against plain loops in long double, gradients against central
// differences in double.
#define BOOST_TEST_MODULE layers
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numbers>
#include <span>
#include <string>
#include <tuple>
#include <vector>
import cape;

#include "errors.hpp"
#include "parity.hpp"

using cape::Run;
using cape::Status;
using test::largest_difference;
namespace layers = cape::layers;
using layers::Activation;
using layers::Into;

namespace {

using Numbers = std::tuple<float, double>;
using Vector = std::vector<double>;

template <class T>
constexpr double tolerance = sizeof(T) == 4 ? 2e-5 : 1e-13;

template <class T = double>
std::vector<T> normal(std::int64_t n, std::uint64_t key) {
  cape::Rng rng(11, {key});
  std::vector<T> x(static_cast<std::size_t>(n));
  for (T& v : x) v = static_cast<T>(rng.normal());
  return x;
}

double dot(const Vector& x, const Vector& y) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
  return sum;
}

// The largest |gradient - central difference of f in x|, over 1 + |gradient|.
double gradient_error(Vector& x, const Vector& gradient, const std::function<double()>& f) {
  BOOST_REQUIRE(x.size() == gradient.size());
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    constexpr double h = 1e-5;
    const double before = x[i];
    x[i] = before + h;
    const double above = f();
    x[i] = before - h;
    const double below = f();
    x[i] = before;
    const double slope = (above - below) / (2 * h);
    worst = std::max(worst, std::fabs(slope - gradient[i]) / (1 + std::fabs(slope)));
  }
  return worst;
}

} // namespace

BOOST_AUTO_TEST_CASE_TEMPLATE(linear_is_a_product_and_a_sum, T, Numbers) {
  for (const auto& [rows, in, out] :
       {std::tuple{1, 1, 1}, {3, 5, 2}, {300, 7, 130}, {513, 64, 33}}) {
    Run run(1, 2);
    const auto x = normal<T>(rows * in, 1), w = normal<T>(out * in, 2), b = normal<T>(out, 3);
    std::vector<T> y(static_cast<std::size_t>(rows * out)), without = y;
    layers::linear<T>(x, rows, w, b, y, run);
    layers::linear<T>(x, rows, w, {}, without, run);
    double worst = 0;
    for (int i = 0; i < rows; ++i)
      for (int j = 0; j < out; ++j) {
        long double sum = 0;
        for (int k = 0; k < in; ++k)
          sum += static_cast<long double>(x[static_cast<std::size_t>(i * in + k)]) *
                 w[static_cast<std::size_t>(j * in + k)];
        const auto at = static_cast<std::size_t>(i * out + j);
        const T bias = b[static_cast<std::size_t>(j)];
        worst = std::max({worst, std::fabs(static_cast<double>(sum + bias - y[at])),
                          std::fabs(static_cast<double>(sum - without[at]))});
      }
    BOOST_TEST(worst < tolerance<T>);
  }
}

BOOST_AUTO_TEST_CASE(linear_gradients) {
  Run run;
  constexpr int rows = 6, in = 5, out = 4;
  Vector x = normal(rows * in, 1), w = normal(out * in, 2), b = normal(out, 3);
  const Vector d_y = normal(rows * out, 4);
  const auto f = [&] {
    Vector y(rows * out);
    layers::linear<double>(x, rows, w, b, y, run);
    return dot(d_y, y);
  };
  Vector d_x(rows * in, 7), d_w(out * in, 1), d_b(out, 2);
  layers::linear_backward<double>(x, rows, w, d_y, d_x, d_w, d_b, run);
  for (double& v : d_w) v -= 1; // parameters' gradients are added to
  for (double& v : d_b) v -= 2;
  BOOST_TEST(gradient_error(x, d_x, f) < 1e-9);
  BOOST_TEST(gradient_error(w, d_w, f) < 1e-9);
  BOOST_TEST(gradient_error(b, d_b, f) < 1e-9);
  Vector twice = d_x;
  layers::linear_backward<double>(x, rows, w, d_y, twice, {}, {}, run, Into::added);
  for (double& v : twice) v /= 2;
  BOOST_TEST(largest_difference(twice, d_x) < 1e-14);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(layer_norm_has_mean_bias_and_sd_gain, T, Numbers) {
  for (const int width : {1, 6, 32, 61}) {
    Run run(1, 2);
    constexpr int rows = 130;
    const auto size = static_cast<std::size_t>(rows * width);
    std::vector<T> x = normal<T>(rows * width, 1), y(size);
    const std::vector<T> residual = normal<T>(rows * width, 2), gain = normal<T>(width, 3),
                         bias = normal<T>(width, 4), start = x;
    std::vector<layers::RowMoments<T>> moments(rows);
    layers::layer_norm<T>(x, residual, gain, bias, 1e-5, y, moments, run);
    double worst = 0;
    for (int i = 0; i < rows; ++i) {
      std::vector<long double> row(static_cast<std::size_t>(width));
      long double mean = 0, variance = 0;
      for (int j = 0; j < width; ++j) {
        const auto at = static_cast<std::size_t>(i * width + j);
        BOOST_TEST(x[at] == start[at] + residual[at]);
        row[static_cast<std::size_t>(j)] = x[at];
        mean += x[at] / static_cast<long double>(width);
      }
      for (const long double v : row) variance += (v - mean) * (v - mean) / width;
      for (int j = 0; j < width; ++j) {
        const auto k = static_cast<std::size_t>(j);
        const long double right = (row[k] - mean) / std::sqrt(variance + 1e-5L) * gain[k] + bias[k];
        worst = std::max(worst, static_cast<double>(
                                    std::fabs(right - y[static_cast<std::size_t>(i * width + j)])));
      }
    }
    BOOST_TEST(worst < tolerance<T>);
  }
}

BOOST_AUTO_TEST_CASE(layer_norm_gradients) {
  Run run;
  constexpr int rows = 70, width = 5; // more than a block of rows
  Vector x = normal(rows * width, 1), gain = normal(width, 2), bias = normal(width, 3);
  const Vector d_y = normal(rows * width, 4);
  std::vector<layers::RowMoments<double>> moments(rows);
  const auto f = [&] {
    Vector y(rows * width);
    layers::layer_norm<double>(x, {}, gain, bias, 1e-5, y, moments, run);
    return dot(d_y, y);
  };
  f();
  Vector d_x(rows * width, 9), d_gain(width), d_bias(width);
  layers::layer_norm_backward<double>(x, gain, moments, d_y, d_x, d_gain, d_bias, run);
  BOOST_TEST(gradient_error(x, d_x, f) < 1e-7);
  BOOST_TEST(gradient_error(gain, d_gain, f) < 1e-7);
  BOOST_TEST(gradient_error(bias, d_bias, f) < 1e-7);
}

BOOST_AUTO_TEST_CASE(slopes_of_activations) {
  Run run;
  for (const Activation a : {Activation::relu, Activation::leaky_relu, Activation::gelu,
                             Activation::gelu_tanh, Activation::sigmoid}) {
    Vector x = normal(200, 5);
    const Vector d_y = normal(200, 6);
    const auto f = [&] {
      Vector y(x.size());
      layers::activate<double>(a, x, y, run);
      return dot(d_y, y);
    };
    Vector d_x(x.size());
    layers::activate_backward<double>(a, x, d_y, d_x, run);
    BOOST_TEST(gradient_error(x, d_x, f) < 1e-8);
  }
}

BOOST_AUTO_TEST_CASE(rows_of_a_table_and_their_gradient) {
  Run run(1, 2);
  constexpr int width = 3;
  const std::vector<std::int32_t> index{2, -1, 0, 2, 2, 1, -1, 0};
  const Vector table = normal(4 * width, 1), d_y = normal(8 * width, 2);
  Vector y(8 * width, 1), d_table(4 * width);
  layers::add_rows<double>(table, width, index, y, run);
  layers::add_rows_backward<double>(d_y, width, index, d_table, run);
  Vector expected(4 * width);
  for (std::size_t i = 0; i < 8; ++i)
    for (std::size_t j = 0; j < width; ++j) {
      const auto row = static_cast<std::size_t>(std::max(index[i], 0));
      BOOST_TEST(y[i * width + j] == 1 + (index[i] < 0 ? 0 : table[row * width + j]));
      if (index[i] >= 0) expected[row * width + j] += d_y[i * width + j];
    }
  BOOST_TEST(largest_difference(d_table, expected) < 1e-15);
  BOOST_TEST(test::fails_with(Status::invalid_argument, "index 1 is 4", [&] {
    Vector two(2 * width);
    layers::add_rows<double>(table, width, std::vector<std::int32_t>{0, 4}, two, run);
  }));
}

BOOST_AUTO_TEST_CASE(turned_rows_are_those_of_the_rotary_stage) {
  Run run(1, 2);
  constexpr int rows = 100, pairs = 3, features = 5;
  cape::Matrix angles(features, pairs), v(rows, 2 * pairs), turned_angles(rows, pairs);
  cape::Rng rng(3, {1});
  for (int i = 0; i < features * pairs; ++i) angles.data()[i] = rng.normal();
  for (int i = 0; i < rows * 2 * pairs; ++i) v.data()[i] = rng.normal();
  Vector cosine, sine, x;
  for (int i = 0; i < features; ++i)
    for (int t = 0; t < pairs; ++t) {
      cosine.push_back(std::cos(angles(i, t)));
      sine.push_back(std::sin(angles(i, t)));
    }
  std::vector<std::int32_t> index;
  for (int i = 0; i < rows; ++i) {
    index.push_back(i % 7 == 0 ? -1 : i % features);
    for (int j = 0; j < 2 * pairs; ++j) x.push_back(v(i, j));
    for (int t = 0; t < pairs; ++t)
      turned_angles(i, t) = index.back() < 0 ? 0 : angles(index.back(), t);
  }
  const cape::Matrix expected = cape::rotate(v, turned_angles);
  const Vector start = x;
  const layers::Turns<double> turns{pairs, cosine, sine};
  layers::turn_rows<double>(x, index, turns, false, run);
  double worst = 0;
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < 2 * pairs; ++j)
      worst = std::max(worst,
                       std::fabs(x[static_cast<std::size_t>(i * 2 * pairs + j)] - expected(i, j)));
  BOOST_TEST(worst < 1e-14);

  const Vector d_y = normal(rows * 2 * pairs, 8);
  Vector d_angle(rows * pairs);
  layers::turn_rows_angle_backward<double>(x, d_y, d_angle, run);
  cape::Matrix d_turned(rows, 2 * pairs);
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < 2 * pairs; ++j)
      d_turned(i, j) = d_y[static_cast<std::size_t>(i * 2 * pairs + j)];
  const cape::Matrix d_expected = cape::rotate_angle_gradient(v, turned_angles, d_turned);
  for (int i = 0; i < rows; ++i)
    for (int t = 0; t < pairs; ++t)
      worst = std::max(
          worst, std::fabs(d_angle[static_cast<std::size_t>(i * pairs + t)] - d_expected(i, t)));
  BOOST_TEST(worst < 1e-13);
  layers::turn_rows<double>(x, index, turns, true, run);
  BOOST_TEST(largest_difference(x, start) < 1e-14);
}

BOOST_AUTO_TEST_CASE(drop_out_keeps_the_mean) {
  const auto dropped = [](int threads, std::uint64_t seed, std::uint64_t number) {
    Run run(seed, threads);
    std::vector<float> x(100'000, 1);
    layers::drop_out<float>(x, 0.2, "test", number, run);
    return x;
  };
  const std::vector<float> x = dropped(1, 1, 1);
  double sum = 0, zeros = 0;
  for (const float v : x) {
    BOOST_TEST((v == 0 || std::fabs(v - 1.25f) < 1e-4f));
    sum += static_cast<double>(v);
    zeros += v == 0;
  }
  // Binomial: standard deviation of the share .0013.
  BOOST_TEST(std::fabs(zeros / 100'000 - 0.2) < 0.006);
  BOOST_TEST(std::fabs(sum / 100'000 - 1) < 0.008);
  BOOST_TEST((dropped(2, 1, 1) == x));
  BOOST_TEST((dropped(1, 2, 1) != x));
  BOOST_TEST((dropped(1, 1, 2) != x));
  Run run;
  std::vector<float> some(3);
  for (const double rate : {-0.1, 1.0, std::nan(""), 0.999999})
    BOOST_TEST(test::fails_with(Status::invalid_argument, "rate is",
                                [&] { layers::drop_out<float>(some, rate, "test", 1, run); }));
}

BOOST_AUTO_TEST_CASE(losses_and_their_slopes) {
  Vector x = normal(12, 1);
  const Vector target{1, 2, 3, NAN, 5, 6, 7, 8, 9, 10, 11, 12};
  const std::vector<std::uint8_t> counts{1, 0, 1, 0, 1, 1, 0, 0, 1, 0, 0, 1};
  Vector slope(12, 5);
  layers::square_loss<double>(x, target, counts, 3, slope);
  BOOST_TEST(gradient_error(x, slope, [&] {
               return 3 * layers::square_loss<double>(x, target, counts, 1, {});
             }) < 1e-9);
  const std::vector<std::uint8_t> none(12, 0);
  BOOST_TEST(layers::square_loss<double>(x, target, none, 1, slope) == 0);
  BOOST_TEST((slope == Vector(12, 0)));

  const std::vector<std::int32_t> label{2, -1, 0, 1};
  layers::cross_entropy<double>(x, 3, label, 2, slope);
  BOOST_TEST(gradient_error(x, slope, [&] {
               return 2 * layers::cross_entropy<double>(x, 3, label, 1, {});
             }) < 1e-9);
  for (double& v : x) v *= 1000;
  BOOST_TEST(std::isfinite(layers::cross_entropy<double>(x, 3, label, 1, slope)));
  BOOST_TEST(test::fails_with(Status::invalid_argument, "a label is 3", [&] {
    layers::cross_entropy<double>(x, 3, std::vector<std::int32_t>{0, 3, 0, 0}, 1, {});
  }));
}

BOOST_AUTO_TEST_CASE(wrong_lengths_are_told) {
  Run run;
  Vector x(12), other(12), y(8), w(6), row(3);
  std::vector<layers::RowMoments<double>> moments(4);
  BOOST_TEST(test::fails_with(Status::dim_mismatch, "weight has 5 elements; it must have 6",
                              [&] { layers::linear<double>(x, 4, Vector(5), {}, y, run); }));
  BOOST_TEST(test::fails_with(Status::dim_mismatch, "x has 12 elements",
                              [&] { layers::linear<double>(x, 5, w, {}, y, run); }));
  BOOST_TEST(test::fails_with(Status::dim_mismatch, "bias has 3 elements; it must have 2",
                              [&] { layers::linear<double>(x, 4, w, row, y, run); }));
  BOOST_TEST(test::fails_with(Status::dim_mismatch, "gain has 2 elements; it must have 3", [&] {
    layers::layer_norm<double>(x, {}, Vector(2), row, 1e-5, other, moments, run);
  }));
}
