module;
#include "internal/message.hpp"
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <utility>
#include <variant>
#include <vector>
module cape.simulate;
#include "simulate/blocks.hpp"

namespace cape {
namespace {

using Pair = std::pair<std::int64_t, std::int64_t>;

constexpr std::int64_t most_nodes_by_pairs = std::int64_t{1} << 17; ///< half a minute of draws

std::vector<Pair> erdos_renyi(std::int64_t nodes, double edges_per_node, Rng& rng, Run& run) {
  const double probability = 2 * edges_per_node / static_cast<double>(nodes);
  std::vector<Pair> pairs;
  for (std::int64_t n = 1; n < nodes; ++n) {
    run.report({.stage = "simulate", .step = n, .total = nodes});
    for (std::int64_t m = 0; m < n; ++m)
      if (rng.uniform() < probability) pairs.emplace_back(m, n);
  }
  return pairs;
}

// A.-L. Barabási and R. Albert, Emergence of scaling in random networks, Science 286 (1999): the
// first node joins `per_node` isolated ones, each later one prefers nodes of high degree.
std::vector<Pair> barabasi_albert(std::int64_t nodes, std::int64_t per_node, Rng& rng, Run& run) {
  std::vector<Pair> pairs;
  std::vector<std::int64_t> ends; // every node as often as its degree
  std::vector<std::int64_t> partners;
  for (std::int64_t m = 0; m < std::min(per_node, nodes); ++m) partners.push_back(m);
  for (std::int64_t n = per_node; n < nodes; ++n) {
    run.report({.stage = "simulate", .step = n, .total = nodes});
    for (const std::int64_t m : partners) {
      pairs.emplace_back(m, n);
      ends.push_back(m);
      ends.push_back(n);
    }
    partners.clear();
    while (std::ssize(partners) < per_node) {
      if (std::ssize(partners) % 1024 == 1023) run.poll();
      const std::int64_t m = ends[static_cast<std::size_t>(rng.integer(std::ssize(ends)))];
      if (std::ranges::find(partners, m) == partners.end()) partners.push_back(m);
    }
  }
  return pairs;
}

} // namespace

OptionFields fields(GraphOptions& o) {
  return {
      {.name = "simulate.model",
       .value = choice(o.model, {"erdos_renyi", "barabasi_albert"}),
       .doc = "Random graph model.",
       .source = "method note, simulator"},
      {.name = "simulate.edges_per_node",
       .value = &o.edges_per_node,
       .min = 0,
       .doc = "Barabási-Albert: edges that a new node brings, a whole number from 1 on. "
              "Erdős–Rényi: every pair is an edge with probability 2 edges_per_node / nodes.",
       .source = "method note, simulator"},
      {.name = "simulate.min_weight",
       .value = &o.min_weight,
       .min = 0,
       .open_min = true,
       .doc = "Smallest magnitude of a weight.",
       .source = "method note, simulator"},
      {.name = "simulate.max_weight",
       .value = &o.max_weight,
       .min = 0,
       .open_min = true,
       .doc = "Largest magnitude of a weight; at least min_weight.",
       .source = "method note, simulator"},
      {.name = "simulate.signed_weights",
       .value = &o.signed_weights,
       .doc = "Give every weight a random sign.",
       .source = "method note, simulator"},
  };
}

Digraph simulate_dag(std::int64_t nodes, const GraphOptions& options, std::uint64_t seed) {
  Run run(seed);
  return simulate_dag(nodes, options, run);
}

Digraph simulate_dag(std::int64_t nodes, const GraphOptions& options, Run& run) {
  if (nodes < 1)
    throw Error(Status::invalid_argument, message("nodes is ", nodes, "; it must be at least 1"));
  GraphOptions o = options;
  check_options(fields(o));
  if (o.max_weight < o.min_weight)
    throw Error(Status::invalid_argument,
                message("simulate.max_weight is ", o.max_weight,
                        "; it must be at least simulate.min_weight, ", o.min_weight));
  const bool preferential = o.model == GraphModel::barabasi_albert;
  if (preferential && (o.edges_per_node < 1 || o.edges_per_node > 1e9 ||
                       o.edges_per_node != std::floor(o.edges_per_node)))
    throw Error(Status::invalid_argument,
                message("simulate.edges_per_node is ", o.edges_per_node,
                        "; the Barabási-Albert model needs a whole number in [1, 1e9]"));

  if (!preferential && nodes > most_nodes_by_pairs)
    throw Error(Status::invalid_argument,
                message("nodes is ", nodes,
                        "; with the Erdős–Rényi model, which draws for every pair, "
                        "it must be at most ",
                        most_nodes_by_pairs));
  check_memory(static_cast<double>(nodes) * (32 + 2 * o.edges_per_node * sizeof(Edge)),
               message("a graph of ", nodes, " nodes"));

  Rng edge_rng(run.seed(), {hash("simulate.edges")}),
      order_rng(run.seed(), {hash("simulate.order")}),
      weight_rng(run.seed(), {hash("simulate.weights")});
  const std::vector<Pair> pairs =
      preferential
          ? barabasi_albert(nodes, static_cast<std::int64_t>(o.edges_per_node), edge_rng, run)
          : erdos_renyi(nodes, o.edges_per_node, edge_rng, run);
  const std::vector<std::int64_t> rank = order_rng.permutation(nodes);
  std::vector<Edge> edges;
  edges.reserve(pairs.size());
  for_each_polled(std::ssize(pairs), run, [&](std::int64_t i) {
    auto [m, n] = pairs[static_cast<std::size_t>(i)];
    if (rank[static_cast<std::size_t>(m)] > rank[static_cast<std::size_t>(n)]) std::swap(m, n);
    double weight = weight_rng.uniform(o.min_weight, o.max_weight);
    if (o.signed_weights && weight_rng.uniform() < 0.5) weight = -weight;
    edges.push_back({m, n, weight});
  });
  return Digraph(nodes, std::move(edges));
}

} // namespace cape
