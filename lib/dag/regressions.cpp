// Cross-fitted regressions: well-trained networks, or least squares for sem linear (docs/method.md,
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
#include <span>
#include <string>
#include <string_view>
#include <typeinfo>
#include <utility>
#include <variant>
#include <vector>
module cape.dag;
import cape.optim;
#include "dag/options.hpp"
#include "dag/range.hpp"
#include "dag/regressions.hpp"

namespace cape {
namespace {

constexpr double peak_rate = 0.08, final_rate = 0.01; // the second as a fraction of the first
constexpr std::int64_t largest_batch = 64;

} // namespace

Regressions::Regressions(const MatrixView& x, const DagOptions& options, Run& run)
    : rows_(x.rows), folds_(refinement_folds(x.rows)), hidden_(options.refine_hidden),
      epochs_(options.refine_epochs), run_(run),
      row_(Rng(run.seed(), {hash("dag.refine.folds")}).permutation(x.rows)),
      scaled_(static_cast<std::size_t>(x.rows * x.cols)) {
  std::vector<double> column(static_cast<std::size_t>(rows_));
  for (std::int64_t j = 0; j < x.cols; ++j) {
    run.poll();
    for (std::int64_t i = 0; i < rows_; ++i) column[static_cast<std::size_t>(i)] = x(i, j);
    id_.push_back(hash(column));
    const double n = static_cast<double>(rows_);
    const double mean = std::accumulate(column.begin(), column.end(), 0.0) / n;
    double sum = 0;
    for (const double value : column) sum += (value - mean) * (value - mean);
    const double variance = sum / n, sd = std::sqrt(variance);
    if (!(sd > 0) || !(sd < 1e150)) // squares of errors are in the range of double
      throw Error(Status::invalid_argument,
                  message("x: column ", j, " (counted from 0) has the standard deviation ", sd,
                          "; it must be positive and below 1e150"));
    mean_.push_back(mean);
    variance_.push_back(variance);
    float* out = scaled_.data() + j * rows_;
    for (const std::int64_t i : row_)
      *out++ = static_cast<float>((column[static_cast<std::size_t>(i)] - mean) / sd);
  }
  if (options.sem == Sem::linear) {
    for (std::int64_t fold = 0; fold < folds_; ++fold) products_.push_back(products(fold));
    arma::mat all = products_[0];
    for (std::size_t fold = 1; fold < products_.size(); ++fold) all += products_[fold];
    for (arma::mat& of_fold : products_) of_fold = all - of_fold;
  }
}

// By plain sums, whose bits do not depend on where a column stands.
arma::mat Regressions::products(std::int64_t fold) const {
  const std::int64_t m = std::ssize(id_);
  const std::vector<float> ones(static_cast<std::size_t>(rows_), 1.0F);
  const auto start = [&](std::int64_t j) {
    return (j < m ? column(j) : ones.data()) + first(fold);
  };
  arma::mat sums(static_cast<arma::uword>(m + 1), static_cast<arma::uword>(m + 1));
  run_.parallel_for(m + 1, [&](std::int64_t j) {
    run_.poll();
    for (std::int64_t i = 0; i <= j; ++i)
      sums(static_cast<arma::uword>(i), static_cast<arma::uword>(j)) =
          std::inner_product(start(i), start(i) + size(fold), start(j), 0.0,
                             std::plus<>(), std::multiplies<double>());
  });
  return arma::symmatu(sums);
}

void Regressions::initialize(simd::NodeRegression& net, const Family& family,
                             std::int64_t fold) const {
  const std::uint64_t target = id_[static_cast<std::size_t>(family.node)];
  const auto stream = [&](std::string_view what, std::uint64_t input) {
    return Rng(run_.seed(), {hash(what), target, static_cast<std::uint64_t>(fold), input});
  };
  const auto n_inputs = static_cast<std::int64_t>(family.parents.size());
  float* p = net.parameters();
  for (std::int64_t i = 0; i < n_inputs; ++i) {
    const std::int64_t parent = family.parents[static_cast<std::size_t>(i)];
    Rng rng = stream("dag.refine.weight", id_[static_cast<std::size_t>(parent)]);
    const double sd = 1 / std::sqrt(static_cast<double>(n_inputs));
    for (std::int64_t k = 0; k < hidden_; ++k)
      p[net.weight(i, k)] = static_cast<float>(sd * rng.normal());
  }
  Rng rng = stream("dag.refine.unit", 0);
  const double output_sd = 0.3 / std::sqrt(static_cast<double>(hidden_));
  for (std::int64_t k = 0; k < hidden_; ++k) {
    p[net.weight(n_inputs, k)] = static_cast<float>(0.5 * rng.normal());
    p[net.output(k)] = static_cast<float>(output_sd * rng.normal());
  }
}

void Regressions::train(simd::NodeRegression& net, const float* table, const float* target,
                        std::int64_t fold) const {
  const std::int64_t n = rows_ - size(fold);
  const std::int64_t batch = std::min(largest_batch, n);
  const std::int64_t n_steps = (epochs_ * n + batch - 1) / batch;
  constexpr std::int64_t between_polls = 64;
  const optim::CosineSchedule schedule(n_steps, final_rate);
  optim::StridedMinibatches batches( // the rows are in random order
      n, batch, Rng(run_.seed(), {hash("dag.refine.batches"), static_cast<std::uint64_t>(fold)}));
  std::vector<std::int64_t> rows(static_cast<std::size_t>(batch));
  for (std::int64_t step = 0; step < n_steps; ++step) {
    if (step % between_polls == 0) run_.poll();
    std::ranges::transform(batches.next(), rows.begin(), [&](std::int64_t row) {
      return row < first(fold) ? row : row + size(fold);
    });
    net.step(table, target, rows.data(), batch, peak_rate * schedule(step));
  }
}

namespace {

// A table of observations of the family's parents, `column(j)` holding those of column j.
template <class Column>
simd::Aligned<float> observations(const Family& family, std::int64_t rows, std::int64_t stride,
                                 Column column) {
  simd::Aligned<float> table(rows * stride);
  table.fill(0);
  const auto n_inputs = static_cast<std::int64_t>(family.parents.size());
  for (std::int64_t i = 0; i < n_inputs; ++i) {
    const auto& input = column(family.parents[static_cast<std::size_t>(i)]);
    for (std::int64_t r = 0; r < rows; ++r) table.data()[r * stride + i] = input[r];
  }
  for (std::int64_t r = 0; r < rows; ++r) table.data()[r * stride + n_inputs] = 1;
  return table;
}

} // namespace

Regressions::Fit Regressions::fit_networks(const Family& family) const {
  const auto n_inputs = static_cast<std::int64_t>(family.parents.size());
  const std::int64_t stride = simd::NodeRegression(n_inputs, hidden_).stride();
  const simd::Aligned<float> table =
      observations(family, rows_, stride, [this](std::int64_t j) { return column(j); });
  const float* target = column(family.node);
  std::vector<float> fitted(static_cast<std::size_t>(rows_));
  Fit fit;
  for (std::int64_t fold = 0; fold < folds_; ++fold) {
    simd::NodeRegression& net = fit.networks.emplace_back(n_inputs, hidden_);
    initialize(net, family, fold);
    train(net, table.data(), target, fold);
    net.predict(table.data() + first(fold) * stride, size(fold), fitted.data() + first(fold));
  }
  fit.held_out.assign(fitted.begin(), fitted.end());
  return fit;
}

Regressions::Fit Regressions::fit_least_squares(const Family& family) const {
  arma::uvec inputs = arma::conv_to<arma::uvec>::from(family.parents);
  inputs.insert_rows(inputs.n_elem, 1);
  inputs.tail(1) = static_cast<arma::uword>(std::ssize(id_)); // the constant
  const arma::uvec target{static_cast<arma::uword>(family.node)};
  Fit fit;
  fit.held_out.resize(static_cast<std::size_t>(rows_));
  for (std::int64_t fold = 0; fold < folds_; ++fold) {
    const arma::mat& products = products_[static_cast<std::size_t>(fold)];
    arma::mat moments = products(inputs, inputs);
    // Columns have variance 1: this changes nothing unless they are collinear.
    moments.diag() += 1e-6 * static_cast<double>(rows_ - size(fold));
    const arma::vec slopes = arma::solve(moments, products(inputs, target));
    double* f = fit.held_out.data() + first(fold);
    std::fill_n(f, size(fold), slopes.back());
    for (arma::uword i = 0; i + 1 < inputs.n_elem; ++i) {
      const float* x = column(static_cast<std::int64_t>(inputs(i))) + first(fold);
      for (std::int64_t r = 0; r < size(fold); ++r) f[r] += slopes(i) * x[r];
    }
    fit.slopes.push_back(slopes);
  }
  return fit;
}

// Parents in the order of their ids, so that the numbering of the columns changes no sum.
Family Regressions::sorted(Family family) const {
  std::ranges::sort(family.parents, {}, [&](std::int64_t i) {
    return std::pair(id_[static_cast<std::size_t>(i)], i);
  });
  return family;
}

Regressions::Fit Regressions::fit(const Family& family) const {
  if (family.parents.empty()) return {std::vector<double>(static_cast<std::size_t>(rows_)), {}, {}};
  return products_.empty() ? fit_networks(sorted(family)) : fit_least_squares(sorted(family));
}

std::vector<double> Regressions::predict(const Family& family_in, const Fit& fit,
                                         const MatrixView& others) const {
  const Family family = sorted(family_in);
  const auto scaled = [&](std::int64_t j) {
    const double mean = mean_[static_cast<std::size_t>(j)],
                 sd = std::sqrt(variance_[static_cast<std::size_t>(j)]);
    std::vector<float> out;
    for (std::int64_t i = 0; i < others.rows; ++i)
      out.push_back(static_cast<float>((others(i, j) - mean) / sd));
    return out;
  };
  std::vector<double> sum(static_cast<std::size_t>(others.rows));
  if (!fit.networks.empty()) {
    const std::int64_t stride = fit.networks.front().stride();
    const simd::Aligned<float> table = observations(family, others.rows, stride, scaled);
    std::vector<float> of_fold(sum.size());
    for (const simd::NodeRegression& net : fit.networks) {
      net.predict(table.data(), others.rows, of_fold.data());
      for (std::size_t r = 0; r < sum.size(); ++r) sum[r] += of_fold[r];
    }
  }
  for (const arma::vec& slopes : fit.slopes) {
    for (double& s : sum) s += slopes.back();
    for (std::size_t i = 0; i < family.parents.size(); ++i) {
      const std::vector<float> x = scaled(family.parents[i]);
      for (std::size_t r = 0; r < sum.size(); ++r) sum[r] += slopes[i] * x[r];
    }
  }
  for (double& s : sum) s /= static_cast<double>(folds_);
  return sum;
}

double Regressions::value(std::int64_t j, double standardized) const {
  const auto at = static_cast<std::size_t>(j);
  return mean_[at] + std::sqrt(variance_[at]) * standardized;
}

std::vector<double> Regressions::residuals(const Family& family, const Fit& fit) const {
  const float* target = column(family.node);
  std::vector<double> out(static_cast<std::size_t>(rows_));
  for (std::int64_t r = 0; r < rows_; ++r) {
    const double f = fit.held_out[static_cast<std::size_t>(r)], y = target[r];
    // A fit that went out of the range of float says nothing: the mean is as good.
    out[static_cast<std::size_t>(r)] = std::isfinite(f) ? y - f : y;
  }
  return out;
}

std::vector<double> Regressions::squared_error(const Family& family) const {
  const double variance = variance_[static_cast<std::size_t>(family.node)];
  std::vector<double> error = residuals(family, fit(family));
  for (double& e : error) e = variance * e * e;
  return error;
}

std::uint64_t Regressions::key(std::string_view work, const Family& family) const {
  std::string text(work);
  const auto add = [&](std::int64_t j) {
    text += " " + std::to_string(id_[static_cast<std::size_t>(j)]);
  };
  add(family.node);
  for (const std::int64_t parent : family.parents) add(parent);
  return hash(text);
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
                  message("x: column ", j, " (counted from 0) does not vary, but for rounding; "
                          "leave it out"));
  }
  DagOptions copy = options;
  check_options(fields(copy));
}

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

} // namespace cape
