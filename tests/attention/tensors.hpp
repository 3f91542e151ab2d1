// The tensors of an attention call, owned, and what tests do with them. Include after
// `import cape;`.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace test {

inline std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

inline std::vector<double> random_values(cape::Rng& rng, std::int64_t n, double reach) {
  std::vector<double> x(at(n));
  for (double& value : x) value = rng.uniform(-reach, reach);
  return x;
}

template <class To, class From>
std::vector<To> converted(const std::vector<From>& x) {
  return std::vector<To>(x.begin(), x.end());
}

template <class T>
struct Tensors {
  std::int64_t batch = 1, heads = 1, q_length = 0, k_length = 0, head_dim = 0, angle_heads = 1;
  std::vector<T> q = {}, k = {}, v = {}, q_angles = {}, k_angles = {};
  std::vector<std::uint8_t> mask = {};

  cape::AttentionInput<T> input() const {
    return {.batch = batch,
            .heads = heads,
            .q_length = q_length,
            .k_length = k_length,
            .head_dim = head_dim,
            .q = q.data(),
            .k = k.data(),
            .v = v.data(),
            .q_angles = q_angles.empty() ? nullptr : q_angles.data(),
            .k_angles = k_angles.empty() ? nullptr : k_angles.data(),
            .angle_heads = angle_heads,
            .key_mask = mask.empty() ? nullptr : mask.data()};
  }
  std::int64_t width() const { return heads * head_dim; }
};

inline Tensors<float> to_float(const Tensors<double>& p) {
  return {p.batch,
          p.heads,
          p.q_length,
          p.k_length,
          p.head_dim,
          p.angle_heads,
          converted<float>(p.q),
          converted<float>(p.k),
          converted<float>(p.v),
          converted<float>(p.q_angles),
          converted<float>(p.k_angles),
          p.mask};
}

/// The largest |a - b| over equal infinities counted as 0; infinity if the sizes differ.
template <class T>
double distance(const std::vector<T>& a, const std::vector<double>& b) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (a.size() != b.size()) return infinity;
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double x = static_cast<double>(a[i]);
    if (x == b[i]) continue;
    const double gap = std::fabs(x - b[i]);
    largest = std::isnan(gap) ? infinity : std::max(largest, gap);
  }
  return largest;
}

/// A loss whose gradient in `out` is d_out.
inline double weighted_sum(const std::vector<double>& d_out, const std::vector<double>& out) {
  double sum = 0;
  for (std::size_t i = 0; i < d_out.size(); ++i) sum += d_out[i] * out[i];
  return sum;
}

} // namespace test
