module;
#include "internal/arma.hpp"
#include "internal/message.hpp"
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <new>
#include <numeric>
#include <set>
#include <span>
#include <typeinfo>
#include <utility>
#include <variant>
#include <vector>
module cape.dag;
#include "dag/edge_lists.hpp"
#include "dag/false_discovery.hpp"
#include "dag/rank_tests.hpp"

namespace cape {
namespace {

constexpr std::int64_t most_rows = 5000; ///< that a test looks at

// The edges into one effect, strongest first, and their p.
struct Effect {
  std::vector<Edge> edges;
  std::vector<double> p;
};

// The p of all edges into these effects.
void find_p(std::span<Effect* const> effects, const sem::Table& table, Run& run) {
  constexpr std::size_t block = 256; // effects whose columns are in memory
  for (std::size_t first = 0; first < effects.size(); first += block) {
    const auto some = effects.subspan(first, std::min(block, effects.size() - first));
    std::set<std::int64_t> features;
    for (const Effect* effect : some)
      for (const Edge& e : effect->edges) features.insert({e.from, e.to});
    const sem::RankedColumns columns(table, {features.begin(), features.end()},
                                     std::min(table.rows(), most_rows), run);
    run.parallel_for(std::ssize(some), [&](std::int64_t k) {
      Effect& effect = *some[static_cast<std::size_t>(k)];
      effect.p.clear();
      for (const Edge& e : effect.edges) {
        run.poll();
        effect.p.push_back(columns.p(e, effect.edges));
      }
    });
  }
}

// Pairs of features that may be joined, and are not required to be.
std::int64_t testable_pairs(std::int64_t m, const EdgeFactors& known, Run& run) {
  if (known.empty()) return m * (m - 1) / 2;
  BasicMatrix<std::int8_t> allowed(m, m);
  run.parallel_for(m, [&](std::int64_t j) {
    const std::vector<double> factor = known.causes_of(j);
    for (std::int64_t i = 0; i < m; ++i) {
      const double f = factor[static_cast<std::size_t>(i)];
      allowed(i, j) = f == 0 ? -1 : !std::isinf(f);
    }
  });
  std::int64_t pairs = 0;
  for (std::int64_t j = 0; j < m; ++j)
    for (std::int64_t i = 0; i < j; ++i)
      pairs +=
          std::max(allowed(i, j), allowed(j, i)) > 0 && std::min(allowed(i, j), allowed(j, i)) >= 0;
  return pairs;
}

} // namespace

Discoveries limit_false_discoveries(const std::vector<Edge>& edges, double rate,
                                    const sem::Table& table, const EdgeFactors& known, Run& run) {
  const Pairs required = pairs_of(known.required());
  const auto is_required = [&](const Edge& e) { return required.contains({e.from, e.to}); };
  std::map<std::int64_t, Effect> effects;
  for (const Edge& e : edges) effects[e.to].edges.push_back(e);
  std::vector<Effect*> open;
  for (auto& [feature, effect] : effects) {
    std::ranges::sort(effect.edges, {}, [](const Edge& e) { return std::pair(-e.weight, e.from); });
    open.push_back(&effect);
  }
  Discoveries found;
  found.pairs = testable_pairs(table.features(), known, run);
  const double pairs = static_cast<double>(found.pairs);
  while (!open.empty()) {
    find_p(open, table, run);
    // The largest p that stays: p_(k) <= rate k / pairs.
    std::vector<double> sorted;
    for (const auto& [feature, effect] : effects)
      for (std::size_t e = 0; e < effect.edges.size(); ++e)
        if (!is_required(effect.edges[e])) sorted.push_back(effect.p[e]);
    std::ranges::sort(sorted);
    std::size_t kept = sorted.size();
    while (kept > 0 && !(sorted[kept - 1] * pairs <= rate * static_cast<double>(kept))) --kept;
    const double limit = kept > 0 ? sorted[kept - 1] : -1;
    found.false_share = kept > 0 ? std::min(1.0, limit * pairs / static_cast<double>(kept)) : 0;
    open.clear();
    for (auto& [feature, effect] : effects) {
      std::vector<Edge> stay;
      for (std::size_t e = 0; e < effect.edges.size(); ++e)
        if (is_required(effect.edges[e]) || effect.p[e] <= limit) stay.push_back(effect.edges[e]);
      if (stay.size() == effect.edges.size()) continue;
      effect.edges = std::move(stay);
      open.push_back(&effect);
    }
  }
  for (const auto& [feature, effect] : effects)
    found.kept.insert(found.kept.end(), effect.edges.begin(), effect.edges.end());
  std::ranges::sort(found.kept, {}, [](const Edge& e) { return std::pair(e.from, e.to); });
  return found;
}

} // namespace cape
