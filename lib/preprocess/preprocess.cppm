// cape.preprocess: from counts (cells x features) to the table that Step I reads (paper,
// supp_preprocess): cell and feature filters, library-size normalisation, log1p, highly variable
// features. Sparse input stays sparse until the features have been chosen. The pieces that
// preprocess() is made of take counts in blocks of cells too, so that they need not be in memory.
module;
#include <cstddef>
#include <cstdint>
#include <span>
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
                                      ///< all features
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

/// The n features of a table with the largest variance, as rising column numbers; ties go to the
/// lower column. Sparse zeros count. Error(invalid_argument) unless 0 <= n <= columns, and for a
/// column whose variance is not finite.
std::vector<std::int64_t> most_variable(const SparseView& x, std::int64_t n);
std::vector<std::int64_t> most_variable(const MatrixView& x, std::int64_t n);
/// The same by variances that are known; an infinite one is the largest, NaN an error.
std::vector<std::int64_t> most_variable(std::span<const double> variance, std::int64_t n);

// ---------------------------------------------------------------------------- blocks of cells

/// What a cell has in all: its library size (missing values count as 0; infinite where it is beyond
/// the range of a double) and how many features have a value above 0. Sums run over the features in
/// order, whatever the form of the block.
struct CellSums {
  std::vector<double> library_size;
  std::vector<std::int64_t> detected;
};
CellSums cell_sums(const SparseView& cells);
CellSums cell_sums(const MatrixView& cells);

/// What the values of every cell are multiplied by: target_sum / library size or, where there are
/// size factors, their mean over the cells with counts divided by the cell's own; 0 for cells
/// without counts. Library sizes are not negative; size_factor is empty or has a value for each
/// cell, positive and finite where there are counts; Error(invalid_argument, dim_mismatch).
std::vector<double> cell_factors(std::span<const double> library_size,
                                 std::span<const double> size_factor, double target_sum);

enum class Logarithm : std::int32_t { none, natural, binary };
/// How counts become values: log(1 + count x factor). Counts that are not finite stay as they are;
/// Error(invalid_argument) for a finite one whose value would not be, before anything is written.
struct Transform {
  /// Of every cell of the block, finite and not negative; empty: 1.
  std::span<const double> factor = {};
  Logarithm logarithm = Logarithm::none;
};

/// The values of all features, or of these, in a block of cells, row by row: cells x features
/// numbers go to out. Error(dim_mismatch) for factors of another number.
void transformed_rows(const SparseView& cells, const Transform& how, double* out);
void transformed_rows(const MatrixView& cells, const Transform& how, double* out);
void transformed_rows(const SparseView& cells, const Transform& how,
                      std::span<const std::int64_t> features, double* out);
void transformed_rows(const MatrixView& cells, const Transform& how,
                      std::span<const std::int64_t> features, double* out);
/// The stored values of a block alone, in their order: zeros stay zeros.
void transformed_stored(const SparseView& cells, const Transform& how, double* out);

/// What a feature has in all cells.
struct FeatureSummary {
  std::int64_t count = 0; ///< of finite values
  std::int64_t detected = 0, missing = 0, infinite = 0;
  std::int64_t fractional = 0;      ///< finite and no whole number
  double smallest = 0, largest = 0; ///< of the finite values, 0 if there are none
  /// Of the finite values, with n - 1; within groups if there are any. Infinite where squares are
  /// beyond the range of a double; exactly 0 for a feature that does not vary within a group
  double variance = 0;
};

/// Summaries of features over cells that come in blocks. Sums and sums of squares carry their
/// rounding errors along (106 bits), so that values far from 0 do not cancel (mean 1e9 and standard
/// deviation 1 give 1), and zeros change none of them: the form of the blocks, and where they are
/// cut, change no bit, as long as cells come in the same order.
class FeatureScan {
public:
  /// Of all columns of the blocks, which have `columns`.
  explicit FeatureScan(std::int64_t columns);
  /// Of these. Error(invalid_argument) for numbers out of range or twice.
  FeatureScan(std::int64_t columns, std::span<const std::int64_t> features);

  /// Further cells. Error(dim_mismatch) for a block with another number of columns or factors.
  void add(const SparseView& cells, const Transform& how);
  void add(const MatrixView& cells, const Transform& how);
  /// One value of a further cell, by the number of the feature among those looked at; those that
  /// are not given are 0. end_cells() says how many cells that were.
  void add(std::int64_t feature, double value);
  void end_cells(std::int64_t count);
  /// The cells so far are a group (a batch): variances are taken within groups.
  void end_group();

  std::vector<FeatureSummary> summaries() const;

private:
  struct Sum {
    double high = 0, low = 0;
  };
  struct Feature {
    FeatureSummary all;
    // Of the present group.
    std::int64_t stored = 0, count = 0;
    double smallest = 0, largest = 0;
    Sum sum, squares;
    // Of the groups that ended.
    double within = 0, degrees = 0;
  };
  FeatureScan(std::vector<std::int64_t> place, std::size_t features);
  template <class View>
  void add_block(const View& cells, const Transform& how);
  static void close(Feature& feature, std::int64_t cells);
  std::vector<std::int64_t> place_; ///< of a column among the features looked at, or -1
  std::vector<Feature> features_;
  std::int64_t cells_ = 0; ///< of the present group
};

} // namespace cape
