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
import cape.optim;
#include "transformer/objective.hpp"
#include "transformer/tokens.hpp"

namespace cape {
namespace {

constexpr double none = std::numeric_limits<double>::quiet_NaN();

// The cells that a model is trained on, and those that tell when to stop.
struct Split {
  std::vector<std::int64_t> training, validation;
};
Split split_cells(std::int64_t cells, double share, std::uint64_t seed) {
  std::vector<std::int64_t> order = Rng(seed, {hash("pretrain.split")}).permutation(cells);
  const auto n =
      share > 0
          ? std::max<std::int64_t>(static_cast<std::int64_t>(share * static_cast<double>(cells)), 1)
          : 0;
  Split split;
  split.validation.assign(order.begin(), order.begin() + n);
  split.training.assign(order.begin() + n, order.end());
  std::ranges::sort(split.validation);
  std::ranges::sort(split.training);
  return split;
}

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

// Steps of AdamW, with decay where a tensor multiplies something.
class Stepper {
public:
  Stepper(const Slots& slots, double decay) : adam_(slots.size) {
    for (const Slot& slot : slots.all) {
      if (slot.name.ends_with("attention.directions")) continue;
      const bool decays = is_weight(slot) || is_table(slot);
      for (std::int64_t first = 0; first < slot.size(); first += piece)
        pieces_.push_back({slot.first + first,
                           std::min(piece, slot.size() - first),
                           {.l1 = 0, .decay = decays ? decay : 0}});
    }
  }

  void operator()(std::span<float> parameters, std::span<const float> gradient, double rate,
                  Run& run) {
    adam_.begin(rate);
    run.parallel_for(std::ssize(pieces_), [&](std::int64_t i) {
      const Piece& p = pieces_[at(i)];
      adam_.move(p.first, parameters.subspan(at(p.first), at(p.size)),
                 gradient.subspan(at(p.first), at(p.size)), p.shrinking);
    });
  }

  optim::Adam<float>& adam() { return adam_; }

private:
  static constexpr std::int64_t piece = 1 << 16;
  struct Piece {
    std::int64_t first, size;
    optim::Shrinking shrinking;
  };
  optim::Adam<float> adam_;
  std::vector<Piece> pieces_;
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
  const auto wrong = [](Status status, const auto&... text) {
    throw Error(status, message(text...));
  };
  if (cells.features != std::ssize(start.features))
    wrong(Status::dim_mismatch, "the cells have ", cells.features, " features; the model has ",
          start.features.size());
}

void check_training(const Backbone& start, const Slots& slots, const Cells& cells,
                    const PretrainOptions& options) {
  check(start, slots, cells, options);
  const auto wrong = [](Status status, const auto&... text) {
    throw Error(status, message(text...));
  };
  const auto held = options.validation > 0
                        ? std::max(options.validation * static_cast<double>(cells.cells), 1.0)
                        : 0.0;
  if (static_cast<double>(cells.cells) - held < 2)
    wrong(Status::invalid_argument, "there are ", cells.cells,
          " cells; two at least must be left to train on");
  if (start.options.loss == ValueLoss::cross_entropy && options.cell_weight > 0)
    wrong(Status::invalid_argument, "pretrain.cell_weight is ", options.cell_weight,
          "; with model.loss cross_entropy it must be 0");
}

// Stands for everything that a training depends on.
std::uint64_t identity(const Backbone& start, const Cells& cells, const PretrainOptions& options,
                       const FeatureNumbers& numbers, std::uint64_t seed) {
  BackboneOptions model = start.options;
  PretrainOptions training = options;
  std::string text = message(seed, " ", cells.cells, " ", numbers.fingerprint());
  for (const OptionField& f : fields(model)) text += " " + option_text(f);
  for (const OptionField& f : fields(training)) text += " " + option_text(f);
  for (const std::string& name : start.features) text += " " + name;
  ValueHash values;
  values.add({start.positions.data(), at(start.positions.size())});
  const std::vector<double> parameters(start.parameters.begin(), start.parameters.end());
  values.add(parameters);
  return hash(message(text, " ", values.value()));
}

constexpr std::int64_t epoch_values = 3;

void save(const Pretrained& fit, std::span<const float> parameters, const optim::Adam<float>& adam,
          std::int64_t step, Checkpoint& checkpoint) {
  std::vector<double> values;
  values.reserve(4 * parameters.size() + at(epoch_values * std::ssize(fit.history)) + 4);
  for (const PretrainEpoch& e : fit.history)
    for (const double v : {e.loss, e.validation, e.relative})
      values.push_back(std::isnan(v) ? -1 : v);
  values.push_back(static_cast<double>(fit.best_epoch));
  values.push_back(static_cast<double>(step));
  values.insert(values.end(), parameters.begin(), parameters.end());
  values.insert(values.end(), fit.backbone.parameters.begin(), fit.backbone.parameters.end());
  adam.save(values);
  checkpoint.values = std::move(values);
  checkpoint.epoch = std::ssize(fit.history);
}

std::int64_t restore(const Checkpoint& checkpoint, Pretrained& fit, std::vector<float>& parameters,
                     optim::Adam<float>& adam) {
  checkpoint.check(epoch_values * checkpoint.epoch + 2 + 2 * std::ssize(parameters) +
                   adam.size_of_state());
  std::span<const double> in = checkpoint.values;
  const auto take = [&](std::size_t n) {
    const std::span<const double> taken = in.first(n);
    in = in.subspan(n);
    return taken;
  };
  for (std::int64_t e = 1; e <= checkpoint.epoch; ++e) {
    const std::span<const double> v = take(at(epoch_values));
    const auto value = [](double x) { return x == -1 ? none : x; };
    fit.history.push_back({e, v[0], value(v[1]), value(v[2])});
  }
  const std::span<const double> counts = take(2);
  fit.best_epoch = static_cast<std::int64_t>(counts[0]);
  for (std::vector<float>* to : {&parameters, &fit.backbone.parameters})
    std::ranges::transform(take(to->size()), to->begin(),
                           [](double v) { return static_cast<float>(v); });
  adam.restore(in);
  return static_cast<std::int64_t>(counts[1]);
}

} // namespace

Pretrained pretrain(const Backbone& start, const Cells& cells, const PretrainOptions& options,
                    Run& run, Checkpoint* checkpoint) {
  Objective<float> objective(start);
  check_training(start, objective.slots(), cells, options);
  const std::int64_t features = cells.features;
  Pretrained fit{start, {}, 0};
  check_memory(pretrain_memory(start, options),
               message("training a model of ", start.parameters.size(), " parameters"));

  const Split split = split_cells(cells.cells, options.validation, run.seed());
  const SampleShape shape{options.length, options.zeros, options.hidden};
  FeatureNumbers numbers(features, start.options);
  for_cells(cells, split.training, run, [&](std::span<const double> values, std::int64_t) {
    numbers.add(tokenize(values, features, start.options, options.zeros));
  });
  if (numbers.empty())
    throw Error(Status::invalid_argument,
                "the cells to train on have no value: all are missing, or 0 with pretrain.zeros "
                "false");
  const Validation validation =
      make_validation(cells, split.validation, start.options, shape, numbers, run);

  const std::int64_t batch = std::min(options.batch_cells, std::ssize(split.training));
  const std::int64_t steps_per_epoch = ceil_div(std::ssize(split.training), batch);
  const std::int64_t steps = options.epochs * steps_per_epoch;
  const optim::CosineSchedule part_of_rate(
      steps, 0,
      std::min(static_cast<std::int64_t>(options.warm_up * static_cast<double>(steps)), steps - 1));
  optim::Minibatches batches(std::ssize(split.training), batch, run.seed(), "pretrain.batch");
  Stepper stepper(objective.slots(), options.weight_decay);
  std::vector<float> parameters = start.parameters, gradient(parameters.size());
  std::vector<double> values;
  std::vector<std::int64_t> rows;
  std::int64_t step = 0;
  if (checkpoint != nullptr) {
    checkpoint->claim(identity(start, cells, options, numbers, run.seed()),
                      "table, model, options or seed");
    if (checkpoint->epoch > 0) {
      step = restore(*checkpoint, fit, parameters, stepper.adam());
      batches.skip(step);
    }
  }
  const auto ended = [&] {
    const std::int64_t epochs = std::ssize(fit.history);
    return epochs == options.epochs ||
           (!validation.batches.empty() && epochs - fit.best_epoch >= options.patience);
  };
  while (!ended()) {
    PretrainEpoch epoch{std::ssize(fit.history) + 1, 0, none, none};
    for (std::int64_t s = 0; s < steps_per_epoch; ++s, ++step) {
      rows.clear();
      for (const std::int64_t i : batches.next()) rows.push_back(split.training[at(i)]);
      values.resize(at(batch * features));
      cells.read(rows, values.data());
      const Sample sample =
          draw_sample(values, features, start.options, shape, [&](std::int64_t c) {
            return Rng(run.seed(), {hash("pretrain.tokens"), static_cast<std::uint64_t>(step),
                                    static_cast<std::uint64_t>(c)});
          });
      const double loss = objective(parameters, sample.tokens, sample.target, options.cell_weight,
                                    step, gradient, run);
      const double length = optim::clip_norm<float>(gradient, options.clip, run);
      if (!std::isfinite(loss) || !std::isfinite(length))
        throw Error(Status::not_converged,
                    message("the loss or its gradient is not finite in epoch ", epoch.epoch,
                            ": use a lower pretrain.learning_rate, or scale the values"));
      stepper(parameters, gradient, options.learning_rate * part_of_rate(step), run);
      epoch.loss += loss / static_cast<double>(steps_per_epoch);
      run.report({"pretrain", step + 1, steps, loss});
    }
    if (!validation.batches.empty()) {
      epoch.validation = validation(objective, parameters, run, [&](std::int64_t) { run.poll(); });
      epoch.relative = validation.baseline > 0 ? epoch.validation / validation.baseline : none;
    }
    const auto better = [&] {
      return fit.best_epoch == 0 ||
             !(epoch.validation >= fit.history[at(fit.best_epoch - 1)].validation);
    };
    if (better()) {
      fit.best_epoch = epoch.epoch;
      fit.backbone.parameters = parameters;
    }
    fit.history.push_back(epoch);
    if (checkpoint != nullptr) save(fit, parameters, stepper.adam(), step, *checkpoint);
  }
  return fit;
}

HiddenLoss hidden_loss(const Backbone& backbone, const Cells& cells, const PretrainOptions& options,
                       Run& run) {
  Objective<float> objective(backbone);
  check(backbone, objective.slots(), cells, options);
  const std::vector<std::int64_t> all = all_cells(cells);
  FeatureNumbers numbers(cells.features, backbone.options);
  for_cells(cells, all, run, [&](std::span<const double> values, std::int64_t) {
    numbers.add(tokenize(values, cells.features, backbone.options, options.zeros));
  });
  if (numbers.empty())
    throw Error(Status::invalid_argument, "the cells have no value that could be hidden");
  const Validation held = make_validation(
      cells, all, backbone.options, {options.length, options.zeros, options.hidden}, numbers, run);
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
