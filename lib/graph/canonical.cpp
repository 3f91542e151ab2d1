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
      : run_(run), first_arc_(static_cast<std::size_t>(graph.size()) + 1, 0),
        arcs_(2 * graph.edges().size()), order_(first_arc_.size() - 1), colour_(order_.size(), 0),
        end_(order_.size(), order_.size()) {
    const auto each_arc = [&](auto body) {
      for (const Edge& e : graph.edges()) {
        step();
        body(index(e.from), Arc(e.weight, 0, index(e.to)));
        body(index(e.to), Arc(e.weight, 1, index(e.from)));
      }
    };
    each_arc([&](std::size_t node, const Arc&) { ++first_arc_[node]; });
    std::partial_sum(first_arc_.begin(), first_arc_.end(), first_arc_.begin());
    each_arc([&](std::size_t node, const Arc& arc) { arcs_[--first_arc_[node]] = arc; });
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

  // A node and what it sees: weight, direction and colour of all its neighbours, in order.
  struct Sight {
    std::span<const Arc> seen;
    std::size_t node;
    bool sees_less(const Sight& other) const {
      return std::ranges::lexicographical_compare(seen, other.seen);
    }
    bool operator<(const Sight& other) const {
      return sees_less(other) || (!other.sees_less(*this) && node < other.node);
    }
  };

  static std::size_t index(std::int64_t node) { return static_cast<std::size_t>(node); }

  std::span<const Arc> arcs(std::size_t node) const {
    return {arcs_.data() + first_arc_[node], arcs_.data() + first_arc_[node + 1]};
  }

  void step() {
    if (++n_steps_ % 1024 == 0) run_.poll();
  }

  std::set<std::size_t> cells_around(std::span<const std::size_t> nodes) {
    std::set<std::size_t> cells;
    for (const std::size_t node : nodes) {
      step();
      for (const Arc& arc : arcs(node)) cells.insert(colour_[std::get<2>(arc)]);
    }
    return cells;
  }

  // The nodes of a cell by what they see, which `seen` keeps.
  std::vector<Sight> sorted_sights(std::span<const std::size_t> nodes, std::vector<Arc>& seen) {
    std::size_t n_arcs = 0;
    for (const std::size_t node : nodes) n_arcs += arcs(node).size();
    seen.clear();
    seen.reserve(n_arcs); // so that it stays where it is
    std::vector<Sight> sights;
    for (const std::size_t node : nodes) {
      step();
      const std::size_t first = seen.size();
      for (const auto& [weight, direction, neighbour] : arcs(node))
        seen.emplace_back(weight, direction, colour_[neighbour]);
      const std::span<Arc> own = std::span(seen).subspan(first);
      std::ranges::sort(own);
      sights.push_back({own, node});
    }
    sort_in_pieces(sights, std::less<>{}, run_);
    return sights;
  }

  // Split cells, from those in `waiting` on, until all nodes of every cell see the same.
  void refine(std::set<std::size_t> waiting) {
    std::vector<Arc> seen;
    while (!waiting.empty()) {
      run_.poll();
      const std::size_t start = *waiting.begin(), end = end_[start];
      waiting.erase(waiting.begin());
      if (end - start == 1) continue;
      const auto nodes = std::span(order_).subspan(start, end - start);
      const std::vector<Sight> sights = sorted_sights(nodes, seen);
      std::size_t cell = start;
      for (std::size_t i = start; i < end; ++i) {
        step();
        if (i > start && sights[i - start - 1].sees_less(sights[i - start])) {
          end_[cell] = i;
          cell = i;
        }
        order_[i] = sights[i - start].node;
        colour_[order_[i]] = cell;
      }
      end_[cell] = end;
      waiting.merge(cells_around(nodes.subspan(end_[start] - start)));
    }
  }

  Run& run_;
  std::int64_t n_steps_ = 0; // between which the run is polled now and then
  std::vector<std::size_t> first_arc_; // of a node, and one more
  std::vector<Arc> arcs_;              // node by node
  std::vector<std::size_t> order_;     // the nodes, cell by cell
  std::vector<std::size_t> colour_;    // of a node: where its cell starts
  std::vector<std::size_t> end_;       // of a cell, by its start
};

} // namespace

std::vector<std::int64_t> canonical_order(const Digraph& graph, Run& run) {
  return Refinement(graph, run).discrete_order();
}

} // namespace cape
