#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "layers/kernels/norm.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "layers/kernels/norm.hpp"
#include "simd/along-inl.hpp"
#include <cmath>

HWY_BEFORE_NAMESPACE();
namespace cape::simd {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D, class V>
HWY_INLINE hn::TFromD<D> total(D d, V v) {
  return hn::GetLane(hn::SumOfLanes(d, v));
}

template <class T>
HWY_INLINE void Forward(T* x, const T* residual, const T* gain, const T* bias, std::int64_t width,
                        double epsilon, T* y, T* mean, T* inverse_sd) {
  const hn::ScalableTag<T> d;
  auto sum = hn::Zero(d);
  along(d, width, [&](std::int64_t i, std::int64_t n) HWY_ATTR {
    auto v = load_piece(d, x + i, n);
    if (residual != nullptr) {
      v = hn::Add(v, load_piece(d, residual + i, n));
      store_piece(v, d, x + i, n);
    }
    sum = hn::Add(sum, v);
  });
  const T center = total(d, sum) / static_cast<T>(width);
  const auto all_center = hn::Set(d, center);
  auto squares = hn::Zero(d);
  along(d, width, [&](std::int64_t i, std::int64_t n) HWY_ATTR {
    const auto v = hn::Sub(load_piece(d, x + i, n), all_center);
    const auto inside = hn::IfThenElseZero(hn::FirstN(d, static_cast<std::size_t>(n)), v);
    squares = hn::MulAdd(inside, inside, squares);
  });
  const T variance = total(d, squares) / static_cast<T>(width);
  const T inverse = T(1) / std::sqrt(variance + static_cast<T>(epsilon));
  const auto all_inverse = hn::Set(d, inverse);
  along(d, width, [&](std::int64_t i, std::int64_t n) HWY_ATTR {
    const auto v = hn::Mul(hn::Sub(load_piece(d, x + i, n), all_center), all_inverse);
    store_piece(hn::MulAdd(v, load_piece(d, gain + i, n), load_piece(d, bias + i, n)), d, y + i, n);
  });
  *mean = center;
  *inverse_sd = inverse;
}

template <class T>
HWY_INLINE void Backward(const T* x, T mean, T inverse_sd, const T* gain, const T* d_y,
                         std::int64_t width, bool added, T* d_x, T* d_gain, T* d_bias) {
  const hn::ScalableTag<T> d;
  const auto center = hn::Set(d, mean), inverse = hn::Set(d, inverse_sd);
  auto slopes = hn::Zero(d), products = hn::Zero(d); // of the scaled row: sums of g and of g x
  along(d, width, [&](std::int64_t i, std::int64_t n) HWY_ATTR {
    const auto scaled = hn::Mul(hn::Sub(load_piece(d, x + i, n), center), inverse);
    const auto slope = load_piece(d, d_y + i, n);
    const auto g = hn::Mul(slope, load_piece(d, gain + i, n)); // 0 beyond the row
    slopes = hn::Add(slopes, g);
    products = hn::MulAdd(g, scaled, products);
    store_piece(hn::MulAdd(slope, scaled, load_piece(d, d_gain + i, n)), d, d_gain + i, n);
    store_piece(hn::Add(slope, load_piece(d, d_bias + i, n)), d, d_bias + i, n);
  });
  const auto mean_slope = hn::Set(d, total(d, slopes) / static_cast<T>(width)),
             mean_product = hn::Set(d, total(d, products) / static_cast<T>(width));
  along(d, width, [&](std::int64_t i, std::int64_t n) HWY_ATTR {
    const auto scaled = hn::Mul(hn::Sub(load_piece(d, x + i, n), center), inverse);
    const auto g = hn::Mul(load_piece(d, d_y + i, n), load_piece(d, gain + i, n));
    auto v = hn::Mul(inverse, hn::Sub(hn::Sub(g, mean_slope), hn::Mul(scaled, mean_product)));
    if (added) v = hn::Add(v, load_piece(d, d_x + i, n));
    store_piece(v, d, d_x + i, n);
  });
}

void NormF32(float* x, const float* residual, const float* gain, const float* bias,
             std::int64_t width, double epsilon, float* y, float* mean, float* inverse_sd) {
  Forward(x, residual, gain, bias, width, epsilon, y, mean, inverse_sd);
}
void NormF64(double* x, const double* residual, const double* gain, const double* bias,
             std::int64_t width, double epsilon, double* y, double* mean, double* inverse_sd) {
  Forward(x, residual, gain, bias, width, epsilon, y, mean, inverse_sd);
}
void NormBackF32(const float* x, float mean, float inverse_sd, const float* gain, const float* d_y,
                 std::int64_t width, bool added, float* d_x, float* d_gain, float* d_bias) {
  Backward(x, mean, inverse_sd, gain, d_y, width, added, d_x, d_gain, d_bias);
}
void NormBackF64(const double* x, double mean, double inverse_sd, const double* gain,
                 const double* d_y, std::int64_t width, bool added, double* d_x, double* d_gain,
                 double* d_bias) {
  Backward(x, mean, inverse_sd, gain, d_y, width, added, d_x, d_gain, d_bias);
}

} // namespace HWY_NAMESPACE
} // namespace cape::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cape::simd {

HWY_EXPORT(NormF32);
HWY_EXPORT(NormF64);
HWY_EXPORT(NormBackF32);
HWY_EXPORT(NormBackF64);

void norm_row(float* x, const float* residual, const float* gain, const float* bias,
              std::int64_t width, double epsilon, float* y, float* mean, float* inverse_sd) {
  HWY_DYNAMIC_DISPATCH(NormF32)(x, residual, gain, bias, width, epsilon, y, mean, inverse_sd);
}
void norm_row(double* x, const double* residual, const double* gain, const double* bias,
              std::int64_t width, double epsilon, double* y, double* mean, double* inverse_sd) {
  HWY_DYNAMIC_DISPATCH(NormF64)(x, residual, gain, bias, width, epsilon, y, mean, inverse_sd);
}
void norm_row_backward(const float* x, float mean, float inverse_sd, const float* gain,
                       const float* d_y, std::int64_t width, bool added, float* d_x, float* d_gain,
                       float* d_bias) {
  HWY_DYNAMIC_DISPATCH(NormBackF32)
  (x, mean, inverse_sd, gain, d_y, width, added, d_x, d_gain, d_bias);
}
void norm_row_backward(const double* x, double mean, double inverse_sd, const double* gain,
                       const double* d_y, std::int64_t width, bool added, double* d_x,
                       double* d_gain, double* d_bias) {
  HWY_DYNAMIC_DISPATCH(NormBackF64)
  (x, mean, inverse_sd, gain, d_y, width, added, d_x, d_gain, d_bias);
}

} // namespace cape::simd
#endif
