module;
#include "internal/message.hpp"
#include "internal/sizes.hpp"
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <new>
#include <numbers>
#include <span>
#include <typeinfo>
module cape.layers;
#include "layers/checks.hpp"

namespace cape::layers {
namespace {

template <class T>
constexpr T slope_below_0 = T(0.01); // of leaky_relu

template <class T>
T normal_probability(T x) {
  return T(0.5) * std::erfc(-x * (std::numbers::sqrt2_v<T> / 2));
}

// Of gelu_tanh: the argument of tanh is a (x + c x^3).
template <class T>
constexpr T tanh_a = T(0.797884560802865355879892119868763737L);
template <class T>
constexpr T tanh_c = T(0.044715L);

// f(x) and f'(x) are of(x) and slope(x).
template <Activation activation>
struct Function;
template <>
struct Function<Activation::relu> {
  template <class T>
  static T of(T x) {
    return x < 0 ? T(0) : x;
  }
  template <class T>
  static T slope(T x) {
    return x > 0 ? T(1) : T(0);
  }
};
template <>
struct Function<Activation::leaky_relu> {
  template <class T>
  static T of(T x) {
    return x < 0 ? slope_below_0<T> * x : x;
  }
  template <class T>
  static T slope(T x) {
    return x > 0 ? T(1) : slope_below_0<T>;
  }
};
template <>
struct Function<Activation::gelu> {
  template <class T>
  static T of(T x) {
    return x * normal_probability(x);
  }
  template <class T>
  static T slope(T x) {
    const T density =
        std::exp(T(-0.5) * x * x) * (std::numbers::inv_sqrtpi_v<T> / std::numbers::sqrt2_v<T>);
    return normal_probability(x) + x * density;
  }
};
template <>
struct Function<Activation::gelu_tanh> {
  template <class T>
  static T of(T x) {
    return T(0.5) * x * (1 + std::tanh(tanh_a<T> * (x + tanh_c<T> * x * x * x)));
  }
  template <class T>
  static T slope(T x) {
    const T t = std::tanh(tanh_a<T> * (x + tanh_c<T> * x * x * x));
    return T(0.5) * (1 + t) + T(0.5) * x * (1 - t * t) * tanh_a<T> * (1 + 3 * tanh_c<T> * x * x);
  }
};
template <>
struct Function<Activation::sigmoid> {
  template <class T>
  static T of(T x) {
    return 1 / (1 + std::exp(-x));
  }
  template <class T>
  static T slope(T x) {
    const T y = of(x);
    return y * (1 - y);
  }
};

// body(first, last) for pieces of n elements.
template <class F>
void for_pieces(std::int64_t n, Run& run, F body) {
  constexpr std::int64_t piece = 1 << 14;
  run.parallel_for(ceil_div(n, piece),
                   [&](std::int64_t p) { body(p * piece, std::min(n, (p + 1) * piece)); });
}

// body(the function of this activation).
template <class F>
void with(Activation activation, F body) {
  switch (activation) {
  case Activation::relu: return body(Function<Activation::relu>{});
  case Activation::leaky_relu: return body(Function<Activation::leaky_relu>{});
  case Activation::gelu: return body(Function<Activation::gelu>{});
  case Activation::gelu_tanh: return body(Function<Activation::gelu_tanh>{});
  case Activation::sigmoid: return body(Function<Activation::sigmoid>{});
  }
  throw Error(Status::invalid_argument, message("activation is ", static_cast<int>(activation),
                                                "; it must be one of 0 to 4"));
}

} // namespace

template <class T>
void activate(Activation activation, std::span<const T> x, std::span<T> y, Run& run) {
  check_length(y.size(), std::ssize(x), "y");
  with(activation, [&](auto f) {
    for_pieces(std::ssize(x), run, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) y[at(i)] = f.of(x[at(i)]);
    });
  });
}

template <class T>
void activate_backward(Activation activation, std::span<const T> x, std::span<const T> d_y,
                       std::span<T> d_x, Run& run) {
  check_length(d_y.size(), std::ssize(x), "d_y");
  check_length(d_x.size(), std::ssize(x), "d_x");
  with(activation, [&](auto f) {
    for_pieces(std::ssize(x), run, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) d_x[at(i)] = d_y[at(i)] * f.slope(x[at(i)]);
    });
  });
}

template <class T>
void add(std::span<const T> y, std::span<T> x, Run& run) {
  check_length(y.size(), std::ssize(x), "y");
  for_pieces(std::ssize(x), run, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t i = first; i < last; ++i) x[at(i)] += y[at(i)];
  });
}

template void activate<float>(Activation, std::span<const float>, std::span<float>, Run&);
template void activate<double>(Activation, std::span<const double>, std::span<double>, Run&);
template void activate_backward<float>(Activation, std::span<const float>, std::span<const float>,
                                       std::span<float>, Run&);
template void activate_backward<double>(Activation, std::span<const double>,
                                        std::span<const double>, std::span<double>, Run&);
template void add<float>(std::span<const float>, std::span<float>, Run&);
template void add<double>(std::span<const double>, std::span<double>, Run&);

} // namespace cape::layers
