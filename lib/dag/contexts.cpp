// Interventions of unknown effect as columns of their own (J. M. Mooij, S. Magliacane and T.
// Claassen, Joint causal inference, 2020), whose effects are those of what they aim at.
module;
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
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
#include "dag/contexts.hpp"
#include "dag/edge_lists.hpp"

namespace cape {
namespace {

double deviation(std::span<const double> x) {
  double n = 0, sum = 0, squares = 0;
  const auto is_known = [](double v) { return !std::isnan(v); };
  for (const double v : x)
    if (is_known(v)) n += 1, sum += v;
  for (const double v : x)
    if (is_known(v)) squares += (v - sum / n) * (v - sum / n);
  return n > 0 ? std::sqrt(squares / n) : 0;
}

Knowledge with_contexts(Knowledge known, std::int64_t m, std::span<const std::int64_t> target) {
  const auto wide = m + std::ssize(target);
  const auto names = [](const std::vector<std::int64_t>& columns, std::int64_t j) {
    return std::ranges::find(columns, j) != columns.end();
  };
  Matrix penalty;
  if (!known.penalty.empty()) {
    penalty = Matrix(wide, wide);
    std::fill_n(penalty.data(), penalty.size(), 1.0);
    for (std::int64_t j = 0; j < m; ++j) std::copy_n(known.penalty.column(j), m, penalty.column(j));
  }
  const std::vector<Edge> forbidden = known.forbidden;
  for (std::int64_t c = m; c < wide; ++c) {
    const std::int64_t aim = target[static_cast<std::size_t>(c - m)];
    known.roots.push_back(c);
    if (!known.tier.empty()) known.tier.push_back(known.tier[static_cast<std::size_t>(aim)]);
    for (const Edge& e : forbidden)
      if (e.from == aim) known.forbidden.push_back({c, e.to, 0});
    const bool has_effects =
        !names(known.leaves, aim) && (known.regulators.empty() || names(known.regulators, aim));
    for (std::int64_t j = 0; j < m && !has_effects; ++j)
      if (j != aim) known.forbidden.push_back({c, j, 0});
    for (std::int64_t j = 0; j < m && !penalty.empty(); ++j)
      if (j != aim) penalty(c, j) = penalty(aim, j);
  }
  if (!known.regulators.empty())
    for (std::int64_t c = m; c < wide; ++c) known.regulators.push_back(c);
  known.penalty = std::move(penalty);
  return known;
}

using Pair = std::pair<std::int64_t, std::int64_t>;

// Entries by pairs of columns that were not added. What interventions do to their targets is not
// known, and so neither which sign a column's effect has.
std::map<Pair, double> folded(const std::vector<Edge>& edges, std::int64_t m,
                              std::span<const std::int64_t> target,
                              const std::vector<char>& isolated,
                              const std::function<double(double, double)>& sum) {
  std::map<Pair, double> out;
  for (const Edge& e : edges) {
    const std::int64_t from = e.from < m ? e.from : target[static_cast<std::size_t>(e.from - m)];
    if (e.to >= m || from == e.to || isolated[static_cast<std::size_t>(from)]) continue;
    const double weight = e.from < m ? e.weight : std::fabs(e.weight);
    const auto [entry, is_new] = out.emplace(Pair(from, e.to), weight);
    if (!is_new) entry->second = sum(entry->second, weight);
  }
  return out;
}

std::vector<Edge> as_edges(const std::map<Pair, double>& entries) {
  std::vector<Edge> edges;
  for (const auto& [pair, weight] : entries) edges.push_back({pair.first, pair.second, weight});
  return edges;
}

// The sign is that of the column's own edge, which comes first.
double root_of_squares(double own, double context) {
  return std::copysign(std::hypot(own, context), own);
}

} // namespace

WithContexts with_contexts(const MatrixView& x, const Prior& prior) {
  std::map<std::int64_t, std::set<std::int64_t>> rows;
  for (const Perturbation& p : prior.design.targeted) rows[p.column].insert(p.row);
  std::erase_if(rows, [&](const auto& of) { return std::ssize(of.second) == x.rows; });
  WithContexts out{Matrix(x.rows, x.cols + std::ssize(rows)), prior, {}};
  for (std::int64_t j = 0; j < x.cols; ++j)
    for (std::int64_t i = 0; i < x.rows; ++i) out.x(i, j) = x(i, j);
  std::vector<char> is_missing(static_cast<std::size_t>(x.rows), 1);
  for (std::int64_t j = 0; j < x.cols; ++j)
    for (std::int64_t i = 0; i < x.rows; ++i)
      if (!std::isnan(out.x(i, j))) is_missing[static_cast<std::size_t>(i)] = 0;
  for (const auto& [column, aimed] : rows) {
    const std::int64_t c = x.cols + std::ssize(out.target);
    const double share = static_cast<double>(aimed.size()) / static_cast<double>(x.rows);
    const double sd = deviation({out.x.column(column), static_cast<std::size_t>(x.rows)});
    for (const std::int64_t i : aimed)
      out.x(i, c) = (sd > 0 ? sd : 1) / std::sqrt(share * (1 - share));
    for (std::int64_t i = 0; i < x.rows; ++i)
      if (is_missing[static_cast<std::size_t>(i)])
        out.x(i, c) = std::numeric_limits<double>::quiet_NaN();
    out.target.push_back(column);
  }
  out.prior.knowledge = with_contexts(prior.knowledge, x.cols, out.target);
  out.prior.design.targeted.clear();
  return out;
}

Dag without_contexts(Dag dag, std::span<const std::int64_t> target, Run& run) {
  const std::int64_t m = dag.graph.size() - std::ssize(target);
  std::vector<std::int64_t> columns(static_cast<std::size_t>(m));
  std::iota(columns.begin(), columns.end(), std::int64_t{0});
  std::vector<char> isolated(static_cast<std::size_t>(m), 0);
  std::erase_if(dag.constant, [m](std::int64_t j) { return j >= m; });
  for (const std::int64_t j : dag.constant) isolated[static_cast<std::size_t>(j)] = 1;
  const auto fold = [&](SparseMatrix& a, double (*sum)(double, double)) {
    if (a.cols > 0)
      a = scatter(as_edges(folded(edges_of(a), m, target, isolated, sum)), columns, m, run);
  };
  const auto larger = [](double a, double b) { return std::max(a, b); };
  fold(dag.weights, root_of_squares);
  fold(dag.support, root_of_squares);
  fold(dag.bag_share, larger);
  fold(dag.statistic, larger);
  fold(dag.partners, [](double own, double) { return own; });
  std::vector<Edge> signs = edges_of(dag.sign);
  std::erase_if(signs, [m](const Edge& e) { return e.from >= m || e.to >= m; });
  dag.sign = scatter(signs, columns, m, run);

  const Pairs required = pairs_of(dag.required);
  std::map<Pair, double> size = folded(dag.graph.edges(), m, target, isolated, root_of_squares);
  std::vector<Edge> edges;
  for (const auto& [pair, weight] : size)
    edges.push_back({pair.first, pair.second, required.contains(pair) ? required_weight : weight});
  const AcyclicProjection projection = project_acyclic(Digraph(m, std::move(edges)), 0, run);
  edges = projection.graph.edges();
  for (Edge& e : edges) e.weight = size.at({e.from, e.to});
  dag.graph = Digraph(m, std::move(edges));
  dag.order = topological_order(dag.graph);
  dag.n_removed_for_acyclicity += std::ssize(projection.removed);
  dag.effective_threshold = dag.threshold;
  for (const Edge& e : dag.graph.edges())
    dag.effective_threshold = std::min(dag.effective_threshold, std::fabs(e.weight));
  std::erase_if(dag.collinear, [m](const Edge& e) { return std::max(e.from, e.to) >= m; });
  for (std::vector<double>* of : {&dag.center, &dag.scale, &dag.deviation})
    of->resize(static_cast<std::size_t>(m));
  return dag;
}

} // namespace cape
