// Interventions of unknown effect: what they were aimed at, and what that is found to do.
#define BOOST_TEST_MODULE contexts
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>
import cape;
#include "errors.hpp"

namespace {

using cape::Dag;
using cape::DagOptions;
using cape::Edge;
using cape::Matrix;
using cape::Perturbation;
using cape::Prior;
using cape::Rng;
using cape::Run;
using cape::Sem;
using cape::Status;
using test::fails_with;

bool has(const Dag& dag, std::int64_t from, std::int64_t to) {
  return std::ranges::any_of(dag.graph.edges(),
                             [&](const Edge& e) { return e.from == from && e.to == to; });
}

std::vector<Perturbation> first_rows(std::int64_t count, std::int64_t column) {
  std::vector<Perturbation> out;
  for (std::int64_t i = 0; i < count; ++i) out.push_back({i, column});
  return out;
}

Dag learn(const Matrix& x, const Prior& prior, Sem sem, bool standardize, int threads = 2) {
  DagOptions options;
  options.sem = sem;
  options.standardize = standardize;
  options.refine = cape::Refine::always;
  Run run(3, threads);
  return cape::learn_dag(x, options, run, prior);
}

constexpr std::int64_t rows = 600, aimed = 200;

// Column 0 is knocked out in the first rows and keeps its values, as mRNA may; what it does, 1 does
// no more there, and 2 follows 1. Column 3 has nothing to do with it.
Matrix silent_knock_out(std::uint64_t seed) {
  Matrix x(rows, 4);
  Rng rng(seed);
  for (std::int64_t i = 0; i < rows; ++i) {
    x(i, 0) = rng.normal();
    x(i, 1) = (i < aimed ? -1.5 : 0) + rng.normal();
    x(i, 2) = 0.9 * x(i, 1) + rng.normal();
    x(i, 3) = rng.normal();
  }
  return x;
}

} // namespace

BOOST_AUTO_TEST_CASE(what_masking_loses_is_found) {
  for (const Sem sem : {Sem::linear, Sem::mlp})
    for (const bool standardize : {false, true}) {
      const Matrix x = silent_knock_out(1);
      Prior masked, prior;
      masked.design.perturbed = prior.design.targeted = first_rows(aimed, 0);
      DagOptions options;
      options.sem = sem;
      options.standardize = standardize;
      Run run(3, 2);
      BOOST_TEST(!has(cape::learn_dag(x, options, run, masked), 0, 1));
      const Dag dag = learn(x, prior, sem, standardize);
      BOOST_TEST(dag.refined);
      BOOST_TEST((has(dag, 0, 1) && !has(dag, 0, 3) && !has(dag, 3, 1)));
      BOOST_TEST((has(dag, 1, 2) || has(dag, 2, 1)));
      // What it explains: 1.5^2 * 2 / 9 = .5 of 1.5.
      for (const Edge& e : dag.graph.edges())
        if (e.from == 0 && e.to == 1 && has(dag, 1, 2))
          BOOST_TEST(std::fabs(e.weight - std::sqrt(1.0 / 3)) < 0.06);
      // Nothing else of the added column is left.
      BOOST_TEST((dag.graph.size() == 4 && dag.weights.rows == 4 && dag.support.cols == 4));
      BOOST_TEST((dag.statistic.rows == 4 && dag.partners.cols == 4 && dag.sign.rows == 4));
      BOOST_TEST((dag.center.size() == 4u && dag.deviation.size() == 4u && dag.order.size() == 4u));
      BOOST_TEST((dag.weights(0, 1) > 0 && dag.support(0, 1) > 0 && dag.statistic(0, 1) > 3));
      BOOST_TEST(dag.weights(0, 0) == 0);
    }
}

// Of two columns on a line whose noise has the normal distribution, nothing but the intervention
// tells which is the cause.
BOOST_AUTO_TEST_CASE(directions_are_those_of_interventions) {
  int forth = 0, back = 0;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    Matrix x(rows, 2);
    Rng rng(seed);
    for (std::int64_t i = 0; i < rows; ++i) {
      x(i, 0) = rng.normal() + (i < aimed ? 2 : 0);
      x(i, 1) = x(i, 0) + rng.normal();
    }
    Prior prior;
    prior.design.targeted = first_rows(aimed, 0);
    forth += has(learn(x, prior, Sem::mlp, true), 0, 1);
    Matrix turned(rows, 2);
    for (std::int64_t i = 0; i < rows; ++i) turned(i, 0) = x(i, 1), turned(i, 1) = x(i, 0);
    prior.design.targeted = first_rows(aimed, 1);
    back += has(learn(turned, prior, Sem::mlp, true), 1, 0);
  }
  BOOST_TEST((forth == 5 && back == 5), forth << " and " << back);
}

BOOST_AUTO_TEST_CASE(knowledge_of_the_target_is_kept) {
  const Matrix x = silent_knock_out(2);
  Prior prior;
  prior.design.targeted = first_rows(aimed, 0);
  BOOST_TEST_REQUIRE(has(learn(x, prior, Sem::linear, false), 0, 1));
  const auto found = [&](const std::function<void(cape::Knowledge&)>& set) {
    Prior known = prior;
    set(known.knowledge);
    return has(learn(x, known, Sem::linear, false), 0, 1);
  };
  BOOST_TEST(!found([](auto& k) { k.forbidden = {{0, 1, 1}}; }));
  BOOST_TEST(!found([](auto& k) { k.leaves = {0}; }));
  BOOST_TEST(!found([](auto& k) { k.regulators = {1, 2}; }));
  BOOST_TEST(!found([](auto& k) { k.tier = {1, 0, -1, -1}; }));
  BOOST_TEST(found([](auto& k) { k.tier = {0, 1, -1, -1}; }));
  BOOST_TEST(found([](auto& k) { k.regulators = {0, 1}; }));
  BOOST_TEST(found([](auto& k) {
    k.penalty = Matrix(4, 4);
    std::fill_n(k.penalty.data(), 16, 1.0);
  }));
}

// 1 causes 0, and what is aimed at 0 changes 1: no graph without cycles has both.
BOOST_AUTO_TEST_CASE(the_result_is_acyclic_and_its_bits_do_not_depend_on_threads) {
  Matrix x(rows, 3);
  Rng rng(4);
  for (std::int64_t i = 0; i < rows; ++i) {
    x(i, 1) = rng.normal() - (i < aimed ? 1.5 : 0);
    x(i, 0) = std::sin(2 * x(i, 1)) * 2 + rng.normal();
    x(i, 2) = rng.normal();
  }
  Prior prior;
  prior.design.targeted = first_rows(aimed, 0);
  for (std::int64_t i = 0; i < rows; ++i) prior.design.batch.push_back(i % 2);
  const Dag one = learn(x, prior, Sem::mlp, true, 1), two = learn(x, prior, Sem::mlp, true, 2);
  BOOST_TEST(cape::is_acyclic(one.graph));
  BOOST_TEST((has(one, 0, 1) != has(one, 1, 0)));
  BOOST_TEST(one.n_removed_for_acyclicity > 0);
  BOOST_TEST((one.graph.edges() == two.graph.edges() && one.weights == two.weights));
}

BOOST_AUTO_TEST_CASE(interventions_that_tell_nothing) {
  const Matrix x = silent_knock_out(5);
  Prior everywhere;
  everywhere.design.targeted = first_rows(rows, 0);
  const Dag without = learn(x, {}, Sem::linear, true);
  BOOST_TEST((learn(x, everywhere, Sem::linear, true).weights == without.weights));
  // A target without variance has no edges.
  Matrix flat = x;
  for (std::int64_t i = 0; i < rows; ++i) flat(i, 0) = 7;
  Prior prior;
  prior.design.targeted = first_rows(aimed, 0);
  const Dag dag = learn(flat, prior, Sem::linear, true);
  BOOST_TEST((dag.constant == std::vector<std::int64_t>{0}));
  for (const Edge& e : dag.graph.edges()) BOOST_TEST(e.from != 0);
}

BOOST_AUTO_TEST_CASE(bad_targets) {
  const Matrix x = silent_knock_out(6);
  const auto refused = [&](Perturbation p, std::int64_t rank, const char* what) {
    Prior prior;
    prior.design.targeted = {p};
    DagOptions options;
    options.sem = Sem::linear;
    options.rank = rank;
    Run run;
    BOOST_TEST(fails_with(Status::invalid_argument, what,
                          [&] { cape::learn_dag(x, options, run, prior); }));
  };
  refused({rows, 0}, 0, "a row of targeted");
  refused({0, 4}, 0, "a column of targeted");
  refused({0, 0}, 2, "dag.rank");
}
