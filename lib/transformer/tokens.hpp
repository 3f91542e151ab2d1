// From values to tokens.
#pragma once

namespace cape {

/// What a model is to predict: tokens, some hidden, and the true number of each.
struct Sample {
  Tokens tokens;
  std::vector<float> target;
  std::vector<std::int64_t> cell; ///< the number of each, as it was given
};

/// How many tokens of a cell are taken, at most, and which share of them is hidden.
struct SampleShape {
  std::int64_t length = 0;
  double hidden = 0; ///< 0: none, else at least one of every cell
};

/// Tokens of these cells, values x features by row: each cell's drawn by its own random numbers,
/// cells ordered by length.
Sample draw_sample(std::span<const double> values, std::int64_t features,
                   const BackboneOptions& options, const SampleShape& shape,
                   const std::function<Rng(std::int64_t cell)>& rng);

/// How many values of a batch of cells are read at once, and so how many cells that is.
std::int64_t cells_at_once(std::int64_t features);
/// Error(dim_mismatch) unless the cells have as many features as the model.
void check_features(const Cells& cells, const Backbone& backbone);
/// The numbers of all cells.
std::vector<std::int64_t> all_cells(const Cells& cells);

/// body(values, number of the first among `numbers`) for these cells, some at a time.
template <class F>
void for_cells(const Cells& cells, std::span<const std::int64_t> numbers, Run& run, F body) {
  const std::int64_t some = cells_at_once(cells.features);
  std::vector<double> values;
  for (std::int64_t first = 0; first < std::ssize(numbers); first += some) {
    run.poll();
    const std::int64_t n = std::min(some, std::ssize(numbers) - first);
    values.resize(static_cast<std::size_t>(n * cells.features));
    cells.read(numbers.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(n)),
               values.data());
    body(std::span<const double>(values), first);
  }
}

} // namespace cape
