// What learn_dag() needs of memory and time.
module;
#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <span>
#include <typeinfo>
#include <variant>
#include <vector>
module cape.dag;
#include "dag/bags.hpp"
#include "dag/cost.hpp"
#include "dag/low_rank.hpp"
#include "dag/options.hpp"
#include "dag/partners.hpp"
#include "dag/screening.hpp"
#include "dag/support.hpp"
#include "dag/threshold.hpp"
#include "dag/training_plan.hpp"

namespace cape {
namespace {

// Seconds per unit of work on one core of a present server CPU with AVX-512, fitted to timed runs;
// in double, and half of it in float.
constexpr double per_product = 1.0 / 60e9; // a floating point operation in a minibatch's products
constexpr double per_measure = 1.0 / 40e9; // the same in the M x M products of h and its gradient
constexpr double per_sigmoid = 2e-9;       // a hidden unit, forward and backward
constexpr double per_regression = 1.4e-9;  // a row, hidden unit and candidate, over all regressions

double real(std::int64_t count) { return static_cast<double>(count); }

// As sem::screen() does it, in float.
double screening_seconds(std::int64_t rows, std::int64_t columns) {
  return real(sem::screening_products()) * 2 * real(sem::screened_rows(rows, columns)) *
         real(columns) * real(columns) * per_product / 2;
}

double training_seconds(std::int64_t rows, std::int64_t columns, std::int64_t inputs,
                        const DagOptions& options) {
  const sem::TrainingPlan plan(rows, columns, options);
  const double m = real(columns), p = real(inputs), r = real(options.rank);
  // Five products with U or V and the pull of h; h from products of pairs of their columns.
  if (options.rank > 0) {
    const double pairs = r * (r + 1) / 2;
    const double measure = pairs < m ? 6 * m * pairs * pairs + 20 * pairs * pairs * pairs
                                     : 4 * m * m * pairs + 20 * m * m * m;
    return real(plan.steps) * (10 * real(plan.batch_rows) * r + 8 * pairs) * m * per_product +
           real(plan.renewals()) * measure * per_measure;
  }
  const double hidden = options.sem == Sem::linear ? 1 : real(options.hidden);
  const double units = real(plan.batch_rows) * m * hidden;
  return (trains_in_float(options) ? 0.5 : 1) *
         (real(plan.steps) * units * (4 * p * per_product + per_sigmoid) +
          real(plan.renewals()) * 20 * m * m * p * per_measure);
}

// A column has 10 partners, made symmetric where the order is searched for: some 20, and more in
// hubs, whose elimination takes the square of their number. Fewer rows are fitted in more folds.
// Least squares take seconds.
double refinement_seconds(std::int64_t rows, std::int64_t columns, const DagOptions& options) {
  if (options.sem == Sem::linear) return 0;
  const auto seconds = [&](std::int64_t fitted_rows, std::int64_t effects, double regressions) {
    return per_regression * real(fitted_rows * (refinement_folds(fitted_rows) - 1)) *
           real(effects) * regressions * real(options.refine_epochs) * real(options.refine_hidden);
  };
  if (refines(options, columns))
    return seconds(rows, columns,
                   searches_order(options, rows, columns) ? std::min(real(columns), 40.0) : 4);
  if (tests_sample(options, columns))
    return seconds(std::min(rows, sampled_rows), sampled_effects, 4);
  return 0;
}

} // namespace

double table_bytes(std::int64_t rows, std::int64_t columns) {
  return 2 * 8 * real(rows) * real(columns);
}

double learn_dag_memory(std::int64_t rows, std::int64_t columns, const DagOptions& options_in) {
  DagOptions options = options_in;
  check_options(fields(options));
  checked_size(rows, columns, "the table");
  sem::check_low_rank(columns, {}, options);
  const double m = real(columns);
  const double inputs = real(inputs_of_effect(options, columns));
  const bool packed = inputs < m;
  const double units = options.sem == Sem::mlp ? real(options.hidden) : 1;
  const double number = trains_in_float(options) ? sizeof(float) : sizeof(double);
  // Signs take 256 rows.
  const double batch = real(std::min(rows, std::max<std::int64_t>(options.batch_size, 256)));
  if (options.rank > 0)
    return table_bytes(rows, columns) +
           std::max({sem::low_rank_memory(columns, batch, options.rank),
                     sem::support_memory(rows, columns), sem::partners_memory(rows, columns)});
  // Beside the tables, three float ones while candidates are chosen; or the weights, their gradient
  // and two moments, the minibatch with its units and residuals, and the matrices of h, which the
  // result replaces.
  const double screening = packed ? 4 * 3 * real(sem::screened_rows(rows, columns)) * m : 0;
  const double training = number * (4 * units * m * inputs + batch * m * (units + 2)) +
                          (packed ? 5 * 8 : 2 * 8 + 6 * number) * m * inputs;
  // The factors of the penalty, in either precision; before them, columns and their squares, in
  // float, of the rows that they look at, and the values in double. What bags have in common.
  const double factors = (8 + number) * m * inputs;
  const double associations = (2 * 4 + 8) * real(sem::screened_rows(rows, columns)) * m;
  const double sums = sem::bag_count(options, rows, columns) > 0 ? 3 * 8 * m * m : 0;
  return table_bytes(rows, columns) + sums +
         std::max({screening, associations + factors, training + factors,
                   sem::support_memory(rows, columns), sem::partners_memory(rows, columns)});
}

double learn_dag_seconds(std::int64_t rows, std::int64_t columns, const DagOptions& options_in) {
  DagOptions options = options_in;
  check_options(fields(options));
  checked_size(rows, columns, "the table");
  sem::check_low_rank(columns, {}, options);
  if (rows == 0 || columns == 0) return 0;
  const std::int64_t inputs = inputs_of_effect(options, columns);
  double training = 0;
  if (const std::int64_t bags = sem::bag_count(options, rows, columns); bags > 0) {
    DagOptions of_bag = options;
    of_bag.epochs = sem::bag_epochs(options);
    training = real(bags) * training_seconds(sem::bag_rows(rows), columns, inputs, of_bag);
  } else {
    training = training_seconds(rows, columns, inputs, options);
  }
  return (inputs < columns ? screening_seconds(rows, columns) : 0) + training +
         sem::support_operations(rows, columns) * per_product +
         sem::partners_operations(rows, columns, inputs) * per_product / 2 +
         refinement_seconds(rows, columns, options);
}

} // namespace cape
