// Step III: rotations by angles.
#include "glue.hpp"

using namespace capeomics;

// v: L x D, angles: L x D/2.
// [[Rcpp::export(rng = false)]]
Rcpp::NumericMatrix core_rotate(const arma::mat &v, const arma::mat &angles, bool inverse) {
  const cape_matrix_view a = view(v), phi = view(angles);
  Rcpp::NumericMatrix out = allocate_matrix(a.n_rows, a.n_cols);
  const auto rotate = inverse ? cape_rotate_back : cape_rotate;
  check(rotate(out.begin(), a.n_rows, a.n_cols, &a, &phi));
  return out;
}
