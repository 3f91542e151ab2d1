// Integers that count and number things.
#pragma once
#include <cstddef>
#include <cstdint>

namespace cape {

/// The parts of that size that n >= 0 things fill, the last perhaps not all of it.
constexpr std::int64_t ceil_div(std::int64_t n, std::int64_t part) { return (n + part - 1) / part; }

constexpr std::int64_t round_up(std::int64_t n, std::int64_t unit) {
  return ceil_div(n, unit) * unit;
}

/// A place, as standard containers number theirs.
constexpr std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

} // namespace cape
