module;
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <set>
#include <span>
#include <tuple>
#include <utility>
#include <vector>
module cape.graph;

#include "internal/sort.hpp"

namespace cape {
namespace {

// Colour refinement (B. Weisfeiler and A. Leman, 1968) on an ordered partition of the nodes. A
// colour is the place where its cell starts in the order, so that it says nothing of how the
// nodes are numbered and stays what it is while other cells are split.
class Refinement {
public:
  Refinement(const Digraph& graph, Run& run)
      : run_(run), arcs_(static_cast<std::size_t>(graph.size())), order_(arcs_.size()),
        colour_(arcs_.size(), 0), end_(arcs_.size(), arcs_.size()) {
    for (const Edge& e : graph.edges()) {
      if (++n_steps_ % 1024 == 0) run_.poll();
      arcs_[static_cast<std::size_t>(e.from)].push_back({e.weight, 0, index(e.to)});
      arcs_[static_cast<std::size_t>(e.to)].push_back({e.weight, 1, index(e.from)});
    }
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    if (!order_.empty()) refine({0});
  }

  // Tell apart, one by one, the nodes that share a colour.
  std::vector<std::int64_t> discrete_order() && {
    for (std::size_t start = 0; start < order_.size(); ++start)
      while (end_[start] - start > 1) {
        const std::size_t last = --end_[start], node = order_[last];
        colour_[node] = last;
        end_[last] = last + 1;
        refine(cells_around({&order_[last], 1}));
      }
    return {order_.begin(), order_.end()};
  }

private:
  // The weight of an edge, its direction (0 out of the node, 1 into it), and its other end.
  using Arc = std::tuple<double, int, std::size_t>;

  static std::size_t index(std::int64_t node) { return static_cast<std::size_t>(node); }

  // What a node sees: weight, direction and colour of all its neighbours.
  std::vector<Arc> signature(std::size_t node) const {
    std::vector<Arc> seen = arcs_[node];
    for (Arc& arc : seen) std::get<2>(arc) = colour_[std::get<2>(arc)];
    std::ranges::sort(seen);
    return seen;
  }

  std::set<std::size_t> cells_around(std::span<const std::size_t> nodes) {
    std::set<std::size_t> cells;
    for (const std::size_t node : nodes) {
      if (++n_steps_ % 1024 == 0) run_.poll();
      for (const Arc& arc : arcs_[node]) cells.insert(colour_[std::get<2>(arc)]);
    }
    return cells;
  }

  // Split cells, from those in `waiting` on, until all nodes of every cell see the same.
  void refine(std::set<std::size_t> waiting) {
    while (!waiting.empty()) {
      run_.poll();
      const std::size_t start = *waiting.begin(), end = end_[start];
      waiting.erase(waiting.begin());
      if (end - start == 1) continue;
      std::vector<std::pair<std::vector<Arc>, std::size_t>> seen;
      for (std::size_t i = start; i < end; ++i) {
        if (i % 1024 == 0) run_.poll();
        seen.emplace_back(signature(order_[i]), order_[i]);
      }
      sort_in_pieces(seen, std::less<>{}, run_);
      std::size_t cell = start;
      for (std::size_t i = start; i < end; ++i) {
        if (i % 4096 == 0) run_.poll();
        if (i > start && seen[i - start].first != seen[i - start - 1].first) {
          end_[cell] = i;
          cell = i;
        }
        order_[i] = seen[i - start].second;
        colour_[order_[i]] = cell;
      }
      end_[cell] = end;
      const auto recoloured = std::span(order_).subspan(end_[start], end - end_[start]);
      waiting.merge(cells_around(recoloured));
    }
  }

  Run& run_;
  std::int64_t n_steps_ = 0; // between which the run is polled now and then
  std::vector<std::vector<Arc>> arcs_;
  std::vector<std::size_t> order_;  // the nodes, cell by cell
  std::vector<std::size_t> colour_; // of a node: where its cell starts
  std::vector<std::size_t> end_;    // of a cell, by its start
};

} // namespace

std::vector<std::int64_t> canonical_order(const Digraph& graph, Run& run) {
  return Refinement(graph, run).discrete_order();
}

} // namespace cape
