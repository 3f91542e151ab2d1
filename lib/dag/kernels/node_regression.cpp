#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "dag/kernels/node_regression.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "dag/kernels/node_regression.hpp"
#include "internal/sizes.hpp"
#include "optim/kernels/adam.hpp"
#include "simd/logistic-inl.hpp"
#include <algorithm>
#include <cmath>

HWY_BEFORE_NAMESPACE();
namespace cape::simd {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using D = hn::CappedTag<float, 16>;
using V = hn::Vec<D>;

// f of two rows; their sigmoids go to s0 and s1.
HWY_INLINE void Forward(const NetworkView& net, const float* x0, const float* x1, float* s0,
                        float* s1, float& f0, float& f1) {
  const D d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  V sum0 = hn::Zero(d), sum1 = hn::Zero(d);
  for (std::int64_t i = 0; i < net.inputs; i += lanes) {
    const V l = hn::Load(d, net.linear + i);
    sum0 = hn::MulAdd(l, hn::Load(d, x0 + i), sum0);
    sum1 = hn::MulAdd(l, hn::Load(d, x1 + i), sum1);
  }
  for (std::int64_t k = 0; k < net.units; k += 2 * lanes) {
    V a0 = hn::Zero(d), b0 = hn::Zero(d), a1 = hn::Zero(d), b1 = hn::Zero(d);
    const float* w = net.weights + k;
    for (std::int64_t i = 0; i < net.inputs; ++i, w += net.units) {
      const V wa = hn::Load(d, w), wb = hn::Load(d, w + lanes);
      const V v0 = hn::Set(d, x0[i]), v1 = hn::Set(d, x1[i]);
      a0 = hn::MulAdd(v0, wa, a0);
      b0 = hn::MulAdd(v0, wb, b0);
      a1 = hn::MulAdd(v1, wa, a1);
      b1 = hn::MulAdd(v1, wb, b1);
    }
    two_logistics(d, a0, b0);
    two_logistics(d, a1, b1);
    hn::Store(a0, d, s0 + k);
    hn::Store(b0, d, s0 + k + lanes);
    hn::Store(a1, d, s1 + k);
    hn::Store(b1, d, s1 + k + lanes);
    const V va = hn::Load(d, net.outputs + k), vb = hn::Load(d, net.outputs + k + lanes);
    sum0 = hn::MulAdd(va, a0, hn::MulAdd(vb, b0, sum0));
    sum1 = hn::MulAdd(va, a1, hn::MulAdd(vb, b1, sum1));
  }
  f0 = hn::GetLane(hn::SumOfLanes(d, sum0));
  f1 = hn::GetLane(hn::SumOfLanes(d, sum1));
}

void Predict(const NetworkView& net, const float* table, std::int64_t n, float* activation,
             float* out) {
  for (std::int64_t r = 0; r < n; r += 2) {
    const std::int64_t second = std::min(r + 1, n - 1);
    float f0, f1;
    Forward(net, table + r * net.stride, table + second * net.stride, activation,
            activation + net.units, f0, f1);
    out[r] = f0;
    out[second] = second > r ? f1 : f0;
  }
}

// The mean squared error of a batch. Leaves in `activation` (n rounded up to an even number, x
// units) the derivatives with respect to the pre-activations, and in the others the gradient.
float Loss(const NetworkView& net, const float* table, const float* target,
           const std::int64_t* rows, std::int64_t n, float* activation, float* error,
           float* weights, float* outputs, float* linear) {
  const D d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  const float scale = 2.0f / static_cast<float>(n);
  float loss = 0;
  for (std::int64_t r = 0; r < n; r += 2) {
    const std::int64_t first = rows[r], second = rows[std::min(r + 1, n - 1)];
    float* s = activation + r * net.units;
    float f0, f1;
    Forward(net, table + first * net.stride, table + second * net.stride, s, s + net.units, f0, f1);
    const float e0 = f0 - target[first];
    const float e1 = r + 1 < n ? f1 - target[second] : 0.0f;
    loss += e0 * e0 + e1 * e1;
    error[r] = scale * e0;
    error[r + 1] = scale * e1;
  }

  for (std::int64_t i = 0; i < net.inputs; i += lanes) {
    V sum = hn::Zero(d);
    for (std::int64_t r = 0; r < n; ++r)
      sum = hn::MulAdd(hn::Set(d, error[r]), hn::Load(d, table + rows[r] * net.stride + i), sum);
    hn::Store(sum, d, linear + i);
  }

  for (std::int64_t k = 0; k < net.units; k += lanes) {
    const V v = hn::Load(d, net.outputs + k);
    V even = hn::Zero(d), odd = hn::Zero(d);
    const auto backward = [&](std::int64_t r, V& sum) HWY_ATTR {
      float* s = activation + r * net.units + k;
      const V value = hn::Load(d, s);
      const V slope = hn::NegMulAdd(value, value, value); // s (1 - s)
      const V e = hn::Set(d, error[r]);
      sum = hn::MulAdd(e, value, sum);
      hn::Store(hn::Mul(hn::Mul(e, v), slope), d, s);
    };
    for (std::int64_t r = 0; r < n; r += 2) {
      backward(r, even);
      backward(r + 1, odd);
    }
    hn::Store(hn::Add(even, odd), d, outputs + k);
  }

  for (std::int64_t k = 0; k < net.units; k += 2 * lanes)
    for (std::int64_t i = 0; i < net.inputs; i += 4) {
      V a0 = hn::Zero(d), a1 = a0, a2 = a0, a3 = a0, b0 = a0, b1 = a0, b2 = a0, b3 = a0;
      for (std::int64_t r = 0; r < n; ++r) {
        const float* delta = activation + r * net.units + k;
        const float* x = table + rows[r] * net.stride + i;
        const V da = hn::Load(d, delta), db = hn::Load(d, delta + lanes);
        const V x0 = hn::Set(d, x[0]), x1 = hn::Set(d, x[1]);
        const V x2 = hn::Set(d, x[2]), x3 = hn::Set(d, x[3]);
        a0 = hn::MulAdd(x0, da, a0);
        b0 = hn::MulAdd(x0, db, b0);
        a1 = hn::MulAdd(x1, da, a1);
        b1 = hn::MulAdd(x1, db, b1);
        a2 = hn::MulAdd(x2, da, a2);
        b2 = hn::MulAdd(x2, db, b2);
        a3 = hn::MulAdd(x3, da, a3);
        b3 = hn::MulAdd(x3, db, b3);
      }
      float* g = weights + i * net.units + k;
      const auto store = [&](V a, V b) HWY_ATTR {
        hn::Store(a, d, g);
        hn::Store(b, d, g + lanes);
        g += net.units;
      };
      store(a0, b0);
      store(a1, b1);
      store(a2, b2);
      store(a3, b3);
    }
  return loss / static_cast<float>(n);
}

} // namespace HWY_NAMESPACE
} // namespace cape::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cape::simd {

HWY_EXPORT(Predict);
HWY_EXPORT(Loss);

namespace {
constexpr double beta1 = 0.9, beta2 = 0.99;
} // namespace

NodeRegression::NodeRegression(std::int64_t inputs, std::int64_t hidden)
    : hidden_(hidden), units_(round_up(hidden, 32)), inputs_(inputs + 1),
      padded_inputs_(round_up(inputs_, 4)), stride_(round_up(inputs_, 16)),
      parameters_(linear(stride_)), gradient_(linear(stride_)), mean_(linear(stride_)),
      square_(linear(stride_)) {
  for (Aligned<float>* x : {&parameters_, &gradient_, &mean_, &square_}) x->fill(0);
}

NetworkView NodeRegression::view() const {
  const float* p = parameters_.data();
  return {units_, inputs_, stride_, p, p + output(0), p + linear(0)};
}

float NodeRegression::loss(const float* table, const float* target, const std::int64_t* rows,
                           std::int64_t n) {
  if (batch_ < n) {
    batch_ = n + n % 2;
    activation_ = Aligned<float>(batch_ * units_);
    error_ = Aligned<float>(batch_);
  }
  float* g = gradient_.data();
  const float loss = HWY_DYNAMIC_DISPATCH(Loss)(view(), table, target, rows, n, activation_.data(),
                                                error_.data(), g, g + output(0), g + linear(0));
  std::fill(g + output(hidden_), g + output(units_), 0.0f);
  return loss;
}

void NodeRegression::step(const float* table, const float* target, const std::int64_t* rows,
                          std::int64_t n, double rate) {
  loss(table, target, rows, n);
  mean_decay_ *= beta1;
  square_decay_ *= beta2;
  adam_step(parameters_.data(), gradient_.data(), mean_.data(), square_.data(), linear(stride_),
            {.beta1 = beta1,
             .beta2 = beta2,
             .rate = rate,
             .correction1 = 1 / (1 - mean_decay_),
             .correction2 = 1 / std::sqrt(1 - square_decay_)});
}

void NodeRegression::predict(const float* table, std::int64_t n, float* out) const {
  Aligned<float> activation(2 * units_);
  HWY_DYNAMIC_DISPATCH(Predict)(view(), table, n, activation.data(), out);
}

} // namespace cape::simd
#endif
