// The course of a training, whatever is learned: steps, epochs, when it ends, checkpoints.
#pragma once
#include "transformer/parameters.hpp"

namespace cape {

/// The cells that a model is trained on, and those that tell when to stop.
struct Split {
  std::vector<std::int64_t> training, validation;
};
/// Of these cells, by the seed; in rising order.
Split split_cells(std::vector<std::int64_t> cells, double share, std::string_view purpose,
                  std::uint64_t seed);

/// Error(invalid_argument) unless two cells are left beside those of validation; and how many of
/// them a step has at most.
std::int64_t cells_of_step(std::int64_t cells, const TrainingOptions& options);
/// Error(out_of_memory) if the training of that model needs more than there is.
void check_training_memory(const Backbone& model, double bytes);

struct Training {
  /// The loss of a step for these cells, whose values are cells x features, and its gradient.
  using Loss = std::function<double(std::int64_t step, std::span<const std::int64_t> cells,
                                    std::span<const double> values,
                                    std::span<const float> parameters, std::span<float> gradient)>;
  /// The loss of the validation cells.
  using Validate = std::function<double(std::span<const float> parameters)>;

  std::string_view name; ///< of its progress and random numbers
  const TrainingOptions& options;
  const Cells& cells;
  const Split& split;
  const Slots& slots;
  std::function<bool(const Slot&)> moves; ///< whether a tensor is trained
  Loss loss;
  Validate validate;
  double baseline = 0;        ///< the validation loss of a guess
  std::uint64_t identity = 0; ///< stands for everything that the training depends on
};

/// Train start, whose tensors are those of training.slots.
Trained train(const Backbone& start, const Training& training, Run& run, Checkpoint* checkpoint);

/// A text that stands for a model before training, and for the cells, of an identity.
std::string identity_of(const Backbone& start, const Cells& cells, const OptionFields& training,
                        Run& run);

} // namespace cape
