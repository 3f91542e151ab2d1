// One term of the Taylor series of exp(S) for a block of rows and a sparse S. Plain C++: see
// simd/vector_math.hpp.
#pragma once
#include <cstdint>

namespace cape::simd {

/// Rows that are held at a time, and what a column has in them: one line of the cache.
template <class T>
inline constexpr std::int64_t block_rows = 64 / sizeof(T);
template <class T>
struct alignas(64) BlockColumn {
  T value[block_rows<T>] = {};
};

/// S >= 0 by columns: values[e] in row rows[e], e from offsets[j] to offsets[j + 1].
template <class T>
struct SparseColumns {
  const std::int64_t* offsets;
  const std::int32_t* rows;
  const T* values;
  std::int64_t columns;
};

/// next <- scale * term S, sum <- sum + next, for non-negative blocks. Returns the largest entry of
/// next; raises `largest_sum` to that of sum.
float sparse_term(const SparseColumns<float>& s, float scale, const BlockColumn<float>* term,
                  BlockColumn<float>* next, BlockColumn<float>* sum, float& largest_sum);
double sparse_term(const SparseColumns<double>& s, double scale, const BlockColumn<double>* term,
                   BlockColumn<double>* next, BlockColumn<double>* sum, double& largest_sum);

} // namespace cape::simd
