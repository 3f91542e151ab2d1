// The cells that a model reads.
#ifndef CAPEOMICS_CELLS_HPP
#define CAPEOMICS_CELLS_HPP
#include "blocks.hpp"

namespace capeomics {

// Of a double matrix, features x cells, all at once; of an object that stream_cells() makes in R
// those that the core asks for, when it does. The core asks on the thread of the call, which is R's.
class Cells {
public:
  explicit Cells(const Rcpp::RObject &given);
  Cells(const Cells &) = delete;
  Cells &operator=(const Cells &) = delete;
  const cape_cells *get() const { return &cells_; }
  int64_t n_cells() const { return n_cells_; }
  int64_t n_features() const { return n_features_; }
  // These cells, from 0: value (feature j, cell r) goes to out[r * cell_step + j * feature_step].
  void read(double *out, const int64_t *cells, int64_t n, int64_t cell_step,
            int64_t feature_step) const;

private:
  struct Stream;
  static int on_read(double *out, const int64_t *cells, int64_t n, void *self);
  int64_t n_cells_ = 0, n_features_ = 0;
  cape_matrix_view table_{};
  cape_row_source source_{};
  cape_cells cells_{};
  Rcpp::NumericMatrix values_;
  std::shared_ptr<Stream> stream_; // none for a matrix
};

} // namespace capeomics
#endif
