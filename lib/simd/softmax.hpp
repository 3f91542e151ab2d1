// The row passes of an online softmax, in the widest instructions that the CPU has (see
// vector_math.hpp).
#pragma once
#include <cstdint>

namespace cape::simd {

/// x[i] = exp(x[i] - shift) in place; returns their sum.
double exp_sum(double* x, double shift, std::int64_t n);
float exp_sum(float* x, float shift, std::int64_t n);

} // namespace cape::simd
