// The paper's augmented Lagrangian (eq_lossdag) on minibatches.
module;
#include "internal/message.hpp"
#include "internal/sizes.hpp"
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <new>
#include <span>
#include <string_view>
#include <typeinfo>
#include <utility>
#include <variant>
#include <vector>
module cape.dag;
import cape.optim;
#include "dag/augmented_lagrangian.hpp"
#include "dag/objective.hpp"
#include "dag/options.hpp"
#include "dag/training_plan.hpp"

namespace cape::sem {
// GCC 14 crashes on a member whose imported class it has not completed before.
static_assert(sizeof(Matrix) > 0 && sizeof(std::vector<double>) > 0);

namespace {

constexpr double final_rate = 0.02;          // of the learning rate, at the end of the cosine
constexpr double sufficient_decrease = 0.25; // rho grows unless h fell to this share
constexpr double warm_up = 0.5;              // of the steps, over which lambda rises to its value

// h is a sum over the cycles of all columns, and rho h a part of the pull on a single edge. If that
// grew with their number, it would crush the edges before the data can tell them apart.
double first_rho(std::int64_t features) {
  return std::min(1.0, 10 / static_cast<double>(features));
}

template <class T>
bool all_finite(const std::vector<T>& values) {
  return std::ranges::all_of(values, [](T v) { return std::isfinite(v); });
}

// One step of Adam, where |W|_1 is taken by its proximal operator: by its subgradient, weights
// without an effect would jitter about 0 by a step, and the penalty would read the jitter as cycles
// and wear down the edges that are real. factor: inputs x features, see train().
template <class T>
void proximal_step(optim::Adam<T>& adam, std::vector<T>& parameters, const std::vector<T>& gradient,
                   const Shrinkage& shrinkage, const BasicMatrix<T>& factor, std::int64_t channels,
                   double rate, double lambda, Run& run) {
  adam.begin(rate);
  const auto move = [&](std::int64_t first, std::int64_t last, double l1,
                        std::span<const T> factors = {}) {
    const auto at = static_cast<std::size_t>(first), n = static_cast<std::size_t>(last - first);
    adam.move(first, std::span(parameters).subspan(at, n), std::span(gradient).subspan(at, n),
              {.l1 = l1}, factors);
  };
  const std::int64_t parts = std::ssize(shrinkage.factor);
  if (factor.empty()) {
    constexpr std::int64_t block = 1 << 16;
    const std::int64_t blocks = ceil_div(shrinkage.length, block);
    run.parallel_for(parts * blocks, [&](std::int64_t task) {
      const std::int64_t part = task / blocks, end = (part + 1) * shrinkage.length;
      const std::int64_t first = part * shrinkage.length + task % blocks * block;
      move(first, std::min(end, first + block),
           lambda * shrinkage.factor[static_cast<std::size_t>(part)]);
    });
  } else {
    const std::int64_t inputs = factor.rows();
    run.parallel_for(ceil_div(factor.cols(), block_effects), [&](std::int64_t b) {
      const std::int64_t end = std::min(factor.cols(), (b + 1) * block_effects);
      for (std::int64_t j = b * block_effects; j < end; ++j)
        for (std::int64_t u = j * channels; u < (j + 1) * channels; ++u)
          move(u * inputs, (u + 1) * inputs, lambda,
               {factor.column(j), static_cast<std::size_t>(inputs)});
    });
  }
  move(parts * shrinkage.length, std::ssize(parameters), 0);
}

// Minibatches of some rows of a table, gathered in one matrix.
template <class T>
class BatchReader {
public:
  /// The rows outlive this.
  BatchReader(const Table& table, std::span<const std::int64_t> rows, std::int64_t batch_rows,
              std::uint64_t seed)
      : table_(table), rows_(rows), batches_(std::ssize(rows), batch_rows, seed, "dag.batch") {}

  /// Go on as if `batches` had been read.
  void skip(std::int64_t batches) { batches_.skip(batches); }

  Batch<T> next(Run& run) {
    std::vector<std::int64_t> rows;
    for (const std::int64_t r : batches_.next()) rows.push_back(rows_[static_cast<std::size_t>(r)]);
    x_ = table_.read<T>(rows, run);
    weight_ = table_.read_weights<T>(rows, run);
    return {x_.data(), weight_.empty() ? nullptr : weight_.data(), std::ssize(rows)};
  }

private:
  const Table& table_;
  std::span<const std::int64_t> rows_;
  optim::Minibatches batches_;
  BasicMatrix<T> x_, weight_;
};

template <class T>
void exclude_edges(const BasicMatrix<T>& factor, std::int64_t channels, T* parameters) {
  for (std::int64_t j = 0; j < factor.cols(); ++j)
    for (std::int64_t u = j * channels; u < (j + 1) * channels; ++u)
      for (std::int64_t i = 0; i < factor.rows(); ++i)
        if (std::isinf(factor(i, j))) parameters[u * factor.rows() + i] = 0;
}

// Parameters on their way, and what is told of it.
template <class T>
struct Solution {
  std::vector<T> parameters;
  std::vector<DagEpoch> history;
  double h = 0;
};

// The history and the parameters as one vector, history first; and back, up to what comes behind.
constexpr std::int64_t epoch_values = 7;

template <class T>
void write(const Solution<T>& fit, std::vector<double>& out) {
  for (const DagEpoch& e : fit.history)
    out.insert(out.end(),
               {static_cast<double>(e.epoch), e.loss, e.reconstruction, e.kl, e.h, e.rho, e.alpha});
  out.insert(out.end(), fit.parameters.begin(), fit.parameters.end());
}

template <class T>
std::span<const double> resume(const Place& place, Solution<T>& fit) {
  constexpr std::int64_t multipliers = 5; // two of Adam, rho, alpha, h
  const std::int64_t epochs = place.epochs();
  place.checkpoint->check(place.values_before + epoch_values * epochs +
                          3 * std::ssize(fit.parameters) + multipliers);
  const double* in = place.checkpoint->values.data() + place.values_before;
  for (std::int64_t e = 0; e < epochs; ++e, in += epoch_values)
    fit.history.push_back({e + 1, in[1], in[2], in[3], in[4], in[5], in[6]});
  std::copy_n(in, fit.parameters.size(), fit.parameters.begin());
  return std::span<const double>(in + fit.parameters.size(),
                                 2 * fit.parameters.size() + multipliers);
}

[[noreturn]] void diverged(std::string_view what, std::int64_t epoch) {
  throw Error(Status::not_converged,
              message(what, " not finite in epoch ", epoch,
                      ": use a lower learning rate, or scale the columns (standardize)"));
}

// h. The log-det form exists only for spectral radii below 1: a step that leaves its domain is
// pulled back by shrinking the edge weights.
template <class T>
double constraint_in_domain(Objective<T>& objective, std::vector<T>& parameters, std::int64_t epoch,
                            Run& run) {
  for (;;) {
    const double h = objective.constraint(parameters.data(), run);
    if (!std::isinf(h)) return h;
    if (!all_finite(parameters)) diverged("the weights are", epoch);
    const Shrinkage edges = objective.shrinkage(parameters.data());
    std::for_each_n(parameters.begin(), edges.length * std::ssize(edges.factor),
                    [](T& w) { w *= T(0.9); });
  }
}

template <class T>
Solution<T> augmented_lagrangian(Model<T>& model, const Table& table,
                                 std::span<const std::int64_t> rows, double lambda,
                                 const BasicMatrix<T>& factor, const std::vector<Edge>& start,
                                 const DagOptions& options, Run& run, const Place& place) {
  const std::int64_t m = model.shape().features;
  const TrainingPlan plan(std::ssize(rows), m, options);

  Solution<T> fit;
  fit.parameters.resize(static_cast<std::size_t>(model.shape().parameters));
  std::vector<T> gradient(fit.parameters.size());
  model.initialize(fit.parameters.data(), run);
  for (const Edge& e : start) model.set_edge(e.from, e.to, e.weight, fit.parameters.data());
  exclude_edges(factor, model.shape().channels, fit.parameters.data());
  Objective<T> objective(model, options.constraint);
  optim::Adam<T> adam(std::ssize(fit.parameters), {}, run);
  const optim::CosineSchedule part_of_rate(plan.steps, final_rate);
  BatchReader<T> reader(table, rows, plan.batch_rows, run.seed());
  std::int64_t renewal = 0;
  const auto renew_constraint = [&](std::int64_t step, std::int64_t epoch) {
    if (step < renewal) return;
    renewal = plan.next_renewal(step);
    constraint_in_domain(objective, fit.parameters, epoch, run);
  };

  Penalty<T> penalty{lambda, options.l2, first_rho(m), 0.0, factor.empty() ? nullptr : &factor};
  double h_before = std::numeric_limits<double>::max();
  std::int64_t step = 0, first_epoch = 1;
  if (place.epochs() > 0) {
    const std::span<const double> multipliers = adam.restore(resume(place, fit), run);
    penalty.rho = multipliers[0];
    penalty.alpha = multipliers[1];
    h_before = multipliers[2];
    first_epoch = place.epochs() + 1;
    step = place.epochs() * plan.steps_per_epoch;
    while (renewal < step) renewal = plan.next_renewal(renewal);
    reader.skip(step);
    fit.h = objective.constraint(fit.parameters.data(), run);
  }
  for (std::int64_t epoch = first_epoch; epoch <= options.epochs; ++epoch) {
    DagEpoch record{epoch, 0, 0, 0, 0, penalty.rho, penalty.alpha};
    const bool ends_with_h = plan.ends_with_h(epoch);
    const double steps = static_cast<double>(plan.steps_per_epoch);
    for (std::int64_t s = 0; s < plan.steps_per_epoch; ++s) {
      const Batch<T> batch = reader.next(run);
      renew_constraint(step, epoch);
      const Loss loss = objective(batch, fit.parameters.data(), penalty, gradient.data(), run);
      if (!std::isfinite(loss.total)) diverged("the loss is", epoch);
      // Means by parts: a sum of finite losses could overflow.
      record.loss += loss.total / steps;
      record.reconstruction += loss.score.reconstruction / steps;
      record.kl += loss.score.kl / steps;
      fit.h = loss.h;
      const double progress = static_cast<double>(step) / static_cast<double>(plan.steps);
      proximal_step(adam, fit.parameters, gradient, objective.shrinkage(fit.parameters.data()),
                    factor, model.shape().channels, options.learning_rate * part_of_rate(step),
                    lambda * std::min(1.0, progress / warm_up), run);
      run.report({"dag", ++step, plan.steps, loss.total, loss.h});
    }
    // The last step may have left the domain, where the multipliers must not be updated.
    if (ends_with_h) fit.h = constraint_in_domain(objective, fit.parameters, epoch, run);
    record.h = fit.h;
    fit.history.push_back(record);

    // Half of the tolerance, so that h does not drift back over it while the penalty rests.
    if (epoch % plan.update_interval == 0 && fit.h > 0.5 * h_tolerance_of(options, m)) {
      penalty.alpha += penalty.rho * fit.h;
      if (fit.h > sufficient_decrease * h_before)
        penalty.rho = std::min(penalty.rho * options.rho_growth, options.rho_max);
      h_before = fit.h;
    }
    // What is not finite is not kept: the state before it leads there again.
    if (place.checkpoint && ends_with_h && std::isfinite(penalty.alpha) && std::isfinite(fit.h) &&
        all_finite(fit.parameters) && adam.finite()) {
      // Room first, for some more epochs: between the old state and the new one nothing can fail.
      std::vector<double>& values = place.checkpoint->values;
      values.reserve(static_cast<std::size_t>(place.values_before +
                                              epoch_values * (epoch / 1000 + 1) * 1000 + 5) +
                     3 * fit.parameters.size());
      values.resize(static_cast<std::size_t>(place.values_before));
      write(fit, values);
      adam.save(values, run);
      values.insert(values.end(), {penalty.rho, penalty.alpha, h_before});
      place.checkpoint->epoch = place.epochs_before + epoch;
    }
  }
  // Of a checkpoint, without an epoch more.
  if (!std::isfinite(fit.h)) diverged("h(A) is", options.epochs);
  return fit;
}

template <class T>
TrainedModel train_in(const Table& table, std::span<const std::int64_t> rows, const Causes& causes,
                      double lambda, const Matrix& factor, const std::vector<Edge>& start,
                      const DagOptions& options, Run& run, const Place& place) {
  const std::int64_t m = table.features();
  const std::unique_ptr<Model<T>> model =
      make_model<T>(m, causes, Noise(options, m, std::ssize(rows)), options);
  BasicMatrix<T> factors(factor.rows(), factor.cols());
  std::transform(factor.data(), factor.data() + factor.size(), factors.data(),
                 [](double f) { return static_cast<T>(f); });
  Solution<T> solution =
      augmented_lagrangian(*model, table, rows, lambda, factors, start, options, run, place);
  return {model->edges(table, solution.parameters.data(), run), std::move(solution.history),
          solution.h};
}

} // namespace

TrainedModel train(const Table& table, std::span<const std::int64_t> rows, const Causes& causes,
                   double lambda, const Matrix& factor, const std::vector<Edge>& start,
                   const DagOptions& options, Run& run, const Place& place) {
  const auto learn = trains_in_float(options) ? train_in<float> : train_in<double>;
  return learn(table, rows, causes, lambda, factor, start, options, run, place);
}

} // namespace cape::sem
