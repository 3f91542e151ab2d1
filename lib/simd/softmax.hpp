// The row passes of an online softmax, in the widest instructions that the CPU has (see
// vector_math.hpp).
#pragma once
#include <cstdint>

namespace cape::simd {

/// The largest of n > 0 numbers, none of them NaN.
double max(const double* x, std::int64_t n);
float max(const float* x, std::int64_t n);
/// x[i] = exp(x[i] - shift) in place; returns their sum.
double exp_sum(double* x, double shift, std::int64_t n);
float exp_sum(float* x, float shift, std::int64_t n);
/// The largest |x[i]|; infinity if any is NaN or infinite, 0 if n is 0.
double max_abs(const double* x, std::int64_t n);
float max_abs(const float* x, std::int64_t n);

} // namespace cape::simd
