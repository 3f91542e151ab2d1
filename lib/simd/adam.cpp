#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/adam.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "simd/adam.hpp"
#include <algorithm>

HWY_BEFORE_NAMESPACE();
namespace cape::simd {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void Adam(double* parameter, const double* gradient, double* mean, double* square, std::int64_t n,
          const AdamStep& s) {
  const hn::ScalableTag<double> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto beta1 = hn::Set(d, s.beta1), rest1 = hn::Set(d, 1 - s.beta1);
  const auto beta2 = hn::Set(d, s.beta2), rest2 = hn::Set(d, 1 - s.beta2);
  const auto rate = hn::Set(d, s.rate * s.correction1), shrink = hn::Set(d, s.rate * s.shrink);
  const auto correction = hn::Set(d, s.correction2), epsilon = hn::Set(d, s.epsilon);
  const auto one = hn::Set(d, 1.0), zero = hn::Zero(d);
  const auto step = [&](double* p_at, const double* g_at, double* m_at, double* v_at) HWY_ATTR {
    const auto g = hn::LoadU(d, g_at);
    const auto m = hn::Add(hn::Mul(beta1, hn::LoadU(d, m_at)), hn::Mul(rest1, g));
    const auto v = hn::Add(hn::Mul(beta2, hn::LoadU(d, v_at)), hn::Mul(rest2, hn::Mul(g, g)));
    const auto inverse = hn::Div(one, hn::Add(hn::Mul(hn::Sqrt(v), correction), epsilon));
    const auto p = hn::Sub(hn::LoadU(d, p_at), hn::Mul(rate, hn::Mul(m, inverse)));
    const auto size = hn::Max(hn::Sub(hn::Abs(p), hn::Mul(shrink, inverse)), zero);
    hn::StoreU(m, d, m_at);
    hn::StoreU(v, d, v_at);
    hn::StoreU(hn::CopySign(size, p), d, p_at);
  };
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) step(parameter + i, gradient + i, mean + i, square + i);
  if (i == n) return;
  const std::int64_t rest = n - i;
  double p[hn::MaxLanes(d)] = {}, g[hn::MaxLanes(d)] = {}, m[hn::MaxLanes(d)] = {},
         v[hn::MaxLanes(d)] = {};
  std::copy_n(parameter + i, rest, p);
  std::copy_n(gradient + i, rest, g);
  std::copy_n(mean + i, rest, m);
  std::copy_n(square + i, rest, v);
  step(p, g, m, v);
  std::copy_n(p, rest, parameter + i);
  std::copy_n(m, rest, mean + i);
  std::copy_n(v, rest, square + i);
}

} // namespace HWY_NAMESPACE
} // namespace cape::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cape::simd {

HWY_EXPORT(Adam);

void adam_step(double* parameter, const double* gradient, double* mean, double* square,
               std::int64_t n, const AdamStep& step) {
  HWY_DYNAMIC_DISPATCH(Adam)(parameter, gradient, mean, square, n, step);
}

} // namespace cape::simd
#endif
