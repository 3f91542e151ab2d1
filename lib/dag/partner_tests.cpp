// Held-out tests of the causes of single columns among their strongest partners (docs/method.md,
// Refinement).
module;
#include "dag/kernels/node_regression.hpp"
#include "internal/arma.hpp"
#include "internal/message.hpp"
#include <algorithm>
#include <cmath>
#include <compare>
#include <cstdint>
#include <functional>
#include <limits>
#include <new>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <typeinfo>
#include <utility>
#include <variant>
#include <vector>
module cape.dag;
#include "dag/edge_lists.hpp"
#include "dag/elimination.hpp"
#include "dag/options.hpp"
#include "dag/partner_tests.hpp"

namespace cape {
namespace {

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

} // namespace

std::vector<Edge> tested_weights(const std::vector<Edge>& weights, const sem::Table& table,
                                 const EdgeFactors& known) {
  std::vector<Edge> edges =
      edges_between(weights, inverse_numbering(table.source_columns(), table.columns()));
  for (Edge& e : edges) e.weight = std::fabs(e.weight);
  const Pairs required = pairs_of(known.required());
  std::erase_if(edges, [&](const Edge& e) {
    return e.weight <= least_tested_weight || required.contains({e.from, e.to});
  });
  for (const auto& [from, to] : required) edges.push_back({from, to, required_weight});
  return edges;
}

std::vector<std::vector<std::int64_t>>
possible_causes(std::span<const std::int64_t> effects, const std::vector<Edge>& edges,
                std::span<const std::int64_t> order, const EdgeFactors& known, std::int64_t most) {
  const auto size = std::ssize(order);
  const std::vector<std::int64_t> place = inverse_numbering(size, effects),
                                  position = inverse_numbering(size, order);
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

TestedEdges test_causes(const sem::Table& table, std::int64_t rows,
                        std::span<const std::int64_t> effects,
                        const std::vector<std::vector<std::int64_t>>& causes,
                        const EdgeFactors& known, const DagOptions& options, Run& run,
                        Journal* journal, const std::function<void(std::size_t)>& report) {
  report(effects.size());
  std::set<std::int64_t> distinct(effects.begin(), effects.end());
  for (const auto& of_one : causes) distinct.insert(of_one.begin(), of_one.end());
  const std::vector<std::int64_t> columns(distinct.begin(), distinct.end());
  const std::vector<std::int64_t> place = inverse_numbering(table.features(), columns);
  std::vector<Family> families;
  for (std::size_t j = 0; j < columns.size(); ++j)
    families.push_back({static_cast<std::int64_t>(j), {}});
  for (std::size_t at = 0; at < effects.size(); ++at) {
    const std::int64_t effect = place[static_cast<std::size_t>(effects[at])];
    std::vector<std::int64_t>& parents = families[static_cast<std::size_t>(effect)].parents;
    for (const std::int64_t i : causes[at]) parents.push_back(place[static_cast<std::size_t>(i)]);
    std::ranges::sort(parents);
  }
  const Pairs required = pairs_of(edges_between(known.required(), place));
  const Matrix values = table.spaced_rows(rows, columns, run);
  TestedEdges found = eliminate(
      std::move(families), Regressions(values, options, run), table.spaced_missing(rows, columns),
      refine_t_of(options, rows),
      [&](std::int64_t i, std::int64_t j) { return required.contains({i, j}); }, run, journal,
      [&](std::size_t, std::size_t open) { report(open); });
  for (std::vector<Edge>* edges : {&found.kept, &found.tested, &found.strength})
    for (Edge& e : *edges)
      e = {columns[static_cast<std::size_t>(e.from)], columns[static_cast<std::size_t>(e.to)],
           e.weight};
  return found;
}

TestedGraph refine_along_weights(const sem::Table& table, const std::vector<Edge>& weights,
                                 const EdgeFactors& known, const DagOptions& options, Run& run,
                                 Journal* journal) {
  const std::int64_t m = table.features();
  const std::vector<Edge> edges = tested_weights(weights, table, known);
  TestedGraph result;
  result.order =
      topological_order(project_acyclic(Digraph(m, edges), least_tested_weight, run).graph);
  std::vector<std::int64_t> all(static_cast<std::size_t>(m));
  std::iota(all.begin(), all.end(), std::int64_t{0});
  const auto causes = possible_causes(all, edges, result.order, known, most_partners(options.sem));
  // As many effects at a time as make some 256 MB of table with their causes.
  const std::int64_t block = std::clamp<std::int64_t>(
      (std::int64_t{1} << 25) / (table.rows() * (1 + most_partners(options.sem))), 8, 256);
  for (std::int64_t first = 0; first < m; first += block) {
    const std::int64_t end = std::min(m, first + block);
    const TestedEdges found =
        test_causes(table, table.rows(), std::span(all.begin() + first, all.begin() + end),
                    std::vector(causes.begin() + first, causes.begin() + end), known, options, run,
                    journal, [&](std::size_t open) {
                      run.report({"dag.refine", end - static_cast<std::int64_t>(open), m});
                    });
    result.edges.kept.insert(result.edges.kept.end(), found.kept.begin(), found.kept.end());
    result.edges.tested.insert(result.edges.tested.end(), found.tested.begin(), found.tested.end());
    result.edges.strength.insert(result.edges.strength.end(), found.strength.begin(),
                                 found.strength.end());
  }
  return result;
}

} // namespace cape
