// Step III: rotations by angles.
#include "glue.hpp"

using namespace capeomics;

// v: L x D, angles: L x D/2.
// [[Rcpp::export(rng = false)]]
arma::mat core_rotate(const arma::mat &v, const arma::mat &angles, bool inverse) {
  arma::mat out(v.n_rows, v.n_cols);
  const cape_matrix_view a = view(v), phi = view(angles);
  const auto rotate = inverse ? cape_rotate_back : cape_rotate;
  check(rotate(out.memptr(), a.n_rows, a.n_cols, &a, &phi));
  return out;
}
