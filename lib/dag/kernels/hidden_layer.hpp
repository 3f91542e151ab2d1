// The hidden layer of an effect of model G (docs/method.md, section 2): between the two matrix
// products of a step, its sigmoids and their derivatives. Plain C++: see simd/vector_math.hpp.
#pragma once
#include <cstdint>

namespace cape::simd {

/// `units` (rows x hidden, column-major) come as pre-activations without their bias and leave as
/// s = 1 / (1 + exp(-clamp(units + bias, -25, 25))); z -= s v.
void hidden_layer(float* units, std::int64_t rows, std::int64_t hidden, const float* bias,
                  const float* v, float* z);
void hidden_layer(double* units, std::int64_t rows, std::int64_t hidden, const double* bias,
                  const double* v, double* z);

/// Back from dz, the derivatives of a loss with respect to z, and the sigmoids in `units`: v_slope
/// and bias_slope are its derivatives with respect to v and bias, and `units` leave as those with
/// respect to the pre-activations.
void hidden_layer_slopes(float* units, std::int64_t rows, std::int64_t hidden, const float* v,
                         const float* dz, float* v_slope, float* bias_slope);
void hidden_layer_slopes(double* units, std::int64_t rows, std::int64_t hidden, const double* v,
                         const double* dz, double* v_slope, double* bias_slope);

} // namespace cape::simd
