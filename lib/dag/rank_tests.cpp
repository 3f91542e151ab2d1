// Tests of whether two columns have to do with each other: by ranks, and by counts where values are
// rare.
module;
#include "internal/arma.hpp"
#include "internal/message.hpp"
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <new>
#include <numeric>
#include <span>
#include <typeinfo>
#include <utility>
#include <variant>
#include <vector>
module cape.dag;
#include "dag/rank_tests.hpp"

namespace cape::sem {
namespace {

constexpr std::int64_t rows_per_cause = 6; ///< or the weakest other causes are left out of a test
constexpr std::size_t few =
    30; ///< rows away from the commonest value that squares are of no use with

// The quantile of the standard normal distribution (M. J. Wichura, AS 241, 1988, to seven digits).
double normal_quantile(double p) {
  const double q = p - 0.5;
  if (std::fabs(q) <= 0.425) {
    const double r = 0.180625 - q * q;
    return q * (((59.109374720 * r + 159.29113202) * r + 50.434271938) * r + 3.3871327179) /
           (((67.187563600 * r + 78.757757664) * r + 17.895169469) * r + 1);
  }
  double r = std::sqrt(-std::log(q < 0 ? p : 1 - p));
  double size;
  if (r <= 5) {
    r -= 1.6;
    size = (((0.17023821103 * r + 1.3067284816) * r + 2.7568153900) * r + 1.4234372777) /
           ((0.12021132975 * r + 0.73700164250) * r + 1);
  } else {
    r -= 5;
    size = (((0.017337203997 * r + 0.42868294337) * r + 3.0812263860) * r + 6.6579051150) /
           ((0.012258202635 * r + 0.24197894225) * r + 1);
  }
  return q < 0 ? -size : size;
}

// Upper tail of Student's distribution (D. L. Wallace, 1959), within some per cent from 5 degrees
// on.
double student_tail(double t, double degrees) {
  const double z =
      (8 * degrees + 1) / (8 * degrees + 3) * std::sqrt(degrees * std::log1p(t * t / degrees));
  return 0.5 * std::erfc((t > 0 ? z : -z) / std::sqrt(2.0));
}

// Orthonormal columns, to which others are added.
class Basis {
public:
  Basis(arma::uword rows, arma::uword most) : columns_(rows, most) {}
  arma::uword size() const { return size_; }
  /// x less what the columns explain of it.
  arma::vec rest(arma::vec x) const {
    if (size_ == 0) return x;
    const arma::mat known = columns_.head_cols(size_);
    for (int pass = 0; pass < 2; ++pass) x -= known * (known.t() * x);
    return x;
  }
  /// Unless the columns explain it but for rounding.
  void add(const arma::vec& x) {
    const arma::vec left = rest(x);
    if (const double length = arma::norm(left); length > 1e-7 * arma::norm(x))
      columns_.col(size_++) = left / length;
  }

private:
  arma::mat columns_;
  arma::uword size_ = 0;
};

// Of x in a regression of y on it and on others.
struct Regression {
  double p = 1;
  double left = 1; ///< of the squares of y that the others leave
};

Regression regression(const Ranked& x, const Ranked& y, const std::vector<const Ranked*>& others) {
  const arma::uword n = x.terms.n_rows;
  Basis basis(n, std::min<arma::uword>(n, 2 * others.size() + 2));
  const auto add = [&](const Ranked& column, arma::uword terms) {
    for (arma::uword t = 0; t < terms && basis.size() + 1 < n; ++t) basis.add(column.terms.col(t));
  };
  for (const Ranked* other : others) add(*other, 2);
  const arma::uword known = basis.size();
  const arma::vec without = basis.rest(y.terms.col(0));
  add(x, x.has_squares() && y.has_squares() ? 2 : 1);
  const arma::uword added = basis.size() - known;
  const double degrees = static_cast<double>(n) - 1 - static_cast<double>(basis.size());
  const double before = arma::dot(without, without);
  if (added == 0 || degrees < 1 || !(before > 0)) return {};
  const arma::vec with = basis.rest(without);
  const double left = std::min(1.0, arma::dot(with, with) / before);
  if (added == 2) return {std::pow(left, 0.5 * degrees), left}; // F with 2 degrees of freedom
  return {2 * student_tail(std::sqrt(degrees * (1 - left) / std::max(left, 1e-300)), degrees),
          left};
}

// Of two columns of which one at most has a majority: x explains y, or, where y has it, the other
// way round, as F tests take what is explained for normal.
Regression toward_normal(const Ranked& x, const Ranked& y,
                         const std::vector<const Ranked*>& others) {
  return y.has_majority() ? regression(y, x, others) : regression(x, y, others);
}

bool varies(const Ranked& x) { return x.away.size() >= 2 && x.n_away > 0; }

// Of having another value than most rows.
Association by_counts(const Ranked& x, const Ranked& y) {
  const std::size_t n = x.away.size(), a = x.n_away, b = y.n_away;
  std::size_t both = 0;
  for (std::size_t i = 0; i < n; ++i) both += x.away[i] && y.away[i];
  const double p = std::exp(log_fisher(
      both, a, b, n, [](std::size_t k) { return std::lgamma(static_cast<double>(k) + 1); }));
  const auto odds = [n](std::size_t k) {
    return static_cast<double>(k) / static_cast<double>(n - k);
  };
  // The squared correlation of two 0/1 columns.
  const double difference = static_cast<double>(n) * static_cast<double>(both) /
                                (static_cast<double>(a) * static_cast<double>(b)) -
                            1;
  return {p, std::min(1.0, difference * difference * odds(a) * odds(b))};
}

} // namespace

Ranked ranked_values(std::span<const double> x) {
  const std::size_t n = x.size();
  std::vector<std::size_t> by_value(n);
  std::iota(by_value.begin(), by_value.end(), std::size_t{0});
  std::ranges::sort(by_value, {}, [&](std::size_t i) { return x[i]; });
  Ranked out{arma::mat(n, 2), std::vector<char>(n, 1), n};
  arma::vec score(n);
  for (std::size_t first = 0, last; first < n; first = last) {
    for (last = first + 1; last < n && x[by_value[last]] == x[by_value[first]];) ++last;
    // Equal values have the score of their mean rank.
    const double rank = 0.5 * static_cast<double>(first + last);
    for (std::size_t i = first; i < last; ++i)
      score[by_value[i]] = normal_quantile(rank / static_cast<double>(n));
    if (2 * (last - first) <= n) continue;
    out.n_away = n - (last - first);
    for (std::size_t i = first; i < last; ++i) out.away[by_value[i]] = 0;
  }
  out.terms.col(0) = score - arma::mean(score);
  const arma::vec square = arma::square(out.terms.col(0));
  out.terms.col(1) = square - arma::mean(square);
  return out;
}

bool Ranked::has_squares() const noexcept { return n_away >= few; }
bool Ranked::has_majority() const noexcept { return n_away < away.size(); }

double p_value(const Ranked& x, const Ranked& y, const std::vector<const Ranked*>& others,
               double t) {
  if (!varies(x) || !varies(y)) return 1;
  if (x.has_majority() && y.has_majority()) return by_counts(x, y).p;
  const double by_t = student_tail(t, static_cast<double>(x.away.size() - 1));
  return std::min(1.0, 2 * std::min(toward_normal(x, y, others).p, by_t));
}

Association association(const Ranked& x, const Ranked& y) {
  if (!varies(x) || !varies(y)) return {};
  if (x.has_majority() && y.has_majority()) return by_counts(x, y);
  const Regression forth = toward_normal(x, y, {});
  if (x.has_majority() || y.has_majority()) return {forth.p, 1 - forth.left};
  const Regression back = regression(y, x, {});
  return {std::min(1.0, 2 * std::min(forth.p, back.p)), 1 - std::min(forth.left, back.left)};
}

RankedColumns::RankedColumns(const Table& table, const std::vector<std::int64_t>& features,
                             std::int64_t rows, Run& run)
    : place_(static_cast<std::size_t>(table.features()), -1),
      values_(table.spaced_rows(rows, features, run)),
      missing_(table.spaced_missing(rows, features)), ranked_(features.size()) {
  run.parallel_for(std::ssize(features), [&](std::int64_t c) {
    place_[static_cast<std::size_t>(features[static_cast<std::size_t>(c)])] = c;
    if (missing_.empty())
      ranked_[static_cast<std::size_t>(c)] =
          ranked_values({values_.column(c), static_cast<std::size_t>(rows)});
  });
}

std::int64_t RankedColumns::place(std::int64_t feature) const {
  return place_[static_cast<std::size_t>(feature)];
}

std::vector<std::int64_t> RankedColumns::rows_of(std::int64_t a, std::int64_t b) const {
  std::vector<std::int64_t> rows;
  for (std::int64_t r = 0; !missing_.empty() && r < values_.rows(); ++r)
    if (!missing_(r, a) && !missing_(r, b)) rows.push_back(r);
  return rows;
}

Ranked RankedColumns::on(const std::vector<std::int64_t>& rows, std::int64_t column) const {
  std::vector<double> values;
  for (const std::int64_t r : rows) values.push_back(values_(r, column));
  return ranked_values(values);
}

double RankedColumns::p(const Edge& edge, const std::vector<Edge>& others) const {
  const std::int64_t from = place(edge.from), to = place(edge.to);
  const std::vector<std::int64_t> rows = rows_of(from, to);
  std::vector<Ranked> own; // where the rows are those of the edge
  own.reserve(others.size() + 1);
  const auto column = [&](std::int64_t c) -> const Ranked& {
    return missing_.empty() ? ranked_[static_cast<std::size_t>(c)] : own.emplace_back(on(rows, c));
  };
  const Ranked &x = column(from), &y = column(to);
  const std::size_t most = x.away.size() / rows_per_cause;
  std::vector<const Ranked*> given;
  for (const Edge& other : others)
    if (other.from != edge.from && given.size() < most) given.push_back(&column(place(other.from)));
  return p_value(x, y, given, edge.weight);
}

Association RankedColumns::between(std::int64_t a, std::int64_t b) const {
  a = place(a), b = place(b);
  if (missing_.empty())
    return association(ranked_[static_cast<std::size_t>(a)], ranked_[static_cast<std::size_t>(b)]);
  const std::vector<std::int64_t> rows = rows_of(a, b);
  return association(on(rows, a), on(rows, b));
}

} // namespace cape::sem

namespace cape {

double edge_p_value(std::span<const double> x, std::span<const double> y, const MatrixView& others,
                    double t) {
  if (x.size() < 2 || x.size() != y.size())
    throw Error(x.size() < 2 ? Status::invalid_argument : Status::dim_mismatch,
                message("x has ", x.size(), " values and y ", y.size(),
                        "; they must have as many, at least 2"));
  check_view(others, "others");
  if (others.cols > 0 && others.rows != std::ssize(x))
    throw Error(Status::dim_mismatch,
                message("others has ", others.rows, " rows; x has ", x.size(), " values"));
  const auto check = [](bool finite, const char* name) {
    if (!finite)
      throw Error(Status::invalid_argument, message(name, " has values that are not finite"));
  };
  const auto is_finite = [](double v) { return std::isfinite(v); };
  check(std::ranges::all_of(x, is_finite), "x");
  check(std::ranges::all_of(y, is_finite), "y");
  if (others.cols > 0) check_finite(others, "others");
  if (std::isnan(t)) throw Error(Status::invalid_argument, "t is NaN; it must be a number");
  std::vector<sem::Ranked> given;
  for (std::int64_t c = 0; c < others.cols; ++c) {
    std::vector<double> values;
    for (std::int64_t r = 0; r < others.rows; ++r) values.push_back(others(r, c));
    given.push_back(sem::ranked_values(values));
  }
  std::vector<const sem::Ranked*> pointers;
  for (const sem::Ranked& other : given) pointers.push_back(&other);
  return sem::p_value(sem::ranked_values(x), sem::ranked_values(y), pointers, t);
}

} // namespace cape
