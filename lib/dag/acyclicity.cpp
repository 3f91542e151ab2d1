module;
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <new>
#include <string>
#include <typeinfo>
#include <variant>
module cape.dag;
#include "dag/acyclicity.hpp"

namespace cape::sem {

template <class T>
AcyclicityMeasure make_acyclicity(Constraint form, const Causes& causes) {
  if (form == Constraint::logdet) return make_log_determinant();
  return causes.empty() ? make_exponential<T>() : make_sparse_exponential<T>(causes);
}

template AcyclicityMeasure make_acyclicity<float>(Constraint, const Causes&);
template AcyclicityMeasure make_acyclicity<double>(Constraint, const Causes&);

} // namespace cape::sem

namespace cape {

double acyclicity(const MatrixView& a, Constraint constraint, Matrix* gradient, Run& run) {
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
  const double h = sem::make_acyclicity<double>(constraint, {})(strength, slope, run);
  if (std::isinf(h))
    throw Error(
        Status::invalid_argument,
        "the spectral radius of a o a is 1 or more, outside the domain of the log-det form; "
        "scale a down or use the form expm");
  const double found[] = {h};
  check_finite({found, 1, 1, 1, Layout::col_major}, "h of a");
  // Where the slope is not finite, h is wrong too.
  check_finite(slope, "the slope of h (the weights of a differ too much in size)");
  if (!gradient) return h;

  double steepest = 0; // logarithm of the largest |A| dh/dS: the product itself may overflow
  for (std::int64_t j = 0; j < n; ++j)
    for (std::int64_t i = 0; i < n; ++i)
      steepest = std::max(steepest, std::log(std::fabs(a(i, j))) + std::log(slope(i, j)));
  const double shrink = std::exp(std::min(0.0, 700 - steepest));
  *gradient = Matrix(n, n);
  for (std::int64_t j = 0; j < n; ++j)
    for (std::int64_t i = 0; i < n; ++i) (*gradient)(i, j) = 2 * a(i, j) * (slope(i, j) * shrink);
  check_finite(*gradient, "the gradient of h");
  return h;
}

double acyclicity(const MatrixView& a, Constraint constraint, Matrix* gradient) {
  Run run;
  return acyclicity(a, constraint, gradient, run);
}

} // namespace cape
