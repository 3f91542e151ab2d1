#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/softmax.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include <hwy/contrib/math/math-inl.h>

#include "simd/softmax.hpp"
#include <limits>

HWY_BEFORE_NAMESPACE();
namespace cape::simd {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// visit(vector, i) for the whole vectors of x, then for the tail filled up with `padding`; visit
// returns what is to be stored in the place of the vector.
template <class T, class D, class F>
HWY_INLINE void transform(D d, T* x, std::int64_t n, T padding, F visit) {
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(visit(hn::LoadU(d, x + i)), d, x + i);
  if (i == n) return;
  HWY_ALIGN T block[hn::MaxLanes(d)];
  for (std::int64_t k = 0; k < lanes; ++k) block[k] = i + k < n ? x[i + k] : padding;
  hn::Store(visit(hn::Load(d, block)), d, block);
  for (std::int64_t k = i; k < n; ++k) x[k] = block[k - i];
}

template <class T>
T ExpSum(T* x, T shift, std::int64_t n) {
  const hn::ScalableTag<T> d;
  const auto shifts = hn::Set(d, shift);
  auto sum = hn::Zero(d);
  transform(d, x, n, -std::numeric_limits<T>::infinity(), [&](auto v) HWY_ATTR {
    const auto e = hn::Exp(d, hn::Sub(v, shifts));
    sum = hn::Add(sum, e);
    return e;
  });
  return hn::GetLane(hn::SumOfLanes(d, sum));
}

double ExpSumF64(double* x, double shift, std::int64_t n) { return ExpSum(x, shift, n); }
float ExpSumF32(float* x, float shift, std::int64_t n) { return ExpSum(x, shift, n); }

} // namespace HWY_NAMESPACE
} // namespace cape::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cape::simd {

HWY_EXPORT(ExpSumF64);
HWY_EXPORT(ExpSumF32);

double exp_sum(double* x, double shift, std::int64_t n) {
  return HWY_DYNAMIC_DISPATCH(ExpSumF64)(x, shift, n);
}
float exp_sum(float* x, float shift, std::int64_t n) {
  return HWY_DYNAMIC_DISPATCH(ExpSumF32)(x, shift, n);
}

} // namespace cape::simd
#endif
