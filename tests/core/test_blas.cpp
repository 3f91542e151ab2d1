// BLAS and LAPACK under threads: what each thread computes is its own.
#define BOOST_TEST_MODULE blas
#include <boost/test/unit_test.hpp>
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <thread>
#include <vector>
import cape;

using namespace cape;

extern "C" {
void dgemm_(const char*, const char*, const int*, const int*, const int*, const double*,
            const double*, const int*, const double*, const int*, const double*, double*,
            const int*);
void dpotrf_(const char*, const int*, double*, const int*, int*);
}

namespace {

std::vector<double> random_matrix(int n, std::uint64_t stream) {
  Rng rng(5, {stream});
  std::vector<double> a(static_cast<std::size_t>(n * n));
  for (double& x : a) x = rng.uniform(-1.0, 1.0);
  return a;
}

// The largest error of A A' over `repeats` products, and of the Cholesky factor of A A' + n I
// multiplied out again; the expected values are sums written out.
double largest_error(int n, int repeats, std::uint64_t stream) {
  const std::vector<double> a = random_matrix(n, stream);
  const auto at = [n](int i, int j) { return static_cast<std::size_t>(i + j * n); };
  std::vector<double> expected(a.size(), 0.0), product(a.size());
  for (int j = 0; j < n; ++j)
    for (int i = 0; i < n; ++i)
      for (int k = 0; k < n; ++k) expected[at(i, j)] += a[at(i, k)] * a[at(j, k)];
  const double one = 1, zero = 0;
  double error = 0;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    dgemm_("N", "T", &n, &n, &n, &one, a.data(), &n, a.data(), &n, &zero, product.data(), &n);
    for (std::size_t k = 0; k < product.size(); ++k)
      error = std::max(error, std::abs(product[k] - expected[k]));
    for (int i = 0; i < n; ++i) product[at(i, i)] += n;
    int info = 0;
    dpotrf_("L", &n, product.data(), &n, &info);
    if (info != 0) return 1;
    for (int j = 0; j < n; ++j)
      for (int i = j; i < n; ++i) {
        double sum = i == j ? -n : 0;
        for (int k = 0; k <= j; ++k) sum += product[at(i, k)] * product[at(j, k)];
        error = std::max(error, std::abs(sum - expected[at(i, j)]));
      }
  }
  return error;
}

} // namespace

BOOST_AUTO_TEST_CASE(one_thread) { BOOST_TEST(largest_error(24, 1, 0) < 1e-12); }

// The serial OpenBLAS of Debian gives two threads the same work buffer now and then; without the
// lock of the core more than half of the small products were wrong.
BOOST_AUTO_TEST_CASE(products_at_the_same_time) {
  for (const int n : {24, 150}) {
    std::vector<double> error(4);
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < error.size(); ++t)
      threads.emplace_back([&, t] { error[t] = largest_error(n, n == 24 ? 5000 : 30, t); });
    for (std::thread& thread : threads) thread.join();
    for (const double e : error) BOOST_TEST(e < 1e-10);
  }
}
