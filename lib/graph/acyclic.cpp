module;
#include "internal/message.hpp"
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <span>
#include <tuple>
#include <utility>
#include <vector>
module cape.graph;

#include "internal/sort.hpp"

namespace cape {
namespace {

// Kahn's order, the smallest free node first; the nodes on and behind cycles are left out.
std::vector<std::int64_t> kahn(const Digraph& graph) {
  std::vector<std::int64_t> causes(static_cast<std::size_t>(graph.size()), 0);
  for (const Edge& e : graph.edges()) ++causes[static_cast<std::size_t>(e.to)];
  std::priority_queue<std::int64_t, std::vector<std::int64_t>, std::greater<>> free;
  for (std::int64_t m = 0; m < graph.size(); ++m)
    if (causes[static_cast<std::size_t>(m)] == 0) free.push(m);
  std::vector<std::int64_t> order;
  order.reserve(causes.size());
  while (!free.empty()) {
    const std::int64_t m = free.top();
    free.pop();
    order.push_back(m);
    for (const Edge& e : graph.out(m))
      if (--causes[static_cast<std::size_t>(e.to)] == 0) free.push(e.to);
  }
  return order;
}

// Which nodes reach which in an acyclic graph that grows edge by edge: one row of bits per node.
class Reachability {
public:
  explicit Reachability(std::int64_t nodes)
      : words_(static_cast<std::size_t>((nodes + 63) / 64)),
        bits_(static_cast<std::size_t>(nodes) * words_, 0) {
    for (std::size_t m = 0; m < static_cast<std::size_t>(nodes); ++m)
      row(m)[m / 64] |= std::uint64_t{1} << (m % 64);
  }

  // Every node reaches itself.
  bool reaches(std::size_t m, std::size_t n) const {
    return (bits_[m * words_ + n / 64] >> (n % 64)) & 1U;
  }

  void add_edge(std::size_t m, std::size_t n) {
    if (reaches(m, n)) return;
    const std::size_t nodes = bits_.size() / words_;
    for (std::size_t k = 0; k < nodes; ++k)
      if (reaches(k, m) && !reaches(k, n))
        for (std::size_t w = 0; w < words_; ++w) row(k)[w] |= row(n)[w];
  }

private:
  std::uint64_t* row(std::size_t m) { return bits_.data() + m * words_; }

  std::size_t words_;
  std::vector<std::uint64_t> bits_;
};

} // namespace

std::vector<std::int64_t> topological_order(const Digraph& graph) {
  std::vector<std::int64_t> order = kahn(graph);
  if (std::ssize(order) < graph.size())
    throw Error(Status::invalid_argument,
                message("the graph has a cycle: ", graph.size() - std::ssize(order), " of its ",
                        graph.size(), " nodes lie on or behind one"));
  return order;
}

bool is_acyclic(const Digraph& graph) { return std::ssize(kahn(graph)) == graph.size(); }

// Tarjan's algorithm with a stack of its own. `low` of a node is the first node, by time of
// discovery, that is known to be in its component.
std::vector<std::int64_t> strong_components(const Digraph& graph) {
  const auto n = static_cast<std::size_t>(graph.size());
  std::vector<std::int64_t> component(n, -1), found(n, -1), low(n);
  std::vector<std::size_t> next_edge(n), path, open; // open: found, but without a component
  std::int64_t time = 0, components = 0;
  for (std::size_t root = 0; root < n; ++root) {
    if (found[root] >= 0) continue;
    path.push_back(root);
    while (!path.empty()) {
      const std::size_t m = path.back();
      if (found[m] < 0) {
        found[m] = low[m] = time++;
        open.push_back(m);
      }
      const std::span<const Edge> out = graph.out(static_cast<std::int64_t>(m));
      if (next_edge[m] < out.size()) {
        const auto to = static_cast<std::size_t>(out[next_edge[m]++].to);
        if (found[to] < 0)
          path.push_back(to);
        else if (component[to] < 0)
          low[m] = std::min(low[m], found[to]);
        continue;
      }
      path.pop_back();
      if (!path.empty()) low[path.back()] = std::min(low[path.back()], low[m]);
      if (low[m] < found[m]) continue;
      std::size_t member;
      do {
        member = open.back();
        open.pop_back();
        component[member] = components;
      } while (member != m);
      ++components;
    }
  }
  return component;
}

AcyclicProjection project_acyclic(const Digraph& graph, double tau) {
  Run run;
  return project_acyclic(graph, tau, run);
}

AcyclicProjection project_acyclic(const Digraph& graph, double tau, Run& run) {
  if (!std::isfinite(tau) || tau < 0)
    throw Error(Status::invalid_argument,
                message("tau is ", tau, "; it must be finite and not negative"));
  std::vector<Edge> edges = graph.edges();
  AcyclicProjection result;
  result.n_below_threshold = static_cast<std::int64_t>(
      std::erase_if(edges, [tau](const Edge& e) { return !(std::fabs(e.weight) > tau); }));

  run.poll();
  Digraph thresholded(graph.size(), edges);
  run.poll();
  if (is_acyclic(thresholded)) {
    result.graph = std::move(thresholded);
    return result;
  }
  const auto by = [](auto key) {
    return [key](const Edge& a, const Edge& b) { return key(a) < key(b); };
  };
  const auto strongest_first = by(
      [](const Edge& e) { return std::tuple(-std::fabs(e.weight), e.from, e.to); });
  sort_in_pieces(edges, strongest_first, run);
  // Cycles lie within components, so that each has reachabilities of its own.
  const std::vector<std::int64_t> component = strong_components(thresholded);
  run.poll();
  std::vector<std::int64_t> size(component.size()), number(component.size());
  for (std::size_t m = 0; m < component.size(); ++m)
    number[m] = size[static_cast<std::size_t>(component[m])]++;
  std::vector<Reachability> reach;
  for (const std::int64_t nodes : size) reach.emplace_back(nodes);
  std::vector<Edge> kept;
  for (const Edge& e : edges) {
    const auto m = static_cast<std::size_t>(e.from), n = static_cast<std::size_t>(e.to);
    if (component[m] != component[n]) {
      kept.push_back(e);
      continue;
    }
    run.poll();
    Reachability& within = reach[static_cast<std::size_t>(component[m])];
    const auto from = static_cast<std::size_t>(number[m]), to = static_cast<std::size_t>(number[n]);
    if (within.reaches(to, from)) {
      result.removed.push_back(e);
    } else {
      within.add_edge(from, to);
      kept.push_back(e);
    }
  }
  sort_in_pieces(kept, by([](const Edge& e) { return std::tuple(e.from, e.to); }), run);
  result.graph = Digraph(graph.size(), std::move(kept));
  return result;
}

} // namespace cape
