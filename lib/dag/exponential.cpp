// The acyclicity measure tr exp(S) - M.
module;
#include "internal/arma.hpp"
#include "internal/borrow.hpp"
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <new>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <variant>
#include <vector>
module cape.dag;
#include "dag/acyclicity.hpp"

namespace cape::sem {
namespace {

// F = exp(S) - I by scaling and squaring of the Taylor series. Where S has no negative entries,
// every sum is of terms of one sign: nothing cancels, and h = tr F is accurate to the last digits
// even when it is 1e-12. With F in place of exp(S) the squaring is F <- F^2 + 2F.
//
// The same holds in float, relative errors of the size of its rounding included.
//
// A polynomial of degree q r without constant term costs q + r - 2 products (M. S. Paterson and
// L. J. Stockmeyer, SIAM J. Comput. 2 (1973) 60-66).
struct Scheme {
  int q, r;
  double radius; ///< the remainder is lost in rounding when the matrix's "norm" is at most this
};

constexpr auto factorial = [] {
  std::array<double, 17> all{1}; // up to the highest degree of a scheme
  for (std::size_t i = 1; i < all.size(); ++i) all[i] = all[i - 1] * static_cast<double>(i);
  return all;
}();

template <class T>
const std::vector<Scheme>& schemes() {
  static const std::vector<Scheme> all = [] {
    std::vector<Scheme> out;
    for (const auto& [q, r] : {std::pair{2, 1}, {2, 2}, {3, 2}, {3, 3}, {4, 3}, {4, 4}}) {
      // theta^m / (m + 1)! = 2^-digits for degree m.
      const double degree = q * r, digits = std::numeric_limits<T>::digits;
      out.push_back({q, r, std::exp((std::lgamma(degree + 2) - digits * std::log(2.0)) / degree)});
    }
    return out;
  }();
  return all;
}

template <class T>
double norm1(const arma::Mat<T>& a) {
  double largest = 0;
  for (arma::uword j = 0; j < a.n_cols; ++j) {
    const T* column = a.colptr(j);
    double sum = 0;
    for (arma::uword i = 0; i < a.n_rows; ++i) sum += std::fabs(column[i]);
    largest = std::max(largest, sum);
  }
  return largest;
}

template <class T>
T largest_size(const arma::Mat<T>& a) {
  return std::max(a.max(), -a.min());
}

// out = a b by blocks of columns, each a task that ends with finish(its columns). Fixed, so that
// the bits do not depend on the number of threads.
template <class T, class F>
void multiply(const arma::Mat<T>& a, const arma::Mat<T>& b, arma::Mat<T>& out, Run& run, F finish) {
  constexpr arma::uword width = 128;
  const arma::uword n = b.n_cols;
  out.set_size(a.n_rows, n);
  run.parallel_for(static_cast<std::int64_t>((n + width - 1) / width), [&](std::int64_t block) {
    const auto first = static_cast<arma::uword>(block) * width;
    const arma::span columns(first, std::min(n, first + width) - 1);
    arma::Mat<T> part(out.colptr(first), a.n_rows, columns.b - first + 1, false, true);
    part = a * arma::Mat<T>(const_cast<T*>(b.colptr(first)), b.n_rows, part.n_cols, false, true);
    finish(columns);
  });
}
template <class T>
void multiply(const arma::Mat<T>& a, const arma::Mat<T>& b, arma::Mat<T>& out, Run& run) {
  multiply(a, b, out, run, [](const arma::span&) {});
}

// h = tr(exp S) - M, gradient exp(S)^T. Where exp(S) would overflow, h is the largest finite number
// and the gradient keeps its direction.
template <class T>
class Exponential {
public:
  double operator()(const Matrix& s, Matrix& gradient, Run& run) {
    return measure(borrow(s.data(), s.rows(), s.cols()),
                   borrow(gradient.data(), s.rows(), s.cols()), run);
  }

private:
  double measure(const arma::mat& s, arma::mat gradient, Run& run);
  arma::Mat<T> power_[4]; // S, S^2, S^3, S^4 (scaled)
  arma::Mat<T> sum_, product_;
};

template <class T>
double Exponential<T>::measure(const arma::mat& s, arma::mat gradient, Run& run) {
  const double largest = largest_size(s);
  if (!(largest > 0)) {
    gradient.eye();
    return 0;
  }
  // Powers of a nearly acyclic S fall much faster than norms of S say: for k >= 2 all ||S^k|| are
  // at most theta^k with this theta (A. H. Al-Mohy and N. J. Higham, SIAM J. Matrix Anal. Appl. 31
  // (2009) 970-989, theorem 4.2 with p = 2). Dividing by the largest entry first keeps S^2 finite.
  power_[0] = arma::conv_to<arma::Mat<T>>::from(s / largest);
  multiply(power_[0], power_[0], power_[1], run);
  const double n1 = norm1(power_[0]), n2 = norm1(power_[1]);
  const double theta = largest * std::max(std::sqrt(n2), std::cbrt(n2 * n1));

  const Scheme* scheme = &schemes<T>().back();
  for (const Scheme& candidate : schemes<T>())
    if (theta <= candidate.radius) {
      scheme = &candidate;
      break;
    }
  int squarings = 0;
  if (theta > scheme->radius)
    squarings = static_cast<int>(std::ceil(std::log2(theta / scheme->radius)));

  const T scale = static_cast<T>(std::ldexp(largest, -squarings));
  power_[0] *= scale;
  power_[1] *= scale;
  power_[1] *= scale; // in two steps: scale^2 may overflow where S^2 is 0
  for (int p = 2; p < scheme->q; ++p) multiply(power_[p - 1], power_[0], power_[p], run);

  // Horner's rule in S^q; block b holds the terms b q + 1 ... b q + q.
  arma::Mat<T>& f = sum_;
  const auto add_terms = [&](int b, arma::Mat<T>& to, const arma::span& columns) {
    for (int p = 0; p < scheme->q; ++p)
      to.cols(columns.a, columns.b) +=
          power_[p].cols(columns.a, columns.b) /
          static_cast<T>(factorial[static_cast<std::size_t>(b * scheme->q + p + 1)]);
  };
  f.zeros(s.n_rows, s.n_cols);
  add_terms(scheme->r - 1, f, arma::span(0, s.n_cols - 1));
  for (int b = scheme->r - 2; b >= 0; --b) {
    multiply(f, power_[scheme->q - 1], product_, run,
             [&](const arma::span& columns) { add_terms(b, product_, columns); });
    f.swap(product_);
  }

  constexpr T high =
      std::is_same_v<T, float> ? T(1e12) : T(1e100); // its square is far from overflow
  double log_scale = 0;                              // exp(S) - I = f exp(log_scale)
  for (int i = 0; i < squarings; ++i) {
    multiply(f, f, product_, run, [&](const arma::span& columns) {
      product_.cols(columns.a, columns.b) +=
          static_cast<T>(2 * std::exp(-log_scale)) * f.cols(columns.a, columns.b);
    });
    f.swap(product_);
    log_scale *= 2;
    const T top = largest_size(f);
    if (top > high) {
      f /= top;
      log_scale += std::log(static_cast<double>(top));
    }
  }

  constexpr double limit = 700; // exp(709.78) is the largest double
  const double trace = arma::trace(f), top = largest_size(f);
  const bool overflow = std::log(top) + log_scale > limit;
  gradient = arma::conv_to<arma::mat>::from(f.t());
  gradient *= overflow ? std::exp(limit) / top : std::exp(log_scale);
  gradient.diag() += 1;
  if (trace <= 0) return 0; // below only by the rounding of an S with negative entries
  return std::log(trace) + log_scale > limit ? std::numeric_limits<double>::max()
                                             : trace * std::exp(log_scale);
}

} // namespace

template <class T>
AcyclicityMeasure make_exponential() {
  return Exponential<T>();
}

template AcyclicityMeasure make_exponential<float>();
template AcyclicityMeasure make_exponential<double>();

} // namespace cape::sem
