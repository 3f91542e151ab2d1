// What the user knows before Step I: of the graph, as factors of lambda for every possible edge, and
// of the rows, as weights for every value's own equation.
module;
#include "internal/message.hpp"
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <new>
#include <string>
#include <string_view>
#include <typeinfo>
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
    if (e.from == e.to) refuse(message(what, " has an edge from column ", e.from, " to itself"));
  }
}

void check_length(std::int64_t length, std::int64_t expected, std::string_view what) {
  if (length != 0 && length != expected)
    throw Error(Status::dim_mismatch,
                message(what, " has ", length, " values; it must have ", expected, " or none"));
}

void check(const Knowledge& k, std::int64_t columns) {
  check_edges(k.required, columns, "required");
  check_edges(k.forbidden, columns, "forbidden");
  check_length(std::ssize(k.tier), columns, "tier");
  for (const std::int64_t j : k.roots) check_number(j, columns, "roots");
  for (const std::int64_t j : k.leaves) check_number(j, columns, "leaves");
  for (const std::int64_t j : k.regulators) check_number(j, columns, "regulators");
  if (k.penalty.empty()) return;
  if (k.penalty.rows() != columns || k.penalty.cols() != columns)
    throw Error(Status::dim_mismatch,
                message("penalty is ", k.penalty.rows(), " x ", k.penalty.cols(), "; it must be ",
                        columns, " x ", columns, " or empty"));
  for (std::int64_t j = 0; j < columns; ++j)
    for (std::int64_t i = 0; i < columns; ++i)
      if (!(k.penalty(i, j) >= 0) || !std::isfinite(k.penalty(i, j)))
        refuse(message("penalty is ", k.penalty(i, j), " at row ", i + 1, ", column ", j + 1,
                       " (counted from 1); it must be finite and not negative"));
}

bool knows_nothing(const Knowledge& k) {
  return k.required.empty() && k.forbidden.empty() && k.tier.empty() && k.roots.empty() &&
         k.leaves.empty() && k.regulators.empty() && k.penalty.empty();
}

} // namespace

Matrix penalty_factors(const Knowledge& k, std::int64_t columns) {
  check(k, columns);
  if (knows_nothing(k)) return {};
  Matrix factor(columns, columns);
  std::vector<char> is_regulator(static_cast<std::size_t>(columns), k.regulators.empty());
  for (const std::int64_t j : k.regulators) is_regulator[static_cast<std::size_t>(j)] = 1;
  for (std::int64_t j = 0; j < columns; ++j)
    for (std::int64_t i = 0; i < columns; ++i) {
      const std::int64_t from = k.tier.empty() ? -1 : k.tier[static_cast<std::size_t>(i)];
      const std::int64_t to = k.tier.empty() ? -1 : k.tier[static_cast<std::size_t>(j)];
      const bool backwards = from >= 0 && to >= 0 && from > to;
      const bool allowed = is_regulator[static_cast<std::size_t>(i)] && !backwards;
      // 0 is kept for required edges.
      const double penalty =
          k.penalty.empty() ? 1 : std::max(k.penalty(i, j), std::numeric_limits<double>::min());
      factor(i, j) = allowed ? penalty : excluded;
    }
  for (const std::int64_t j : k.roots)
    for (std::int64_t i = 0; i < columns; ++i) factor(i, j) = excluded;
  for (const std::int64_t i : k.leaves)
    for (std::int64_t j = 0; j < columns; ++j) factor(i, j) = excluded;
  for (const Edge& e : k.forbidden) factor(e.from, e.to) = excluded;

  for (const Edge& e : k.required) {
    if (std::isinf(factor(e.from, e.to)))
      refuse(message("the edge from column ", e.from + 1, " to column ", e.to + 1,
                     " (counted from 1) is required, but forbidden, tier, roots, leaves or "
                     "regulators exclude it"));
    factor(e.from, e.to) = 0;
  }
  std::vector<Edge> required = k.required;
  for (Edge& e : required) e.weight = 1;
  if (!is_acyclic(Digraph(columns, std::move(required))))
    refuse("the required edges have a cycle; the graph of causes has none");
  return factor;
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
  if (n_used < 10)
    refuse(message("weight is positive for ", n_used, " rows; at least 10 are needed"));
  for (const Perturbation& p : design.perturbed) {
    check_number(p.row, rows, "a row of perturbed");
    check_number(p.column, columns, "a column of perturbed");
  }
}

Matrix equation_weights(const MatrixView& x, const Design& design, bool any_missing) {
  if (!any_missing && design.weight.empty() && design.perturbed.empty()) return {};
  double total = 0;
  for (const double w : design.weight) total += w;
  const double mean = total / static_cast<double>(x.rows);
  Matrix weight(x.rows, x.cols);
  for (std::int64_t j = 0; j < x.cols; ++j)
    for (std::int64_t i = 0; i < x.rows; ++i) {
      const double w =
          design.weight.empty() ? 1 : design.weight[static_cast<std::size_t>(i)] / mean;
      weight(i, j) = std::isnan(x(i, j)) ? 0 : w;
    }
  for (const Perturbation& p : design.perturbed) weight(p.row, p.column) = 0;
  return weight;
}

Matrix center_batches(const MatrixView& x, const Design& design) {
  Matrix centered = to_matrix(x);
  std::map<std::int64_t, std::vector<std::int64_t>> rows_of;
  for (std::int64_t i = 0; i < x.rows; ++i)
    rows_of[design.batch[static_cast<std::size_t>(i)]].push_back(i);
  for (const auto& [batch, rows] : rows_of) {
    if (rows.size() < 2)
      refuse(message("batch ", batch, " has one row only; each needs at least 2"));
    for (std::int64_t j = 0; j < x.cols; ++j) {
      double sum = 0, total = 0;
      for (const std::int64_t i : rows) {
        const double w = design.weight.empty() ? 1 : design.weight[static_cast<std::size_t>(i)];
        if (std::isnan(x(i, j))) continue;
        sum += w * x(i, j);
        total += w;
      }
      if (total > 0)
        for (const std::int64_t i : rows) centered(i, j) -= sum / total;
    }
  }
  return centered;
}

} // namespace cape
