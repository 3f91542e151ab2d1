#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "optim/kernels/adam.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "optim/kernels/adam.hpp"
#include <algorithm>
#include <limits>

HWY_BEFORE_NAMESPACE();
namespace cape::simd {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
HWY_INLINE void Adam(T* parameter, const T* gradient, T* mean, T* square, std::int64_t n,
                     const AdamStep& s, const T* factor) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto all = [&](double value) HWY_ATTR { return hn::Set(d, static_cast<T>(value)); };
  const auto beta1 = all(s.beta1), rest1 = all(1 - s.beta1);
  const auto beta2 = all(s.beta2), rest2 = all(1 - s.beta2);
  const auto rate = all(s.rate * s.correction1), shrink = all(s.rate * s.l1);
  const auto correction = all(s.correction2), epsilon = all(s.epsilon);
  const auto decay = all(s.rate * s.decay), one = all(1), zero = hn::Zero(d);
  const auto infinity = all(std::numeric_limits<double>::infinity());
  const auto step = [&](T* p_at, const T* g_at, T* m_at, T* v_at, const T* f_at) HWY_ATTR {
    const auto g = hn::LoadU(d, g_at);
    const auto m = hn::Add(hn::Mul(beta1, hn::LoadU(d, m_at)), hn::Mul(rest1, g));
    const auto v = hn::Add(hn::Mul(beta2, hn::LoadU(d, v_at)), hn::Mul(rest2, hn::Mul(g, g)));
    const auto inverse = hn::Div(one, hn::Add(hn::Mul(hn::Sqrt(v), correction), epsilon));
    const auto old = hn::LoadU(d, p_at);
    // One rounding of the size of p: 1 - rate decay may be nearer 1 than the next float.
    const auto p =
        hn::Sub(old, hn::Add(hn::Mul(rate, hn::Mul(m, inverse)), hn::Mul(decay, old)));
    auto size = hn::Max(hn::Sub(hn::Abs(p), hn::Mul(shrink, inverse)), zero);
    if (f_at != nullptr) {
      const auto f = hn::LoadU(d, f_at);
      size = hn::Max(hn::Sub(hn::Abs(p), hn::Mul(hn::Mul(shrink, f), inverse)), zero);
      size = hn::IfThenElse(hn::Eq(f, infinity), zero, size);
    }
    hn::StoreU(m, d, m_at);
    hn::StoreU(v, d, v_at);
    // The larger of NaN and 0 is 0 on some CPUs.
    hn::StoreU(hn::IfThenElse(hn::IsNaN(p), p, hn::CopySign(size, p)), d, p_at);
  };
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    step(parameter + i, gradient + i, mean + i, square + i, factor ? factor + i : nullptr);
  if (i == n) return;
  const std::int64_t rest = n - i;
  T p[hn::MaxLanes(d)] = {}, g[hn::MaxLanes(d)] = {}, m[hn::MaxLanes(d)] = {},
    v[hn::MaxLanes(d)] = {}, f[hn::MaxLanes(d)] = {};
  std::copy_n(parameter + i, rest, p);
  std::copy_n(gradient + i, rest, g);
  std::copy_n(mean + i, rest, m);
  std::copy_n(square + i, rest, v);
  if (factor) std::copy_n(factor + i, rest, f);
  step(p, g, m, v, factor ? f : nullptr);
  std::copy_n(p, rest, parameter + i);
  std::copy_n(m, rest, mean + i);
  std::copy_n(v, rest, square + i);
}

void AdamF32(float* parameter, const float* gradient, float* mean, float* square, std::int64_t n,
             const AdamStep& s, const float* factor) {
  Adam(parameter, gradient, mean, square, n, s, factor);
}
void AdamF64(double* parameter, const double* gradient, double* mean, double* square,
             std::int64_t n, const AdamStep& s, const double* factor) {
  Adam(parameter, gradient, mean, square, n, s, factor);
}

} // namespace HWY_NAMESPACE
} // namespace cape::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cape::simd {

HWY_EXPORT(AdamF32);
HWY_EXPORT(AdamF64);

void adam_step(float* parameter, const float* gradient, float* mean, float* square, std::int64_t n,
               const AdamStep& step, const float* factor) {
  HWY_DYNAMIC_DISPATCH(AdamF32)(parameter, gradient, mean, square, n, step, factor);
}
void adam_step(double* parameter, const double* gradient, double* mean, double* square,
               std::int64_t n, const AdamStep& step, const double* factor) {
  HWY_DYNAMIC_DISPATCH(AdamF64)(parameter, gradient, mean, square, n, step, factor);
}

} // namespace cape::simd
#endif
