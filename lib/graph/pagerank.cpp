module;
#include "internal/message.hpp"
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>
module cape.graph;

namespace cape {

// A node without causes restarts like every other node, so that all nodes receive the same mass c
// by restarts: pi = c 1 + (1 - w) P' pi with the rows of P zero for such nodes. Hence
// pi = c (I - (1 - w) P')^{-1} 1, whose Neumann series grows monotonically from 1 (in floating
// point too, so that it comes to rest) and ends after the longest path on an acyclic graph.
std::vector<double> pagerank(const Digraph& graph, double restart, Run& run) {
  if (!(restart > 0 && restart < 1))
    throw Error(Status::invalid_argument,
                message("restart is ", restart, "; it must lie in (0, 1)"));
  const auto nodes = static_cast<std::size_t>(graph.size());
  std::vector<double> total(nodes, 0.0); // over the causes of an effect
  for (const Edge& e : graph.edges()) total[static_cast<std::size_t>(e.to)] += std::fabs(e.weight);

  constexpr double tolerance = 4 * std::numeric_limits<double>::epsilon();
  std::vector<double> pi(nodes, 1.0), next(nodes);
  for (bool moving = true; moving;) {
    run.poll();
    std::ranges::fill(next, 1.0);
    for (const Edge& e : graph.edges()) {
      const auto m = static_cast<std::size_t>(e.from), n = static_cast<std::size_t>(e.to);
      next[m] += (1 - restart) * (std::fabs(e.weight) / total[n]) * pi[n];
    }
    moving = false;
    for (std::size_t m = 0; m < nodes; ++m) moving |= next[m] - pi[m] > tolerance * next[m];
    std::swap(pi, next);
  }
  double sum = 0;
  for (const double p : pi) sum += p;
  for (double& p : pi) p /= sum;
  return pi;
}

} // namespace cape
