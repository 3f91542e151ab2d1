module;
#include "internal/message.hpp"
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <new>
#include <numeric>
#include <queue>
#include <span>
#include <tuple>
#include <typeinfo>
#include <unordered_set>
#include <utility>
#include <vector>
module cape.graph;

namespace cape {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

constexpr double smallest = std::numeric_limits<double>::min(); // what is there is not 0

double strength(const Edge& e) { return std::min(std::fabs(e.weight), 1.0); }

// Both directions of every edge; an opposite pair of edges stays as two.
std::vector<std::vector<Edge>> undirected_arcs(const Digraph& graph,
                                               const std::function<double(const Edge&)>& cost) {
  std::vector<std::vector<Edge>> arcs(static_cast<std::size_t>(graph.size()));
  for (const Edge& e : graph.edges()) {
    arcs[static_cast<std::size_t>(e.from)].push_back({e.from, e.to, cost(e)});
    arcs[static_cast<std::size_t>(e.to)].push_back({e.to, e.from, cost(e)});
  }
  return arcs;
}

// Dijkstra's algorithm. length[] holds infinity everywhere and 0 at the source. An edge that goes
// to an earlier stage may have a negative cost, and none goes to a later one: stage by stage, no
// node is left too soon.
template <class Out, class Stage, class Cost>
void shortest_from(std::int64_t source, Out out, Stage stage, Cost cost, double* length) {
  using Entry = std::tuple<std::int64_t, double, std::int64_t>; // minus the stage, length, node
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  queue.emplace(-stage(source), 0.0, source);
  while (!queue.empty()) {
    const auto [turn, v, m] = queue.top();
    queue.pop();
    if (length[m] < v) continue; // a shorter way was found after this entry
    for (const Edge& e : out(m)) {
      const double candidate = v + cost(e);
      if (candidate < length[e.to]) {
        length[e.to] = candidate;
        queue.emplace(-stage(e.to), candidate, e.to);
      }
    }
  }
}

using Arcs = std::vector<std::vector<Edge>>;

Arcs costly_arcs(const Digraph& graph, double hop_cost) {
  constexpr double largest = 1e290; // sums along paths stay finite
  if (!(hop_cost >= 0 && (hop_cost <= largest || std::isinf(hop_cost))))
    throw Error(Status::invalid_argument,
                message("hop_cost is ", hop_cost, "; it must lie in [0, ", largest,
                        "], or be infinite, which counts hops"));
  return undirected_arcs(graph, [hop_cost](const Edge& e) {
    return std::isinf(hop_cost) ? 1.0 : hop_cost - std::log(strength(e));
  });
}

// Dijkstra's algorithm that stops at the count-th node other than m.
std::vector<Edge> nearest_to(std::int64_t m, std::int64_t count, const Arcs& arcs) {
  using Entry = std::pair<double, std::int64_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  std::unordered_set<std::int64_t> settled;
  std::vector<Edge> out;
  queue.emplace(0.0, m);
  while (!queue.empty() && std::ssize(out) < count) {
    const auto [distance, node] = queue.top();
    queue.pop();
    if (!settled.insert(node).second) continue;
    if (node != m) out.push_back({m, node, distance});
    for (const Edge& e : arcs[static_cast<std::size_t>(node)])
      if (!settled.contains(e.to)) queue.emplace(distance + e.weight, e.to);
  }
  return out;
}

} // namespace

std::vector<Edge> k_hop_strengths(const Digraph& graph, std::int64_t hops, Run& run) {
  if (hops < 1)
    throw Error(Status::invalid_argument, message("hops is ", hops, "; it must be at least 1"));
  const auto nodes = static_cast<std::size_t>(graph.size());
  std::vector<Edge> pairs;
  std::vector<double> best(nodes, 0.0);
  std::vector<std::int64_t> reached;
  std::vector<Edge> frontier, next; // the paths that became the best in the last step
  for (std::int64_t m = 0; m < graph.size(); ++m) {
    run.poll();
    best[static_cast<std::size_t>(m)] = 1; // no way back to m is better
    frontier.assign(1, {m, m, 1.0});
    for (std::int64_t step = 0; step < hops && !frontier.empty(); ++step) {
      next.clear();
      for (const Edge& path : frontier)
        for (const Edge& e : graph.out(path.to)) {
          double& b = best[static_cast<std::size_t>(e.to)];
          const double candidate = std::max(path.weight * strength(e), smallest);
          if (candidate <= b) continue;
          if (b == 0) reached.push_back(e.to);
          b = candidate;
          next.push_back({m, e.to, candidate});
        }
      std::erase_if(next, [&](const Edge& path) { // beaten within the same step
        return path.weight < best[static_cast<std::size_t>(path.to)];
      });
      std::swap(frontier, next);
    }
    std::ranges::sort(reached);
    for (const std::int64_t n : reached) {
      pairs.push_back({m, n, best[static_cast<std::size_t>(n)]});
      best[static_cast<std::size_t>(n)] = 0;
    }
    reached.clear();
    best[static_cast<std::size_t>(m)] = 0;
  }
  return pairs;
}

Matrix best_path_lengths(const Digraph& graph, Run& run) {
  const std::int64_t nodes = graph.size();
  const std::vector<std::int64_t> component = strong_components(graph);
  const auto stage = [&](std::int64_t node) { return component[static_cast<std::size_t>(node)]; };
  for (const Edge& e : graph.edges())
    if (std::fabs(e.weight) > 1 && stage(e.from) == stage(e.to))
      throw Error(Status::invalid_argument,
                  message("edge ", e.from, " -> ", e.to, " (weight ", e.weight,
                          "; nodes counted from 0) lies on a cycle; weights on cycles must not be "
                          "above 1, or a path that goes round is stronger each time"));
  Matrix lengths(nodes, nodes, run);
  run.parallel_for(nodes, [&](std::int64_t m) {
    std::vector<double> row(static_cast<std::size_t>(nodes), infinity);
    row[static_cast<std::size_t>(m)] = 0;
    shortest_from(
        m, [&](std::int64_t k) { return graph.out(k); }, stage,
        [](const Edge& e) { return -std::log(std::fabs(e.weight)); }, row.data());
    for (std::int64_t n = 0; n < nodes; ++n) lengths(m, n) = row[static_cast<std::size_t>(n)];
  });
  return lengths;
}

Matrix best_path_strengths(const Digraph& graph, Run& run) {
  Matrix strengths = best_path_lengths(graph, run);
  for (std::int64_t n = 0; n < graph.size(); ++n) {
    run.poll();
    for (std::int64_t m = 0; m < graph.size(); ++m) {
      double& s = strengths(m, n);
      if (std::isinf(s)) {
        s = 0;
        continue;
      }
      s = std::max(std::exp(-s), smallest);
      if (std::isinf(s))
        throw Error(Status::invalid_argument,
                    message("the strongest path ", m, " -> ", n, " (nodes counted from 0) is ",
                            "beyond the range of a double; divide the weights by the largest"));
    }
  }
  return strengths;
}

Matrix undirected_distances(const Digraph& graph, double hop_cost, Run& run) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(graph.size()));
  std::iota(all.begin(), all.end(), std::int64_t{0});
  Matrix distances = undirected_distances_from(graph, all, hop_cost, run);
  // A path sums to the same from either end but for the rounding: make it symmetric to the bit.
  run.parallel_for(graph.size(), [&](std::int64_t n) {
    for (std::int64_t m = 0; m < n; ++m) distances(m, n) = distances(n, m);
  });
  return distances;
}

Matrix undirected_distances_from(const Digraph& graph, std::span<const std::int64_t> sources,
                                 double hop_cost, Run& run) {
  const auto arcs = costly_arcs(graph, hop_cost);
  const std::int64_t nodes = graph.size();
  for (const std::int64_t m : sources)
    if (m < 0 || m >= nodes)
      throw Error(Status::invalid_argument,
                  message("a source is ", m, "; it must lie in [0, ", nodes, ")"));
  Matrix distances(nodes, std::ssize(sources), run);
  run.parallel_for(std::ssize(sources), [&](std::int64_t k) {
    const std::int64_t m = sources[static_cast<std::size_t>(k)];
    double* column = distances.column(k);
    std::fill_n(column, nodes, infinity);
    column[m] = 0;
    shortest_from(
        m, [&](std::int64_t i) -> const auto& { return arcs[static_cast<std::size_t>(i)]; },
        [](std::int64_t) { return std::int64_t{0}; }, [](const Edge& e) { return e.weight; },
        column);
  });
  return distances;
}

NearestNodes nearest_nodes(const Digraph& graph, std::int64_t count, double hop_cost, Run& run) {
  if (count < 1)
    throw Error(Status::invalid_argument, message("count is ", count, "; it must be at least 1"));
  const auto arcs = costly_arcs(graph, hop_cost);
  std::vector<std::vector<Edge>> near(arcs.size());
  run.parallel_for(graph.size(), [&](std::int64_t m) {
    near[static_cast<std::size_t>(m)] = nearest_to(m, count, arcs);
  });
  NearestNodes out;
  out.offsets = {0};
  for (const std::vector<Edge>& of_node : near) {
    if (out.offsets.size() % 1024 == 0) run.poll();
    out.near.insert(out.near.end(), of_node.begin(), of_node.end());
    out.offsets.push_back(std::ssize(out.near));
  }
  return out;
}

} // namespace cape
