// Matrices and tables that several tests take. Include after `import cape;`.
#pragma once
#include <algorithm>
#include <cstdint>
#include <initializer_list>

namespace test {

/// A matrix of one row.
inline cape::Matrix row(std::initializer_list<double> values) {
  cape::Matrix m(1, static_cast<std::int64_t>(values.size()));
  std::ranges::copy(values, m.data());
  return m;
}

inline double dot(const cape::Matrix& a, const cape::Matrix& b) {
  double sum = 0;
  for (std::int64_t i = 0; i < a.size(); ++i) sum += a.data()[i] * b.data()[i];
  return sum;
}

/// Of numbers in [-reach, reach).
inline cape::Matrix random_matrix(cape::Rng& rng, std::int64_t rows, std::int64_t cols,
                                  double reach) {
  cape::Matrix m(rows, cols);
  for (std::int64_t i = 0; i < m.size(); ++i) m.data()[i] = rng.uniform(-reach, reach);
  return m;
}

/// Of normal deviates times scale.
inline cape::Matrix random_matrix(std::int64_t rows, std::int64_t cols, double scale,
                                  std::uint64_t seed) {
  cape::Matrix m(rows, cols);
  cape::Rng rng(seed);
  for (std::int64_t i = 0; i < m.size(); ++i) m.data()[i] = scale * rng.normal();
  return m;
}

/// A table without any cause.
inline cape::Matrix noise(std::int64_t rows, std::int64_t cols, std::uint64_t seed) {
  return random_matrix(rows, cols, 1, seed);
}

/// 0 -> 1 -> 2 -> ... with weight 1, noise of unit variance.
inline cape::Matrix chain(std::int64_t rows, std::int64_t cols, std::uint64_t seed) {
  cape::Matrix x(rows, cols);
  cape::Rng rng(seed);
  for (std::int64_t j = 0; j < cols; ++j)
    for (std::int64_t i = 0; i < rows; ++i) x(i, j) = (j > 0 ? x(i, j - 1) : 0) + rng.normal();
  return x;
}

/// Of a random graph, with the defaults of both simulations.
inline cape::Matrix simulated(std::int64_t rows, std::int64_t nodes, std::uint64_t seed) {
  return cape::simulate_data(cape::simulate_dag(nodes, {}, seed), rows, {}, seed);
}

} // namespace test
