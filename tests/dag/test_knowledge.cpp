// What the user knows of the graph and of the rows: it holds in the result, and it helps.
#define BOOST_TEST_MODULE knowledge
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <tuple>
#include <vector>
import cape;
#include "errors.hpp"
#include "tables.hpp"

namespace {

using cape::Dag;
using cape::DagOptions;
using cape::Design;
using cape::Edge;
using cape::Knowledge;
using cape::Matrix;
using cape::Refine;
using cape::Rng;
using cape::Run;
using cape::Sem;
using cape::SparseMatrix;
using cape::Status;
using test::chain;
using test::fails_with;

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

DagOptions quick(Sem sem, std::int64_t epochs = 30) {
  DagOptions o;
  o.sem = sem;
  o.refine = Refine::never;
  o.epochs = epochs;
  return o;
}

Dag learn(const Matrix& x, const Knowledge& knowledge, const Design& design,
          const DagOptions& options, int threads = 1) {
  Run run(1, threads);
  return cape::learn_dag(x, options, run, {knowledge, design});
}

bool has(const Dag& dag, std::int64_t from, std::int64_t to) {
  return std::ranges::any_of(dag.graph.edges(),
                             [&](const Edge& e) { return e.from == from && e.to == to; });
}

double largest_difference(const SparseMatrix& a, const SparseMatrix& b) {
  double d = 0;
  for (std::int64_t j = 0; j < a.cols; ++j)
    for (std::int64_t i = 0; i < a.rows; ++i) d = std::max(d, std::fabs(a(i, j) - b(i, j)));
  return d;
}

// The places where an edge may be: those whose weight is not 0 without any penalty but the model's.
void check_only(const Knowledge& k,
                const std::function<bool(std::int64_t, std::int64_t)>& allowed) {
  const Matrix x = chain(200, 5, 1);
  for (const Sem sem : {Sem::mlp, Sem::linear, Sem::paper}) {
    DagOptions options = quick(sem, 3);
    options.lambda = 0;
    const Dag dag = learn(x, k, {}, options);
    for (std::int64_t j = 0; j < 5; ++j)
      for (std::int64_t i = 0; i < 5; ++i)
        if (i != j) BOOST_TEST((dag.weights(i, j) != 0) == allowed(i, j));
  }
}

} // namespace

BOOST_AUTO_TEST_SUITE(graph)

BOOST_AUTO_TEST_CASE(nothing_known_changes_nothing) {
  const Matrix x = chain(300, 5, 2);
  for (const Sem sem : {Sem::mlp, Sem::linear}) {
    Run run(1, 1);
    const Dag plain = cape::learn_dag(x, quick(sem, 5), run);
    BOOST_TEST((learn(x, {}, {}, quick(sem, 5)).weights == plain.weights));
    Knowledge ones;
    ones.penalty = Matrix(5, 5);
    std::fill_n(ones.penalty.data(), 25, 1.0);
    BOOST_TEST(largest_difference(learn(x, ones, {}, quick(sem, 5)).weights, plain.weights) <
               (sem == Sem::mlp ? 1e-6 : 1e-9)); // the MLPs are trained in float
  }
}

BOOST_AUTO_TEST_CASE(excluded_edges_have_no_weight_and_all_others_may) {
  Knowledge forbidden, tiers, roots, leaves, regulators;
  forbidden.forbidden = {{0, 1, 1}, {3, 2, 1}};
  check_only(forbidden, [](auto i, auto j) { return !(i == 0 && j == 1) && !(i == 3 && j == 2); });
  tiers.tier = {2, 0, 0, 1, -1};
  check_only(tiers, [](auto i, auto j) {
    const int tier[] = {2, 0, 0, 1, -1};
    return tier[i] < 0 || tier[j] < 0 || tier[i] <= tier[j];
  });
  roots.roots = {2, 4};
  check_only(roots, [](auto, auto j) { return j != 2 && j != 4; });
  leaves.leaves = {0};
  check_only(leaves, [](auto i, auto) { return i != 0; });
  regulators.regulators = {1, 3};
  check_only(regulators, [](auto i, auto) { return i == 1 || i == 3; });
}

// With a learning rate of next to nothing the weights stay where they start.
BOOST_AUTO_TEST_CASE(the_descent_starts_from_the_edges_of_an_earlier_fit) {
  const Matrix x = chain(200, 6, 5);
  Knowledge k;
  k.start = {{0, 1, 0.7}, {4, 2, -1.25}};
  for (const Sem sem : {Sem::mlp, Sem::linear, Sem::paper})
    for (const std::int64_t candidates : {-1, 4}) {
      if (candidates > 0 && sem != Sem::mlp) continue;
      DagOptions options = quick(sem, 1);
      options.learning_rate = 1e-9;
      options.lambda = 0;
      options.candidates = candidates;
      if (candidates > 0) k.required = {{0, 1, 1}, {4, 2, 1}}; // so that they are candidates
      const Dag dag = learn(x, k, {}, options);
      BOOST_TEST(std::fabs(dag.weights(0, 1)) == 0.7, boost::test_tools::tolerance(1e-6));
      BOOST_TEST(std::fabs(dag.weights(4, 2)) == 1.25, boost::test_tools::tolerance(1e-6));
      BOOST_TEST(dag.sign(0, 1) == 1);
      BOOST_TEST(dag.sign(4, 2) == -1);
    }
}

BOOST_AUTO_TEST_CASE(few_epochs_from_an_earlier_fit_end_nearer_to_it) {
  const Matrix x = chain(500, 5, 6);
  const Dag full = learn(x, {}, {}, quick(Sem::linear, 100));
  Knowledge k;
  k.start = full.graph.edges();
  const Dag cold = learn(x, {}, {}, quick(Sem::linear, 1)),
            warm = learn(x, k, {}, quick(Sem::linear, 1));
  BOOST_TEST(largest_difference(warm.weights, full.weights) <
             largest_difference(cold.weights, full.weights));
}

BOOST_AUTO_TEST_CASE(the_direction_follows_what_is_known) {
  const Matrix x = chain(500, 3, 3);
  const Dag free = learn(x, {}, {}, quick(Sem::linear, 100));
  BOOST_TEST((has(free, 0, 1) && has(free, 1, 2) && !has(free, 2, 1)));
  Knowledge k;
  k.tier = {2, 1, 0};
  const Dag reversed = learn(x, k, {}, quick(Sem::linear, 100));
  BOOST_TEST((has(reversed, 2, 1) && has(reversed, 1, 0) && !has(reversed, 0, 1)));
  BOOST_TEST(cape::is_acyclic(reversed.graph));
}

BOOST_AUTO_TEST_CASE(required_edges_are_there_whatever_the_data_say) {
  const Matrix x = chain(500, 4, 4);
  Knowledge k;
  k.required = {{3, 0, 1},
                {0, 1, 1}}; // the first against the chain, so that 0 -> 1 -> 2 -> 3 closes a cycle
  for (const Sem sem : {Sem::mlp, Sem::linear, Sem::paper})
    for (const Refine refine : {Refine::never, Refine::always}) {
      DagOptions options = quick(sem);
      options.refine = refine;
      options.refine_epochs = 10;
      const Dag dag = learn(x, k, {}, options);
      BOOST_TEST(dag.refined == (refine == Refine::always));
      BOOST_TEST((has(dag, 3, 0) && has(dag, 0, 1)));
      BOOST_TEST(cape::is_acyclic(dag.graph));
      for (const Edge& e : dag.graph.edges()) BOOST_TEST(std::fabs(e.weight) >= dag.threshold);
      BOOST_TEST((has(cape::prune(dag, 5), 3, 0) && has(cape::prune(dag, 5), 0, 1)));
      BOOST_TEST(cape::prune(dag, 5).graph.edges().size() == 2U);
    }
}

// Calls that say what is known add up, and may say the same.
BOOST_AUTO_TEST_CASE(what_is_said_twice_is_known_once) {
  const Matrix x = chain(100, 5, 4);
  Knowledge once, twice;
  once.required = {{3, 0, 1}, {4, 1, 1}};
  once.forbidden = {{0, 1, 1}};
  once.roots = {4};
  once.leaves = {2};
  once.start = {{0, 2, 0.5}};
  twice = once;
  for (auto edges : {&Knowledge::required, &Knowledge::forbidden, &Knowledge::start})
    (twice.*edges).push_back((twice.*edges).front());
  for (auto columns : {&Knowledge::roots, &Knowledge::leaves})
    (twice.*columns).push_back((twice.*columns).front());
  for (const Refine refine : {Refine::never, Refine::always}) {
    DagOptions options = quick(Sem::linear, 5);
    options.refine = refine;
    const Dag a = learn(x, once, {}, options), b = learn(x, twice, {}, options);
    BOOST_TEST((a.weights == b.weights));
    BOOST_TEST((a.graph.edges() == b.graph.edges()));
    BOOST_TEST((a.required == b.required));
    BOOST_TEST(has(b, 3, 0));
  }
}

BOOST_AUTO_TEST_CASE(the_refinement_keeps_to_it) {
  const Matrix x = chain(400, 5, 5);
  Knowledge k;
  k.required = {{4, 0, 1}};
  k.forbidden = {{1, 2, 1}};
  k.leaves = {3};
  DagOptions options = quick(Sem::mlp);
  options.refine = Refine::always;
  options.refine_epochs = 20;
  const Dag dag = learn(x, k, {}, options);
  BOOST_TEST(dag.refined);
  BOOST_TEST((has(dag, 4, 0) && !has(dag, 1, 2)));
  for (const Edge& e : dag.graph.edges()) BOOST_TEST(e.from != 3);
  BOOST_TEST(cape::is_acyclic(dag.graph));
}

BOOST_AUTO_TEST_CASE(a_penalty_thins_out_its_edges) {
  const Matrix x = chain(500, 3, 6);
  Knowledge k;
  k.tier = {0, 1, 2};
  k.penalty = Matrix(3, 3);
  std::fill_n(k.penalty.data(), 9, 1.0);
  k.penalty(0, 1) = 1e3;
  k.penalty(1, 2) = 0;
  const Dag dag = learn(x, k, {}, quick(Sem::linear, 100));
  BOOST_TEST(dag.weights(0, 1) == 0);
  BOOST_TEST(has(dag, 1, 2));
  // Not shrunk: the slope of least squares of column 2 on column 1, as 0 has no part in it.
  double xy = 0, xx = 0, mx = 0, my = 0;
  for (std::int64_t i = 0; i < 500; ++i) mx += x(i, 1) / 500, my += x(i, 2) / 500;
  for (std::int64_t i = 0; i < 500; ++i)
    xy += (x(i, 1) - mx) * (x(i, 2) - my), xx += (x(i, 1) - mx) * (x(i, 1) - mx);
  BOOST_TEST(std::fabs(dag.weights(1, 2) - xy / xx) < 0.02);
}

BOOST_AUTO_TEST_CASE(contradictions_are_named) {
  const Matrix x = chain(50, 3, 7);
  const auto refuses = [&](Status status, const std::string& part, const Knowledge& k) {
    return fails_with(status, part, [&] { learn(x, k, {}, quick(Sem::linear, 1)); });
  };
  const Status bad = Status::invalid_argument;
  Knowledge k;
  k.required = {{0, 3, 1}};
  BOOST_TEST(refuses(bad, "required has the number 3; it must lie in [0, 3)", k));
  k.required = {{1, 1, 1}};
  BOOST_TEST(refuses(bad, "required has an edge from column 1 (counted from 0) to itself", k));
  k.required = {{0, 1, 1}, {1, 2, 1}, {2, 0, 1}};
  BOOST_TEST(refuses(bad, "have a cycle, in which is that from column ", k));
  k.required = {{0, 1, 1}};
  k.forbidden = {{0, 1, 1}};
  BOOST_TEST(refuses(bad, "column 0 to column 1 (counted from 0) is required, but forbidden", k));
  k = {};
  k.tier = {1, 2};
  BOOST_TEST(refuses(Status::dim_mismatch, "tier has 2 values; it must have 3", k));
  k = {};
  k.roots = {-1};
  BOOST_TEST(refuses(bad, "roots has the number -1", k));
  k = {};
  k.penalty = Matrix(2, 3);
  BOOST_TEST(refuses(Status::dim_mismatch, "penalty is 2 x 3; it must be 3 x 3", k));
  k.penalty = Matrix(3, 3);
  k.penalty(1, 0) = -2;
  BOOST_TEST(refuses(bad, "penalty is -2 for the edge from column 1 to column 0", k));
  k.penalty(1, 0) = not_a_number;
  BOOST_TEST(refuses(bad, "it must be finite and not negative", k));
  k = {};
  k.start = {{0, 1, not_a_number}};
  BOOST_TEST(refuses(bad, "start has the weight nan for the edge from column 0 to column 1", k));
  k.start = {{2, 2, 1}};
  BOOST_TEST(refuses(bad, "start has an edge from column 2 (counted from 0) to itself", k));
  k.start = {{2, 1, 1}, {0, 1, 1}, {2, 1, 0.5}};
  BOOST_TEST(refuses(bad, "the weights 1 and 0.5 for the edge from column 2 to column 1", k));
  Matrix constant = x;
  std::fill_n(constant.column(2), 50, 4.0);
  k = {};
  k.required = {{0, 2, 1}};
  BOOST_TEST(fails_with(bad, "column 2 (counted from 0) has a required edge but no variance",
                        [&] { learn(constant, k, {}, quick(Sem::linear, 1)); }));
}

BOOST_AUTO_TEST_SUITE_END()
BOOST_AUTO_TEST_SUITE(rows)

// All rows in one batch, so that a fit is a function of the sums over rows alone.
DagOptions full_batch() {
  DagOptions o = quick(Sem::linear, 40);
  o.batch_size = 1000;
  o.lambda = 0.02;
  return o;
}

BOOST_AUTO_TEST_CASE(rows_of_weight_0_are_not_there) {
  const Matrix x = chain(200, 3, 8);
  Matrix more(260, 3);
  Design design;
  Rng rng(1);
  for (std::int64_t i = 0; i < 260; ++i) {
    for (std::int64_t j = 0; j < 3; ++j) more(i, j) = i < 200 ? x(i, j) : 50 * rng.normal();
    design.weight.push_back(i < 200 ? 3.5 : 0);
  }
  BOOST_TEST(largest_difference(learn(more, {}, design, full_batch()).weights,
                                learn(x, {}, {}, full_batch()).weights) < 1e-9);
}

BOOST_AUTO_TEST_CASE(a_weight_of_2_is_the_row_twice) {
  const Matrix x = chain(150, 3, 9);
  Matrix twice(200, 3);
  Design design;
  for (std::int64_t i = 0; i < 200; ++i)
    for (std::int64_t j = 0; j < 3; ++j) twice(i, j) = x(i < 150 ? i : i - 150, j);
  for (std::int64_t i = 0; i < 150; ++i) design.weight.push_back(i < 50 ? 2 : 1);
  // But for the factors of the penalty, whose share of chance knows the number of rows.
  BOOST_TEST(largest_difference(learn(x, {}, design, full_batch()).weights,
                                learn(twice, {}, {}, full_batch()).weights) < 2e-3);
}

BOOST_AUTO_TEST_CASE(batches_may_differ_in_level) {
  const Matrix x = chain(300, 3, 10);
  Design design;
  Matrix centered = x, shifted = x;
  for (std::int64_t i = 0; i < 300; ++i) design.batch.push_back(i % 3 == 0 ? 7 : -2);
  for (std::int64_t j = 0; j < 3; ++j)
    for (const bool of_three : {true, false}) {
      double mean = 0;
      const double count = of_three ? 100 : 200;
      for (std::int64_t i = 0; i < 300; ++i)
        if ((i % 3 == 0) == of_three) mean += x(i, j) / count;
      for (std::int64_t i = 0; i < 300; ++i)
        if ((i % 3 == 0) == of_three) {
          centered(i, j) -= mean;
          shifted(i, j) += of_three ? 40 - static_cast<double>(j) : -11;
        }
    }
  BOOST_TEST(largest_difference(learn(shifted, {}, design, full_batch()).weights,
                                learn(centered, {}, {}, full_batch()).weights) < 1e-9);
  // Without being told, the level makes an edge of every pair.
  BOOST_TEST(std::fabs(learn(shifted, {}, {}, full_batch()).weights(0, 1) -
                       learn(centered, {}, {}, full_batch()).weights(0, 1)) > 0.1);
}

// x moved by a function of two covariates, with an intercept; residuals by the normal equations.
BOOST_AUTO_TEST_CASE(covariates_are_taken_out) {
  const std::int64_t n = 300;
  const Matrix x = chain(n, 3, 14);
  Rng rng(3);
  Matrix z(n, 2), moved = x, rest = x;
  for (std::int64_t i = 0; i < n; ++i) {
    z(i, 0) = 5 + rng.normal();
    z(i, 1) = i % 3 == 0 ? 1 : 0;
    for (std::int64_t j = 0; j < 3; ++j)
      moved(i, j) += 2 * z(i, 0) - (3 + static_cast<double>(j)) * z(i, 1) + 8;
  }
  for (std::int64_t j = 0; j < 3; ++j) {
    double a[3][4] = {};
    for (std::int64_t i = 0; i < n; ++i) {
      const double row[] = {1, z(i, 0), z(i, 1), x(i, j)};
      for (int r = 0; r < 3; ++r)
        for (int c = 0; c < 4; ++c) a[r][c] += row[r] * row[c];
    }
    for (int r = 0; r < 3; ++r) // Gauss and Jordan
      for (int other = 0; other < 3; ++other) {
        if (other == r) continue;
        const double factor = a[other][r] / a[r][r];
        for (int c = 0; c < 4; ++c) a[other][c] -= factor * a[r][c];
      }
    for (std::int64_t i = 0; i < n; ++i)
      rest(i, j) -= a[0][3] / a[0][0] + a[1][3] / a[1][1] * z(i, 0) + a[2][3] / a[2][2] * z(i, 1);
  }
  Design design;
  design.covariates = z;
  const SparseMatrix right = learn(rest, {}, {}, full_batch()).weights;
  BOOST_TEST(largest_difference(learn(moved, {}, design, full_batch()).weights, right) < 1e-9);
  BOOST_TEST(std::fabs(learn(moved, {}, {}, full_batch()).weights(0, 2) - right(0, 2)) > 0.05);

  // What says nothing new changes nothing: a multiple, a constant, the batch as a number.
  Matrix more(n, 5);
  for (std::int64_t i = 0; i < n; ++i) {
    const double row[] = {z(i, 0), 1e9 * z(i, 0) + 2, 7, z(i, 1), 0};
    for (std::int64_t k = 0; k < 5; ++k) more(i, k) = row[k];
  }
  design.covariates = more;
  BOOST_TEST(largest_difference(learn(moved, {}, design, full_batch()).weights, right) < 1e-9);
  for (std::int64_t i = 0; i < n; ++i) design.batch.push_back(i % 3 == 0);
  BOOST_TEST(largest_difference(learn(moved, {}, design, full_batch()).weights, right) < 1e-9);
  BOOST_TEST((learn(moved, {}, design, full_batch(), 2).weights ==
              learn(moved, {}, design, full_batch()).weights));
}

// Where rows are weighted, values are missing or were set from outside, batches differ.
BOOST_AUTO_TEST_CASE(what_covariates_add_changes_nothing) {
  const std::int64_t n = 300;
  Matrix x = chain(n, 4, 15);
  Design design;
  design.covariates = Matrix(n, 1);
  Rng rng(4);
  for (std::int64_t i = 0; i < n; ++i) {
    design.weight.push_back(1 + static_cast<double>(i % 4));
    design.batch.push_back(i % 2);
    design.covariates(i, 0) = rng.normal() + static_cast<double>(i % 2);
    if (i % 7 == 0) design.perturbed.push_back({i, i % 4});
    if (i % 11 == 0) x(i, (i + 1) % 4) = not_a_number;
  }
  Matrix moved = x;
  for (std::int64_t j = 0; j < 4; ++j)
    for (std::int64_t i = 0; i < n; ++i)
      moved(i, j) += (static_cast<double>(j) - 3.5) * design.covariates(i, 0);
  DagOptions options = full_batch();
  options.missing = cape::Missing::mask;
  BOOST_TEST(largest_difference(learn(moved, {}, design, options).weights,
                                learn(x, {}, design, options).weights) < 1e-6);
}

BOOST_AUTO_TEST_CASE(a_column_that_covariates_explain_has_no_variance) {
  Matrix x = chain(200, 4, 16);
  Design design;
  design.covariates = Matrix(200, 1);
  for (std::int64_t i = 0; i < 200; ++i) {
    design.covariates(i, 0) = std::sin(static_cast<double>(i));
    x(i, 1) = 1e7 - 3 * design.covariates(i, 0);
    x(i, 3) = 1e280 * (x(i, 3) + design.covariates(i, 0)); // whose squares overflow
  }
  DagOptions options = full_batch();
  options.standardize = true;
  const Dag dag = learn(x, {}, design, options);
  BOOST_TEST((dag.constant == std::vector<std::int64_t>{1}));
  for (const double w : dag.weights.values) BOOST_TEST(std::isfinite(w));
}

BOOST_AUTO_TEST_CASE(bad_covariates) {
  const Matrix x = chain(30, 3, 17);
  Design design;
  const auto refuses = [&](Status status, const std::string& text) {
    return fails_with(status, text, [&] { learn(x, {}, design, full_batch()); });
  };
  design.covariates = Matrix(29, 1);
  BOOST_TEST(refuses(Status::dim_mismatch, "covariates has 29 rows; it must have 30"));
  design.covariates = Matrix(30, 21);
  BOOST_TEST(
      refuses(Status::invalid_argument, "there are 21 covariates, which leave fewer than"));
  design.covariates = Matrix(30, 2);
  design.covariates(4, 1) = not_a_number;
  BOOST_TEST(refuses(Status::invalid_argument, "covariates has nan in row 4, column 1"));
}

// What column 1 was set to in half of a batch says nothing of the level of that batch.
BOOST_AUTO_TEST_CASE(values_set_from_outside_do_not_move_their_batch) {
  const Matrix x = chain(300, 2, 12);
  Knowledge no_way_back;
  no_way_back.forbidden = {{1, 0, 1}};
  const auto slope = [&](double set_to) {
    Matrix y = x;
    Design design;
    for (std::int64_t i = 0; i < 300; ++i) {
      design.batch.push_back(i / 150);
      if (i >= 75) continue;
      design.perturbed.push_back({i, 1});
      y(i, 1) = set_to + static_cast<double>(i % 2);
    }
    return learn(y, no_way_back, design, full_batch()).weights(0, 1);
  };
  BOOST_TEST(std::fabs(slope(0)) > 0.3);
  BOOST_TEST(std::fabs(slope(9) - slope(0)) < 1e-9);
}

// x1 = x0 + noise, but in half of the rows x1 was set from outside; x2 = x1 + noise always. Least
// squares over all rows halves the first slope; with the perturbation known it is 1.
BOOST_AUTO_TEST_CASE(a_perturbed_column_teaches_nothing_of_its_own_causes) {
  const std::int64_t n = 4000;
  Matrix x(n, 3);
  Design design;
  Rng rng(11);
  for (std::int64_t i = 0; i < n; ++i) {
    x(i, 0) = rng.normal();
    const bool set = i % 2 == 0;
    x(i, 1) = set ? 2 + rng.normal() : x(i, 0) + 0.5 * rng.normal();
    x(i, 2) = x(i, 1) + 0.5 * rng.normal();
    if (set) design.perturbed.push_back({i, 1});
  }
  DagOptions options = quick(Sem::linear, 100);
  options.lambda = 0.001;
  Knowledge order;
  order.tier = {0, 1, 2};
  const Dag told = learn(x, order, design, options), blind = learn(x, order, {}, options);
  BOOST_TEST(std::fabs(told.weights(0, 1) - 1) < 0.05);
  BOOST_TEST(std::fabs(blind.weights(0, 1) - 0.5) < 0.05);
  BOOST_TEST(std::fabs(told.weights(1, 2) - 1) < 0.05);
  BOOST_TEST(std::fabs(told.weights(0, 2)) < 0.05);

  options = quick(Sem::mlp);
  options.refine = Refine::automatic;
  const Dag mlp = learn(x, {}, design, options);
  BOOST_TEST(!mlp.refined);
  BOOST_TEST(std::ranges::any_of(mlp.warnings, [](const std::string& w) {
    return w.find("not refined because values are perturbed or weighted") != std::string::npos;
  }));
}

BOOST_AUTO_TEST_CASE(all_of_it_with_missing_values_and_threads) {
  Matrix x = chain(300, 6, 12);
  Knowledge k;
  k.required = {{0, 5, 1}};
  k.tier = {0, 0, 1, 1, 2, 2};
  Design design;
  for (std::int64_t i = 0; i < 300; ++i) {
    design.weight.push_back(1 + static_cast<double>(i % 4));
    design.batch.push_back(i % 2);
    if (i % 7 == 0) design.perturbed.push_back({i, i % 6});
    if (i % 11 == 0) x(i, (i + 1) % 6) = not_a_number;
  }
  for (const Sem sem : {Sem::mlp, Sem::linear, Sem::paper, Sem::literal})
    for (const bool standardize : {false, true}) {
      if (sem == Sem::literal && standardize) continue;
      DagOptions options = quick(sem, 5);
      options.missing = cape::Missing::mask;
      options.standardize = standardize;
      const Dag one = learn(x, k, design, options, 1), two = learn(x, k, design, options, 2);
      BOOST_TEST((one.weights == two.weights));
      BOOST_TEST((has(one, 0, 5) && cape::is_acyclic(one.graph)));
      for (const double w : one.weights.values) BOOST_TEST(std::isfinite(w));
    }
}

// 0 -> 1 -> 2 and three columns whose level is all that they have: of one batch, with the rounding
// of a sum, or where values are there.
BOOST_AUTO_TEST_CASE(columns_that_are_flat_within_batches_have_no_edges) {
  const std::int64_t n = 240;
  const Matrix chain_of_3 = chain(n, 3, 21);
  for (const bool weighted : {false, true})
    for (const bool perturbed : {false, true})
      for (const bool gaps : {false, true}) {
        Matrix x(n, 6);
        Design design;
        for (std::int64_t i = 0; i < n; ++i) {
          const std::int64_t batch = i % 3;
          design.batch.push_back(batch);
          if (weighted) design.weight.push_back(1 + static_cast<double>(i % 4) / 7);
          if (perturbed && i % 5 == 0) design.perturbed.push_back({i, 1});
          for (std::int64_t j = 0; j < 3; ++j)
            x(i, j) = chain_of_3(i, j) + static_cast<double>(batch);
          const double level = static_cast<double>(1 + batch) / 7;
          x(i, 3) = level;
          x(i, 4) = 1e9 * level * (i % 2 ? 1 : 1 + 0x1p-52);
          x(i, 5) = batch == 1 ? -3.3 : 0;
          if (gaps && i % 6 == 4) x(i, 3 + i % 3) = not_a_number;
        }
        for (const bool standardize : {false, true})
          for (const Sem sem : {Sem::mlp, Sem::linear}) {
            DagOptions options = quick(sem, 20);
            options.standardize = standardize;
            options.missing = cape::Missing::mask;
            options.refine = Refine::always;
            options.refine_epochs = 5;
            const Dag dag = learn(x, {}, design, options);
            BOOST_TEST((dag.constant == std::vector<std::int64_t>{3, 4, 5}));
            for (const Edge& e : dag.graph.edges()) BOOST_TEST((e.from < 3 && e.to < 3));
            for (std::int64_t j = 3; j < 6; ++j)
              for (std::int64_t i = 0; i < 6; ++i)
                BOOST_TEST((dag.weights(i, j) == 0 && dag.weights(j, i) == 0));
          }
      }
}

// 0 -> 1 -> 2, where 1 was set from outside: in all rows; in all but nine, or but those of a level
// for each batch, which is no variance to explain.
BOOST_AUTO_TEST_CASE(a_column_that_is_always_set_keeps_its_effects) {
  const std::int64_t n = 600;
  enum class Rest { none, few, flat };
  for (const Rest rest : {Rest::none, Rest::few, Rest::flat})
    for (const Sem sem : {Sem::mlp, Sem::linear, Sem::paper})
      for (const bool standardize : {false, true}) {
        Matrix x(n, 3);
        Design design;
        Rng rng(12);
        for (std::int64_t i = 0; i < n; ++i) {
          const std::int64_t batch = i % 2;
          const bool set = rest == Rest::none || (rest == Rest::few ? i >= 9 : i % 3 == 0);
          x(i, 0) = rng.normal();
          x(i, 1) = set ? rng.normal() : rest == Rest::few ? x(i, 0) : 0.3;
          if (rest == Rest::flat && batch == 1) x(i, 1) += 0.7;
          x(i, 2) = x(i, 1) + 0.5 * rng.normal();
          if (set) design.perturbed.push_back({i, 1});
          if (rest == Rest::flat) design.batch.push_back(batch);
        }
        DagOptions options = quick(sem, 60);
        options.standardize = standardize;
        options.lambda = 0.01;
        const Dag dag = learn(x, {}, design, options);
        BOOST_TEST(dag.constant.empty());
        BOOST_TEST((dag.weights(0, 1) == 0 && dag.weights(2, 1) == 0));
        BOOST_TEST((has(dag, 1, 2) && dag.graph.edges().size() == 1U));
        if (sem == Sem::linear && !standardize) BOOST_TEST(std::fabs(dag.weights(1, 2) - 1) < 0.1);
        BOOST_TEST(std::ranges::any_of(dag.warnings, [](const std::string& w) {
          return w.starts_with("1 column(s) have no causes") &&
                 w.ends_with(": 1 (counted from 0).");
        }));
        if (sem == Sem::mlp) {
          options.candidates = 1;
          BOOST_TEST(has(learn(x, {}, design, options), 1, 2));
        }
        Knowledge known; // holds whatever the data say
        known.required = {{0, 1, 1}};
        const Dag required = learn(x, known, design, options);
        BOOST_TEST((has(required, 0, 1) && !has(required, 2, 1)));
        options.sem = Sem::linear;
        options.candidates = -1;
        options.rank = 2;
        BOOST_TEST(fails_with(Status::invalid_argument, "equation of column 1 (counted from 0)",
                              [&] { learn(x, {}, design, options); }));
      }
}

// Rows that do not count, between those that do: the fit is to the bit that of the others alone.
BOOST_AUTO_TEST_CASE(rows_that_do_not_count_change_no_bit) {
  const std::int64_t n = 230;
  const Matrix x = chain(n, 4, 22);
  const auto outcome = [](const Dag& dag) {
    return std::tuple(dag.weights.values, dag.weights.indices, dag.sign.values,
                      dag.statistic.values, dag.graph.edges(), dag.center, dag.scale, dag.h,
                      dag.lambda, dag.warnings, dag.refined);
  };
  enum class Without { weight, range_of_weight, values };
  for (const Without without : {Without::weight, Without::range_of_weight, Without::values})
    for (const bool weighted : {false, true})
      for (const bool in_batches : {false, true})
        for (const Sem sem : {Sem::mlp, Sem::linear}) {
          Design few, all;
          std::vector<std::int64_t> place;
          Matrix more(n + 40, 4);
          for (std::int64_t i = 0, k = 0; i < more.rows(); ++i) {
            const bool counts = i % 27 < 23 && k < n;
            const double weight = weighted ? 1 + static_cast<double>(i % 3) : 2;
            for (std::int64_t j = 0; j < 4; ++j)
              more(i, j) = counts                       ? x(k, j)
                           : without == Without::values ? not_a_number
                           : j == 0                     ? std::numeric_limits<double>::infinity()
                                                        : 1e9;
            all.batch.push_back(i / 90);
            all.weight.push_back(counts || without == Without::values ? weight
                                 : without == Without::weight         ? 0
                                                                      : 1e-320);
            if (i % 13 == 0 && weighted) all.perturbed.push_back({i, i % 4});
            if (!counts) continue;
            if (i % 13 == 0 && weighted) few.perturbed.push_back({k, i % 4});
            few.weight.push_back(weight);
            few.batch.push_back(i / 90);
            ++k;
          }
          if (!in_batches) few.batch.clear(), all.batch.clear();
          if (!weighted) few.weight.clear();
          DagOptions options;
          options.sem = sem;
          options.epochs = 5;
          options.batch_size = 50; // several steps a pass
          options.refine_epochs = 5;
          options.missing = cape::Missing::mask;
          const Dag reference = learn(x, {}, few, options);
          BOOST_TEST(reference.refined == !weighted);
          BOOST_TEST((outcome(learn(more, {}, all, options)) == outcome(reference)));
        }
}

BOOST_AUTO_TEST_CASE(weights_of_any_size_are_ratios) {
  const Matrix x = chain(60, 3, 23);
  Design small, large;
  for (std::int64_t i = 0; i < 60; ++i) {
    small.weight.push_back(std::ldexp(1 + static_cast<double>(i % 3), -1000));
    large.weight.push_back(std::ldexp(1 + static_cast<double>(i % 3), 1021));
  }
  const Dag a = learn(x, {}, small, quick(Sem::mlp, 3)),
            b = learn(x, {}, large, quick(Sem::mlp, 3));
  BOOST_TEST((a.weights == b.weights));
  for (const double w : a.weights.values) BOOST_TEST(std::isfinite(w));
}

BOOST_AUTO_TEST_CASE(bad_designs_are_named) {
  const Matrix x = chain(30, 3, 13);
  const auto refuses = [&](Status status, const std::string& part, const Design& d) {
    return fails_with(status, part, [&] { learn(x, {}, d, quick(Sem::linear, 1)); });
  };
  Design d;
  d.weight.assign(29, 1);
  BOOST_TEST(refuses(Status::dim_mismatch, "weight has 29 values; it must have 30", d));
  d.weight.assign(30, 1);
  d.weight[4] = -1;
  BOOST_TEST(refuses(Status::invalid_argument, "weight is -1 at row 4 (counted from 0)", d));
  d.weight.assign(30, 0);
  BOOST_TEST(refuses(Status::invalid_argument, "weight is positive for 0 rows; at least 10", d));
  for (std::size_t i = 0; i < 15; ++i) d.weight[i] = i < 9 ? 1 : 1e-320;
  BOOST_TEST(refuses(Status::invalid_argument, "x has 9 rows with a weight and a value", d));
  d = {};
  d.batch.assign(30, 0);
  d.batch[0] = 9;
  BOOST_TEST(refuses(Status::invalid_argument, "batch 9 has one row only", d));
  d.batch.assign(3, 0);
  BOOST_TEST(refuses(Status::dim_mismatch, "batch has 3 values", d));
  d = {};
  d.perturbed = {{30, 0}};
  BOOST_TEST(refuses(Status::invalid_argument, "a row of perturbed has the number 30", d));
  d.perturbed = {{0, 3}};
  BOOST_TEST(refuses(Status::invalid_argument, "a column of perturbed has the number 3", d));
}

BOOST_AUTO_TEST_SUITE_END()
