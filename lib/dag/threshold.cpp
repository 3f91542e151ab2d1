// A threshold by held-out tests of a sample of the effects (docs/method.md, Threshold).
module;
#include "internal/message.hpp"
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <new>
#include <set>
#include <span>
#include <tuple>
#include <typeinfo>
#include <utility>
#include <variant>
#include <vector>
module cape.dag;
#include "dag/edge_lists.hpp"
#include "dag/options.hpp"
#include "dag/partner_tests.hpp"
#include "dag/row_source.hpp"
#include "dag/threshold.hpp"

namespace cape {

ThresholdSuggestion suggest_threshold(const sem::Table& table, const std::vector<Edge>& weights,
                                      const DagOptions& options, Run& run, Journal* journal) {
  const std::int64_t m = table.features();
  const EdgeFactors nothing;
  const std::vector<Edge> edges = tested_weights(weights, table, nothing);
  std::vector<std::int64_t> effects = Rng(run.seed(), {hash("dag.threshold")}).permutation(m);
  effects.resize(static_cast<std::size_t>(std::min(m, sampled_effects)));
  // A graph cut higher is this one without its weaker edges.
  const Digraph acyclic = project_acyclic(Digraph(m, edges), least_tested_weight, run).graph;
  const std::vector<std::int64_t> place = inverse_numbering(m, effects);
  std::vector<Edge> into;
  for (const Edge& e : acyclic.edges())
    if (place[static_cast<std::size_t>(e.to)] >= 0) into.push_back(e);
  if (into.empty()) return {};
  std::ranges::sort(into, {}, [](const Edge& e) { return std::tuple(-e.weight, e.from, e.to); });

  const auto causes = possible_causes(effects, edges, topological_order(acyclic), nothing,
                                      most_partners(options.sem));
  const TestedEdges found =
      test_causes(table, std::min(sampled_rows, table.rows()), effects, causes, nothing, options,
                  run, journal, [&, round = std::int64_t{0}](std::size_t) mutable {
                    run.report({"dag.threshold", round++});
                  });
  const Pairs kept = pairs_of(found.kept);
  ThresholdSuggestion best{into.front().weight, std::ssize(effects), std::ssize(kept),
                           std::ssize(kept)};
  std::int64_t differing = best.differing;
  for (std::size_t k = 0; k < into.size(); ++k) {
    differing += kept.contains({into[k].from, into[k].to}) ? -1 : 1;
    const double above = into[k].weight;
    const double below = k + 1 < into.size() ? into[k + 1].weight : least_tested_weight;
    if (differing < best.differing && below < above) {
      best.differing = differing;
      best.threshold = std::min(std::sqrt(above * below), std::nextafter(above, 0.0));
    }
  }
  return best;
}

ThresholdSuggestion suggest_threshold(const MatrixView& x, const Digraph& graph,
                                      const DagOptions& options_in, Run& run) {
  DagOptions options = options_in;
  check_options(fields(options));
  check_view(x, "x");
  check_finite(x, "x");
  if (graph.size() != x.cols)
    throw Error(Status::dim_mismatch, message("x has ", x.cols, " columns but the graph has ",
                                              graph.size(), " nodes; they must be as many"));
  const RowSource source = source_of(x);
  const Matrix equal;
  return suggest_threshold(sem::Table(source, equal, options.standardize, true, run), graph.edges(),
                           options, run, nullptr);
}

} // namespace cape
