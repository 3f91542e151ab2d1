// The element-wise part of the contrastive objective over one column of the Gram matrix, in the
// widest instructions that the CPU has, chosen at run time (Google Highway).
#pragma once
#include <cstdint>

namespace cape::simd {

/// gram[i] -= 1, which leaves cosh d - 1; true if any of the results is below `lost` p0[i] q0, so
/// that the rounding of the product p0 q0 has eaten too much of it.
bool subtract_one(double* gram, const double* p0, double q0, double lost, std::int64_t n);

struct ContrastiveSums {
  double energy = 0; ///< sum of exp(-d/tau)
  double pulled = 0; ///< sum of target * d
};
/// For x = push[i] = cosh d - 1 >= 0 and s = sinh d (but at least min_sinh):
/// push[i] = exp(-d/tau) / s, pull[i] = target[i] / s, both 0 at d = 0; row_sums[i] += exp(-d/tau).
ContrastiveSums contrastive_column(double* push, double* pull, const double* target,
                                   double* row_sums, double inverse_temperature, double min_sinh,
                                   std::int64_t n);

/// push[i] = pull[i] - push[i] (share[i] + own_share).
void contrastive_slopes(double* push, const double* pull, const double* share, double own_share,
                        std::int64_t n);

} // namespace cape::simd
