// The logistic function for kernels. To be included once per target, after hwy/foreach_target.h.
#if defined(CAPE_SIMD_LOGISTIC_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CAPE_SIMD_LOGISTIC_INL
#undef CAPE_SIMD_LOGISTIC_INL
#else
#define CAPE_SIMD_LOGISTIC_INL
#endif
#include "simd/exp2-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace cape::simd {
namespace HWY_NAMESPACE {

// 1 + exp(-clamp(x, -25, 25)), whose inverse is the logistic function of x.
template <class D, class V>
HWY_INLINE V one_plus_exp_neg(D d, V x) {
  namespace hn = hwy::HWY_NAMESPACE;
  using T = hn::TFromD<D>;
  const V limit = hn::Set(d, T(25));
  const V inside = hn::Min(hn::Max(x, hn::Neg(limit)), limit);
  const V power =
      normal_power_of_2(d, hn::Mul(inside, hn::Set(d, T(-1.44269504088896340736)))); // log2(e)
  return hn::Add(hn::Set(d, T(1)), power);
}

// A NaN stays one, so that a loss shows it.
template <class D, class V>
HWY_INLINE V logistic(D d, V x) {
  namespace hn = hwy::HWY_NAMESPACE;
  const V one = hn::Set(d, hn::TFromD<D>(1));
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Div(one, one_plus_exp_neg(d, x)));
}

// Of two vectors, for one division: the product of two denominators is below 6e21. Of NaN anything.
template <class D, class V>
HWY_INLINE void two_logistics(D d, V& x, V& y) {
  namespace hn = hwy::HWY_NAMESPACE;
  const V p = one_plus_exp_neg(d, x), q = one_plus_exp_neg(d, y);
  const V inverse = hn::Div(hn::Set(d, hn::TFromD<D>(1)), hn::Mul(p, q));
  x = hn::Mul(inverse, q);
  y = hn::Mul(inverse, p);
}

} // namespace HWY_NAMESPACE
} // namespace cape::simd
HWY_AFTER_NAMESPACE();
#endif
