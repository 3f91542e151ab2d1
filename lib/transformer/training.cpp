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
#include "transformer/tokens.hpp"
#include "transformer/training.hpp"

namespace cape {
namespace {

constexpr double none = std::numeric_limits<double>::quiet_NaN();

// Steps of AdamW, with decay where a tensor multiplies something.
class Stepper {
public:
  Stepper(const Training& training, Run& run) : adam_(training.slots.size, {}, run) {
    const double decay = training.options.weight_decay;
    for (const Slot& slot : training.slots.all) {
      if (slot.name.ends_with("attention.directions") || !training.moves(slot)) continue;
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

// body(some of the values), in their order, with a poll before each.
template <class F>
void for_pieces(std::span<const float> values, Run& run, F body) {
  constexpr std::size_t size = 1 << 20;
  for (std::size_t first = 0; first < values.size(); first += size) {
    run.poll();
    body(values.subspan(first, std::min(size, values.size() - first)));
  }
}

std::vector<float> copy_of(std::span<const float> values, Run& run) {
  std::vector<float> out;
  assign(out, values, run);
  return out;
}

constexpr std::int64_t epoch_values = 3;

void save(const Trained& fit, std::span<const float> parameters, const optim::Adam<float>& adam,
          std::int64_t step, Checkpoint& checkpoint, Run& run) {
  std::vector<double> values;
  values.reserve(4 * parameters.size() + at(epoch_values * std::ssize(fit.history)) + 4);
  for (const TrainingEpoch& e : fit.history)
    for (const double v : {e.loss, e.validation, e.relative})
      values.push_back(std::isnan(v) ? -1 : v);
  values.push_back(static_cast<double>(fit.best_epoch));
  values.push_back(static_cast<double>(step));
  for (const std::span<const float> all : {parameters, std::span(fit.backbone.parameters)})
    for_pieces(all, run, [&](std::span<const float> piece) {
      values.insert(values.end(), piece.begin(), piece.end());
    });
  adam.save(values, run);
  checkpoint.values = std::move(values);
  checkpoint.epoch = std::ssize(fit.history);
}

std::int64_t restore(const Checkpoint& checkpoint, Trained& fit, std::vector<float>& parameters,
                     optim::Adam<float>& adam, Run& run) {
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
  adam.restore(in, run);
  return static_cast<std::int64_t>(counts[1]);
}

} // namespace

Split split_cells(std::vector<std::int64_t> cells, double share, std::string_view purpose,
                  std::uint64_t seed) {
  const std::int64_t all = std::ssize(cells);
  const auto held =
      share > 0
          ? std::max<std::int64_t>(static_cast<std::int64_t>(share * static_cast<double>(all)), 1)
          : 0;
  Split split;
  const std::vector<std::int64_t> order = Rng(seed, {hash(purpose)}).permutation(all);
  for (std::int64_t i = 0; i < all; ++i)
    (i < held ? split.validation : split.training).push_back(cells[at(order[at(i)])]);
  std::ranges::sort(split.validation);
  std::ranges::sort(split.training);
  return split;
}

std::int64_t cells_of_step(std::int64_t cells, const TrainingOptions& options) {
  const double held =
      options.validation > 0 ? std::max(options.validation * static_cast<double>(cells), 1.0) : 0.0;
  if (static_cast<double>(cells) - held < 2)
    throw Error(Status::invalid_argument,
                message("there are ", cells, " cells; two at least must be left to train on"));
  return std::min(options.batch_cells, cells);
}

void check_training_memory(const Backbone& model, double bytes) {
  check_memory(bytes, message("training a model of ", model.parameters.size(), " parameters"));
}

std::string identity_of(const Backbone& start, const Cells& cells, const OptionFields& training,
                        Run& run) {
  BackboneOptions model = start.options;
  std::string text = message(run.seed(), " ", cells.cells);
  for (const OptionField& f : fields(model)) text += " " + option_text(f);
  for (const OptionField& f : training) text += " " + option_text(f);
  for (const std::string& name : start.features) text += " " + name;
  for (const std::string& name : start.head.names) text += " " + name;
  ValueHash values;
  values.add({start.positions.data(), at(start.positions.size())});
  for_pieces(start.parameters, run, [&](std::span<const float> piece) {
    const std::vector<double> parameters(piece.begin(), piece.end());
    values.add(parameters);
  });
  values.add(start.head.mean);
  values.add(start.head.sd);
  return message(text, " ", static_cast<int>(start.head.kind), " ",
                 static_cast<int>(start.head.pooling), " ", start.head.hidden_layers, " ",
                 values.value());
}

Trained train(const Backbone& start, const Training& training, Run& run, Checkpoint* checkpoint) {
  const TrainingOptions& options = training.options;
  const std::vector<std::int64_t>& cells = training.split.training;
  const bool validated = !training.split.validation.empty();
  Trained fit{
      {start.options, start.features, start.positions, copy_of(start.parameters, run), start.head},
      {},
      0};
  const std::int64_t batch = std::min(options.batch_cells, std::ssize(cells));
  const std::int64_t steps_per_epoch = ceil_div(std::ssize(cells), batch);
  const std::int64_t steps = options.epochs * steps_per_epoch;
  const optim::CosineSchedule part_of_rate(
      steps, 0,
      std::min(static_cast<std::int64_t>(options.warm_up * static_cast<double>(steps)), steps - 1));
  optim::Minibatches batches(std::ssize(cells), batch, run.seed(),
                             message(training.name, ".batch"));
  Stepper stepper(training, run);
  std::vector<float> parameters = copy_of(start.parameters, run), gradient;
  resize(gradient, std::ssize(parameters), run);
  const std::int64_t features = training.cells.features,
                     ahead = cells_in_a_read(features, batch) / batch;
  std::vector<std::int64_t> rows, start_of; // of the steps whose cells were read
  std::vector<double> values;
  // The cells of the next n steps.
  const auto read = [&](std::int64_t n) {
    rows.clear();
    start_of.assign(1, 0);
    for (std::int64_t s = 0; s < n; ++s) {
      for (const std::int64_t i : batches.next()) rows.push_back(cells[at(i)]);
      start_of.push_back(std::ssize(rows));
    }
    values.resize(at(std::ssize(rows) * features));
    training.cells.read(rows, values.data());
  };
  std::int64_t step = 0;
  if (checkpoint != nullptr) {
    checkpoint->claim(training.identity, "table, model, options or seed");
    if (checkpoint->epoch > 0) {
      step = restore(*checkpoint, fit, parameters, stepper.adam(), run);
      batches.skip(step);
    }
  }
  const auto ended = [&] {
    const std::int64_t epochs = std::ssize(fit.history);
    return epochs == options.epochs || (validated && epochs - fit.best_epoch >= options.patience);
  };
  while (!ended()) {
    TrainingEpoch epoch{std::ssize(fit.history) + 1, 0, none, none};
    for (std::int64_t s = 0; s < steps_per_epoch; ++s, ++step) {
      if (s % ahead == 0) read(std::min(ahead, steps_per_epoch - s));
      const std::int64_t first = start_of[at(s % ahead)], n = start_of[at(s % ahead + 1)] - first;
      const double loss = training.loss(
          step, std::span<const std::int64_t>(rows).subspan(at(first), at(n)),
          std::span<const double>(values).subspan(at(first * features), at(n * features)),
          parameters, gradient);
      const double length = optim::clip_norm<float>(gradient, options.clip, run);
      if (!std::isfinite(loss) || !std::isfinite(length))
        throw Error(Status::not_converged,
                    message("the loss or its gradient is not finite in epoch ", epoch.epoch,
                            ": use a lower ", training.name,
                            ".learning_rate, or scale the values"));
      stepper(parameters, gradient, options.learning_rate * part_of_rate(step), run);
      epoch.loss += loss / static_cast<double>(steps_per_epoch);
      run.report({training.name, step + 1, steps, loss});
    }
    if (validated) {
      epoch.validation = training.validate(parameters);
      epoch.relative = training.baseline > 0 ? epoch.validation / training.baseline : none;
    }
    const auto better = [&] {
      return fit.best_epoch == 0 ||
             !(epoch.validation >= fit.history[at(fit.best_epoch - 1)].validation);
    };
    if (better()) {
      fit.best_epoch = epoch.epoch;
      assign<float>(fit.backbone.parameters, parameters, run);
    }
    fit.history.push_back(epoch);
    if (checkpoint != nullptr) save(fit, parameters, stepper.adam(), step, *checkpoint, run);
  }
  return fit;
}

} // namespace cape
