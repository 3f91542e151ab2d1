module;
#include "internal/message.hpp"
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>
module cape.dag;

namespace cape {
namespace {

std::string dimensions(const Matrix& a) {
  return std::to_string(a.rows()) + " x " + std::to_string(a.cols());
}

// The weight of an edge carries the direction of the effect.
double signed_weight(const Dag& dag, std::int64_t i, std::int64_t j) {
  const double w = dag.weights(i, j), s = dag.sign.empty() ? 0 : dag.sign(i, j);
  return s == 0 ? w : s * std::fabs(w);
}

} // namespace

void cut(Dag& dag, double tau, std::span<const std::int64_t> visit) {
  const std::int64_t m = dag.weights.rows();
  std::vector<Edge> edges;
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < m; ++j) {
      const std::int64_t from = visit[static_cast<std::size_t>(i)];
      const std::int64_t to = visit[static_cast<std::size_t>(j)];
      if (dag.weights(from, to) != 0) edges.push_back({i, j, signed_weight(dag, from, to)});
    }
  const AcyclicProjection projection = project_acyclic(Digraph(m, std::move(edges)), tau);

  dag.graph = projection.graph.renumbered(visit);
  dag.order.clear();
  for (const std::int64_t node : topological_order(projection.graph))
    dag.order.push_back(visit[static_cast<std::size_t>(node)]);
  dag.n_removed_for_acyclicity = static_cast<std::int64_t>(projection.removed.size());
  dag.threshold = tau;
  dag.effective_threshold = tau;
  if (!projection.graph.edges().empty())
    dag.effective_threshold =
        std::fabs(std::ranges::min(projection.graph.edges(), {}, [](const Edge& e) {
                    return std::fabs(e.weight);
                  }).weight);
}

Dag prune(const Dag& dag, double tau) {
  if (!std::isfinite(tau) || tau < 0)
    throw Error(Status::invalid_argument,
                message("tau is ", tau, "; it must be finite and not negative"));
  const std::int64_t m = dag.weights.rows();
  if (dag.weights.cols() != m)
    throw Error(Status::dim_mismatch,
                "weights is " + dimensions(dag.weights) + "; it must be square");
  if (!dag.sign.empty() && (dag.sign.rows() != m || dag.sign.cols() != m))
    throw Error(Status::dim_mismatch,
                "sign is " + dimensions(dag.sign) + " but weights is " + dimensions(dag.weights));
  check_finite(dag.weights, "weights");

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
  result.statistic = Matrix();
  cut(result, tau, visit);
  return result;
}

} // namespace cape
