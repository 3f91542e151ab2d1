// Fits to parts of the rows.
#pragma once
#include "dag/augmented_lagrangian.hpp"

namespace cape::sem {

/// How many bags there are, see DagOptions::bags; 0: none.
std::int64_t bag_count(const DagOptions& options, std::int64_t rows, std::int64_t features);

/// How many of the rows a bag has, and of the epochs.
std::int64_t bag_rows(std::int64_t rows);
std::int64_t bag_epochs(const DagOptions& options);

/// What fits to parts of the rows have in common.
struct BaggedModel {
  TrainedModel mean;  ///< of the weights and the history; signs by majority; the largest h
  SparseMatrix share; ///< of the fits whose weight is above the threshold
};
/// One fit to some rows of the table.
using Training =
    std::function<TrainedModel(std::span<const std::int64_t> rows, Run&, const Place&)>;
/// The mean of that many fits, each to 80 % of the rows drawn without replacement, with random
/// numbers of its own. checkpoint: null, or where to go on, kept up to date.
BaggedModel train_bags(const Table& table, std::int64_t bags, const DagOptions& options,
                       const Training& train, Run& run, Checkpoint* checkpoint);

} // namespace cape::sem
