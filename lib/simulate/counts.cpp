module;
#include "internal/message.hpp"
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>
module cape.simulate;
#include "simulate/blocks.hpp"

namespace cape {
namespace {

constexpr double depth_sd = 0.3;    // of the logarithm of a cell's depth
constexpr double effect_size = 0.5; // log counts per standard deviation of x

// ln of the expected depth factor of every cell: log-normal with mean 1.
std::vector<double> log_depths(std::int64_t cells, Run& run) {
  Rng rng(run.seed(), {hash("simulate.depth")});
  std::vector<double> depths(static_cast<std::size_t>(cells));
  for_each_polled(cells, run, [&](std::int64_t i) {
    depths[static_cast<std::size_t>(i)] = depth_sd * rng.normal() - depth_sd * depth_sd / 2;
  });
  return depths;
}

// Turns a column of x into the expected counts of its feature, whose average is `mean`.
void to_expected_counts(double* column, const std::vector<double>& depths, double mean, Run& run) {
  const std::int64_t rows = std::ssize(depths);
  const auto n = static_cast<double>(rows);
  double centre = 0, squares = 0, largest = -std::numeric_limits<double>::infinity(), sum = 0;
  // By a power of two, which costs no digit, to a size whose squares are in range: the column is
  // standardised anyway.
  double size = 0;
  for (std::int64_t i = 0; i < rows; ++i) size = std::max(size, std::abs(column[i]));
  if (size > 0)
    for_each_polled(rows, run, [&, exponent = std::ilogb(size)](std::int64_t i) {
      column[i] = std::scalbn(column[i], -exponent);
    });
  for (std::int64_t i = 0; i < rows; ++i) centre += column[i] / n;
  for_each_polled(rows, run, [&](std::int64_t i) {
    squares += (column[i] - centre) * (column[i] - centre) / n;
  });
  const double slope = squares > 0 ? effect_size / std::sqrt(squares) : 0;
  for_each_polled(rows, run, [&](std::int64_t i) {
    column[i] = depths[static_cast<std::size_t>(i)] + slope * (column[i] - centre);
    largest = std::max(largest, column[i]);
  });
  for_each_polled(rows, run, [&](std::int64_t i) { sum += std::exp(column[i] - largest); });
  const double shift = std::log(mean * n / sum) - largest;
  for_each_polled(rows, run, [&](std::int64_t i) { column[i] = std::exp(column[i] + shift); });
}

void check_range(std::string_view name, double value, double min, double max) {
  if (!(value >= min && value <= max))
    throw Error(Status::invalid_argument,
                message(name, " is ", value, "; it must lie in [", min, ", ", max, "]"));
}

} // namespace

SparseMatrix simulate_counts(const MatrixView& x, double mean, double dispersion,
                             std::uint64_t seed) {
  Run run(seed);
  return simulate_counts(x, mean, dispersion, run);
}

SparseMatrix simulate_counts(const MatrixView& x, double mean, double dispersion, Run& run) {
  check_view(x, "x");
  check_finite(x, "x");
  check_range("mean", mean, 1e-6, 1e6);
  check_range("dispersion", dispersion, 0, 1e3);
  if (x.cols > std::numeric_limits<std::int32_t>::max())
    throw Error(Status::invalid_argument,
                message("x has ", x.cols, " columns; a sparse matrix numbers them in 32 bits"));
  run.report({.stage = "simulate", .total = x.rows});
  const std::vector<double> depths = log_depths(x.rows, run);
  Matrix expected = to_matrix(x);
  for (std::int64_t j = 0; j < x.cols; ++j)
    to_expected_counts(expected.column(j), depths, mean, run);

  SparseMatrix counts;
  counts.rows = x.rows;
  counts.cols = x.cols;
  counts.layout = Layout::row_major;
  counts.offsets.push_back(0);
  for (std::int64_t i = 0; i < x.rows; ++i) {
    Rng rng(run.seed(), {hash("simulate.counts"), static_cast<std::uint64_t>(i)});
    for_each_polled(x.cols, run, [&](std::int64_t j) {
      const std::int64_t count = rng.negative_binomial(expected(i, j), dispersion);
      if (count == 0) return;
      counts.values.push_back(static_cast<double>(count));
      counts.indices.push_back(static_cast<std::int32_t>(j));
    });
    counts.offsets.push_back(std::ssize(counts.values));
    run.report({.stage = "simulate", .step = i + 1, .total = x.rows});
  }
  return counts;
}

} // namespace cape
