// The feature that each one has most to do with, by all that can be seen in pairs: normal scores
// and, for what goes up at both ends, their squares.
module;
#include "internal/arma.hpp"
#include "internal/sizes.hpp"
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
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
#include "dag/partners.hpp"
#include "dag/rank_tests.hpp"
#include "dag/row_source.hpp"
#include "dag/stability_lasso.hpp"

namespace cape::sem {
namespace {

constexpr double rate = 0.1; ///< of the features with a partner, those that have none in truth
constexpr std::int64_t block_features = 64;   ///< whose associations are one task
constexpr std::int64_t block_columns = 256;   ///< whose values are in memory
constexpr std::int64_t product_columns = 512; ///< of one product
constexpr double most_share = 1 - 1e-6;       ///< that products in float can tell

// Of every feature its normal scores, and what a line in them leaves of their squares, as columns
// of mean 0 and length 1, 0 where a value is missing, and where nothing is left; and, of those
// whose most rows have one value, which rows have another.
struct Scores {
  arma::fmat straight, curved, away;
  std::vector<std::size_t> n_away;   ///< of those; of others 0
  std::vector<double> log_factorial; ///< of 0 to the number of rows
};

void put_unit(const arma::vec& x, const std::vector<std::int64_t>& rows, float* out) {
  const double length = arma::norm(x);
  if (length > 1e-7 * std::sqrt(static_cast<double>(x.n_elem)))
    for (std::size_t r = 0; r < rows.size(); ++r) out[rows[r]] = static_cast<float>(x[r] / length);
}

Scores scores_of(const Table& table, std::int64_t rows, Run& run) {
  const std::int64_t m = table.features();
  const auto height = static_cast<arma::uword>(rows), width = static_cast<arma::uword>(m);
  const arma::fmat none(height, width, arma::fill::zeros);
  Scores scores{none, none, none, std::vector<std::size_t>(static_cast<std::size_t>(m)), {}};
  for (std::int64_t k = 0; k <= rows; ++k)
    scores.log_factorial.push_back(std::lgamma(static_cast<double>(k) + 1));
  for (std::int64_t first = 0; first < m; first += block_columns) {
    std::vector<std::int64_t> features(
        static_cast<std::size_t>(std::min(m - first, block_columns)));
    std::iota(features.begin(), features.end(), first);
    const Matrix values = table.spaced_rows(rows, features, run);
    const Mask missing = table.spaced_missing(rows, features);
    run.parallel_for(std::ssize(features), [&](std::int64_t f) {
      std::vector<std::int64_t> at;
      std::vector<double> known;
      for (std::int64_t r = 0; r < rows; ++r)
        if (missing.empty() || !missing(r, f)) at.push_back(r), known.push_back(values(r, f));
      const Ranked ranked = ranked_values(known);
      const auto j = static_cast<arma::uword>(first + f);
      const arma::vec line = ranked.terms.col(0), square = ranked.terms.col(1);
      put_unit(line, at, scores.straight.colptr(j));
      const double squares = arma::dot(line, line);
      if (ranked.has_squares() && squares > 0)
        put_unit(square - arma::dot(line, square) / squares * line, at, scores.curved.colptr(j));
      if (!ranked.has_majority()) return;
      scores.n_away[j] = ranked.n_away;
      for (std::size_t r = 0; r < at.size(); ++r)
        scores.away(static_cast<arma::uword>(at[r]), j) = ranked.away[r];
    });
  }
  return scores;
}

// A pair with another feature.
struct Pick {
  std::int64_t partner = -1;
  double evidence = 0; ///< - log p, about
};

// Which others the knowledge lets a feature be joined to, one way or the other; empty: all.
std::vector<char> joinable(const EdgeFactors& known, std::int64_t feature) {
  if (known.empty()) return {};
  std::vector<char> out = known.effects_of(feature);
  const std::vector<double> factor = known.causes_of(feature);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = out[i] || !std::isinf(factor[i]);
  return out;
}

// The best pairs of features first .. last - 1 with these others. As association(), but that F
// tests count as if they all had the squares.
void pick(const Scores& scores, std::int64_t first, std::int64_t last, const arma::uvec& others,
          const EdgeFactors& known, std::vector<Pick>& picks, Run& run) {
  const auto from = static_cast<arma::uword>(first), to = static_cast<arma::uword>(last) - 1;
  const arma::fmat own = scores.straight.cols(from, to), bent = scores.curved.cols(from, to),
                   away = scores.away.cols(from, to);
  const double half_rows = 0.5 * static_cast<double>(own.n_rows);
  std::vector<std::vector<char>> allowed;
  for (std::int64_t j = first; j < last; ++j) allowed.push_back(joinable(known, j));
  for (arma::uword start = 0; start < others.n_elem; start += product_columns) {
    const arma::uvec some =
        others.subvec(start, std::min<arma::uword>(others.n_elem, start + product_columns) - 1);
    const arma::fmat straight = scores.straight.cols(some);
    const arma::fmat lines = straight.t() * own, to_own = scores.curved.cols(some).t() * own,
                     from_own = straight.t() * bent, both = scores.away.cols(some).t() * away;
    run.poll();
    for (std::int64_t j = first; j < last; ++j) {
      const auto c = static_cast<arma::uword>(j - first);
      const std::vector<char>& may = allowed[static_cast<std::size_t>(c)];
      const std::size_t n_own = scores.n_away[static_cast<std::size_t>(j)];
      Pick& best = picks[static_cast<std::size_t>(j)];
      for (arma::uword k = 0; k < some.n_elem; ++k) {
        const auto i = static_cast<std::int64_t>(some[k]);
        if (i == j || !(may.empty() || may[static_cast<std::size_t>(i)])) continue;
        const std::size_t n_other = scores.n_away[static_cast<std::size_t>(i)];
        double evidence;
        if (n_own > 0 && n_other > 0) {
          const auto count = static_cast<std::size_t>(both(k, c));
          evidence = -log_fisher(count, n_own, n_other, scores.straight.n_rows,
                                 [&](std::size_t f) { return scores.log_factorial[f]; });
        } else {
          const double line = lines(k, c),
                       bend = std::max(n_own > 0 ? 0.0 : std::fabs(double(to_own(k, c))),
                                       n_other > 0 ? 0.0 : std::fabs(double(from_own(k, c))));
          evidence = -half_rows * std::log1p(-std::min(most_share, line * line + bend * bend));
        }
        if (best.partner < 0 || evidence > best.evidence) best = {i, evidence};
      }
    }
  }
}

std::vector<Pick> picks_of(const Scores& scores, const Causes& causes, const EdgeFactors& known,
                           Run& run) {
  const auto m = static_cast<std::int64_t>(scores.straight.n_cols);
  std::vector<Pick> picks(static_cast<std::size_t>(m));
  const arma::uvec all = arma::regspace<arma::uvec>(0, static_cast<arma::uword>(m) - 1);
  const std::int64_t block = causes.empty() ? block_features : 1;
  run.parallel_for(ceil_div(m, block), [&](std::int64_t b) {
    arma::uvec some = all;
    if (!causes.empty()) {
      some.set_size(static_cast<arma::uword>(causes.rows()));
      std::copy_n(causes.column(b), causes.rows(), some.begin());
    }
    pick(scores, b * block, std::min(m, (b + 1) * block), some, known, picks, run);
  });
  return picks;
}

// The largest p that is found at the rate; -1: none. Where most are small, few are of features that
// have nothing, and the rate allows for that (J. D. Storey et al., 2004; Y. Benjamini and Y.
// Hochberg, 1995).
double largest_found(std::vector<double> p) {
  constexpr double certain = 0.5; // above it are features that have nothing
  const auto n = static_cast<double>(p.size());
  const auto above =
      static_cast<double>(std::ranges::count_if(p, [](double value) { return value > certain; }));
  const double without = std::min(n, (1 + above) / (1 - certain));
  std::ranges::sort(p);
  std::size_t kept = p.size();
  while (kept > 0 &&
         !(p[kept - 1] <= certain && p[kept - 1] * without <= rate * static_cast<double>(kept)))
    --kept;
  return kept > 0 ? p[kept - 1] : -1;
}

} // namespace

std::vector<Edge> partners_of(const Table& table, const Causes& causes, const EdgeFactors& known,
                              Run& run) {
  const std::int64_t m = table.features(), rows = ranked_rows(table.rows());
  const std::vector<Pick> picks = picks_of(scores_of(table, rows, run), causes, known, run);
  std::vector<Association> found(static_cast<std::size_t>(m));
  for (std::int64_t first = 0; first < m; first += block_columns) {
    const std::int64_t last = std::min(m, first + block_columns);
    std::set<std::int64_t> features;
    for (std::int64_t j = first; j < last; ++j)
      if (const std::int64_t i = picks[static_cast<std::size_t>(j)].partner; i >= 0)
        features.insert({i, j});
    if (features.empty()) continue;
    const RankedColumns columns(table, {features.begin(), features.end()}, rows, run);
    run.parallel_for(last - first, [&](std::int64_t k) {
      const auto j = static_cast<std::size_t>(first + k);
      if (picks[j].partner >= 0) found[j] = columns.between(picks[j].partner, first + k);
    });
  }
  // Of the best of m - 1 partners.
  std::vector<double> p;
  for (const Association& a : found) p.push_back(std::min(1.0, static_cast<double>(m - 1) * a.p));
  const double limit = largest_found(p);
  std::vector<Edge> partners;
  for (std::int64_t j = 0; j < m; ++j) {
    run.poll();
    const auto at = static_cast<std::size_t>(j);
    const std::int64_t i = picks[at].partner;
    const double strength = std::sqrt(found[at].share);
    if (i < 0 || p[at] > limit || strength == 0) continue;
    const bool before =
        known.empty() || !std::isinf(known.causes_of(j)[static_cast<std::size_t>(i)]);
    partners.push_back({i, j, before ? strength : -strength});
  }
  return partners;
}

double partners_memory(std::int64_t rows, std::int64_t features) {
  // Scores; the values of some columns, as numbers and as ranks.
  const double n = static_cast<double>(ranked_rows(rows)), m = static_cast<double>(features);
  return 3 * 4 * n * m + 2 * 4 * 8 * n * static_cast<double>(block_columns);
}

double partners_operations(std::int64_t rows, std::int64_t features, std::int64_t inputs) {
  return 4 * 2 * static_cast<double>(ranked_rows(rows)) * static_cast<double>(features) *
         static_cast<double>(inputs);
}

} // namespace cape::sem

namespace cape {

SparseMatrix strongest_partners(const MatrixView& x, Run& run) {
  check_view(x, "x");
  check_finite(x, "x");
  const RowSource source = source_of(x);
  const Matrix equal;
  const sem::Table table(source, equal, false, true, run);
  return scatter(sem::partners_of(table, {}, {}, run), table.columns(), x.cols, run);
}

Digraph covered_graph(const Dag& dag) {
  const Digraph& graph = dag.graph;
  std::vector<char> has_edge(static_cast<std::size_t>(graph.size()), 0);
  double weakest = graph.edges().empty() ? 1 : std::numeric_limits<double>::infinity();
  for (const Edge& e : graph.edges()) {
    has_edge[static_cast<std::size_t>(e.from)] = has_edge[static_cast<std::size_t>(e.to)] = 1;
    weakest = std::min(weakest, std::fabs(e.weight));
  }
  // What is joined has one number: that of all with edges is the last.
  std::vector<std::int64_t> part(has_edge.size() + 1);
  std::iota(part.begin(), part.end(), std::int64_t{0});
  for (std::size_t j = 0; j < has_edge.size(); ++j)
    if (has_edge[j]) part[j] = graph.size();
  const auto part_of = [&part](std::int64_t j) {
    while (part[static_cast<std::size_t>(j)] != j)
      j = part[static_cast<std::size_t>(j)] =
          part[static_cast<std::size_t>(part[static_cast<std::size_t>(j)])];
    return j;
  };
  std::vector<Edge> edges = graph.edges();
  for (const std::int64_t j : dag.partners.empty() ? std::vector<std::int64_t>() : dag.order) {
    const std::int64_t first = dag.partners.offsets[static_cast<std::size_t>(j)];
    if (has_edge[static_cast<std::size_t>(j)] ||
        first == dag.partners.offsets[static_cast<std::size_t>(j) + 1])
      continue;
    const std::int64_t i = dag.partners.indices[static_cast<std::size_t>(first)];
    const double strength = dag.partners.values[static_cast<std::size_t>(first)];
    if (part_of(i) == part_of(j)) continue; // j has an edge by now, and another would close a ring
    part[static_cast<std::size_t>(part_of(j))] = part_of(i);
    const double weight = std::fabs(strength) * weakest;
    edges.push_back(strength > 0 ? Edge{i, j, weight} : Edge{j, i, weight});
  }
  return Digraph(graph.size(), std::move(edges));
}

} // namespace cape
