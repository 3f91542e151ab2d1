// What the fuzzers share: bytes as numbers, and what must hold of every call of the C interface. A
// fuzzer is LLVMFuzzerTestOneInput(); what does not hold ends the program.
#pragma once
#include <cape/cape.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <limits>
#include <span>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace fuzz {

/// End the program, with what should have held.
inline void must(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

/// The input, read as numbers; zeros after its end.
class Input {
public:
  Input(const std::uint8_t* data, std::size_t size) : rest_(data, size) {}

  bool at_end() const { return rest_.empty(); }
  std::uint64_t bits(int bytes = 8) {
    std::uint64_t value = 0;
    for (int b = 0; b < bytes && !rest_.empty(); ++b) {
      value = value << 8 | rest_.front();
      rest_ = rest_.subspan(1);
    }
    return value;
  }
  /// In first .. last, at most 65536 apart.
  std::int64_t in(std::int64_t first, std::int64_t last) {
    const auto count = static_cast<std::uint64_t>(last - first) + 1;
    return first + static_cast<std::int64_t>(bits(count <= 256 ? 1 : 2) % count);
  }
  bool flip() { return in(0, 1) != 0; }
  bool one_in(int n) { return in(1, n) == n; }
  std::int64_t integer() { return one_in(4) ? static_cast<std::int64_t>(bits()) : in(-2, 100); }
  template <class T, std::size_t n>
  const T& one_of(const T (&values)[n]) {
    return values[in(0, static_cast<std::int64_t>(n) - 1)];
  }
  double ordinary() { return static_cast<double>(in(-32768, 32767)) / 10000; }
  /// Ordinary, or one that computations break on.
  double number() {
    static constexpr double infinity = std::numeric_limits<double>::infinity();
    static constexpr double extremes[] = {
        0,     1,     -1,     0.5,    -0.5,   1e-300, 5e-324,        1e300, -1e300,   1.7e308,
        1e150, 1e154, 1e-160, 3e38,   1e20,   NAN,    infinity,      -infinity, 1 - 1e-12, 1e16,
        -0.0,  2,     100,    1e-8,   -3,     1e8,    355,           -745,  4e5,      1e-45};
    return flip() ? one_of(extremes) : ordinary();
  }
  double mostly_ordinary() { return one_in(16) ? number() : ordinary(); }
  std::string text(std::int64_t most) {
    std::string out(static_cast<std::size_t>(in(0, most)), ' ');
    for (char& c : out) c = static_cast<char>(bits(1));
    return out.c_str(); // up to a zero
  }
  std::vector<double> numbers(std::int64_t n, bool ordinary_alone = false) {
    std::vector<double> out(static_cast<std::size_t>(n));
    for (double& v : out) v = ordinary_alone ? ordinary() : mostly_ordinary();
    return out;
  }
  /// Mostly indices below `count`.
  std::vector<std::int64_t> indices(std::int64_t n, std::int64_t count) {
    std::vector<std::int64_t> out(static_cast<std::size_t>(n));
    for (std::int64_t& v : out) v = one_in(32) || count < 1 ? integer() : in(0, count - 1);
    return out;
  }

private:
  std::span<const std::uint8_t> rest_;
};

[[noreturn]] inline void fail(const char* call, const char* what) {
  std::fprintf(stderr, "%s: %s (%s)\n", call, what, cape_last_error());
  std::abort();
}

/// Whether the call succeeded. One that did not says why, and it is no fault of the library.
inline bool succeeded(cape_status status, const char* call) {
  const bool says = cape_last_error()[0] != '\0';
  if (std::strcmp(cape_status_name(status), "unknown") == 0) fail(call, "an unknown status");
  if (status == CAPE_INTERNAL) fail(call, "internal");
  if (says != (status != CAPE_OK))
    fail(call, "an error without a text, or a text without an error");
  return status == CAPE_OK;
}
#define CALL(f, ...) ::fuzz::succeeded(f(__VA_ARGS__), #f)
/// A call that must succeed.
#define MUST(f, ...) (CALL(f, __VA_ARGS__) ? void() : ::fuzz::fail(#f, "must succeed"))

template <class Numbers>
void finite(const Numbers& numbers, const char* call) {
  for (const auto v : numbers)
    if (!std::isfinite(v)) fail(call, "a number that is not finite, with CAPE_OK");
}
/// A call whose numbers are finite if it succeeds.
#define FINITE(numbers, f, ...)                                                                    \
  do {                                                                                             \
    if (CALL(f, __VA_ARGS__)) ::fuzz::finite(numbers, #f);                                         \
  } while (0)

} // namespace fuzz
