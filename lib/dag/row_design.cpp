module;
#include "internal/message.hpp"
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <new>
#include <set>
#include <span>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <variant>
#include <vector>
module cape.dag;
#include "dag/edge_lists.hpp"
#include "dag/range.hpp"
#include "dag/row_design.hpp"
#include "dag/row_source.hpp"

namespace cape {
namespace {

[[noreturn]] void refuse(const std::string& text) { throw Error(Status::invalid_argument, text); }

} // namespace

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

std::map<std::int64_t, std::vector<std::int64_t>> rows_by_batch(const Design& design,
                                                                std::int64_t rows) {
  std::map<std::int64_t, std::vector<std::int64_t>> of;
  for (std::int64_t i = 0; i < rows; ++i)
    of[design.batch.empty() ? 0 : design.batch[static_cast<std::size_t>(i)]].push_back(i);
  return of;
}

std::vector<std::int64_t> counted_rows(const MatrixView& x, const Design& design, Missing missing) {
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

Design design_of_rows(const Design& design, std::span<const std::int64_t> rows) {
  const auto pick = [rows](const auto& all) {
    std::remove_cvref_t<decltype(all)> some;
    if (!all.empty())
      for (const std::int64_t i : rows) some.push_back(all[static_cast<std::size_t>(i)]);
    return some;
  };
  Design out{pick(design.weight), pick(design.batch), {}, {}, {}};
  if (!design.covariates.empty()) out.covariates = rows_of(design.covariates, rows);
  // By a power of 2, which changes no ratio: their sum is finite.
  if (!out.weight.empty()) {
    const int exponent = std::ilogb(std::ranges::max(out.weight));
    for (double& w : out.weight) w = std::scalbn(w, -exponent);
    if (std::ranges::min(out.weight) == std::ranges::max(out.weight)) out.weight.clear();
  }
  std::int64_t size = 0;
  for (const Perturbation& p : design.perturbed) size = std::max(size, p.row + 1);
  if (!rows.empty()) size = std::max(size, rows.back() + 1);
  const std::vector<std::int64_t> place = inverse_numbering(size, rows);
  for (const Perturbation& p : design.perturbed)
    if (const std::int64_t row = place[static_cast<std::size_t>(p.row)]; row >= 0)
      out.perturbed.push_back({row, p.column});
  return out;
}

void drop_equations(const MatrixView& x, const Design& design, Matrix& weight) {
  if (weight.empty()) return;
  const auto batches = rows_by_batch(design, x.rows);
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

std::vector<double> centering_weights(std::span<const std::int64_t> rows, std::int64_t column,
                                      const Matrix& weight, const Design& design) {
  std::vector<double> own, of_rows;
  for (const std::int64_t i : rows) {
    own.push_back(weight.empty() ? 1 : weight(i, column));
    of_rows.push_back(design.weight.empty() ? 1 : design.weight[static_cast<std::size_t>(i)]);
  }
  return std::ranges::any_of(own, [](double w) { return w > 0; }) ? own : of_rows;
}

Matrix center_batches(const MatrixView& x, const Matrix& weight, const Design& design) {
  Matrix centered = to_matrix(x);
  for (const auto& [batch, all] : rows_by_batch(design, x.rows)) {
    if (all.size() < 2)
      refuse(message("batch ", batch, " has one row only; each needs at least 2"));
    for (std::int64_t j = 0; j < x.cols; ++j) {
      double* value = centered.column(j);
      std::vector<std::int64_t> rows;
      for (const std::int64_t i : all)
        if (!std::isnan(value[i])) rows.push_back(i);
      const std::vector<double> w = centering_weights(rows, j, weight, design);
      sem::Range range;
      double total = 0;
      for (std::size_t r = 0; r < rows.size(); ++r) {
        if (w[r] > 0) range.add(value[rows[r]]);
        total += w[r];
      }
      if (range.constant()) {
        for (std::size_t r = 0; r < rows.size(); ++r)
          value[rows[r]] = w[r] > 0 ? 0 : value[rows[r]] - range.low;
        continue;
      }
      // Twice: the second mean is the rounding of the first. By parts, so that no sum overflows.
      for (int pass = 0; pass < 2; ++pass) {
        double mean = 0;
        for (std::size_t r = 0; r < rows.size(); ++r) mean += w[r] / total * value[rows[r]];
        for (const std::int64_t i : rows) value[i] -= mean;
      }
    }
  }
  return centered;
}

} // namespace cape
