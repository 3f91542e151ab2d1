// In the purview of cape.simulate: long loops, which poll the run now and then.
#pragma once

namespace cape {

// body(i) for i in 0 .. n-1 in order.
template <class F>
void for_each_polled(std::int64_t n, Run& run, F body) {
  constexpr std::int64_t block = 1 << 16;
  for (std::int64_t begin = 0; begin < n; begin += block) {
    run.poll();
    const std::int64_t end = std::min(n, begin + block);
    for (std::int64_t i = begin; i < end; ++i) body(i);
  }
}

} // namespace cape
