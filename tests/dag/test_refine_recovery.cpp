// How many edges the refined graphs get wrong, against graphs that are known: simulated afresh, and
// the reference data.
#define BOOST_TEST_MODULE refine_recovery
#include "data.hpp"
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <string>
#include <vector>
import cape;

namespace {

using cape::DagOptions;
using cape::Digraph;
using cape::Matrix;

// Structural Hamming distance: a missing, an extra or a reversed edge counts 1 each.
std::int64_t distance(const Matrix& x, const Digraph& truth, const DagOptions& options,
                      std::uint64_t seed) {
  cape::Run run(seed);
  const cape::Dag dag = cape::learn_dag(x, options, run);
  BOOST_TEST(cape::is_acyclic(dag.graph));
  BOOST_TEST(dag.refined);
  return cape::compare_graphs(dag.graph, truth).shd;
}

// Graphs of ten nodes and data that sem describes.
double mean_of_simulations(cape::GraphModel model, double edges_per_node, int n,
                           const DagOptions& options = {}) {
  cape::GraphOptions graph;
  graph.model = model;
  graph.edges_per_node = edges_per_node;
  cape::DataOptions data;
  if (options.sem == cape::Sem::linear) data.mechanism = cape::Mechanism::linear;
  double sum = 0;
  std::string all;
  for (std::uint64_t seed = 301; seed < 301 + static_cast<std::uint64_t>(n); ++seed) {
    const Digraph truth = cape::simulate_dag(10, graph, seed);
    const Matrix x = cape::simulate_data(truth, 5000, data, seed);
    const std::int64_t d = distance(x, truth, options, seed);
    all += " " + std::to_string(d);
    sum += static_cast<double>(d);
  }
  BOOST_TEST_MESSAGE("SHD:" << all << "; mean " << sum / n);
  return sum / n;
}

} // namespace

BOOST_AUTO_TEST_CASE(two_edges_per_node) {
  BOOST_TEST(mean_of_simulations(cape::GraphModel::barabasi_albert, 2, 10) <= 5);
}

BOOST_AUTO_TEST_CASE(two_edges_per_node_standardized) {
  DagOptions options;
  options.standardize = true;
  BOOST_TEST(mean_of_simulations(cape::GraphModel::barabasi_albert, 2, 5, options) <= 6.5);
}

BOOST_AUTO_TEST_CASE(trees) {
  BOOST_TEST(mean_of_simulations(cape::GraphModel::barabasi_albert, 1, 5) <= 1.5);
}

BOOST_AUTO_TEST_CASE(erdos_renyi) {
  BOOST_TEST(mean_of_simulations(cape::GraphModel::erdos_renyi, 2, 5) <= 3.5);
}

BOOST_AUTO_TEST_CASE(linear_relations) {
  DagOptions options;
  options.sem = cape::Sem::linear;
  for (const auto model : {cape::GraphModel::barabasi_albert, cape::GraphModel::erdos_renyi})
    BOOST_TEST(mean_of_simulations(model, 2, 10, options) <= 0.5);
}

// The prototype of the method made [0, 1, 0, 1, 1] errors on these; 2 is its mean and a margin for
// other initial values.
BOOST_AUTO_TEST_CASE(reference_data,
                     *boost::unit_test::precondition([](boost::unit_test::test_unit_id) {
                       return !test::data_missing("sem_gcastle");
                     })) {
  const auto matrix = [](const std::vector<std::vector<double>>& rows) {
    Matrix out(std::ssize(rows), std::ssize(rows.front()));
    for (std::int64_t i = 0; i < out.rows(); ++i)
      for (std::int64_t j = 0; j < out.cols(); ++j)
        out(i, j) = rows[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)];
    return out;
  };
  double sum = 0;
  std::string all;
  for (const std::string set : {"s1", "s2", "s3", "s4", "s5"}) {
    const auto base = test::data_directory() / "sem_gcastle" / ("BA2-10-mlp_" + set);
    const Matrix x = matrix(test::read_numbers(base.string() + "_X.csv.gz"));
    const Digraph truth =
        Digraph::from_adjacency(matrix(test::read_numbers(base.string() + "_B.csv")));
    const std::int64_t d = distance(x, truth, {}, 1);
    all += " " + std::to_string(d);
    sum += static_cast<double>(d);
  }
  BOOST_TEST_MESSAGE("SHD:" << all << "; mean " << sum / 5);
  BOOST_TEST(sum / 5 <= 2);
}
