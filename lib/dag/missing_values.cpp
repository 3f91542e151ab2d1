// Missing values, drawn from their distribution given the rest of the row by chained equations (van
// Buuren, Flexible Imputation of Missing Data, section 4.5): every column in turn is regressed on
// others where it is known, and drawn anew where it is not. Draws, other than means, leave
// variances and relations as they are; and as what is a cause of a column and what an effect both
// predict it, an edge is neither weakened nor led around it.
module;
#include "dag/kernels/node_regression.hpp"
#include "internal/arma.hpp"
#include <algorithm>
#include <cmath>
#include <compare>
#include <cstdint>
#include <functional>
#include <limits>
#include <new>
#include <numeric>
#include <span>
#include <string_view>
#include <typeinfo>
#include <utility>
#include <variant>
#include <vector>
module cape.dag;
#include "dag/missing_values.hpp"
#include "dag/range.hpp"
#include "dag/regressions.hpp"
#include "dag/row_source.hpp"
#include "dag/screening.hpp"

namespace cape::sem {
namespace {

constexpr std::int64_t most_predictors = 30;
constexpr std::int64_t rows_per_predictor = 5; ///< at least, or some predictors are left out
constexpr std::int64_t most_columns = 5000;    ///< with networks: their time grows with them
constexpr int linear_sweeps = 10, network_sweeps = 4;
constexpr std::int64_t most_equations = 32;  ///< columns whose equations are fitted at a time
constexpr double equation_bytes = 0x1p28;    ///< and at most what these take
constexpr std::size_t rows_at_once = 1 << 12; ///< drawn between two polls
constexpr std::int64_t donors = 20;

// A column with gaps.
struct Incomplete {
  std::int64_t column;
  std::vector<std::int64_t> known, gaps;  ///< rows
  std::vector<std::int64_t> predictors;   ///< rising
  std::uint64_t key = 0;                  ///< of its content, but for rounding
};

Range range_of(const double* values, std::span<const std::int64_t> rows) {
  Range range;
  for (const std::int64_t r : rows) range.add(values[r]);
  return range;
}
bool varies(const double* values, std::span<const std::int64_t> rows) {
  return !range_of(values, rows).constant();
}

// The equation of one column, fitted where it is known.
class Equation {
public:
  Equation(const Matrix& x, const Incomplete& of, const DagOptions& options, Run& run)
      : of_(of), columns_(varying(x, of)), family_{std::ssize(columns_) - 1, {}},
        regressions_(rows_of(x, of.known, columns_), options, run) {
    family_.parents.resize(columns_.size() - 1);
    std::iota(family_.parents.begin(), family_.parents.end(), std::int64_t{0});
  }

  std::uint64_t key() const { return of_.key; }

  void fit() {
    fit_ = regressions_.fit(family_);
    const std::vector<double> residual = regressions_.residuals(family_, fit_);
    for (std::size_t r = 0; r < residual.size(); ++r)
      known_.push_back({fit_.held_out[r], residual[r], r});
    // A prediction that is no number stands with the mean, as its residual does.
    for (Known& k : known_)
      if (!std::isfinite(k.fitted)) k.fitted = 0;
    // Equal ones stay in the random order of the rows.
    std::ranges::sort(known_, {}, [](const Known& k) { return std::pair(k.fitted, k.place); });
  }

  // The prediction from the rest of the row, and the residual of one of the rows that are predicted
  // most alike. Where the others are unlike all that was fitted, a prediction may be anything: it
  // goes at most as far beyond the fitted values as these reach.
  void draw(Matrix& x, Rng rng, Run& run) const {
    const std::int64_t n = std::ssize(known_), width = std::min(donors, n);
    const double lowest = known_.front().fitted, highest = known_.back().fitted,
                 reach = highest - lowest;
    const std::span<const std::int64_t> gaps = of_.gaps;
    for (std::size_t begin = 0; begin < gaps.size(); begin += rows_at_once) {
      run.poll();
      const auto rows = gaps.subspan(begin, std::min(rows_at_once, gaps.size() - begin));
      const std::vector<double> predicted =
          regressions_.predict(family_, fit_, rows_of(x, rows, columns_));
      for (std::size_t g = 0; g < rows.size(); ++g) {
        const double f = std::isfinite(predicted[g])
                             ? std::clamp(predicted[g], lowest - reach, highest + reach)
                             : 0;
        const auto alike = std::ranges::equal_range(known_, f, {}, &Known::fitted);
        const std::int64_t at =
            alike.begin() - known_.begin() + rng.integer(std::ssize(alike) + 1);
        const std::int64_t first = std::clamp<std::int64_t>(at - width / 2, 0, n - width);
        const Known& donor = known_[static_cast<std::size_t>(first + rng.integer(width))];
        x(rows[g], of_.column) = regressions_.value(family_.node, f + donor.residual);
      }
    }
  }

private:
  struct Known {
    double fitted, residual;
    std::size_t place;
  };

  // The predictors that vary where the column is known, and the column.
  static std::vector<std::int64_t> varying(const Matrix& x, const Incomplete& of) {
    std::vector<std::int64_t> columns = of.predictors;
    std::erase_if(columns, [&](std::int64_t j) { return !varies(x.column(j), of.known); });
    columns.push_back(of.column);
    return columns;
  }

  const Incomplete& of_;
  std::vector<std::int64_t> columns_;
  Family family_;
  Regressions regressions_;
  Regressions::Fit fit_;
  std::vector<Known> known_;
};

// Those of the candidates that correlate most with the column where it is known, as few as its rows
// allow.
std::vector<std::int64_t> strongest(const Matrix& x, const Incomplete& of,
                                    std::vector<std::int64_t> candidates) {
  const std::int64_t count = std::ssize(of.known) / rows_per_predictor;
  if (std::ssize(candidates) <= count) return candidates;
  std::vector<std::pair<double, std::int64_t>> by_strength;
  const double effect_size = range_of(x.column(of.column), of.known).size();
  for (const std::int64_t i : candidates) {
    const double size = range_of(x.column(i), of.known).size(); // no square overflows
    double product = 0, squares = 0;
    for (const std::int64_t r : of.known) {
      if (size == 0 || effect_size == 0) break;
      const double cause = x(r, i) / size;
      product += cause * (x(r, of.column) / effect_size);
      squares += cause * cause;
    }
    by_strength.emplace_back(squares > 0 ? -std::fabs(product) / std::sqrt(squares) : 0, i);
  }
  std::ranges::sort(by_strength);
  candidates.clear();
  for (std::int64_t c = 0; c < count; ++c)
    candidates.push_back(by_strength[static_cast<std::size_t>(c)].second);
  std::ranges::sort(candidates);
  return candidates;
}

// What rounding does to a column, as when a level is taken from its batches, draws no other
// numbers.
std::uint64_t content(const double* values, const Incomplete& of) {
  const double size = range_of(values, of.known).size();
  std::vector<double> rounded{static_cast<double>(of.gaps.size())};
  for (const std::int64_t r : of.gaps) rounded.push_back(static_cast<double>(r));
  for (const std::int64_t r : of.known)
    rounded.push_back(size > 0 ? std::nearbyint(values[r] / size * 0x1p20) + 0.0 : 0.0);
  return hash(rounded);
}

std::vector<Incomplete> incomplete_columns(const Matrix& x, const Mask& missing,
                                           const Matrix& weight, Run& run) {
  const std::int64_t m = x.cols();
  Causes chosen;
  if (m - 1 > most_predictors) chosen = screen(x, EdgeFactors(), most_predictors, run);
  std::vector<Incomplete> incomplete;
  for (std::int64_t j = 0; j < m; ++j) {
    run.poll();
    Incomplete of{j, {}, {}, {}, 0};
    const bool exogenous =
        !weight.empty() && std::all_of(weight.column(j), weight.column(j) + x.rows(),
                                       [](double w) { return w == 0; });
    for (std::int64_t i = 0; i < x.rows(); ++i) {
      if (missing(i, j))
        of.gaps.push_back(i);
      else if (weight.empty() || exogenous || weight(i, j) > 0)
        of.known.push_back(i);
    }
    if (of.gaps.empty()) continue;
    std::vector<std::int64_t> others;
    if (chosen.empty()) {
      for (std::int64_t i = 0; i < m; ++i)
        if (i != j) others.push_back(i);
    } else {
      others.assign(chosen.column(j), chosen.column(j) + chosen.rows());
    }
    of.predictors = strongest(x, of, std::move(others));
    of.key = content(x.column(j), of);
    incomplete.push_back(std::move(of));
  }
  std::ranges::sort(incomplete, {},
                    [](const Incomplete& of) { return std::pair(of.key, of.column); });
  return incomplete;
}

} // namespace

void draw_missing(Matrix& x, const Mask& missing, const Matrix& weight, const DagOptions& options,
                  Run& run) {
  const std::vector<Incomplete> incomplete = incomplete_columns(x, missing, weight, run);
  const auto stream = [&](int sweep, std::uint64_t key) {
    return Rng(run.seed(), {hash("dag.impute"), static_cast<std::uint64_t>(sweep), key});
  };
  for (const Incomplete& of : incomplete) {
    Rng rng = stream(0, of.key);
    for (const std::int64_t i : of.gaps)
      x(i, of.column) =
          x(of.known[static_cast<std::size_t>(rng.integer(std::ssize(of.known)))], of.column);
  }
  const bool networks = options.sem != Sem::linear && x.cols() <= most_columns;
  const int sweeps = linear_sweeps + (networks ? network_sweeps : 0);
  // An equation has its columns as they are and standardized.
  const auto block = static_cast<std::size_t>(std::clamp<std::int64_t>(
      static_cast<std::int64_t>(equation_bytes / (12.0 * (most_predictors + 1)) /
                                static_cast<double>(x.rows())),
      1, most_equations));
  DagOptions linear = options;
  linear.sem = Sem::linear;
  for (int sweep = 1; sweep <= sweeps; ++sweep)
    for (std::size_t first = 0; first < incomplete.size(); first += block) {
      run.report({"dag.impute", sweep - 1, sweeps});
      std::vector<Equation> equations;
      for (std::size_t c = first; c < std::min(incomplete.size(), first + block); ++c)
        if (!incomplete[c].predictors.empty() &&
            varies(x.column(incomplete[c].column), incomplete[c].known))
          equations.emplace_back(x, incomplete[c], sweep <= linear_sweeps ? linear : options, run);
      run.parallel_for(std::ssize(equations),
                       [&](std::int64_t e) { equations[static_cast<std::size_t>(e)].fit(); });
      for (const Equation& e : equations) e.draw(x, stream(sweep, e.key()), run);
    }
}

} // namespace cape::sem
