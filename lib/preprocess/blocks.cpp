module;
#include "internal/message.hpp"
#include "internal/sizes.hpp"
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <new>
#include <numeric>
#include <span>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>
module cape.preprocess;
#include "preprocess/entries.hpp"

namespace cape {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// body(row, column, value) for the entries that may not be 0, those of a column by rising row and
// those of a row by rising column.
template <class F>
void for_entries(const SparseView& x, F body) {
  for_entries(x, body, [] {});
}
template <class F>
void for_entries(const MatrixView& x, F body) {
  if (x.layout == Layout::col_major)
    for (std::int64_t j = 0; j < x.cols; ++j)
      for (std::int64_t i = 0; i < x.rows; ++i) body(i, j, x(i, j));
  else
    for (std::int64_t i = 0; i < x.rows; ++i)
      for (std::int64_t j = 0; j < x.cols; ++j) body(i, j, x(i, j));
}

template <class View>
CellSums sums_of(const View& cells) {
  check_view(cells, "cells");
  CellSums sums{std::vector<double>(at(cells.rows)), std::vector<std::int64_t>(at(cells.rows))};
  for_entries(cells,
              [&](std::int64_t i, std::int64_t, double value) { add_count(sums, i, value); });
  return sums;
}

// Before anything is written, so that a call that fails has changed nothing.
void check_factor(const Transform& how, std::int64_t cells) {
  if (!how.factor.empty() && std::ssize(how.factor) != cells)
    throw Error(Status::dim_mismatch,
                message("factor has ", how.factor.size(), " values; it must have ", cells,
                        ", one for each cell"));
  if (how.logarithm != Logarithm::none && how.logarithm != Logarithm::natural &&
      how.logarithm != Logarithm::binary)
    throw Error(Status::invalid_argument, "logarithm is not one of none, natural, binary");
  for (std::size_t i = 0; i < how.factor.size(); ++i)
    if (!std::isfinite(how.factor[i]) || how.factor[i] < 0)
      throw Error(Status::invalid_argument,
                  message("factor is ", how.factor[i], " for cell ", i,
                          " (counted from 0) of the block; it must be finite and not negative"));
}

// Of each column its place among the features that are looked at, or -1.
using Places = std::vector<std::int64_t>;

// The transformation of those counts that are finite, in columns with a place, is finite.
template <class View>
void check_transformable(const View& cells, const Transform& how, const Places& place) {
  check_factor(how, cells.rows);
  if (how.factor.empty() && how.logarithm == Logarithm::none) return;
  for_entries(cells, [&](std::int64_t i, std::int64_t j, double count) {
    if (!std::isfinite(count) || place[at(j)] < 0) return;
    const double x = scaled(count, how, i);
    if (std::isfinite(x) && (how.logarithm == Logarithm::none || x > -1)) return;
    const double factor = how.factor.empty() ? 1 : how.factor[at(i)];
    throw Error(Status::invalid_argument,
                std::isfinite(x) ? message("cells has the value ", count, ", which is ", x,
                                           " after scaling; it must be above -1 to have a "
                                           "logarithm of 1 + x")
                                 : message("cells has the value ", count, ", which times ", factor,
                                           " is beyond the range of a double"));
  });
}

Places all_places(std::int64_t columns) {
  Places place(at(checked_size(columns, 1, "columns")));
  std::iota(place.begin(), place.end(), std::int64_t{0});
  return place;
}

Places places_of(std::int64_t columns, std::span<const std::int64_t> features) {
  Places place(at(checked_size(columns, 1, "columns")), -1);
  for (std::size_t k = 0; k < features.size(); ++k) {
    if (features[k] < 0 || features[k] >= columns)
      throw Error(Status::invalid_argument, message("features has the number ", features[k],
                                                    "; it must lie in [0, ", columns, ")"));
    if (place[at(features[k])] >= 0)
      throw Error(Status::invalid_argument,
                  message("features has the number ", features[k], " twice"));
    place[at(features[k])] = static_cast<std::int64_t>(k);
  }
  return place;
}

template <class View>
void transform_to(const View& cells, const Transform& how, const Places& place, std::int64_t width,
                  double* out) {
  check_transformable(cells, how, place);
  std::fill_n(out, cells.rows * width, 0.0);
  for_entries(cells, [&](std::int64_t i, std::int64_t j, double value) {
    if (place[at(j)] >= 0) out[i * width + place[at(j)]] = transformed(value, how, i);
  });
}

} // namespace

CellSums cell_sums(const SparseView& cells) { return sums_of(cells); }
CellSums cell_sums(const MatrixView& cells) { return sums_of(cells); }

std::vector<double> cell_factors(std::span<const double> library_size,
                                 std::span<const double> size_factor, double target_sum) {
  if (!size_factor.empty() && size_factor.size() != library_size.size())
    throw Error(Status::dim_mismatch, message("size_factor has ", size_factor.size(),
                                              " values; it must have ", library_size.size()));
  if (!(target_sum > 0) || !std::isfinite(target_sum))
    throw Error(Status::invalid_argument,
                message("target_sum is ", target_sum, "; it must be positive and finite"));
  for (std::size_t i = 0; i < library_size.size(); ++i)
    if (!(library_size[i] >= 0))
      throw Error(Status::invalid_argument,
                  message("library_size is ", library_size[i], " for cell ", i,
                          " (counted from 0); it must not be negative or missing"));
  std::vector<double> factor(library_size.size());
  double sum = 0;
  std::int64_t counted = 0;
  for (std::size_t i = 0; i < factor.size() && !size_factor.empty(); ++i) {
    if (!(library_size[i] > 0)) continue;
    if (!(size_factor[i] > 0) || !std::isfinite(size_factor[i]))
      throw Error(Status::invalid_argument,
                  message("size_factor is ", size_factor[i], " for cell ", i,
                          " (counted from 0); it must be positive and finite"));
    sum += size_factor[i];
    ++counted;
  }
  for (std::size_t i = 0; i < factor.size(); ++i) {
    if (!(library_size[i] > 0)) continue;
    factor[i] = size_factor.empty() ? target_sum / library_size[i]
                                    : sum / static_cast<double>(counted) / size_factor[i];
    if (!std::isfinite(factor[i]) || factor[i] == 0)
      throw Error(Status::invalid_argument,
                  message("cell ", i,
                          " (counted from 0) cannot be scaled within the range of a "
                          "double: its library size is ",
                          library_size[i]));
  }
  return factor;
}

void transformed_rows(const SparseView& cells, const Transform& how, double* out) {
  check_view(cells, "cells");
  transform_to(cells, how, all_places(cells.cols), cells.cols, out);
}
void transformed_rows(const MatrixView& cells, const Transform& how, double* out) {
  check_view(cells, "cells");
  transform_to(cells, how, all_places(cells.cols), cells.cols, out);
}
void transformed_rows(const SparseView& cells, const Transform& how,
                      std::span<const std::int64_t> features, double* out) {
  check_view(cells, "cells");
  transform_to(cells, how, places_of(cells.cols, features), std::ssize(features), out);
}
void transformed_rows(const MatrixView& cells, const Transform& how,
                      std::span<const std::int64_t> features, double* out) {
  check_view(cells, "cells");
  transform_to(cells, how, places_of(cells.cols, features), std::ssize(features), out);
}

void transformed_stored(const SparseView& cells, const Transform& how, double* out) {
  check_view(cells, "cells");
  check_transformable(cells, how, all_places(cells.cols));
  for_entries(cells, [&](std::int64_t i, std::int64_t, double value) {
    *out++ = transformed(value, how, i);
  });
}

// A number as the sum of two doubles, the second a rounding error of the first (T. J. Dekker,
// Numer. Math. 18 (1971) 224-242).
namespace {

struct Pair {
  double high, low;
};

Pair two_sum(double a, double b) {
  const double s = a + b, t = s - a;
  return {s, (a - (s - t)) + (b - t)};
}

Pair product(double a, double b) {
  const double p = a * b;
  return {p, std::fma(a, b, -p)};
}

Pair plus(Pair a, Pair b) {
  const Pair high = two_sum(a.high, b.high), low = two_sum(a.low, b.low);
  const Pair first = two_sum(high.high, high.low + low.high);
  return two_sum(first.high, first.low + low.low);
}

template <class Sum>
void add_to(Sum& sum, Pair value) {
  const Pair total = plus({sum.high, sum.low}, value);
  sum.high = total.high;
  sum.low = total.low;
}

} // namespace

FeatureScan::FeatureScan(std::int64_t columns) : FeatureScan(all_places(columns), at(columns)) {}

FeatureScan::FeatureScan(std::int64_t columns, std::span<const std::int64_t> features)
    : FeatureScan(places_of(columns, features), features.size()) {}

FeatureScan::FeatureScan(Places place, std::size_t features)
    : place_(std::move(place)), features_(features) {
  for (Feature& f : features_) {
    f.all.smallest = f.smallest = infinity;
    f.all.largest = f.largest = -infinity;
  }
}

void FeatureScan::add(std::int64_t feature, double value) {
  Feature& f = features_[at(feature)];
  ++f.stored;
  if (std::isnan(value)) {
    ++f.all.missing;
    return;
  }
  if (std::isinf(value)) {
    ++f.all.infinite;
    return;
  }
  ++f.count;
  f.smallest = std::min(f.smallest, value);
  f.largest = std::max(f.largest, value);
  if (value == 0) return; // changes no sum
  f.all.detected += value > 0;
  f.all.fractional += value != std::floor(value);
  add_to(f.sum, {value, 0});
  add_to(f.squares, product(value, value));
}

void FeatureScan::end_cells(std::int64_t count) { cells_ += count; }

template <class View>
void FeatureScan::add_block(const View& cells, const Transform& how) {
  check_view(cells, "cells");
  if (cells.cols != std::ssize(place_))
    throw Error(Status::dim_mismatch,
                message("cells has ", cells.cols, " features; it must have ", place_.size()));
  check_transformable(cells, how, place_);
  for_entries(cells, [&](std::int64_t i, std::int64_t j, double value) {
    if (place_[at(j)] >= 0) add(place_[at(j)], transformed(value, how, i));
  });
  end_cells(cells.rows);
}

void FeatureScan::add(const SparseView& cells, const Transform& how) { add_block(cells, how); }
void FeatureScan::add(const MatrixView& cells, const Transform& how) { add_block(cells, how); }

// What was not given is 0. The squared deviations are (n Q - S^2) / n, where S is the sum of the
// values and Q that of their squares.
void FeatureScan::close(Feature& f, std::int64_t cells) {
  if (const std::int64_t zeros = cells - f.stored; zeros > 0) {
    f.count += zeros;
    f.smallest = std::min(f.smallest, 0.0);
    f.largest = std::max(f.largest, 0.0);
  }
  f.all.count += f.count;
  f.all.smallest = std::min(f.all.smallest, f.smallest);
  f.all.largest = std::max(f.all.largest, f.largest);
  if (f.count > 1) f.degrees += static_cast<double>(f.count - 1);
  if (f.largest > f.smallest) {
    const auto n = static_cast<double>(f.count);
    const Pair nq = plus(product(n, f.squares.high), {n * f.squares.low, 0});
    const Pair s2 = plus(product(f.sum.high, f.sum.high), {2 * f.sum.high * f.sum.low, 0});
    const double difference = plus(nq, {-s2.high, -s2.low}).high;
    f.within += std::isfinite(difference) ? std::max(0.0, difference / n) : infinity;
  }
  f.stored = f.count = 0;
  f.smallest = infinity;
  f.largest = -infinity;
  f.sum = f.squares = {};
}

void FeatureScan::end_group() {
  for (Feature& f : features_) close(f, cells_);
  cells_ = 0;
}

std::vector<FeatureSummary> FeatureScan::summaries() const {
  std::vector<FeatureSummary> out;
  out.reserve(features_.size());
  for (Feature f : features_) {
    close(f, cells_);
    if (f.all.count == 0) f.all.smallest = f.all.largest = 0;
    f.all.variance = f.degrees > 0 ? f.within / f.degrees : 0;
    out.push_back(f.all);
  }
  return out;
}

} // namespace cape
