module;
#include "internal/message.hpp"
#include "internal/sizes.hpp"
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <new>
#include <numeric>
#include <span>
#include <string>
#include <typeinfo>
#include <utility>
#include <variant>
#include <vector>
module cape.transformer;
#include "transformer/tokens.hpp"

namespace cape {
namespace {
// The number that the model sees of every value of a cell; NaN where there is none.
std::vector<float> numbers_of(std::span<const double> cell, const BackboneOptions& options) {
  for (std::size_t j = 0; j < cell.size(); ++j)
    if (std::isinf(cell[j]) || std::fabs(cell[j]) > 1e30)
      throw Error(Status::invalid_argument,
                  message("a cell has the value ", cell[j], " of feature ", j,
                          " (counted from 0); values must be below 1e30 in magnitude"));
  std::vector<float> numbers(cell.begin(), cell.end());
  if (options.values == Values::continuous) return numbers;
  const std::vector<std::int32_t> bins =
      options.values == Values::quantile_bins
          ? quantile_bins(cell, options.bins)
          : logarithmic_bins(cell, static_cast<std::int32_t>(options.bins - 1));
  for (std::size_t j = 0; j < bins.size(); ++j)
    if (bins[j] != no_bin) numbers[j] = static_cast<float>(bins[j]);
  return numbers;
}

// Which features of a cell become tokens.
std::vector<std::int32_t> features_of(std::span<const double> cell, bool zeros) {
  std::vector<std::int32_t> features;
  for (std::size_t j = 0; j < cell.size(); ++j)
    if (!std::isnan(cell[j]) && (zeros || cell[j] != 0))
      features.push_back(static_cast<std::int32_t>(j));
  return features;
}

void begin_cell(Tokens& t) {
  t.start.push_back(t.size());
  t.feature.push_back(-1);
  t.value.push_back(0);
  t.hidden.push_back(0);
}

void check_size(std::span<const double> values, std::int64_t features) {
  if (features < 1 || std::ssize(values) % features != 0)
    throw Error(Status::dim_mismatch,
                message(values.size(), " values are no rows of ", features, " features"));
}

} // namespace

Cells cells_of(const MatrixView& x) {
  check_view(x, "x");
  return {x.rows, x.cols, [x](std::span<const std::int64_t> numbers, double* out) {
            for (const std::int64_t row : numbers)
              for (std::int64_t j = 0; j < x.cols; ++j) *out++ = x(row, j);
          }};
}

Cells cells_of(const SparseView& x) {
  check_view(x, "x");
  if (x.layout != Layout::row_major)
    throw Error(Status::invalid_argument,
                "x is compressed along its features; it must be along the cells (row_major)");
  return {x.rows, x.cols, [x](std::span<const std::int64_t> numbers, double* out) {
            for (const std::int64_t row : numbers) {
              std::fill_n(out, x.cols, 0.0);
              for (std::int64_t k = x.offsets[row]; k < x.offsets[row + 1]; ++k)
                out[x.indices[k]] = x.values[k];
              out += x.cols;
            }
          }};
}

std::int64_t cells_at_once(std::int64_t features) {
  constexpr std::int64_t tokens = 1 << 12;
  return std::max<std::int64_t>(tokens / (features + 1), 1);
}

std::int64_t cells_in_a_read(std::int64_t features, std::int64_t group) {
  return std::max<std::int64_t>(values_in_a_read / (features * group), 1) * group;
}

void check_features(const Cells& cells, const Backbone& backbone) {
  if (cells.features != std::ssize(backbone.features))
    throw Error(Status::dim_mismatch,
                message("the cells have ", cells.features, " features; the model has ",
                        backbone.features.size()));
}

std::vector<std::int64_t> all_cells(const Cells& cells) {
  std::vector<std::int64_t> all(at(cells.cells));
  std::iota(all.begin(), all.end(), std::int64_t{0});
  return all;
}

Tokens tokenize(std::span<const double> values, std::int64_t features,
                const BackboneOptions& options) {
  check_size(values, features);
  Tokens t;
  for (std::size_t first = 0; first < values.size(); first += at(features)) {
    const std::span<const double> cell = values.subspan(first, at(features));
    const std::vector<float> numbers = numbers_of(cell, options);
    begin_cell(t);
    for (const std::int32_t j : features_of(cell, options.zeros)) {
      t.feature.push_back(j);
      t.value.push_back(numbers[at(j)]);
      t.hidden.push_back(0);
    }
  }
  t.start.push_back(t.size());
  return t;
}

Sample draw_sample(std::span<const double> values, std::int64_t features,
                   const BackboneOptions& options, const SampleShape& shape,
                   const std::function<Rng(std::int64_t cell)>& rng) {
  check_size(values, features);
  const std::int64_t cells = std::ssize(values) / features;
  std::vector<std::vector<std::int32_t>> drawn(at(cells)); // in random order
  std::vector<std::int64_t> order(at(cells));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  for (std::int64_t c = 0; c < cells; ++c) {
    std::vector<std::int32_t>& f = drawn[at(c)];
    f = features_of(values.subspan(at(c * features), at(features)), options.zeros);
    const std::int64_t n = std::ssize(f), taken = std::min(n, shape.length);
    Rng draw = rng(c);
    for (std::int64_t i = 0; i < taken; ++i) std::swap(f[at(i)], f[at(i + draw.integer(n - i))]);
    f.resize(at(taken));
  }
  std::ranges::sort(order, {}, [&](std::int64_t c) { return std::pair(drawn[at(c)].size(), c); });
  Sample sample;
  Tokens& t = sample.tokens;
  for (const std::int64_t c : order) {
    const std::vector<float> numbers =
        numbers_of(values.subspan(at(c * features), at(features)), options);
    const std::vector<std::int32_t>& f = drawn[at(c)];
    const auto share = static_cast<std::int64_t>(shape.hidden * static_cast<double>(f.size()));
    const std::int64_t least = shape.hidden > 0 ? std::max<std::int64_t>(share, 1) : 0;
    begin_cell(t);
    sample.target.push_back(0);
    for (std::int64_t i = 0; i < std::ssize(f); ++i) {
      const float number = numbers[at(f[at(i)])];
      const bool hidden = i < least;
      t.feature.push_back(f[at(i)]);
      t.value.push_back(hidden ? 0 : number); // what is hidden is not there
      t.hidden.push_back(hidden);
      sample.target.push_back(number);
    }
  }
  t.start.push_back(t.size());
  sample.cell = order;
  return sample;
}

} // namespace cape
