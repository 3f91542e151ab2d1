// cape.preprocess: from counts (cells x features) to the table that Step I reads (paper,
// supp_preprocess): cell and feature filters, library-size normalisation, log1p, highly variable
// features. Sparse input stays sparse until the columns have been chosen.
module;
#include <cstdint>
#include <vector>
export module cape.preprocess;
import cape.core;

export namespace cape {

struct PreprocessOptions {
  std::int64_t min_features = 200; ///< drop cells with fewer detected (> 0) features
  std::int64_t min_cells = 3;      ///< drop features detected in fewer cells
  bool normalize = true;           ///< scale every cell to target_sum (cells without counts stay 0)
  double target_sum = 1e4;
  bool log1p = true;
  std::int64_t n_variable = 0; ///< keep this many most variable features; 0 keeps all
};
OptionFields fields(PreprocessOptions& options);

struct Preprocessed {
  Matrix x;                           ///< kept cells x kept features
  std::vector<std::int64_t> cells;    ///< their rows in the input, rising
  std::vector<std::int64_t> features; ///< their columns in the input, rising
  std::vector<double> library_size;   ///< a kept cell's counts before normalisation, summed over
                                      ///< the features that pass min_cells
};

/// counts: cells x features, sparse (either compressed form) or dense. The cells are filtered
/// first, then the features by the cells that are left; then each value is transformed, and the
/// features of most_variable() on the transformed values become columns of x. Only those columns
/// are ever dense: O(nonzeros) time, O(cells + features + size of x) memory (and a compressed copy
/// of dense counts). Both forms of the same counts give the same bits.
/// Error(invalid_argument) for an option out of its range, for counts that are negative or not
/// finite (naming the first and how many), and when fewer than 2 features or cells pass the
/// filters.
Preprocessed preprocess(const SparseView& counts, const PreprocessOptions& options, Run& run);
Preprocessed preprocess(const MatrixView& counts, const PreprocessOptions& options, Run& run);

/// The n columns of a table with the largest variance, as rising column numbers; ties go to the
/// lower column. Sparse zeros count. Error(invalid_argument) unless 0 <= n <= columns, and for a
/// column whose variance is not finite.
std::vector<std::int64_t> most_variable(const SparseView& x, std::int64_t n);
std::vector<std::int64_t> most_variable(const MatrixView& x, std::int64_t n);

/// Column means and (n-1) standard deviations, ignoring NaN; sd is exactly 0 for a constant column,
/// for one with a single value and for one without values (mean 0 too). Error(invalid_argument)
/// for infinite values and for moments that overflow.
struct ColumnMoments {
  std::vector<double> mean;
  std::vector<double> sd;
};
ColumnMoments column_moments(const MatrixView& x);

} // namespace cape
