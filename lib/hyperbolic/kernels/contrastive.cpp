#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "hyperbolic/kernels/contrastive.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include <hwy/contrib/math/math-inl.h>

#include "hyperbolic/kernels/contrastive.hpp"
#include <algorithm>

HWY_BEFORE_NAMESPACE();
namespace cape::simd {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using Tag = hn::ScalableTag<double>;
using Vec = hn::Vec<Tag>;

bool SubtractOne(double* gram, const double* p0, double q0, double lost, std::int64_t n) {
  const Tag d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const Vec one = hn::Set(d, 1.0), scale = hn::Set(d, lost * q0);
  Vec margin = hn::Zero(d);
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const Vec x = hn::Sub(hn::LoadU(d, gram + i), one);
    hn::StoreU(x, d, gram + i);
    margin = hn::Min(margin, hn::Sub(x, hn::Mul(scale, hn::LoadU(d, p0 + i))));
  }
  double least = hn::GetLane(hn::MinOfLanes(d, margin));
  for (; i < n; ++i) {
    gram[i] -= 1;
    least = std::min(least, gram[i] - lost * q0 * p0[i]);
  }
  return least < 0;
}

struct Terms {
  Vec energy, distance, inverse_sinh;
};

HWY_INLINE Terms pair_terms(Vec x, Vec inverse_temperature, Vec min_sinh) {
  const Tag d;
  const Vec sinh = hn::Sqrt(hn::Mul(x, hn::Add(x, hn::Set(d, 2.0))));
  const Vec distance = hn::Log1p(d, hn::Add(x, sinh));
  const Vec energy = hn::Exp(d, hn::Neg(hn::Mul(distance, inverse_temperature)));
  const Vec inverse = hn::Div(hn::Set(d, 1.0), hn::Max(sinh, min_sinh));
  return {energy, distance, hn::IfThenElseZero(hn::Gt(x, hn::Zero(d)), inverse)};
}

ContrastiveSums ContrastiveColumn(double* push, double* pull, const double* target,
                                  double* row_sums, double inverse_temperature, double min_sinh,
                                  std::int64_t n) {
  const Tag d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const Vec beta = hn::Set(d, inverse_temperature), least = hn::Set(d, min_sinh);
  Vec energies = hn::Zero(d), pulled = hn::Zero(d);
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const Terms t = pair_terms(hn::LoadU(d, push + i), beta, least);
    const Vec goal = hn::LoadU(d, target + i);
    hn::StoreU(hn::Mul(t.energy, t.inverse_sinh), d, push + i);
    hn::StoreU(hn::Mul(goal, t.inverse_sinh), d, pull + i);
    hn::StoreU(hn::Add(hn::LoadU(d, row_sums + i), t.energy), d, row_sums + i);
    energies = hn::Add(energies, t.energy);
    pulled = hn::Add(pulled, hn::Mul(goal, t.distance));
  }
  ContrastiveSums sums;
  sums.energy = hn::GetLane(hn::SumOfLanes(d, energies));
  sums.pulled = hn::GetLane(hn::SumOfLanes(d, pulled));
  if (i < n) {
    HWY_ALIGN double x[hn::MaxLanes(d)] = {}, energy[hn::MaxLanes(d)], distance[hn::MaxLanes(d)],
                     inverse[hn::MaxLanes(d)];
    for (std::int64_t k = i; k < n; ++k) x[k - i] = push[k];
    const Terms t = pair_terms(hn::Load(d, x), beta, least);
    hn::Store(t.energy, d, energy);
    hn::Store(t.distance, d, distance);
    hn::Store(t.inverse_sinh, d, inverse);
    for (std::int64_t k = i; k < n; ++k) {
      push[k] = energy[k - i] * inverse[k - i];
      pull[k] = target[k] * inverse[k - i];
      row_sums[k] += energy[k - i];
      sums.energy += energy[k - i];
      sums.pulled += target[k] * distance[k - i];
    }
  }
  return sums;
}

void ContrastiveSlopes(double* push, const double* pull, const double* share, double own_share,
                       std::int64_t n) {
  const Tag d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const Vec own = hn::Set(d, own_share);
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const Vec shares = hn::Add(hn::LoadU(d, share + i), own);
    hn::StoreU(hn::NegMulAdd(hn::LoadU(d, push + i), shares, hn::LoadU(d, pull + i)), d, push + i);
  }
  for (; i < n; ++i) push[i] = pull[i] - push[i] * (share[i] + own_share);
}

} // namespace HWY_NAMESPACE
} // namespace cape::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cape::simd {

HWY_EXPORT(SubtractOne);
HWY_EXPORT(ContrastiveColumn);
HWY_EXPORT(ContrastiveSlopes);

bool subtract_one(double* gram, const double* p0, double q0, double lost, std::int64_t n) {
  return HWY_DYNAMIC_DISPATCH(SubtractOne)(gram, p0, q0, lost, n);
}
ContrastiveSums contrastive_column(double* push, double* pull, const double* target,
                                   double* row_sums, double inverse_temperature, double min_sinh,
                                   std::int64_t n) {
  return HWY_DYNAMIC_DISPATCH(ContrastiveColumn)(push, pull, target, row_sums, inverse_temperature,
                                                 min_sinh, n);
}
void contrastive_slopes(double* push, const double* pull, const double* share, double own_share,
                        std::int64_t n) {
  HWY_DYNAMIC_DISPATCH(ContrastiveSlopes)(push, pull, share, own_share, n);
}

} // namespace cape::simd
#endif
