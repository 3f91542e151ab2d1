// Real data and a public simulator's, end to end.
#define BOOST_TEST_MODULE real
#define BOOST_TEST_NO_MAIN
#include "data.hpp"
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <string>
import cape;
#include "npy.hpp"

namespace {

using test::read_npy;

void fit(const std::string& name, const std::filesystem::path& table,
         const std::filesystem::path& graph, std::int64_t edges) {
  const cape::Matrix x = read_npy(table);
  const cape::Digraph truth = cape::Digraph::from_adjacency(read_npy(graph));
  BOOST_TEST(std::ssize(truth.edges()) == edges);
  for (const bool standardize : {false, true}) {
    cape::DagOptions o;
    o.refine = cape::Refine::never;
    o.standardize = standardize;
    cape::Run run;
    const cape::Dag dag = cape::learn_dag(x, o, run);
    BOOST_TEST(cape::is_acyclic(dag.graph));
    for (const double w : dag.weights.values) BOOST_TEST_REQUIRE(std::isfinite(w));
    const cape::GraphMetrics m = cape::compare_graphs(dag.graph, truth);
    std::cout << name << (standardize ? " standardized" : " raw") << ": " << m.estimated_edges
              << " edges, SHD " << m.shd << ", h " << dag.h << std::endl;
    // Raw, the columns differ in scale by orders of magnitude, and the L1 term is out of scale.
    if (standardize) BOOST_TEST(m.estimated_edges < x.cols() * (x.cols() - 1) / 4);
  }
}

} // namespace

BOOST_AUTO_TEST_CASE(sachs) {
  const auto directory = test::data_directory() / "sachs/sachs/continuous";
  fit("sachs", directory / "data1.npy", directory / "DAG1.npy", 17);
}

BOOST_AUTO_TEST_CASE(syntren) {
  const auto directory = test::data_directory() / "syntren";
  const std::int64_t edges[] = {24, 22, 26, 34, 23}; // 1 and 2 as published; sums of the others
  for (int k = 1; k <= 5; ++k)
    fit("syntren " + std::to_string(k), directory / ("data" + std::to_string(k) + ".npy"),
        directory / ("DAG" + std::to_string(k) + ".npy"), edges[k - 1]);
}

int main(int argc, char** argv) {
  if (test::data_missing("sachs") || test::data_missing("syntren")) return 77;
  return boost::unit_test::unit_test_main([] { return true; }, argc, argv);
}
