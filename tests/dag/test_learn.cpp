// Learning a DAG, end to end: what the known faults of comparable software say about it.
#define BOOST_TEST_MODULE learn
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <string>
#include <vector>
import cape;
#include "errors.hpp"
#include "tables.hpp"
#include "occasions.hpp"

namespace {

using cape::Dag;
using cape::DagOptions;
using cape::Digraph;
using cape::Edge;
using cape::Matrix;
using cape::Missing;
using cape::Refine;
using cape::Rng;
using cape::Run;
using cape::Sem;
using cape::Status;
using test::fails_with;
using test::noise;
using test::simulated;

const double not_a_number = std::numeric_limits<double>::quiet_NaN();
const double infinity = std::numeric_limits<double>::infinity();

bool all_finite(const cape::SparseMatrix& a) {
  return std::ranges::all_of(a.values, [](double v) { return std::isfinite(v); });
}

// What holds for every result.
void check_sound(const Dag& dag, std::int64_t m) {
  BOOST_TEST(dag.graph.size() == m);
  BOOST_TEST(dag.weights.rows == m);
  BOOST_TEST(dag.sign.rows == m);
  BOOST_TEST(cape::is_acyclic(dag.graph));
  BOOST_TEST((all_finite(dag.weights) && all_finite(dag.sign) && all_finite(dag.statistic)));
  BOOST_TEST((std::isfinite(dag.h) && std::isfinite(dag.lambda)));
  for (std::int64_t i = 0; i < m; ++i) BOOST_TEST(dag.weights(i, i) == 0);
  for (const cape::DagEpoch& e : dag.history)
    BOOST_TEST((std::isfinite(e.loss) && std::isfinite(e.h) && e.h >= 0));
  std::vector<std::int64_t> place(std::size_t(m), -1);
  BOOST_TEST_REQUIRE(std::ssize(dag.order) == m);
  for (std::int64_t k = 0; k < m; ++k) place[std::size_t(dag.order[std::size_t(k)])] = k;
  BOOST_TEST(std::ranges::min(place) == 0);
  double smallest = infinity;
  for (const Edge& e : dag.graph.edges()) {
    BOOST_TEST(place[std::size_t(e.from)] < place[std::size_t(e.to)]);
    smallest = std::min(smallest, std::fabs(e.weight));
  }
  if (!dag.graph.edges().empty()) BOOST_TEST(dag.effective_threshold == smallest);
}

bool warns(const Dag& dag, const std::string& part) {
  return std::ranges::any_of(
      dag.warnings, [&](const std::string& w) { return w.find(part) != std::string::npos; });
}

DagOptions plain(std::int64_t epochs = 100) {
  DagOptions o;
  o.refine = Refine::never;
  o.epochs = epochs;
  return o;
}

Dag learn(const Matrix& x, const DagOptions& options, std::uint64_t seed = 1, int threads = 1) {
  Run run(seed, threads);
  return cape::learn_dag(x, options, run);
}

// x1 -> x2 -> x3, each 0.8 times the one before plus noise.
Matrix chain(std::int64_t rows) {
  Matrix x = noise(rows, 3, 7);
  for (std::int64_t r = 0; r < rows; ++r) {
    x(r, 1) += 0.8 * x(r, 0);
    x(r, 2) += 0.8 * x(r, 1);
  }
  return x;
}

Matrix columns(const Matrix& x, const std::vector<std::int64_t>& which) {
  Matrix out(x.rows(), std::ssize(which));
  for (std::int64_t j = 0; j < out.cols(); ++j)
    std::copy_n(x.column(which[std::size_t(j)]), x.rows(), out.column(j));
  return out;
}

std::vector<std::pair<std::int64_t, std::int64_t>> pairs(const cape::Digraph& graph) {
  std::vector<std::pair<std::int64_t, std::int64_t>> out;
  for (const Edge& e : graph.edges()) out.emplace_back(e.from, e.to);
  return out;
}

} // namespace

// --------------------------------------------------------------------------------------- pruning

BOOST_AUTO_TEST_SUITE(pruning)

BOOST_AUTO_TEST_CASE(drops_the_weakest_edge_of_a_cycle_and_says_so) {
  Matrix weights(3, 3);
  weights(0, 1) = 0.9;
  weights(1, 2) = 0.8;
  weights(2, 0) = 0.25;
  Dag dag;
  dag.weights = to_sparse(weights);
  const Dag cut = cape::prune(dag, 0.2);
  const std::vector<Edge> expected{{0, 1, 0.9}, {1, 2, 0.8}};
  BOOST_TEST((cut.graph.edges() == expected));
  BOOST_TEST(cut.n_removed_for_acyclicity == 1);
  BOOST_TEST(cut.effective_threshold == 0.8);
  BOOST_TEST(cut.threshold == 0.2);
  BOOST_TEST((cut.order == std::vector<std::int64_t>{0, 1, 2}));
  BOOST_TEST((cut.weights == dag.weights));
}

BOOST_AUTO_TEST_CASE(is_acyclic_at_any_threshold) {
  Matrix weights = noise(25, 25, 3);
  for (std::int64_t i = 0; i < 25; ++i) weights(i, i) = 0;
  Dag dag;
  dag.weights = to_sparse(weights);
  Rng rng(4);
  std::size_t before = 25 * 25;
  for (const double tau : {0.0, 1e-300, 0.1, 0.2, 0.5, 1.0, 1.5, 2.0, 10.0}) {
    const Dag cut = cape::prune(dag, tau);
    BOOST_TEST(cape::is_acyclic(cut.graph));
    BOOST_TEST(cut.graph.edges().size() <= before);
    before = cut.graph.edges().size();
    for (const Edge& e : cut.graph.edges()) BOOST_TEST(std::fabs(e.weight) > tau);
  }
  for (int i = 0; i < 100; ++i)
    BOOST_TEST(cape::is_acyclic(cape::prune(dag, rng.uniform(0, 3)).graph));
}

BOOST_AUTO_TEST_CASE(of_a_fit_at_its_own_threshold_gives_the_fit) {
  const Dag dag = learn(simulated(500, 8, 5), plain(30));
  const Dag again = cape::prune(dag, dag.threshold);
  BOOST_TEST((again.graph == dag.graph));
  BOOST_TEST((again.order == dag.order));
  BOOST_TEST(again.effective_threshold == dag.effective_threshold);
}

BOOST_AUTO_TEST_CASE(leaves_behind_what_the_fit_said_of_its_own_graph) {
  DagOptions none = plain(5);
  none.threshold = 100;
  const Dag dag = learn(chain(200), none);
  BOOST_TEST(dag.graph.edges().empty());
  BOOST_TEST(!dag.warnings.empty());
  BOOST_TEST(cape::prune(dag, 0.1).warnings.empty());
}

BOOST_AUTO_TEST_CASE(of_a_graph_is_that_of_a_fit_with_its_weights) {
  Matrix weights = noise(12, 12, 8);
  for (std::int64_t i = 0; i < 12; ++i) weights(i, i) = 0;
  Dag dag;
  dag.weights = to_sparse(weights);
  const cape::Digraph graph = cape::Digraph::from_adjacency(weights);
  Run run;
  for (const double tau : {0.0, 0.5, 1.0, 5.0}) {
    const Dag cut = cape::prune(graph, tau, run), same = cape::prune(dag, tau);
    BOOST_TEST((cut.weights == dag.weights));
    BOOST_TEST((cut.graph == same.graph));
    BOOST_TEST((cut.graph == cape::project_acyclic(graph, tau).graph));
    BOOST_TEST(cut.n_removed_for_acyclicity == same.n_removed_for_acyclicity);
    BOOST_TEST(cut.effective_threshold == same.effective_threshold);
  }
  BOOST_TEST(cape::prune(cape::Digraph(3), 0.5, run).graph.edges().empty());
}

BOOST_AUTO_TEST_CASE(refuses_bad_arguments) {
  Dag dag;
  dag.weights = to_sparse(Matrix(3, 3));
  for (const double tau : {-0.1, not_a_number, infinity})
    BOOST_TEST(fails_with(Status::invalid_argument, "tau", [&] { cape::prune(dag, tau); }));
  dag.order = {0, 1};
  BOOST_TEST(fails_with(Status::invalid_argument, "order", [&] { cape::prune(dag, 0.2); }));
  dag.order = {0, 1, 1};
  BOOST_TEST(fails_with(Status::invalid_argument, "order", [&] { cape::prune(dag, 0.2); }));
  dag.order.clear();
  dag.sign = to_sparse(Matrix(2, 2));
  BOOST_TEST(fails_with(Status::dim_mismatch, "2 x 2", [&] { cape::prune(dag, 0.2); }));
  dag.weights = to_sparse(Matrix(3, 2));
  BOOST_TEST(fails_with(Status::dim_mismatch, "3 x 2", [&] { cape::prune(dag, 0.2); }));
  dag.sign = {};
  dag.weights = to_sparse(Matrix(3, 3));
  dag.weights.layout = cape::Layout::row_major;
  BOOST_TEST(fails_with(Status::invalid_argument, "by rows", [&] { cape::prune(dag, 0.2); }));
  dag.weights.layout = cape::Layout::col_major;
  dag.weights.offsets.pop_back();
  dag.weights.offsets.push_back(1); // of a value that is not there
  BOOST_TEST(fails_with(Status::invalid_argument, "weights", [&] { cape::prune(dag, 0.2); }));
}

BOOST_AUTO_TEST_SUITE_END()

// -------------------------------------------------------------------------------------- learning

BOOST_AUTO_TEST_SUITE(learning)

BOOST_AUTO_TEST_CASE(finds_the_cause_of_an_asymmetric_pair) {
  const std::vector<std::pair<std::int64_t, std::int64_t>> expected{{0, 1}}; // A[m, n] is m -> n
  Matrix curve = noise(5000, 2, 1), parabola = curve;
  for (std::int64_t r = 0; r < 5000; ++r) {
    const double cause = curve(r, 0), e = 0.3 * curve(r, 1);
    curve(r, 1) = 3 * std::tanh(2 * cause) + e;
    parabola(r, 1) = cause * cause + e;
  }
  const Dag by_threshold = learn(curve, plain());
  check_sound(by_threshold, 2);
  BOOST_TEST((pairs(by_threshold.graph) == expected));
  BOOST_TEST(by_threshold.weights(0, 1) > by_threshold.weights(1, 0));
  const Dag refined = learn(parabola, DagOptions());
  check_sound(refined, 2);
  BOOST_TEST(refined.refined);
  BOOST_TEST((pairs(refined.graph) == expected));
}

BOOST_AUTO_TEST_CASE(tells_the_sign_of_an_effect) {
  Matrix x = noise(2000, 3, 2);
  for (std::int64_t r = 0; r < x.rows(); ++r)
    x(r, 2) += 2 * std::tanh(x(r, 0)) - 2 * std::tanh(x(r, 1));
  for (const Sem sem : {Sem::mlp, Sem::linear, Sem::paper}) {
    DagOptions o = plain(30);
    o.sem = sem;
    const Dag dag = learn(x, o);
    check_sound(dag, 3);
    BOOST_TEST(dag.sign(0, 2) == 1);
    BOOST_TEST(dag.sign(1, 2) == -1);
    const Matrix a = dag.graph.adjacency();
    BOOST_TEST(a(0, 2) > 0);
    BOOST_TEST(a(1, 2) < 0);
  }
}

BOOST_AUTO_TEST_CASE(the_tolerance_grows_with_the_columns_beyond_ten) {
  // The penalty rests once h is at most half of the tolerance: with the automatic one as with it.
  DagOptions automatic = plain(), given = plain();
  automatic.epochs = given.epochs = 30;
  given.h_tolerance = 40 * 1e-5;
  const Matrix x = simulated(300, 40, 5);
  BOOST_TEST((learn(x, automatic).weights == learn(x, given).weights));
  given.h_tolerance = 1e-4;
  const Matrix few = simulated(300, 8, 5);
  BOOST_TEST((learn(few, automatic).weights == learn(few, given).weights));
}

BOOST_AUTO_TEST_CASE(converges_by_its_own_measure) {
  const Dag dag = learn(simulated(1000, 10, 3), plain());
  check_sound(dag, 10);
  BOOST_TEST(dag.converged);
  BOOST_TEST(dag.h <= 1e-4);
  BOOST_TEST(std::ssize(dag.history) == 100);
  BOOST_TEST(dag.history.front().rho == 1);
  BOOST_TEST(dag.history.front().alpha == 0);
  BOOST_TEST(dag.history.back().h == dag.h);
  BOOST_TEST(dag.history.back().loss < dag.history.front().loss);
  // h is that of the weights, up to float: for model G, A is the norm over the channels.
  BOOST_TEST(cape::acyclicity(to_matrix(dag.weights), cape::Constraint::expm) == dag.h,
             boost::test_tools::tolerance(1e-5));
  // The augmented Lagrangian: rho never falls; alpha never falls because h is not negative.
  for (std::size_t e = 1; e < dag.history.size(); ++e) {
    BOOST_TEST(dag.history[e].rho >= dag.history[e - 1].rho);
    BOOST_TEST(dag.history[e].alpha >= dag.history[e - 1].alpha);
  }
}

BOOST_AUTO_TEST_CASE(the_first_penalty_is_the_same_for_each_of_many_columns) {
  DagOptions o = plain();
  o.epochs = 1;
  BOOST_TEST(learn(simulated(300, 40, 5), o).history.front().rho == 10.0 / 40);
}

BOOST_AUTO_TEST_CASE(works_with_the_log_determinant) {
  for (const Sem sem : {Sem::mlp, Sem::linear}) {
    DagOptions o = plain();
    o.constraint = cape::Constraint::logdet;
    o.sem = sem;
    const Dag dag = learn(chain(3000), o);
    check_sound(dag, 3);
    BOOST_TEST(dag.converged);
    BOOST_TEST(std::fabs(cape::acyclicity(to_matrix(dag.weights), o.constraint) - dag.h) < 1e-12);
    BOOST_TEST(
        (pairs(dag.graph) == std::vector<std::pair<std::int64_t, std::int64_t>>{{0, 1}, {1, 2}}));
  }
}

// The last step of an epoch may leave the domain of the log-det form, after which the multipliers
// are updated. What the fit ends with is in the domain, however large the steps.
BOOST_AUTO_TEST_CASE(the_log_determinant_stays_in_its_domain_when_the_multipliers_change) {
  for (const Sem sem : {Sem::mlp, Sem::linear})
    for (const double rate : {0.5, 1.0, 2.0})
      for (const std::int64_t interval : {1, 2, 5})
        for (const std::uint64_t seed : {1, 2, 3}) {
          DagOptions o = plain(20);
          o.constraint = cape::Constraint::logdet;
          o.sem = sem;
          o.learning_rate = rate;
          o.rho_interval = interval;
          const Dag dag = learn(simulated(100, 5, seed), o);
          check_sound(dag, 5);
          BOOST_TEST(std::fabs(cape::acyclicity(to_matrix(dag.weights), o.constraint) - dag.h) <=
                     1e-9 * (1 + dag.h));
        }
}

BOOST_AUTO_TEST_CASE(literal_form_collapses_and_warns) {
  DagOptions o = plain();
  o.sem = Sem::literal;
  const Dag dag = learn(simulated(500, 5, 6), o);
  check_sound(dag, 5);
  BOOST_TEST(dag.graph.edges().empty());
  for (const double w : dag.weights.values) BOOST_TEST(w < 0.02);
  BOOST_TEST(warns(dag, "collapses"));
  BOOST_TEST(dag.lambda == 1);
}

BOOST_AUTO_TEST_CASE(does_not_depend_on_units_when_standardized) {
  const Matrix x = chain(2000);
  Matrix scaled = x, shifted = x;
  const double factor[] = {100, 1, 0.01};
  for (std::int64_t j = 0; j < 3; ++j)
    for (std::int64_t r = 0; r < x.rows(); ++r) scaled(r, j) *= factor[j];
  for (const Refine refine : {Refine::never, Refine::always}) {
    DagOptions o;
    o.refine = refine;
    o.epochs = 20;
    o.standardize = true;
    const Dag a = learn(x, o), b = learn(scaled, o);
    check_sound(a, 3);
    BOOST_TEST((a.weights == b.weights));
    BOOST_TEST((a.graph == b.graph));
    BOOST_TEST(b.scale[0] == 100 * a.scale[0], boost::test_tools::tolerance(1e-12));
    BOOST_TEST(b.center[2] == 0.01 * a.center[2], boost::test_tools::tolerance(1e-9));
  }
}

BOOST_AUTO_TEST_CASE(permuting_the_columns_permutes_the_result) {
  const Matrix x = simulated(300, 7, 8);
  const std::vector<std::int64_t> to{3, 0, 6, 2, 5, 1, 4};
  for (const Refine refine : {Refine::never, Refine::always}) {
    DagOptions o;
    o.refine = refine;
    o.epochs = 20;
    const Dag a = learn(x, o), b = learn(columns(x, to), o);
    bool same = true;
    for (std::int64_t i = 0; i < 7; ++i)
      for (std::int64_t j = 0; j < 7; ++j) {
        const std::int64_t p = to[std::size_t(i)], q = to[std::size_t(j)];
        same &= b.weights(i, j) == a.weights(p, q) && b.sign(i, j) == a.sign(p, q) &&
                (!a.refined || b.statistic(i, j) == a.statistic(p, q));
      }
    BOOST_TEST(same);
    BOOST_TEST((b.graph.renumbered(to) == a.graph));
    std::vector<std::int64_t> order;
    for (const std::int64_t node : b.order) order.push_back(to[std::size_t(node)]);
    BOOST_TEST((order == a.order));
    BOOST_TEST(a.history.back().loss == b.history.back().loss);
  }
}

BOOST_AUTO_TEST_CASE(has_the_same_bits_for_any_number_of_threads) {
  for (const auto& [rows, m] : {std::pair{300, 6}, {60, 150}}) {
    DagOptions o;
    o.epochs = 4;
    const Matrix x = simulated(rows, m, 9);
    const Dag one = learn(x, o, 5, 1), four = learn(x, o, 5, 4), other = learn(x, o, 6, 1);
    BOOST_TEST((one.weights == four.weights));
    BOOST_TEST((one.statistic == four.statistic));
    BOOST_TEST((one.graph == four.graph));
    BOOST_TEST((one.weights != other.weights));
  }
}

BOOST_AUTO_TEST_CASE(isolates_constant_columns_and_names_collinear_ones) {
  Matrix x = noise(40, 5, 10);
  for (std::int64_t r = 0; r < 40; ++r) {
    x(r, 2) = 0;
    x(r, 4) = 2 * x(r, 3);
  }
  for (const bool standardize : {false, true}) {
    DagOptions o;
    o.standardize = standardize;
    const Dag dag = learn(x, o);
    check_sound(dag, 5);
    BOOST_TEST((dag.constant == std::vector<std::int64_t>{2}));
    BOOST_TEST((dag.collinear == std::vector<Edge>{{3, 4, 1}}));
    BOOST_TEST(warns(dag, "without variance are isolated in the result: 2 (counted from 0)"));
    BOOST_TEST(warns(dag, "3 and 4"));
    for (const Edge& e : dag.graph.edges()) BOOST_TEST((e.from != 2 && e.to != 2));
    BOOST_TEST(dag.center[2] == 0);
    BOOST_TEST(dag.scale[2] == 1);
  }
  for (std::int64_t r = 0; r < 40; ++r) x(r, 2) = 0.1, x(r, 4) = -x(r, 3); // a mean that rounds
  const Dag dag = learn(x, plain(5));
  BOOST_TEST((dag.constant == std::vector<std::int64_t>{2}));
  BOOST_TEST((dag.collinear == std::vector<Edge>{{3, 4, -1}}));
}

BOOST_AUTO_TEST_CASE(of_independent_columns_is_nearly_empty) {
  for (const Refine refine : {Refine::never, Refine::always}) {
    DagOptions o;
    o.refine = refine;
    const Dag dag = learn(noise(500, 6, 11), o);
    check_sound(dag, 6);
    BOOST_TEST(dag.graph.edges().size() <= 2);
    if (dag.graph.edges().empty()) BOOST_TEST((warns(dag, "no edges") && warns(dag, "lambda")));
  }
}

BOOST_AUTO_TEST_CASE(warns_of_empty_and_of_dense_graphs) {
  const Matrix x = simulated(200, 6, 12);
  DagOptions o = plain(5);
  o.threshold = 100;
  const Dag empty = learn(x, o);
  BOOST_TEST(empty.graph.edges().empty());
  BOOST_TEST(warns(empty, "threshold (100)"));
  BOOST_TEST(empty.effective_threshold == 100);
  o.threshold = 0;
  o.lambda = 0;
  const Dag dense = learn(x, o);
  check_sound(dense, 6);
  BOOST_TEST(dense.graph.edges().size() == 15);
  BOOST_TEST(warns(dense, "More than half"));
}

BOOST_AUTO_TEST_CASE(takes_a_wide_table_of_few_rows) {
  Matrix x(30, 40);
  Rng rng(13);
  for (std::int64_t e = 0; e < x.size(); ++e) x.data()[e] = double(rng.poisson(3));
  const Dag dag = learn(x, plain(20));
  check_sound(dag, 40);
  BOOST_TEST(dag.graph.edges().size() < 40 * 39 / 4);
  // Fewer rows than a batch: all of them are one batch, and there are still many steps.
  BOOST_TEST(dag.history.back().loss < 0.9 * dag.history.front().loss);
}

// While nothing moves, the KL terms of an epoch of whole passes average to that of the table,
// 1/2 sum_j mean x_j^2: every row counts once a pass, though batches of 128 do not divide 192 rows.
BOOST_AUTO_TEST_CASE(uses_every_row_once_a_pass) {
  const Matrix x = noise(192, 3, 15); // an epoch is 80 passes, or 120 batches
  double expected = 0;
  for (std::int64_t j = 0; j < 3; ++j) {
    const double mean = std::accumulate(x.column(j), x.column(j) + 192, 0.0) / 192;
    for (std::int64_t i = 0; i < 192; ++i) expected += (x(i, j) - mean) * (x(i, j) - mean) / 384;
  }
  DagOptions o = plain(1);
  o.sem = Sem::linear;
  o.learning_rate = 1e-300;
  BOOST_TEST(learn(x, o).history[0].kl == expected, boost::test_tools::tolerance(1e-12));
}

BOOST_AUTO_TEST_CASE(keeps_a_weight_on_every_refined_edge) {
  const Dag dag = learn(simulated(400, 6, 14), DagOptions());
  check_sound(dag, 6);
  BOOST_TEST(dag.refined);
  for (const Edge& e : dag.graph.edges()) {
    BOOST_TEST(std::fabs(e.weight) >= 1e-6);
    BOOST_TEST(dag.statistic(e.from, e.to) >= 3.04 - 200 / 400.0);
  }
  const Dag cut = cape::prune(dag, 0.3);
  BOOST_TEST(!cut.refined);
  BOOST_TEST(cut.statistic.empty());
}

BOOST_AUTO_TEST_CASE(takes_missing_values) {
  const Matrix full = chain(3000);
  Matrix x = full;
  Rng rng(15);
  for (std::int64_t e = 0; e < x.size(); ++e)
    if (rng.uniform() < 0.1) x.data()[e] = not_a_number;
  DagOptions o;
  o.missing = Missing::mask;
  o.sem = Sem::linear;
  o.refine = Refine::always;
  const Dag dag = learn(x, o);
  check_sound(dag, 3);
  BOOST_TEST(dag.refined);
  BOOST_TEST(
      (pairs(dag.graph) == std::vector<std::pair<std::int64_t, std::int64_t>>{{0, 1}, {1, 2}}));
  double sum = 0;
  for (std::int64_t r = 0; r < x.rows(); ++r) sum += full(r, 1);
  // The standard error of the mean is 0.03.
  BOOST_TEST(std::fabs(dag.center[1] - sum / 3000) < 0.03);

  // Without missing values the policy changes nothing.
  DagOptions fail = plain(5), mask = fail;
  mask.missing = Missing::mask;
  BOOST_TEST((learn(full, fail).weights == learn(full, mask).weights));

  // A column that was never observed is one without variance.
  for (std::int64_t r = 0; r < x.rows(); ++r) x(r, 0) = not_a_number;
  o.refine = Refine::never;
  const Dag without = learn(x, o);
  check_sound(without, 3);
  BOOST_TEST((without.constant == std::vector<std::int64_t>{0}));
}

BOOST_AUTO_TEST_CASE(takes_tables_of_any_layout) {
  const Matrix x = simulated(100, 4, 16);
  std::vector<double> padded(std::size_t(x.rows() * 7), not_a_number);
  for (std::int64_t r = 0; r < x.rows(); ++r)
    for (std::int64_t j = 0; j < 4; ++j) padded[std::size_t(r * 7 + j)] = x(r, j);
  Run run;
  const Dag dag =
      cape::learn_dag({padded.data(), x.rows(), 4, 7, cape::Layout::row_major}, plain(3), run);
  BOOST_TEST((dag.weights == learn(x, plain(3)).weights));
}

// Powers of two change no bit of a standardized fit; what is collinear does not depend on the
// scale.
BOOST_AUTO_TEST_CASE(of_large_values_is_finite_or_an_error) {
  Matrix x = simulated(100, 4, 17);
  for (std::int64_t r = 0; r < 100; ++r) x(r, 3) = -2 * x(r, 1);
  DagOptions o = plain(5);
  o.standardize = true;
  const Dag unscaled = learn(x, o);
  BOOST_TEST((unscaled.collinear == std::vector<Edge>{{1, 3, -1}}));
  for (const int exponent : {600, 980, -500, -900}) {
    Matrix scaled = x;
    for (std::int64_t e = 0; e < x.size(); ++e)
      scaled.data()[e] = std::ldexp(x.data()[e], exponent);
    o.standardize = true;
    const Dag dag = learn(scaled, o);
    check_sound(dag, 4);
    BOOST_TEST((dag.weights == unscaled.weights));
    BOOST_TEST((dag.collinear == unscaled.collinear));
    o.standardize = false;
    if (exponent > 0)
      BOOST_TEST(fails_with(Status::not_converged, "standardize", [&] { learn(scaled, o); }));
    else
      BOOST_TEST((learn(scaled, o).collinear == unscaled.collinear));
  }
  x(5, 2) = -1e305;
  BOOST_TEST(fails_with(Status::invalid_argument,
                        "beyond 1e+300; the first is -1e+305 at row 5, column 2",
                        [&] { learn(x, o); }));
}

// The two products of a step, of few rows and of many.
BOOST_AUTO_TEST_CASE(can_be_stopped_at_any_moment) {
  struct {
    std::int64_t rows, features, batch, epochs;
  } const cases[] = {{200, 300, 128, 2}, {200, 800, 128, 1}, {5000, 200, 5000, 1}};
  for (const auto& c : cases) {
    const Matrix x = noise(c.rows, c.features, 18);
    DagOptions o = plain(c.epochs);
    o.batch_size = c.batch;
    const auto fit = [&](Run& run) { cape::learn_dag(x, o, run); };
    const test::Occasions whole = test::occasions(fit, [](const auto&) { return false; });
    const double steps =
        static_cast<double>(c.epochs) * std::max(1.0, static_cast<double>(c.rows / c.batch));
    const double products = 4 * static_cast<double>(std::min(c.rows, c.batch)) *
                            static_cast<double>(c.features * c.features * o.hidden);
    BOOST_TEST(static_cast<double>(whole.count) >= steps * products / test::piece);
    for (const std::int64_t at : {std::int64_t{1}, whole.count / 3, whole.count - 1}) {
      std::int64_t n = 0;
      const test::Occasions seen = test::occasions(fit, [&](const auto&) { return ++n == at; });
      BOOST_TEST(seen.count == at);
      BOOST_TEST(seen.after_cancelling == 0);
    }
  }
}

BOOST_AUTO_TEST_CASE(refuses_tables_that_are_too_small) {
  BOOST_TEST(
      fails_with(Status::invalid_argument, "got 5 and 0", [] { learn(Matrix(0, 5), plain()); }));
  BOOST_TEST(fails_with(Status::invalid_argument, "got 1 and 20",
                        [] { learn(noise(20, 1, 1), plain()); }));
  BOOST_TEST(
      fails_with(Status::invalid_argument, "got 4 and 9", [] { learn(noise(9, 4, 1), plain()); }));
  BOOST_TEST(
      fails_with(Status::invalid_argument, "got 0 and 20", [] { learn(Matrix(20, 4), plain()); }));
  check_sound(learn(noise(10, 2, 1), plain(3)), 2);
}

BOOST_AUTO_TEST_CASE(refuses_values_that_are_not_finite) {
  Matrix x = noise(20, 4, 19);
  x(1, 2) = not_a_number;
  BOOST_TEST(fails_with(Status::invalid_argument, "row 1, column 2", [&] { learn(x, plain()); }));
  DagOptions mask = plain(3);
  mask.missing = Missing::mask;
  check_sound(learn(x, mask), 4);
  x(0, 0) = -infinity;
  BOOST_TEST(fails_with(Status::invalid_argument, "row 0, column 0", [&] { learn(x, mask); }));
  BOOST_TEST(fails_with(Status::invalid_argument, "2 value(s)", [&] { learn(x, plain()); }));
}

BOOST_AUTO_TEST_CASE(refuses_options_out_of_range) {
  const Matrix x = noise(20, 3, 20);
  const auto refused = [&](const std::string& name, const std::function<void(DagOptions&)>& spoil) {
    DagOptions o = plain(3);
    spoil(o);
    return fails_with(Status::invalid_argument, name, [&] { learn(x, o); });
  };
  BOOST_TEST(refused("dag.lambda", [](DagOptions& o) { o.lambda = -1; }));
  BOOST_TEST(refused("dag.l2", [](DagOptions& o) { o.l2 = not_a_number; }));
  BOOST_TEST(refused("dag.threshold", [](DagOptions& o) { o.threshold = -0.1; }));
  BOOST_TEST(refused("dag.hidden", [](DagOptions& o) { o.hidden = 0; }));
  BOOST_TEST(refused("dag.epochs", [](DagOptions& o) { o.epochs = 0; }));
  BOOST_TEST(refused("dag.batch_size", [](DagOptions& o) { o.batch_size = -5; }));
  BOOST_TEST(refused("dag.learning_rate", [](DagOptions& o) { o.learning_rate = 0; }));
  BOOST_TEST(refused("dag.rho_growth", [](DagOptions& o) { o.rho_growth = 0.5; }));
  BOOST_TEST(refused("dag.rho_interval", [](DagOptions& o) { o.rho_interval = 0; }));
  BOOST_TEST(refused("dag.rho_max", [](DagOptions& o) { o.rho_max = infinity; }));
  BOOST_TEST(refused("dag.h_tolerance", [](DagOptions& o) { o.h_tolerance = -1; }));
  BOOST_TEST(refused("dag.sem", [](DagOptions& o) { o.sem = static_cast<Sem>(9); }));
  BOOST_TEST(refused("dag.refine_hidden", [](DagOptions& o) { o.refine_hidden = 0; }));
  BOOST_TEST(refused("dag.precision", [](DagOptions& o) {
    o.sem = Sem::linear;
    o.precision = cape::Precision::float32;
  }));
}

BOOST_AUTO_TEST_CASE(in_float_learns_what_it_learns_in_double) {
  DagOptions o;
  o.refine = Refine::never;
  const Matrix x = simulated(1000, 8, 4);
  const Dag plain = learn(x, o);
  o.precision = cape::Precision::float32;
  BOOST_TEST((learn(x, o).weights == plain.weights)); // the automatic choice
  o.precision = cape::Precision::float64;
  const Dag exact = learn(x, o);
  BOOST_TEST((exact.weights != plain.weights));
  BOOST_TEST(std::ssize(exact.graph.edges()) == std::ssize(plain.graph.edges()));
  for (const Edge& e : exact.graph.edges())
    BOOST_TEST(std::fabs(plain.weights(e.from, e.to) - exact.weights(e.from, e.to)) < 0.01);
}

BOOST_AUTO_TEST_CASE(describes_every_option) {
  DagOptions o;
  const cape::OptionFields all = cape::fields(o);
  for (const cape::OptionField& f : all) {
    BOOST_TEST(f.name.starts_with("dag."));
    BOOST_TEST((!f.doc.empty() && !f.source.empty()));
  }
  cape::check_options(all); // the defaults are in their ranges
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(variances)

// All orders of four nodes: mean and variance of the share of rising edges.
BOOST_AUTO_TEST_CASE(random_orders_are_those_of_all_permutations) {
  const std::vector<std::vector<Edge>> graphs = {
      {{0, 1, 1}},
      {{0, 1, 1}, {0, 2, 1}, {0, 3, 1}},
      {{0, 1, 1}, {1, 2, 1}, {2, 3, 1}},
      {{0, 1, 1}, {0, 2, 1}, {1, 3, 1}, {2, 3, 1}, {0, 3, 1}}};
  for (const std::vector<Edge>& edges : graphs) {
    const Digraph graph(4, edges);
    std::vector<double> order = {1, 2, 3, 4};
    double n = 0, sum = 0, squares = 0, deviation = 0;
    do {
      const cape::VarianceOrder v = cape::variance_order(graph, order);
      double rising = 0;
      for (const Edge& e : edges)
        rising += order[static_cast<std::size_t>(e.from)] < order[static_cast<std::size_t>(e.to)];
      BOOST_TEST(v.rising == rising / static_cast<double>(edges.size()));
      n += 1, sum += v.rising, squares += v.rising * v.rising, deviation = v.deviation;
    } while (std::next_permutation(order.begin(), order.end()));
    BOOST_TEST(sum / n == 0.5, boost::test_tools::tolerance(1e-12));
    BOOST_TEST(deviation == std::sqrt(squares / n - 0.25), boost::test_tools::tolerance(1e-9));
  }
  const cape::VarianceOrder ties =
      cape::variance_order(Digraph(2, {{0, 1, 1}}), std::vector{2.0, 2.0});
  BOOST_TEST(ties.rising == 0.5);
  const cape::VarianceOrder none = cape::variance_order(Digraph(2, {}), std::vector{2.0, 2.0});
  BOOST_TEST((none.rising == 0 && none.deviation == 0));
}

BOOST_AUTO_TEST_CASE(bad_deviations) {
  const Digraph graph(2, {{0, 1, 1}});
  BOOST_TEST(fails_with(Status::dim_mismatch, "3",
                        [&] { cape::variance_order(graph, std::vector{1.0, 2.0, 3.0}); }));
  BOOST_TEST(fails_with(Status::invalid_argument, "finite",
                        [&] { cape::variance_order(graph, std::vector{1.0, std::nan("")}); }));
}

// Eight pairs whose effect has twice the variance of its cause, or, in other units, an eighth.
BOOST_AUTO_TEST_CASE(a_graph_that_follows_the_variances_says_so) {
  constexpr std::int64_t rows = 1000, pairs = 8;
  Matrix x(rows, 2 * pairs);
  cape::Prior directions;
  Rng rng(77);
  for (std::int64_t j = 1; j < x.cols(); j += 2) {
    directions.knowledge.required.push_back({j - 1, j, 0});
    for (std::int64_t i = 0; i < rows; ++i) {
      x(i, j - 1) = rng.normal();
      x(i, j) = x(i, j - 1) + rng.normal();
    }
  }
  DagOptions options;
  options.sem = Sem::linear;
  Run run(1, 2);
  const Dag raw = cape::learn_dag(x, options, run);
  BOOST_TEST_REQUIRE(raw.graph.edges().size() == 8u);
  const cape::VarianceOrder order = cape::variance_order(raw.graph, raw.deviation);
  BOOST_TEST(order.rising == 1);
  BOOST_TEST(order.deviation == std::sqrt(24.0 / 12) / 8, boost::test_tools::tolerance(1e-12));
  BOOST_TEST(warns(raw, "variance to that of more"));
  options.standardize = true;
  const Dag scaled = cape::learn_dag(x, options, run);
  BOOST_TEST(scaled.deviation == raw.deviation, boost::test_tools::per_element());
  BOOST_TEST(!warns(scaled, "variance to that of"));
  // Half of the effects in other units, and the directions known: nothing follows the variances.
  options.standardize = false;
  for (std::int64_t j = 1; j < x.cols(); j += 4)
    for (std::int64_t i = 0; i < rows; ++i) x(i, j) /= 4;
  const Dag known = cape::learn_dag(x, options, run, directions);
  BOOST_TEST(cape::variance_order(known.graph, known.deviation).rising == 0.5);
  BOOST_TEST(!warns(known, "variance to that of"));
}

BOOST_AUTO_TEST_SUITE_END()
