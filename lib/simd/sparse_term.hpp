// One term of the Taylor series of exp(S) for a block of rows and a sparse S. Plain C++: see
// vector_math.hpp.
#pragma once
#include <cstdint>

namespace cape::simd {

/// Rows that are held at a time, and what a column has in them: one line of the cache.
inline constexpr std::int64_t block_rows = 8;
struct alignas(64) BlockColumn {
  double value[block_rows] = {};
};

/// S >= 0 by columns: values[e] in row rows[e], e from offsets[j] to offsets[j + 1].
struct SparseColumns {
  const std::int64_t* offsets;
  const std::int32_t* rows;
  const double* values;
  std::int64_t columns;
};

/// next <- scale * term S, sum <- sum + next, for non-negative blocks. Returns the largest entry of
/// next; raises `largest_sum` to that of sum.
double sparse_term(const SparseColumns& s, double scale, const BlockColumn* term, BlockColumn* next,
                   BlockColumn* sum, double& largest_sum);

} // namespace cape::simd
