// Layer normalisation of one row in the widest instructions that the CPU has (see
// simd/vector_math.hpp).
#pragma once
#include <cstdint>

namespace cape::simd {

/// y = (x - mean) inverse_sd gain + bias, the moments being those of x, which are given back; x
/// becomes x + residual first, unless that is null.
void norm_row(float* x, const float* residual, const float* gain, const float* bias,
              std::int64_t width, double epsilon, float* y, float* mean, float* inverse_sd);
void norm_row(double* x, const double* residual, const double* gain, const double* bias,
              std::int64_t width, double epsilon, double* y, double* mean, double* inverse_sd);

/// d_x (added to what is there, or written over it), d_gain and d_bias (added) of the same.
void norm_row_backward(const float* x, float mean, float inverse_sd, const float* gain,
                       const float* d_y, std::int64_t width, bool added, float* d_x, float* d_gain,
                       float* d_bias);
void norm_row_backward(const double* x, double mean, double inverse_sd, const double* gain,
                       const double* d_y, std::int64_t width, bool added, double* d_x,
                       double* d_gain, double* d_bias);

} // namespace cape::simd
