// Central differences against an analytic gradient.
#pragma once
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstdint>
#include <vector>

namespace test {

/// Every element of `analytic` against the slope of loss() in that element of x.
template <class Loss>
void check_slopes(std::vector<double>& x, const std::vector<double>& analytic, const char* name,
                  std::int64_t k_length, const Loss& loss) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double step = 1e-5, kept = x[i];
    x[i] = kept + step;
    const double above = loss();
    x[i] = kept - step;
    const double below = loss();
    x[i] = kept;
    BOOST_TEST_CONTEXT(name << "[" << i << "], k_length " << k_length)
    BOOST_TEST(std::fabs((above - below) / (2 * step) - analytic[i]) < 2e-8);
  }
}

} // namespace test
