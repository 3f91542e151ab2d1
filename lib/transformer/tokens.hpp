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

inline constexpr std::int64_t values_in_a_read = 1 << 21;
/// How many cells are read at once, in groups of so many: far more than a batch has, since a file
/// answers few large questions sooner than many small ones.
std::int64_t cells_in_a_read(std::int64_t features, std::int64_t group);

/// body(values, number of the first among `numbers`) for these cells, some at a time.
template <class F>
void for_cells(const Cells& cells, std::span<const std::int64_t> numbers, Run& run, F body) {
  const std::int64_t some = cells_at_once(cells.features),
                     reads = cells_in_a_read(cells.features, some), all = std::ssize(numbers);
  std::vector<double> values;
  for (std::int64_t begin = 0; begin < all; begin += reads) {
    const std::int64_t end = std::min(begin + reads, all);
    run.poll();
    values.resize(at((end - begin) * cells.features));
    cells.read(numbers.subspan(at(begin), at(end - begin)), values.data());
    for (std::int64_t first = begin; first < end; first += some) {
      run.poll();
      const std::int64_t n = std::min(some, end - first);
      body(std::span<const double>(values).subspan(at((first - begin) * cells.features),
                                                   at(n * cells.features)),
           first);
    }
  }
}

} // namespace cape
