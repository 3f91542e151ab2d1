module;
#include "internal/message.hpp"
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <new>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <typeinfo>
#include <utility>
#include <variant>
#include <vector>
module cape.dag;
#include "dag/edge_lists.hpp"
#include "dag/pruning.hpp"

namespace cape {
namespace {

std::string dimensions(const SparseMatrix& a) {
  return std::to_string(a.rows) + " x " + std::to_string(a.cols);
}

constexpr double smallest_weight = 1e-6; // of an edge that is kept whatever its weight

// The weight of an edge carries the direction of the effect.
double signed_weight(const Dag& dag, std::int64_t i, std::int64_t j) {
  const double w = dag.weights(i, j), s = dag.sign.empty() ? 0 : dag.sign(i, j);
  return s == 0 ? w : s * std::fabs(w);
}

// An edge that stays whatever its weight: the signed weight, at least the threshold in size.
Edge kept_edge(const Dag& dag, std::int64_t from, std::int64_t to) {
  const double least = std::max(dag.threshold, smallest_weight);
  const double w = signed_weight(dag, from, to);
  return {from, to, std::copysign(std::max(std::fabs(w), least), w)};
}

} // namespace

void set_pruned_graph(Dag& dag, double tau, std::span<const std::int64_t> visit, Run& run) {
  const std::int64_t m = dag.weights.rows;
  dag.threshold = tau;
  const Pairs required = pairs_of(dag.required);
  const std::vector<std::int64_t> place = inverse_numbering(m, visit); // among those visited
  std::vector<Edge> edges = edges_of(dag.weights);
  std::erase_if(edges, [&](const Edge& e) {
    return !(std::fabs(e.weight) > tau) || required.contains({e.from, e.to});
  });
  for (Edge& e : edges) e.weight = signed_weight(dag, e.from, e.to);
  for (const auto& [from, to] : required) edges.push_back({from, to, required_weight});
  for (Edge& e : edges) // numbered as visited
    e = {place[static_cast<std::size_t>(e.from)], place[static_cast<std::size_t>(e.to)], e.weight};
  const AcyclicProjection projection = project_acyclic(Digraph(m, std::move(edges)), tau, run);

  edges = projection.graph.renumbered(visit).edges();
  for (Edge& e : edges)
    if (e.weight == required_weight) e = kept_edge(dag, e.from, e.to);
  dag.graph = Digraph(m, std::move(edges));
  dag.order.clear();
  for (const std::int64_t node : topological_order(projection.graph))
    dag.order.push_back(visit[static_cast<std::size_t>(node)]);
  dag.n_removed_for_acyclicity = static_cast<std::int64_t>(projection.removed.size());
  dag.effective_threshold = tau;
  if (!dag.graph.edges().empty())
    dag.effective_threshold = std::fabs(std::ranges::min(dag.graph.edges(), {}, [](const Edge& e) {
                                          return std::fabs(e.weight);
                                        }).weight);
}

Dag prune(const Dag& dag, double tau, Run& run) {
  if (!std::isfinite(tau) || tau < 0)
    throw Error(Status::invalid_argument,
                message("tau is ", tau, "; it must be finite and not negative"));
  const std::int64_t m = dag.weights.rows;
  check_view(dag.weights, "weights");
  check_view(dag.sign, "sign");
  if (dag.weights.layout != Layout::col_major)
    throw Error(Status::invalid_argument, "weights is compressed by rows; it must be by columns");
  if (!dag.sign.empty() && dag.sign.layout != Layout::col_major)
    throw Error(Status::invalid_argument, "sign is compressed by rows; it must be by columns");
  if (dag.weights.cols != m)
    throw Error(Status::dim_mismatch,
                "weights is " + dimensions(dag.weights) + "; it must be square");
  if (!dag.sign.empty() && (dag.sign.rows != m || dag.sign.cols != m))
    throw Error(Status::dim_mismatch,
                "sign is " + dimensions(dag.sign) + " but weights is " + dimensions(dag.weights));
  check_finite(dag.weights, "weights");
  for (std::int64_t i = 0; i < m; ++i)
    if (dag.weights(i, i) != 0)
      throw Error(Status::invalid_argument, message("weights has the loop ", i, " -> ", i,
                                                    " (counted from 0); its diagonal must be 0"));
  for (const double s : dag.sign.values)
    if (s != -1 && s != 0 && s != 1)
      throw Error(Status::invalid_argument,
                  message("sign has the value ", s, "; it must be -1, 0 or 1"));
  for (const Edge& e : dag.required)
    if (std::min(e.from, e.to) < 0 || std::max(e.from, e.to) >= m || e.from == e.to)
      throw Error(Status::invalid_argument, message("required has the edge ", e.from, " to ", e.to,
                                                    "; ends must differ and lie in [0, ", m, ")"));

  std::vector<std::int64_t> visit = dag.order;
  if (visit.empty()) {
    visit.resize(static_cast<std::size_t>(m));
    std::iota(visit.begin(), visit.end(), std::int64_t{0});
  }
  std::vector<std::int64_t> sorted = visit;
  std::ranges::sort(sorted);
  for (std::int64_t i = 0; i < std::max(m, static_cast<std::int64_t>(sorted.size())); ++i)
    if (i >= m || i >= static_cast<std::int64_t>(sorted.size()) ||
        sorted[static_cast<std::size_t>(i)] != i)
      throw Error(Status::invalid_argument,
                  "order does not hold each of the " + std::to_string(m) + " nodes once");

  Dag result = dag;
  result.refined = false;
  result.false_discovery_rate = 0;
  result.tested_pairs = 0;
  result.suggestion = {};
  result.statistic = {};
  result.warnings.clear();
  set_pruned_graph(result, tau, visit, run);
  return result;
}

Dag prune(const Dag& dag, double tau) {
  Run run;
  return prune(dag, tau, run);
}

Dag prune(const Digraph& graph, double tau, Run& run) {
  std::vector<Edge> edges = graph.edges(); // by cause; a matrix is filled by effect
  std::ranges::sort(edges, {}, [](const Edge& e) { return std::pair(e.to, e.from); });
  Dag dag;
  SparseMatrix& weights = dag.weights;
  weights.rows = weights.cols = graph.size();
  weights.offsets.assign(static_cast<std::size_t>(graph.size()) + 1, 0);
  for (const Edge& e : edges) {
    weights.indices.push_back(static_cast<std::int32_t>(e.from));
    weights.values.push_back(e.weight);
    ++weights.offsets[static_cast<std::size_t>(e.to) + 1];
  }
  std::partial_sum(weights.offsets.begin(), weights.offsets.end(), weights.offsets.begin());
  return prune(dag, tau, run);
}

Digraph unpruned_graph(const Dag& dag) {
  std::vector<Edge> edges = edges_of(dag.weights);
  for (Edge& e : edges) e.weight = std::fabs(e.weight);
  return Digraph(dag.weights.cols, std::move(edges));
}

} // namespace cape
