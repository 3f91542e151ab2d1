module;
#include <cmath>
#include <cstdint>
#include <functional>
#include <new>
#include <typeinfo>
#include <variant>
module cape.dag;
#include "dag/noise.hpp"

namespace cape::sem {

template <class T>
double Noise::score(T* z, std::int64_t rows, const T* weight) const {
  const double n = static_cast<double>(rows);
  double squares = 0, count = n; // a column counts by the weight of its rows
  if (weight) {
    count = 0;
    double sum = 0;
    for (std::int64_t r = 0; r < rows; ++r) {
      count += weight[r];
      sum += weight[r] * z[r];
    }
    const T mean = static_cast<T>(count > 0 ? sum / count : 0);
    for (std::int64_t r = 0; r < rows; ++r) {
      const T d = z[r] - mean;
      z[r] = weight[r] * d;
      squares += z[r] * d;
    }
  } else {
    constexpr std::int64_t lanes = 8; // parts of the sum, which is then not a chain of additions
    double part[lanes] = {};
    for (std::int64_t r = 0; r < rows; ++r) part[r % lanes] += static_cast<double>(z[r]) * z[r];
    for (const double p : part) squares += p;
  }
  double score, scale;
  if (equal_variances_) {
    score = 0.5 * squares / n;
    scale = 1 / n;
  } else {
    if (count == 0) return 0;
    const double variance = (squares / count + moderation_) / (1 + moderation_);
    score = 0.5 * (1 + moderation_) * count / n * std::log(variance);
    scale = 1 / (n * variance);
  }
  for (std::int64_t r = 0; r < rows; ++r) z[r] *= static_cast<T>(scale);
  return score;
}

template double Noise::score(float*, std::int64_t, const float*) const;
template double Noise::score(double*, std::int64_t, const double*) const;

} // namespace cape::sem
