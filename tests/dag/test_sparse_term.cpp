// A term of exp(S) for a sparse S, against plain loops.
#define BOOST_TEST_MODULE sparse_term
#include <algorithm>
#include <boost/mpl/list.hpp>
#include <boost/test/unit_test.hpp>
#include "dag/kernels/sparse_term.hpp"
#include <cstddef>
#include <cstdint>
#include <vector>
import cape;

namespace {

namespace simd = cape::simd;
using Scalars = boost::mpl::list<float, double>;

// Their sums of products are exact.
template <class T>
std::vector<simd::BlockColumn<T>> small_integers(std::size_t columns, std::uint64_t seed) {
  cape::Rng rng(seed);
  std::vector<simd::BlockColumn<T>> block(columns);
  for (simd::BlockColumn<T>& column : block)
    for (T& value : column.value) value = static_cast<T>(rng.integer(9));
  return block;
}

} // namespace

BOOST_AUTO_TEST_CASE_TEMPLATE(is_the_scaled_product_and_adds_to_the_sum, T, Scalars) {
  constexpr std::size_t n = 23;
  cape::Rng rng(1);
  std::vector<std::int64_t> offsets{0};
  std::vector<std::int32_t> rows;
  std::vector<T> values;
  for (std::size_t j = 0; j < n; ++j) { // 0 to 6 entries, so that all remainders are met
    for (std::size_t e = 0; e < j % 7; ++e) {
      rows.push_back(static_cast<std::int32_t>(rng.integer(n)));
      values.push_back(static_cast<T>(rng.integer(5)));
    }
    offsets.push_back(std::ssize(rows));
  }
  const auto term = small_integers<T>(n, 2);
  auto next = small_integers<T>(n, 3), sum = small_integers<T>(n, 4);
  const auto before = sum;
  T largest_sum = 1000; // more than any
  const T largest =
      simd::sparse_term({offsets.data(), rows.data(), values.data(), std::int64_t{n}}, T(0.5),
                        term.data(), next.data(), sum.data(), largest_sum);
  BOOST_TEST(largest_sum == 1000);
  T expected_largest = 0, total = 0;
  for (std::size_t j = 0; j < n; ++j)
    for (std::size_t b = 0; b < std::size_t(simd::block_rows<T>); ++b) {
      T product = 0;
      for (auto e = static_cast<std::size_t>(offsets[j]);
           e < static_cast<std::size_t>(offsets[j + 1]); ++e)
        product += values[e] * term[static_cast<std::size_t>(rows[e])].value[b];
      BOOST_TEST(next[j].value[b] == product / 2);
      BOOST_TEST(sum[j].value[b] == before[j].value[b] + product / 2);
      expected_largest = std::max(expected_largest, product / 2);
      total = std::max(total, sum[j].value[b]);
    }
  BOOST_TEST(largest == expected_largest);

  largest_sum = 0;
  sum = before;
  simd::sparse_term({offsets.data(), rows.data(), values.data(), std::int64_t{n}}, T(0.5),
                    term.data(), next.data(), sum.data(), largest_sum);
  BOOST_TEST(largest_sum == total);
}
