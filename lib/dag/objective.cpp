module;
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <numeric>
#include <span>
#include <string>
#include <typeinfo>
#include <utility>
#include <variant>
#include <vector>
module cape.dag;
#include "dag/low_rank.hpp"
#include "dag/objective.hpp"
#include "dag/options.hpp"
#include "dag/row_source.hpp"
#include "dag/screening.hpp"

namespace cape::sem {

template <class T>
Loss Objective<T>::operator()(const Batch<T>& batch, const T* parameters, const Penalty<T>& penalty,
                              T* gradient, Run& run) {
  Loss loss;
  loss.score = model_.score(batch, parameters, gradient, run);
  loss.h = h_;
  loss.total =
      loss.score.reconstruction + loss.score.kl + terms_->add(parameters, penalty, gradient, run);
  return loss;
}

template class Objective<float>;
template class Objective<double>;

} // namespace cape::sem

namespace cape {

std::int64_t dag_parameter_count(std::int64_t features, const DagOptions& options_in) {
  DagOptions options = options_in;
  check_options(fields(options));
  trains_in_float(options);
  if (features < 1)
    throw Error(Status::invalid_argument,
                "features is " + std::to_string(features) + "; it must be at least 1");
  sem::check_low_rank(features, {}, options);
  const std::int64_t inputs = inputs_of_effect(options, features);
  sem::Causes causes;
  if (inputs < features) causes = sem::Causes(inputs, features);
  return sem::make_model<double>(features, std::move(causes), {}, options)->shape().parameters;
}

namespace {

template <class T>
double loss_in(const Matrix& x, const Matrix& weight, sem::Causes causes,
               std::span<const double> parameters, double rho, double alpha,
               const DagOptions& options, Run& run, std::vector<double>* gradient) {
  const auto in_t = [](const auto& values) {
    return std::vector<T>(values.data(), values.data() + values.size());
  };
  const std::vector<T> table = in_t(x), weights = in_t(weight), p = in_t(parameters);
  const auto model = sem::make_model<T>(x.cols(), std::move(causes),
                                        sem::Noise(options, x.cols(), x.rows()), options);
  sem::Objective<T> objective(*model, options.constraint);
  if (std::isinf(objective.constraint(p.data(), run)))
    throw Error(Status::invalid_argument,
                "the edge weights are outside the domain of the log-det form of h");
  std::vector<T> slope(p.size());
  const sem::Loss loss =
      objective({table.data(), weights.empty() ? nullptr : weights.data(), x.rows()}, p.data(),
                {options.lambda, options.l2, rho, alpha}, slope.data(), run);
  const auto check = [](bool finite) {
    if (!finite)
      throw Error(Status::invalid_argument,
                  "the loss or its gradient leaves the range of the numbers that it is computed "
                  "in; scale x or the parameters");
  };
  check(std::isfinite(loss.total));
  if (!gradient) return loss.total;
  check(std::ranges::all_of(slope, [](T v) { return std::isfinite(v); }));
  gradient->assign(slope.begin(), slope.end());
  const sem::Shrinkage shrinkage = objective.shrinkage(p.data());
  std::size_t e = 0;
  for (const double factor : shrinkage.factor)
    for (const std::size_t end = e + static_cast<std::size_t>(shrinkage.length); e < end; ++e)
      (*gradient)[e] += options.lambda * factor * ((p[e] > 0) - (p[e] < 0));
  return loss.total;
}

} // namespace

double dag_loss(const MatrixView& x, std::span<const double> parameters, double rho, double alpha,
                const DagOptions& options_in, std::vector<double>* gradient) {
  DagOptions options = options_in;
  const std::int64_t size = dag_parameter_count(x.cols, options);
  check_view(x, "x");
  std::vector<std::int64_t> rows(static_cast<std::size_t>(x.rows));
  std::iota(rows.begin(), rows.end(), std::int64_t{0});
  const bool any_missing = check_values(x, rows, options.missing);
  if (x.rows < 1) throw Error(Status::invalid_argument, "x has no rows");
  if (std::ssize(parameters) != size)
    throw Error(Status::dim_mismatch, "parameters has " + std::to_string(parameters.size()) +
                                          " values; this model has " + std::to_string(size));
  check_finite({parameters.data(), size, 1, size}, "parameters");

  Matrix values = to_matrix(x), weight(any_missing ? x.rows : 0, any_missing ? x.cols : 0);
  if (any_missing)
    for (std::int64_t e = 0; e < values.size(); ++e) {
      const bool missing = std::isnan(values.data()[e]);
      weight.data()[e] = missing ? 0 : 1;
      if (missing) values.data()[e] = 0;
    }
  Run run;
  const std::int64_t inputs = inputs_of_effect(options, x.cols);
  sem::Causes causes;
  if (inputs < x.cols) causes = sem::screen(values, EdgeFactors(), inputs, run);
  options.lambda = lambda_of(options, x.rows, x.cols);
  const bool single = options.precision == Precision::float32 && trains_in_float(options);
  return (single ? loss_in<float> : loss_in<double>)(values, weight, std::move(causes), parameters,
                                                     rho, alpha, options, run, gradient);
}

} // namespace cape
