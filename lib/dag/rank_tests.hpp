// Tests of whether two columns have to do with each other: by ranks, and by counts where values are
// rare. (Units that include this include internal/arma.hpp before.)
#pragma once
#include "dag/table.hpp"

namespace cape::sem {

/// A column as the tests see it.
struct Ranked {
  arma::mat terms;        ///< normal scores and their squares, of mean 0
  std::vector<char> away; ///< whether a row does not have the value that most have
  std::size_t n_away = 0; ///< how many do not; all rows if no value has the majority
  /// Whether enough rows are away for squares to be of use.
  bool has_squares() const noexcept;
  /// Whether most rows have one value.
  bool has_majority() const noexcept;
};
Ranked ranked_values(std::span<const double> x);

/// p of an edge from x to y, columns of as many rows, given others and the t of held-out errors,
/// see edge_p_value().
double p_value(const Ranked& x, const Ranked& y, const std::vector<const Ranked*>& others,
               double t);

/// What two columns have to do with each other, whatever others say.
struct Association {
  double p = 1;     ///< that they have nothing
  double share = 0; ///< of the squares of the one's scores that the other's explain; 0 to 1
};
/// Of two columns in each of which most rows have one value, Fisher's exact test of having another,
/// and the share that goes with that: F tests take the few for normal. Of one such column, the F
/// test of the other one's scores given its own and their squares; of none, twice the smaller of
/// these both ways, and the larger share.
Association association(const Ranked& x, const Ranked& y);

/// log p of Fisher's exact test: `both` of the a rows of one kind are of the b of another, of n in
/// all; log_factorial(k) up to n.
template <class LogFactorial>
double log_fisher(std::size_t both, std::size_t a, std::size_t b, std::size_t n,
                  const LogFactorial& log_factorial) {
  const auto log_choose = [&](std::size_t of, std::size_t k) {
    return log_factorial(of) - log_factorial(k) - log_factorial(of - k);
  };
  // The tail on the side of `both`, as a multiple of its first term.
  const double mean = static_cast<double>(a) * static_cast<double>(b) / static_cast<double>(n);
  const bool above = static_cast<double>(both) > mean;
  const std::size_t least = a + b > n ? a + b - n : 0, most = std::min(a, b);
  double term = 1, tail = 1;
  for (std::size_t k = both; k != (above ? most : least) && term > 1e-17 * tail;) {
    const std::size_t low = above ? k : k - 1; // from low to low + 1, or back
    const double up = static_cast<double>(a - low) * static_cast<double>(b - low),
                 down = static_cast<double>(low + 1) * static_cast<double>(n + low + 1 - a - b);
    term *= above ? up / down : down / up;
    tail += term;
    k = above ? k + 1 : k - 1;
  }
  const double log_tail =
      log_choose(a, both) + log_choose(n - a, b - both) - log_choose(n, b) + std::log(tail);
  return std::min(0.0, std::log(2.0) + log_tail);
}

/// Some columns of a table, on evenly spaced rows.
class RankedColumns {
public:
  RankedColumns(const Table& table, const std::vector<std::int64_t>& features, std::int64_t rows,
                Run& run);
  /// p of an edge (by features; its weight: t) given the strongest of the others into its effect,
  /// on the rows where neither end is missing.
  double p(const Edge& edge, const std::vector<Edge>& others) const;
  /// Of two features, on the rows where neither is missing.
  Association between(std::int64_t a, std::int64_t b) const;

private:
  std::int64_t place(std::int64_t feature) const;
  std::vector<std::int64_t> rows_of(std::int64_t a, std::int64_t b) const;
  Ranked on(const std::vector<std::int64_t>& rows, std::int64_t column) const;

  std::vector<std::int64_t> place_;
  Matrix values_;
  Mask missing_;
  std::vector<Ranked> ranked_; ///< by column, where nothing is missing
};

} // namespace cape::sem
