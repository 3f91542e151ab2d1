// cape.preprocess: from counts (cells x features) to the table that Step I reads (paper,
// supp_preprocess): cell and feature filters, library-size normalisation, log1p, highly variable
// features, centring and scaling. Sparse input stays sparse until the columns have been chosen.
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
  Matrix x;                            ///< kept cells x kept features
  std::vector<std::int64_t> cells;     ///< their rows in the input, rising
  std::vector<std::int64_t> features;  ///< their columns in the input, rising
  std::vector<double> library_size;    ///< of the kept cells, before normalisation
};

/// counts: cells x features, sparse (either compressed form) or dense; finite and not negative, else
/// Error(invalid_argument). Error(invalid_argument) too when fewer than 2 features or cells are left.
/// Variable features are those of most_variable() on the transformed values.
Preprocessed preprocess(const SparseView& counts, const PreprocessOptions& options, Run& run);
Preprocessed preprocess(const MatrixView& counts, const PreprocessOptions& options, Run& run);

/// The n columns of a table with the largest variance, as rising column numbers; ties go to the lower
/// column. Sparse zeros count. n <= columns.
std::vector<std::int64_t> most_variable(const SparseView& x, std::int64_t n);
std::vector<std::int64_t> most_variable(const MatrixView& x, std::int64_t n);

/// Column means and (n-1) standard deviations, ignoring NaN; sd 0 for a constant column.
struct ColumnMoments {
  std::vector<double> mean;
  std::vector<double> sd;
};
ColumnMoments column_moments(const MatrixView& x);

} // namespace cape
