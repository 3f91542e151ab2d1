module;
#include "internal/message.hpp"
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <typeinfo>
#include <utility>
#include <variant>
#include <vector>
module cape.dag;
#include "dag/prior.hpp"
#include "dag/row_design.hpp"

namespace cape {
namespace {

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
      refuse(message(what, " has an edge from column ", e.from, " (counted from 0) to itself"));
  }
}

void check_length(std::int64_t length, std::int64_t expected, std::string_view what) {
  if (length != 0 && length != expected)
    throw Error(Status::dim_mismatch,
                message(what, " has ", length, " values; it must have ", expected, " or none"));
}

void check_covariates(const Design& design, std::int64_t rows) {
  const Matrix& c = design.covariates;
  if (c.empty()) return;
  if (c.rows() != rows)
    throw Error(Status::dim_mismatch, message("covariates has ", c.rows(), " rows; it must have ",
                                              rows, ", as the table has, or none"));
  if (c.cols() > rows - least_rows)
    refuse(message("there are ", c.cols(), " covariates, which leave fewer than ", least_rows,
                   " of ", rows, " rows free"));
  for (std::int64_t k = 0; k < c.cols(); ++k)
    for (std::int64_t i = 0; i < rows; ++i)
      if (!(std::fabs(c(i, k)) <= 1e150))
        refuse(message("covariates has ", c(i, k), " in row ", i, ", column ", k,
                       " (counted from 0); values must be finite, at most 1e150"));
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
        refuse(message("penalty is ", penalty(i, j), " for the edge from column ", i, " to column ",
                       j, " (counted from 0); it must be finite and not negative"));
}

} // namespace

void check_knowledge(const Knowledge& k, std::int64_t columns) {
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
      refuse(message("start has the weight ", e.weight, " for the edge from column ", e.from,
                     " to column ", e.to, " (counted from 0); it must be finite"));
  std::map<std::pair<std::int64_t, std::int64_t>, double> weight;
  for (const Edge& e : k.start)
    if (const auto [known, is_new] = weight.emplace(std::pair(e.from, e.to), e.weight);
        !is_new && known->second != e.weight)
      refuse(message("start has the weights ", known->second, " and ", e.weight,
                     " for the edge from column ", e.from, " to column ", e.to,
                     " (counted from 0); give every edge one"));
}

void check_design(const Design& design, std::int64_t rows, std::int64_t columns) {
  check_length(std::ssize(design.weight), rows, "weight");
  check_length(std::ssize(design.batch), rows, "batch");
  check_covariates(design, rows);
  std::int64_t n_used = design.weight.empty() ? rows : 0;
  for (std::size_t i = 0; i < design.weight.size(); ++i) {
    const double w = design.weight[i];
    if (!(w >= 0) || !std::isfinite(w))
      refuse(message("weight is ", w, " at row ", i,
                     " (counted from 0); it must be finite and not negative"));
    n_used += w > 0;
  }
  if (n_used < least_rows)
    refuse(
        message("weight is positive for ", n_used, " rows; at least ", least_rows, " are needed"));
  for (const Perturbation& p : design.perturbed) {
    check_number(p.row, rows, "a row of perturbed");
    check_number(p.column, columns, "a column of perturbed");
  }
  for (const Perturbation& p : design.targeted) {
    check_number(p.row, rows, "a row of targeted");
    check_number(p.column, columns, "a column of targeted");
  }
}

} // namespace cape
