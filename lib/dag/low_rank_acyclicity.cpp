module;
#include "internal/arma.hpp"
#include "internal/borrow.hpp"
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <new>
#include <numbers>
#include <string>
#include <typeinfo>
#include <utility>
#include <variant>
module cape.dag;
#include "dag/low_rank_acyclicity.hpp"

namespace cape::sem {
namespace {

// Pairs of columns (a, b), a <= b.
std::int64_t pair_count(std::int64_t rank) { return rank * (rank + 1) / 2; }

// Of every pair the product of the columns, times sqrt 2 where they differ: for rows u_i and v_j
// the products of these products sum up to <u_i, v_j>^2.
double pair_weight(arma::uword a, arma::uword b) { return a == b ? 1 : std::numbers::sqrt2; }
arma::mat pair_products(const arma::mat& rows) {
  arma::mat out(rows.n_rows, rows.n_cols * (rows.n_cols + 1) / 2);
  arma::uword pair = 0;
  for (arma::uword b = 0; b < rows.n_cols; ++b)
    for (arma::uword a = 0; a <= b; ++a)
      out.col(pair++) = pair_weight(a, b) * rows.col(a) % rows.col(b);
  return out;
}

// body(first, last) for blocks of that width of 0 ... n - 1, which are tasks.
template <class F>
void for_blocks(arma::uword n, arma::uword width, Run& run, F body) {
  run.parallel_for(static_cast<std::int64_t>((n + width - 1) / width), [&](std::int64_t block) {
    const arma::uword first = static_cast<arma::uword>(block) * width;
    body(first, std::min(n, first + width) - 1);
  });
}
// Of blocks that are multiplied by a matrix of this size: wide enough to be fast, and narrow enough
// to be done in some milliseconds, since only between them can a run be cancelled.
arma::uword task_width(arma::uword rows, arma::uword cols) {
  return std::clamp<arma::uword>(100'000'000 / (rows * cols), 16, 128);
}

// Adds multiplier times the gradient with respect to the factor, given that with respect to its
// products.
void add_pull_back(const arma::mat& factor, const arma::mat& slope, double multiplier,
                   arma::mat& gradient, Run& run) {
  constexpr arma::uword height = 512; // rows whose columns stay in the cache
  for_blocks(factor.n_rows, height, run, [&](arma::uword first, arma::uword last) {
    arma::uword pair = 0;
    for (arma::uword b = 0; b < factor.n_cols; ++b)
      for (arma::uword a = 0; a <= b; ++a, ++pair) {
        const double weight = multiplier * pair_weight(a, b);
        const double *s = slope.colptr(pair), *f_a = factor.colptr(a), *f_b = factor.colptr(b);
        double *g_a = gradient.colptr(a), *g_b = gradient.colptr(b);
        for (arma::uword i = first; i <= last; ++i) {
          const double pull = weight * s[i];
          g_a[i] += pull * f_b[i];
          g_b[i] += pull * f_a[i];
        }
      }
  });
}

// So that fourth powers and their squares are finite.
arma::mat bounded(const arma::mat& factor) { return arma::clamp(factor, -1e35, 1e35); }

} // namespace

LowRankAcyclicity::LowRankAcyclicity(std::int64_t features, std::int64_t rank)
    : size_(std::min(features, pair_count(rank))), by_pairs_(size_ < features),
      measure_(make_exponential<double>()), strength_(size_, size_), slope_(size_, size_) {}

double LowRankAcyclicity::operator()(const arma::mat& u_in, const arma::mat& v_in, Run& run) {
  const arma::mat u = bounded(u_in), v = bounded(v_in);
  return by_pairs_ ? of_pairs(u, v, run) : of_edges(u, v, run);
}

void LowRankAcyclicity::add_slopes(const arma::mat& u, const arma::mat& v, double multiplier,
                                   arma::mat& u_slope, arma::mat& v_slope, Run& run) const {
  add_pull_back(bounded(u), p_slope_, multiplier, u_slope, run);
  add_pull_back(bounded(v), q_slope_, multiplier, v_slope, run);
}

// Where exp is near the largest number its products with U and V must not pass it: the gradient
// then keeps its direction.
void LowRankAcyclicity::scale_slope(const arma::mat& u, const arma::mat& v) {
  arma::mat slope = borrow(slope_.data(), size_, size_);
  const auto largest = [](const arma::mat& a) { return std::max(a.max(), -a.min()); };
  const double bound = std::log(largest(slope)) + 3 * std::log(std::max(largest(u), largest(v))) +
                       std::log(4.0 * static_cast<double>(size_) * static_cast<double>(u.n_cols));
  if (constexpr double limit = 700; bound > limit) slope *= std::exp(limit - bound);
}

double LowRankAcyclicity::of_edges(const arma::mat& u, const arma::mat& v, Run& run) {
  arma::mat strength = borrow(strength_.data(), size_, size_);
  const arma::uword m = u.n_rows, width = task_width(m, m);
  for_blocks(m, width, run, [&](arma::uword first, arma::uword last) {
    strength.cols(first, last) = arma::square(u * v.rows(first, last).t());
  });
  const double h = measure_(strength_, slope_, run);
  scale_slope(u, v);
  const arma::mat slope = borrow(slope_.data(), size_, size_);
  const arma::mat p = pair_products(u), q = pair_products(v);
  p_slope_.set_size(m, p.n_cols);
  q_slope_.set_size(m, p.n_cols);
  for_blocks(p.n_cols, width, run, [&](arma::uword first, arma::uword last) {
    p_slope_.cols(first, last) = slope * q.cols(first, last);
    q_slope_.cols(first, last) = slope.t() * p.cols(first, last);
  });
  return h;
}

double LowRankAcyclicity::of_pairs(const arma::mat& u, const arma::mat& v, Run& run) {
  constexpr arma::uword height = 256; // rows whose products of pairs are in memory
  const arma::uword m = u.n_rows;
  const auto pairs = static_cast<arma::uword>(size_);
  arma::mat strength = borrow(strength_.data(), size_, size_);
  strength.zeros();
  for (arma::uword first = 0; first < m; first += height) {
    const arma::span rows(first, std::min(m, first + height) - 1);
    const arma::mat p = pair_products(u.rows(rows.a, rows.b));
    const arma::mat q = pair_products(v.rows(rows.a, rows.b));
    for_blocks(pairs, task_width(pairs, height), run, [&](arma::uword from, arma::uword to) {
      strength.cols(from, to) += q.t() * p.cols(from, to);
    });
  }
  const double h = measure_(strength_, slope_, run);
  scale_slope(u, v);
  const arma::mat slope = borrow(slope_.data(), size_, size_);
  p_slope_.set_size(m, pairs);
  q_slope_.set_size(m, pairs);
  for_blocks(m, task_width(pairs, pairs), run, [&](arma::uword first, arma::uword last) {
    p_slope_.rows(first, last) = pair_products(v.rows(first, last)) * slope;
    q_slope_.rows(first, last) = pair_products(u.rows(first, last)) * slope.t();
  });
  return h;
}

} // namespace cape::sem

namespace cape {

double low_rank_acyclicity(const MatrixView& u, const MatrixView& v, Matrix* u_gradient,
                           Matrix* v_gradient) {
  check_view(u, "u");
  check_view(v, "v");
  if (u.rows != v.rows || u.cols != v.cols || u.cols < 1)
    throw Error(Status::dim_mismatch,
                "u is " + std::to_string(u.rows) + " x " + std::to_string(u.cols) + " and v " +
                    std::to_string(v.rows) + " x " + std::to_string(v.cols) +
                    "; they must have the same size and at least one column");
  check_finite(u, "u");
  check_finite(v, "v");
  Matrix u_slope(u.rows, u.cols), v_slope(u.rows, u.cols);
  double h = 0;
  if (u.rows > 0) {
    const Matrix u_values = to_matrix(u), v_values = to_matrix(v);
    const arma::mat u_factor = borrow(u_values.data(), u.rows, u.cols);
    const arma::mat v_factor = borrow(v_values.data(), u.rows, u.cols);
    Run run;
    sem::LowRankAcyclicity constraint(u.rows, u.cols);
    h = constraint(u_factor, v_factor, run);
    arma::mat u_out = borrow(u_slope.data(), u.rows, u.cols);
    arma::mat v_out = borrow(v_slope.data(), u.rows, u.cols);
    constraint.add_slopes(u_factor, v_factor, 1, u_out, v_out, run);
  }
  if (u_gradient) *u_gradient = std::move(u_slope);
  if (v_gradient) *v_gradient = std::move(v_slope);
  return h;
}

} // namespace cape
