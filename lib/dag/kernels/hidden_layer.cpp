#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "dag/kernels/hidden_layer.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "dag/kernels/hidden_layer.hpp"
#include "simd/along-inl.hpp"
#include "simd/logistic-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cape::simd {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
HWY_INLINE void Layer(T* units, std::int64_t rows, std::int64_t hidden, const T* bias, const T* v,
                      T* z) {
  const hn::ScalableTag<T> d;
  along(d, rows, [&](std::int64_t r, std::int64_t count) HWY_ATTR {
    auto rest = load_piece(d, z + r, count);
    for (std::int64_t k = 0; k < hidden; ++k) {
      T* u = units + k * rows + r;
      const auto s = logistic(d, hn::Add(load_piece(d, u, count), hn::Set(d, bias[k])));
      store_piece(s, d, u, count);
      rest = hn::NegMulAdd(s, hn::Set(d, v[k]), rest);
    }
    store_piece(rest, d, z + r, count);
  });
}

template <class T>
HWY_INLINE void Slopes(T* units, std::int64_t rows, std::int64_t hidden, const T* v, const T* dz,
                       T* v_slope, T* bias_slope) {
  const hn::ScalableTag<T> d;
  for (std::int64_t k = 0; k < hidden; ++k) {
    auto of_v = hn::Zero(d), of_bias = hn::Zero(d);
    const auto minus_v = hn::Set(d, -v[k]);
    along(d, rows, [&](std::int64_t r, std::int64_t count) HWY_ATTR {
      T* u = units + k * rows + r;
      const auto s = load_piece(d, u, count);
      const auto share = hn::Mul(load_piece(d, dz + r, count), s);
      const auto slope = hn::Mul(hn::Mul(minus_v, share), hn::Sub(hn::Set(d, T(1)), s));
      of_v = hn::Sub(of_v, share);
      of_bias = hn::Add(of_bias, slope); // beyond the last row dz, and so the slope, is 0
      store_piece(slope, d, u, count);
    });
    v_slope[k] = hn::GetLane(hn::SumOfLanes(d, of_v));
    bias_slope[k] = hn::GetLane(hn::SumOfLanes(d, of_bias));
  }
}

void LayerF32(float* units, std::int64_t rows, std::int64_t hidden, const float* bias,
              const float* v, float* z) {
  Layer(units, rows, hidden, bias, v, z);
}
void LayerF64(double* units, std::int64_t rows, std::int64_t hidden, const double* bias,
              const double* v, double* z) {
  Layer(units, rows, hidden, bias, v, z);
}
void SlopesF32(float* units, std::int64_t rows, std::int64_t hidden, const float* v,
               const float* dz, float* v_slope, float* bias_slope) {
  Slopes(units, rows, hidden, v, dz, v_slope, bias_slope);
}
void SlopesF64(double* units, std::int64_t rows, std::int64_t hidden, const double* v,
               const double* dz, double* v_slope, double* bias_slope) {
  Slopes(units, rows, hidden, v, dz, v_slope, bias_slope);
}

} // namespace HWY_NAMESPACE
} // namespace cape::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cape::simd {

HWY_EXPORT(LayerF32);
HWY_EXPORT(LayerF64);
HWY_EXPORT(SlopesF32);
HWY_EXPORT(SlopesF64);

void hidden_layer(float* units, std::int64_t rows, std::int64_t hidden, const float* bias,
                  const float* v, float* z) {
  HWY_DYNAMIC_DISPATCH(LayerF32)(units, rows, hidden, bias, v, z);
}
void hidden_layer(double* units, std::int64_t rows, std::int64_t hidden, const double* bias,
                  const double* v, double* z) {
  HWY_DYNAMIC_DISPATCH(LayerF64)(units, rows, hidden, bias, v, z);
}
void hidden_layer_slopes(float* units, std::int64_t rows, std::int64_t hidden, const float* v,
                         const float* dz, float* v_slope, float* bias_slope) {
  HWY_DYNAMIC_DISPATCH(SlopesF32)(units, rows, hidden, v, dz, v_slope, bias_slope);
}
void hidden_layer_slopes(double* units, std::int64_t rows, std::int64_t hidden, const double* v,
                         const double* dz, double* v_slope, double* bias_slope) {
  HWY_DYNAMIC_DISPATCH(SlopesF64)(units, rows, hidden, v, dz, v_slope, bias_slope);
}

} // namespace cape::simd
#endif
