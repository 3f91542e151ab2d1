// Blocks of cells of an assay, as R reads them, and what belongs to them.
#ifndef CAPEOMICS_BLOCKS_HPP
#define CAPEOMICS_BLOCKS_HPP
#include "glue.hpp"

namespace capeomics {

// A dgCMatrix of features x cells as the core's cells x features: the same memory, read by row.
inline cape_sparse_view by_cell(const SparseColumns &assay) {
  cape_sparse_view v = assay.view();
  std::swap(v.n_rows, v.n_cols);
  v.layout = CAPE_ROW_MAJOR;
  return v;
}

// A block, a double matrix or a dgCMatrix, likewise.
class Block {
public:
  explicit Block(const Rcpp::RObject &x) : is_sparse_(x.isS4()) {
    if (is_sparse_) {
      columns_ = std::make_unique<SparseColumns>(Rcpp::S4(x));
      sparse_ = by_cell(*columns_);
    } else {
      values_ = Rcpp::NumericMatrix(x);
      dense_ = CAPE_ROW_MATRIX_VIEW(values_.begin(), values_.ncol(), values_.nrow());
    }
  }
  int64_t n_cells() const { return is_sparse_ ? sparse_.n_rows : dense_.n_rows; }
  // for_dense or for_sparse, with the view of the block.
  template <class Dense, class Sparse>
  cape_status give(Dense for_dense, Sparse for_sparse) const {
    return is_sparse_ ? for_sparse(&sparse_) : for_dense(&dense_);
  }

private:
  bool is_sparse_;
  std::unique_ptr<SparseColumns> columns_;
  Rcpp::NumericMatrix values_;
  cape_matrix_view dense_{};
  cape_sparse_view sparse_{};
};

// These rows of an assay that has `n`, or for NULL all, as the core takes them.
class Features {
public:
  Features(int n, const Rcpp::Nullable<Rcpp::IntegerVector> &rows) : size_(n) {
    if (rows.isNull())
      return;
    numbers_ = zero_based(Rcpp::IntegerVector(rows.get()));
    size_ = static_cast<int>(numbers_.size());
    numbers_.push_back(0); // an empty list has an address too, since NULL is all
    list_ = numbers_.data();
  }
  const int64_t *list() const { return list_; }
  int size() const { return size_; }

private:
  std::vector<int64_t> numbers_;
  const int64_t *list_ = nullptr;
  int size_;
};

// The factors of some cells of an assay; none for NULL.
class Factors {
public:
  explicit Factors(const Rcpp::Nullable<Rcpp::NumericVector> &all) {
    if (all.isNotNull())
      all_ = Rcpp::NumericVector(all.get());
  }
  const double *of(const Rcpp::IntegerVector &cells) {
    some_.clear();
    if (all_.size() == 0)
      return nullptr;
    for (const int cell : cells)
      some_.push_back(all_[cell - 1]);
    return some_.data();
  }

private:
  Rcpp::NumericVector all_;
  std::vector<double> some_;
};

// The transformed values of these features in a block that must have n cells: cell after cell.
inline void transform_block(double *out, int64_t n, const Block &block, const Features &features,
                            const double *factors, int logarithm) {
  check(block.give(
      [&](auto *x) {
        return cape_transform_by_row(out, n, features.size(), x, factors, logarithm,
                                     features.list());
      },
      [&](auto *x) {
        return cape_transform_by_row_sparse(out, n, features.size(), x, factors, logarithm,
                                            features.list());
      }));
}

} // namespace capeomics
#endif
