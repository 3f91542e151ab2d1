#define BOOST_TEST_MODULE rng
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <numbers>
#include <Random123/philox.h>
#include <set>
#include <string_view>
#include <vector>
import cape;

using cape::Rng;

namespace {

const auto invalid = [](const cape::Error& e) {
  return e.code() == cape::Status::invalid_argument;
};

template <class Draw>
std::vector<double> draws(std::size_t n, std::uint64_t seed, Draw draw) {
  Rng rng(seed);
  std::vector<double> values(n);
  for (double& v : values) v = double(draw(rng));
  return values;
}

// Mean and variance against theory, within 5 standard errors taken from the sample.
void check_moments(const std::vector<double>& values, double mean, double variance) {
  const auto n = double(values.size());
  double m = 0, second = 0, fourth = 0;
  for (const double v : values) m += v / n;
  for (const double v : values) second += std::pow(v - m, 2) / n;
  for (const double v : values) fourth += std::pow(v - m, 4) / n;
  BOOST_TEST(std::fabs(m - mean) <= 5 * std::sqrt(second / n));
  BOOST_TEST(std::fabs(second - variance) <= 5 * std::sqrt((fourth - second * second) / n));
}

// Kolmogorov-Smirnov: sqrt(n) D exceeds 2.5 with probability 7e-6 if cdf is right.
void check_distribution(std::vector<double> values, const std::function<double(double)>& cdf) {
  std::sort(values.begin(), values.end());
  const auto n = double(values.size());
  double d = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double p = cdf(values[i]);
    d = std::max({d, p - double(i) / n, double(i + 1) / n - p});
  }
  BOOST_TEST(std::sqrt(n) * d < 2.5);
}

double normal_cdf(double x) { return std::erfc(-x / std::numbers::sqrt2) / 2; }

double correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const auto n = double(a.size());
  double ma = 0, mb = 0, ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ma += a[i] / n;
    mb += b[i] / n;
  }
  for (std::size_t i = 0; i < a.size(); ++i) {
    ab += (a[i] - ma) * (b[i] - mb);
    aa += (a[i] - ma) * (a[i] - ma);
    bb += (b[i] - mb) * (b[i] - mb);
  }
  return ab / std::sqrt(aa * bb);
}

} // namespace

BOOST_AUTO_TEST_SUITE(generator)

// The vectors that J. K. Salmon et al. publish with Random123 (kat_vectors, philox4x64-10).
BOOST_AUTO_TEST_CASE(philox_gives_its_published_vectors) {
  using Philox = r123::Philox4x64;
  const std::uint64_t ones = ~std::uint64_t{0};
  const Philox philox;
  BOOST_TEST((philox(Philox::ctr_type{}, Philox::key_type{}) ==
              Philox::ctr_type{{0x16554d9eca36314cu, 0xdb20fe9d672d0fdcu, 0xd7e772cee186176bu,
                                0x7e68b68aec7ba23bu}}));
  BOOST_TEST((philox(Philox::ctr_type{{ones, ones, ones, ones}}, Philox::key_type{{ones, ones}}) ==
              Philox::ctr_type{{0x87b092c3013fe90bu, 0x438c3c67be8d0224u, 0x9cc7d7c69cd777b6u,
                                0xa09caebf594f0ba0u}}));
}

// From an implementation of Philox 4x64-10 in Python integers that gives the vectors above: key
// (42, FNV offset), counter (0, 0, ~FNV offset, 0) and its successor; normals by
// statistics.NormalDist().inv_cdf(((bits >> 12) + 0.5) / 2^52).
BOOST_AUTO_TEST_CASE(first_numbers_of_seed_42) {
  Rng bits(42);
  for (const std::uint64_t expected :
       {0xb4d3f55e2bb22bc1u, 0xd00dffb8f18f8642u, 0x7b4f9d84a995f0d0u, 0x542d12a646907e48u,
        0x848de9d72e0ca218u, 0xe27121e92118e844u})
    BOOST_TEST(bits.bits() == expected);
  Rng uniform(42);
  BOOST_TEST(uniform.uniform() == 0.7063592295559792);
  BOOST_TEST(uniform.uniform() == 0.8127136065027668);
  Rng normal(42);
  for (const double expected : {0.542779628584349, 0.8879404457724932, -0.045928590483166096,
                                -0.4431938675024767, 0.04460877834557788})
    BOOST_TEST(normal.normal() == expected, boost::test_tools::tolerance(1e-14));
}

// The same implementation, with the key hashed by FNV-1a and the finaliser of SplitMix64.
BOOST_AUTO_TEST_CASE(first_numbers_of_a_keyed_stream) {
  Rng rng(7, {5, 6});
  for (const std::uint64_t expected :
       {0x259396fd7df741afu, 0x34ddcc4116f434ddu, 0xae24131b2d136778u, 0xc2a990b51a63c0c0u})
    BOOST_TEST(rng.bits() == expected);
}

BOOST_AUTO_TEST_CASE(streams_are_functions_of_seed_and_key) {
  std::set<std::uint64_t> first;
  const auto add = [&](Rng rng) { first.insert(rng.bits()); };
  add(Rng(1));
  add(Rng(2));
  add(Rng(1, {0}));
  add(Rng(1, {1}));
  add(Rng(1, {0, 0}));
  add(Rng(1, {1, 2}));
  add(Rng(1, {2, 1}));
  add(Rng(1, {1, 2, 3, 4, 5, 6}));
  add(Rng(2, {1}));
  BOOST_TEST(first.size() == 9u);
  Rng a(3, {4}), b(3, {4});
  for (int i = 0; i < 100; ++i) BOOST_TEST(a.bits() == b.bits());
}

BOOST_AUTO_TEST_CASE(streams_of_neighbouring_keys_are_unrelated) {
  const std::size_t n = 20000;
  std::vector<double> first; // of every stream
  for (std::uint64_t key = 0; key < n; ++key) first.push_back(Rng(1, {key}).uniform());
  check_distribution(first, [](double u) { return u; });
  const std::vector<double> shifted(first.begin() + 1, first.end());
  first.pop_back();
  BOOST_TEST(std::fabs(correlation(first, shifted)) < 5 / std::sqrt(double(n)));

  Rng a(1, {0}), b(1, {1}), c(2, {0});
  std::vector<double> of_a(n), of_b(n), of_c(n);
  for (std::size_t i = 0; i < n; ++i) {
    of_a[i] = a.normal();
    of_b[i] = b.normal();
    of_c[i] = c.normal();
  }
  BOOST_TEST(std::fabs(correlation(of_a, of_b)) < 5 / std::sqrt(double(n)));
  BOOST_TEST(std::fabs(correlation(of_a, of_c)) < 5 / std::sqrt(double(n)));
}

BOOST_AUTO_TEST_CASE(successive_numbers_are_uncorrelated) {
  const auto u = draws(100000, 5, [](Rng& rng) { return rng.uniform(); });
  for (const std::size_t lag : {1u, 2u, 3u, 4u, 5u}) {
    const std::vector<double> a(u.begin(), u.end() - std::ptrdiff_t(lag)),
        b(u.begin() + std::ptrdiff_t(lag), u.end());
    BOOST_TEST(std::fabs(correlation(a, b)) < 5 / std::sqrt(double(a.size())));
  }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(continuous)

constexpr std::size_t many = 200000;

BOOST_AUTO_TEST_CASE(uniform_lies_strictly_inside) {
  const auto u = draws(many, 1, [](Rng& rng) { return rng.uniform(); });
  BOOST_TEST(*std::min_element(u.begin(), u.end()) > 0);
  BOOST_TEST(*std::max_element(u.begin(), u.end()) < 1);
  check_distribution(u, [](double x) { return x; });
  const auto v = draws(many, 2, [](Rng& rng) { return rng.uniform(-3, 5); });
  check_moments(v, 1, 64.0 / 12);
}

BOOST_AUTO_TEST_CASE(normal_exponential_and_gumbel_have_their_distributions) {
  const auto normal = draws(many, 3, [](Rng& rng) { return rng.normal(); });
  check_moments(normal, 0, 1);
  check_distribution(normal, normal_cdf);
  const auto exponential = draws(many, 4, [](Rng& rng) { return rng.exponential(); });
  check_moments(exponential, 1, 1);
  check_distribution(exponential, [](double x) { return -std::expm1(-x); });
  const auto gumbel = draws(many, 5, [](Rng& rng) { return rng.gumbel(); });
  check_moments(gumbel, std::numbers::egamma, std::numbers::pi * std::numbers::pi / 6);
  check_distribution(gumbel, [](double x) { return std::exp(-std::exp(-x)); });
}

// A normal number is the quantile of the uniform one from the same bits. An error e of the quantile
// x moves the tail probability by about (1 + x^2) e in relative terms.
BOOST_AUTO_TEST_CASE(normal_is_the_exact_quantile_of_uniform) {
  Rng u(6), z(6);
  double largest = 0;
  for (std::size_t i = 0; i < many; ++i) {
    const double p = u.uniform(), x = z.normal();
    const double tail = std::min(p, 1 - p),
                 found = std::erfc(std::fabs(x) / std::numbers::sqrt2) / 2;
    BOOST_REQUIRE((x < 0) == (p < 0.5));
    largest = std::max(largest, std::fabs(found - tail) / tail / (1 + x * x));
  }
  BOOST_TEST(largest < 8 * std::numeric_limits<double>::epsilon());
}

BOOST_AUTO_TEST_CASE(gamma_has_its_distribution) {
  for (const double shape : {0.1, 0.5, 1.0, 2.5, 30.0, 1e4}) {
    const auto g = draws(many, 7, [shape](Rng& rng) { return rng.gamma(shape); });
    BOOST_TEST(*std::min_element(g.begin(), g.end()) >= 0);
    check_moments(g, shape, shape);
  }
  // Shapes with a closed form: 1 is exponential, 1/2 the half square of a normal, 2 of two rates.
  const auto g = [](double shape) {
    return draws(many, 8, [shape](Rng& rng) { return rng.gamma(shape); });
  };
  check_distribution(g(1), [](double x) { return -std::expm1(-x); });
  check_distribution(g(0.5), [](double x) { return std::erf(std::sqrt(x)); });
  check_distribution(g(2), [](double x) { return 1 - (1 + x) * std::exp(-x); });
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(discrete)

BOOST_AUTO_TEST_CASE(poisson_has_its_moments_on_both_sides_of_the_method_switch) {
  for (const double mean : {0.01, 0.7, 5.0, 15.9, 16.1, 40.0, 1e3, 1e6, 1e12})
    check_moments(draws(50000, 9, [mean](Rng& rng) { return rng.poisson(mean); }), mean, mean);
  BOOST_TEST(Rng(1).poisson(0) == 0);
}

BOOST_AUTO_TEST_CASE(poisson_has_its_probabilities) {
  for (const double mean : {3.0, 25.0}) {
    const int n = 100000;
    std::map<std::int64_t, double> count;
    Rng rng(10);
    for (int i = 0; i < n; ++i) ++count[rng.poisson(mean)];
    for (std::int64_t k = 0; k < 60; ++k) {
      const double p = std::exp(double(k) * std::log(mean) - mean - std::lgamma(double(k) + 1));
      if (n * p < 20) continue;
      BOOST_TEST(std::fabs(count[k] - n * p) < 5 * std::sqrt(n * p * (1 - p)));
    }
  }
}

BOOST_AUTO_TEST_CASE(negative_binomial_has_its_moments) {
  for (const double mean : {0.2, 3.0, 200.0})
    for (const double dispersion : {0.0, 1e-6, 0.3, 4.0})
      check_moments(
          draws(50000, 11, [=](Rng& rng) { return rng.negative_binomial(mean, dispersion); }), mean,
          mean + dispersion * mean * mean);
  BOOST_TEST(Rng(1).negative_binomial(0, 2) == 0);
}

BOOST_AUTO_TEST_CASE(integers_are_unbiased) {
  const int n = 120000;
  std::vector<double> count(6, 0);
  Rng rng(12);
  for (int i = 0; i < n; ++i) ++count.at(std::size_t(rng.integer(6)));
  double chi2 = 0; // 5 degrees of freedom: above 33 with probability 4e-6
  for (const double c : count) chi2 += std::pow(c - n / 6.0, 2) / (n / 6.0);
  BOOST_TEST(chi2 < 33);
  // 2^64 = 2 n + 2^62 for n = 3 * 2^61: without rejection, numbers below 2^62 come up 3/4 of the
  // time and not 2/3.
  double low = 0;
  for (int i = 0; i < n; ++i) low += rng.integer(3LL << 61) < (1LL << 62);
  BOOST_TEST(std::fabs(low / n - 2.0 / 3) < 5 * std::sqrt(2.0 / 9 / n));
  BOOST_TEST(Rng(1).integer(1) == 0);
}

BOOST_AUTO_TEST_CASE(permutations_are_valid_and_equally_likely) {
  Rng rng(13);
  for (const std::int64_t n : {0, 1, 2, 100}) {
    auto p = rng.permutation(n);
    std::sort(p.begin(), p.end());
    BOOST_TEST(std::ssize(p) == n);
    for (std::int64_t i = 0; i < n; ++i) BOOST_TEST(p[std::size_t(i)] == i);
  }
  const int n = 60000;
  std::map<std::vector<std::int64_t>, double> count;
  for (int i = 0; i < n; ++i) ++count[rng.permutation(3)];
  BOOST_TEST(count.size() == 6u);
  double chi2 = 0;
  for (const auto& [p, c] : count) chi2 += std::pow(c - n / 6.0, 2) / (n / 6.0);
  BOOST_TEST(chi2 < 33);
}

BOOST_AUTO_TEST_CASE(bad_parameters_are_refused) {
  Rng rng(1);
  const double nan = std::nan(""), infinity = std::numeric_limits<double>::infinity();
  for (const double shape : {0.0, -1.0, nan, infinity})
    BOOST_CHECK_EXCEPTION(rng.gamma(shape), cape::Error, invalid);
  for (const double mean : {-1.0, nan, 1e16})
    BOOST_CHECK_EXCEPTION(rng.poisson(mean), cape::Error, invalid);
  BOOST_CHECK_EXCEPTION(rng.negative_binomial(-1, 1), cape::Error, invalid);
  BOOST_CHECK_EXCEPTION(rng.negative_binomial(1, -1), cape::Error, invalid);
  BOOST_CHECK_EXCEPTION(rng.negative_binomial(1, nan), cape::Error, invalid);
  for (const std::int64_t n : {0, -5}) BOOST_CHECK_EXCEPTION(rng.integer(n), cape::Error, invalid);
  BOOST_CHECK_EXCEPTION(rng.permutation(-1), cape::Error, invalid);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(hashes)

BOOST_AUTO_TEST_CASE(text_gives_the_published_fnv_1a_values) {
  BOOST_TEST(cape::hash("") == 0xcbf29ce484222325u);
  BOOST_TEST(cape::hash("a") == 0xaf63dc4c8601ec8cu);
  BOOST_TEST(cape::hash("foobar") == 0x85944171f73967e8u);
}

BOOST_AUTO_TEST_CASE(values_are_hashed_by_content_and_order) {
  const std::vector<double> a{1, 2, 0.0}, same{1, 2, -0.0}, turned{2, 1, 0.0}, shorter{1, 2};
  BOOST_TEST(cape::hash(a) == cape::hash(same));
  BOOST_TEST(cape::hash(a) != cape::hash(turned));
  BOOST_TEST(cape::hash(a) != cape::hash(shorter));
}

BOOST_AUTO_TEST_SUITE_END()
