// The range of some values, and whether they vary.
#pragma once

namespace cape::sem {

struct Range {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  inline void add(double v) {
    low = v < low ? v : low;
    high = v > high ? v : high;
  }
  inline double size() const { return high > -low ? high : -low; }
  /// Whether they are apart by rounding at most, or none.
  inline bool constant() const { return !(high / 2 - low / 2 > 1e-14 * size()); }
};

} // namespace cape::sem
