// The acyclicity measure -log det(I - S).
module;
#include "internal/arma.hpp"
#include "internal/borrow.hpp"
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <new>
#include <typeinfo>
#include <variant>
#include <vector>
module cape.dag;
#include "dag/acyclicity.hpp"

namespace cape::sem {
namespace {

// h = -log det(I - S), gradient (I - S)^-T. I - S is an M-matrix, the domain of h, exactly when
// elimination without pivoting meets positive pivots only (A. Berman and R. J. Plemmons,
// Nonnegative Matrices in the Mathematical Sciences, 1979, chapter 6), and is stable then. One
// Gauss-Jordan pass gives the pivots and the inverse.
double log_determinant(const Matrix& s_in, Matrix& gradient, Run& run) {
  const arma::mat s = borrow(s_in.data(), s_in.rows(), s_in.cols());
  const arma::uword n = s.n_rows;
  arma::mat inverse = -s;
  inverse.diag() += 1;
  std::vector<double> factor(n);
  double h = 0;
  for (arma::uword k = 0; k < n; ++k) {
    const double pivot = inverse(k, k);
    if (!(pivot > 0)) return std::numeric_limits<double>::infinity();
    h -= std::log(pivot);
    std::copy_n(inverse.colptr(k), n, factor.begin());
    factor[k] = 0;
    inverse.col(k).zeros();
    inverse(k, k) = 1;
    for (arma::uword j = 0; j < n; ++j) {
      double* column = inverse.colptr(j);
      if (column[k] == 0) continue;
      column[k] /= pivot;
      for (arma::uword i = 0; i < n; ++i) column[i] -= factor[i] * column[k];
    }
    run.poll();
  }
  arma::mat slope = borrow(gradient.data(), s_in.rows(), s_in.cols());
  slope = inverse.t();
  return h;
}

} // namespace

AcyclicityMeasure make_log_determinant() { return log_determinant; }

} // namespace cape::sem
