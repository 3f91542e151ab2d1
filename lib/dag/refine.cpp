// Refinement of a learned graph by regressions of every column on its predecessors: well-trained
// networks, or least squares for sem linear (docs/method.md, Refinement). The numbers below were
// tuned on simulated data.
module;
#include "internal/arma.hpp"
#include "internal/message.hpp"
#include "dag/kernels/node_regression.hpp"
#include <algorithm>
#include <cmath>
#include <compare>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <new>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <typeinfo>
#include <utility>
#include <vector>
module cape.dag;
import cape.core;
import cape.graph;
#include "dag/regressions.hpp"

namespace cape {
namespace {

constexpr std::int64_t max_sweeps = 6;
constexpr double min_gain = 0.003;

// Positions to either side that the search tries for a column.
std::int64_t window(const DagOptions& options, std::int64_t columns) {
  if (options.refine_window >= 0) return options.refine_window;
  return options.sem == Sem::linear ? columns : 3;
}

// What the journal, which may be null, has under this key.
std::optional<double> known(const Journal* journal, std::uint64_t key) {
  return journal ? journal->find(key) : std::nullopt;
}
// A checkpoint holds finite numbers alone.
void note(Journal* journal, std::uint64_t key, double value) {
  if (journal && std::isfinite(value)) journal->add(key, value);
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// The squared error beyond which a row counts as an outlier: for normal errors that of three
// standard deviations, by their 95 % quantile (3.8415 is that of a squared standard normal
// variable). A lower quantile would be that of the many zeros of sparse counts.
double outlier_limit(std::vector<double> squared_error) {
  const auto quantile = squared_error.begin() + std::ssize(squared_error) * 95 / 100;
  std::ranges::nth_element(squared_error, quantile);
  return 9 * *quantile / 3.8415;
}

// t of the paired differences without - with, of errors up to a limit; 0 where they do not vary. By a
// power of 2, which changes no bit of t, the differences are such that squares neither overflow nor
// vanish.
double paired_t(const std::vector<double>& without, const std::vector<double>& with, double limit) {
  const double n = static_cast<double>(with.size());
  const auto unscaled = [&](std::size_t r) {
    return std::min(without[r], limit) - std::min(with[r], limit);
  };
  double largest = 0;
  for (std::size_t r = 0; r < with.size(); ++r) largest = std::max(largest, std::fabs(unscaled(r)));
  if (largest == 0) return 0;
  const int exponent = std::ilogb(largest);
  const auto difference = [&](std::size_t r) { return std::scalbn(unscaled(r), -exponent); };
  double shift = 0, sum = 0;
  for (std::size_t r = 0; r < with.size(); ++r) shift += difference(r);
  shift /= n;
  for (std::size_t r = 0; r < with.size(); ++r) {
    const double d = difference(r) - shift;
    sum += d * d;
  }
  return sum > 0 ? shift / std::sqrt(sum / (n - 1) / n) : 0;
}

// An effect may be one of large values alone, or be hidden by a few outliers: the larger t counts,
// of the errors as they are and up to the limit of an outlier.
double effect_t(const std::vector<double>& without, const std::vector<double>& with) {
  if (std::ssize(with) < least_rows) return 0; // of columns with missing values
  return std::max(paired_t(without, with, std::numeric_limits<double>::infinity()),
                  paired_t(without, with, outlier_limit(with)));
}

// The errors of the rows where neither end of an edge is missing: what was drawn is as much a function
// of the other end as the draw made it.
std::vector<double> where_known(const std::vector<double>& errors, const Regressions& regressions,
                                const sem::Mask& missing, std::int64_t from, std::int64_t to) {
  if (missing.empty()) return errors;
  std::vector<double> known;
  for (std::int64_t i = 0; i < std::ssize(errors); ++i)
    if (const std::int64_t row = regressions.row(i); !missing(row, from) && !missing(row, to))
      known.push_back(errors[static_cast<std::size_t>(i)]);
  return known;
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

// Backward elimination of causes, for all families at once; those that are required stay. report
// gets the number of regressions that come next, and of families that may still lose a cause.
Elimination eliminate_from(std::vector<Family> open, const Regressions& regressions,
                           const sem::Mask& missing, double least_t,
                           const std::function<bool(std::int64_t, std::int64_t)>& required,
                           Run& run, Journal* journal,
                           const std::function<void(std::size_t, std::size_t)>& report) {
  // Only families that may still lose a parent stay open.
  std::erase_if(open, [](const Family& f) { return f.parents.empty(); });
  std::vector<std::vector<double>> error(open.size()); // empty until a trial needs it

  struct Trial {
    std::size_t of; // which of the open families
    Family without;
    std::int64_t parent;
    std::uint64_t key;
    std::vector<double> error; // empty if the journal knows t
    double t;
  };
  const auto test = [&](Trial& trial) {
    trial.error = regressions.squared_error(trial.without);
    const auto errors = [&](const std::vector<double>& of_all) {
      return where_known(of_all, regressions, missing, trial.parent, trial.without.node);
    };
    trial.t = effect_t(errors(trial.error), errors(error[trial.of]));
    note(journal, trial.key, trial.t);
  };
  std::map<std::pair<std::int64_t, std::int64_t>, double> statistic; // 0 where not tested
  Elimination result;
  while (!open.empty()) {
    std::vector<Trial> trials;
    for (std::size_t o = 0; o < open.size(); ++o)
      for (const std::int64_t parent : open[o].parents) {
        if (required(parent, open[o].node)) continue;
        Family without = open[o];
        std::erase(without.parents, parent);
        Family tested = without; // the one that is left out comes last
        tested.parents.push_back(parent);
        const std::uint64_t key = regressions.key("dag.refine.t", tested);
        trials.push_back({o, std::move(without), parent, key, {}, 0});
      }
    // The first trial of a family comes with the family's own error, so that with every two
    // regressions something is done that need not be done again.
    std::vector<Trial*> first, others;
    std::vector<bool> begun(open.size());
    for (Trial& trial : trials) {
      const std::size_t o = trial.of;
      if (const std::optional<double> t = known(journal, trial.key)) {
        trial.t = *t;
      } else if (error[o].empty() && !begun[o]) {
        begun[o] = true;
        first.push_back(&trial);
      } else {
        others.push_back(&trial);
      }
    }
    report(2 * first.size() + others.size(), open.size());
    run.parallel_for(std::ssize(first), [&](std::int64_t i) {
      Trial& trial = *first[static_cast<std::size_t>(i)];
      error[trial.of] = regressions.squared_error(open[trial.of]);
      test(trial);
    });
    run.parallel_for(std::ssize(others),
                     [&](std::int64_t i) { test(*others[static_cast<std::size_t>(i)]); });

    std::vector<Trial*> weakest(open.size(), nullptr);
    for (Trial& trial : trials) {
      statistic[{trial.parent, trial.without.node}] = trial.t;
      Trial*& w = weakest[trial.of];
      if (w == nullptr || trial.t < w->t) w = &trial;
    }
    std::vector<Family> next;
    std::vector<std::vector<double>> next_error;
    for (std::size_t o = 0; o < open.size(); ++o) {
      if (weakest[o] == nullptr || !(weakest[o]->t < least_t)) {
        for (const std::int64_t parent : open[o].parents)
          result.kept.push_back({parent, open[o].node, statistic[{parent, open[o].node}]});
      } else if (!weakest[o]->without.parents.empty()) {
        next.push_back(std::move(weakest[o]->without));
        next_error.push_back(std::move(weakest[o]->error));
      }
    }
    open = std::move(next);
    error = std::move(next_error);
  }
  std::ranges::sort(result.kept, {}, [](const Edge& e) { return std::pair(e.from, e.to); });
  for (const auto& [ends, t] : statistic) result.tested.push_back({ends.first, ends.second, t});
  return result;
}

class Search {
public:
  Search(const MatrixView& x, const sem::Mask& missing, const MatrixView& weights,
         const Matrix& factor, bool unequal_variances, const DagOptions& options, Run& run,
         Journal* journal)
      : regressions_(x, options, run), missing_(missing), factor_(factor),
        candidates_(candidates(weights, factor, most_partners(options.sem))),
        unequal_variances_(unequal_variances), t_(refinement_t(options, x.rows)), options_(options),
        run_(run), journal_(journal) {}

  /// Move nodes along the order as long as the score falls.
  void improve(std::vector<std::int64_t>& order);
  /// The causes that every node of an order may have, without those that the tests do not keep.
  Refinement eliminate(const std::vector<std::int64_t>& order);

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

Family Search::family(const Order& order, std::size_t position) const {
  Family f{order[position], {}};
  for (std::size_t p = 0; p < position; ++p)
    if (candidates_(order[p], f.node)) f.parents.push_back(order[p]);
  std::ranges::sort(f.parents);
  return f;
}

bool Search::keeps_required(const Order& order) const {
  for (std::size_t p = 0; p < order.size(); ++p)
    for (std::size_t q = p + 1; q < order.size(); ++q)
      if (is_required(factor_, order[q], order[p])) return false;
  return true;
}

void Search::report_fits(std::size_t n) {
  run_.report({"dag.refine", n_fits_});
  n_fits_ += static_cast<std::int64_t>(n);
}

// Make sure that the score of every order is known.
void Search::fit(const std::vector<Order>& orders) {
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
    if (const std::optional<double> found = known(journal_, key)) {
      error[at] = *found;
    } else {
      error[at] = mean(regressions_.squared_error(families[at]));
      note(journal_, key, error[at]);
    }
  });
  for (std::size_t i = 0; i < families.size(); ++i) mean_error_.emplace(families[i], error[i]);
}

double Search::score(const Order& order) const {
  double sum = 0;
  for (std::size_t p = 0; p < order.size(); ++p) {
    const double error = mean_error_.at(family(order, p));
    sum += unequal_variances_ ? 0.5 * std::log(std::max(error, std::numeric_limits<double>::min()))
                              : error;
  }
  return sum;
}

void Search::improve(Order& order) {
  for (std::int64_t sweep = 0; sweep < max_sweeps; ++sweep) {
    bool changed = false;
    for (const std::int64_t node : Order(order)) {
      const std::int64_t from = std::ranges::find(order, node) - order.begin();
      run_.poll();
      std::string text = "dag.refine.move " + std::to_string(from);
      for (const std::int64_t j : order) text += " " + std::to_string(j);
      const std::uint64_t key = hash(text);
      const std::optional<double> found = known(journal_, key);
      if (found && !(*found >= 0 && *found < static_cast<double>(order.size())))
        throw Error(Status::invalid_argument,
                    "checkpoint is damaged: it moves a column to place " + std::to_string(*found));
      const std::int64_t to = found ? static_cast<std::int64_t>(*found) : best_place(order, from);
      note(journal_, key, static_cast<double>(to));
      if (to == from) continue;
      order = moved(std::move(order), from, to);
      changed = true;
    }
    if (!changed) break;
  }
}

Search::Order Search::moved(Order order, std::int64_t from, std::int64_t to) {
  const std::int64_t node = order[static_cast<std::size_t>(from)];
  order.erase(order.begin() + from);
  order.insert(order.begin() + to, node);
  return order;
}

std::int64_t Search::best_place(const Order& order, std::int64_t from) {
  const std::int64_t last = std::ssize(order) - 1, reach = window(options_, std::ssize(order));
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

Refinement Search::eliminate(const Order& order) {
  std::vector<Family> families;
  for (std::size_t p = 0; p < order.size(); ++p) families.push_back(family(order, p));
  Elimination found = eliminate_from(
      std::move(families), regressions_, missing_, t_,
      [this](std::int64_t i, std::int64_t j) { return is_required(factor_, i, j); }, run_, journal_,
      [this](std::size_t fits, std::size_t) { report_fits(fits); });
  Refinement result{Matrix(std::ssize(order), std::ssize(order)), std::move(found.kept), order};
  for (const Edge& e : found.tested) result.statistic(e.from, e.to) = e.weight;
  return result;
}

void check_observations(const MatrixView& x, const DagOptions& options) {
  check_view(x, "x");
  check_finite(x, "x");
  if (x.rows < 10 || x.cols < 1)
    throw Error(Status::invalid_argument, "x is " + std::to_string(x.rows) + " x " +
                                              std::to_string(x.cols) +
                                              "; it must have at least 10 rows and 1 column");
  for (std::int64_t j = 0; j < x.cols; ++j) {
    sem::Range range;
    for (std::int64_t i = 0; i < x.rows; ++i) range.add(x(i, j));
    if (range.constant())
      throw Error(Status::invalid_argument,
                  message("x: column ", j + 1, " (counted from 1) does not vary, but for rounding; "
                          "leave it out"));
  }
  DagOptions copy = options;
  check_options(fields(copy));
}

} // namespace

bool searches_order(const DagOptions& options, std::int64_t columns) {
  constexpr std::int64_t limit = 100; // it takes a minute or two there
  return columns <= limit || options.refine_window > 0;
}

std::int64_t most_partners(Sem sem) { return sem == Sem::linear ? 30 : 10; }

std::vector<double> cross_fitted_error(const MatrixView& x, std::int64_t target,
                                       std::span<const std::int64_t> parents,
                                       const DagOptions& options, Run& run) {
  check_observations(x, options);
  const auto check_column = [&](std::int64_t j, const std::string& name) {
    if (j < 0 || j >= x.cols)
      throw Error(Status::invalid_argument, name + " is " + std::to_string(j) +
                                                "; it must lie in [0, " + std::to_string(x.cols) +
                                                ")");
  };
  check_column(target, "target");
  Family family{target, {parents.begin(), parents.end()}};
  for (const std::int64_t parent : parents) check_column(parent, "an element of parents");
  std::ranges::sort(family.parents);
  if (std::ranges::adjacent_find(family.parents) != family.parents.end() ||
      std::ranges::binary_search(family.parents, target))
    throw Error(Status::invalid_argument, "parents has an element twice, or has the target " +
                                              std::to_string(target) +
                                              "; they must be different columns");

  const Regressions regressions(x, options, run);
  const std::vector<double> error = regressions.squared_error(family);
  std::vector<double> by_row(error.size());
  for (std::int64_t i = 0; i < x.rows; ++i)
    by_row[static_cast<std::size_t>(regressions.row(i))] = error[static_cast<std::size_t>(i)];
  return by_row;
}

// Regressions on few rows are short of them, and more folds leave them more: nine tenths instead of
// half. The cost stays below that of 5,000 rows in two folds.
std::int64_t refinement_folds(std::int64_t rows) {
  return std::clamp<std::int64_t>(1 + 5000 / rows, 2, 10);
}

double refinement_t(const DagOptions& options, std::int64_t rows) {
  if (!std::isnan(options.refine_t)) return options.refine_t;
  return std::max(1.0, 3.04 - 200 / static_cast<double>(rows));
}

Refinement refine(const MatrixView& x, const MatrixView& weights, bool unequal_variances,
                  const DagOptions& options, Run& run) {
  return refine(x, {}, weights, Matrix(), unequal_variances, options, run, nullptr);
}

Refinement refine(const MatrixView& x, const sem::Mask& missing, const MatrixView& weights,
                  const Matrix& factor, bool unequal_variances, const DagOptions& options, Run& run,
                  Journal* journal) {
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
  Search search(x, missing, strength, factor, unequal_variances, options, run, journal);
  search.improve(order);
  return search.eliminate(order);
}

Elimination eliminate(const MatrixView& x, const sem::Mask& missing,
                      const std::vector<std::vector<std::int64_t>>& causes,
                      const std::vector<Edge>& required, const DagOptions& options, Run& run,
                      Journal* journal, const std::function<void(std::size_t)>& report) {
  std::vector<Family> families;
  for (std::size_t j = 0; j < causes.size(); ++j)
    families.push_back({static_cast<std::int64_t>(j), causes[j]});
  std::set<std::pair<std::int64_t, std::int64_t>> stays;
  for (const Edge& e : required) stays.emplace(e.from, e.to);
  return eliminate_from(
      std::move(families), Regressions(x, options, run), missing, refinement_t(options, x.rows),
      [&](std::int64_t i, std::int64_t j) {
        return stays.contains({i, j});
      },
      run, journal, [&](std::size_t, std::size_t open) { report(open); });
}

} // namespace cape
