module;
#include "internal/message.hpp"
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>
module cape.graph;

namespace cape {
namespace {

std::string text(const Edge& e) {
  return message(e.from, " -> ", e.to, " (weight ", e.weight, "; nodes counted from 0)");
}

} // namespace

Digraph::Digraph(std::int64_t nodes) : Digraph(nodes, {}) {}

Digraph::Digraph(std::int64_t nodes, std::vector<Edge> edges)
    : nodes_(nodes), edges_(std::move(edges)) {
  if (nodes < 0)
    throw Error(Status::invalid_argument, message("nodes is ", nodes, "; it must not be negative"));
  for (const Edge& e : edges_) {
    if (e.from < 0 || e.from >= nodes || e.to < 0 || e.to >= nodes)
      throw Error(Status::invalid_argument,
                  message("edge ", e.from, " -> ", e.to,
                          " (nodes counted from 0) has an end that is no node; there are ", nodes));
    if (e.from == e.to)
      throw Error(Status::invalid_argument, "edge " + text(e) + ": loops are not allowed");
    if (!std::isfinite(e.weight))
      throw Error(Status::invalid_argument, "edge " + text(e) + ": the weight must be finite");
  }
  const auto ends = [](const Edge& e) { return std::tuple(e.from, e.to); };
  if (!std::ranges::is_sorted(edges_, {}, ends)) std::ranges::sort(edges_, {}, ends);
  const auto twice = std::ranges::adjacent_find(
      edges_, [](const Edge& a, const Edge& b) { return a.from == b.from && a.to == b.to; });
  if (twice != edges_.end())
    throw Error(Status::invalid_argument,
                "edge " + text(*twice) + " is given twice; give every ordered pair once");
  std::erase_if(edges_, [](const Edge& e) { return e.weight == 0; });

  // Nothing is computed on a graph with less than a number for each of its nodes.
  const std::int64_t size = checked_size(nodes, 1, "the graph");
  check_memory(16 * static_cast<double>(size), message("a graph of ", nodes, " nodes"));
  offsets_.assign(static_cast<std::size_t>(size) + 1, 0);
  for (const Edge& e : edges_) ++offsets_[static_cast<std::size_t>(e.from) + 1];
  for (std::size_t i = 1; i < offsets_.size(); ++i) offsets_[i] += offsets_[i - 1];
}

Digraph Digraph::from_adjacency(const MatrixView& a) {
  check_view(a, "adjacency");
  if (a.rows != a.cols)
    throw Error(Status::dim_mismatch,
                message("adjacency is ", a.rows, " x ", a.cols, "; it must be square"));
  check_finite(a, "adjacency");
  std::vector<Edge> edges;
  for (std::int64_t m = 0; m < a.rows; ++m)
    for (std::int64_t n = 0; n < a.cols; ++n)
      if (a(m, n) != 0) edges.push_back({m, n, a(m, n)});
  return Digraph(a.rows, std::move(edges));
}

Matrix Digraph::adjacency() const {
  Matrix a(nodes_, nodes_);
  for (const Edge& e : edges_) a(e.from, e.to) = e.weight;
  return a;
}

Digraph strengths(const Digraph& graph) {
  std::vector<Edge> edges = graph.edges();
  double largest = 1;
  for (const Edge& e : edges) largest = std::max(largest, std::fabs(e.weight));
  for (Edge& e : edges)
    e.weight = std::max(std::fabs(e.weight) / largest, std::numeric_limits<double>::min());
  return Digraph(graph.size(), std::move(edges));
}

Digraph Digraph::renumbered(std::span<const std::int64_t> to) const {
  if (std::ssize(to) != nodes_)
    throw Error(Status::dim_mismatch,
                message("to has ", to.size(), " entries; the graph has ", nodes_, " nodes"));
  std::vector<bool> taken(to.size(), false);
  for (const std::int64_t t : to) {
    if (t < 0 || t >= nodes_ || taken[static_cast<std::size_t>(t)])
      throw Error(Status::invalid_argument, message("to holds ", t, " twice or outside [0, ",
                                                    nodes_, "); it must be a permutation"));
    taken[static_cast<std::size_t>(t)] = true;
  }
  std::vector<Edge> edges = edges_;
  for (Edge& e : edges) {
    e.from = to[static_cast<std::size_t>(e.from)];
    e.to = to[static_cast<std::size_t>(e.to)];
  }
  return Digraph(nodes_, std::move(edges));
}

} // namespace cape
