// 2^x for kernels. To be included once per target, after hwy/foreach_target.h.
#if defined(CAPE_SIMD_EXP2_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CAPE_SIMD_EXP2_INL
#undef CAPE_SIMD_EXP2_INL
#else
#define CAPE_SIMD_EXP2_INL
#endif
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace cape::simd {
namespace HWY_NAMESPACE {

// 2^f is 1 + f q(f) on [-1/2, 1/2]: q of the least largest relative error (by Remez), which is
// 2.6e-9 in float and 1.8e-17 in double. Adding 1.5 2^m, where m is the size of the mantissa,
// rounds to an integer and leaves it in the low bits.
template <class T>
struct Exp2Constants;
template <>
struct Exp2Constants<float> {
  static constexpr int mantissa = 23;
  static constexpr float shift = 0x1.8p23f, least = -125;
  static constexpr float q[] = {0x1.62e432p-1f, 0x1.ebfbe2p-3f,  0x1.c6ae72p-5f,
                                0x1.3b270ep-7f, 0x1.5f7276p-10f, 0x1.470b42p-13f};
};
template <>
struct Exp2Constants<double> {
  static constexpr int mantissa = 52;
  static constexpr double shift = 0x1.8p52, least = -1021;
  static constexpr double q[] = {
      0x1.62e42fefa39f3p-1,  0x1.ebfbdff82c598p-3,  0x1.c6b08d7048f31p-5,  0x1.3b2ab6fba1e1cp-7,
      0x1.5d87fe7bbbd82p-10, 0x1.430913096104ep-13, 0x1.ffcbee3b2ca93p-17, 0x1.62bfd49f0691ap-20,
      0x1.b54167652d0fbp-24, 0x1.e605f90fa5828p-28, 0x1.c063d19576f1dp-32};
};

// Where 2^x is a normal number.
template <class D, class V>
HWY_INLINE V normal_power_of_2(D d, V x) {
  namespace hn = hwy::HWY_NAMESPACE;
  using T = hn::TFromD<D>;
  using C = Exp2Constants<T>;
  const hn::RebindToSigned<D> integers;
  const V shift = hn::Set(d, C::shift);
  const V shifted = hn::Add(x, shift);
  const V f = hn::Sub(x, hn::Sub(shifted, shift));
  constexpr int degree = sizeof(C::q) / sizeof(T) - 1;
  V p = hn::Set(d, C::q[degree]);
  for (int i = degree - 1; i >= 0; --i) p = hn::MulAdd(p, f, hn::Set(d, C::q[i]));
  p = hn::MulAdd(p, f, hn::Set(d, T(1)));
  const auto exponent = hn::ShiftLeft<C::mantissa>(hn::BitCast(integers, shifted));
  return hn::BitCast(d, hn::Add(hn::BitCast(integers, p), exponent));
}

// For x <= 127. A result that would not be a normal number is 0, and so it is for -inf and NaN.
template <class D, class V>
HWY_INLINE V power_of_2(D d, V x) {
  namespace hn = hwy::HWY_NAMESPACE;
  return hn::IfThenElseZero(hn::Ge(x, hn::Set(d, Exp2Constants<hn::TFromD<D>>::least)),
                            normal_power_of_2(d, x));
}

} // namespace HWY_NAMESPACE
} // namespace cape::simd
HWY_AFTER_NAMESPACE();
#endif
