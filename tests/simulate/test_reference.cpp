// Our simulator against the data sets of the reference experiments , which
// come from another program: the same settings must give the same statistics.
#define BOOST_TEST_MODULE simulate_reference
#define BOOST_TEST_NO_MAIN
#include <boost/test/unit_test.hpp>

#include "data.hpp"
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>
import cape;

using cape::Digraph;
using cape::GraphModel;
using cape::Matrix;
using cape::Mechanism;

namespace {

struct Summary {
  double edges = 0;
  double root_sd = 0;       // mean over the nodes without causes
  double log_effect_sd = 0; // mean of the logarithm over the nodes with causes
};

template <class Graph, class Data>
Summary summarise(std::size_t nodes, const Graph& is_edge, const Data& data, std::size_t rows) {
  Summary s;
  double roots = 0, effects = 0;
  for (std::size_t n = 0; n < nodes; ++n) {
    double causes = 0, mean = 0, squares = 0;
    for (std::size_t m = 0; m < nodes; ++m) causes += is_edge(m, n);
    for (std::size_t i = 0; i < rows; ++i) mean += data(i, n) / double(rows);
    for (std::size_t i = 0; i < rows; ++i) squares += std::pow(data(i, n) - mean, 2);
    const double sd = std::sqrt(squares / double(rows - 1));
    s.edges += causes;
    (causes > 0 ? effects : roots) += 1;
    (causes > 0 ? s.log_effect_sd : s.root_sd) += causes > 0 ? std::log(sd) : sd;
  }
  s.root_sd /= roots;
  s.log_effect_sd /= effects;
  return s;
}

Summary reference(const std::string& name) {
  const auto base = test::data_directory() / "sem_gcastle" / name;
  const auto b = test::read_numbers(base.string() + "_B.csv");
  const auto x = test::read_numbers(base.string() + "_X.csv.gz");
  BOOST_REQUIRE(b.size() == x.at(0).size());
  return summarise(
      b.size(), [&](std::size_t m, std::size_t n) { return b[m][n] != 0; },
      [&](std::size_t i, std::size_t n) { return x[i][n]; }, x.size());
}

Summary simulated(std::int64_t nodes, GraphModel model, double per_node, Mechanism mechanism,
                  std::uint64_t seed) {
  const Digraph g = cape::simulate_dag(nodes, {.model = model, .edges_per_node = per_node}, seed);
  const Matrix x = cape::simulate_data(g, 1000, {.mechanism = mechanism}, seed), a = g.adjacency();
  const auto at = [](const Matrix& m, std::size_t i, std::size_t j) {
    return m(std::int64_t(i), std::int64_t(j));
  };
  return summarise(
      std::size_t(nodes), [&](std::size_t m, std::size_t n) { return at(a, m, n) != 0; },
      [&](std::size_t i, std::size_t n) { return at(x, i, n); }, 1000);
}

// The mean of a statistic over `n` reference sets lies within 5 standard errors of ours.
void compare(const std::string& set, int n, std::int64_t nodes, GraphModel model, double per_node,
             Mechanism mechanism) {
  const int trials = 200;
  double edges = 0, edges2 = 0, sd = 0, sd2 = 0, roots = 0;
  for (int t = 0; t < trials; ++t) {
    const Summary s = simulated(nodes, model, per_node, mechanism, std::uint64_t(t));
    edges += s.edges / trials;
    edges2 += s.edges * s.edges / trials;
    sd += s.log_effect_sd / trials;
    sd2 += s.log_effect_sd * s.log_effect_sd / trials;
    roots += s.root_sd / trials;
  }
  double ref_edges = 0, ref_sd = 0, ref_roots = 0;
  for (int i = 1; i <= n; ++i) {
    const Summary s = reference(set + "_s" + std::to_string(i));
    ref_edges += s.edges / n;
    ref_sd += s.log_effect_sd / n;
    ref_roots += s.root_sd / n;
  }
  BOOST_TEST_MESSAGE(set << ": edges " << edges << " (reference " << ref_edges << "), effect sd "
                         << std::exp(sd) << " (" << std::exp(ref_sd) << "), root sd " << roots
                         << " (" << ref_roots << ")");
  const double scale = 5 * std::sqrt(1.0 / n + 1.0 / trials);
  BOOST_TEST(std::fabs(edges - ref_edges) <=
             scale * std::sqrt(std::max(0.0, edges2 - edges * edges)) + 1e-9);
  BOOST_TEST(std::fabs(sd - ref_sd) < scale * std::sqrt(sd2 - sd * sd));
  BOOST_TEST(std::fabs(roots - ref_roots) < 0.03);
}

} // namespace

BOOST_AUTO_TEST_CASE(sets_of_ten_nodes_look_like_the_reference) {
  using enum GraphModel;
  compare("BA1-10-mlp", 5, 10, barabasi_albert, 1, Mechanism::mlp);
  compare("BA2-10-mlp", 5, 10, barabasi_albert, 2, Mechanism::mlp);
  compare("BA2-10-lin", 5, 10, barabasi_albert, 2, Mechanism::linear);
  compare("ER2-10-mlp", 5, 10, erdos_renyi, 2, Mechanism::mlp);
}

BOOST_AUTO_TEST_CASE(sets_of_thirty_nodes_look_like_the_reference) {
  compare("BA2-30-mlp", 3, 30, GraphModel::barabasi_albert, 2, Mechanism::mlp);
}

int main(int argc, char** argv) {
  if (test::data_missing("sem_gcastle")) return 77;
  return boost::unit_test::unit_test_main([] { return true; }, argc, argv);
}
