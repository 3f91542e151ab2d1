// Assays (features x cells) in blocks of cells, as R reads them, to the core, which knows what library
// sizes, transformations and variances are.
#include "glue.hpp"

using namespace capeomics;

namespace {

// A dgCMatrix of features x cells as the core's cells x features: the same memory, read by row.
cape_sparse_view by_cell(const SparseColumns &assay) {
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

} // namespace

// The rows of cape_scan_summary(), of `rows` (NULL: all) of an assay with that many features, whose cells
// come in groups of blocks: read() gives a block from the numbers of its cells.
// [[Rcpp::export(rng = false)]]
Rcpp::NumericMatrix core_scan(int n_features, const Rcpp::Nullable<Rcpp::IntegerVector> &rows,
                              const Rcpp::List &groups, const Rcpp::Function &read,
                              const Rcpp::Nullable<Rcpp::NumericVector> &factors, int logarithm) {
  const Features features(n_features, rows);
  Factors factor(factors);
  Scan scan;
  check(cape_scan_new(scan.out(), n_features, features.list(), features.size()));
  for (R_xlen_t g = 0; g < groups.size(); ++g) {
    const Rcpp::List blocks(groups[g]);
    for (R_xlen_t b = 0; b < blocks.size(); ++b) {
      const Rcpp::IntegerVector cells(blocks[b]);
      const double *f = factor.of(cells);
      check(Block(read(cells))
                .give([&](auto *x) { return cape_scan_add(scan.get(), x, f, logarithm); },
                      [&](auto *x) { return cape_scan_add_sparse(scan.get(), x, f, logarithm); }));
    }
    check(cape_scan_end_group(scan.get()));
  }
  Rcpp::NumericMatrix out = allocate_matrix(features.size(), 8);
  check(cape_scan_summary(out.begin(), features.size(), 8, scan.get()));
  return out;
}

// Library size and detected features of n cells.
// [[Rcpp::export(rng = false)]]
Rcpp::NumericMatrix core_cell_sums(int n, const Rcpp::List &blocks, const Rcpp::Function &read) {
  Rcpp::NumericMatrix out = allocate_matrix(n, 2);
  R_xlen_t at = 0;
  for (R_xlen_t b = 0; b < blocks.size(); ++b) {
    const Block block(read(Rcpp::IntegerVector(blocks[b])));
    const int64_t cells = block.n_cells();
    std::vector<int64_t> detected(static_cast<std::size_t>(cells));
    double *sizes = out.begin() + at;
    check(block.give(
        [&](auto *x) { return cape_cell_sums(sizes, detected.data(), cells, x); },
        [&](auto *x) { return cape_cell_sums_sparse(sizes, detected.data(), cells, x); }));
    std::copy(detected.begin(), detected.end(), sizes + n);
    at += cells;
  }
  return out;
}

// [[Rcpp::export(rng = false)]]
Rcpp::NumericVector core_cell_factors(const Rcpp::NumericVector &sizes,
                                      const Rcpp::Nullable<Rcpp::NumericVector> &own,
                                      double target) {
  Rcpp::NumericVector out = allocate<REALSXP>(sizes.size());
  const Rcpp::NumericVector given =
      own.isNull() ? Rcpp::NumericVector() : Rcpp::NumericVector(own.get());
  check(cape_cell_factors(out.begin(), out.size(), sizes.begin(),
                          own.isNull() ? nullptr : given.begin(), target));
  return out;
}

// `rows` (NULL: all) of an assay with that many features and cells, dense: features x cells.
// [[Rcpp::export(rng = false)]]
Rcpp::NumericMatrix core_transform(int n_features, int n_cells,
                                   const Rcpp::Nullable<Rcpp::IntegerVector> &rows,
                                   const Rcpp::List &blocks, const Rcpp::Function &read,
                                   const Rcpp::Nullable<Rcpp::NumericVector> &factors,
                                   int logarithm) {
  const Features features(n_features, rows);
  Factors factor(factors);
  const int n = features.size();
  Rcpp::NumericMatrix out = allocate_matrix(n, n_cells);
  double *to = out.begin();
  for (R_xlen_t b = 0; b < blocks.size(); ++b) {
    const Rcpp::IntegerVector cells(blocks[b]);
    const double *f = factor.of(cells);
    check(Block(read(cells)).give(
        [&](auto *x) {
          return cape_transform_by_row(to, cells.size(), n, x, f, logarithm, features.list());
        },
        [&](auto *x) {
          return cape_transform_by_row_sparse(to, cells.size(), n, x, f, logarithm,
                                              features.list());
        }));
    to += static_cast<R_xlen_t>(n) * cells.size();
  }
  return out;
}

// The slot x of a dgCMatrix (features x cells) after the transformation.
// [[Rcpp::export(rng = false)]]
Rcpp::NumericVector core_transform_stored(const Rcpp::S4 &assay, const Rcpp::NumericVector &factors,
                                          int logarithm) {
  const SparseColumns columns(assay);
  const cape_sparse_view cells = by_cell(columns);
  Rcpp::NumericVector out = allocate<REALSXP>(cells.offsets[cells.n_rows]);
  check(cape_transform_stored(out.begin(), out.size(), &cells, factors.begin(), logarithm));
  return out;
}

// [[Rcpp::export(rng = false)]]
Rcpp::IntegerVector core_largest_variances(const Rcpp::NumericVector &variance, int n) {
  std::vector<int64_t> out(static_cast<std::size_t>(n));
  check(cape_largest_variances(out.data(), n, variance.begin(), variance.size()));
  return one_based(out);
}

// In place: dimnames<- would copy a matrix that stands in a list. For one that nobody else has.
// [[Rcpp::export(rng = false)]]
void core_set_dimnames(SEXP x, const Rcpp::List &names) { Rf_setAttrib(x, R_DimNamesSymbol, names); }
