// Assays (features x cells) in blocks of cells, as R reads them, to the core, which knows what library
// sizes, transformations and variances are.
#include "blocks.hpp"

using namespace capeomics;

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
    transform_block(to, cells.size(), Block(read(cells)), features, f, logarithm);
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
