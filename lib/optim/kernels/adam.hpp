// One step of Adam on a vector, with decoupled decay, and soft thresholding in the metric of the
// step. Plain C++: see simd/vector_math.hpp. Without fused multiply-adds, so that every instruction
// set gives the same bits.
#pragma once
#include <cstdint>

namespace cape::simd {

struct AdamStep {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double rate = 0;        ///< learning rate
  double correction1 = 1; ///< 1 / (1 - beta1^t)
  double correction2 = 1; ///< 1 / sqrt(1 - beta2^t)
  double l1 = 0;          ///< weight of |parameter|_1, taken by its proximal operator
  double decay = 0;       ///< decoupled weight decay
};

/// mean, square: running moments of the gradient. With d = sqrt(square) * correction2 + epsilon,
/// parameter <- soft(parameter (1 - rate decay) - rate * correction1 * mean / d, rate * l1 / d).
/// factor: of l1 for every parameter, or null for 1 everywhere; where it is infinite the parameter
/// becomes 0.
void adam_step(float* parameter, const float* gradient, float* mean, float* square, std::int64_t n,
               const AdamStep& step, const float* factor = nullptr);
void adam_step(double* parameter, const double* gradient, double* mean, double* square,
               std::int64_t n, const AdamStep& step, const double* factor = nullptr);

} // namespace cape::simd
