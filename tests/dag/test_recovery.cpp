// Recovery of simulated graphs by plain model G, without refinement: the bars of the method, on
// seeds that nothing was chosen on. N = 5000, raw data, tau = 0.2.
#define BOOST_TEST_MODULE recovery
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <string>
#include <vector>
import cape;

namespace {

using cape::DagOptions;
using cape::GraphModel;
using cape::Mechanism;
using cape::Sem;

struct Setting {
  std::string name;
  GraphModel model;
  double edges_per_node;
  std::int64_t nodes;
  Mechanism mechanism = Mechanism::mlp;
};
const Setting ba2_10{"BA2-10-mlp", GraphModel::barabasi_albert, 2, 10};

struct Recovery {
  double shd = 0, auprc = 0;      ///< means over the seeds
  double furthest_from_empty = 0; ///< largest |shd - number of true edges|
};

Recovery recover(const Setting& setting, const DagOptions& options, int seeds = 10) {
  Recovery mean;
  double squares = 0;
  std::string each;
  for (int seed = 201; seed < 201 + seeds; ++seed) {
    cape::GraphOptions graph;
    graph.model = setting.model;
    graph.edges_per_node = setting.edges_per_node;
    cape::DataOptions data;
    data.mechanism = setting.mechanism;
    const auto key = static_cast<std::uint64_t>(seed);
    const cape::Digraph truth = cape::simulate_dag(setting.nodes, graph, key);
    cape::Run run(key);
    const cape::Dag dag =
        cape::learn_dag(cape::simulate_data(truth, 5000, data, key), options, run);
    BOOST_TEST(cape::is_acyclic(dag.graph));
    BOOST_TEST((dag.converged || options.standardize));
    const auto shd = static_cast<double>(cape::compare_graphs(dag.graph, truth).shd);
    cape::Matrix scores = to_matrix(dag.weights);
    for (std::int64_t e = 0; e < scores.size(); ++e) scores.data()[e] = std::fabs(scores.data()[e]);
    mean.shd += shd / seeds;
    squares += shd * shd / seeds;
    mean.auprc += cape::compare_scores(scores, truth).auprc / seeds;
    mean.furthest_from_empty = std::max(mean.furthest_from_empty,
                                        std::fabs(shd - static_cast<double>(truth.edges().size())));
    each += " " + std::to_string(static_cast<int>(shd));
  }
  std::cout << setting.name << " sem " << int(options.sem)
            << (options.standardize ? " standardized" : "") << ": SHD " << mean.shd << " (sd "
            << std::sqrt(squares - mean.shd * mean.shd) << "), AUPRC " << mean.auprc << ";" << each
            << std::endl;
  return mean;
}

DagOptions plain(Sem sem = Sem::mlp) {
  DagOptions o;
  o.refine = cape::Refine::never;
  o.sem = sem;
  return o;
}

} // namespace

BOOST_AUTO_TEST_CASE(barabasi_albert_of_degree_2) {
  const Recovery r = recover(ba2_10, plain());
  BOOST_TEST(r.shd <= 7);
  BOOST_TEST(r.auprc >= 0.82);
}

BOOST_AUTO_TEST_CASE(barabasi_albert_of_degree_1) {
  BOOST_TEST(recover({"BA1-10-mlp", GraphModel::barabasi_albert, 1, 10}, plain()).shd <= 4);
}

BOOST_AUTO_TEST_CASE(erdos_renyi) {
  BOOST_TEST(recover({"ER2-10-mlp", GraphModel::erdos_renyi, 2, 10}, plain()).shd <= 9);
}

BOOST_AUTO_TEST_CASE(thirty_nodes) {
  BOOST_TEST(recover({"BA2-30-mlp", GraphModel::barabasi_albert, 2, 30}, plain()).shd <= 24);
}

// With a rho that starts at M / 10, the sum of so many cycles crushes edges early: AUPRC .72.
BOOST_AUTO_TEST_CASE(two_hundred_nodes) {
  BOOST_TEST(recover({"ER2-200-mlp", GraphModel::erdos_renyi, 2, 200}, plain(), 2).auprc >= 0.8);
}

BOOST_AUTO_TEST_CASE(linear_model_of_linear_data) {
  BOOST_TEST(recover({"BA2-10-lin", GraphModel::barabasi_albert, 2, 10, Mechanism::linear},
                     plain(Sem::linear))
                 .shd <= 2.5);
}

BOOST_AUTO_TEST_CASE(standardized) {
  DagOptions o = plain();
  o.standardize = true;
  BOOST_TEST(recover(ba2_10, o).shd <= 11);
}

BOOST_AUTO_TEST_CASE(literal_form_finds_nothing) {
  BOOST_TEST(recover(ba2_10, plain(Sem::literal), 3).furthest_from_empty <= 1);
}
