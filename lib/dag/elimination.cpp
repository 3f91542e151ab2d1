// Held-out tests of the causes of single columns among their strongest partners: the graph of many
// columns, and a threshold from a sample of them (docs/method.md, Refinement and Threshold).
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
#include <tuple>
#include <typeinfo>
#include <utility>
#include <vector>
module cape.dag;

namespace cape {
namespace {

constexpr double least_weight = 0.1 * automatic_threshold;

// What was learned by features of the table, all weights positive, what is required the largest.
std::vector<Edge> weighted_edges(const std::vector<Edge>& weights, const sem::Table& table,
                                 const EdgeFactors& known) {
  std::vector<Edge> edges = edges_between(weights, places(table.source_columns(), table.columns()));
  for (Edge& e : edges) e.weight = std::fabs(e.weight);
  std::set<std::pair<std::int64_t, std::int64_t>> required;
  for (const Edge& e : known.required()) required.emplace(e.from, e.to);
  std::erase_if(edges, [&](const Edge& e) {
    return e.weight <= least_weight || required.contains({e.from, e.to});
  });
  for (const auto& [from, to] : required) edges.push_back({from, to, required_weight});
  return edges;
}

// The features that are joined most strongly to another one, and how strongly: `most` of them, and
// all that are required.
class Partners {
public:
  explicit Partners(std::int64_t most) : most_(most) {}
  void add(std::int64_t feature, double strength) {
    const auto known = std::ranges::find(all_, feature, &Partner::feature);
    if (known != all_.end()) {
      known->strength = std::max(known->strength, strength);
      return;
    }
    all_.push_back({feature, strength});
    if (std::ssize(all_) <= most_) return;
    const auto weakest = std::ranges::min_element(
        all_, {}, [](const Partner& p) { return std::pair(p.strength, -p.feature); });
    if (weakest->strength < required_weight) all_.erase(weakest);
  }
  std::vector<std::int64_t> features() const { // rising
    std::vector<std::int64_t> out;
    for (const Partner& p : all_) out.push_back(p.feature);
    std::ranges::sort(out);
    return out;
  }

private:
  struct Partner {
    std::int64_t feature;
    double strength;
  };
  std::int64_t most_;
  std::vector<Partner> all_;
};

// Of each of these effects its partners, one way or the other, that are earlier in the order.
std::vector<std::vector<std::int64_t>>
possible_causes(std::span<const std::int64_t> effects, const std::vector<Edge>& edges,
                std::span<const std::int64_t> order, const EdgeFactors& known, std::int64_t most) {
  const auto size = std::ssize(order);
  const std::vector<std::int64_t> place = places(size, effects), position = places(size, order);
  std::vector<Partners> partners(effects.size(), Partners(most));
  const auto join = [&](std::int64_t effect, std::int64_t other, double weight) {
    if (const std::int64_t at = place[static_cast<std::size_t>(effect)]; at >= 0)
      partners[static_cast<std::size_t>(at)].add(other, weight);
  };
  for (const Edge& e : edges) {
    join(e.to, e.from, e.weight);
    join(e.from, e.to, e.weight);
  }
  std::vector<std::vector<std::int64_t>> causes(effects.size());
  for (std::size_t at = 0; at < effects.size(); ++at) {
    const std::int64_t here = position[static_cast<std::size_t>(effects[at])];
    const std::vector<double> factor =
        known.empty() ? std::vector<double>() : known.causes_of(effects[at]);
    for (const std::int64_t other : partners[at].features())
      if (position[static_cast<std::size_t>(other)] < here &&
          (factor.empty() || !std::isinf(factor[static_cast<std::size_t>(other)])))
        causes[at].push_back(other);
  }
  return causes;
}

// What the tests say of these effects, by features. Of the table only the columns that take part
// are in memory.
Elimination test(const sem::Table& table, std::int64_t rows, std::span<const std::int64_t> effects,
                 const std::vector<std::vector<std::int64_t>>& causes, const EdgeFactors& known,
                 const DagOptions& options, Run& run, Journal* journal,
                 const std::function<void(std::size_t)>& report) {
  report(effects.size());
  std::set<std::int64_t> distinct(effects.begin(), effects.end());
  for (const auto& of_one : causes) distinct.insert(of_one.begin(), of_one.end());
  const std::vector<std::int64_t> columns(distinct.begin(), distinct.end());
  const std::vector<std::int64_t> place = places(table.features(), columns);
  std::vector<std::vector<std::int64_t>> by_place(columns.size());
  for (std::size_t at = 0; at < effects.size(); ++at) {
    auto& of_one = by_place[static_cast<std::size_t>(place[static_cast<std::size_t>(effects[at])])];
    for (const std::int64_t i : causes[at]) of_one.push_back(place[static_cast<std::size_t>(i)]);
    std::ranges::sort(of_one);
  }
  Elimination found = eliminate(table.spaced_rows(rows, columns, run),
                                table.spaced_missing(rows, columns), by_place,
                                edges_between(known.required(), place), options, run, journal, report);
  for (std::vector<Edge>* edges : {&found.kept, &found.tested})
    for (Edge& e : *edges)
      e = {columns[static_cast<std::size_t>(e.from)], columns[static_cast<std::size_t>(e.to)],
           e.weight};
  return found;
}

} // namespace

Digraph unpruned_graph(const Dag& dag) {
  std::vector<Edge> edges = entries(dag.weights);
  for (Edge& e : edges) e.weight = std::fabs(e.weight);
  return Digraph(dag.weights.cols, std::move(edges));
}

TestedGraph test_graph(const sem::Table& table, const std::vector<Edge>& weights,
                       const EdgeFactors& known, const DagOptions& options, Run& run,
                       Journal* journal) {
  const std::int64_t m = table.features();
  const std::vector<Edge> edges = weighted_edges(weights, table, known);
  TestedGraph result;
  result.order = topological_order(project_acyclic(Digraph(m, edges), least_weight, run).graph);
  std::vector<std::int64_t> all(static_cast<std::size_t>(m));
  std::iota(all.begin(), all.end(), std::int64_t{0});
  const auto causes =
      possible_causes(all, edges, result.order, known, most_partners(options.sem));
  // As many effects at a time as make some 256 MB of table with their causes.
  const std::int64_t block = std::clamp<std::int64_t>(
      (std::int64_t{1} << 25) / (table.rows() * (1 + most_partners(options.sem))), 8, 256);
  for (std::int64_t first = 0; first < m; first += block) {
    const std::int64_t end = std::min(m, first + block);
    const Elimination found =
        test(table, table.rows(), std::span(all.begin() + first, all.begin() + end),
             std::vector(causes.begin() + first, causes.begin() + end), known, options, run,
             journal, [&](std::size_t open) {
               run.report({"dag.refine", end - static_cast<std::int64_t>(open), m});
             });
    result.edges.kept.insert(result.edges.kept.end(), found.kept.begin(), found.kept.end());
    result.edges.tested.insert(result.edges.tested.end(), found.tested.begin(),
                               found.tested.end());
  }
  return result;
}

ThresholdSuggestion suggest_threshold(const sem::Table& table, const std::vector<Edge>& weights,
                                      const DagOptions& options, Run& run, Journal* journal) {
  const std::int64_t m = table.features();
  const EdgeFactors nothing;
  const std::vector<Edge> edges = weighted_edges(weights, table, nothing);
  std::vector<std::int64_t> effects = Rng(run.seed(), {hash("dag.threshold")}).permutation(m);
  effects.resize(static_cast<std::size_t>(std::min(m, sampled_effects)));
  // A graph cut higher is this one without its weaker edges.
  const Digraph acyclic = project_acyclic(Digraph(m, edges), least_weight, run).graph;
  const std::vector<std::int64_t> place = places(m, effects);
  std::vector<Edge> into;
  for (const Edge& e : acyclic.edges())
    if (place[static_cast<std::size_t>(e.to)] >= 0) into.push_back(e);
  if (into.empty()) return {};
  std::ranges::sort(into, {}, [](const Edge& e) { return std::tuple(-e.weight, e.from, e.to); });

  const auto causes = possible_causes(effects, edges, topological_order(acyclic), nothing,
                                      most_partners(options.sem));
  const Elimination found =
      test(table, std::min(sampled_rows, table.rows()), effects, causes, nothing, options, run,
           journal, [&, round = std::int64_t{0}](std::size_t) mutable {
             run.report({"dag.threshold", round++});
           });
  std::set<std::pair<std::int64_t, std::int64_t>> kept;
  for (const Edge& e : found.kept) kept.emplace(e.from, e.to);
  ThresholdSuggestion best{into.front().weight, std::ssize(effects), std::ssize(kept),
                           std::ssize(kept)};
  std::int64_t differing = best.differing;
  for (std::size_t k = 0; k < into.size(); ++k) {
    differing += kept.contains({into[k].from, into[k].to}) ? -1 : 1;
    const double above = into[k].weight;
    const double below = k + 1 < into.size() ? into[k + 1].weight : least_weight;
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
  const RowSource source = rows_of(x);
  const Matrix equal;
  return suggest_threshold(sem::Table(source, equal, options.standardize, true, run), graph.edges(),
                           options, run, nullptr);
}

} // namespace cape
