// Armadillo's view of memory that it does not own, column-major without gaps. Of const memory too,
// since Armadillo has no matrix of const elements: that must not be written through.
#pragma once
#include "internal/arma.hpp"
#include <cstdint>

namespace cape {

template <class T>
arma::Mat<T> borrow(const T* data, std::int64_t rows, std::int64_t cols) {
  return arma::Mat<T>(const_cast<T*>(data), static_cast<arma::uword>(rows),
                      static_cast<arma::uword>(cols), false, true);
}

/// Of a matrix of the core, or some of its columns.
template <class M>
auto borrow(const M& matrix) {
  return borrow(matrix.data(), matrix.rows(), matrix.cols());
}
template <class M>
auto borrow_columns(const M& matrix, std::int64_t first, std::int64_t count) {
  return borrow(matrix.column(first), matrix.rows(), count);
}

} // namespace cape
