module;
#include "internal/sizes.hpp"
#include "internal/message.hpp"
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <new>
#include <numeric>
#include <span>
#include <string>
#include <tuple>
#include <typeinfo>
#include <utility>
#include <variant>
#include <vector>
module cape.preprocess;
#include "preprocess/entries.hpp"

namespace cape {
namespace {

void check_counts(const SparseView& counts, Run& run) {
  std::int64_t bad = 0, row = 0, col = 0;
  double first = 0;
  for_entries(
      counts,
      [&](std::int64_t i, std::int64_t j, double value) {
        if (value >= 0 && value <= std::numeric_limits<double>::max()) return;
        if (bad++ == 0) std::tie(row, col, first) = std::tuple(i, j, value);
      },
      [&] { run.poll(); });
  if (bad > 0)
    throw Error(Status::invalid_argument,
                "counts has " + std::to_string(bad) +
                    " value(s) that are negative or not finite; the first is " + message(first) +
                    " at cell " + std::to_string(row) + ", feature " + std::to_string(col) +
                    " (counted from 0)");
}

// Rows or columns that are kept: their numbers, and for each number its place among them or -1.
struct Kept {
  std::vector<std::int64_t> numbers;
  std::vector<std::int64_t> place;

  std::int64_t size() const { return std::ssize(numbers); }
};

// Those that were seen at least `least` times.
Kept keep(const std::vector<std::int64_t>& seen, std::int64_t least) {
  Kept kept{{}, std::vector<std::int64_t>(seen.size(), -1)};
  for (std::int64_t i = 0; i < std::ssize(seen); ++i)
    if (seen[at(i)] >= least) {
      kept.place[at(i)] = kept.size();
      kept.numbers.push_back(i);
    }
  return kept;
}

// Narrow to the ones at these places, given in rising order.
void narrow(Kept& kept, const std::vector<std::int64_t>& places) {
  std::vector<std::int64_t> numbers;
  for (const std::int64_t p : places) numbers.push_back(kept.numbers[at(p)]);
  std::ranges::fill(kept.place, -1);
  for (std::int64_t p = 0; p < std::ssize(numbers); ++p) kept.place[at(numbers[at(p)])] = p;
  kept.numbers = std::move(numbers);
}

void check_left(const Kept& cells, const Kept& features, const PreprocessOptions& options) {
  if (cells.size() >= 2 && features.size() >= 2) return;
  throw Error(Status::invalid_argument,
              "needs at least 2 cells and 2 features; " + std::to_string(cells.size()) + " of " +
                  std::to_string(cells.place.size()) + " cells have min_features = " +
                  std::to_string(options.min_features) + " or more detected features, and " +
                  std::to_string(features.size()) + " of " + std::to_string(features.place.size()) +
                  " features are detected in min_cells = " + std::to_string(options.min_cells) +
                  " or more of these cells");
}

// The variances, which must be finite; number(k) is the column that errors name for the k-th.
template <class F>
std::vector<double> finite_variances(const FeatureScan& scan, F number) {
  std::vector<double> out;
  for (const FeatureSummary& f : scan.summaries()) {
    const auto place = std::ssize(out);
    out.push_back(f.variance);
    if (f.missing + f.infinite > 0 || !std::isfinite(f.variance))
      throw Error(Status::invalid_argument,
                  message("the variance of column ", number(place),
                          " (counted from 0) is not finite: its values must be, and below 1e150"));
  }
  return out;
}

template <class View>
std::vector<std::int64_t> most_variable_columns(const View& x, std::int64_t n) {
  check_view(x, "x");
  FeatureScan scan(x.cols);
  scan.add(x, {});
  return most_variable(finite_variances(scan, std::identity()), n);
}

} // namespace

OptionFields fields(PreprocessOptions& options) {
  return {{.name = "preprocess.min_features",
           .value = &options.min_features,
           .min = 0,
           .doc = "Drop cells in which fewer features are detected (have a count above 0).",
           .source = "supp_preprocess"},
          {.name = "preprocess.min_cells",
           .value = &options.min_cells,
           .min = 0,
           .doc = "Drop features that are detected in fewer of the cells that are left.",
           .source = "Scanpy's default, which supp_preprocess follows"},
          {.name = "preprocess.normalize",
           .value = &options.normalize,
           .doc = "Scale the counts of every cell to the sum preprocess.target_sum.",
           .source = "supp_preprocess"},
          {.name = "preprocess.target_sum",
           .value = &options.target_sum,
           .min = 0,
           .open_min = true,
           .doc = "The sum of a cell's values after normalisation.",
           .source = "supp_preprocess"},
          {.name = "preprocess.log1p",
           .value = &options.log1p,
           .doc = "Replace every value x by log(1 + x).",
           .source = "supp_preprocess"},
          {.name = "preprocess.n_variable",
           .value = &options.n_variable,
           .min = 0,
           .doc = "Keep this many features, those of the largest variance; 0, or more than there "
                  "are, keeps all.",
           .source = "supp_preprocess (highly variable genes)"}};
}

Preprocessed preprocess(const SparseView& counts, const PreprocessOptions& options, Run& run) {
  PreprocessOptions checked = options;
  check_options(fields(checked));
  check_view(counts, "counts");
  const auto poll = [&] { run.poll(); };
  check_counts(counts, run);
  constexpr std::int64_t steps = 4;
  run.report({.stage = "preprocess", .step = 1, .total = steps});

  CellSums sums{std::vector<double>(at(counts.rows)), std::vector<std::int64_t>(at(counts.rows))};
  for_entries(
      counts, [&](std::int64_t i, std::int64_t, double value) { add_count(sums, i, value); }, poll);
  const Kept cells = keep(sums.detected, options.min_features);
  std::vector<std::int64_t> found_in(at(counts.cols));
  for_entries(
      counts,
      [&](std::int64_t i, std::int64_t j, double value) {
        found_in[at(j)] += value > 0 && cells.place[at(i)] >= 0;
      },
      poll);
  Kept features = keep(found_in, options.min_cells);
  check_left(cells, features, options);
  run.report({.stage = "preprocess", .step = 2, .total = steps});

  Preprocessed result{};
  for (const std::int64_t i : cells.numbers) {
    result.library_size.push_back(sums.library_size[at(i)]);
    if (std::isinf(result.library_size.back()))
      throw Error(Status::invalid_argument,
                  message("the counts of cell ", i,
                          " (counted from 0) are too large: their sum overflows"));
  }
  std::vector<double> factor;
  if (options.normalize) { // of all cells, so that an error names the right one
    std::vector<double> sizes(sums.library_size.size());
    for (const std::int64_t i : cells.numbers) sizes[at(i)] = sums.library_size[at(i)];
    const std::vector<double> all = cell_factors(sizes, {}, options.target_sum);
    for (const std::int64_t i : cells.numbers) factor.push_back(all[at(i)]);
  }
  const Transform how{factor, options.log1p ? Logarithm::natural : Logarithm::none};
  // body(cell, feature, value) for the stored entries of what is kept, transformed.
  const auto for_kept = [&](auto body) {
    for_entries(
        counts,
        [&](std::int64_t i, std::int64_t j, double value) {
          const std::int64_t cell = cells.place[at(i)], feature = features.place[at(j)];
          if (cell >= 0 && feature >= 0) body(cell, feature, transformed(value, how, cell));
        },
        poll);
  };
  run.report({.stage = "preprocess", .step = 3, .total = steps});

  if (options.n_variable > 0 && options.n_variable < features.size()) {
    FeatureScan scan(features.size());
    for_kept([&](std::int64_t, std::int64_t feature, double value) { scan.add(feature, value); });
    scan.end_cells(cells.size());
    const auto number = [&](std::int64_t place) { return features.numbers[at(place)]; };
    narrow(features, most_variable(finite_variances(scan, number), options.n_variable));
  }
  result.x = Matrix(cells.size(), features.size());
  for_kept([&](std::int64_t cell, std::int64_t feature, double value) {
    result.x(cell, feature) = value;
  });
  check_finite(result.x, "the table of kept cells x kept features"); // near the end of the range
                                                                     // rounding leads out of it
  result.cells = cells.numbers;
  result.features = features.numbers;
  run.report({.stage = "preprocess", .step = steps, .total = steps});
  return result;
}

Preprocessed preprocess(const MatrixView& counts, const PreprocessOptions& options, Run& run) {
  check_view(counts, "counts");
  return preprocess(to_sparse(counts), options, run);
}

std::vector<std::int64_t> most_variable(const SparseView& x, std::int64_t n) {
  return most_variable_columns(x, n);
}

std::vector<std::int64_t> most_variable(const MatrixView& x, std::int64_t n) {
  return most_variable_columns(x, n);
}

std::vector<std::int64_t> most_variable(std::span<const double> variance, std::int64_t n) {
  if (n < 0 || n > std::ssize(variance))
    throw Error(Status::invalid_argument, message("n is ", n, "; it must lie in [0, ",
                                                  variance.size(), "], the number of features"));
  for (std::size_t j = 0; j < variance.size(); ++j)
    if (std::isnan(variance[j]))
      throw Error(Status::invalid_argument,
                  message("variance of feature ", j, " (counted from 0) is NaN"));
  std::vector<std::int64_t> order(variance.size());
  std::iota(order.begin(), order.end(), std::int64_t{0});
  std::ranges::nth_element(order, order.begin() + n, [&](std::int64_t a, std::int64_t b) {
    return std::pair(-variance[at(a)], a) < std::pair(-variance[at(b)], b);
  });
  order.resize(at(n));
  std::ranges::sort(order);
  return order;
}

} // namespace cape
