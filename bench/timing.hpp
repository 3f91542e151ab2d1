// How the programs of bench/ take times and print what they found.
#pragma once
#include <chrono>
#include <cstdio>
#include <ctime>
#include <functional>

namespace bench {

inline double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
/// Of one thread's work, whatever else the machine does.
inline double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

inline double time(double (*clock)(), const std::function<void()>& body) {
  const double start = clock();
  body();
  return clock() - start;
}

inline void row(const char* what, double measured, const char* relation, double bar) {
  std::printf("%-60s %8.3f   %s %g\n", what, measured, relation, bar);
  std::fflush(stdout);
}

} // namespace bench
