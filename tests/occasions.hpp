// Counts the occasions to call back that a piece of work gives, which no machine changes; how long
// the pauses between them are is measured by bench/silence.cpp.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <utility>

namespace test {

struct Occasions {
  std::int64_t count = 0;            ///< in all
  std::int64_t after_cancelling = 0; ///< once the callback has returned false
};

/// Runs work(run); stop(progress) is asked at every occasion, and the work cancelled once it is
/// true.
inline Occasions occasions(const std::function<void(cape::Run&)>& work,
                           const std::function<bool(const cape::Progress&)>& stop) {
  Occasions out;
  bool cancelled = false;
  cape::Run run(
      1, 1,
      [&](const cape::Progress& p) {
        ++out.count;
        out.after_cancelling += cancelled;
        cancelled = cancelled || stop(p);
        return !cancelled;
      },
      std::chrono::milliseconds(0));
  try {
    work(run);
  } catch (const cape::Error& error) {
    if (error.code() != cape::Status::cancelled) throw;
  }
  return out;
}

/// A piece of work between two occasions has at most so many operations on the average.
constexpr double piece = 1e8;

} // namespace test
