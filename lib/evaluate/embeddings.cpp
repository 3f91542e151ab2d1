module;
#include "internal/message.hpp"
#include "internal/sizes.hpp"
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <new>
#include <numeric>
#include <span>
#include <typeinfo>
#include <vector>
module cape.evaluate;

#include "internal/sort.hpp"

namespace cape {
namespace {

// Ranks from 0; equal values share the mean of theirs.
std::vector<double> ranks(std::span<const double> x, Run& run) {
  std::vector<std::size_t> order(x.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  sort_in_pieces(order, [&](std::size_t i, std::size_t j) { return x[i] < x[j]; }, run);
  std::vector<double> out(x.size());
  for (std::size_t i = 0, j = 0; i < order.size(); i = j) {
    while (j < order.size() && x[order[j]] == x[order[i]]) ++j;
    for (std::size_t k = i; k < j; ++k) out[order[k]] = 0.5 * static_cast<double>(i + j - 1);
  }
  return out;
}

// Rank correlation; 0 where one side does not vary.
double spearman(std::span<const double> a, std::span<const double> b, Run& run) {
  const std::vector<double> x = ranks(a, run), y = ranks(b, run);
  const double mean = 0.5 * (static_cast<double>(x.size()) - 1);
  double xy = 0, xx = 0, yy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mean) * (y[i] - mean);
    xx += (x[i] - mean) * (x[i] - mean);
    yy += (y[i] - mean) * (y[i] - mean);
  }
  return xx > 0 && yy > 0 ? std::clamp(xy / std::sqrt(xx * yy), -1.0, 1.0) : 0;
}

struct Pairs {
  std::vector<double> in_graph, in_space;
  void add(double graph, double space) {
    in_graph.push_back(graph);
    in_space.push_back(space);
  }
  double correlation(Run& run) const { return spearman(in_graph, in_space, run); }
};

// Of the nodes other than m, nearest first, how early the neighbours of m come; those at one
// distance come together.
double average_precision(std::int64_t m, const MatrixView& distances, const Matrix& hops,
                         const std::vector<std::int64_t>& nodes) {
  std::vector<std::int64_t> others;
  std::ranges::copy_if(nodes, std::back_inserter(others), [m](std::int64_t n) { return n != m; });
  std::ranges::sort(others, {}, [&](std::int64_t n) { return distances(m, n); });
  double found = 0, precision = 0;
  for (std::size_t i = 0, j = 0; i < others.size(); i = j) {
    const double before = found;
    for (; j < others.size() && distances(m, others[j]) == distances(m, others[i]); ++j)
      found += hops(m, others[j]) == 1;
    precision += (found - before) * found / static_cast<double>(j);
  }
  return precision / found;
}

} // namespace

EmbeddingMetrics compare_embedding(const Digraph& graph, const MatrixView& distances,
                                   std::span<const double> radius, Run& run) {
  const std::int64_t m = graph.size();
  check_view(distances, "distances");
  if (distances.rows != m || distances.cols != m || std::ssize(radius) != m)
    throw Error(Status::dim_mismatch,
                message("distances is ", distances.rows, " x ", distances.cols, " and radius has ",
                        radius.size(), " elements; the graph has ", m, " nodes"));
  check_finite(distances, "distances");
  check_finite({radius.data(), 1, m, m, Layout::row_major}, "radius");
  if (graph.edges().empty()) return {};

  const Matrix hops = undirected_distances(graph, std::numeric_limits<double>::infinity(), run);
  const Matrix paths = best_path_lengths(strengths(graph), run);
  std::vector<std::int64_t> linked;
  for (std::int64_t i = 0; i < m; ++i)
    if (std::any_of(hops.column(i), hops.column(i) + m, [](double h) { return h == 1; }))
      linked.push_back(i);

  EmbeddingMetrics out;
  Pairs near, strong, specific;
  std::vector<double> precision(linked.size());
  run.parallel_for(std::ssize(linked), [&](std::int64_t k) {
    precision[at(k)] = average_precision(linked[at(k)], distances, hops, linked);
  });
  for (const std::int64_t i : linked) {
    run.poll();
    double descendants = 0;
    for (const std::int64_t j : linked) {
      if (j < i && std::isfinite(hops(i, j))) near.add(hops(i, j), distances(i, j));
      if (j == i || std::isinf(paths(i, j))) continue;
      ++descendants;
      strong.add(paths(i, j), distances(i, j));
    }
    specific.add(-descendants, radius[at(i)]);
  }
  for (const Edge& e : graph.edges()) out.parents_closer += radius[at(e.from)] < radius[at(e.to)];
  out.parents_closer /= static_cast<double>(graph.edges().size());
  out.distance = near.correlation(run);
  out.strength = strong.correlation(run);
  out.specificity = specific.correlation(run);
  out.precision = std::accumulate(precision.begin(), precision.end(), 0.0) /
                  static_cast<double>(precision.size());
  return out;
}

} // namespace cape
