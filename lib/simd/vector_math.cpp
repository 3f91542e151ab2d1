#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/vector_math.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include <hwy/contrib/math/math-inl.h>

#include "simd/vector_math.hpp"
#include <cstdlib>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace cape::simd {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Apply f to n elements; the tail goes through a padded block, so that an element's value does not
// depend on where in the array it stands.
template <class T, class F>
HWY_INLINE void map(const T* x, T* out, std::int64_t n, F f) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) hn::StoreU(f(d, hn::LoadU(d, x + i)), d, out + i);
  if (i < n) {
    HWY_ALIGN T block[hn::MaxLanes(d)] = {};
    for (std::int64_t k = i; k < n; ++k) block[k - i] = x[k];
    hn::Store(f(d, hn::Load(d, block)), d, block);
    for (std::int64_t k = i; k < n; ++k) out[k] = block[k - i];
  }
}

// Highway's functions are undefined for NaN and far outside their range. So f gets 0 in the place
// of a NaN, which goes into the result as it is.
template <class V, class F>
HWY_INLINE V keep_nan(V x, F f) {
  const auto nan = hn::IsNaN(x);
  return hn::IfThenElse(nan, x, f(hn::IfThenZeroElse(nan, x)));
}

struct Exp {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    using T = hn::TFromD<D>;
    const V overflows = hn::Set(d, T(sizeof(T) == 4 ? 100 : 800)); // to infinity, well in range
    return keep_nan(x, [&](V y) HWY_ATTR { return hn::Exp(d, hn::Min(y, overflows)); });
  }
};
struct Sigmoid {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    using T = hn::TFromD<D>;
    const V one = hn::Set(d, T(1)), limit = hn::Set(d, T(25));
    return keep_nan(x, [&](V y) HWY_ATTR {
      y = hn::Min(hn::Max(y, hn::Neg(limit)), limit);
      return hn::Div(one, hn::Add(one, hn::Exp(d, hn::Neg(y))));
    });
  }
};
struct Tanh {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return keep_nan(x, [&](V y) HWY_ATTR { return hn::Tanh(d, y); });
  }
};

void SigmoidF64(const double* x, double* out, std::int64_t n) { map(x, out, n, Sigmoid{}); }
void SigmoidF32(const float* x, float* out, std::int64_t n) { map(x, out, n, Sigmoid{}); }
void TanhF64(const double* x, double* out, std::int64_t n) { map(x, out, n, Tanh{}); }
void ExpF64(const double* x, double* out, std::int64_t n) { map(x, out, n, Exp{}); }
void ExpF32(const float* x, float* out, std::int64_t n) { map(x, out, n, Exp{}); }
const char* TargetName() { return hwy::TargetName(HWY_TARGET); }

} // namespace HWY_NAMESPACE
} // namespace cape::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cape::simd {

HWY_EXPORT(SigmoidF64);
HWY_EXPORT(SigmoidF32);
HWY_EXPORT(TanhF64);
HWY_EXPORT(ExpF64);
HWY_EXPORT(ExpF32);
HWY_EXPORT(TargetName);

namespace {
// Keep only the forced target and those below it. Runs when the library is loaded.
[[gnu::constructor]] void force_target() {
  const char* name = std::getenv("CAPE_SIMD_TARGET");
  if (name == nullptr) return;
  for (std::int64_t bits = hwy::SupportedTargets(), low; bits != 0; bits &= ~low) {
    low = bits & -bits;
    if (std::strcmp(hwy::TargetName(low), name) == 0) hwy::DisableTargets(low - 1);
  }
}
} // namespace

const char* target() { return HWY_DYNAMIC_DISPATCH(TargetName)(); }
void sigmoid(const double* x, double* out, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(SigmoidF64)(x, out, n);
}
void sigmoid(const float* x, float* out, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(SigmoidF32)(x, out, n);
}
void tanh(const double* x, double* out, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(TanhF64)(x, out, n);
}
void exp(const double* x, double* out, std::int64_t n) { HWY_DYNAMIC_DISPATCH(ExpF64)(x, out, n); }
void exp(const float* x, float* out, std::int64_t n) { HWY_DYNAMIC_DISPATCH(ExpF32)(x, out, n); }

} // namespace cape::simd
#endif
