// The refinement of few columns by regressions of every column on its predecessors (docs/method.md,
// Refinement). The numbers below were tuned on simulated data.
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
#include <map>
#include <new>
#include <numeric>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <typeinfo>
#include <utility>
#include <variant>
#include <vector>
module cape.dag;
#include "dag/edge_lists.hpp"
#include "dag/elimination.hpp"
#include "dag/options.hpp"
#include "dag/order_search.hpp"

namespace cape {
namespace {

constexpr std::int64_t max_sweeps = 6;
constexpr double min_gain = 0.003;

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// Factors of lambda: see EdgeFactors.
bool is_excluded(const Matrix& factor, std::int64_t i, std::int64_t j) {
  return !factor.empty() && std::isinf(factor(i, j));
}
bool is_required(const Matrix& factor, std::int64_t i, std::int64_t j) {
  return !factor.empty() && factor(i, j) == 0;
}

// (i, j): whether i may be a cause of j. Those are the `count` strongest of
// max(|A_ij|, |A_ji|), made symmetric, as far as the factors allow.
BasicMatrix<std::int8_t> candidates(const MatrixView& weights, const Matrix& factor,
                                    std::int64_t count) {
  const std::int64_t m = weights.cols;
  BasicMatrix<std::int8_t> chosen(m, m);
  for (std::int64_t j = 0; j < m; ++j) {
    std::vector<std::pair<double, std::int64_t>> strength;
    for (std::int64_t i = 0; i < m; ++i)
      if (i != j)
        strength.emplace_back(-std::max(std::abs(weights(i, j)), std::abs(weights(j, i))), i);
    std::ranges::sort(strength);
    if (std::ssize(strength) > count) strength.resize(static_cast<std::size_t>(count));
    for (const auto& [negative, i] : strength) chosen(i, j) = chosen(j, i) = 1;
  }
  for (std::int64_t j = 0; j < m; ++j)
    for (std::int64_t i = 0; i < m; ++i) {
      if (is_excluded(factor, i, j)) chosen(i, j) = 0;
      if (is_required(factor, i, j)) chosen(i, j) = 1;
    }
  return chosen;
}

class OrderSearch {
public:
  OrderSearch(const MatrixView& x, const sem::Mask& missing, const MatrixView& weights,
              const Matrix& factor, bool unequal_variances, const DagOptions& options, Run& run,
              Journal* journal)
      : regressions_(x, options, run), missing_(missing), factor_(factor),
        candidates_(candidates(weights, factor, most_partners(options.sem))),
        unequal_variances_(unequal_variances), t_(refine_t_of(options, x.rows)), options_(options),
        run_(run), journal_(journal) {}

  /// Move nodes along the order as long as the score falls.
  void improve(std::vector<std::int64_t>& order);
  /// The causes that every node of an order may have, without those that the tests do not keep.
  TestedGraph eliminate(const std::vector<std::int64_t>& order);

private:
  using Order = std::vector<std::int64_t>;
  Family family(const Order& order, std::size_t position) const;
  bool keeps_required(const Order& order) const;
  static Order moved(Order order, std::int64_t from, std::int64_t to);
  /// Where the node at a place of the order should stand: there, if nothing much is won elsewhere.
  std::int64_t best_place(const Order& order, std::int64_t from);
  void fit(const std::vector<Order>& orders);
  double score(const Order& order) const;
  void report_fits(std::size_t n);

  Regressions regressions_;
  const sem::Mask& missing_;
  const Matrix& factor_;
  BasicMatrix<std::int8_t> candidates_;
  bool unequal_variances_;
  double t_;
  const DagOptions& options_;
  Run& run_;
  Journal* journal_;
  std::map<Family, double> mean_error_;
  std::int64_t n_fits_ = 0;
};

Family OrderSearch::family(const Order& order, std::size_t position) const {
  Family f{order[position], {}};
  for (std::size_t p = 0; p < position; ++p)
    if (candidates_(order[p], f.node)) f.parents.push_back(order[p]);
  std::ranges::sort(f.parents);
  return f;
}

bool OrderSearch::keeps_required(const Order& order) const {
  for (std::size_t p = 0; p < order.size(); ++p)
    for (std::size_t q = p + 1; q < order.size(); ++q)
      if (is_required(factor_, order[q], order[p])) return false;
  return true;
}

void OrderSearch::report_fits(std::size_t n) {
  run_.report({"dag.refine", n_fits_});
  n_fits_ += static_cast<std::int64_t>(n);
}

// Make sure that the score of every order is known.
void OrderSearch::fit(const std::vector<Order>& orders) {
  std::set<Family> missing;
  for (const Order& order : orders)
    for (std::size_t p = 0; p < order.size(); ++p)
      if (Family f = family(order, p); !mean_error_.contains(f)) missing.insert(std::move(f));
  const std::vector<Family> families(missing.begin(), missing.end());
  std::vector<double> error(families.size());
  report_fits(families.size());
  run_.parallel_for(std::ssize(families), [&](std::int64_t i) {
    const auto at = static_cast<std::size_t>(i);
    const std::uint64_t key = regressions_.key("dag.refine.error", families[at]);
    if (const std::optional<double> found = recorded(journal_, key)) {
      error[at] = *found;
    } else {
      error[at] = mean(regressions_.squared_error(families[at]));
      record(journal_, key, error[at]);
    }
  });
  for (std::size_t i = 0; i < families.size(); ++i) mean_error_.emplace(families[i], error[i]);
}

double OrderSearch::score(const Order& order) const {
  double sum = 0;
  for (std::size_t p = 0; p < order.size(); ++p) {
    const double error = mean_error_.at(family(order, p));
    sum += unequal_variances_ ? 0.5 * std::log(std::max(error, std::numeric_limits<double>::min()))
                              : error;
  }
  return sum;
}

void OrderSearch::improve(Order& order) {
  for (std::int64_t sweep = 0; sweep < max_sweeps; ++sweep) {
    bool changed = false;
    for (const std::int64_t node : Order(order)) {
      const std::int64_t from = std::ranges::find(order, node) - order.begin();
      run_.poll();
      std::string text = "dag.refine.move " + std::to_string(from);
      for (const std::int64_t j : order) text += " " + std::to_string(j);
      const std::uint64_t key = hash(text);
      const std::optional<double> found = recorded(journal_, key);
      if (found && !(*found >= 0 && *found < static_cast<double>(order.size())))
        throw Error(Status::invalid_argument,
                    "checkpoint is damaged: it moves a column to place " + std::to_string(*found));
      const std::int64_t to = found ? static_cast<std::int64_t>(*found) : best_place(order, from);
      record(journal_, key, static_cast<double>(to));
      if (to == from) continue;
      order = moved(std::move(order), from, to);
      changed = true;
    }
    if (!changed) break;
  }
}

OrderSearch::Order OrderSearch::moved(Order order, std::int64_t from, std::int64_t to) {
  const std::int64_t node = order[static_cast<std::size_t>(from)];
  order.erase(order.begin() + from);
  order.insert(order.begin() + to, node);
  return order;
}

std::int64_t OrderSearch::best_place(const Order& order, std::int64_t from) {
  const std::int64_t last = std::ssize(order) - 1,
                     reach = search_window(options_, std::ssize(order));
  std::vector<Order> tried{order};
  std::vector<std::int64_t> place{from};
  for (std::int64_t to = std::max<std::int64_t>(0, from - reach);
       to <= std::min(last, from + reach); ++to) {
    if (to == from) continue;
    Order other = moved(order, from, to);
    if (!keeps_required(other)) continue;
    tried.push_back(std::move(other));
    place.push_back(to);
  }
  fit(tried);
  std::vector<double> scores(tried.size());
  std::ranges::transform(tried, scores.begin(), [this](const Order& o) { return score(o); });
  // The sum of squares has the units of the data: it must gain the same part of its mean.
  const double current = scores.front();
  const double gain =
      unequal_variances_ ? min_gain : min_gain * current / static_cast<double>(order.size());
  const auto best = std::min_element(scores.begin() + 1, scores.end());
  if (best == scores.end() || !(*best < current - gain)) return from;
  return place[static_cast<std::size_t>(best - scores.begin())];
}

TestedGraph OrderSearch::eliminate(const Order& order) {
  std::vector<Family> families;
  for (std::size_t p = 0; p < order.size(); ++p) families.push_back(family(order, p));
  return {cape::eliminate(
              std::move(families), regressions_, missing_, t_,
              [this](std::int64_t i, std::int64_t j) { return is_required(factor_, i, j); }, run_,
              journal_, [this](std::size_t fits, std::size_t) { report_fits(fits); }),
          order};
}

} // namespace

TestedGraph refine(const MatrixView& x, const MatrixView& weights, bool unequal_variances,
                   const DagOptions& options, Run& run) {
  return refine(x, {}, weights, Matrix(), unequal_variances, options, run, nullptr);
}

TestedGraph refine(const MatrixView& x, const sem::Mask& missing, const MatrixView& weights,
                   const Matrix& factor, bool unequal_variances, const DagOptions& options,
                   Run& run, Journal* journal) {
  check_observations(x, options);
  check_view(weights, "weights");
  check_finite(weights, "weights");
  if (weights.rows != x.cols || weights.cols != x.cols)
    throw Error(Status::dim_mismatch, "weights is " + std::to_string(weights.rows) + " x " +
                                          std::to_string(weights.cols) + "; x has " +
                                          std::to_string(x.cols) + " columns, so it must be " +
                                          std::to_string(x.cols) + " x " + std::to_string(x.cols));
  Matrix strength = to_matrix(weights);
  for (std::int64_t j = 0; j < x.cols; ++j) strength(j, j) = 0;
  Matrix preference = strength; // required edges first, what can run one way only last
  for (std::int64_t j = 0; j < x.cols; ++j)
    for (std::int64_t i = 0; i < x.cols; ++i) {
      double& p = preference(i, j);
      if (is_required(factor, i, j)) p = required_weight;
      if (is_excluded(factor, i, j)) p = 0;
      if (p == 0 && i != j && is_excluded(factor, j, i) && !is_excluded(factor, i, j))
        p = std::numeric_limits<double>::min();
    }
  run.report({"dag.refine", 0});
  std::vector<std::int64_t> order =
      topological_order(project_acyclic(Digraph::from_adjacency(preference), 0, run).graph);
  OrderSearch search(x, missing, strength, factor, unequal_variances, options, run, journal);
  search.improve(order);
  return search.eliminate(order);
}

} // namespace cape
