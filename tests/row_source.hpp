// A table in memory as one that is read by rows. Include after `import cape;`.
#pragma once
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <span>

namespace test {

/// Raises *largest to the number of values that are read at once.
inline cape::RowSource rows_of(const cape::Matrix& x, std::int64_t* largest = nullptr) {
  return {x.rows(), x.cols(), [&x, largest](std::span<const std::int64_t> numbers, double* out) {
            if (largest) *largest = std::max(*largest, std::ssize(numbers) * x.cols());
            for (std::int64_t j = 0; j < x.cols(); ++j)
              for (const std::int64_t row : numbers) *out++ = x(row, j);
          }};
}

} // namespace test
