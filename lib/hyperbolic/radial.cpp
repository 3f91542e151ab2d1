module;
#include "internal/sizes.hpp"
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>
module cape.hyperbolic;
#include "hyperbolic/order.hpp"
#include "hyperbolic/radial.hpp"

namespace cape {
namespace {

constexpr double tie = 1e-12; // of PageRanks

// Differences of radii over it are finite.
constexpr double smallest_temperature = 1e-9;

// Radii that levels spread over at most: the longest path sets the margin along its edges.
constexpr double longest_span = 4.0;

// Where a node stands by falling PageRank, from -1/2 to 1/2; those that are equal but for rounding
// share their mean.
std::vector<double> ranks(const std::vector<double>& rank) {
  std::vector<std::size_t> order(rank.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return rank[a] > rank[b]; });
  const double last = static_cast<double>(rank.size()) - 1;
  std::vector<double> out(rank.size());
  if (out.size() == 1) return out;
  for (std::size_t i = 0, j = 0; i < order.size(); i = j) {
    while (j < order.size() && rank[order[j]] >= rank[order[i]] * (1 - tie)) ++j;
    for (std::size_t k = i; k < j; ++k)
      out[order[k]] = 0.5 * (static_cast<double>(i + j - 1) / last - 1);
  }
  return out;
}

} // namespace

RadialTerms::RadialTerms(const Digraph& graph, const EmbedOptions& options, Run& run)
    : options_(options), edges_(graph.edges()),
      pagerank_(cape::pagerank(graph, options.restart, run)), margin_(options.rank_margin),
      temperature_(options.rank_temperature), levels_(ranks(pagerank_)) {
  for (double& level : levels_) level *= options.level_spread;
  if (options.rank_weight == 0) return;
  // Levels that are nearer to each other along a path than the ranking wants radii to be would hold
  // these back: of a deep graph, until they are not in order any more.
  const CausalOrder order(graph);
  margin_ = order.margin_within(std::min(longest_span, options.max_radius / 4), margin_);
  if (margin_ < options.rank_margin)
    temperature_ = std::max(temperature_ * margin_ / options.rank_margin,
                            std::min(temperature_, smallest_temperature));
  const std::vector<double> low = order.lowered(levels_, margin_);
  levels_ = order.raised(levels_, margin_);
  double mean = 0;
  for (std::size_t i = 0; i < levels_.size(); ++i) {
    levels_[i] = (levels_[i] + low[i]) / 2;
    mean += levels_[i] / static_cast<double>(levels_.size());
  }
  for (double& level : levels_) level -= mean;
}

// Ranking of radii along edges and levels (soft), and the PageRank term, with r = asinh |p~|.
void RadialTerms::operator()(const Matrix& points, EmbedEpoch& terms, Matrix* gradient,
                             Run& run) const {
  const bool soft = options_.objective == Objective::soft;
  const double m = static_cast<double>(points.cols()), t = temperature_;
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
      const double x = (radius[at(e.from)] - radius[at(e.to)] + margin_) / t;
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
      const double off = radius[i] - mean - levels_[i];
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
