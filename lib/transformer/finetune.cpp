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
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <typeinfo>
#include <utility>
#include <variant>
#include <vector>
module cape.transformer;
import cape.attention;
#include "transformer/cell_head.hpp"
#include "transformer/network.hpp"
#include "transformer/tokens.hpp"
#include "transformer/training.hpp"

namespace cape {
namespace {

template <class... Parts>
[[noreturn]] void wrong(const Parts&... parts) {
  throw Error(Status::invalid_argument, message(parts...));
}

// Targets, which may be those of a part of the cells.
class Known {
public:
  Known(const Targets& targets, std::int64_t cells) : targets_(targets) {
    if (targets.kind == HeadKind::none) wrong("targets are neither classes nor numbers");
    const std::int64_t expected = cells * columns();
    if (std::ssize(targets.values) != expected)
      throw Error(Status::dim_mismatch,
                  message("targets have ", targets.values.size(), " values; there must be ",
                          expected, " of ", cells, " cells"));
    const double classes = static_cast<double>(targets.names.size());
    for (std::size_t i = 0; i < targets.values.size(); ++i) {
      const double v = targets.values[i];
      if (std::isinf(v) ||
          (is_class() && !std::isnan(v) && !(v >= 0 && v < classes && v == std::floor(v))))
        wrong("target ", i, " (counted from 0) is ", v, "; it must be ",
              is_class() ? message("a class from 0 to ", targets.names.size() - 1, ", or NaN")
                         : std::string("finite, or NaN"));
    }
  }

  bool is_class() const { return targets_.kind == HeadKind::classes; }
  std::int64_t columns() const { return is_class() ? 1 : std::ssize(targets_.names); }
  double value(std::int64_t cell, std::int64_t column = 0) const {
    return targets_.values[at(cell * columns() + column)];
  }
  // Cells of which something is known.
  std::vector<std::int64_t> cells() const {
    std::vector<std::int64_t> out;
    for (std::int64_t i = 0; i < std::ssize(targets_.values) / columns(); ++i)
      for (std::int64_t j = 0; j < columns(); ++j)
        if (!std::isnan(value(i, j))) {
          out.push_back(i);
          break;
        }
    return out;
  }

private:
  const Targets& targets_;
};

// How many of these cells every class has.
std::vector<double> class_counts(const Known& known, std::span<const std::int64_t> cells,
                                 std::size_t classes) {
  std::vector<double> count(classes);
  for (const std::int64_t cell : cells) ++count[static_cast<std::size_t>(known.value(cell))];
  return count;
}

// Means and deviations of the numbers among these cells.
void scale(Head& head, const Known& known, std::span<const std::int64_t> cells) {
  for (std::int64_t j = 0; j < known.columns(); ++j) {
    std::vector<double> values;
    for (const std::int64_t cell : cells)
      if (const double v = known.value(cell, j); !std::isnan(v)) values.push_back(v);
    double largest = 0; // sums of what is divided by it cannot overflow
    for (const double v : values) largest = std::max(largest, std::fabs(v));
    double mean = 0, square = 0;
    const auto n = static_cast<double>(values.size());
    for (const double v : values) mean += v / largest / n;
    for (const double v : values) square += (v / largest - mean) * (v / largest - mean) / n;
    if (largest == 0 || !(square > 1e-24)) // what is below is rounding
      wrong("number \"", head.names[at(j)], "\" is the same in all cells to train on, or known of ",
            "none");
    head.mean.push_back(mean * largest);
    head.sd.push_back(std::sqrt(square) * largest);
  }
}

// The start with a head that tells what is known: its own, or a new one.
Backbone with_head(const Backbone& start, const Targets& targets, const FinetuneOptions& options,
                   const Known& known, std::span<const std::int64_t> cells, Run& run) {
  if (start.head.kind == targets.kind && start.head.names == targets.names) return start;
  Backbone model = start;
  model.head = {targets.kind, targets.names, options.pooling, options.hidden_layers, {}, {}};
  if (!known.is_class()) scale(model.head, known, cells);
  const Slots before(start), slots = checked_slots(model);
  check_memory(4.0 * static_cast<double>(slots.size),
               message("a model of ", slots.size, " parameters"));
  const std::int64_t body =
      before.head_weight.empty() ? before.size : before.head_weight.front().first;
  model.parameters.assign(start.parameters.begin(), start.parameters.begin() + body);
  model.parameters.resize(at(slots.size));
  for (const Slot& slot : slots.all)
    if (slot.first >= body) start_values(slot, part<float>(model.parameters, slot), run);
  return model;
}

// The loss of what is told of a batch.
template <class T>
class HeadObjective {
public:
  HeadObjective(const Backbone& model, std::span<const double> class_weight)
      : head_(model.head), class_weight_(class_weight), network_(model),
        layers_(model, network_.slots()) {}

  const Slots& slots() const { return network_.slots(); }
  void release(Run& run) { network_.release(run); }

  double operator()(std::span<const T> p, const Tokens& tokens, std::span<const double> target,
                    std::int64_t step, std::int64_t first_block, std::span<T> gradient, Run& run) {
    const bool slopes = !gradient.empty();
    const bool body = slopes && first_block < network_.blocks();
    const std::span<const T> rows = network_.forward(p, tokens, step, body, run);
    const std::span<const T> told = layers_.forward(p, rows, tokens, step, run);
    d_told_.resize(slopes ? told.size() : 0);
    const double loss = loss_of(told, target);
    if (!slopes) return loss;
    std::ranges::fill(gradient, T(0));
    const std::span<T> d_rows = body ? network_.no_slopes(run) : std::span<T>();
    layers_.backward(p, d_told_, tokens, d_rows, gradient, run);
    if (body) network_.backward_rows(p, first_block, gradient, run);
    return loss;
  }

private:
  double loss_of(std::span<const T> told, std::span<const double> target) {
    if (head_.kind == HeadKind::classes) {
      std::vector<std::int32_t> label;
      for (const double v : target)
        label.push_back(std::isnan(v) ? -1 : static_cast<std::int32_t>(v));
      return layers::cross_entropy<T>(told, std::ssize(head_.names), label, 1, d_told_,
                                      class_weight_);
    }
    std::vector<T> scaled;
    std::vector<std::uint8_t> counts;
    for (std::size_t i = 0; i < target.size(); ++i) {
      const std::size_t j = i % head_.names.size();
      counts.push_back(!std::isnan(target[i]));
      scaled.push_back(static_cast<T>((target[i] - head_.mean[j]) / head_.sd[j]));
    }
    return layers::square_loss<T>(told, scaled, counts, 1, d_told_);
  }

  const Head& head_;
  std::span<const double> class_weight_;
  Network<T> network_;
  CellHead<T> layers_;
  std::vector<T> d_told_;
};

// How much these targets count in a mean.
double weight_of(std::span<const double> target, std::span<const double> class_weight) {
  double sum = 0;
  for (const double v : target)
    if (!std::isnan(v)) sum += class_weight.empty() ? 1 : class_weight[static_cast<std::size_t>(v)];
  return sum;
}

// The validation loss of a guess by the training cells alone.
double guess(const Known& known, const Head& head, const Split& split,
             std::span<const double> class_weight) {
  double sum = 0, n = 0;
  if (known.is_class()) {
    std::vector<double> share = class_counts(known, split.training, head.names.size());
    double all = 0; // one more of each, so that no share is 0
    for (std::size_t c = 0; c < share.size(); ++c)
      all += share[c] = (share[c] + 1) * class_weight[c];
    for (const std::int64_t cell : split.validation) {
      const auto c = static_cast<std::size_t>(known.value(cell));
      sum -= class_weight[c] * std::log(share[c] / all);
      n += class_weight[c];
    }
  } else
    for (const std::int64_t cell : split.validation)
      for (std::int64_t j = 0; j < known.columns(); ++j)
        if (const double v = (known.value(cell, j) - head.mean[at(j)]) / head.sd[at(j)];
            !std::isnan(v)) {
          sum += v * v;
          ++n;
        }
  return n > 0 ? sum / n : 0;
}

void check(const Backbone& start, const Cells& cells, const FinetuneOptions& options) {
  FinetuneOptions o = options;
  check_options(fields(o));
  check_parameters(start.parameters.size(), checked_slots(start));
  check_features(cells, start);
  if (options.blocks > start.options.blocks)
    wrong("finetune.blocks is ", options.blocks, "; the model has ", start.options.blocks);
}

// Whether a tensor is trained with the last blocks, of which first_block is the first.
bool moves(const Slot& slot, std::int64_t first_block, std::int64_t blocks) {
  if (slot.name.starts_with("head.")) return true;
  if (first_block == 0) return true;
  if (first_block == blocks) return false;
  if (slot.name.starts_with("norm.")) return true;
  constexpr std::string_view prefix = "blocks.";
  return slot.name.starts_with(prefix) &&
         std::stoll(slot.name.substr(prefix.size())) >= first_block;
}

} // namespace

Trained finetune(const Backbone& start, const Cells& cells, const Targets& targets,
                 const FinetuneOptions& options, Run& run, Checkpoint* checkpoint) {
  check(start, cells, options);
  const Known known(targets, cells.cells);
  const std::vector<std::int64_t> numbers = known.cells();
  FinetuneOptions step = options;
  step.batch_cells = cells_of_step(std::ssize(numbers), options);
  const Split split = split_cells(numbers, options.validation, "finetune.split", run.seed());
  std::vector<double> class_weight(known.is_class() ? targets.names.size() : 0, 1.0);
  if (known.is_class()) {
    const std::vector<double> all = class_counts(known, numbers, targets.names.size()),
                              trained = class_counts(known, split.training, targets.names.size());
    for (std::size_t c = 0; c < all.size(); ++c) {
      if (all[c] == 0) wrong("class \"", targets.names[c], "\" has no cell");
      if (options.balanced && trained[c] > 0)
        class_weight[c] = static_cast<double>(split.training.size()) /
                          static_cast<double>(all.size()) / trained[c];
    }
  }
  const Backbone model = with_head(start, targets, options, known, split.training, run);
  const std::int64_t blocks = model.options.blocks,
                     first_block = options.blocks < 0 ? 0 : blocks - options.blocks;
  check_training_memory(model, finetune_memory(model, step, run.threads()));
  HeadObjective<float> objective(model, class_weight);
  const SampleShape shape{options.length, 0};
  std::vector<double> target;
  // The tokens of some cells, and their targets in the order of the tokens.
  const auto sample_of = [&](std::span<const std::int64_t> rows, std::span<const double> values,
                             std::uint64_t stream, auto number) {
    Sample sample = draw_sample(values, cells.features, model.options, shape, [&](std::int64_t c) {
      return Rng(run.seed(),
                 {hash("finetune.tokens"), stream, static_cast<std::uint64_t>(number(c))});
    });
    target.clear();
    for (const std::int64_t c : sample.cell)
      for (std::int64_t j = 0; j < known.columns(); ++j)
        target.push_back(known.value(rows[at(c)], j));
    return sample;
  };
  const auto loss = [&](std::int64_t step, std::span<const std::int64_t> rows,
                        std::span<const double> values, std::span<const float> p,
                        std::span<float> gradient) {
    const Sample sample = sample_of(rows, values, static_cast<std::uint64_t>(step + 1),
                                    [](std::int64_t c) { return c; });
    return objective(p, sample.tokens, target, step, first_block, gradient, run);
  };
  const auto validate = [&](std::span<const float> p) {
    double sum = 0, n = 0;
    const std::span<const std::int64_t> all = split.validation;
    for_cells(cells, all, run, [&](std::span<const double> values, std::int64_t first) {
      const auto rows = all.subspan(at(first), values.size() / at(cells.features));
      const Sample sample = sample_of(rows, values, 0, [&](std::int64_t c) { return rows[at(c)]; });
      const double weight = weight_of(target, class_weight);
      sum += weight * objective(p, sample.tokens, target, -1, blocks, {}, run);
      n += weight;
    });
    return sum / n;
  };
  FinetuneOptions given = options;
  ValueHash of_targets;
  std::vector<double> known_values = targets.values; // NaN has no one form
  std::ranges::replace_if(known_values, [](double v) { return std::isnan(v); }, 1e300);
  of_targets.add(known_values);
  Trained fit = train(model,
                      {.name = "finetune",
                       .options = options,
                       .cells = cells,
                       .split = split,
                       .slots = objective.slots(),
                       .moves = [&](const Slot& slot) { return moves(slot, first_block, blocks); },
                       .loss = loss,
                       .validate = validate,
                       .baseline = guess(known, model.head, split, class_weight),
                       .identity = hash(message(identity_of(model, cells, fields(given), run), " ",
                                                of_targets.value()))},
                      run, checkpoint);
  objective.release(run);
  return fit;
}

template <class T>
double finetune_loss(const Backbone& backbone, std::span<const T> parameters, const Tokens& tokens,
                     std::span<const double> target, std::span<const double> class_weight,
                     std::int64_t first_block, std::int64_t step, std::span<T> gradient, Run& run) {
  check_tokens(tokens, backbone);
  const Head& head = backbone.head;
  if (head.kind == HeadKind::none)
    throw Error(Status::unsupported,
                "the model tells nothing of cells; it has to be fine-tuned first");
  const Slots slots = checked_slots(backbone);
  check_parameters(parameters.size(), slots);
  if (!gradient.empty()) check_parameters(gradient.size(), slots);
  const std::int64_t names = std::ssize(head.names);
  const bool classes = head.kind == HeadKind::classes;
  const auto check_length = [](std::size_t given, std::int64_t expected, const char* what) {
    if (given != at(expected))
      throw Error(Status::dim_mismatch,
                  message(what, " has ", given, " elements; it must have ", expected));
  };
  check_length(target.size(), tokens.cells() * (classes ? 1 : names), "target");
  if (!class_weight.empty()) check_length(class_weight.size(), classes ? names : 0, "class_weight");
  for (const double v : target)
    if (classes && !std::isnan(v) && !(v >= 0 && v < static_cast<double>(names)))
      wrong("a target is ", v, "; it must be a class from 0 to ", names - 1, ", or NaN");
  if (first_block < 0 || first_block > backbone.options.blocks)
    wrong("first_block is ", first_block, "; it must be 0 to ", backbone.options.blocks);
  HeadObjective<T> objective(backbone, class_weight);
  return objective(parameters, tokens, target, step, first_block, gradient, run);
}

template double finetune_loss<float>(const Backbone&, std::span<const float>, const Tokens&,
                                     std::span<const double>, std::span<const double>, std::int64_t,
                                     std::int64_t, std::span<float>, Run&);
template double finetune_loss<double>(const Backbone&, std::span<const double>, const Tokens&,
                                      std::span<const double>, std::span<const double>,
                                      std::int64_t, std::int64_t, std::span<double>, Run&);

} // namespace cape
