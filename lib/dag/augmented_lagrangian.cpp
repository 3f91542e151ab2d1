// The paper's augmented Lagrangian (eq_lossdag) on minibatches.
module;
#include "internal/message.hpp"
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <typeinfo>
#include <vector>
module cape.dag;
import cape.optim;

namespace cape::sem {
// GCC 14 crashes on a member whose imported class it has not completed before.
static_assert(sizeof(Matrix) > 0 && sizeof(std::vector<double>) > 0);

namespace {

constexpr double final_rate = 0.02;          // of the learning rate, at the end of the cosine
constexpr double sufficient_decrease = 0.25; // rho grows unless h fell to this share
constexpr double warm_up = 0.5;              // of the steps, over which lambda rises to its value
constexpr std::int64_t penalty_updates = 20; // in a fit, unless rho_interval is given

// An epoch passes over a table with few rows several times: what matters is the number of steps in
// which rho grows by its factor, and with 1 step an epoch nothing is learned at all. Steps on wide
// tables cost more, so there are fewer of them.
std::int64_t least_steps_per_epoch(std::int64_t features) {
  return std::clamp<std::int64_t>(3600 / features, 15, 120);
}

std::int64_t ceiling(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// h is a sum over the cycles of all columns, and rho h a part of the pull on a single edge. If that
// grew with their number, it would crush the edges before the data can tell them apart.
double first_rho(std::int64_t features) {
  return std::min(1.0, 10 / static_cast<double>(features));
}

// Sums are taken in eight parts, which is fast and, unlike BLAS, the same for any alignment.
constexpr int lanes = 8;

template <class T>
T total(const T (&part)[lanes]) {
  return ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
}

// Of the edge weights times their factors; excluded edges have the weight 0.
template <class T>
double absolute_sum(const T* parameters, const Matrix& factor, std::int64_t channels) {
  double total = 0;
  for (std::int64_t j = 0; j < factor.cols(); ++j)
    for (std::int64_t u = j * channels; u < (j + 1) * channels; ++u)
      for (std::int64_t i = 0; i < factor.rows(); ++i)
        if (const T w = parameters[u * factor.rows() + i]; w != 0)
          total += factor(i, j) * std::fabs(w);
  return total;
}

struct Sums {
  double absolute = 0, squares = 0;
};

// Adds pull w, the gradient of the constraint and of the ridge for the n weights of one unit, and
// their |w| and w^2.
template <class T>
void add_penalty(const T* w, const T* pull, std::int64_t n, T* gradient, Sums& sums) {
  T absolute[lanes] = {}, squares[lanes] = {};
  const auto add = [&](std::int64_t i, int lane) {
    gradient[i] += pull[i] * w[i];
    absolute[lane] += std::fabs(w[i]);
    squares[lane] += w[i] * w[i];
  };
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    for (int lane = 0; lane < lanes; ++lane) add(i + lane, lane);
  for (; i < n; ++i) add(i, 0);
  sums.absolute += total(absolute);
  sums.squares += total(squares);
}

template <class T>
bool all_finite(const std::vector<T>& values) {
  return std::ranges::all_of(values, [](T v) { return std::isfinite(v); });
}

// One step of Adam, where |W|_1 is taken by its proximal operator: by its subgradient, weights without
// an effect would jitter about 0 by a step, and the penalty would read the jitter as cycles and wear
// down the edges that are real. factor: inputs x features, see augmented_lagrangian().
template <class T>
void proximal_step(optim::Adam<T>& adam, std::vector<T>& parameters, const std::vector<T>& gradient,
                   const Shrinkage& shrinkage, const Matrix& factor, std::int64_t channels,
                   double rate, double lambda, Run& run) {
  adam.begin(rate);
  const auto move = [&](std::int64_t first, std::int64_t last, double l1) {
    const auto at = static_cast<std::size_t>(first), n = static_cast<std::size_t>(last - first);
    adam.move(first, std::span(parameters).subspan(at, n), std::span(gradient).subspan(at, n),
              {.l1 = l1});
  };
  constexpr std::int64_t block = 1 << 16;
  const std::int64_t blocks = ceiling(shrinkage.length, block);
  const std::int64_t parts = std::ssize(shrinkage.factor);
  run.parallel_for(parts * blocks, [&](std::int64_t task) {
    const std::int64_t part = task / blocks, end = (part + 1) * shrinkage.length;
    const std::int64_t first = part * shrinkage.length + task % blocks * block;
    move(first, std::min(end, first + block),
         factor.empty() ? lambda * shrinkage.factor[static_cast<std::size_t>(part)] : 0);
  });
  if (!factor.empty()) {
    const double threshold = rate * lambda;
    const std::int64_t inputs = factor.rows();
    for (std::int64_t u = 0; u < factor.cols() * channels; ++u) {
      const double* of_effect = factor.column(u / channels);
      for (std::int64_t i = 0; i < inputs; ++i) {
        T& p = parameters[static_cast<std::size_t>(u * inputs + i)];
        const double size =
            std::fabs(p) - threshold * of_effect[i] / adam.metric(u * inputs + i);
        p = std::isinf(of_effect[i]) ? 0 : std::copysign(static_cast<T>(std::max(size, 0.0)), p);
      }
    }
  }
  move(parts * shrinkage.length, std::ssize(parameters), 0);
}

// Minibatches of the rows of a table, gathered in one matrix.
template <class T>
class BatchReader {
public:
  BatchReader(const Table& table, std::int64_t rows, std::uint64_t seed)
      : table_(table), batches_(table.rows(), rows, seed, "dag.batch") {}

  /// Go on as if `batches` had been read.
  void skip(std::int64_t batches) { batches_.skip(batches); }

  Batch<T> next(Run& run) {
    const std::span<const std::int64_t> rows = batches_.next();
    x_ = table_.read<T>(rows, run);
    weight_ = table_.read_weights<T>(rows, run);
    return {x_.data(), weight_.empty() ? nullptr : weight_.data(), std::ssize(rows)};
  }

private:
  const Table& table_;
  optim::Minibatches batches_;
  BasicMatrix<T> x_, weight_;
};

template <class T>
void exclude_edges(const Matrix& factor, std::int64_t channels, T* parameters) {
  for (std::int64_t j = 0; j < factor.cols(); ++j)
    for (std::int64_t u = j * channels; u < (j + 1) * channels; ++u)
      for (std::int64_t i = 0; i < factor.rows(); ++i)
        if (std::isinf(factor(i, j))) parameters[u * factor.rows() + i] = 0;
}

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
std::span<const double> resume(const Checkpoint& checkpoint, Solution<T>& fit) {
  constexpr std::int64_t multipliers = 5; // two of Adam, rho, alpha, h
  checkpoint.check(epoch_values * checkpoint.epoch + 3 * std::ssize(fit.parameters) + multipliers);
  const double* in = checkpoint.values.data();
  for (std::int64_t e = 0; e < checkpoint.epoch; ++e, in += epoch_values)
    fit.history.push_back({e + 1, in[1], in[2], in[3], in[4], in[5], in[6]});
  std::copy_n(in, fit.parameters.size(), fit.parameters.begin());
  return std::span(checkpoint.values)
      .subspan(static_cast<std::size_t>(epoch_values * checkpoint.epoch) + fit.parameters.size());
}

[[noreturn]] void diverged(std::string_view what, std::int64_t epoch) {
  throw Error(Status::not_converged,
              message(what, " not finite in epoch ", epoch,
                      ": use a lower learning rate, or scale the columns (standardize)"));
}

// h. The log-det form exists only for spectral radii below 1: a step that leaves its domain is pulled
// back by shrinking the edge weights.
template <class T>
double constraint_in_domain(Objective<T>& objective, std::vector<T>& parameters,
                            std::int64_t epoch, Run& run) {
  for (;;) {
    const double h = objective.constraint(parameters.data(), run);
    if (!std::isinf(h)) return h;
    if (!all_finite(parameters)) diverged("the weights are", epoch);
    const Shrinkage edges = objective.shrinkage(parameters.data());
    std::for_each_n(parameters.begin(), edges.length * std::ssize(edges.factor),
                    [](T& w) { w *= T(0.9); });
  }
}

// One weight or more for every edge, see EdgeWeightModel.
template <class T>
class EdgeWeightTerms final : public EdgeTerms<T> {
public:
  EdgeWeightTerms(const EdgeWeightModel<T>& model, Constraint form)
      : model_(model), constraint_(form), strength_(model.shape().inputs, model.shape().features),
        slope_(model.shape().inputs, model.shape().features),
        absolute_(static_cast<std::size_t>(ceiling(model.shape().features, block_effects))),
        squares_(absolute_.size()) {}

  double constraint(const T* parameters, Run& run) override;
  double add(const T* parameters, const Penalty& penalty, T* gradient, Run& run) override;
  Shrinkage shrinkage(const T*) const override { return {model_.edge_parameters(), {1.0}}; }

private:
  const EdgeWeightModel<T>& model_;
  AcyclicityConstraint<T> constraint_;
  Matrix strength_, slope_;                ///< S and dh/dS
  std::vector<double> absolute_, squares_; ///< sums over the weights of a block of effects
  double h_ = 0;
};

template <class T>
double EdgeWeightTerms<T>::constraint(const T* parameters, Run& run) {
  const std::int64_t m = model_.shape().features, inputs = model_.shape().inputs,
                     channels = model_.shape().channels;
  run.parallel_for(ceiling(m, block_effects), [&](std::int64_t block) {
    const std::int64_t end = std::min(m, (block + 1) * block_effects);
    for (std::int64_t j = block * block_effects; j < end; ++j) {
      double* s = strength_.column(j);
      std::fill_n(s, inputs, 0.0);
      for (std::int64_t u = j * channels; u < (j + 1) * channels; ++u) {
        const T* w = parameters + u * inputs;
        for (std::int64_t i = 0; i < inputs; ++i) s[i] += static_cast<double>(w[i]) * w[i];
      }
    }
  });
  return h_ = model_.causes().empty() ? constraint_(strength_, slope_, run)
                                      : sparse_expm<T>(strength_, model_.causes(), slope_, run);
}

template <class T>
double EdgeWeightTerms<T>::add(const T* parameters, const Penalty& penalty, T* gradient,
                               Run& run) {
  const std::int64_t m = model_.shape().features, inputs = model_.shape().inputs,
                     channels = model_.shape().channels;
  // All terms in one pass over the weights, which on wide tables do not fit into the cache.
  const double multiplier = 2 * (penalty.rho * h_ + penalty.alpha);
  const double l2 = model_.shape().ridged > 0 ? penalty.l2 : 0;
  const std::int64_t blocks = ceiling(m, block_effects);
  run.parallel_for(blocks, [&](std::int64_t block) {
    Sums sums;
    std::vector<T> pull(static_cast<std::size_t>(inputs));
    const std::int64_t end = std::min(m, (block + 1) * block_effects);
    for (std::int64_t j = block * block_effects; j < end; ++j) {
      const double* slope = slope_.column(j);
      std::transform(slope, slope + inputs, pull.begin(),
                     [&](double s) { return static_cast<T>(multiplier * s + l2); });
      for (std::int64_t u = j * channels; u < (j + 1) * channels; ++u)
        add_penalty(parameters + u * inputs, pull.data(), inputs, gradient + u * inputs, sums);
    }
    absolute_[static_cast<std::size_t>(block)] = sums.absolute;
    squares_[static_cast<std::size_t>(block)] = sums.squares;
  });
  double absolute = std::accumulate(absolute_.begin(), absolute_.end(), 0.0);
  double squares = std::accumulate(squares_.begin(), squares_.end(), 0.0);
  for (std::int64_t p = model_.edge_parameters(); p < model_.shape().ridged; ++p) {
    gradient[p] += static_cast<T>(l2) * parameters[p];
    squares += static_cast<double>(parameters[p]) * parameters[p];
  }

  if (penalty.factor) absolute = absolute_sum(parameters, *penalty.factor, channels);
  return penalty.lambda * absolute + 0.5 * l2 * squares + 0.5 * penalty.rho * h_ * h_ +
         penalty.alpha * h_;
}

} // namespace

// The cycles that the steps of the weights close are as many as there are columns.
double h_tolerance(const DagOptions& options, std::int64_t features) {
  if (!std::isnan(options.h_tolerance)) return options.h_tolerance;
  return 1e-5 * static_cast<double>(std::max<std::int64_t>(10, features));
}

template <class T>
EdgeTerms<T>::~EdgeTerms() = default;

template <class T>
std::unique_ptr<EdgeTerms<T>> EdgeWeightModel<T>::edge_terms(Constraint form) const {
  return std::make_unique<EdgeWeightTerms<T>>(*this, form);
}

template <class T>
Loss Objective<T>::operator()(const Batch<T>& batch, const T* parameters, const Penalty& penalty,
                              T* gradient, Run& run) {
  Loss loss;
  loss.score = model_.score(batch, parameters, gradient, run);
  loss.h = h_;
  loss.total = loss.score.reconstruction + loss.score.kl +
               terms_->add(parameters, penalty, gradient, run);
  return loss;
}

Pace::Pace(std::int64_t rows, std::int64_t features, const DagOptions& options)
    : epochs(options.epochs), batch_rows(std::min(options.batch_size, rows)) {
  // An epoch is one or more passes over the rows, rounded up to whole batches.
  const std::int64_t passes = ceiling(least_steps_per_epoch(features) * batch_rows, rows);
  steps_per_epoch = ceiling(passes * rows, batch_rows);
  steps = checked_size(epochs, steps_per_epoch, "steps");
  // exp(S) costs as much as the rest of a step from about here on, and hardly changes in a few
  // steps. Every step may leave the domain of the log-det form.
  if (options.constraint == Constraint::expm)
    constraint_interval = std::clamp<std::int64_t>(features / 64, 1, 64);
  update_interval = options.rho_interval > 0
                        ? options.rho_interval
                        : std::max<std::int64_t>(1, epochs / penalty_updates);
}

bool Pace::ends_with_h(std::int64_t epoch) const {
  return 4 * constraint_interval <= steps_per_epoch || epoch % update_interval == 0 ||
         epoch == epochs;
}

// The weights grow from almost nothing: h goes through orders of magnitude within a few steps.
std::int64_t Pace::next_renewal(std::int64_t step) const {
  return step + std::min(std::max<std::int64_t>(step / 4, 4), constraint_interval);
}

std::int64_t Pace::renewals() const {
  // In a time that does not grow with the steps: they come to regular intervals soon.
  std::int64_t count = 0, step = 0;
  for (; step < steps && next_renewal(step) - step < constraint_interval;
       step = next_renewal(step))
    ++count;
  if (step < steps) count += ceiling(steps - step, constraint_interval);
  return count + (4 * constraint_interval <= steps_per_epoch ? epochs
                                                             : ceiling(epochs, update_interval));
}

template <class T>
Solution<T> augmented_lagrangian(Model<T>& model, const Table& table, double lambda,
                                 const Matrix& factor, const std::vector<Edge>& start,
                                 const DagOptions& options, Run& run, Checkpoint* checkpoint) {
  const std::int64_t m = model.shape().features;
  const Pace pace(table.rows(), m, options);

  Solution<T> fit;
  fit.parameters.resize(static_cast<std::size_t>(model.shape().parameters));
  std::vector<T> gradient(fit.parameters.size());
  model.initialize(fit.parameters.data(), run);
  for (const Edge& e : start) model.set_edge(e.from, e.to, e.weight, fit.parameters.data());
  exclude_edges(factor, model.shape().channels, fit.parameters.data());
  Objective<T> objective(model, options.constraint);
  optim::Adam<T> adam(std::ssize(fit.parameters));
  const optim::CosineSchedule schedule(pace.steps, final_rate);
  BatchReader<T> reader(table, pace.batch_rows, run.seed());
  std::int64_t renewal = 0;
  const auto renew_constraint = [&](std::int64_t step, std::int64_t epoch) {
    if (step < renewal) return;
    renewal = pace.next_renewal(step);
    constraint_in_domain(objective, fit.parameters, epoch, run);
  };

  Penalty penalty{lambda, options.l2, first_rho(m), 0.0, factor.empty() ? nullptr : &factor};
  double h_before = std::numeric_limits<double>::max();
  std::int64_t step = 0, first_epoch = 1;
  if (checkpoint && checkpoint->epoch > 0) {
    const std::span<const double> multipliers = adam.restore(resume(*checkpoint, fit));
    penalty.rho = multipliers[0];
    penalty.alpha = multipliers[1];
    h_before = multipliers[2];
    first_epoch = checkpoint->epoch + 1;
    step = checkpoint->epoch * pace.steps_per_epoch;
    while (renewal < step) renewal = pace.next_renewal(renewal);
    reader.skip(step);
    fit.h = objective.constraint(fit.parameters.data(), run);
  }
  for (std::int64_t epoch = first_epoch; epoch <= options.epochs; ++epoch) {
    DagEpoch record{epoch, 0, 0, 0, 0, penalty.rho, penalty.alpha};
    const bool ends_with_h = pace.ends_with_h(epoch);
    const double steps = static_cast<double>(pace.steps_per_epoch);
    for (std::int64_t s = 0; s < pace.steps_per_epoch; ++s) {
      const Batch<T> batch = reader.next(run);
      renew_constraint(step, epoch);
      const Loss loss = objective(batch, fit.parameters.data(), penalty, gradient.data(), run);
      if (!std::isfinite(loss.total)) diverged("the loss is", epoch);
      // Means by parts: a sum of finite losses could overflow.
      record.loss += loss.total / steps;
      record.reconstruction += loss.score.reconstruction / steps;
      record.kl += loss.score.kl / steps;
      fit.h = loss.h;
      const double progress = static_cast<double>(step) / static_cast<double>(pace.steps);
      proximal_step(adam, fit.parameters, gradient, objective.shrinkage(fit.parameters.data()),
                    factor, model.shape().channels, options.learning_rate * schedule(step),
                    lambda * std::min(1.0, progress / warm_up), run);
      run.report({"dag", ++step, pace.steps, loss.total, loss.h});
    }
    // The last step may have left the domain, where the multipliers must not be updated.
    if (ends_with_h) fit.h = constraint_in_domain(objective, fit.parameters, epoch, run);
    record.h = fit.h;
    fit.history.push_back(record);

    // Half of the tolerance, so that h does not drift back over it while the penalty rests.
    if (epoch % pace.update_interval == 0 && fit.h > 0.5 * h_tolerance(options, m)) {
      penalty.alpha += penalty.rho * fit.h;
      if (fit.h > sufficient_decrease * h_before)
        penalty.rho = std::min(penalty.rho * options.rho_growth, options.rho_max);
      h_before = fit.h;
    }
    // What is not finite is not kept: the state before it leads there again.
    if (checkpoint && ends_with_h && std::isfinite(penalty.alpha) && std::isfinite(fit.h) &&
        all_finite(fit.parameters) && adam.finite()) {
      // Room first, for some more epochs: between the old state and the new one nothing can fail.
      checkpoint->values.reserve(
          static_cast<std::size_t>(epoch_values * (epoch / 1000 + 1) * 1000 + 5) +
          3 * fit.parameters.size());
      checkpoint->values.clear();
      write(fit, checkpoint->values);
      adam.save(checkpoint->values);
      checkpoint->values.insert(checkpoint->values.end(), {penalty.rho, penalty.alpha, h_before});
      checkpoint->epoch = epoch;
    }
  }
  if (!std::isfinite(fit.h)) diverged("h(A) is", options.epochs); // of a checkpoint, without an epoch more
  return fit;
}

template class EdgeTerms<float>;
template class EdgeTerms<double>;
template std::unique_ptr<EdgeTerms<float>> EdgeWeightModel<float>::edge_terms(Constraint) const;
template std::unique_ptr<EdgeTerms<double>> EdgeWeightModel<double>::edge_terms(Constraint) const;
template class Objective<float>;
template class Objective<double>;
template Solution<float> augmented_lagrangian(Model<float>&, const Table&, double, const Matrix&,
                                              const std::vector<Edge>&, const DagOptions&, Run&,
                                              Checkpoint*);
template Solution<double> augmented_lagrangian(Model<double>&, const Table&, double, const Matrix&,
                                               const std::vector<Edge>&, const DagOptions&, Run&,
                                               Checkpoint*);

} // namespace cape::sem
