module;
#include "internal/message.hpp"
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <new>
#include <numeric>
#include <string>
#include <tuple>
#include <typeinfo>
#include <utility>
#include <vector>
module cape.preprocess;

namespace cape {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

// body(row, column, value) for every stored entry, columns (rows) in order; `between` runs before
// each column (row). Whatever the layout, the entries of one column come in the order of rows and
// those of one row in the order of columns, so that sums over either have the same bits.
template <class F, class G>
void for_entries(const SparseView& x, F body, G between) {
  const bool by_column = x.layout == Layout::col_major;
  for (std::int64_t o = 0; o < x.outer(); ++o) {
    between();
    for (std::int64_t e = x.offsets[o]; e < x.offsets[o + 1]; ++e) {
      const std::int64_t inner = x.indices[e];
      if (by_column)
        body(inner, o, x.values[e]);
      else
        body(o, inner, x.values[e]);
    }
  }
}

// The (n-1) variances of the columns of a table with `rows` rows, of which visit(f) calls
// f(column, value) for every entry that is not zero (and perhaps for some that are).
template <class F>
std::vector<double> variances(std::int64_t rows, std::int64_t cols, F visit) {
  std::vector<double> mean(at(cols)), square(at(cols));
  std::vector<std::int64_t> zeros(at(cols), rows);
  visit([&](std::int64_t j, double value) {
    mean[at(j)] += value;
    --zeros[at(j)];
  });
  for (double& m : mean) m /= static_cast<double>(std::max<std::int64_t>(rows, 1));
  visit([&](std::int64_t j, double value) {
    square[at(j)] += (value - mean[at(j)]) * (value - mean[at(j)]);
  });
  for (std::int64_t j = 0; j < cols; ++j) {
    double& v = square[at(j)];
    v += static_cast<double>(zeros[at(j)]) * mean[at(j)] * mean[at(j)];
    v /= static_cast<double>(std::max<std::int64_t>(rows - 1, 1));
    if (!std::isfinite(v))
      throw Error(Status::invalid_argument,
                  "the variance of column " + std::to_string(j + 1) +
                      " (counted from 1) is not finite: its values must be, and below 1e150");
  }
  return square;
}

std::vector<std::int64_t> largest(const std::vector<double>& values, std::int64_t n) {
  if (n < 0 || n > std::ssize(values))
    throw Error(Status::invalid_argument, "n is " + std::to_string(n) + "; it must lie in [0, " +
                                              std::to_string(values.size()) +
                                              "], the number of columns");
  std::vector<std::int64_t> order(values.size());
  std::iota(order.begin(), order.end(), std::int64_t{0});
  std::ranges::nth_element(order, order.begin() + n, [&](std::int64_t a, std::int64_t b) {
    return std::pair(-values[at(a)], a) < std::pair(-values[at(b)], b);
  });
  order.resize(at(n));
  std::ranges::sort(order);
  return order;
}

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
                    " value(s) that are negative or not finite; the first is " +
                    message(first) + " at cell " + std::to_string(row + 1) + ", feature " +
                    std::to_string(col + 1) + " (counted from 1)");
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

  std::vector<std::int64_t> detected(at(counts.rows)), found_in(at(counts.cols));
  for_entries(
      counts, [&](std::int64_t i, std::int64_t, double value) { detected[at(i)] += value > 0; },
      poll);
  const Kept cells = keep(detected, options.min_features);
  for_entries(
      counts,
      [&](std::int64_t i, std::int64_t j, double value) {
        found_in[at(j)] += value > 0 && cells.place[at(i)] >= 0;
      },
      poll);
  Kept features = keep(found_in, options.min_cells);
  check_left(cells, features, options);
  run.report({.stage = "preprocess", .step = 2, .total = steps});

  // body(cell, feature, value) for the stored entries of what is kept.
  const auto for_kept = [&](auto body) {
    for_entries(
        counts,
        [&](std::int64_t i, std::int64_t j, double value) {
          const std::int64_t cell = cells.place[at(i)], feature = features.place[at(j)];
          if (cell >= 0 && feature >= 0) body(cell, feature, value);
        },
        poll);
  };
  Preprocessed result{};
  result.library_size.resize(at(cells.size()));
  for_kept([&](std::int64_t cell, std::int64_t, double value) {
    result.library_size[at(cell)] += value;
  });
  for (std::int64_t i = 0; i < cells.size(); ++i)
    if (std::isinf(result.library_size[at(i)]))
      throw Error(Status::invalid_argument,
                  "the counts of cell " + std::to_string(cells.numbers[at(i)] + 1) +
                      " (counted from 1) are too large: their sum overflows");
  const auto transformed = [&](std::int64_t cell, double value) {
    if (options.normalize && value > 0)
      value = value / result.library_size[at(cell)] * options.target_sum;
    return options.log1p ? std::log1p(value) : value;
  };
  run.report({.stage = "preprocess", .step = 3, .total = steps});

  if (options.n_variable > 0 && options.n_variable < features.size()) {
    const auto visit = [&](auto f) {
      for_kept([&](std::int64_t cell, std::int64_t feature, double value) {
        f(feature, transformed(cell, value));
      });
    };
    narrow(features, largest(variances(cells.size(), features.size(), visit), options.n_variable));
  }
  result.x = Matrix(cells.size(), features.size());
  for_kept([&](std::int64_t cell, std::int64_t feature, double value) {
    result.x(cell, feature) = transformed(cell, value);
  });
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
  check_view(x, "x");
  const auto visit = [&](auto f) {
    for_entries(
        x, [&](std::int64_t, std::int64_t j, double value) { f(j, value); }, [] {});
  };
  return largest(variances(x.rows, x.cols, visit), n);
}

std::vector<std::int64_t> most_variable(const MatrixView& x, std::int64_t n) {
  check_view(x, "x");
  const auto visit = [&](auto f) {
    for (std::int64_t j = 0; j < x.cols; ++j)
      for (std::int64_t i = 0; i < x.rows; ++i)
        if (x(i, j) != 0) f(j, x(i, j));
  };
  return largest(variances(x.rows, x.cols, visit), n);
}

ColumnMoments column_moments(const MatrixView& x) {
  check_view(x, "x");
  ColumnMoments moments{std::vector<double>(at(x.cols)), std::vector<double>(at(x.cols))};
  for (std::int64_t j = 0; j < x.cols; ++j) {
    std::int64_t n = 0;
    double sum = 0, low = std::numeric_limits<double>::infinity(), high = -low;
    for (std::int64_t i = 0; i < x.rows; ++i) {
      if (std::isnan(x(i, j))) continue;
      ++n;
      sum += x(i, j);
      low = std::min(low, x(i, j));
      high = std::max(high, x(i, j));
    }
    if (n == 0) continue;
    // A constant is its own mean; the rounded mean of many copies may be another number.
    const double mean = low == high ? low : sum / static_cast<double>(n);
    double square = 0;
    for (std::int64_t i = 0; i < x.rows; ++i)
      if (!std::isnan(x(i, j))) square += (x(i, j) - mean) * (x(i, j) - mean);
    moments.mean[at(j)] = mean;
    moments.sd[at(j)] = n > 1 ? std::sqrt(square / static_cast<double>(n - 1)) : 0;
    if (!std::isfinite(mean) || !std::isfinite(moments.sd[at(j)]))
      throw Error(Status::invalid_argument,
                  "the moments of column " + std::to_string(j + 1) +
                      " (counted from 1) of x are not finite: its values must be, and below 1e150");
  }
  return moments;
}

} // namespace cape
