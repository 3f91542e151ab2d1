// What each column has most to do with, and the graph that Step II embeds with it.
#define BOOST_TEST_MODULE partners
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <vector>
import cape;
#include "errors.hpp"
#include "row_source.hpp"

namespace {

using cape::Dag;
using cape::DagOptions;
using cape::Digraph;
using cape::Edge;
using cape::Matrix;
using cape::Refine;
using cape::Rng;
using cape::Run;
using cape::Sem;
using cape::SparseMatrix;
using cape::Status;
using test::fails_with;

constexpr double infinity = std::numeric_limits<double>::infinity();

std::span<const double> column(const Matrix& x, std::int64_t j) {
  return {x.column(j), static_cast<std::size_t>(x.rows())};
}

// Pairs (0, 1), (2, 3), ...: the second is the first, or its square, with noise; then noise alone.
Matrix pairs(std::int64_t rows, std::int64_t joined, std::int64_t alone, std::uint64_t seed) {
  Matrix x(rows, 2 * joined + alone);
  Rng rng(seed);
  for (std::int64_t j = 0; j < x.cols(); ++j)
    for (std::int64_t i = 0; i < rows; ++i) {
      const double cause = j % 2 == 1 && j < 2 * joined ? x(i, j - 1) : 0;
      x(i, j) = (j % 4 == 3 ? cause * cause : cause) + 0.7 * rng.normal();
    }
  return x;
}

// The quantile of the standard normal distribution, by halving.
double quantile(double p) {
  double low = -40, high = 40;
  for (int k = 0; k < 200; ++k) {
    const double middle = (low + high) / 2;
    (0.5 * std::erfc(-middle / std::sqrt(2.0)) < p ? low : high) = middle;
  }
  return low;
}

std::vector<double> normal_scores(std::span<const double> x) {
  std::vector<double> scores;
  for (const double v : x) {
    double rank = 0;
    for (const double w : x) rank += w < v ? 1 : w == v ? 0.5 : 0;
    scores.push_back(quantile(rank / static_cast<double>(x.size())));
  }
  const double mean =
      std::accumulate(scores.begin(), scores.end(), 0.0) / static_cast<double>(x.size());
  for (double& s : scores) s -= mean;
  return scores;
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

// Of the squares of y, what x and its squares explain: by the normal equations of two regressors of
// mean 0.
double share(const std::vector<double>& x, const std::vector<double>& y) {
  std::vector<double> square;
  for (const double v : x) square.push_back(v * v);
  const double mean =
      std::accumulate(square.begin(), square.end(), 0.0) / static_cast<double>(x.size());
  for (double& s : square) s -= mean;
  const double a = dot(x, x), b = dot(x, square), c = dot(square, square);
  const double u = dot(x, y), v = dot(square, y);
  return (u * (c * u - b * v) + v * (a * v - b * u)) / (a * c - b * b) / dot(y, y);
}

bool one_in_a_column(const SparseMatrix& partners) {
  for (std::int64_t j = 0; j < partners.cols; ++j)
    if (partners.offsets[static_cast<std::size_t>(j) + 1] -
            partners.offsets[static_cast<std::size_t>(j)] >
        1)
      return false;
  return true;
}

DagOptions quick() {
  DagOptions o;
  o.sem = Sem::linear;
  o.refine = Refine::never;
  o.epochs = 5;
  o.bags = 0;
  return o;
}

} // namespace

BOOST_AUTO_TEST_CASE(partners_are_those_of_the_formula) {
  const Matrix x = pairs(120, 5, 4, 1);
  const std::int64_t m = x.cols();
  Run run(1, 2);
  const SparseMatrix partners = cape::strongest_partners(x, run);
  BOOST_TEST_REQUIRE(one_in_a_column(partners));
  std::vector<std::vector<double>> scores;
  for (std::int64_t j = 0; j < m; ++j) scores.push_back(normal_scores(column(x, j)));
  std::vector<std::int64_t> best(static_cast<std::size_t>(m));
  std::vector<double> strength(best.size()), p(best.size());
  for (std::size_t j = 0; j < best.size(); ++j) {
    double most = -1;
    for (std::size_t i = 0; i < best.size(); ++i)
      if (const double s = std::max(share(scores[i], scores[j]), share(scores[j], scores[i]));
          i != j && s > most)
        most = s, best[j] = static_cast<std::int64_t>(i);
    strength[j] = std::sqrt(most);
    const auto a = column(x, best[j]), b = column(x, static_cast<std::int64_t>(j));
    p[j] = std::min(1.0, static_cast<double>(m - 1) *
                             std::min(cape::edge_p_value(a, b, Matrix(), -infinity),
                                      cape::edge_p_value(b, a, Matrix(), -infinity)));
  }
  // Ten have partners; the four of noise have p of .3 and more, so that the rule is the same
  // whether they count as 1 / .5 features without a partner or more.
  for (std::int64_t j = 0; j < m; ++j) {
    const auto at = static_cast<std::size_t>(j);
    BOOST_TEST((p[at] < 0.01) == (j < 10));
    for (std::int64_t i = 0; i < m; ++i)
      if (j < 10) {
        BOOST_TEST(partners(i, j) == (i == best[at] ? strength[at] : 0),
                   boost::test_tools::tolerance(1e-6));
        if (i == (j ^ 1)) BOOST_TEST(partners(i, j) > 0);
      }
  }
}

// Of ten tables of a kind one at most has a feature with a partner, where no feature has one: more
// than 10 of 60 have the probability .03.
BOOST_AUTO_TEST_CASE(noise_has_no_partners) {
  const std::vector<std::function<double(Rng&)>> kinds = {
      [](Rng& r) { return r.normal(); },
      [](Rng& r) { return r.normal() / std::sqrt(-std::log(r.uniform(0, 1))); },
      [](Rng& r) { return r.uniform(0, 1) < 0.3 ? 1 + r.uniform(0, 1) : 0.0; },
      [](Rng& r) { return r.uniform(0, 1) < 0.02 ? 1 + r.uniform(0, 1) : 0.0; },
      [](Rng& r) { return static_cast<double>(r.poisson(0.3)); }};
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    int with_partners = 0;
    for (std::uint64_t table = 0; table < 60; ++table) {
      Matrix x(300, 30);
      Rng rng(21, {kind, table});
      for (std::int64_t e = 0; e < x.size(); ++e) x.data()[e] = kinds[kind](rng);
      Run run(1, 2);
      with_partners += !cape::strongest_partners(x, run).values.empty();
    }
    BOOST_TEST_MESSAGE("kind " << kind << ": " << with_partners << " of 60");
    BOOST_TEST(with_partners <= 10, "kind " << kind << ": " << with_partners);
  }
}

// Beside others that have partners, a tenth of those with partners may be noise. On average: one
// table may have more.
BOOST_AUTO_TEST_CASE(noise_among_others_has_few_partners) {
  double share_of_noise = 0;
  constexpr int tables = 40;
  for (int table = 0; table < tables; ++table) {
    const Matrix x = pairs(200, 8, 16, 100 + static_cast<std::uint64_t>(table));
    Run run(1, 2);
    const SparseMatrix partners = cape::strongest_partners(x, run);
    int found = 0, noise = 0;
    for (std::int64_t j = 0; j < x.cols(); ++j)
      for (std::int64_t i = 0; i < x.cols(); ++i)
        if (partners(i, j) != 0) ++found, noise += j >= 16;
    BOOST_TEST(found - noise == 16);
    share_of_noise += static_cast<double>(noise) / found / tables;
  }
  BOOST_TEST_MESSAGE("share of noise: " << share_of_noise);
  BOOST_TEST(share_of_noise <= 0.1);
}

BOOST_AUTO_TEST_CASE(neither_threads_nor_numbers_nor_units_matter) {
  const Matrix x = pairs(90, 4, 12, 3);
  const std::int64_t m = x.cols();
  Run one(1, 1), three(5, 3);
  const SparseMatrix partners = cape::strongest_partners(x, one);
  BOOST_TEST((partners == cape::strongest_partners(x, three)));
  Matrix other(x.rows(), m); // backwards, in units of their own
  for (std::int64_t j = 0; j < m; ++j)
    for (std::int64_t i = 0; i < x.rows(); ++i)
      other(i, m - 1 - j) = std::exp(static_cast<double>(j) / 4) * x(i, j) - 3;
  const SparseMatrix found = cape::strongest_partners(other, one);
  for (std::int64_t j = 0; j < m; ++j)
    for (std::int64_t i = 0; i < m; ++i)
      BOOST_TEST(found(m - 1 - i, m - 1 - j) == partners(i, j),
                 boost::test_tools::tolerance(1e-12));
}

BOOST_AUTO_TEST_CASE(those_of_a_fit_are_those_of_its_table) {
  const Matrix x = pairs(150, 5, 6, 4);
  for (const std::int64_t candidates : {std::int64_t{-1}, x.cols() - 2}) {
    DagOptions options = quick();
    options.sem = Sem::mlp;
    options.candidates = candidates;
    Run run(1, 2);
    const Dag dag = cape::learn_dag(x, options, run);
    BOOST_TEST(dag.partners.values.size() >= 10u);
    BOOST_TEST((cape::learn_dag(test::rows_of(x), options, run).partners == dag.partners));
    if (candidates < 0) BOOST_TEST((dag.partners == cape::strongest_partners(x, run)));
    BOOST_TEST((cape::prune(dag, 0.4).partners == dag.partners));
  }
}

// A value that was drawn says nothing of the pair: with as few as 40 rows of 150 known, noise has
// no partners, and what is joined has.
BOOST_AUTO_TEST_CASE(drawn_values_do_not_count) {
  Matrix x = pairs(150, 3, 10, 5);
  Rng rng(6);
  for (std::int64_t j = 6; j < x.cols(); ++j)
    for (std::int64_t i = 0; i < x.rows(); ++i)
      if (rng.uniform() < 0.7) x(i, j) = std::nan("");
  for (std::int64_t i = 0; i < x.rows(); i += 3) x(i, 0) = x(i, 3) = std::nan("");
  DagOptions options = quick();
  options.missing = cape::Missing::mask;
  Run run(1, 2);
  const Dag dag = cape::learn_dag(x, options, run);
  for (std::int64_t j = 0; j < x.cols(); ++j)
    for (std::int64_t i = 0; i < x.cols(); ++i)
      BOOST_TEST((dag.partners(i, j) != 0) == (j < 6 && i == (j ^ 1)));
}

// Column 0 may have no causes: it comes before its partner. Columns 2 and 3 may not be joined.
BOOST_AUTO_TEST_CASE(knowledge_is_kept) {
  const Matrix x = pairs(200, 4, 0, 7);
  cape::Prior prior;
  prior.knowledge.roots = {0, 1};
  prior.knowledge.forbidden = {{2, 3, 0}, {3, 2, 0}, {4, 5, 0}};
  Run run(1, 2);
  const Dag dag = cape::learn_dag(x, quick(), run, prior);
  BOOST_TEST(dag.partners(0, 1) == 0); // neither may be an effect
  BOOST_TEST(dag.partners(1, 0) == 0);
  BOOST_TEST(dag.partners(2, 3) == 0);
  BOOST_TEST(dag.partners(3, 2) == 0);
  BOOST_TEST(dag.partners(4, 5) < 0);
  BOOST_TEST(dag.partners(5, 4) > 0);
  const Digraph covered = cape::covered_graph(cape::prune(dag, 1e6));
  for (const Edge& e : covered.edges()) BOOST_TEST((e.from == 5 ? e.to == 4 : e.from > 5));
}

BOOST_AUTO_TEST_SUITE(coverage)

BOOST_AUTO_TEST_CASE(what_has_a_partner_has_an_edge_and_the_graph_keeps_its_own) {
  // One factor: many columns, of which each is joined to others most.
  Matrix x(120, 40);
  Rng rng(8);
  for (std::int64_t i = 0; i < x.rows(); ++i) {
    const double factor = rng.normal();
    for (std::int64_t j = 0; j < x.cols(); ++j) x(i, j) = (j < 34 ? factor : 0) + rng.normal();
  }
  DagOptions options = quick();
  options.epochs = 30;
  Run run(1, 2);
  const Dag dag = cape::learn_dag(x, options, run);
  for (const double tau : {0.0, 0.1, 0.2, 0.25, 0.3, 100.0}) {
    const Dag cut = cape::prune(dag, tau);
    const Digraph covered = cape::covered_graph(cut);
    BOOST_TEST(cape::is_acyclic(covered));
    std::vector<char> linked(40, 0), placed(40, 0);
    double weakest = cut.graph.edges().empty() ? 1 : infinity;
    for (const Edge& e : cut.graph.edges()) {
      linked[static_cast<std::size_t>(e.from)] = linked[static_cast<std::size_t>(e.to)] = 1;
      weakest = std::min(weakest, std::fabs(e.weight));
    }
    std::size_t own = 0;
    for (const Edge& e : covered.edges()) {
      placed[static_cast<std::size_t>(e.from)] = placed[static_cast<std::size_t>(e.to)] = 1;
      if (std::ranges::find(cut.graph.edges(), e) != cut.graph.edges().end()) {
        ++own;
        continue;
      }
      BOOST_TEST(
          !(linked[static_cast<std::size_t>(e.from)] && linked[static_cast<std::size_t>(e.to)]));
      // The feature without edges is the effect.
      BOOST_TEST(!linked[static_cast<std::size_t>(e.to)]);
      BOOST_TEST((e.weight > 0 && e.weight <= weakest));
      const double strength = std::max(cut.partners(e.from, e.to), cut.partners(e.to, e.from));
      BOOST_TEST(e.weight == strength * weakest, boost::test_tools::tolerance(1e-12));
    }
    BOOST_TEST(own == cut.graph.edges().size());
    for (std::int64_t j = 0; j < 40; ++j) {
      bool has_partner = false;
      for (std::int64_t i = 0; i < 40; ++i) has_partner |= cut.partners(i, j) != 0;
      BOOST_TEST((!has_partner || placed[static_cast<std::size_t>(j)]));
      if (j < 34) BOOST_TEST(has_partner);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_graph_without_partners_is_itself) {
  Run run;
  const Dag dag = cape::prune(Digraph(4, {{0, 1, 0.5}, {1, 2, -0.4}}), 0, run);
  BOOST_TEST((cape::covered_graph(dag) == dag.graph));
  BOOST_TEST(cape::covered_graph(Dag()).size() == 0);
}

BOOST_AUTO_TEST_CASE(bad_input) {
  Run run;
  Matrix x = pairs(20, 1, 1, 9);
  x(3, 1) = infinity;
  BOOST_TEST(
      fails_with(Status::invalid_argument, "x has", [&] { cape::strongest_partners(x, run); }));
  BOOST_TEST(
      fails_with(Status::invalid_argument, [&] { cape::strongest_partners(Matrix(20, 3), run); }));
}

BOOST_AUTO_TEST_SUITE_END()
