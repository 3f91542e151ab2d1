// Held-out tests where columns are many: the graph of more than 100 of them, and a threshold.
#define BOOST_TEST_MODULE elimination
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
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
using cape::Status;
using cape::ThresholdSuggestion;
using test::fails_with;
using test::rows_of;

constexpr std::int64_t pairs = 6, rows = 500;

// Columns 0 to 5 cause columns 6 to 11, one each, with a correlation near 0.9; the rest is noise.
Matrix table_of_pairs() {
  Matrix x(rows, 2 * pairs);
  Rng rng(1, {});
  for (std::int64_t j = 0; j < pairs; ++j)
    for (std::int64_t i = 0; i < rows; ++i) {
      x(i, j) = rng.normal();
      x(i, pairs + j) = 2 * x(i, j) + rng.normal();
    }
  return x;
}

// The true edges with the weight `right`, and as many wrong ones, forwards, with `wrong`.
std::vector<Edge> right_and_wrong(double right, double wrong) {
  std::vector<Edge> edges;
  for (std::int64_t j = 0; j < pairs; ++j) {
    edges.push_back({j, pairs + j, right});
    edges.push_back({j, pairs + (j + 1) % pairs, -wrong});
  }
  return edges;
}

DagOptions with(Sem sem) {
  DagOptions options;
  options.sem = sem;
  options.refine_epochs = 30;
  return options;
}

ThresholdSuggestion suggestion(const std::vector<Edge>& edges, Sem sem = Sem::linear) {
  Run run(1);
  return suggest_threshold(table_of_pairs(), Digraph(2 * pairs, edges), with(sem), run);
}

// More columns than an order is searched for.
constexpr std::int64_t wide_columns = 110;
Digraph wide_truth() {
  cape::GraphOptions graph;
  graph.edges_per_node = 1;
  return simulate_dag(wide_columns, graph, 1);
}
Matrix wide_table() { return simulate_data(wide_truth(), 300, {}, 1); }
DagOptions wide_options(Refine refine = Refine::automatic) {
  DagOptions options;
  options.epochs = 40;
  options.refine_epochs = 20;
  options.refine = refine;
  return options;
}
std::int64_t errors(const Dag& dag) { return compare_graphs(dag.graph, wide_truth()).shd; }

Dag learn(const Matrix& x, const DagOptions& options, int threads = 1) {
  Run run(3, threads);
  return learn_dag(x, options, run);
}

// Columns in the opposite order.
Matrix backwards(const Matrix& x) {
  Matrix out(x.rows(), x.cols());
  for (std::int64_t j = 0; j < x.cols(); ++j)
    std::copy_n(x.column(j), x.rows(), out.column(x.cols() - 1 - j));
  return out;
}

} // namespace

BOOST_AUTO_TEST_CASE(the_threshold_lies_between_the_weights_that_tests_keep_and_the_others) {
  for (const Sem sem : {Sem::linear, Sem::mlp}) {
    const ThresholdSuggestion low = suggestion(right_and_wrong(0.1, 0.025), sem);
    BOOST_TEST(low.threshold == std::sqrt(0.1 * 0.025), boost::test_tools::tolerance(1e-12));
    BOOST_TEST(low.effects == 2 * pairs);
    BOOST_TEST(low.causes == pairs);
    BOOST_TEST(low.differing == 0);
    const ThresholdSuggestion high = suggestion(right_and_wrong(8, 2), sem);
    BOOST_TEST(high.threshold == 4, boost::test_tools::tolerance(1e-12));
    BOOST_TEST(high.differing == 0);
  }
}

BOOST_AUTO_TEST_CASE(edges_on_the_wrong_side_are_counted) {
  std::vector<Edge> edges = right_and_wrong(0.8, 0.2);
  edges[0].weight = 0.1; // a true edge below all that are wrong
  edges[3].weight = 0.9; // a wrong one above all that are true
  const ThresholdSuggestion s = suggestion(edges);
  BOOST_TEST(s.threshold == 0.4, boost::test_tools::tolerance(1e-12));
  BOOST_TEST(s.causes == pairs);
  BOOST_TEST(s.differing == 2);
}

BOOST_AUTO_TEST_CASE(where_nothing_is_kept_nothing_is_left) {
  Matrix noise(rows, 4);
  Rng rng(2, {});
  for (std::int64_t e = 0; e < noise.size(); ++e) noise.data()[e] = rng.normal();
  Run run(1);
  const Digraph graph(4, {{0, 1, 0.5}, {1, 2, 0.7}, {2, 3, 0.6}});
  const ThresholdSuggestion s = suggest_threshold(noise, graph, with(Sem::linear), run);
  BOOST_TEST(s.threshold == 0.7);
  BOOST_TEST(s.causes == 0);
  BOOST_TEST(s.differing == 0);
  BOOST_TEST(project_acyclic(graph, s.threshold).graph.edges().empty());
}

BOOST_AUTO_TEST_CASE(without_weights_there_is_no_suggestion) {
  BOOST_TEST(suggestion({}).effects == 0);
  BOOST_TEST(suggestion(right_and_wrong(0.01, 0.02)).effects == 0);
}

BOOST_AUTO_TEST_CASE(a_suggestion_is_as_good_as_a_fixed_threshold_that_is_good) {
  const Matrix x = wide_table();
  const Dag plain = learn(x, wide_options(Refine::never));
  BOOST_TEST(plain.threshold == 0.2);
  BOOST_TEST(plain.suggestion.effects == 0);
  Run one(3, 1), two(3, 2);
  const ThresholdSuggestion s =
      suggest_threshold(x, unpruned_graph(plain), wide_options(), one);
  BOOST_TEST(s.effects == 60);
  BOOST_TEST(errors(prune(plain, s.threshold)) < 1.1 * errors(plain));
  BOOST_TEST(suggest_threshold(x, unpruned_graph(plain), wide_options(), two).threshold ==
             s.threshold);
}

BOOST_AUTO_TEST_CASE(many_columns_are_refined_by_tests_alone) {
  const Matrix x = wide_table();
  DagOptions options = wide_options();
  options.refine_t = 2.5;
  const Dag dag = learn(x, options);
  BOOST_TEST(dag.refined);
  BOOST_TEST(is_acyclic(dag.graph));
  BOOST_TEST(errors(dag) < errors(learn(x, wide_options(Refine::never))));
  std::vector<std::int64_t> position(wide_columns);
  for (std::size_t p = 0; p < dag.order.size(); ++p)
    position[static_cast<std::size_t>(dag.order[p])] = static_cast<std::int64_t>(p);
  for (const Edge& e : dag.graph.edges()) {
    BOOST_TEST(dag.statistic(e.from, e.to) >= options.refine_t);
    BOOST_TEST(position[static_cast<std::size_t>(e.from)] <
               position[static_cast<std::size_t>(e.to)]);
  }
}

BOOST_AUTO_TEST_CASE(neither_threads_nor_the_order_of_columns_nor_a_source_change_the_tests) {
  const Matrix x = wide_table();
  DagOptions options = wide_options();
  options.epochs = 10;
  const Dag dag = learn(x, options);
  const Dag parallel = learn(x, options, 2);
  BOOST_TEST((parallel.graph.edges() == dag.graph.edges()));
  BOOST_TEST((parallel.statistic == dag.statistic));
  const Dag mirrored = learn(backwards(x), options);
  BOOST_TEST(mirrored.graph.edges().size() == dag.graph.edges().size());
  for (const Edge& e : dag.graph.edges())
    BOOST_TEST(mirrored.statistic(wide_columns - 1 - e.from, wide_columns - 1 - e.to) ==
               dag.statistic(e.from, e.to));
  Run run(3);
  BOOST_TEST((learn_dag(rows_of(x), options, run).statistic == dag.statistic));
}

BOOST_AUTO_TEST_CASE(what_is_known_holds_in_the_tests_too) {
  const Matrix x = wide_table();
  const std::vector<Edge> found = learn(x, wide_options()).graph.edges();
  cape::Knowledge knowledge;
  knowledge.forbidden = {found[0], found[1]};
  // Two columns that the data do not join.
  const auto joined = [&](std::int64_t j) {
    return std::ranges::any_of(found, [j](const Edge& e) {
      return (e.from == 0 && e.to == j) || (e.from == j && e.to == 0);
    });
  };
  std::int64_t other = 1;
  while (joined(other)) ++other;
  knowledge.required = {{other, 0}};
  Run run(3);
  const Dag dag = learn_dag(x, wide_options(), run, {knowledge, {}});
  BOOST_TEST(dag.refined);
  const auto has = [&](const Edge& wanted) {
    return std::ranges::any_of(dag.graph.edges(), [&](const Edge& e) {
      return e.from == wanted.from && e.to == wanted.to;
    });
  };
  for (const Edge& e : knowledge.forbidden) BOOST_TEST(!has(e));
  BOOST_TEST(has(knowledge.required[0]));
}

BOOST_AUTO_TEST_CASE(more_causes_are_required_than_an_effect_has_partners) {
  cape::Knowledge knowledge;
  for (std::int64_t i = 1; i <= 15; ++i) knowledge.required.push_back({i, 0});
  DagOptions options = wide_options();
  options.epochs = 5;
  Run run(3);
  const Dag dag = learn_dag(wide_table(), options, run, {knowledge, {}});
  BOOST_TEST(dag.refined);
  std::vector<std::int64_t> causes;
  for (const Edge& e : dag.graph.edges())
    if (e.to == 0) causes.push_back(e.from);
  for (std::int64_t i = 1; i <= 15; ++i) BOOST_TEST(std::ranges::count(causes, i) == 1);
}

BOOST_AUTO_TEST_CASE(wrong_arguments_are_named) {
  const Matrix x = table_of_pairs();
  Run run(1);
  BOOST_TEST(fails_with(Status::dim_mismatch, "x has 12 columns",
                        [&] { suggest_threshold(x, Digraph(3, {}), {}, run); }));
  Matrix broken = x;
  broken(2, 3) = std::numeric_limits<double>::quiet_NaN();
  BOOST_TEST(fails_with(Status::invalid_argument, "x has 1 ",
                        [&] { suggest_threshold(broken, Digraph(12, {}), {}, run); }));
  broken(2, 3) = -1e305;
  BOOST_TEST(fails_with(Status::invalid_argument, "beyond 1e+300 in column 3 (counted from 0)",
                        [&] { suggest_threshold(broken, Digraph(12, {}), {}, run); }));
  DagOptions options;
  options.refine_hidden = -1;
  BOOST_TEST(fails_with(Status::invalid_argument, "refine_hidden",
                        [&] { suggest_threshold(x, Digraph(12, {}), options, run); }));
}
