#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "dag/kernels/sparse_term.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "dag/kernels/sparse_term.hpp"
#include <algorithm>

HWY_BEFORE_NAMESPACE();
namespace cape::simd {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
T SparseTerm(const SparseColumns<T>& s, T scale, const BlockColumn<T>* term, BlockColumn<T>* next,
             BlockColumn<T>* sum, T& largest_sum) {
  const hn::CappedTag<T, block_rows<T>> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  auto largest = hn::Zero(d), largest_total = hn::Set(d, largest_sum);
  for (std::int64_t part = 0; part < block_rows<T>; part += lanes)
    for (std::int64_t j = 0; j < s.columns; ++j) {
      // Two sums, because the next addition to one has to wait for the last.
      auto even = hn::Zero(d), odd = hn::Zero(d);
      std::int64_t e = s.offsets[j];
      const auto product = [&](std::int64_t at) HWY_ATTR {
        return hn::Mul(hn::Set(d, s.values[at]), hn::Load(d, term[s.rows[at]].value + part));
      };
      for (; e + 2 <= s.offsets[j + 1]; e += 2) {
        even = hn::Add(even, product(e));
        odd = hn::Add(odd, product(e + 1));
      }
      if (e < s.offsets[j + 1]) even = hn::Add(even, product(e));
      const auto value = hn::Mul(hn::Set(d, scale), hn::Add(even, odd));
      const auto total = hn::Add(value, hn::Load(d, sum[j].value + part));
      hn::Store(value, d, next[j].value + part);
      hn::Store(total, d, sum[j].value + part);
      largest = hn::Max(largest, value);
      largest_total = hn::Max(largest_total, total);
    }
  largest_sum = hn::GetLane(hn::MaxOfLanes(d, largest_total));
  return hn::GetLane(hn::MaxOfLanes(d, largest));
}

float SparseTermF32(const SparseColumns<float>& s, float scale, const BlockColumn<float>* term,
                    BlockColumn<float>* next, BlockColumn<float>* sum, float& largest_sum) {
  return SparseTerm(s, scale, term, next, sum, largest_sum);
}
double SparseTermF64(const SparseColumns<double>& s, double scale, const BlockColumn<double>* term,
                     BlockColumn<double>* next, BlockColumn<double>* sum, double& largest_sum) {
  return SparseTerm(s, scale, term, next, sum, largest_sum);
}

} // namespace HWY_NAMESPACE
} // namespace cape::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cape::simd {

HWY_EXPORT(SparseTermF32);
HWY_EXPORT(SparseTermF64);

float sparse_term(const SparseColumns<float>& s, float scale, const BlockColumn<float>* term,
                  BlockColumn<float>* next, BlockColumn<float>* sum, float& largest_sum) {
  return HWY_DYNAMIC_DISPATCH(SparseTermF32)(s, scale, term, next, sum, largest_sum);
}
double sparse_term(const SparseColumns<double>& s, double scale, const BlockColumn<double>* term,
                   BlockColumn<double>* next, BlockColumn<double>* sum, double& largest_sum) {
  return HWY_DYNAMIC_DISPATCH(SparseTermF64)(s, scale, term, next, sum, largest_sum);
}

} // namespace cape::simd
#endif
