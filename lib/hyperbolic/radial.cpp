module;
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>
module cape.hyperbolic;

namespace cape {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

// Where a node stands by falling PageRank, from 0 to 1; equal ones share their mean. Less the mean
// of all.
std::vector<double> levels(const std::vector<double>& rank) {
  std::vector<std::size_t> order(rank.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return rank[a] > rank[b]; });
  const double last = static_cast<double>(rank.size()) - 1;
  std::vector<double> out(rank.size());
  if (out.size() == 1) return out;
  for (std::size_t i = 0, j = 0; i < order.size(); i = j) {
    while (j < order.size() && rank[order[j]] == rank[order[i]]) ++j;
    for (std::size_t k = i; k < j; ++k)
      out[order[k]] = 0.5 * (static_cast<double>(i + j - 1) / last - 1);
  }
  return out;
}

} // namespace

RadialTerms::RadialTerms(const Digraph& graph, const EmbedOptions& options, Run& run)
    : options_(options), edges_(graph.edges()),
      pagerank_(cape::pagerank(graph, options.restart, run)), levels_(levels(pagerank_)) {}

// Ranking of radii along edges and levels (soft), and the PageRank term, with r = asinh |p~|.
void RadialTerms::operator()(const Matrix& points, EmbedEpoch& terms, Matrix* gradient,
                             Run& run) const {
  const bool soft = options_.objective == Objective::soft;
  const double m = static_cast<double>(points.cols()), t = options_.rank_temperature;
  std::vector<double> length(at(points.cols())), radius(at(points.cols())),
      slope(at(points.cols()));
  for (std::int64_t i = 0; i < points.cols(); ++i) {
    double sum = 0;
    for (std::int64_t k = 1; k < points.rows(); ++k) sum += points(k, i) * points(k, i);
    length[at(i)] = std::sqrt(sum);
    radius[at(i)] = std::asinh(length[at(i)]);
  }
  if (soft) {
    const double weight = options_.rank_weight / m;
    std::int64_t last = -1;
    for (const Edge& e : edges_) {
      if (e.from != last) run.poll();
      last = e.from;
      const double x = (radius[at(e.from)] - radius[at(e.to)] + options_.rank_margin) / t;
      const double tail = std::exp(-std::abs(x));
      terms.ranking += weight * t * (std::max(x, 0.0) + std::log1p(tail));
      const double logistic = (x > 0 ? 1 : tail) / (1 + tail);
      slope[at(e.from)] += weight * logistic;
      slope[at(e.to)] -= weight * logistic;
    }
  }
  if (soft) {
    const double weight = options_.level_weight / m;
    double mean = 0;
    for (const double r : radius) mean += r / m;
    for (std::size_t i = 0; i < radius.size(); ++i) {
      const double off = radius[i] - mean - options_.level_spread * levels_[i];
      terms.ranking += weight * off * off / 2;
      slope[i] += weight * off;
    }
  }
  for (std::int64_t i = 0; i < points.cols(); ++i) {
    const double weight = options_.generality_weight * pagerank_[at(i)] / (soft ? 1 : m);
    terms.generality += weight * radius[at(i)];
    slope[at(i)] += weight;
  }
  if (!gradient) return;
  for (std::int64_t i = 0; i < points.cols(); ++i) {
    if (length[at(i)] == 0) continue;
    const double factor = slope[at(i)] / (length[at(i)] * points(0, i));
    for (std::int64_t k = 1; k < points.rows(); ++k) (*gradient)(k, i) += factor * points(k, i);
  }
}

} // namespace cape
