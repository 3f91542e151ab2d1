// What the user knows before Step I: of the graph, as factors of lambda for every possible edge,
// and of the rows, as weights for every value's own equation.
module;
#include "internal/message.hpp"
// As in internal/arma.hpp: libstdc++ deprecates a function that its own stable_sort calls.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#include <algorithm>
#pragma GCC diagnostic pop
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <new>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>
module cape.dag;

namespace cape {
namespace {

constexpr double excluded = std::numeric_limits<double>::infinity();

[[noreturn]] void refuse(const std::string& text) { throw Error(Status::invalid_argument, text); }

void check_number(std::int64_t number, std::int64_t size, std::string_view what) {
  if (number < 0 || number >= size)
    refuse(message(what, " has the number ", number, "; it must lie in [0, ", size, ")"));
}

void check_edges(const std::vector<Edge>& edges, std::int64_t columns, std::string_view what) {
  for (const Edge& e : edges) {
    check_number(e.from, columns, what);
    check_number(e.to, columns, what);
    if (e.from == e.to)
      refuse(message(what, " has an edge from column ", e.from + 1,
                     " (counted from 1) to itself"));
  }
}

void check_length(std::int64_t length, std::int64_t expected, std::string_view what) {
  if (length != 0 && length != expected)
    throw Error(Status::dim_mismatch,
                message(what, " has ", length, " values; it must have ", expected, " or none"));
}

bool knows_nothing(const Knowledge& k) {
  return k.required.empty() && k.forbidden.empty() && k.tier.empty() && k.roots.empty() &&
         k.leaves.empty() && k.regulators.empty() && k.penalty.empty();
}

void check_penalty(const Matrix& penalty, std::int64_t columns) {
  if (penalty.empty()) return;
  if (penalty.rows() != columns || penalty.cols() != columns)
    throw Error(Status::dim_mismatch,
                message("penalty is ", penalty.rows(), " x ", penalty.cols(), "; it must be ",
                        columns, " x ", columns, " or empty"));
  for (std::int64_t j = 0; j < columns; ++j)
    for (std::int64_t i = 0; i < columns; ++i)
      if (!(penalty(i, j) >= 0) || !std::isfinite(penalty(i, j)))
        refuse(message("penalty is ", penalty(i, j), " at row ", i + 1, ", column ", j + 1,
                       " (counted from 1); it must be finite and not negative"));
}

} // namespace

std::vector<std::int64_t> places(std::int64_t size, std::span<const std::int64_t> numbers) {
  std::vector<std::int64_t> place(static_cast<std::size_t>(size), -1);
  for (std::size_t p = 0; p < numbers.size(); ++p)
    place[static_cast<std::size_t>(numbers[p])] = static_cast<std::int64_t>(p);
  return place;
}

std::vector<Edge> edges_between(const std::vector<Edge>& edges,
                                std::span<const std::int64_t> place) {
  std::vector<Edge> between;
  for (const Edge& e : edges) {
    const std::int64_t from = place[static_cast<std::size_t>(e.from)],
                       to = place[static_cast<std::size_t>(e.to)];
    if (from >= 0 && to >= 0) between.push_back({from, to, e.weight});
  }
  std::ranges::stable_sort(between, {}, &Edge::to);
  return between;
}

std::vector<Edge> distinct(const std::vector<Edge>& edges) {
  std::set<std::pair<std::int64_t, std::int64_t>> known;
  std::vector<Edge> once;
  for (const Edge& e : edges)
    if (known.emplace(e.from, e.to).second) once.push_back({e.from, e.to, 1});
  return once;
}

EdgeFactors::EdgeFactors(const Knowledge& k, std::int64_t table_columns,
                         std::span<const std::int64_t> columns,
                         std::span<const std::int64_t> exogenous) {
  if (knows_nothing(k) && exogenous.empty()) return;
  knowledge_ = &k;
  columns_.assign(columns.begin(), columns.end());
  const std::vector<std::int64_t> number = places(table_columns, columns);
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

// The factors without what is required.
std::vector<double> EdgeFactors::allowed_causes_of(std::int64_t effect) const {
  std::vector<double> factor(columns_.size(), excluded);
  const auto j = static_cast<std::size_t>(effect);
  const Matrix& penalty = knowledge_->penalty;
  if (is_effect_[j])
    for (std::size_t i = 0; i < factor.size(); ++i) {
      const bool backwards = tier_[i] >= 0 && tier_[j] >= 0 && tier_[i] > tier_[j];
      if (!is_cause_[i] || backwards) continue;
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

void EdgeFactors::check_required() const {
  std::vector<double> factor;
  std::int64_t effect = -1;
  for (const Edge& e : required_) {
    if (e.to != effect) factor = allowed_causes_of(effect = e.to);
    if (std::isinf(factor[static_cast<std::size_t>(e.from)]))
      refuse(message("the edge from column ", columns_[static_cast<std::size_t>(e.from)] + 1,
                     " to column ", columns_[static_cast<std::size_t>(e.to)] + 1,
                     " (counted from 1) is required, but forbidden, tier, roots, leaves or "
                     "regulators exclude it"));
  }
  const auto size = std::ssize(columns_);
  const std::vector<std::int64_t> component = strong_components(Digraph(size, required_));
  for (const Edge& e : required_)
    if (component[static_cast<std::size_t>(e.from)] == component[static_cast<std::size_t>(e.to)])
      refuse(message("the required edges have a cycle, in which is that from column ",
                     columns_[static_cast<std::size_t>(e.from)] + 1, " to column ",
                     columns_[static_cast<std::size_t>(e.to)] + 1,
                     " (counted from 1); the graph of causes has none"));
}

void check(const Knowledge& k, std::int64_t columns) {
  check_edges(k.required, columns, "required");
  check_edges(k.forbidden, columns, "forbidden");
  check_length(std::ssize(k.tier), columns, "tier");
  for (const std::int64_t j : k.roots) check_number(j, columns, "roots");
  for (const std::int64_t j : k.leaves) check_number(j, columns, "leaves");
  for (const std::int64_t j : k.regulators) check_number(j, columns, "regulators");
  check_penalty(k.penalty, columns);
  check_edges(k.start, columns, "start");
  for (const Edge& e : k.start)
    if (!std::isfinite(e.weight))
      refuse(message("start has the weight ", e.weight, " for the edge from column ", e.from + 1,
                     " to column ", e.to + 1, " (counted from 1); it must be finite"));
  std::map<std::pair<std::int64_t, std::int64_t>, double> weight;
  for (const Edge& e : k.start)
    if (const auto [known, is_new] = weight.emplace(std::pair(e.from, e.to), e.weight);
        !is_new && known->second != e.weight)
      refuse(message("start has the weights ", known->second, " and ", e.weight,
                     " for the edge from column ", e.from + 1, " to column ", e.to + 1,
                     " (counted from 1); give every edge one"));
}

void check(const Design& design, std::int64_t rows, std::int64_t columns) {
  check_length(std::ssize(design.weight), rows, "weight");
  check_length(std::ssize(design.batch), rows, "batch");
  std::int64_t n_used = design.weight.empty() ? rows : 0;
  for (std::size_t i = 0; i < design.weight.size(); ++i) {
    const double w = design.weight[i];
    if (!(w >= 0) || !std::isfinite(w))
      refuse(message("weight is ", w, " at row ", i + 1,
                     " (counted from 1); it must be finite and not negative"));
    n_used += w > 0;
  }
  if (n_used < least_rows)
    refuse(message("weight is positive for ", n_used, " rows; at least ", least_rows,
                   " are needed"));
  for (const Perturbation& p : design.perturbed) {
    check_number(p.row, rows, "a row of perturbed");
    check_number(p.column, columns, "a column of perturbed");
  }
}

Matrix equation_weights(std::int64_t rows, std::int64_t columns, const Design& design) {
  if (design.weight.empty() && design.perturbed.empty()) return {};
  double total = 0;
  for (const double w : design.weight) total += w;
  const double mean = total / static_cast<double>(rows);
  Matrix weight(rows, columns);
  for (std::int64_t j = 0; j < columns; ++j)
    for (std::int64_t i = 0; i < rows; ++i)
      weight(i, j) = design.weight.empty() ? 1 : design.weight[static_cast<std::size_t>(i)] / mean;
  for (const Perturbation& p : design.perturbed) weight(p.row, p.column) = 0;
  return weight;
}

namespace {

// The rows of every batch, which are one where none are given.
std::map<std::int64_t, std::vector<std::int64_t>> rows_by_batch(std::int64_t rows,
                                                                const Design& design) {
  std::map<std::int64_t, std::vector<std::int64_t>> of;
  for (std::int64_t i = 0; i < rows; ++i)
    of[design.batch.empty() ? 0 : design.batch[static_cast<std::size_t>(i)]].push_back(i);
  return of;
}

} // namespace

std::vector<std::int64_t> counted_rows(const MatrixView& x, const Design& design,
                                       Missing missing) {
  const double largest = design.weight.empty() ? 1 : std::ranges::max(design.weight);
  std::vector<std::int64_t> rows;
  for (std::int64_t i = 0; i < x.rows; ++i) {
    if (!design.weight.empty() && !(design.weight[static_cast<std::size_t>(i)] / largest >=
                                    std::numeric_limits<double>::min()))
      continue;
    bool any = missing == Missing::fail;
    for (std::int64_t j = 0; j < x.cols && !any; ++j) any = !std::isnan(x(i, j));
    if (any) rows.push_back(i);
  }
  if (std::ssize(rows) < least_rows)
    refuse(message("x has ", rows.size(), " rows with a weight and a value; at least ", least_rows,
                   " are needed"));
  return rows;
}

Matrix of_rows(const MatrixView& x, std::span<const std::int64_t> rows) {
  Matrix out(std::ssize(rows), x.cols);
  for (std::int64_t j = 0; j < x.cols; ++j)
    for (std::int64_t i = 0; i < out.rows(); ++i) out(i, j) = x(rows[static_cast<std::size_t>(i)], j);
  return out;
}

Design of_rows(const Design& design, std::span<const std::int64_t> rows) {
  const auto pick = [rows](const auto& all) {
    std::remove_cvref_t<decltype(all)> some;
    if (!all.empty())
      for (const std::int64_t i : rows) some.push_back(all[static_cast<std::size_t>(i)]);
    return some;
  };
  Design out{pick(design.weight), pick(design.batch), {}};
  // By a power of 2, which changes no ratio: their sum is finite.
  if (!out.weight.empty()) {
    const int exponent = std::ilogb(std::ranges::max(out.weight));
    for (double& w : out.weight) w = std::scalbn(w, -exponent);
    if (std::ranges::min(out.weight) == std::ranges::max(out.weight)) out.weight.clear();
  }
  std::int64_t size = 0;
  for (const Perturbation& p : design.perturbed) size = std::max(size, p.row + 1);
  if (!rows.empty()) size = std::max(size, rows.back() + 1);
  const std::vector<std::int64_t> place = places(size, rows);
  for (const Perturbation& p : design.perturbed)
    if (const std::int64_t row = place[static_cast<std::size_t>(p.row)]; row >= 0)
      out.perturbed.push_back({row, p.column});
  return out;
}

void drop_equations(const MatrixView& x, const Design& design, Matrix& weight) {
  if (weight.empty()) return;
  const auto batches = rows_by_batch(x.rows, design);
  for (std::int64_t j = 0; j < x.cols; ++j) {
    std::int64_t count = 0;
    bool varies = false;
    for (const auto& [batch, rows] : batches) {
      sem::Range range;
      for (const std::int64_t i : rows)
        if (weight(i, j) > 0 && !std::isnan(x(i, j))) {
          range.add(x(i, j));
          ++count;
        }
      varies |= !range.constant();
    }
    if (count < least_rows || !varies) std::fill_n(weight.column(j), x.rows, 0.0);
  }
}

Matrix center_batches(const MatrixView& x, const Design& design) {
  Matrix centered = to_matrix(x);
  for (const auto& [batch, rows] : rows_by_batch(x.rows, design)) {
    if (rows.size() < 2)
      refuse(message("batch ", batch, " has one row only; each needs at least 2"));
    for (std::int64_t j = 0; j < x.cols; ++j) {
      double* value = centered.column(j);
      sem::Range range;
      double total = 0;
      for (const std::int64_t i : rows)
        if (!std::isnan(value[i])) {
          range.add(value[i]);
          total += design.weight.empty() ? 1 : design.weight[static_cast<std::size_t>(i)];
        }
      if (range.constant()) {
        for (const std::int64_t i : rows)
          if (!std::isnan(value[i])) value[i] = 0;
        continue;
      }
      // Twice: the second mean is the rounding of the first. By parts, so that no sum overflows.
      for (int pass = 0; pass < 2; ++pass) {
        double mean = 0;
        for (const std::int64_t i : rows)
          if (!std::isnan(value[i]))
            mean += (design.weight.empty() ? 1 : design.weight[static_cast<std::size_t>(i)]) /
                    total * value[i];
        for (const std::int64_t i : rows) value[i] -= mean;
      }
    }
  }
  return centered;
}

} // namespace cape
