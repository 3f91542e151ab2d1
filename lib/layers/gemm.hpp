// Products of row-major matrices.
#pragma once

namespace cape::layers {

// C (m x n) = A B + beta C, where A is m x k, or k x m if it is transposed, and B likewise. All are
// row-major, and c_stride is from one row of C to the next, b_stride of B. To BLAS, which counts
// along columns, they are their transposes.
template <class T>
void gemm(bool a_transposed, bool b_transposed, std::int64_t m, std::int64_t n, std::int64_t k,
          const T* a, std::int64_t a_stride, const T* b, std::int64_t b_stride, T beta, T* c,
          std::int64_t c_stride) {
  const auto whole = [](std::int64_t i) { return static_cast<arma::blas_int>(i); };
  const arma::blas_int rows = whole(n), columns = whole(m), inner = whole(k),
                       ld_a = whole(b_stride), ld_b = whole(a_stride), ld_c = whole(c_stride);
  const T one = 1;
  arma::blas::gemm<T>(b_transposed ? "T" : "N", a_transposed ? "T" : "N", &rows, &columns, &inner,
                      &one, b, &ld_a, a, &ld_b, &beta, c, &ld_c);
}

} // namespace cape::layers
