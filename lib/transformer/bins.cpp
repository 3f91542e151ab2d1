module;
#include "internal/message.hpp"
#include "internal/sizes.hpp"
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>
module cape.transformer;

namespace cape {
namespace {

void check_draws(std::span<const double> draws, std::size_t n_values) {
  if (draws.empty()) return;
  if (draws.size() != n_values)
    throw Error(Status::dim_mismatch,
                message("draws has ", draws.size(), " numbers for ", n_values, " values"));
  for (std::size_t i = 0; i < draws.size(); ++i)
    if (!(draws[i] >= 0 && draws[i] < 1))
      throw Error(Status::invalid_argument,
                  message("draws[", i, "] is ", draws[i], "; it must lie in [0, 1)"));
}

[[noreturn]] void refuse(std::size_t i, double value, const char* right) {
  throw Error(Status::invalid_argument,
              message("values[", i, "] is ", value, "; it must be ", right, " or missing (NaN)"));
}

} // namespace

template <class T>
std::vector<std::int32_t> quantile_bins(std::span<const T> values, std::int64_t n_bins,
                                        std::span<const double> draws) {
  if (n_bins < 2 || n_bins > 65536)
    throw Error(Status::invalid_argument,
                message("n_bins is ", n_bins, "; it must lie in [2, 65536]"));
  check_draws(draws, values.size());
  std::vector<std::int32_t> bins(values.size());
  std::vector<std::pair<T, std::size_t>> sorted; // what is not 0, and where it stands
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isinf(values[i])) refuse(i, values[i], "finite");
    if (std::isnan(values[i]))
      bins[i] = no_bin;
    else if (values[i] != 0)
      sorted.emplace_back(values[i], i);
  }
  std::ranges::sort(sorted, {}, &std::pair<T, std::size_t>::first);

  // Quantile i is what stands at place i (n - 1) / steps, or between its neighbours.
  const std::int64_t n = std::ssize(sorted), steps = n_bins - 2;
  for (std::int64_t first = 0, end; first < n; first = end) { // of equal values
    end = first + 1;
    while (end < n && sorted[at(end)].first == sorted[at(first)].first) ++end;
    const std::int64_t reached = n == 1 ? steps + 1 : (end - 1) * steps / (n - 1) + 1,
                       below = n == 1 ? 0 : ceil_div(first * steps, n - 1);
    for (std::int64_t j = first; j < end; ++j) {
      const std::size_t i = sorted[at(j)].second;
      bins[i] = static_cast<std::int32_t>(
          draws.empty() ? std::min(below + 1, reached)
                        : static_cast<std::int64_t>(
                              std::ceil(draws[i] * static_cast<double>(below - reached) +
                                        static_cast<double>(reached))));
    }
  }
  return bins;
}

std::vector<double> tie_draws(std::uint64_t seed, std::uint64_t cell,
                              std::span<const std::uint64_t> features) {
  const std::uint64_t purpose = hash("transformer.ties");
  std::vector<double> draws;
  draws.reserve(features.size());
  for (const std::uint64_t feature : features)
    draws.push_back(Rng(seed, {purpose, cell, feature}).uniform());
  return draws;
}

template <class T>
std::vector<std::int32_t> logarithmic_bins(std::span<const T> values, std::int32_t largest) {
  if (largest < 1 || largest > 52)
    throw Error(Status::invalid_argument,
                message("largest is ", largest, "; it must lie in [1, 52]"));
  std::vector<std::int32_t> bins(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double x = values[i];
    if (std::isinf(x) || x < 0) refuse(i, x, "finite and not negative");
    if (std::isnan(x))
      bins[i] = no_bin;
    else
      while (bins[i] < largest && x >= std::ldexp(1.0, bins[i] + 1) - 1) ++bins[i];
  }
  return bins;
}

template std::vector<std::int32_t> quantile_bins(std::span<const float>, std::int64_t,
                                                 std::span<const double>);
template std::vector<std::int32_t> quantile_bins(std::span<const double>, std::int64_t,
                                                 std::span<const double>);
template std::vector<std::int32_t> logarithmic_bins(std::span<const float>, std::int32_t);
template std::vector<std::int32_t> logarithmic_bins(std::span<const double>, std::int32_t);

} // namespace cape
