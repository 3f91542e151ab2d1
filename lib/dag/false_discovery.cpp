module;
#include "internal/arma.hpp"
#include "internal/message.hpp"
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <new>
#include <numeric>
#include <set>
#include <span>
#include <typeinfo>
#include <utility>
#include <variant>
#include <vector>
module cape.dag;
#include "dag/edge_lists.hpp"
#include "dag/false_discovery.hpp"

namespace cape {
namespace {

constexpr std::int64_t most_rows = 5000;   ///< that a test looks at
constexpr std::int64_t rows_per_cause = 6; ///< or the weakest other causes are left out of a test
constexpr double rare = 5; ///< rows expected by chance, below which counts are exact
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

// A column as the tests see it.
struct Ranked {
  arma::mat terms;        ///< normal scores and their squares, of mean 0
  std::vector<char> away; ///< whether a row does not have the value that most have
  std::size_t n_away = 0; ///< how many do not; all rows if no value has the majority
};

Ranked ranked(std::span<const double> x) {
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

// Upper tail of Student's distribution (D. L. Wallace, 1959), within some per cent from 5 degrees
// on.
double student_tail(double t, double degrees) {
  const double z =
      (8 * degrees + 1) / (8 * degrees + 3) * std::sqrt(degrees * std::log1p(t * t / degrees));
  return 0.5 * std::erfc((t > 0 ? z : -z) / std::sqrt(2.0));
}

// Both tails of the hypergeometric distribution: `both` of the a rows of one kind are of the b of
// another, of n in all.
double fisher(std::size_t both, std::size_t a, std::size_t b, std::size_t n) {
  const auto log_choose = [](double of, double k) {
    return std::lgamma(of + 1) - std::lgamma(k + 1) - std::lgamma(of - k + 1);
  };
  const auto at = [&](std::size_t k) {
    const auto [x, da, db, dn] = std::array{static_cast<double>(k), static_cast<double>(a),
                                            static_cast<double>(b), static_cast<double>(n)};
    return std::exp(log_choose(da, x) + log_choose(dn - da, db - x) - log_choose(dn, db));
  };
  double below = 0, above = 0;
  for (std::size_t k = a + b > n ? a + b - n : 0; k <= std::min(a, b); ++k) {
    if (k <= both) below += at(k);
    if (k >= both) above += at(k);
  }
  return std::min(1.0, 2 * std::min(below, above));
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

// p of x in a regression of y on it and on others.
double f_test(const Ranked& x, const Ranked& y, const std::vector<const Ranked*>& others) {
  const arma::uword n = x.terms.n_rows;
  Basis basis(n, std::min<arma::uword>(n, 2 * others.size() + 2));
  const auto add = [&](const Ranked& column, arma::uword terms) {
    for (arma::uword t = 0; t < terms && basis.size() + 1 < n; ++t) basis.add(column.terms.col(t));
  };
  for (const Ranked* other : others) add(*other, 2);
  const arma::uword known = basis.size();
  const arma::vec without = basis.rest(y.terms.col(0));
  add(x, std::min(x.n_away, y.n_away) >= few ? 2 : 1);
  const arma::uword added = basis.size() - known;
  const double degrees = static_cast<double>(n) - 1 - static_cast<double>(basis.size());
  const double before = arma::dot(without, without);
  if (added == 0 || degrees < 1 || !(before > 0)) return 1;
  const arma::vec with = basis.rest(without);
  const double left = std::min(1.0, arma::dot(with, with) / before);
  if (added == 2) return std::pow(left, 0.5 * degrees); // F with 2 degrees of freedom
  return 2 * student_tail(std::sqrt(degrees * (1 - left) / std::max(left, 1e-300)), degrees);
}

// Columns of as many rows.
double p_value(const Ranked& x, const Ranked& y, const std::vector<const Ranked*>& others,
               double t) {
  const std::size_t n = x.away.size(), a = x.n_away, b = y.n_away;
  if (n < 2 || a == 0 || b == 0) return 1;
  if (a < n && b < n &&
      static_cast<double>(a) * static_cast<double>(b) < rare * static_cast<double>(n)) {
    std::size_t both = 0;
    for (std::size_t i = 0; i < n; ++i) both += x.away[i] && y.away[i];
    return fisher(both, a, b, n);
  }
  const double by_t = student_tail(t, static_cast<double>(n - 1));
  return std::min(1.0, 2 * std::min(f_test(x, y, others), by_t));
}

// The edges into one effect, strongest first, and their p.
struct Effect {
  std::vector<Edge> edges;
  std::vector<double> p;
};

// Some columns of a table, as the tests see them.
class Columns {
public:
  Columns(const sem::Table& table, std::vector<std::int64_t> features, Run& run)
      : place_(static_cast<std::size_t>(table.features()), -1) {
    const std::int64_t rows = std::min(table.rows(), most_rows);
    values_ = table.spaced_rows(rows, features, run);
    missing_ = table.spaced_missing(rows, features);
    ranked_.resize(features.size());
    run.parallel_for(std::ssize(features), [&](std::int64_t c) {
      place_[static_cast<std::size_t>(features[static_cast<std::size_t>(c)])] = c;
      if (missing_.empty())
        ranked_[static_cast<std::size_t>(c)] =
            ranked({values_.column(c), static_cast<std::size_t>(rows)});
    });
  }

  // p of an edge given the strongest of the others into its effect, on the rows where neither end
  // is missing.
  double p(const Edge& edge, const std::vector<Edge>& others) const {
    const std::int64_t from = place_[static_cast<std::size_t>(edge.from)],
                       to = place_[static_cast<std::size_t>(edge.to)];
    std::vector<std::int64_t> rows;
    for (std::int64_t r = 0; !missing_.empty() && r < values_.rows(); ++r)
      if (!missing_(r, from) && !missing_(r, to)) rows.push_back(r);
    std::vector<Ranked> own; // where the rows are those of the edge
    own.reserve(others.size() + 1);
    const auto column = [&](std::int64_t c) -> const Ranked& {
      if (missing_.empty()) return ranked_[static_cast<std::size_t>(c)];
      std::vector<double> values;
      for (const std::int64_t r : rows) values.push_back(values_(r, c));
      own.push_back(ranked(values));
      return own.back();
    };
    const Ranked &x = column(from), &y = column(to);
    const std::size_t most = x.away.size() / rows_per_cause;
    std::vector<const Ranked*> given;
    for (const Edge& other : others)
      if (other.from != edge.from && given.size() < most)
        given.push_back(&column(place_[static_cast<std::size_t>(other.from)]));
    return p_value(x, y, given, edge.weight);
  }

private:
  std::vector<std::int64_t> place_;
  Matrix values_;
  sem::Mask missing_;
  std::vector<Ranked> ranked_; ///< by column, where nothing is missing
};

// The p of all edges into these effects.
void find_p(std::span<Effect* const> effects, const sem::Table& table, Run& run) {
  constexpr std::size_t block = 256; // effects whose columns are in memory
  for (std::size_t first = 0; first < effects.size(); first += block) {
    const auto some = effects.subspan(first, std::min(block, effects.size() - first));
    std::set<std::int64_t> features;
    for (const Effect* effect : some)
      for (const Edge& e : effect->edges) features.insert({e.from, e.to});
    const Columns columns(table, {features.begin(), features.end()}, run);
    run.parallel_for(std::ssize(some), [&](std::int64_t k) {
      Effect& effect = *some[static_cast<std::size_t>(k)];
      effect.p.clear();
      for (const Edge& e : effect.edges) {
        run.poll();
        effect.p.push_back(columns.p(e, effect.edges));
      }
    });
  }
}

// Pairs of features that may be joined, and are not required to be.
std::int64_t testable_pairs(std::int64_t m, const EdgeFactors& known, Run& run) {
  if (known.empty()) return m * (m - 1) / 2;
  BasicMatrix<std::int8_t> allowed(m, m);
  run.parallel_for(m, [&](std::int64_t j) {
    const std::vector<double> factor = known.causes_of(j);
    for (std::int64_t i = 0; i < m; ++i) {
      const double f = factor[static_cast<std::size_t>(i)];
      allowed(i, j) = f == 0 ? -1 : !std::isinf(f);
    }
  });
  std::int64_t pairs = 0;
  for (std::int64_t j = 0; j < m; ++j)
    for (std::int64_t i = 0; i < j; ++i)
      pairs +=
          std::max(allowed(i, j), allowed(j, i)) > 0 && std::min(allowed(i, j), allowed(j, i)) >= 0;
  return pairs;
}

} // namespace

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
  std::vector<Ranked> given;
  for (std::int64_t c = 0; c < others.cols; ++c) {
    std::vector<double> values;
    for (std::int64_t r = 0; r < others.rows; ++r) values.push_back(others(r, c));
    given.push_back(ranked(values));
  }
  std::vector<const Ranked*> pointers;
  for (const Ranked& other : given) pointers.push_back(&other);
  return p_value(ranked(x), ranked(y), pointers, t);
}

Discoveries limit_false_discoveries(const std::vector<Edge>& edges, double rate,
                                    const sem::Table& table, const EdgeFactors& known, Run& run) {
  const Pairs required = pairs_of(known.required());
  const auto is_required = [&](const Edge& e) { return required.contains({e.from, e.to}); };
  std::map<std::int64_t, Effect> effects;
  for (const Edge& e : edges) effects[e.to].edges.push_back(e);
  std::vector<Effect*> open;
  for (auto& [feature, effect] : effects) {
    std::ranges::sort(effect.edges, {}, [](const Edge& e) { return std::pair(-e.weight, e.from); });
    open.push_back(&effect);
  }
  Discoveries found;
  found.pairs = testable_pairs(table.features(), known, run);
  const double pairs = static_cast<double>(found.pairs);
  while (!open.empty()) {
    find_p(open, table, run);
    // The largest p that stays: p_(k) <= rate k / pairs.
    std::vector<double> sorted;
    for (const auto& [feature, effect] : effects)
      for (std::size_t e = 0; e < effect.edges.size(); ++e)
        if (!is_required(effect.edges[e])) sorted.push_back(effect.p[e]);
    std::ranges::sort(sorted);
    std::size_t kept = sorted.size();
    while (kept > 0 && !(sorted[kept - 1] * pairs <= rate * static_cast<double>(kept))) --kept;
    const double limit = kept > 0 ? sorted[kept - 1] : -1;
    found.false_share = kept > 0 ? std::min(1.0, limit * pairs / static_cast<double>(kept)) : 0;
    open.clear();
    for (auto& [feature, effect] : effects) {
      std::vector<Edge> stay;
      for (std::size_t e = 0; e < effect.edges.size(); ++e)
        if (is_required(effect.edges[e]) || effect.p[e] <= limit) stay.push_back(effect.edges[e]);
      if (stay.size() == effect.edges.size()) continue;
      effect.edges = std::move(stay);
      open.push_back(&effect);
    }
  }
  for (const auto& [feature, effect] : effects)
    found.kept.insert(found.kept.end(), effect.edges.begin(), effect.edges.end());
  std::ranges::sort(found.kept, {}, [](const Edge& e) { return std::pair(e.from, e.to); });
  return found;
}

} // namespace cape
