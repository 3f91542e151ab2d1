// Missing values: at random they may cost edges, but bring few and turn hardly any.
#define BOOST_TEST_MODULE missing
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>
import cape;
#include "errors.hpp"

namespace {

using cape::Dag;
using cape::DagOptions;
using cape::Digraph;
using cape::Matrix;
using cape::Refine;
using cape::Rng;
using cape::Run;
using cape::Sem;

const double not_a_number = std::numeric_limits<double>::quiet_NaN();

DagOptions masked(Sem sem) {
  DagOptions options;
  options.sem = sem;
  options.missing = cape::Missing::mask;
  return options;
}

Dag learn(const Matrix& x, const DagOptions& options, std::int64_t threads = 2) {
  Run run(1, threads);
  return cape::learn_dag(x, options, run);
}

// Every value is missing with the same probability.
Matrix at_random(Matrix x, double fraction, std::uint64_t seed) {
  Rng rng(seed);
  for (std::int64_t e = 0; e < x.size(); ++e)
    if (rng.uniform() < fraction) x.data()[e] = not_a_number;
  return x;
}

// Half of the columns are known; of every other, values are missing by that of the known one beside
// it: the larger, the likelier, and a fraction of all.
Matrix given_observed(const Matrix& full, double fraction, std::uint64_t seed) {
  Rng rng(seed);
  Matrix x = full;
  for (std::int64_t j = 0; j + 1 < x.cols(); j += 2) {
    std::vector<double> other(full.column(j + 1), full.column(j + 1) + x.rows());
    std::ranges::sort(other);
    const double median = other[other.size() / 2];
    for (std::int64_t i = 0; i < x.rows(); ++i)
      if (rng.uniform() < fraction * (full(i, j + 1) > median ? 1.6 : 0.4)) x(i, j) = not_a_number;
  }
  return x;
}

// What is wrong with a graph beside what it lacks.
std::int64_t wrong(const Dag& dag, const Digraph& truth) {
  const cape::GraphMetrics found = cape::compare_graphs(dag.graph, truth);
  return found.extra + found.reversed;
}

Digraph chain(std::int64_t nodes) {
  std::vector<cape::Edge> edges;
  for (std::int64_t j = 0; j + 1 < nodes; ++j) edges.push_back({j, j + 1, 1});
  return Digraph(nodes, edges);
}

Matrix data_of(const Digraph& graph, std::int64_t rows, cape::Mechanism mechanism,
               std::uint64_t seed) {
  cape::DataOptions options;
  options.mechanism = mechanism;
  return cape::simulate_data(graph, rows, options, seed);
}

} // namespace

BOOST_AUTO_TEST_CASE(a_chain_stays_one) {
  const Digraph truth = chain(3);
  for (const std::uint64_t seed : {1, 2, 3}) {
    const Matrix full = data_of(truth, 1000, cape::Mechanism::linear, seed);
    for (const double fraction : {0.1, 0.2, 0.33, 0.5})
      for (const bool by_others : {false, true}) {
        const Dag dag = learn(by_others ? given_observed(full, fraction, seed + 10)
                                        : at_random(full, fraction, seed + 20),
                              masked(Sem::linear));
        BOOST_TEST_CONTEXT("seed " << seed << ", " << fraction << (by_others ? " by others" : "")) {
          BOOST_TEST(dag.refined);
          BOOST_TEST(cape::compare_graphs(dag.graph, truth).shd == 0);
          // Both effects are 1 (lambda takes some of them), and nothing goes from the first to the
          // last.
          BOOST_TEST(std::fabs(dag.weights(0, 1) - 1) < 0.15 + 0.2 * fraction);
          BOOST_TEST(std::fabs(dag.weights(1, 2) - 1) < 0.15 + 0.2 * fraction);
          BOOST_TEST(std::fabs(dag.weights(0, 2)) < 0.12 + 0.2 * fraction);
        }
      }
  }
}

// Against the fit of the complete table: half of its edges may be lost to half of the values. With
// up to a fifth missing hardly any may be won; at half, one for three nodes (means for gaps win one
// a node).
BOOST_AUTO_TEST_CASE(linear_graphs_gain_few_edges) {
  cape::GraphOptions two;
  two.edges_per_node = 2;
  for (const std::int64_t nodes : {5, 10, 30})
    for (const std::uint64_t seed : {1, 2}) {
      const Digraph truth = cape::simulate_dag(nodes, two, seed);
      const Matrix full = data_of(truth, 1000, cape::Mechanism::linear, seed);
      const Dag complete = learn(full, masked(Sem::linear));
      const cape::GraphMetrics best = cape::compare_graphs(complete.graph, truth);
      for (const double fraction : {0.1, 0.2, 0.33, 0.5})
        for (const bool by_others : {false, true}) {
          const Dag dag = learn(by_others ? given_observed(full, fraction, seed + 10)
                                          : at_random(full, fraction, seed + 20),
                                masked(Sem::linear));
          const cape::GraphMetrics found = cape::compare_graphs(dag.graph, truth);
          BOOST_TEST_MESSAGE(nodes << " nodes, seed " << seed << ", " << fraction
                                   << (by_others ? " by others" : "") << ": complete "
                                   << best.missing << " missing " << best.extra << " extra "
                                   << best.reversed << " reversed; now " << found.missing << " "
                                   << found.extra << " " << found.reversed);
          BOOST_TEST_CONTEXT(nodes << " nodes, seed " << seed << ", " << fraction
                                   << (by_others ? " by others" : "")) {
            const std::int64_t nodes_per_wrong = fraction < 0.3 ? 10 : fraction < 0.5 ? 5 : 3;
            BOOST_TEST(wrong(dag, truth) <= wrong(complete, truth) + nodes / nodes_per_wrong);
            BOOST_TEST(found.missing <=
                       best.missing + static_cast<std::int64_t>(
                                          fraction * static_cast<double>(truth.edges().size())));
          }
        }
    }
}

BOOST_AUTO_TEST_CASE(nonlinear_graphs_gain_few_edges) {
  cape::GraphOptions one;
  one.edges_per_node = 1;
  for (const std::uint64_t seed : {1, 2}) {
    const Digraph truth = cape::simulate_dag(6, one, seed);
    const Matrix full = data_of(truth, 1000, cape::Mechanism::mlp, seed);
    const Dag complete = learn(full, masked(Sem::mlp));
    for (const double fraction : {0.2, 0.33}) {
      const Dag dag = learn(at_random(full, fraction, seed + 20), masked(Sem::mlp));
      const cape::GraphMetrics found = cape::compare_graphs(dag.graph, truth);
      BOOST_TEST_MESSAGE("seed " << seed << ", " << fraction << ": complete "
                                 << cape::compare_graphs(complete.graph, truth).shd << "; now "
                                 << found.missing << " missing " << found.extra << " extra "
                                 << found.reversed << " reversed");
      BOOST_TEST_CONTEXT("seed " << seed << ", " << fraction)
      BOOST_TEST(wrong(dag, truth) <= wrong(complete, truth) + 1);
    }
  }
}

// The values are drawn, not set to a mean: variances stay, and the batches' levels go.
BOOST_AUTO_TEST_CASE(batches_scales_and_units_stay) {
  const Digraph truth = chain(4);
  Matrix x = data_of(truth, 1000, cape::Mechanism::linear, 4);
  const Dag complete = learn(x, masked(Sem::linear));
  x = at_random(x, 0.3, 5);
  cape::Design design;
  for (std::int64_t i = 0; i < x.rows(); ++i) {
    design.batch.push_back(i % 3);
    for (std::int64_t j = 0; j < x.cols(); ++j) x(i, j) += 100 * static_cast<double>(i % 3);
  }
  DagOptions options = masked(Sem::linear);
  Run run(1, 2);
  const Dag dag = cape::learn_dag(x, options, run, {{}, design});
  BOOST_TEST(cape::compare_graphs(dag.graph, truth).shd == 0);
  options.standardize = true;
  const Dag scaled =
      learn(at_random(data_of(truth, 1000, cape::Mechanism::linear, 4), 0.3, 5), options);
  BOOST_TEST(scaled.scale[3] / complete.scale[3] > 0);
  BOOST_TEST(cape::compare_graphs(scaled.graph, truth).missing == 0);
}

BOOST_AUTO_TEST_CASE(threads_and_the_order_of_columns_change_nothing) {
  const Matrix x = at_random(data_of(chain(5), 300, cape::Mechanism::mlp, 6), 0.25, 7);
  Matrix turned(x.rows(), x.cols());
  for (std::int64_t j = 0; j < x.cols(); ++j)
    std::copy_n(x.column(j), x.rows(), turned.column(x.cols() - 1 - j));
  for (const Sem sem : {Sem::linear, Sem::mlp}) {
    DagOptions options = masked(sem);
    options.epochs = 30;
    options.refine_epochs = 20;
    const Dag one = learn(x, options, 1), two = learn(x, options, 2),
              other = learn(turned, options, 2);
    BOOST_TEST((one.weights == two.weights));
    BOOST_TEST((one.statistic == two.statistic));
    for (std::int64_t j = 0; j < 5; ++j)
      for (std::int64_t i = 0; i < 5; ++i)
        BOOST_TEST(one.weights(i, j) == other.weights(4 - i, 4 - j));
  }
}

// Hardly anything is known of a column, or of a row.
BOOST_AUTO_TEST_CASE(sparse_columns_and_rows_are_of_no_account) {
  Matrix x = data_of(chain(4), 300, cape::Mechanism::linear, 8);
  const Dag complete = learn(x, masked(Sem::linear));
  Matrix wide(300, 6);
  Rng rng(9);
  for (std::int64_t j = 0; j < 6; ++j)
    for (std::int64_t i = 0; i < 300; ++i)
      wide(i, j) = j < 4 ? x(i, j) : j == 4 && i < 4 ? rng.normal() : not_a_number;
  const Dag dag = learn(wide, masked(Sem::linear));
  BOOST_TEST((dag.constant == std::vector<std::int64_t>{5}));
  for (const cape::Edge& e : dag.graph.edges()) BOOST_TEST((e.from < 4 && e.to < 4));
  BOOST_TEST(dag.graph.edges().size() == complete.graph.edges().size());

  Matrix longer(400, 4);
  for (std::int64_t j = 0; j < 4; ++j)
    for (std::int64_t i = 0; i < 400; ++i)
      longer(i, j) = i % 4 == 3 ? not_a_number : x(i - i / 4, j);
  BOOST_TEST((learn(longer, masked(Sem::linear)).weights == complete.weights));
}

// Its few values say nothing of its causes, whatever the one that seems to predict them best.
BOOST_AUTO_TEST_CASE(a_column_known_in_fewer_than_ten_rows_has_no_causes) {
  Rng rng(12);
  Matrix x(300, 40);
  for (std::int64_t j = 0; j < 40; ++j)
    for (std::int64_t i = 0; i < 300; ++i) x(i, j) = j == 0 && i >= 7 ? not_a_number : rng.normal();
  DagOptions options = masked(Sem::mlp);
  options.refine = Refine::never;
  const Dag dag = learn(x, options);
  for (std::int64_t j = 1; j < 40; ++j) BOOST_TEST(dag.weights(j, 0) == 0);
  BOOST_TEST(std::ranges::any_of(dag.warnings, [](const std::string& w) {
    return w.find("fewer than 10 rows") != std::string::npos;
  }));
}

// What a column does where another is known says nothing of values a million times as large.
BOOST_AUTO_TEST_CASE(draws_stay_near_what_was_seen) {
  const Matrix full = data_of(chain(4), 300, cape::Mechanism::linear, 13);
  for (const double size : {1e-12, 1.0, 1e140}) {
    Matrix x = full;
    Rng rng(14);
    for (std::int64_t i = 0; i < 300; ++i) {
      x(i, 1) = i < 150 ? 10 + 1e-9 * rng.normal() : 12.0;
      if (i >= 150) x(i, 2) = not_a_number;
      for (std::int64_t j = 0; j < 4; ++j) x(i, j) *= size;
    }
    DagOptions options = masked(Sem::linear);
    options.standardize = true;
    const Dag dag = learn(x, options);
    double low = x(0, 2), high = low;
    for (std::int64_t i = 0; i < 150; ++i) {
      low = std::min(low, x(i, 2));
      high = std::max(high, x(i, 2));
    }
    const double width = high - low;
    BOOST_TEST_CONTEXT("size " << size)
    BOOST_TEST((dag.center[2] > low - 2 * width && dag.center[2] < high + 2 * width));
  }
}

// Products of such values are beyond a double; the smaller ones of another column are not.
BOOST_AUTO_TEST_CASE(huge_values_are_finite_or_an_error) {
  Matrix x = data_of(chain(40), 30, cape::Mechanism::linear, 15);
  for (std::int64_t j = 0; j < 40; j += 2)
    for (std::int64_t i = 0; i < 30; ++i) x(i, j) *= 1e200;
  for (std::int64_t j = 0; j < 6; ++j) x(3 + j, j) = not_a_number;
  for (const bool standardize : {false, true}) {
    DagOptions options = masked(Sem::linear);
    options.standardize = standardize;
    try {
      for (const double w : learn(x, options).weights.values) BOOST_TEST(std::isfinite(w));
    } catch (const cape::Error& e) {
      BOOST_TEST(!standardize);
    }
  }
}

// Centring leaves rounding behind, which draws no other values.
BOOST_AUTO_TEST_CASE(the_level_of_a_batch_changes_nothing) {
  Matrix x = at_random(data_of(chain(4), 150, cape::Mechanism::linear, 17), 0.3, 18);
  cape::Design design;
  for (std::int64_t i = 0; i < 150; ++i) design.batch.push_back(i % 3);
  const DagOptions options = masked(Sem::linear);
  Run run(1, 2);
  const Dag before = cape::learn_dag(x, options, run, {{}, design});
  for (std::int64_t i = 1; i < 150; i += 3)
    for (std::int64_t j = 0; j < 4; ++j) x(i, j) += 100;
  const Dag after = cape::learn_dag(x, options, run, {{}, design});
  for (std::int64_t j = 0; j < 4; ++j)
    for (std::int64_t i = 0; i < 4; ++i)
      BOOST_TEST(std::fabs(before.weights(i, j) - after.weights(i, j)) < 1e-6);
}

// A predictor of two values makes predictions equal; what is drawn has the residuals of all of
// them.
BOOST_AUTO_TEST_CASE(equal_predictions_draw_without_bias) {
  Rng rng(19);
  Matrix x(2000, 2);
  double sum = 0;
  for (std::int64_t i = 0; i < 2000; ++i) {
    x(i, 0) = static_cast<double>(i % 2);
    x(i, 1) = x(i, 0) + rng.normal();
    sum += x(i, 1);
  }
  for (std::int64_t i = 0; i < 2000; ++i)
    if (rng.uniform() < 0.5) x(i, 1) = not_a_number;
  const Dag dag = learn(x, masked(Sem::linear));
  BOOST_TEST(std::fabs(dag.center[1] - sum / 2000) < 0.12); // five standard errors
}

// What is complete is centred as before, also where some of its values were set.
BOOST_AUTO_TEST_CASE(a_gap_moves_no_other_column) {
  Matrix x = data_of(chain(4), 400, cape::Mechanism::linear, 16);
  cape::Design design;
  for (std::int64_t i = 0; i < 400; ++i) {
    design.batch.push_back(i % 2);
    if (i % 4 == 0) {
      x(i, 1) = -10;
      design.perturbed.push_back({i, 1});
    }
  }
  const DagOptions options = masked(Sem::linear);
  Run run(1, 2);
  const Dag before = cape::learn_dag(x, options, run, {{}, design});
  x(5, 3) = not_a_number;
  const Dag after = cape::learn_dag(x, options, run, {{}, design});
  for (std::int64_t j = 0; j < 4; ++j)
    for (std::int64_t i = 0; i < 4; ++i)
      BOOST_TEST(std::fabs(before.weights(i, j) - after.weights(i, j)) < 0.05);
}

// Columns that are never known in the same row: nothing can be said of an edge between them.
BOOST_AUTO_TEST_CASE(an_edge_that_cannot_be_tested_is_not_kept_at_any_limit) {
  Rng rng(17);
  Matrix x(400, 3);
  for (std::int64_t i = 0; i < 400; ++i) {
    x(i, 0) = rng.normal();
    x(i, 1) = x(i, 0) + rng.normal();
    x(i, 2) = x(i, 0) + x(i, 1) + rng.normal();
    x(i, 1 + i % 2) = not_a_number;
  }
  DagOptions options = masked(Sem::linear);
  options.refine_t = 0;
  options.refine_fdr = 1;
  const Dag dag = learn(x, options);
  BOOST_TEST(dag.refined);
  BOOST_TEST(!dag.graph.edges().empty());
  for (const cape::Edge& e : dag.graph.edges()) BOOST_TEST((e.from == 0 || e.to == 0));
}

BOOST_AUTO_TEST_CASE(drawing_is_cancelled_and_done_again_to_the_same_bits) {
  const Matrix x = at_random(data_of(chain(4), 200, cape::Mechanism::mlp, 10), 0.25, 11);
  DagOptions options = masked(Sem::mlp);
  options.epochs = 10;
  options.refine_epochs = 10;
  cape::Checkpoint checkpoint;
  std::int64_t drawing = 0;
  const auto first_draws = [&](const cape::Progress& p) {
    drawing += p.stage == "dag.impute";
    return drawing < 5;
  };
  Run stopped(1, 1, first_draws, std::chrono::milliseconds(0));
  BOOST_TEST(test::fails_with(cape::Status::cancelled, "",
                              [&] { cape::learn_dag(x, options, stopped, {}, &checkpoint); }));
  Run run(1, 2);
  BOOST_TEST((cape::learn_dag(x, options, run, {}, &checkpoint).weights ==
              learn(x, options).weights));
}
