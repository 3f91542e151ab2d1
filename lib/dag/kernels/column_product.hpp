// Products with chosen columns of a matrix, without a copy of them: those of an effect with
// candidates of its own (docs/method.md), where both factors are narrow. Plain C++: see
// simd/vector_math.hpp.
#pragma once
#include <cstdint>

namespace cape::simd {

/// Columns of a matrix with `rows` rows, column-major without gaps.
template <class T>
struct ColumnChoice {
  const T* x;
  std::int64_t rows;
  const std::int64_t* columns; ///< their numbers
  std::int64_t count;
};

/// y (rows x outputs) = x[:, columns] w, with w count x outputs. Weights that are 0 cost little.
void column_product(const ColumnChoice<float>& choice, const float* w, std::int64_t outputs,
                    float* y);
void column_product(const ColumnChoice<double>& choice, const double* w, std::int64_t outputs,
                    double* y);

/// w (count x outputs) = x[:, columns]^T y, with y rows x outputs.
void column_product_transposed(const ColumnChoice<float>& choice, const float* y,
                               std::int64_t outputs, float* w);
void column_product_transposed(const ColumnChoice<double>& choice, const double* y,
                               std::int64_t outputs, double* w);

} // namespace cape::simd
