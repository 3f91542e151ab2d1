// Along an array in pieces as wide as a vector, for kernels. To be included once per target, after
// hwy/foreach_target.h.
#if defined(CAPE_SIMD_ALONG_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef CAPE_SIMD_ALONG_INL
#undef CAPE_SIMD_ALONG_INL
#else
#define CAPE_SIMD_ALONG_INL
#endif
#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace cape::simd {
namespace HWY_NAMESPACE {

// Calls step(i, count) for pieces that are as wide as a vector; the last may be narrower.
template <class D, class F>
HWY_INLINE void along(D d, std::int64_t n, F step) {
  const auto lanes = static_cast<std::int64_t>(hwy::HWY_NAMESPACE::Lanes(d));
  for (std::int64_t i = 0; i < n; i += lanes) step(i, std::min(lanes, n - i));
}

// The elements of such a piece; beyond its last there are zeros, which are not stored.
template <class D, class T>
HWY_INLINE hwy::HWY_NAMESPACE::Vec<D> load_piece(D d, const T* from, std::int64_t count) {
  namespace hn = hwy::HWY_NAMESPACE;
  if (count == static_cast<std::int64_t>(hn::Lanes(d))) return hn::LoadU(d, from);
  HWY_ALIGN T block[hn::MaxLanes(d)] = {};
  std::copy_n(from, count, block);
  return hn::Load(d, block);
}
template <class D, class T>
HWY_INLINE void store_piece(hwy::HWY_NAMESPACE::Vec<D> v, D d, T* to, std::int64_t count) {
  namespace hn = hwy::HWY_NAMESPACE;
  if (count == static_cast<std::int64_t>(hn::Lanes(d))) {
    hn::StoreU(v, d, to);
    return;
  }
  HWY_ALIGN T block[hn::MaxLanes(d)];
  hn::Store(v, d, block);
  std::copy_n(block, count, to);
}

} // namespace HWY_NAMESPACE
} // namespace cape::simd
HWY_AFTER_NAMESPACE();
#endif
