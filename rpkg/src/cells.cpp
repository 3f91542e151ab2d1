#include "cells.hpp"

#include <limits>

namespace capeomics {

struct Cells::Stream {
  explicit Stream(const Rcpp::List &x)
      : read(get(x, "read")), numbers(get(x, "cells")),
        rows(Rcpp::as<int>(get(x, "n_rows")), Rcpp::Nullable<Rcpp::IntegerVector>(get(x, "rows"))),
        places(zero_based(Rcpp::IntegerVector(get(x, "places")))),
        factors(Rcpp::Nullable<Rcpp::NumericVector>(get(x, "factors"))),
        logarithm(Rcpp::as<int>(get(x, "logarithm"))) {}
  static SEXP get(const Rcpp::List &x, const char *name) { return x[name]; }
  Rcpp::Function read;
  Rcpp::IntegerVector numbers; // of the cells in the assay; NA: one without values
  Features rows;
  std::vector<int64_t> places; // of the rows among the model's features
  Factors factors;
  int logarithm;
  std::vector<double> block;
};

Cells::Cells(const Rcpp::RObject &given) {
  cells_.struct_size = sizeof cells_;
  if (!Rf_inherits(given, "cape_cells")) {
    values_ = Rcpp::NumericMatrix(given);
    n_features_ = values_.nrow();
    n_cells_ = values_.ncol();
    table_ = CAPE_ROW_MATRIX_VIEW(values_.begin(), n_cells_, n_features_);
    cells_.dense = &table_;
    return;
  }
  const Rcpp::List x(given);
  stream_ = std::make_shared<Stream>(x);
  n_features_ = Rcpp::as<int>(x["n_features"]);
  n_cells_ = stream_->numbers.size();
  source_ = {sizeof source_, n_cells_, n_features_, on_read, this};
  cells_.source = &source_;
}

int Cells::on_read(double *out, const int64_t *cells, int64_t n, void *self) {
  try {
    static_cast<const Cells *>(self)->read(out, cells, n, 1, n);
    return 0;
  } catch (...) { // an error of R as well: it goes on where the core has come to its end
    keep_failure(std::current_exception());
    return 1;
  }
}

void Cells::read(double *out, const int64_t *cells, int64_t n, int64_t cell_step,
                 int64_t feature_step) const {
  Stream &s = *stream_;
  std::vector<int64_t> asked; // in the order of the assay, as files are read fastest
  for (int64_t r = 0; r < n; ++r)
    if (s.numbers[cells[r]] != NA_INTEGER)
      asked.push_back(r);
  std::stable_sort(asked.begin(), asked.end(), [&](int64_t a, int64_t b) {
    return s.numbers[cells[a]] < s.numbers[cells[b]];
  });
  Rcpp::IntegerVector numbers = allocate<INTSXP>(static_cast<int64_t>(asked.size()));
  for (std::size_t i = 0; i < asked.size(); ++i)
    numbers[static_cast<R_xlen_t>(i)] = s.numbers[cells[asked[i]]];
  const std::size_t width = s.places.size();
  s.block.resize(asked.size() * width);
  if (!s.block.empty())
    transform_block(s.block.data(), numbers.size(), Block(s.read(numbers)), s.rows,
                    s.factors.of(numbers), s.logarithm);
  if (static_cast<int64_t>(width) < n_features_ || static_cast<int64_t>(asked.size()) < n)
    std::fill_n(out, n * n_features_, std::numeric_limits<double>::quiet_NaN());
  for (std::size_t j = 0; j < width; ++j)
    for (std::size_t i = 0; i < asked.size(); ++i)
      out[asked[i] * cell_step + s.places[j] * feature_step] = s.block[i * width + j];
}

} // namespace capeomics

// These cells of an object of stream_cells(), from 1: features x cells.
// [[Rcpp::export(rng = false)]]
Rcpp::NumericMatrix core_cells_values(const Rcpp::RObject &x, const Rcpp::IntegerVector &cells) {
  capeomics::Cells from(x);
  const std::vector<int64_t> numbers = capeomics::zero_based(cells);
  Rcpp::NumericMatrix out = capeomics::allocate_matrix(from.n_features(), cells.size());
  from.read(out.begin(), numbers.data(), cells.size(), from.n_features(), 1);
  return out;
}
