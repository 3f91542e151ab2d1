// Element-wise loops in the widest instructions that the CPU has, chosen at run time (Google
// Highway). Plain C++, so that kernels can be compiled once per target; modules include it
// textually. CAPE_SIMD_TARGET in the environment (e.g. "SSE2", "AVX2") forces a target.
#pragma once
#include <cstdint>

namespace cape::simd {

/// The name of the target in use, e.g. "AVX3".
const char* target();

/// out[i] = 1 / (1 + exp(-clamp(x[i], -25, 25))); out may be x.
void sigmoid(const double* x, double* out, std::int64_t n);
void sigmoid(const float* x, float* out, std::int64_t n);
/// out[i] = tanh(x[i]); out may be x.
void tanh(const double* x, double* out, std::int64_t n);
/// out[i] = exp(x[i]); out may be x.
void exp(const double* x, double* out, std::int64_t n);
void exp(const float* x, float* out, std::int64_t n);

} // namespace cape::simd
