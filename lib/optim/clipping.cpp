module;
#include "internal/message.hpp"
#include "internal/sizes.hpp"
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <span>
#include <vector>
module cape.optim;

namespace cape::optim {
namespace {

constexpr std::int64_t block = 1 << 16;

void check_largest(double largest) {
  if (!(largest > 0 && std::isfinite(largest)))
    throw Error(Status::invalid_argument,
                message("largest is ", largest, "; it must lie in (0, inf)"));
}

// body(b, part b of the gradient), in parallel.
template <class T, class Body>
void for_blocks(std::span<T> gradient, Run& run, const Body& body) {
  const std::int64_t n = std::ssize(gradient);
  run.parallel_for(ceil_div(n, block), [&](std::int64_t b) {
    body(b, gradient.subspan(static_cast<std::size_t>(b * block),
                             static_cast<std::size_t>(std::min(block, n - b * block))));
  });
}

} // namespace

template <class T>
double clip_norm(std::span<T> gradient, double largest, Run& run) {
  check_largest(largest);
  std::vector<double> part(gradient.size() / block + 1);
  for_blocks(gradient, run, [&](std::int64_t b, std::span<T> values) {
    double sum[8] = {}; // the compiler adds them side by side
    std::size_t i = 0;
    for (; i + 8 <= values.size(); i += 8)
      for (std::size_t lane = 0; lane < 8; ++lane)
        sum[lane] += static_cast<double>(values[i + lane]) * values[i + lane];
    for (; i < values.size(); ++i) sum[0] += static_cast<double>(values[i]) * values[i];
    part[static_cast<std::size_t>(b)] = std::accumulate(sum, sum + 8, 0.0);
  });
  const double norm = std::sqrt(std::accumulate(part.begin(), part.end(), 0.0));
  if (norm > largest && std::isfinite(norm)) {
    const double factor = largest / norm;
    for_blocks(gradient, run, [&](std::int64_t, std::span<T> values) {
      for (T& value : values) value = static_cast<T>(factor * value);
    });
  }
  return norm;
}

template <class T>
void clip_value(std::span<T> gradient, double largest, Run& run) {
  check_largest(largest);
  for_blocks(gradient, run, [&](std::int64_t, std::span<T> values) {
    for (T& value : values)
      if (std::fabs(value) > largest) value = std::copysign(static_cast<T>(largest), value);
  });
}

template double clip_norm(std::span<float>, double, Run&);
template double clip_norm(std::span<double>, double, Run&);
template void clip_value(std::span<float>, double, Run&);
template void clip_value(std::span<double>, double, Run&);

} // namespace cape::optim
