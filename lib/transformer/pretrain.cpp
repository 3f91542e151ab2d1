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
#include <string>
#include <string_view>
#include <typeinfo>
#include <utility>
#include <variant>
#include <vector>
module cape.transformer;
import cape.attention;
#include "transformer/objective.hpp"
#include "transformer/tokens.hpp"
#include "transformer/training.hpp"

namespace cape {
namespace {

// The numbers of every feature among some cells: what a guess that looks at nothing else is made
// of.
class FeatureNumbers {
public:
  FeatureNumbers(std::int64_t features, const BackboneOptions& options)
      : options_(options), classes_(options.loss == ValueLoss::cross_entropy ? options.bins : 2),
        sums_(at(features * classes_)) {}

  // square: count and sum of the numbers; cross_entropy: counts of the bins.
  void add(const Tokens& tokens) {
    for (std::size_t i = 0; i < tokens.feature.size(); ++i) {
      if (tokens.feature[i] < 0) continue;
      const std::int64_t first = tokens.feature[i] * classes_;
      if (options_.loss == ValueLoss::cross_entropy)
        ++sums_[at(first + static_cast<std::int64_t>(tokens.value[i]))];
      else {
        ++sums_[at(first)];
        sums_[at(first + 1)] += static_cast<double>(tokens.value[i]);
      }
    }
  }

  // The loss of guessing a hidden number by them.
  double loss(std::int32_t feature, double target) const {
    const double* of = sums_.data() + feature * classes_;
    if (options_.loss == ValueLoss::square) {
      const double rest = target - (of[0] > 0 ? of[1] / of[0] : 0);
      return rest * rest;
    }
    double all = 0; // one more of each bin, so that no share is 0
    for (std::int64_t c = 0; c < classes_; ++c) all += of[c] + 1;
    return -std::log((of[static_cast<std::int64_t>(target)] + 1) / all);
  }

  bool empty() const {
    return std::ranges::all_of(sums_, [](double v) { return v == 0; });
  }
  std::uint64_t fingerprint() const { return hash(sums_); }

private:
  const BackboneOptions& options_;
  std::int64_t classes_;
  std::vector<double> sums_;
};

struct Validation {
  std::vector<Sample> batches;
  double baseline = 0; ///< the loss of guesses by feature alone

  // The mean loss over all hidden values; before(batch) is called before each.
  template <class F>
  double operator()(Objective<float>& objective, std::span<const float> parameters, Run& run,
                    F before) const {
    double sum = 0, n = 0;
    for (std::size_t b = 0; b < batches.size(); ++b) {
      before(static_cast<std::int64_t>(b));
      const Sample& batch = batches[b];
      const auto hidden = static_cast<double>(hidden_tokens(batch.tokens));
      if (hidden == 0) continue;
      sum += hidden * objective(parameters, batch.tokens, batch.target, 0, -1, {}, run);
      n += hidden;
    }
    return n > 0 ? sum / n : 0;
  }
};

Validation make_validation(const Cells& cells, std::span<const std::int64_t> numbers,
                           const BackboneOptions& options, const SampleShape& shape,
                           const FeatureNumbers& guess, Run& run) {
  Validation validation;
  double n = 0;
  for_cells(cells, numbers, run, [&](std::span<const double> values, std::int64_t first) {
    Sample& batch = validation.batches.emplace_back(
        draw_sample(values, cells.features, options, shape, [&](std::int64_t c) {
          return Rng(run.seed(), {hash("pretrain.validation"),
                                  static_cast<std::uint64_t>(numbers[at(first + c)])});
        }));
    for (std::size_t i = 0; i < batch.target.size(); ++i)
      if (batch.tokens.hidden[i] != 0) {
        validation.baseline +=
            guess.loss(batch.tokens.feature[i], static_cast<double>(batch.target[i]));
        ++n;
      }
  });
  if (n > 0) validation.baseline /= n;
  return validation;
}

void check(const Backbone& start, const Slots& slots, const Cells& cells,
           const PretrainOptions& options) {
  PretrainOptions o = options;
  check_options(fields(o));
  check_parameters(start.parameters.size(), slots);
  check_features(cells, start);
}

void check_training(const Backbone& start, const Slots& slots, const Cells& cells,
                    PretrainOptions options, int threads) {
  check(start, slots, cells, options);
  options.batch_cells = cells_of_step(cells.cells, options);
  check_training_memory(start, pretrain_memory(start, options, threads));
  if (start.options.loss == ValueLoss::cross_entropy && options.cell_weight > 0)
    throw Error(Status::invalid_argument, message("pretrain.cell_weight is ", options.cell_weight,
                                                  "; with model.loss cross_entropy it must be 0"));
}

} // namespace

Trained pretrain(const Backbone& start, const Cells& cells, const PretrainOptions& options,
                 Run& run, Checkpoint* checkpoint) {
  Objective<float> objective(start);
  check_training(start, objective.slots(), cells, options, run.threads());
  const std::int64_t features = cells.features;
  const Split split =
      split_cells(all_cells(cells), options.validation, "pretrain.split", run.seed());
  const SampleShape shape{options.length, options.hidden};
  FeatureNumbers numbers(features, start.options);
  for_cells(cells, split.training, run, [&](std::span<const double> values, std::int64_t) {
    numbers.add(tokenize(values, features, start.options));
  });
  if (numbers.empty())
    throw Error(Status::invalid_argument,
                "the cells to train on have no value: all are missing, or 0 with model.zeros "
                "false");
  const Validation validation =
      make_validation(cells, split.validation, start.options, shape, numbers, run);
  const auto loss = [&](std::int64_t step, std::span<const std::int64_t>,
                        std::span<const double> values, std::span<const float> parameters,
                        std::span<float> gradient) {
    const Sample sample = draw_sample(values, features, start.options, shape, [&](std::int64_t c) {
      return Rng(run.seed(), {hash("pretrain.tokens"), static_cast<std::uint64_t>(step),
                              static_cast<std::uint64_t>(c)});
    });
    return objective(parameters, sample.tokens, sample.target, options.cell_weight, step, gradient,
                     run);
  };
  const auto validate = [&](std::span<const float> parameters) {
    return validation(objective, parameters, run, [&](std::int64_t) { run.poll(); });
  };
  PretrainOptions given = options;
  Trained fit = train(start,
                      {.name = "pretrain",
                       .options = options,
                       .cells = cells,
                       .split = split,
                       .slots = objective.slots(),
                       .moves = [](const Slot& slot) { return !slot.name.starts_with("head."); },
                       .loss = loss,
                       .validate = validate,
                       .baseline = validation.baseline,
                       .identity = hash(message(identity_of(start, cells, fields(given), run), " ",
                                                numbers.fingerprint()))},
                      run, checkpoint);
  objective.release(run);
  return fit;
}

HiddenLoss hidden_loss(const Backbone& backbone, const Cells& cells, const PretrainOptions& options,
                       Run& run) {
  Objective<float> objective(backbone);
  check(backbone, objective.slots(), cells, options);
  const std::vector<std::int64_t> all = all_cells(cells);
  FeatureNumbers numbers(cells.features, backbone.options);
  for_cells(cells, all, run, [&](std::span<const double> values, std::int64_t) {
    numbers.add(tokenize(values, cells.features, backbone.options));
  });
  if (numbers.empty())
    throw Error(Status::invalid_argument, "the cells have no value that could be hidden");
  const Validation held =
      make_validation(cells, all, backbone.options, {options.length, options.hidden}, numbers, run);
  const std::int64_t batches = std::ssize(held.batches);
  HiddenLoss out;
  out.loss = held(objective, backbone.parameters, run,
                  [&](std::int64_t b) { run.report({"encode", b, batches}); });
  if (!std::isfinite(out.loss))
    throw Error(Status::invalid_argument,
                "the loss is not finite: the model's parameters or the values are too large");
  out.relative = held.baseline > 0 ? out.loss / held.baseline : 0;
  run.report({"encode", batches, batches});
  return out;
}

} // namespace cape
