#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "simd/vector_math.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include <hwy/contrib/math/math-inl.h>

#include "simd/exp2-inl.hpp"
#include "simd/vector_math.hpp"
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

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

struct Tanh {
  template <class D, class V>
  HWY_INLINE V operator()(D d,
                          V x) const { // undefined for NaN, which goes into the result as it is
    const auto nan = hn::IsNaN(x);
    return hn::IfThenElse(nan, x, hn::Tanh(d, hn::IfThenZeroElse(nan, x)));
  }
};
struct PowerOf2 {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return power_of_2(d, x);
  }
};

// pi/2 in three parts, so that whole multiples up to 1000 of the first two are exact.
template <class T>
struct RightAngle;
template <>
struct RightAngle<float> {
  static constexpr float part[] = {0x1.922p+0f, -0x1.2afp-18f, 0x1.0b4612p-34f};
};
template <>
struct RightAngle<double> {
  static constexpr double part[] = {0x1.921fb54443p+0, -0x1.73dcb3b39ap-43, 0x1.45c06e0e68948p-86};
};

// 1 / n! for n = 0, 2, 4, ... and n = 1, 3, 5, ...
template <class T>
struct InverseFactorials {
  T even[9], odd[9];
  constexpr InverseFactorials() : even{1}, odd{1} {
    for (int i = 1; i < 9; ++i) {
      even[i] = even[i - 1] / static_cast<T>((2 * i - 1) * 2 * i);
      odd[i] = odd[i - 1] / static_cast<T>(2 * i * (2 * i + 1));
    }
  }
};
template <class T>
constexpr InverseFactorials<T> inverse_factorials;

// c[0] - c[1] x + c[2] x^2 - ...: with enough terms to be exact on [0, (pi/4)^2] to rounding.
template <class D, class V, class T>
HWY_INLINE V alternating_series(D d, V x, const T (&c)[9]) {
  constexpr int terms = sizeof(T) == 4 ? 5 : 8;
  V sum = hn::Set(d, c[terms]);
  for (int i = terms - 1; i >= 0; --i) sum = hn::NegMulAdd(x, sum, hn::Set(d, c[i]));
  return sum;
}

// x = n pi/2 + r, and n decides which of sin(r), cos(r), -sin(r), -cos(r) is the sine of x. The
// integer n is rounded by adding 1.5 2^m, as in exp2-inl.hpp. Few arguments are beyond `far`, and
// the standard library takes them.
template <class T>
HWY_INLINE void SinCos(const T* x, T* sine, T* cosine, std::int64_t n) {
  constexpr T far = 1000;
  const hn::ScalableTag<T> d;
  const hn::RebindToSigned<decltype(d)> di;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const auto shift = hn::Set(d, sizeof(T) == 4 ? T(0x1.8p23) : T(0x1.8p52));
  constexpr int top_bit = static_cast<int>(8 * sizeof(T)) - 1;
  const auto turn = [&](auto v, T* sine_at, T* cosine_at) HWY_ATTR {
    const auto shifted = hn::MulAdd(v, hn::Set(d, T(0.63661977236758134308)), shift);
    const auto whole = hn::Sub(shifted, shift);
    auto r = v;
    for (const T part : RightAngle<T>::part) r = hn::NegMulAdd(whole, hn::Set(d, part), r);
    const auto square = hn::Mul(r, r);
    const auto sin_r = hn::Mul(r, alternating_series(d, square, inverse_factorials<T>.odd));
    const auto cos_r = alternating_series(d, square, inverse_factorials<T>.even);
    const auto quadrant = hn::BitCast(di, shifted);
    const auto one = hn::Set(di, 1);
    const auto swapped = hn::RebindMask(d, hn::TestBit(quadrant, one));
    const auto sign = [&](auto q) HWY_ATTR {
      return hn::And(hn::BitCast(d, hn::ShiftLeft<top_bit - 1>(q)), hn::Set(d, T(-0.0)));
    };
    hn::StoreU(hn::Xor(hn::IfThenElse(swapped, cos_r, sin_r), sign(quadrant)), d, sine_at);
    hn::StoreU(hn::Xor(hn::IfThenElse(swapped, sin_r, cos_r), sign(hn::Add(quadrant, one))), d,
               cosine_at);
  };
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) turn(hn::LoadU(d, x + i), sine + i, cosine + i);
  if (i < n) {
    HWY_ALIGN T block[hn::MaxLanes(d)] = {}, s[hn::MaxLanes(d)], c[hn::MaxLanes(d)];
    std::copy(x + i, x + n, block);
    turn(hn::Load(d, block), s, c);
    std::copy_n(s, n - i, sine + i);
    std::copy_n(c, n - i, cosine + i);
  }
  for (i = 0; i < n; ++i)
    if (!(std::fabs(x[i]) <= far)) {
      sine[i] = std::sin(x[i]);
      cosine[i] = std::cos(x[i]);
    }
}

template <class T>
HWY_INLINE T MaxAbs(const T* x, std::int64_t n) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  auto top = hn::Zero(d);
  auto finite = hn::Eq(top, top);
  const auto look = [&](auto v) HWY_ATTR {
    finite = hn::And(finite, hn::IsFinite(v));
    top = hn::Max(top, hn::Abs(v));
  };
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) look(hn::LoadU(d, x + i));
  if (i < n) {
    HWY_ALIGN T block[hn::MaxLanes(d)] = {};
    std::copy(x + i, x + n, block);
    look(hn::Load(d, block));
  }
  return hn::AllTrue(d, finite) ? hn::GetLane(hn::MaxOfLanes(d, top))
                                : std::numeric_limits<T>::infinity();
}

void SinCosF64(const double* x, double* sine, double* cosine, std::int64_t n) {
  SinCos(x, sine, cosine, n);
}
void SinCosF32(const float* x, float* sine, float* cosine, std::int64_t n) {
  SinCos(x, sine, cosine, n);
}
double MaxAbsF64(const double* x, std::int64_t n) { return MaxAbs(x, n); }
float MaxAbsF32(const float* x, std::int64_t n) { return MaxAbs(x, n); }
void TanhF64(const double* x, double* out, std::int64_t n) { map(x, out, n, Tanh{}); }
void Exp2F64(const double* x, double* out, std::int64_t n) { map(x, out, n, PowerOf2{}); }
void Exp2F32(const float* x, float* out, std::int64_t n) { map(x, out, n, PowerOf2{}); }
const char* TargetName() { return hwy::TargetName(HWY_TARGET); }

} // namespace HWY_NAMESPACE
} // namespace cape::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cape::simd {

HWY_EXPORT(TanhF64);
HWY_EXPORT(Exp2F64);
HWY_EXPORT(Exp2F32);
HWY_EXPORT(SinCosF64);
HWY_EXPORT(SinCosF32);
HWY_EXPORT(MaxAbsF64);
HWY_EXPORT(MaxAbsF32);
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

const char* unknown_target() {
  const char* name = std::getenv("CAPE_SIMD_TARGET");
  if (name == nullptr || *name == '\0') return nullptr;
  for (int bit = 0; bit < 63; ++bit)
    if (std::strcmp(hwy::TargetName(std::int64_t{1} << bit), name) == 0) return nullptr;
  return name;
}

const char* target() { return HWY_DYNAMIC_DISPATCH(TargetName)(); }
void tanh(const double* x, double* out, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(TanhF64)(x, out, n);
}
void exp2(const double* x, double* out, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(Exp2F64)(x, out, n);
}
void exp2(const float* x, float* out, std::int64_t n) { HWY_DYNAMIC_DISPATCH(Exp2F32)(x, out, n); }
void sin_cos(const double* x, double* sine, double* cosine, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(SinCosF64)(x, sine, cosine, n);
}
void sin_cos(const float* x, float* sine, float* cosine, std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(SinCosF32)(x, sine, cosine, n);
}
double max_abs(const double* x, std::int64_t n) { return HWY_DYNAMIC_DISPATCH(MaxAbsF64)(x, n); }
float max_abs(const float* x, std::int64_t n) { return HWY_DYNAMIC_DISPATCH(MaxAbsF32)(x, n); }

} // namespace cape::simd
#endif
