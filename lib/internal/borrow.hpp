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

} // namespace cape
