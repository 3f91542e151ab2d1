#define BOOST_TEST_MODULE simd
#define BOOST_TEST_NO_MAIN
#include <boost/test/unit_test.hpp>
#include "simd/vector_math.hpp"
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <vector>
import cape;

namespace {

namespace simd = cape::simd;
template <class T>
constexpr T infinity = std::numeric_limits<T>::infinity();
template <class T>
constexpr T nan_value = std::numeric_limits<T>::quiet_NaN();

// The distance of a result from the exact value in units in the last place of that value.
template <class T>
double ulps(T result, long double exact) {
  const T rounded = static_cast<T>(exact);
  if (result == rounded) return 0;
  if (!std::isfinite(rounded) || !std::isfinite(result)) return infinity<double>;
  const T size = std::fabs(rounded);
  const T unit = size < std::numeric_limits<T>::max() ? std::nextafter(size, infinity<T>) - size
                                                      : size - std::nextafter(size, T(0));
  return static_cast<double>(std::fabs(static_cast<long double>(result) - exact) /
                             static_cast<long double>(unit));
}

template <class T>
using Kernel = void (*)(const T*, T*, std::int64_t);

// The largest distance of a kernel from a long double function over these arguments.
template <class T, class F>
double worst(Kernel<T> kernel, F exact, const std::vector<T>& x) {
  std::vector<T> out(x.size());
  kernel(x.data(), out.data(), std::ssize(x));
  double largest = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    largest = std::max(largest, ulps(out[i], exact(static_cast<long double>(x[i]))));
  return largest;
}

template <class T>
std::vector<T> uniform(double low, double high) {
  cape::Rng rng(51);
  std::vector<T> x(200000);
  for (T& value : x) value = static_cast<T>(rng.uniform(low, high));
  return x;
}

// Both signs, magnitudes from 2^-140 to 2^4.
template <class T>
std::vector<T> of_all_magnitudes() {
  cape::Rng rng(52);
  std::vector<T> x(200000);
  for (T& value : x) {
    const int exponent = static_cast<int>(rng.integer(144)) - 140;
    value = static_cast<T>(std::ldexp(rng.uniform(-2, 2), exponent));
  }
  return x;
}

long double exact_tanh(long double x) { return std::tanh(x); }

template <class T>
T apply(Kernel<T> kernel, T x) {
  T out = -7;
  kernel(&x, &out, 1);
  return out;
}

// Kernels on n = 0 .. 70 elements: the same values as one at a time, in place as well, and nothing
// written beyond the end.
template <class T>
bool agrees_at_every_length(Kernel<T> kernel) {
  cape::Rng rng(53);
  for (std::int64_t n = 0; n <= 70; ++n) {
    std::vector<T> x(static_cast<std::size_t>(n) + 1), out(x.size(), T(-7));
    for (T& value : x) value = static_cast<T>(rng.uniform(-9, 9));
    kernel(x.data(), out.data(), n);
    for (std::int64_t i = 0; i < n; ++i)
      if (out[static_cast<std::size_t>(i)] != apply(kernel, x[static_cast<std::size_t>(i)]))
        return false;
    if (out.back() != T(-7)) return false;
    const T guard = x.back();
    kernel(x.data(), x.data(), n);
    if (x.back() != guard || !std::equal(x.begin(), x.end() - 1, out.begin())) return false;
  }
  return true;
}

template <class T>
void check_sin_cos() {
  for (const double reach : {1.0, 100.0, 1000.0, 1e6}) {
    const std::vector<T> x = uniform<T>(-reach, reach);
    std::vector<T> sine(x.size()), cosine(x.size());
    simd::sin_cos(x.data(), sine.data(), cosine.data(), std::ssize(x));
    long double error = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const auto exact = static_cast<long double>(x[i]);
      error = std::max(
          {error, std::fabs(sine[i] - std::sin(exact)), std::fabs(cosine[i] - std::cos(exact))});
    }
    BOOST_TEST(static_cast<double>(error) < 2.0 * std::numeric_limits<T>::epsilon());
  }
  const T zero = 0;
  T sine = 7, cosine = 7;
  simd::sin_cos(&zero, &sine, &cosine, 1);
  BOOST_TEST((sine == 0 && cosine == 1));
}

template <class T>
void check_max_abs() {
  cape::Rng rng(54);
  for (std::int64_t n = 1; n <= 70; ++n) {
    std::vector<T> x(static_cast<std::size_t>(n) + 1);
    for (T& value : x) value = static_cast<T>(rng.uniform(-30, 2));
    x.back() = 1000; // beyond the end
    T magnitude = 0;
    for (std::int64_t i = 0; i < n; ++i)
      magnitude = std::max(magnitude, std::fabs(x[static_cast<std::size_t>(i)]));
    BOOST_TEST(simd::max_abs(x.data(), n) == magnitude);
    for (const T bad : {nan_value<T>, infinity<T>, -infinity<T>}) {
      std::vector<T> y = x;
      y[static_cast<std::size_t>(rng.integer(n))] = bad;
      BOOST_TEST(simd::max_abs(y.data(), n) == infinity<T>);
    }
  }
  BOOST_TEST(simd::max_abs(static_cast<const T*>(nullptr), 0) == T(0));
}

} // namespace

BOOST_AUTO_TEST_CASE(exp2_is_within_2_ulp_and_flushes_to_zero) {
  const auto exact = [](long double x) { return std::exp2(x); };
  BOOST_TEST(worst<double>(simd::exp2, exact, uniform<double>(-1021, 127)) <= 2);
  BOOST_TEST(worst<double>(simd::exp2, exact, uniform<double>(-8, 8)) <= 2);
  BOOST_TEST(worst<float>(simd::exp2, exact, uniform<float>(-125, 127)) <= 2);
  BOOST_TEST(worst<float>(simd::exp2, exact, uniform<float>(-8, 8)) <= 2);
  BOOST_TEST(worst<float>(simd::exp2, exact, of_all_magnitudes<float>()) <= 2);
  for (const float x : {-125.5f, -1e30f, -infinity<float>, nan_value<float>})
    BOOST_TEST(apply<float>(simd::exp2, x) == 0.0f);
  for (const double x : {-1021.5, -1e300, -infinity<double>, nan_value<double>})
    BOOST_TEST(apply<double>(simd::exp2, x) == 0.0);
  for (int n = -125; n <= 127; ++n) {
    BOOST_TEST(apply<float>(simd::exp2, static_cast<float>(n)) == std::ldexp(1.0f, n));
    BOOST_TEST(apply<double>(simd::exp2, n) == std::ldexp(1.0, n));
  }
  BOOST_TEST(agrees_at_every_length<double>(simd::exp2));
  BOOST_TEST(agrees_at_every_length<float>(simd::exp2));
}

BOOST_AUTO_TEST_CASE(sines_and_cosines_are_exact_to_2_units_of_1) {
  check_sin_cos<double>();
  check_sin_cos<float>();
}

BOOST_AUTO_TEST_CASE(tanh_is_within_4_ulp_also_for_tiny_arguments) {
  BOOST_TEST(worst<double>(simd::tanh, exact_tanh, uniform<double>(-25, 25)) <= 4);
  BOOST_TEST(worst<double>(simd::tanh, exact_tanh, of_all_magnitudes<double>()) <= 4);
}

BOOST_AUTO_TEST_CASE(tanh_has_its_limits_and_keeps_nan) {
  for (const double x : {0.0, -0.0}) {
    BOOST_TEST(apply<double>(simd::tanh, x) == 0.0);
    BOOST_TEST(std::signbit(apply<double>(simd::tanh, x)) == std::signbit(x));
  }
  for (const double x : {19.0, 1e6, 1e300, infinity<double>}) {
    BOOST_TEST(apply<double>(simd::tanh, x) == 1.0);
    BOOST_TEST(apply<double>(simd::tanh, -x) == -1.0);
  }
  BOOST_TEST(std::isnan(apply<double>(simd::tanh, nan_value<double>)));
  BOOST_TEST(agrees_at_every_length<double>(simd::tanh));
}

BOOST_AUTO_TEST_CASE(the_largest_magnitude_is_found_and_infinite_if_any_number_is_not_finite) {
  check_max_abs<double>();
  check_max_abs<float>();
}

int main(int argc, char** argv) {
  const char* forced = std::getenv("CAPE_SIMD_TARGET");
  if (forced != nullptr && std::strcmp(forced, simd::target()) != 0) {
    std::printf("this build or CPU has no target %s\n", forced);
    return 77;
  }
  return boost::unit_test::unit_test_main([] { return true; }, argc, argv);
}
