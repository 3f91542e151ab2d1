// Matrix views and owning matrices, dense and sparse.
module;
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>
export module cape.core:matrix;
import :errors;
import :run;

export namespace cape {

enum class Layout : std::int32_t { col_major = 0, row_major = 1 };

/// A borrowed dense matrix. `ld` is the distance, in elements, between the starts of neighbouring
/// columns (col_major) or rows (row_major).
template <class T>
struct BasicMatrixView {
  const T* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t ld = 0;
  Layout layout = Layout::col_major;

  const T& operator()(std::int64_t i, std::int64_t j) const {
    return layout == Layout::col_major ? data[j * ld + i] : data[i * ld + j];
  }
};
using MatrixView = BasicMatrixView<double>;

/// values.resize(size), polling the run between pieces of 8 MB: memory that is touched for the
/// first time takes longer than a callback may wait.
template <class T>
void resize(std::vector<T>& values, std::int64_t size, Run& run) {
  constexpr std::size_t piece = (std::size_t{1} << 23) / sizeof(T);
  const auto all = static_cast<std::size_t>(size);
  if (values.size() > all) values.resize(all);
  values.reserve(all);
  while (values.size() < all) {
    run.poll();
    values.resize(std::min(values.size() + piece, all));
  }
}

/// So many zeros.
template <class T>
void assign_zeros(std::vector<T>& values, std::int64_t size, Run& run) {
  values.clear();
  resize(values, size, run);
}

/// values become a copy of others, which are not part of them.
template <class T>
void assign(std::vector<T>& values, std::span<const T> from, Run& run) {
  constexpr std::size_t piece = (std::size_t{1} << 23) / sizeof(T);
  values.clear();
  values.reserve(from.size());
  while (values.size() < from.size()) {
    run.poll();
    const auto next = from.subspan(values.size(), std::min(piece, from.size() - values.size()));
    values.insert(values.end(), next.begin(), next.end());
  }
}

/// An owning dense matrix, column-major without gaps (ld == rows), zero when created.
template <class T>
class BasicMatrix {
public:
  BasicMatrix() = default;
  BasicMatrix(std::int64_t rows, std::int64_t cols)
      : rows_(rows), cols_(cols),
        values_(static_cast<std::size_t>(checked_size(rows, cols, "matrix"))) {}
  /// The same, polling the run meanwhile: a gigabyte of zeros takes half a second.
  BasicMatrix(std::int64_t rows, std::int64_t cols, Run& run);

  std::int64_t rows() const noexcept { return rows_; }
  std::int64_t cols() const noexcept { return cols_; }
  std::int64_t size() const noexcept { return rows_ * cols_; }
  bool empty() const noexcept { return values_.empty(); }
  T* data() noexcept { return values_.data(); }
  const T* data() const noexcept { return values_.data(); }
  T* column(std::int64_t j) noexcept { return values_.data() + j * rows_; }
  const T* column(std::int64_t j) const noexcept { return values_.data() + j * rows_; }
  T& operator()(std::int64_t i, std::int64_t j) noexcept {
    return values_[static_cast<std::size_t>(j * rows_ + i)];
  }
  const T& operator()(std::int64_t i, std::int64_t j) const noexcept {
    return values_[static_cast<std::size_t>(j * rows_ + i)];
  }
  BasicMatrixView<T> view() const noexcept {
    return {values_.data(), rows_, cols_, rows_, Layout::col_major};
  }
  operator BasicMatrixView<T>() const noexcept { return view(); }
  /// The first columns alone, which stay where they are.
  void keep_columns(std::int64_t count) {
    cols_ = count;
    values_.resize(static_cast<std::size_t>(rows_ * count));
  }
  bool operator==(const BasicMatrix&) const = default;

private:
  std::int64_t rows_ = 0;
  std::int64_t cols_ = 0;
  std::vector<T> values_;
};
using Matrix = BasicMatrix<double>;

template <class T>
BasicMatrix<T>::BasicMatrix(std::int64_t rows, std::int64_t cols, Run& run)
    : rows_(rows), cols_(cols) {
  resize(values_, checked_size(rows, cols, "matrix"), run);
}

/// A borrowed sparse matrix, compressed along columns (col_major: CSC) or rows (row_major: CSR).
/// `offsets` has one entry more than there are columns (rows); `indices` are the row (column)
/// numbers, strictly increasing inside each column (row).
/// An R dgCMatrix of genes x cells is, without a copy, the row_major form of cells x genes.
struct SparseView {
  const double* values = nullptr;
  const std::int32_t* indices = nullptr;
  const std::int64_t* offsets = nullptr;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  Layout layout = Layout::col_major;

  std::int64_t outer() const { return layout == Layout::col_major ? cols : rows; }
  std::int64_t inner() const { return layout == Layout::col_major ? rows : cols; }
  std::int64_t nonzeros() const { return outer() > 0 ? offsets[outer()] : 0; }
};

/// An owning sparse matrix in one of the two compressed forms; what is not stored is 0.
struct SparseMatrix {
  std::vector<double> values;
  std::vector<std::int32_t> indices;
  std::vector<std::int64_t> offsets;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  Layout layout = Layout::col_major;

  SparseView view() const {
    return {values.data(), indices.data(), offsets.data(), rows, cols, layout};
  }
  operator SparseView() const { return view(); }
  bool empty() const noexcept { return rows == 0 || cols == 0; }
  /// Entry (i, j), which must lie inside. O(log of the entries of its column (row)).
  double operator()(std::int64_t i, std::int64_t j) const;
  bool operator==(const SparseMatrix&) const = default;
};

/// Throw unless a view is usable: dimensions not negative, their product representable, data not
/// null where there are elements, ld at least the length of a column (row). `name` is the argument.
void check_view(const MatrixView& view, std::string_view name);
/// The same for a float matrix.
void check_view(const BasicMatrixView<float>& view, std::string_view name);
/// The same for a sparse view: offsets start at 0 and do not fall, indices in range and increasing.
/// O(nonzeros).
void check_view(const SparseView& view, std::string_view name);
/// Throw Error(invalid_argument) with the place of the first NaN or infinity and their count.
void check_finite(const MatrixView& view, std::string_view name);

/// The same for the entries of a sparse view.
void check_finite(const SparseView& view, std::string_view name);

/// A column-major copy of a view.
Matrix to_matrix(const MatrixView& view);
/// The same of a sparse view. Error(out_of_memory) if rows x cols numbers do not fit.
Matrix to_matrix(const SparseView& view);
/// The entries of a view that are not zero, compressed along its own layout.
/// Error(invalid_argument) unless both sides are below 2^31.
SparseMatrix to_sparse(const MatrixView& view);

} // namespace cape
