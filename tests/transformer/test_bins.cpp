// Bins of values: by hand, by the definition of their quantiles in whole numbers, and by what
// scGPT's code gives.
#define BOOST_TEST_MODULE bins
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <tuple>
#include <vector>
import cape;

#include "errors.hpp"
#include "parity.hpp"

using cape::Status;
using Bins = std::vector<std::int32_t>;
using Values = std::vector<double>;
using Types = std::tuple<float, double>;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

Bins quantile_bins(const Values& values, std::int64_t n_bins, const Values& draws = {}) {
  return cape::quantile_bins(std::span(values), n_bins, draws);
}
Bins logarithmic_bins(const Values& values, std::int32_t largest = 5) {
  return cape::logarithmic_bins(std::span(values), largest);
}

// Counts as a cell has them: half are 0, and most others are small.
std::vector<std::int64_t> counts(std::int64_t n, std::uint64_t key, double mean) {
  cape::Rng rng(11, {key});
  std::vector<std::int64_t> out(static_cast<std::size_t>(n));
  for (std::int64_t& c : out) c = rng.uniform() < 0.5 ? 0 : rng.negative_binomial(mean, 1.5);
  return out;
}

Values draws(std::int64_t n, std::uint64_t key) {
  cape::Rng rng(12, {key});
  Values out(static_cast<std::size_t>(n));
  for (double& u : out) u = rng.uniform();
  return out;
}

// scGPT's rule in whole numbers: quantile i is (v_p + (v_{p+1} - v_p) r / steps) with i (n - 1) =
// p steps + r; `reached` of them are not above x, `below` of them are below it, and the bin is
// ceil(u (below - reached) + reached).
Bins by_definition(const std::vector<std::int64_t>& values, std::int64_t n_bins, const Values& u) {
  std::vector<std::int64_t> v;
  std::ranges::copy_if(values, std::back_inserter(v), [](std::int64_t x) { return x != 0; });
  std::ranges::sort(v);
  const std::int64_t n = std::ssize(v), steps = n_bins - 2;
  Bins bins;
  for (std::size_t j = 0; j < values.size(); ++j) {
    std::int64_t reached = 0, below = 0;
    for (std::int64_t i = 0; i <= steps && n > 0; ++i) {
      const std::int64_t p = i * (n - 1) / steps, r = i * (n - 1) % steps;
      const std::int64_t low = v[std::size_t(p)], high = v[std::size_t(std::min(p + 1, n - 1))];
      reached += low * steps + (high - low) * r <= values[j] * steps;
      below += low * steps + (high - low) * r < values[j] * steps;
    }
    bins.push_back(values[j] == 0
                       ? 0
                       : std::int32_t(std::ceil(u[j] * double(below - reached) + double(reached))));
  }
  return bins;
}

} // namespace

BOOST_AUTO_TEST_SUITE(quantiles)

BOOST_AUTO_TEST_CASE(values_by_hand) {
  // Quantiles 1, 2, 3 of the values that are not 0.
  BOOST_TEST(quantile_bins({3, 1, 0, 2}, 4) == (Bins{3, 1, 0, 2}));
  // Quantiles 1, 2.5, 4.
  BOOST_TEST(quantile_bins({1, 2, 3, 4}, 4) == (Bins{1, 1, 2, 3}));
  // Quantiles -3, -1, 2: negative values are values, and 0 is not among them.
  BOOST_TEST(quantile_bins({2, 0, -3, -1, -0.0}, 4) == (Bins{3, 0, 1, 2, 0}));
  // One quantile, the smallest value.
  BOOST_TEST(quantile_bins({5, 0, 7, 7}, 2) == (Bins{1, 0, 1, 1}));
  BOOST_TEST(quantile_bins({0, 0, 0}, 51) == (Bins{0, 0, 0}));
  BOOST_TEST(quantile_bins({}, 51) == Bins{});
}

BOOST_AUTO_TEST_CASE(ties_by_hand) {
  // Quantiles 1, 1, 1, 2: bins 1 to 3 have the same claim to the ones.
  BOOST_TEST(quantile_bins({1, 2, 1, 1}, 5) == (Bins{1, 4, 1, 1}));
  BOOST_TEST(quantile_bins({1, 2, 1, 1}, 5, {0, 0.5, 0.34, 0.99}) == (Bins{3, 4, 2, 1}));
  // A value alone is every quantile.
  BOOST_TEST(quantile_bins({0, 9}, 51) == (Bins{0, 1}));
  BOOST_TEST(quantile_bins({0, 9}, 51, {0.5, 0}) == (Bins{0, 50}));
  BOOST_TEST(quantile_bins({0, 9}, 51, {0.5, 0.999}) == (Bins{0, 1}));
  // So is one that all have.
  BOOST_TEST(quantile_bins({7, 7, 7}, 4, {0.1, 0.5, 0.9}) == (Bins{3, 2, 1}));
}

BOOST_AUTO_TEST_CASE(missing_values_are_in_no_bin_and_in_no_quantile) {
  BOOST_TEST(quantile_bins({3, NAN, 1, 0, NAN, 2}, 4) ==
             (Bins{3, cape::no_bin, 1, 0, cape::no_bin, 2}));
  BOOST_TEST(quantile_bins({NAN, NAN}, 4) == (Bins{cape::no_bin, cape::no_bin}));
}

BOOST_AUTO_TEST_CASE(bins_are_those_of_the_definition_in_whole_numbers) {
  for (const std::int64_t n : {1, 2, 3, 17, 100, 700})
    for (const std::int64_t n_bins : {3, 4, 11, 51, 300})
      for (const double mean : {0.7, 3.0, 500.0})
        for (std::uint64_t key = 0; key < 4; ++key) {
          const std::vector<std::int64_t> cell = counts(n, key, mean);
          const Values values(cell.begin(), cell.end()), u = draws(n, key);
          BOOST_REQUIRE(quantile_bins(values, n_bins, u) == by_definition(cell, n_bins, u));
          // The lowest bin is that of draws near 1.
          const Values last(u.size(), 1 - 1e-9);
          BOOST_REQUIRE(quantile_bins(values, n_bins) == by_definition(cell, n_bins, last));
        }
}

// Each is a quantile, and none may be rounded away from it.
BOOST_AUTO_TEST_CASE(as_many_values_as_quantiles_have_a_bin_each) {
  for (const std::int64_t n : {2, 3, 10, 50, 99, 1000}) {
    Values values(static_cast<std::size_t>(n));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sqrt(double(i + 1)) / 10;
    const Bins bins = quantile_bins(values, n + 1);
    for (std::size_t i = 0; i < bins.size(); ++i) BOOST_REQUIRE(bins[i] == std::int32_t(i + 1));
  }
}

BOOST_AUTO_TEST_CASE(increasing_functions_of_values_change_nothing) {
  const std::vector<std::int64_t> cell = counts(500, 1, 8);
  const Values values(cell.begin(), cell.end()), u = draws(500, 2);
  Values logarithms, scaled;
  for (const double v : values) {
    logarithms.push_back(std::log1p(v));
    scaled.push_back(v * 1e4 / 3);
  }
  const Bins bins = quantile_bins(values, 51, u);
  BOOST_TEST(quantile_bins(logarithms, 51, u) == bins);
  BOOST_TEST(quantile_bins(scaled, 51, u) == bins);
  const std::vector<float> floats(values.begin(), values.end());
  BOOST_TEST(cape::quantile_bins(std::span<const float>(floats), 51, u) == bins);
}

BOOST_AUTO_TEST_CASE(zeros_may_be_left_out) {
  const std::vector<std::int64_t> cell = counts(300, 3, 2);
  const Values all(cell.begin(), cell.end());
  Values stored;
  std::ranges::copy_if(all, std::back_inserter(stored), [](double v) { return v != 0; });
  Bins bins = quantile_bins(all, 51);
  std::erase(bins, 0);
  BOOST_TEST(quantile_bins(stored, 51) == bins);
}

// By a permutation of the features, whose draws go with them.
BOOST_AUTO_TEST_CASE(the_order_of_features_does_not_matter) {
  const std::int64_t n = 400;
  const std::vector<std::int64_t> cell = counts(n, 4, 1.5);
  std::vector<std::uint64_t> keys;
  for (std::int64_t i = 0; i < n; ++i) keys.push_back(cape::hash("gene" + std::to_string(i)));
  const Values values(cell.begin(), cell.end()), u = cape::tie_draws(5, cape::hash("cell1"), keys);
  const Bins drawn = quantile_bins(values, 51, u), lowest = quantile_bins(values, 51);
  const std::vector<std::int64_t> order = cape::Rng(6).permutation(n);
  Values moved(values.size());
  std::vector<std::uint64_t> moved_keys(keys.size());
  for (std::size_t i = 0; i < moved.size(); ++i) {
    moved[i] = values[std::size_t(order[i])];
    moved_keys[i] = keys[std::size_t(order[i])];
  }
  const Bins moved_drawn =
      quantile_bins(moved, 51, cape::tie_draws(5, cape::hash("cell1"), moved_keys));
  const Bins moved_lowest = quantile_bins(moved, 51);
  for (std::size_t i = 0; i < moved.size(); ++i) {
    BOOST_REQUIRE(moved_drawn[i] == drawn[std::size_t(order[i])]);
    BOOST_REQUIRE(moved_lowest[i] == lowest[std::size_t(order[i])]);
  }
  BOOST_TEST((drawn != lowest));
  // Fewer features: the draws of those that are left stay.
  const auto some = cape::tie_draws(5, cape::hash("cell1"), std::span(keys).subspan(100, 7));
  BOOST_TEST(std::ranges::equal(some, std::span(u).subspan(100, 7)));
}

BOOST_AUTO_TEST_CASE(draws_are_those_of_seed_cell_and_feature) {
  const std::vector<std::uint64_t> keys{1, 2, 3, 1};
  const Values u = cape::tie_draws(1, 1, keys);
  BOOST_TEST(u[0] == u[3]);
  BOOST_TEST(u[0] != u[1]);
  BOOST_TEST((u != cape::tie_draws(2, 1, keys)));
  BOOST_TEST((u != cape::tie_draws(1, 2, keys)));
  BOOST_TEST((cape::tie_draws(1, 1, {}).empty()));
}

// 50,000 equal values over 5 bins: each has its share, within 5 standard deviations.
BOOST_AUTO_TEST_CASE(drawn_ties_are_uniform) {
  constexpr std::size_t n = 50000;
  std::vector<std::uint64_t> keys(n);
  for (std::size_t i = 0; i < n; ++i) keys[i] = i;
  const Bins bins = quantile_bins(Values(n, 2.5), 6, cape::tie_draws(3, 4, keys));
  for (std::int32_t bin = 1; bin <= 5; ++bin)
    BOOST_TEST(std::fabs(double(std::ranges::count(bins, bin)) - n / 5.0) <
               5 * std::sqrt(n * 0.2 * 0.8));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(wrong_arguments_are_named, T, Types) {
  const auto error = [](Status status, std::vector<T> values, std::int64_t n_bins, Values u = {}) {
    return test::error_of(status,
                          [&] { cape::quantile_bins(std::span<const T>(values), n_bins, u); });
  };
  for (const std::int64_t n_bins : {-1, 0, 1, 65537})
    BOOST_TEST(
        test::has(error(Status::invalid_argument, {1}, n_bins), {"n_bins is", "[2, 65536]"}));
  const T inf = std::numeric_limits<T>::infinity();
  BOOST_TEST(
      test::has(error(Status::invalid_argument, {0, inf}, 5), {"values[1] is inf", "finite"}));
  BOOST_TEST(test::has(error(Status::invalid_argument, {-inf}, 5), {"values[0] is -inf"}));
  BOOST_TEST(test::has(error(Status::dim_mismatch, {1, 2}, 5, {0.5}), {"1 numbers for 2 values"}));
  for (const double u : {-0.1, 1.0, double(NAN), infinity})
    BOOST_TEST(
        test::has(error(Status::invalid_argument, {1, 2}, 5, {0.5, u}), {"draws[1] is", "[0, 1)"}));
}

// Rows of scGPT's code, with the numbers that it drew.
BOOST_AUTO_TEST_CASE(reference_rows) {
  if (test::data_missing("parity")) return;
  const auto reference = test::read_parity("binning/scgpt_binning.f64.safetensors");
  int rows = 0;
  for (const char* row : {"allpos", "allzero", "cont", "counts_ties", "neg", "single"})
    for (const int n_bins : {11, 51}) {
      const Values& values = reference.at(row + std::string(".row"));
      const std::string name = row + (".n" + std::to_string(n_bins));
      const Values binned = reference.at(name + ".binned");
      Values u(values.size());
      if (const auto drawn = reference.find(name + ".rands"); drawn != reference.end())
        for (std::size_t i = 0, next = 0; i < u.size(); ++i)
          if (values[i] != 0) u[i] = drawn->second.at(next++);
      BOOST_TEST(quantile_bins(values, n_bins, u) == test::as<std::int32_t>(binned),
                 boost::test_tools::per_element());
      ++rows;
    }
  BOOST_TEST(rows == 12);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(logarithms)

BOOST_AUTO_TEST_CASE(values_by_hand) {
  BOOST_TEST(logarithmic_bins({0, -0.0, 0.99, 1, 2.99, 3, 6.99, 7, 14.99, 15, 30.99, 31, 1e300}) ==
             (Bins{0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5}));
  BOOST_TEST(logarithmic_bins({0, 1, 3, NAN, 100}, 1) == (Bins{0, 1, 1, cape::no_bin, 1}));
  BOOST_TEST(logarithmic_bins({}) == Bins{});
}

// log2(1 + x) rounds to the next whole number from below; bins do not.
BOOST_AUTO_TEST_CASE_TEMPLATE(limits_are_exact, T, Types) {
  for (std::int32_t bin = 1; bin <= std::numeric_limits<T>::digits - 1; ++bin) {
    const T limit = std::ldexp(T(1), bin) - 1;
    const std::vector<T> values{std::nextafter(limit, T(0)), limit};
    const Bins bins = cape::logarithmic_bins(std::span<const T>(values), 52);
    BOOST_TEST(bins[0] == bin - 1);
    BOOST_TEST(bins[1] == bin);
  }
}

BOOST_AUTO_TEST_CASE(they_are_the_whole_part_of_the_logarithm) {
  cape::Rng rng(8);
  Values values(2000);
  for (double& v : values) v = rng.exponential() * 20;
  const Bins bins = logarithmic_bins(values);
  for (std::size_t i = 0; i < values.size(); ++i)
    BOOST_REQUIRE(bins[i] == std::trunc(std::min(std::log2(1 + values[i]), 5.0)));
}

BOOST_AUTO_TEST_CASE(wrong_arguments_are_named) {
  const auto error = [](const Values& values, std::int32_t largest) {
    return test::error_of(Status::invalid_argument, [&] { logarithmic_bins(values, largest); });
  };
  for (const std::int32_t largest : {-1, 0, 53})
    BOOST_TEST(test::has(error({1}, largest), {"largest is", "[1, 52]"}));
  BOOST_TEST(test::has(error({0, -1}, 5), {"values[1] is -1", "not negative"}));
  BOOST_TEST(test::has(error({infinity}, 5), {"values[0] is inf"}));
}

BOOST_AUTO_TEST_SUITE_END()
