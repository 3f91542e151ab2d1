module;
#include "internal/message.hpp"
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>
module cape.evaluate;
#include "internal/sort.hpp"

namespace cape {
namespace {

bool has_edge(const Digraph& graph, std::int64_t from, std::int64_t to) {
  const auto out = graph.out(from);
  const auto e = std::ranges::lower_bound(out, to, {}, &Edge::to);
  return e != out.end() && e->to == to;
}

double ratio(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0.0;
}

} // namespace

GraphMetrics compare_graphs(const Digraph& estimated, const Digraph& truth) {
  if (estimated.size() != truth.size())
    throw Error(Status::dim_mismatch,
                message("the estimated graph has ", estimated.size(), " nodes, the true one ",
                        truth.size(), "; they must have the same nodes"));
  GraphMetrics m;
  m.true_edges = std::ssize(truth.edges());
  m.estimated_edges = std::ssize(estimated.edges());
  for (const Edge& e : estimated.edges()) {
    if (has_edge(truth, e.from, e.to))
      ++m.correct;
    else if (has_edge(truth, e.to, e.from))
      ++m.reversed;
    else
      ++m.extra;
  }
  for (const Edge& e : truth.edges())
    m.missing += !has_edge(estimated, e.from, e.to) && !has_edge(estimated, e.to, e.from);
  const std::int64_t wrong = m.reversed + m.extra, pairs = truth.size() * (truth.size() - 1);
  m.shd = m.missing + wrong;
  m.tpr = m.recall = ratio(m.correct, m.true_edges);
  m.fdr = ratio(wrong, m.estimated_edges);
  m.fpr = ratio(wrong, pairs - m.true_edges);
  m.precision = ratio(m.correct, m.estimated_edges);
  m.f1 = ratio(2 * m.correct, m.true_edges + m.estimated_edges);
  return m;
}

ScoreMetrics compare_scores(const MatrixView& scores, const Digraph& truth, Run& run) {
  check_view(scores, "scores");
  const std::int64_t nodes = truth.size();
  if (scores.rows != nodes || scores.cols != nodes)
    throw Error(Status::dim_mismatch,
                message("scores is ", scores.rows, " x ", scores.cols, "; for a graph of ", nodes,
                        " nodes it must be ", nodes, " x ", nodes));
  std::vector<std::pair<double, bool>> ranked; // score, is it a true pair?
  for (std::int64_t m = 0; m < nodes; ++m) {
    run.poll();
    for (std::int64_t n = 0; n < nodes; ++n) {
      if (m == n) continue;
      if (!std::isfinite(scores(m, n)))
        throw Error(Status::invalid_argument,
                    message("scores is ", scores(m, n), " at row ", m, ", column ", n,
                            " (counted from 0); scores must be finite"));
      ranked.emplace_back(scores(m, n), false);
    }
  }
  for (const Edge& e : truth.edges()) // a row of pairs lacks its diagonal
    ranked[static_cast<std::size_t>(e.from * (nodes - 1) + e.to - (e.to > e.from))].second = true;
  sort_in_pieces(ranked, std::greater<>{}, run);

  const auto positives = static_cast<double>(truth.edges().size());
  const auto negatives = static_cast<double>(ranked.size()) - positives;
  ScoreMetrics areas{.auprc = 0, .auroc = 0};
  double true_before = 0, true_found = 0, false_found = 0;
  for (std::size_t i = 0; i < ranked.size();) {
    const double score = ranked[i].first, false_before = false_found;
    true_before = true_found;
    for (; i < ranked.size() && ranked[i].first == score; ++i)
      ++(ranked[i].second ? true_found : false_found);
    areas.auprc += (true_found - true_before) * true_found / (true_found + false_found);
    areas.auroc += (false_found - false_before) * (true_before + true_found) / 2;
  }
  areas.auprc = positives > 0 ? areas.auprc / positives : 0.0;
  areas.auroc = positives > 0 && negatives > 0 ? areas.auroc / (positives * negatives) : 0.5;
  return areas;
}

ScoreMetrics compare_scores(const MatrixView& scores, const Digraph& truth) {
  Run run;
  return compare_scores(scores, truth, run);
}

} // namespace cape
