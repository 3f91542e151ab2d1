module;
#include "internal/arma.hpp"
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>
module cape.dag;

namespace cape::sem {
namespace {

// F = exp(S) - I by scaling and squaring of the Taylor series. S has no negative entries, so every
// sum is of terms of one sign: nothing cancels, and h = tr F is accurate to the last digits even
// when it is 1e-12. With F in place of exp(S) the squaring is F <- F^2 + 2F.
//
// A polynomial of degree q r without constant term costs q + r - 2 products (M. S. Paterson and
// L. J. Stockmeyer, SIAM J. Comput. 2 (1973) 60-66).
struct Scheme {
  int q, r;
  double radius; ///< the remainder is below 2^-53 of the matrix when its "norm" is at most this
};

// theta^m / (m + 1)! = 2^-53 for degree m.
double remainder_radius(int degree) {
  return std::exp((std::lgamma(degree + 2.0) - 53 * std::log(2.0)) / degree);
}

const std::vector<Scheme>& schemes() {
  static const std::vector<Scheme> all = [] {
    std::vector<Scheme> out;
    for (const auto& [q, r] : {std::pair{2, 1}, {2, 2}, {3, 2}, {3, 3}, {4, 3}, {4, 4}})
      out.push_back({q, r, remainder_radius(q * r)});
    return out;
  }();
  return all;
}

double norm1(const arma::mat& a) {
  double largest = 0;
  for (arma::uword j = 0; j < a.n_cols; ++j) {
    const double* column = a.colptr(j);
    double sum = 0;
    for (arma::uword i = 0; i < a.n_rows; ++i) sum += std::fabs(column[i]);
    largest = std::max(largest, sum);
  }
  return largest;
}

} // namespace

struct AcyclicityConstraint::Workspace {
  arma::mat power[4]; // S, S^2, S^3, S^4 (scaled)
  arma::mat sum, product;

  double expm(const arma::mat& s, arma::mat& gradient, Run& run);
  double logdet(const arma::mat& s, arma::mat& gradient, Run& run);
};

// h = tr(exp S) - M, gradient exp(S)^T. Where exp(S) would overflow, h is the largest finite number
// and the gradient keeps its direction.
double AcyclicityConstraint::Workspace::expm(const arma::mat& s, arma::mat& gradient, Run& run) {
  const double largest = s.max();
  if (!(largest > 0)) {
    gradient.eye();
    return 0;
  }
  // Powers of a nearly acyclic S fall much faster than norms of S say: for k >= 2 all ||S^k|| are
  // at most theta^k with this theta (A. H. Al-Mohy and N. J. Higham, SIAM J. Matrix Anal. Appl. 31
  // (2009) 970-989, theorem 4.2 with p = 2). Dividing by the largest entry first keeps S^2 finite.
  power[0] = s / largest;
  power[1] = power[0] * power[0];
  run.poll();
  const double n1 = norm1(power[0]), n2 = norm1(power[1]);
  const double theta = largest * std::max(std::sqrt(n2), std::cbrt(n2 * n1));

  const Scheme* scheme = &schemes().back();
  for (const Scheme& candidate : schemes())
    if (theta <= candidate.radius) {
      scheme = &candidate;
      break;
    }
  int squarings = 0;
  if (theta > scheme->radius)
    squarings = static_cast<int>(std::ceil(std::log2(theta / scheme->radius)));

  const double scale = std::ldexp(largest, -squarings);
  power[0] *= scale;
  power[1] *= scale;
  power[1] *= scale; // in two steps: scale^2 may overflow where S^2 is 0
  for (int p = 2; p < scheme->q; ++p) {
    power[p] = power[p - 1] * power[0];
    run.poll();
  }

  // Horner's rule in S^q; block b holds the terms b q + 1 ... b q + q.
  arma::mat& f = sum;
  f.zeros(s.n_rows, s.n_cols);
  for (int b = scheme->r - 1; b >= 0; --b) {
    if (b < scheme->r - 1) {
      product = f * power[scheme->q - 1];
      f.swap(product);
      run.poll();
    }
    for (int p = 0; p < scheme->q; ++p) f += power[p] / std::tgamma(b * scheme->q + p + 2.0);
  }

  double log_scale = 0; // exp(S) - I = f exp(log_scale)
  for (int i = 0; i < squarings; ++i) {
    product = f * f;
    product += (2 * std::exp(-log_scale)) * f;
    f.swap(product);
    log_scale *= 2;
    const double top = f.max();
    if (top > 1e100) {
      f /= top;
      log_scale += std::log(top);
    }
    run.poll();
  }

  constexpr double limit = 700; // exp(709.78) is the largest double
  const double trace = arma::trace(f), top = f.max();
  const bool overflow = std::log(top) + log_scale > limit;
  gradient = f.t() * (overflow ? std::exp(limit) / top : std::exp(log_scale));
  gradient.diag() += 1;
  if (trace == 0) return 0;
  return std::log(trace) + log_scale > limit ? std::numeric_limits<double>::max()
                                             : trace * std::exp(log_scale);
}

// h = -log det(I - S), gradient (I - S)^-T. I - S is an M-matrix, the domain of h, exactly when
// elimination without pivoting meets positive pivots only (A. Berman and R. J. Plemmons,
// Nonnegative Matrices in the Mathematical Sciences, 1979, chapter 6), and is stable then. One
// Gauss-Jordan pass gives the pivots and the inverse.
double AcyclicityConstraint::Workspace::logdet(const arma::mat& s, arma::mat& gradient, Run& run) {
  const arma::uword n = s.n_rows;
  arma::mat& inverse = sum;
  inverse = -s;
  inverse.diag() += 1;
  std::vector<double> factor(n);
  double h = 0;
  for (arma::uword k = 0; k < n; ++k) {
    const double pivot = inverse(k, k);
    if (!(pivot > 0)) return std::numeric_limits<double>::infinity();
    h -= std::log(pivot);
    std::copy_n(inverse.colptr(k), n, factor.begin());
    factor[k] = 0;
    inverse.col(k).zeros();
    inverse(k, k) = 1;
    for (arma::uword j = 0; j < n; ++j) {
      double* column = inverse.colptr(j);
      if (column[k] == 0) continue;
      column[k] /= pivot;
      for (arma::uword i = 0; i < n; ++i) column[i] -= factor[i] * column[k];
    }
    run.poll();
  }
  gradient = inverse.t();
  return h;
}

AcyclicityConstraint::AcyclicityConstraint(Constraint form)
    : form_(form), workspace_(std::make_unique<Workspace>()) {}
AcyclicityConstraint::~AcyclicityConstraint() = default;

double AcyclicityConstraint::operator()(const Matrix& s, Matrix& gradient, Run& run) {
  const auto n = static_cast<arma::uword>(s.rows());
  const arma::mat strength(const_cast<double*>(s.data()), n, n, false, true);
  arma::mat slope(gradient.data(), n, n, false, true);
  return form_ == Constraint::expm ? workspace_->expm(strength, slope, run)
                                   : workspace_->logdet(strength, slope, run);
}

} // namespace cape::sem

namespace cape {

double acyclicity(const MatrixView& a, Constraint constraint, Matrix* gradient) {
  check_view(a, "a");
  if (a.rows != a.cols)
    throw Error(Status::dim_mismatch, "a is " + std::to_string(a.rows) + " x " +
                                          std::to_string(a.cols) + "; it must be square");
  check_finite(a, "a");
  if (constraint != Constraint::expm && constraint != Constraint::logdet)
    throw Error(Status::invalid_argument, "constraint is not one of expm, logdet");

  const std::int64_t n = a.rows;
  Matrix strength(n, n), slope(n, n);
  // Above 1e150 a square overflows; h is at its cap long before.
  for (std::int64_t j = 0; j < n; ++j)
    for (std::int64_t i = 0; i < n; ++i) {
      const double size = std::min(std::fabs(a(i, j)), 1e150);
      strength(i, j) = size * size;
    }
  if (n == 0) {
    if (gradient) *gradient = slope;
    return 0;
  }
  Run run;
  const double h = sem::AcyclicityConstraint(constraint)(strength, slope, run);
  if (std::isinf(h))
    throw Error(
        Status::invalid_argument,
        "the spectral radius of a o a is 1 or more, outside the domain of the log-det form; "
        "scale a down or use the form expm");
  if (!gradient) return h;

  double steepest = 0; // logarithm of the largest |A| dh/dS: the product itself may overflow
  for (std::int64_t j = 0; j < n; ++j)
    for (std::int64_t i = 0; i < n; ++i)
      steepest = std::max(steepest, std::log(std::fabs(a(i, j))) + std::log(slope(i, j)));
  const double shrink = std::exp(std::min(0.0, 700 - steepest));
  *gradient = Matrix(n, n);
  for (std::int64_t j = 0; j < n; ++j)
    for (std::int64_t i = 0; i < n; ++i) (*gradient)(i, j) = 2 * a(i, j) * (slope(i, j) * shrink);
  return h;
}

} // namespace cape
