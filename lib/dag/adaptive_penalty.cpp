// Factors of lambda from how much the columns have to do with each other (H. Zou, The adaptive
// lasso and its oracle properties, 2006).
module;
#include "internal/arma.hpp"
#include "internal/message.hpp"
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <new>
#include <span>
#include <typeinfo>
#include <utility>
#include <variant>
#include <vector>
module cape.dag;
#include "dag/adaptive_penalty.hpp"
#include "dag/row_source.hpp"
#include "dag/screening.hpp"

namespace cape::sem {
namespace {

constexpr double edges_per_feature = 1.5; ///< pairs that have a factor below 1
constexpr double least_factor = 0.3, most_factor = 4;
constexpr std::int64_t block_effects = 64; ///< that are one task
constexpr double rows_per_feature = 5;     ///< up to these the factors count in full
constexpr arma::uword product_rows = 512, product_causes = 1024; ///< of one product

// x less what a straight line in 1 and `on` explains of it, of length 1; 0 where nothing is left.
void normalize(arma::vec& x, const arma::vec* on) {
  if (const double size = arma::abs(x).max(); size > 0)
    x /= size; // no square overflows or vanishes
  const double before = arma::norm(x);
  x -= arma::mean(x);
  if (on != nullptr) x -= arma::dot(*on, x) * *on;
  if (const double length = arma::norm(x); length > 1e-9 * before)
    x /= length;
  else
    x.zeros();
}

// a'b, or of the squares of a, in pieces.
arma::fmat products(const arma::fmat& a, const arma::fmat& b, Run& run, bool squares = false) {
  arma::fmat out(a.n_cols, b.n_cols, arma::fill::zeros);
  for (arma::uword i = 0; i < a.n_cols; i += product_causes)
    for (arma::uword r = 0; r < a.n_rows; r += product_rows) {
      const arma::uword end_i = std::min(a.n_cols, i + product_causes) - 1,
                        end_r = std::min(a.n_rows, r + product_rows) - 1;
      const arma::fmat part = a.submat(r, i, end_r, end_i);
      if (squares)
        out.rows(i, end_i) += arma::square(part).t() * b.rows(r, end_r);
      else
        out.rows(i, end_i) += part.t() * b.rows(r, end_r);
      run.poll();
    }
  return out;
}

// Squared correlations of causes with effects, both of mean 0 and length 1, over rows that count by
// the weights of the effects; all alike if there are none.
arma::fmat squared_correlations(const arma::fmat& causes, arma::fmat effects, arma::fmat weights,
                                Run& run) {
  if (weights.empty()) return arma::square(products(causes, effects, run));
  for (arma::uword j = 0; j < effects.n_cols; ++j) {
    const float total = arma::accu(weights.col(j));
    if (total > 0) weights.col(j) /= total;
    effects.col(j) -= arma::dot(weights.col(j), effects.col(j));
    const float variance = arma::dot(weights.col(j), arma::square(effects.col(j)));
    effects.col(j) %= weights.col(j) / (variance > 0 ? std::sqrt(variance) : 1.0f);
  }
  const arma::fmat squares = products(causes, weights, run, true);
  const arma::fmat variances = squares - arma::square(products(causes, weights, run));
  arma::fmat out = arma::square(products(causes, effects, run));
  constexpr float rounding = 1e-4f;
  for (arma::uword e = 0; e < out.n_elem; ++e)
    out[e] = variances[e] > rounding * squares[e] ? std::min(1.0f, out[e] / variances[e]) : 0.0f;
  return out;
}

// Of every feature, its values and what a line leaves of their squares, as columns of mean 0 and
// length 1.
struct Terms {
  arma::fmat straight, curved;
};

Terms terms_of(Matrix values, Run& run) {
  const auto height = static_cast<arma::uword>(values.rows()),
             width = static_cast<arma::uword>(values.cols());
  Terms terms{arma::fmat(height, width), arma::fmat(height, width)};
  run.parallel_for(values.cols(), [&](std::int64_t j) {
    arma::vec line(values.column(j), height);
    normalize(line, nullptr);
    arma::vec square = arma::square(line);
    normalize(square, &line);
    terms.straight.col(static_cast<arma::uword>(j)) = arma::conv_to<arma::fvec>::from(line);
    terms.curved.col(static_cast<arma::uword>(j)) = arma::conv_to<arma::fvec>::from(square);
  });
  return terms;
}

// q of every cause of every effect.
Matrix associations(const Terms& terms, const BasicMatrix<float>& weight, const Causes& causes,
                    Run& run) {
  const arma::fmat& straight = terms.straight;
  const auto m = static_cast<std::int64_t>(straight.n_cols);
  const float chance = static_cast<float>(2 * std::log(static_cast<double>(m)) /
                                          static_cast<double>(straight.n_rows));
  const std::int64_t inputs = causes.empty() ? m : causes.rows();
  const std::int64_t block = causes.empty() ? block_effects : 1;
  Matrix q(inputs, m);
  run.parallel_for((m + block - 1) / block, [&](std::int64_t b) {
    const auto first = static_cast<arma::uword>(b * block),
               last = static_cast<arma::uword>(std::min(m, (b + 1) * block)) - 1;
    const arma::fmat weights = weight.empty()
                                   ? arma::fmat()
                                   : arma::fmat(weight.column(static_cast<std::int64_t>(first)),
                                                straight.n_rows, last - first + 1);
    const auto correlations = [&](const arma::fmat& of) {
      if (causes.empty()) return squared_correlations(of, straight.cols(first, last), weights, run);
      arma::uvec some(static_cast<arma::uword>(inputs));
      std::copy_n(causes.column(b), inputs, some.begin());
      return squared_correlations(of.cols(some), straight.cols(first, last), weights, run);
    };
    const arma::fmat by_value = correlations(straight), by_square = correlations(terms.curved);
    double* out = q.column(static_cast<std::int64_t>(first));
    for (arma::uword e = 0; e < by_value.n_elem; ++e)
      out[e] = by_value[e] + std::max(0.0f, by_square[e] - chance);
    if (causes.empty())
      for (arma::uword j = first; j <= last; ++j)
        q(static_cast<std::int64_t>(j), static_cast<std::int64_t>(j)) = 0;
  });
  return q;
}

// Of a fit to so many rows.
Matrix factors_of(Matrix q, std::int64_t rows, Run& run) {
  const double m = static_cast<double>(q.cols());
  std::vector<double> sorted(q.data(), q.data() + q.size());
  const auto rank =
      std::min(std::ssize(sorted), static_cast<std::int64_t>(edges_per_feature * m)) - 1;
  std::ranges::nth_element(sorted, sorted.begin() + rank, std::greater<>());
  const double typical = sorted[static_cast<std::size_t>(rank)];
  sorted = {};
  const double power = std::min(1.0, rows_per_feature * m / static_cast<double>(rows));
  run.parallel_for(q.cols(), [&](std::int64_t j) {
    for (double& value : std::span(q.column(j), static_cast<std::size_t>(q.rows())))
      value = typical > 0 ? std::clamp(std::pow(typical / value, power), least_factor, most_factor)
                          : 1;
  });
  return q;
}

} // namespace

Matrix adaptive_factors(const Table& table, std::span<const std::int64_t> rows,
                        const Causes& causes, Run& run) {
  const std::int64_t all = std::ssize(rows), n = screened_rows(all, table.features());
  std::vector<std::int64_t> some;
  for (const std::int64_t r : spaced_rows_of(all, n))
    some.push_back(rows[static_cast<std::size_t>(r)]);
  const Terms terms = terms_of(table.read<double>(some, run), run);
  return factors_of(associations(terms, table.read_weights<float>(some, run), causes, run), all,
                    run);
}

} // namespace cape::sem

namespace cape {

Matrix adaptive_penalty(const MatrixView& x, Run& run) {
  check_view(x, "x");
  check_finite(x, "x");
  if (x.rows < 2 || x.cols < 2)
    throw Error(Status::invalid_argument, message("x is ", x.rows, " x ", x.cols,
                                                  "; it must have 2 rows and 2 columns at least"));
  const sem::Terms terms = sem::terms_of(
      rows_of(x, spaced_rows_of(x.rows, sem::screened_rows(x.rows, x.cols))), run);
  Matrix factor = sem::factors_of(sem::associations(terms, {}, {}, run), x.rows, run);
  for (std::int64_t j = 0; j < x.cols; ++j) factor(j, j) = 0;
  return factor;
}

} // namespace cape
