// What embed_dag() needs of memory and time.
module;
#include "internal/message.hpp"
#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>
module cape.hyperbolic;
#include "hyperbolic/cost.hpp"
#include "hyperbolic/options.hpp"

namespace cape {
namespace {

// The pairwise matrices; or the positives, the sample's gradients and distances to the landmarks;
// and the points. The options are settled.
double working_set(std::int64_t nodes, const EmbedOptions& options) {
  const double m = static_cast<double>(nodes), d = static_cast<double>(options.dims + 1);
  const double pairs = options.negatives == 0
                           ? 3.5 * m * m
                           : m * static_cast<double>(8 * std::min(options.positives, nodes) +
                                                     2 * options.negatives + 700);
  return 8 * (pairs + 6 * m * d);
}

void check_node_count(std::int64_t nodes) {
  if (nodes < 0)
    throw Error(Status::invalid_argument,
                message("nodes is ", nodes, "; it must not be negative"));
}

} // namespace

void check_nodes(const Digraph& graph) {
  if (graph.size() == 0)
    throw Error(Status::invalid_argument, "the graph has no nodes; it must have at least 1");
}

void check_working_set(std::int64_t nodes, const EmbedOptions& options) {
  check_memory(working_set(nodes, options),
               message("embedding ", nodes, " nodes in ", options.dims, " dimensions"));
}

double embed_dag_memory(std::int64_t nodes, const EmbedOptions& options) {
  check_node_count(nodes);
  return working_set(nodes, settled(options, nodes));
}

double embed_dag_seconds(std::int64_t nodes, const EmbedOptions& options) {
  check_node_count(nodes);
  const EmbedOptions o = settled(options, nodes);
  // On one core of a present server CPU with AVX-512, fitted to timed runs.
  constexpr double per_operation = 1.0 / 60e9; // of the products of all pairs
  constexpr double per_pair = 2e-9;            // besides its inner products
  constexpr double per_drawn = 3e-10, per_positive = 4.5e-9; // a coordinate of such a pair
  constexpr double per_coordinate = 1.5e-8;                  // a step of the optimiser
  const double m = static_cast<double>(nodes), d = static_cast<double>(o.dims);
  const double pairs = o.negatives == 0
                           ? m * m * (3 * d * per_operation + per_pair)
                           : m * d * (per_drawn * static_cast<double>(o.negatives) +
                                      per_positive * static_cast<double>(o.positives));
  return static_cast<double>(o.epochs) * (pairs + m * d * per_coordinate);
}

} // namespace cape
