// What model G does between and around its products, against plain loops.
#define BOOST_TEST_MODULE hidden_layer
#include <boost/mpl/list.hpp>
#include <boost/test/unit_test.hpp>
#include "dag/kernels/column_product.hpp"
#include "dag/kernels/hidden_layer.hpp"
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>
import cape;

namespace {

namespace simd = cape::simd;
using Scalars = boost::mpl::list<float, double>;

template <class T>
std::vector<T> normal(std::int64_t n, std::uint64_t seed) {
  cape::Rng rng(seed);
  std::vector<T> x(static_cast<std::size_t>(n));
  for (T& value : x) value = static_cast<T>(rng.normal());
  return x;
}

// Their sums of products are exact.
template <class T>
std::vector<T> small_integers(std::int64_t n, std::uint64_t seed) {
  cape::Rng rng(seed);
  std::vector<T> x(static_cast<std::size_t>(n));
  for (T& value : x) value = static_cast<T>(rng.integer(9) - 4);
  return x;
}

} // namespace

BOOST_AUTO_TEST_CASE_TEMPLATE(products_with_chosen_columns_are_those_of_plain_loops, T, Scalars) {
  constexpr std::int64_t all = 40;
  for (const std::int64_t rows : {1, 7, 33, 64, 128, 131})
    for (const std::int64_t count : {1, 2, 5, 16})
      for (const std::int64_t outputs : {1, 4, 5, 10, 13}) {
        const std::vector<T> x = small_integers<T>(rows * all, 1);
        std::vector<T> w = small_integers<T>(count * outputs, 2);
        for (std::int64_t k = 0; k < outputs; ++k) w[static_cast<std::size_t>(k * count)] = 0;
        std::vector<std::int64_t> columns;
        for (std::int64_t i = 0; i < count; ++i) columns.push_back(2 * i + i % 2);
        const simd::ColumnChoice<T> choice{x.data(), rows, columns.data(), count};
        const auto at = [&](std::int64_t r, std::int64_t i) {
          return x[static_cast<std::size_t>(columns[static_cast<std::size_t>(i)] * rows + r)];
        };

        std::vector<T> y(static_cast<std::size_t>(rows * outputs), T(77)), expected(y.size());
        simd::column_product(choice, w.data(), outputs, y.data());
        for (std::int64_t k = 0; k < outputs; ++k)
          for (std::int64_t r = 0; r < rows; ++r)
            for (std::int64_t i = 0; i < count; ++i)
              expected[static_cast<std::size_t>(k * rows + r)] +=
                  at(r, i) * w[static_cast<std::size_t>(k * count + i)];
        BOOST_TEST(y == expected);

        std::vector<T> back(w.size(), T(77)), expected_back(w.size());
        simd::column_product_transposed(choice, y.data(), outputs, back.data());
        for (std::int64_t k = 0; k < outputs; ++k)
          for (std::int64_t i = 0; i < count; ++i)
            for (std::int64_t r = 0; r < rows; ++r)
              expected_back[static_cast<std::size_t>(k * count + i)] +=
                  at(r, i) * y[static_cast<std::size_t>(k * rows + r)];
        BOOST_TEST(back == expected_back);
      }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_layer_and_its_slopes_are_those_of_plain_loops, T, Scalars) {
  const double tolerance = 64 * std::numeric_limits<T>::epsilon();
  constexpr std::int64_t hidden = 6;
  for (const std::int64_t rows : {1, 5, 16, 37}) {
    const std::vector<T> pre = normal<T>(rows * hidden, 3), bias = normal<T>(hidden, 4),
                         v = normal<T>(hidden, 5), x = normal<T>(rows, 6);
    std::vector<T> units = pre, z = x, v_slope(hidden), bias_slope(hidden);
    simd::hidden_layer(units.data(), rows, hidden, bias.data(), v.data(), z.data());
    std::vector<double> s;
    for (std::int64_t k = 0; k < hidden; ++k)
      for (std::int64_t r = 0; r < rows; ++r) {
        const auto e = static_cast<std::size_t>(k * rows + r);
        s.push_back(1 / (1 + std::exp(-(double(pre[e]) + bias[static_cast<std::size_t>(k)]))));
        BOOST_TEST(std::fabs(units[e] - s[e]) < tolerance);
      }
    for (std::int64_t r = 0; r < rows; ++r) {
      double rest = x[static_cast<std::size_t>(r)];
      for (std::int64_t k = 0; k < hidden; ++k)
        rest -= s[static_cast<std::size_t>(k * rows + r)] * v[static_cast<std::size_t>(k)];
      BOOST_TEST(std::fabs(z[static_cast<std::size_t>(r)] - rest) < tolerance);
    }

    const std::vector<T> dz = normal<T>(rows, 7);
    simd::hidden_layer_slopes(units.data(), rows, hidden, v.data(), dz.data(), v_slope.data(),
                              bias_slope.data());
    for (std::int64_t k = 0; k < hidden; ++k) {
      const auto unit = static_cast<std::size_t>(k);
      double of_v = 0, of_bias = 0;
      for (std::int64_t r = 0; r < rows; ++r) {
        const auto e = static_cast<std::size_t>(k * rows + r);
        const double slope = -v[unit] * dz[static_cast<std::size_t>(r)] * s[e] * (1 - s[e]);
        of_v -= dz[static_cast<std::size_t>(r)] * s[e];
        of_bias += slope;
        BOOST_TEST(std::fabs(units[e] - slope) < tolerance);
      }
      BOOST_TEST(std::fabs(v_slope[unit] - of_v) < tolerance);
      BOOST_TEST(std::fabs(bias_slope[unit] - of_bias) < tolerance);
    }
  }
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_layer_passes_nan_on_and_saturates, T, Scalars) {
  const T inf = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
  std::vector<T> units = {inf, -inf, nan}, z(3);
  const T bias = 0, v = 1;
  simd::hidden_layer(units.data(), 3, 1, &bias, &v, z.data());
  BOOST_TEST(units[0] == T(1), boost::test_tools::tolerance(T(1e-6)));
  BOOST_TEST((units[1] > 0 && units[1] < T(2e-11))); // 1 / (1 + exp(25))
  BOOST_TEST(std::isnan(units[2]));
  BOOST_TEST(std::isnan(z[2]));
}
