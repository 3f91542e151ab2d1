#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "dag/kernels/column_product.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "dag/kernels/column_product.hpp"

HWY_BEFORE_NAMESPACE();
namespace cape::simd {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Both products go by tiles of five outputs with two vectors of rows, or two columns: ten sums in
// registers. What is left over goes one by one.
constexpr std::int64_t tile = 5;

// One output in the rows from `first` on.
template <class T>
HWY_INLINE void OutputFrom(std::int64_t first, const ColumnChoice<T>& c, const T* w, T* y) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t r = first;
  for (; r + lanes <= c.rows; r += lanes) {
    auto sum = hn::Zero(d);
    for (std::int64_t i = 0; i < c.count; ++i)
      sum = hn::MulAdd(hn::Set(d, w[i]), hn::LoadU(d, c.x + c.columns[i] * c.rows + r), sum);
    hn::StoreU(sum, d, y + r);
  }
  for (; r < c.rows; ++r) {
    y[r] = 0;
    for (std::int64_t i = 0; i < c.count; ++i) y[r] += w[i] * c.x[c.columns[i] * c.rows + r];
  }
}

template <class T>
HWY_INLINE void Product(const ColumnChoice<T>& c, const T* w, std::int64_t outputs, T* y) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t k = 0;
  for (; k + tile <= outputs; k += tile) {
    const T *w0 = w + k * c.count, *w1 = w0 + c.count, *w2 = w1 + c.count, *w3 = w2 + c.count,
            *w4 = w3 + c.count;
    T* to = y + k * c.rows;
    std::int64_t r = 0;
    for (; r + 2 * lanes <= c.rows; r += 2 * lanes) {
      auto a0 = hn::Zero(d), a1 = a0, a2 = a0, a3 = a0, a4 = a0;
      auto b0 = a0, b1 = a0, b2 = a0, b3 = a0, b4 = a0;
      for (std::int64_t i = 0; i < c.count; ++i) {
        if (w0[i] == 0 && w1[i] == 0 && w2[i] == 0 && w3[i] == 0 && w4[i] == 0) continue;
        const T* x = c.x + c.columns[i] * c.rows + r;
        const auto xa = hn::LoadU(d, x), xb = hn::LoadU(d, x + lanes);
        const auto add = [&](T weight, auto& a, auto& b) HWY_ATTR {
          const auto all = hn::Set(d, weight);
          a = hn::MulAdd(all, xa, a);
          b = hn::MulAdd(all, xb, b);
        };
        add(w0[i], a0, b0);
        add(w1[i], a1, b1);
        add(w2[i], a2, b2);
        add(w3[i], a3, b3);
        add(w4[i], a4, b4);
      }
      const auto store = [&](std::int64_t output, auto a, auto b) HWY_ATTR {
        hn::StoreU(a, d, to + output * c.rows + r);
        hn::StoreU(b, d, to + output * c.rows + r + lanes);
      };
      store(0, a0, b0);
      store(1, a1, b1);
      store(2, a2, b2);
      store(3, a3, b3);
      store(4, a4, b4);
    }
    for (std::int64_t output = 0; output < tile; ++output)
      OutputFrom(r, c, w0 + output * c.count, to + output * c.rows);
  }
  for (; k < outputs; ++k) OutputFrom(0, c, w + k * c.count, y + k * c.rows);
}

template <class T>
HWY_INLINE T Dot(const T* x, const T* y, std::int64_t n) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  auto sum = hn::Zero(d);
  std::int64_t r = 0;
  for (; r + lanes <= n; r += lanes)
    sum = hn::MulAdd(hn::LoadU(d, x + r), hn::LoadU(d, y + r), sum);
  T total = hn::GetLane(hn::SumOfLanes(d, sum));
  for (; r < n; ++r) total += x[r] * y[r];
  return total;
}

template <class T>
HWY_INLINE void Transposed(const ColumnChoice<T>& c, const T* y, std::int64_t outputs, T* w) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t k = 0;
  for (; k + tile <= outputs; k += tile) {
    const T *y0 = y + k * c.rows, *y1 = y0 + c.rows, *y2 = y1 + c.rows, *y3 = y2 + c.rows,
            *y4 = y3 + c.rows;
    T* to = w + k * c.count;
    std::int64_t i = 0;
    for (; i + 2 <= c.count; i += 2) {
      const T *xa = c.x + c.columns[i] * c.rows, *xb = c.x + c.columns[i + 1] * c.rows;
      auto a0 = hn::Zero(d), a1 = a0, a2 = a0, a3 = a0, a4 = a0;
      auto b0 = a0, b1 = a0, b2 = a0, b3 = a0, b4 = a0;
      std::int64_t r = 0;
      for (; r + lanes <= c.rows; r += lanes) {
        const auto va = hn::LoadU(d, xa + r), vb = hn::LoadU(d, xb + r);
        const auto add = [&](const T* from, auto& a, auto& b) HWY_ATTR {
          const auto v = hn::LoadU(d, from + r);
          a = hn::MulAdd(v, va, a);
          b = hn::MulAdd(v, vb, b);
        };
        add(y0, a0, b0);
        add(y1, a1, b1);
        add(y2, a2, b2);
        add(y3, a3, b3);
        add(y4, a4, b4);
      }
      const auto store = [&](std::int64_t output, const T* from, auto a, auto b) HWY_ATTR {
        T ta = hn::GetLane(hn::SumOfLanes(d, a)), tb = hn::GetLane(hn::SumOfLanes(d, b));
        for (std::int64_t q = r; q < c.rows; ++q) {
          ta += from[q] * xa[q];
          tb += from[q] * xb[q];
        }
        to[output * c.count + i] = ta;
        to[output * c.count + i + 1] = tb;
      };
      store(0, y0, a0, b0);
      store(1, y1, a1, b1);
      store(2, y2, a2, b2);
      store(3, y3, a3, b3);
      store(4, y4, a4, b4);
    }
    for (; i < c.count; ++i)
      for (std::int64_t output = 0; output < tile; ++output)
        to[output * c.count + i] = Dot(c.x + c.columns[i] * c.rows, y0 + output * c.rows, c.rows);
  }
  for (; k < outputs; ++k)
    for (std::int64_t i = 0; i < c.count; ++i)
      w[k * c.count + i] = Dot(c.x + c.columns[i] * c.rows, y + k * c.rows, c.rows);
}

void ProductF32(const ColumnChoice<float>& choice, const float* w, std::int64_t outputs, float* y) {
  Product(choice, w, outputs, y);
}
void ProductF64(const ColumnChoice<double>& choice, const double* w, std::int64_t outputs,
                double* y) {
  Product(choice, w, outputs, y);
}
void TransposedF32(const ColumnChoice<float>& choice, const float* y, std::int64_t outputs,
                   float* w) {
  Transposed(choice, y, outputs, w);
}
void TransposedF64(const ColumnChoice<double>& choice, const double* y, std::int64_t outputs,
                   double* w) {
  Transposed(choice, y, outputs, w);
}

} // namespace HWY_NAMESPACE
} // namespace cape::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cape::simd {

HWY_EXPORT(ProductF32);
HWY_EXPORT(ProductF64);
HWY_EXPORT(TransposedF32);
HWY_EXPORT(TransposedF64);

void column_product(const ColumnChoice<float>& choice, const float* w, std::int64_t outputs,
                    float* y) {
  HWY_DYNAMIC_DISPATCH(ProductF32)(choice, w, outputs, y);
}
void column_product(const ColumnChoice<double>& choice, const double* w, std::int64_t outputs,
                    double* y) {
  HWY_DYNAMIC_DISPATCH(ProductF64)(choice, w, outputs, y);
}
void column_product_transposed(const ColumnChoice<float>& choice, const float* y,
                               std::int64_t outputs, float* w) {
  HWY_DYNAMIC_DISPATCH(TransposedF32)(choice, y, outputs, w);
}
void column_product_transposed(const ColumnChoice<double>& choice, const double* y,
                               std::int64_t outputs, double* w) {
  HWY_DYNAMIC_DISPATCH(TransposedF64)(choice, y, outputs, w);
}

} // namespace cape::simd
#endif
