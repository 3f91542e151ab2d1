// The paper's own form z = f(x)(I - A) with one f for all columns (eq_enc).
#pragma once
#include "dag/noise.hpp"

namespace cape::sem {

// z = f (I - A) for values f of a batch: z, its score, and the gradients with respect to A (into
// slope) and to f (into f_slope).
class MixingLayer {
public:
  inline double score(const Batch<double>& batch, const arma::mat& f, const arma::mat& a,
               const Noise& noise, arma::mat& slope, arma::mat& f_slope) {
    z_ = f - f * a;
    double total = 0;
    for (arma::uword j = 0; j < z_.n_cols; ++j)
      total +=
          noise.score(z_.colptr(j), batch.rows,
                       batch.weight ? batch.weight + j * z_.n_rows : nullptr);
    slope = f.t() * z_;
    slope *= -1;
    slope.diag().zeros();
    f_slope = z_ - z_ * a.t();
    return total;
  }

private:
  arma::mat z_;
};

// The sign of A: f is shared, so a cause and its effect go through it the same way.
inline void signs_of(const double* a, Matrix& sign) {
  for (std::int64_t e = 0; e < sign.size(); ++e) sign.data()[e] = (a[e] > 0) - (a[e] < 0);
}

} // namespace cape::sem
