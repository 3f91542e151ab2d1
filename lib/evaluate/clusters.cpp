module;
#include "internal/message.hpp"
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <span>
#include <utility>
#include <vector>
module cape.evaluate;

namespace cape {
namespace {

using Labels = std::span<const std::int64_t>;

// How many items carry each label, and each pair of labels of two labellings.
struct Contingency {
  std::map<std::int64_t, double> a, b;
  std::map<std::pair<std::int64_t, std::int64_t>, double> both;
  double n = 0;
};

Contingency contingency(Labels a, Labels b) {
  if (a.size() != b.size())
    throw Error(Status::dim_mismatch, message("the labellings have ", a.size(), " and ", b.size(),
                                              " items; they must have the same ones"));
  if (a.empty())
    throw Error(Status::invalid_argument, "the labellings are empty; give at least one item");
  Contingency table;
  table.n = static_cast<double>(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    ++table.a[a[i]];
    ++table.b[b[i]];
    ++table.both[{a[i], b[i]}];
  }
  return table;
}

double pairs_of(double n) { return n * (n - 1) / 2; }

double pairs_within(const auto& counts) {
  double sum = 0;
  for (const auto& [label, n] : counts) sum += pairs_of(n);
  return sum;
}

double entropy(const std::map<std::int64_t, double>& counts, double n) {
  double h = 0;
  for (const auto& [label, count] : counts) h -= count / n * std::log(count / n);
  return h;
}

// The labels as 0, 1, ..., and how many items carry each.
struct Clusters {
  std::vector<std::size_t> of;
  std::vector<double> sizes;
};

Clusters clusters(Labels labels) {
  std::map<std::int64_t, std::size_t> number;
  for (const std::int64_t label : labels) number.try_emplace(label, number.size());
  Clusters c;
  c.sizes.assign(number.size(), 0);
  for (const std::int64_t label : labels) {
    c.of.push_back(number[label]);
    ++c.sizes[c.of.back()];
  }
  return c;
}

// The items as columns, from the smallest value of each of their coordinates on and scaled to at
// most 1, so that no square leaves the range of double; the silhouette changes with neither.
Matrix scaled_items(const MatrixView& x) {
  Matrix items(x.cols, x.rows);
  double size = 0, largest = 0;
  for (std::int64_t j = 0; j < x.cols; ++j)
    for (std::int64_t i = 0; i < x.rows; ++i) size = std::max(size, std::fabs(x(i, j)));
  if (size == 0) return items;
  const int power = -std::ilogb(size);
  for (std::int64_t j = 0; j < x.cols; ++j) {
    double least = std::numeric_limits<double>::infinity();
    for (std::int64_t i = 0; i < x.rows; ++i) least = std::min(least, std::scalbn(x(i, j), power));
    for (std::int64_t i = 0; i < x.rows; ++i) {
      items(j, i) = std::scalbn(x(i, j), power) - least;
      largest = std::max(largest, items(j, i));
    }
  }
  if (largest == 0) return items;
  for (std::int64_t i = 0; i < x.rows; ++i)
    for (std::int64_t j = 0; j < x.cols; ++j) items(j, i) /= largest;
  return items;
}

double distance(const Matrix& items, std::int64_t i, std::int64_t k) {
  const double *a = items.column(i), *b = items.column(k);
  double sum = 0;
  for (std::int64_t j = 0; j < items.rows(); ++j) sum += (a[j] - b[j]) * (a[j] - b[j]);
  return std::sqrt(sum);
}

double silhouette_width(const Matrix& items, const Clusters& c, std::int64_t i) {
  const std::size_t own = c.of[static_cast<std::size_t>(i)];
  if (c.sizes[own] == 1) return 0;
  std::vector<double> sum(c.sizes.size(), 0.0);
  for (std::int64_t k = 0; k < items.cols(); ++k)
    sum[c.of[static_cast<std::size_t>(k)]] += distance(items, i, k);
  const double within = sum[own] / (c.sizes[own] - 1);
  double nearest = std::numeric_limits<double>::infinity();
  for (std::size_t other = 0; other < sum.size(); ++other)
    if (other != own) nearest = std::min(nearest, sum[other] / c.sizes[other]);
  const double larger = std::max(within, nearest);
  return larger > 0 ? (nearest - within) / larger : 0.0;
}

} // namespace

double adjusted_rand_index(Labels a, Labels b) {
  const Contingency t = contingency(a, b);
  const double in_a = pairs_within(t.a), in_b = pairs_within(t.b), in_both = pairs_within(t.both);
  const double all = pairs_of(t.n), expected = all > 0 ? in_a * in_b / all : 0.0;
  const double largest = (in_a + in_b) / 2;
  return largest == expected ? 1.0 : (in_both - expected) / (largest - expected);
}

double normalized_mutual_information(Labels a, Labels b) {
  const Contingency t = contingency(a, b);
  if (t.a.size() == 1 && t.b.size() == 1) return 1;
  double information = 0;
  for (const auto& [labels, count] : t.both)
    information +=
        count / t.n * std::log(count * t.n / (t.a.at(labels.first) * t.b.at(labels.second)));
  return std::clamp(2 * information / (entropy(t.a, t.n) + entropy(t.b, t.n)), 0.0, 1.0);
}

double silhouette(const MatrixView& x, Labels labels, Run& run) {
  check_view(x, "x");
  if (std::ssize(labels) != x.rows)
    throw Error(Status::dim_mismatch, message("labels has ", labels.size(), " entries; x has ",
                                              x.rows, " rows, one for each"));
  check_finite(x, "x");
  const Clusters c = clusters(labels);
  if (c.sizes.size() < 2)
    throw Error(Status::invalid_argument,
                message("labels names ", c.sizes.size(), " cluster(s); at least 2 are needed"));
  const Matrix items = scaled_items(x);
  std::vector<double> widths(labels.size());
  run.parallel_for(x.rows, [&](std::int64_t i) {
    widths[static_cast<std::size_t>(i)] = silhouette_width(items, c, i);
  });
  double sum = 0;
  for (const double w : widths) sum += w;
  return sum / static_cast<double>(x.rows);
}

} // namespace cape
