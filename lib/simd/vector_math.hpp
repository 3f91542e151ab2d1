// Element-wise loops in the widest instructions that the CPU has, chosen at run time (Google
// Highway). Plain C++, so that kernels can be compiled once per target; modules include it
// textually. CAPE_SIMD_TARGET in the environment (e.g. "SSSE3", "AVX2") forces a target that this
// build and CPU have; that of another changes nothing, and what is none is refused. Results differ
// between targets by rounding.
#pragma once
#include <cstdint>

namespace cape::simd {

/// The name of the target in use, e.g. "AVX3".
const char* target();

/// What CAPE_SIMD_TARGET holds if it is not the name of any target; else null.
const char* unknown_target();

// All functions: out may be x; NaN gives NaN but where another result is told; an element's result
// does not depend on its place.

/// out[i] = tanh(x[i]), within 4 units in the last place.
void tanh(const double* x, double* out, std::int64_t n);
/// out[i] = 2^x[i] for x[i] <= 127, within 2 units in the last place; 0 below -125 (float) and
/// -1021 (double), and for NaN.
void exp2(const double* x, double* out, std::int64_t n);
void exp2(const float* x, float* out, std::int64_t n);
/// The largest |x[i]|; infinity if any is NaN or infinite, 0 if n is 0.
double max_abs(const double* x, std::int64_t n);
float max_abs(const float* x, std::int64_t n);
/// Sines and cosines, the magnitude of an error being below 2 units in the last place of 1. Arrays
/// do not overlap.
void sin_cos(const double* x, double* sine, double* cosine, std::int64_t n);
void sin_cos(const float* x, float* sine, float* cosine, std::int64_t n);

} // namespace cape::simd
