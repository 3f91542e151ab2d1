// The table that Step I learns from.
#pragma once

namespace cape::sem {

/// Whether a value is missing, of every value of a table; empty: none is.
using Mask = BasicMatrix<std::int8_t>;

/// What is learned from: the columns of a source that vary, centred (and scaled), 0 where missing
/// until impute(), in an order of their content, so that the fit does not depend on how they were
/// numbered. In memory, or read when rows are wanted; every number is the same either way.
class Table {
public:
  /// weight: of every value's own equation, by the source's rows and columns; empty if all are 1. A
  /// column whose weights are all 0 has no equation. Source and weight outlive the table.
  /// Error(invalid_argument) unless 2 columns vary.
  Table(const RowSource& source, const Matrix& weight, bool standardize, bool in_memory, Run& run);

  inline std::int64_t rows() const noexcept { return source_.rows; }
  inline std::int64_t source_columns() const noexcept { return source_.columns; }
  inline std::int64_t features() const noexcept { return std::ssize(columns_); }
  /// Of every feature its column in the source.
  inline const std::vector<std::int64_t>& columns() const noexcept { return columns_; }
  // By the source's columns.
  inline const std::vector<double>& center() const noexcept { return center_; }
  inline const std::vector<double>& scale() const noexcept { return scale_; }
  inline const std::vector<double>& deviation() const noexcept { return deviation_; }
  inline const std::vector<std::int64_t>& constant() const noexcept { return constant_; }
  /// Columns that vary and have no equation.
  inline const std::vector<std::int64_t>& exogenous() const noexcept { return exogenous_; }
  /// A hash of all values.
  inline std::uint64_t content() const noexcept { return content_; }
  /// Exactly collinear pairs of the source's columns (weight: their correlation).
  std::vector<Edge> collinear_pairs(Run& run) const;

  /// Rows by number, in the type that computes with them: rows.size() x features.
  template <class T>
  BasicMatrix<T> read(std::span<const std::int64_t> rows, Run& run) const;
  /// Their weights; empty if all are 1.
  template <class T>
  BasicMatrix<T> read_weights(std::span<const std::int64_t> rows, Run& run) const;
  /// Evenly spaced rows.
  Matrix spaced_rows(std::int64_t count, Run& run) const;
  /// The same of these features only; other columns are never in memory for more than a block.
  Matrix spaced_rows(std::int64_t count, std::span<const std::int64_t> features, Run& run) const;
  /// All rows; empty if they are not in memory.
  inline const Matrix& values() const noexcept { return values_; }

  /// Draw the missing values of a table in memory, see learn_dag(). Columns that had gaps have the
  /// mean 0 again, or every batch of them has; those known in fewer than 10 rows become exogenous.
  void impute(const Design& design, const DagOptions& options, Run& run);
  /// Which values were drawn, rows x features.
  inline const Mask& missing() const noexcept { return missing_; }
  /// The same of evenly spaced rows of these features.
  Mask spaced_missing(std::int64_t count, std::span<const std::int64_t> features) const;

private:
  struct Moments;
  void find_moments(Run& run);
  void prepare_values(Run& run);
  void sort_by_content(Run& run);
  void arrange_values(Run& run);
  double prepared_value(double x, std::int64_t column) const;
  Matrix whole(Run& run) const;
  Matrix raw(std::span<const std::int64_t> rows) const;
  template <class T>
  BasicMatrix<T> prepared(std::span<const std::int64_t> rows, Run& run) const;
  template <class T>
  BasicMatrix<T> gather(const Matrix& from, std::span<const std::int64_t> rows,
                        std::span<const std::int64_t> columns, Run& run) const;

  const RowSource& source_;
  const Matrix& weight_;
  bool standardize_;
  std::vector<double> center_, scale_;
  std::vector<double> deviation_; ///< standard deviations, of the source's columns as read
  std::vector<std::int64_t> constant_, exogenous_, columns_;
  std::uint64_t content_ = 0;
  Matrix values_; ///< empty unless in memory
  Mask missing_;
};

} // namespace cape::sem
