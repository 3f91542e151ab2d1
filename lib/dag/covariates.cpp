module;
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <new>
#include <span>
#include <typeinfo>
#include <utility>
#include <variant>
#include <vector>
module cape.dag;
#include "dag/covariates.hpp"
#include "dag/row_design.hpp"

namespace cape {
// GCC 14 crashes on a member whose imported class it has not completed before.
static_assert(sizeof(Matrix) > 0 && sizeof(std::vector<double>) > 0);

namespace {

// Of a column: what its rows count, and covariates that are orthonormal by it, within batches.
struct Basis {
  std::vector<double> weight; ///< by row; 0 where the column has no value
  Matrix vectors;
};

using Batches = std::map<std::int64_t, std::vector<std::int64_t>>;

double product(const Basis& basis, const double* a, const double* b) {
  double sum = 0;
  for (std::size_t i = 0; i < basis.weight.size(); ++i)
    if (basis.weight[i] > 0) sum += basis.weight[i] * a[i] * b[i];
  return sum;
}

double norm(const Basis& basis, const double* a) { return std::sqrt(product(basis, a, a)); }

// y without its projection on the first k vectors; twice, as the second takes out the rounding of
// the first.
void project_out(const Basis& basis, std::int64_t k, double* y) {
  for (int pass = 0; pass < 2; ++pass)
    for (std::int64_t v = 0; v < k; ++v) {
      const double* q = basis.vectors.column(v);
      const double part = product(basis, q, y);
      for (std::size_t i = 0; i < basis.weight.size(); ++i) y[i] -= part * q[i];
    }
}

// What remains below this share of a vector is rounding, also of values whose level is 10^7 times
// as large as their deviation.
constexpr double rounding = 1e-8;

// By their weights, or by equal ones where none has any.
void center(std::span<const std::int64_t> rows, const std::vector<double>& weight, double* x) {
  const auto weight_of = [&](std::int64_t i) { return weight[static_cast<std::size_t>(i)]; };
  const bool any = std::ranges::any_of(rows, [&](std::int64_t i) { return weight_of(i) > 0; });
  for (int pass = 0; pass < 2; ++pass) { // the second mean is the rounding of the first
    double total = 0, sum = 0;
    for (const std::int64_t i : rows) {
      total += any ? weight_of(i) : 1;
      sum += (any ? weight_of(i) : 1) * x[i];
    }
    for (const std::int64_t i : rows) x[i] -= sum / total;
  }
}

Basis basis_of(std::vector<double> weight, const Matrix& covariates, const Batches& batches) {
  Basis basis{std::move(weight), Matrix(covariates.rows(), covariates.cols())};
  std::int64_t k = 0;
  for (std::int64_t c = 0; c < covariates.cols(); ++c) {
    double* v = basis.vectors.column(k);
    double largest = 0;
    for (std::int64_t i = 0; i < covariates.rows(); ++i)
      largest = std::max(largest, std::fabs(covariates(i, c)));
    if (largest == 0) continue;
    for (std::int64_t i = 0; i < covariates.rows(); ++i) v[i] = covariates(i, c) / largest;
    const double whole = norm(basis, v);
    for (const auto& [batch, rows] : batches) center(rows, basis.weight, v);
    project_out(basis, k, v);
    const double rest = norm(basis, v);
    if (!(rest > rounding * whole)) continue; // a combination of the others and of the batches
    for (std::int64_t i = 0; i < covariates.rows(); ++i) v[i] /= rest;
    ++k;
  }
  basis.vectors.keep_columns(k);
  return basis;
}

// What the rows count in the regression of a column, which has no values in some.
std::vector<double> weights_of(const Matrix& x, std::int64_t column, const Matrix& weight,
                               const Design& design) {
  std::vector<std::int64_t> rows;
  for (std::int64_t i = 0; i < x.rows(); ++i)
    if (!std::isnan(x(i, column))) rows.push_back(i);
  const std::vector<double> of_rows = centering_weights(rows, column, weight, design);
  std::vector<double> w(static_cast<std::size_t>(x.rows()));
  for (std::size_t r = 0; r < rows.size(); ++r) w[static_cast<std::size_t>(rows[r])] = of_rows[r];
  return w;
}

} // namespace

void take_out_covariates(Matrix& x, const Matrix& weight, const Design& design, Run& run) {
  const Batches batches = rows_by_batch(design, x.rows());
  Design of_rows;
  of_rows.weight = design.weight;
  const Matrix every = equation_weights(x.rows(), 1, of_rows);
  std::vector<double> usual(static_cast<std::size_t>(x.rows()), 1.0);
  if (!every.empty()) std::copy_n(every.data(), x.rows(), usual.begin());
  const Basis common = basis_of(usual, design.covariates, batches);
  run.parallel_for(x.cols(), [&](std::int64_t j) {
    std::vector<double> w = weights_of(x, j, weight, design);
    const Basis own =
        w == common.weight ? Basis() : basis_of(std::move(w), design.covariates, batches);
    const Basis& basis = own.weight.empty() ? common : own;
    double* y = x.column(j);
    double largest = 0; // so that no square overflows
    for (std::int64_t i = 0; i < x.rows(); ++i)
      if (std::fabs(y[i]) > largest) largest = std::fabs(y[i]);
    if (largest == 0) return;
    std::vector<double> rest(y, y + x.rows());
    for (double& v : rest) v /= largest;
    const double whole = norm(basis, rest.data());
    project_out(basis, basis.vectors.cols(), rest.data());
    const bool explained = !(norm(basis, rest.data()) > rounding * whole);
    for (std::size_t i = 0; i < rest.size(); ++i) {
      const bool counts = basis.weight[i] > 0;
      y[i] = explained && counts ? 0 : largest * rest[i];
    }
  });
}

} // namespace cape
