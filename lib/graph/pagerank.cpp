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
  // The largest weight of an effect's causes, and the sum of their weights as parts of it, which
  // cannot overflow.
  std::vector<double> largest(nodes, 0.0), total(nodes, 0.0);
  for (const Edge& e : graph.edges()) {
    double& most = largest[static_cast<std::size_t>(e.to)];
    most = std::max(most, std::fabs(e.weight));
  }
  for (const Edge& e : graph.edges()) {
    const auto n = static_cast<std::size_t>(e.to);
    total[n] += std::fabs(e.weight) / largest[n];
  }

  constexpr double tolerance = 4 * std::numeric_limits<double>::epsilon();
  std::vector<double> pi(nodes, 1.0), next(nodes);
  // With cycles it comes to rest like (1 - w)^steps.
  std::int64_t left = std::max(std::int64_t{100000}, graph.size() + 2);
  for (bool moving = true; moving;) {
    run.poll();
    if (left-- == 0)
      throw Error(Status::not_converged,
                  message("restart is ", restart,
                          "; on this graph, which has cycles, that is too "
                          "small for the walk to come to rest: it should be at least 0.001"));
    std::ranges::fill(next, 1.0);
    for (const Edge& e : graph.edges()) {
      const auto m = static_cast<std::size_t>(e.from), n = static_cast<std::size_t>(e.to);
      next[m] += (1 - restart) * (std::fabs(e.weight) / largest[n] / total[n]) * pi[n];
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
