module;
#include "internal/arma.hpp"
#include "internal/message.hpp"
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <ctime>
#include <limits>
#include <string>
#include <string_view>
module cape.core;
#include "core/work_buffer.hpp"

namespace cape {
namespace {

arma::mat random_matrix(arma::uword rows, arma::uword cols, std::uint64_t stream) {
  Rng rng(1, {hash("self_test"), stream});
  arma::mat a(rows, cols);
  for (double& value : a) value = rng.uniform(-1.0, 1.0);
  return a;
}

arma::mat plain_product(const arma::mat& a, const arma::mat& b) {
  arma::mat c(a.n_rows, b.n_cols, arma::fill::zeros);
  for (arma::uword j = 0; j < b.n_cols; ++j)
    for (arma::uword k = 0; k < a.n_cols; ++k)
      for (arma::uword i = 0; i < a.n_rows; ++i) c(i, j) += a(i, k) * b(k, j);
  return c;
}

void compare(const arma::mat& blas, const arma::mat& plain, arma::uword length, const char* what) {
  // Entries are at most 1, so a sum of `length` products is off by at most length^2 roundings.
  const double tolerance = 2.3e-16 * static_cast<double>(length * length);
  for (arma::uword i = 0; i < plain.n_elem; ++i)
    if (!(std::abs(blas[i] - plain[i]) <= tolerance))
      throw Error(Status::internal,
                  message("the BLAS kernel ", blas_info().kernel, " computes ", what,
                          " wrongly on this CPU: element ", i, " is ", blas[i],
                          " and should be ", plain[i],
                          "; set OPENBLAS_CORETYPE to another kernel, e.g. Haswell or Prescott"));
}

} // namespace

double blas_rate(std::int64_t n) {
  if (n < 1 || n > 8192)
    throw Error(Status::invalid_argument, message("n is ", n, "; it must lie in [1, 8192]"));
  require_work_buffer();
  const auto size = static_cast<arma::uword>(n);
  const arma::mat a = random_matrix(size, size, 0), b = random_matrix(size, size, 1);
  arma::mat c(size, size);
  double best = std::numeric_limits<double>::infinity();
  for (int repeat = 0; repeat < 5; ++repeat) {
    const std::clock_t start = std::clock(); // of the CPU: other work disturbs it less
    c = a * b;
    // A small product takes less than a tick of the clock.
    best = std::min(best, std::max(static_cast<double>(std::clock() - start), 1.0));
  }
  const double length = static_cast<double>(n);
  return 2 * length * length * length / (best / CLOCKS_PER_SEC) / 1e9;
}

void self_test() {
  require_work_buffer();
  // Below, at and beyond the tiles of the kernels, and multiples of none.
  constexpr arma::uword shapes[][3] = {{5, 7, 3}, {17, 33, 9}, {31, 130, 65}, {101, 67, 129}};
  for (const auto& [rows, inner, cols] : shapes) {
    const arma::mat a = random_matrix(rows, inner, 0), b = random_matrix(inner, cols, 1);
    const arma::mat at = a.t(), bt = b.t();
    const arma::mat expected = plain_product(a, b);
    compare(a * b, expected, inner, "A B");
    compare(at.t() * b, expected, inner, "A' B");
    compare(a * bt.t(), expected, inner, "A B'");
    compare(at.t() * bt.t(), expected, inner, "A' B'");
    compare(a * a.t(), plain_product(a, at), inner, "A A'");
  }
}

} // namespace cape
