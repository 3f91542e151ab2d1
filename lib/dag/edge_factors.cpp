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
#include <string>
#include <typeinfo>
#include <utility>
#include <variant>
#include <vector>
module cape.dag;
#include "dag/edge_factors.hpp"
#include "dag/edge_lists.hpp"

namespace cape {
namespace {

constexpr double excluded = std::numeric_limits<double>::infinity();

[[noreturn]] void refuse(const std::string& text) { throw Error(Status::invalid_argument, text); }

bool knows_nothing(const Knowledge& k) {
  return k.required.empty() && k.forbidden.empty() && k.tier.empty() && k.roots.empty() &&
         k.leaves.empty() && k.regulators.empty() && k.penalty.empty();
}

} // namespace

EdgeFactors::EdgeFactors(const Knowledge& k, std::int64_t table_columns,
                         std::span<const std::int64_t> columns,
                         std::span<const std::int64_t> exogenous) {
  if (knows_nothing(k) && exogenous.empty()) return;
  knowledge_ = &k;
  columns_.assign(columns.begin(), columns.end());
  const std::vector<std::int64_t> number = inverse_numbering(table_columns, columns);
  const auto mark = [&number](std::span<const std::int64_t> of, std::vector<char>& flags,
                              char value) {
    for (const std::int64_t j : of)
      if (const std::int64_t c = number[static_cast<std::size_t>(j)]; c >= 0)
        flags[static_cast<std::size_t>(c)] = value;
  };
  is_cause_.assign(columns.size(), k.regulators.empty());
  mark(k.regulators, is_cause_, 1);
  mark(k.leaves, is_cause_, 0);
  is_effect_.assign(columns.size(), 1);
  mark(k.roots, is_effect_, 0);
  is_exogenous_.assign(columns.size(), 0);
  mark(exogenous, is_exogenous_, 1);
  for (const std::int64_t j : columns)
    tier_.push_back(k.tier.empty() ? -1 : k.tier[static_cast<std::size_t>(j)]);
  forbidden_ = edges_between(k.forbidden, number);
  required_ = edges_between(distinct(k.required), number);
  check_required();
}

bool EdgeFactors::goes_backwards(std::size_t cause, std::size_t effect) const {
  return tier_[cause] >= 0 && tier_[effect] >= 0 && tier_[cause] > tier_[effect];
}

// The factors without what is required.
std::vector<double> EdgeFactors::allowed_causes_of(std::int64_t effect) const {
  std::vector<double> factor(columns_.size(), excluded);
  const auto j = static_cast<std::size_t>(effect);
  const Matrix& penalty = knowledge_->penalty;
  if (is_effect_[j])
    for (std::size_t i = 0; i < factor.size(); ++i) {
      if (!is_cause_[i] || goes_backwards(i, j)) continue;
      // 0 is kept for required edges.
      factor[i] = penalty.empty() ? 1
                                  : std::max(penalty(columns_[i], columns_[j]),
                                             std::numeric_limits<double>::min());
    }
  for (const Edge& e : std::ranges::equal_range(forbidden_, effect, {}, &Edge::to))
    factor[static_cast<std::size_t>(e.from)] = excluded;
  return factor;
}

std::vector<double> EdgeFactors::causes_of(std::int64_t effect) const {
  std::vector<double> factor = allowed_causes_of(effect);
  if (is_exogenous_[static_cast<std::size_t>(effect)]) std::ranges::fill(factor, excluded);
  for (const Edge& e : std::ranges::equal_range(required_, effect, {}, &Edge::to))
    factor[static_cast<std::size_t>(e.from)] = 0;
  return factor;
}

std::vector<char> EdgeFactors::effects_of(std::int64_t cause) const {
  const auto i = static_cast<std::size_t>(cause);
  std::vector<char> effect(columns_.size(), 0);
  for (std::size_t j = 0; is_cause_[i] && j < effect.size(); ++j)
    effect[j] = is_effect_[j] && !is_exogenous_[j] && !goes_backwards(i, j);
  for (const Edge& e : forbidden_)
    if (e.from == cause) effect[static_cast<std::size_t>(e.to)] = 0;
  for (const Edge& e : required_)
    if (e.from == cause) effect[static_cast<std::size_t>(e.to)] = 1;
  return effect;
}

void EdgeFactors::check_required() const {
  std::vector<double> factor;
  std::int64_t effect = -1;
  for (const Edge& e : required_) {
    if (e.to != effect) factor = allowed_causes_of(effect = e.to);
    if (std::isinf(factor[static_cast<std::size_t>(e.from)]))
      refuse(message("the edge from column ", columns_[static_cast<std::size_t>(e.from)],
                     " to column ", columns_[static_cast<std::size_t>(e.to)],
                     " (counted from 0) is required, but forbidden, tier, roots, leaves or "
                     "regulators exclude it"));
  }
  const auto size = std::ssize(columns_);
  const std::vector<std::int64_t> component = strong_components(Digraph(size, required_));
  for (const Edge& e : required_)
    if (component[static_cast<std::size_t>(e.from)] == component[static_cast<std::size_t>(e.to)])
      refuse(message("the required edges have a cycle, in which is that from column ",
                     columns_[static_cast<std::size_t>(e.from)], " to column ",
                     columns_[static_cast<std::size_t>(e.to)],
                     " (counted from 0); the graph of causes has none"));
}

Matrix factor_matrix(const EdgeFactors& known, const sem::Causes& causes, std::int64_t inputs,
                     std::int64_t features) {
  if (known.empty()) return {};
  Matrix factors(inputs, features);
  for (std::int64_t j = 0; j < features; ++j) {
    const std::vector<double> factor = known.causes_of(j);
    for (std::int64_t c = 0; c < inputs; ++c)
      factors(c, j) = factor[static_cast<std::size_t>(causes.empty() ? c : causes(c, j))];
  }
  return factors;
}

} // namespace cape
