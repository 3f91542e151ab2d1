// Learning with candidate causes: their choice, and that the packed model is the full one.
#define BOOST_TEST_MODULE candidates
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
#include "tables.hpp"

namespace {

using cape::BasicMatrix;
using cape::Dag;
using cape::DagOptions;
using cape::Matrix;
using cape::Rng;
using cape::Run;
using cape::Status;
using test::fails_with;
using test::noise;

bool has(const BasicMatrix<std::int64_t>& causes, std::int64_t i, std::int64_t j) {
  return std::find(causes.column(j), causes.column(j) + causes.rows(), i) !=
         causes.column(j) + causes.rows();
}

DagOptions with_candidates(std::int64_t count) {
  DagOptions o;
  o.refine = cape::Refine::never;
  o.candidates = count;
  return o;
}

Dag learn(const Matrix& x, const DagOptions& options, int threads = 1) {
  Run run(1, threads);
  return cape::learn_dag(x, options, run);
}

} // namespace

BOOST_AUTO_TEST_CASE(are_other_columns_by_rising_number) {
  const Matrix x = noise(60, 12, 1);
  Run run;
  const auto causes = cape::candidate_causes(x, 5, run);
  BOOST_TEST_REQUIRE(causes.rows() == 5);
  BOOST_TEST_REQUIRE(causes.cols() == 12);
  for (std::int64_t j = 0; j < 12; ++j) {
    BOOST_TEST(!has(causes, j, j));
    BOOST_TEST((causes(0, j) >= 0 && causes(4, j) < 12));
    for (std::int64_t c = 1; c < 5; ++c) BOOST_TEST(causes(c - 1, j) < causes(c, j));
  }
}

// Correlations with the effect: linear 0.7; the even one has none, but |x| has 0.6 or so.
BOOST_AUTO_TEST_CASE(see_monotone_and_even_effects) {
  Matrix x = noise(2000, 40, 2);
  for (std::int64_t r = 0; r < x.rows(); ++r) {
    x(r, 20) += x(r, 3);
    x(r, 30) += x(r, 4) * x(r, 4);
  }
  Run run;
  auto causes = cape::candidate_causes(x, 1, run);
  BOOST_TEST(causes(0, 20) == 3);
  BOOST_TEST(causes(0, 30) == 4);
  for (std::int64_t r = 0; r < x.rows(); ++r) // of the rounding of a constant nothing is a cause
    x(r, 3) = 1e9 / 7 * (x(r, 20) > 0 ? 1 : 1 + 0x1p-52);
  BOOST_TEST(cape::candidate_causes(x, 1, run)(0, 20) != 3);
  for (std::int64_t r = 0; r < x.rows(); ++r) x(r, 3) = 0;
  causes = cape::candidate_causes(x, 1, run);
  for (const int exponent : {1015, 600, -600, -1000}) { // squares leave the doubles
    Matrix scaled = x;
    for (std::int64_t e = 0; e < x.size(); ++e)
      scaled.data()[e] = std::ldexp(x.data()[e], exponent);
    const auto of_scaled = cape::candidate_causes(scaled, 1, run);
    BOOST_TEST(std::equal(causes.data(), causes.data() + causes.size(), of_scaled.data()));
  }
}

BOOST_AUTO_TEST_CASE(hold_nearly_all_true_causes) {
  cape::GraphOptions graph; // no hubs with more causes than there are candidates
  graph.model = cape::GraphModel::erdos_renyi;
  const cape::Digraph truth = cape::simulate_dag(300, graph, 3);
  const Matrix x = cape::simulate_data(truth, 4000, {}, 3);
  Run run;
  const auto causes = cape::candidate_causes(x, 48, run);
  const auto found = std::ranges::count_if(
      truth.edges(), [&](const cape::Edge& e) { return has(causes, e.from, e.to); });
  BOOST_TEST_MESSAGE("recall " << found << " of " << truth.edges().size());
  BOOST_TEST(static_cast<double>(found) >= 0.95 * static_cast<double>(truth.edges().size()));
}

// Weights of the packed model, put into the places of the full one, give the same loss and the same
// gradient at those places: the score, the penalties, and h on the sparse pattern.
BOOST_AUTO_TEST_CASE(leave_the_objective_what_it_is) {
  constexpr std::int64_t m = 9, p = 4, rows = 70;
  const Matrix x = noise(rows, m, 4);
  for (const double scale : {0.05, 0.5, 3.0}) {
    DagOptions packed = with_candidates(p), full;
    packed.hidden = full.hidden = 3;
    const auto n_packed = cape::dag_parameter_count(m, packed);
    BOOST_TEST_REQUIRE(n_packed == m * p * 3 + 2 * m * 3 + m);
    std::vector<double> small(static_cast<std::size_t>(n_packed)),
        large(static_cast<std::size_t>(cape::dag_parameter_count(m, full)));
    Rng rng(5);
    for (double& v : small) v = scale * rng.normal();
    small[2] = 0;
    Run run;
    const auto causes = cape::candidate_causes(x, p, run);
    std::vector<std::size_t> place;
    for (std::int64_t u = 0; u < m * 3; ++u)
      for (std::int64_t c = 0; c < p; ++c)
        place.push_back(static_cast<std::size_t>(u * m + causes(c, u / 3)));
    for (std::int64_t rest = 0; rest < 2 * m * 3 + m; ++rest)
      place.push_back(static_cast<std::size_t>(m * m * 3 + rest));
    for (std::size_t e = 0; e < place.size(); ++e) large[place[e]] = small[e];

    std::vector<double> gradient, expected;
    const double loss = cape::dag_loss(x, small, 1.5, 0.5, packed, &gradient);
    BOOST_TEST(loss == cape::dag_loss(x, large, 1.5, 0.5, full, &expected),
               boost::test_tools::tolerance(1e-12));
    BOOST_TEST_REQUIRE(std::ssize(gradient) == n_packed);
    double largest = 0;
    for (const double g : expected) largest = std::max(largest, std::fabs(g));
    for (std::size_t e = 0; e < place.size(); ++e)
      BOOST_TEST(std::fabs(gradient[e] - expected[place[e]]) <= 1e-12 * largest);
  }
}

// What alpha adds to the loss and to its gradient: h and dh/dW, by the sparse sums in float and in
// double on all pairs. From nearly no cycles to where walks leave the range of float's sums.
BOOST_AUTO_TEST_CASE(in_float_give_the_constraint_of_all_pairs_in_double) {
  constexpr std::int64_t m = 50, p = 6, hidden = 2;
  const Matrix x = noise(40, m, 11);
  Run run;
  const auto causes = cape::candidate_causes(x, p, run);
  struct Case {
    double scale, alpha; // so that the constraint outweighs the rest
  };
  for (const auto [scale, alpha] :
       {Case{0.003, 1e10}, Case{0.05, 1e6}, Case{0.5, 1e3}, Case{2.2, 1}}) {
    DagOptions o = with_candidates(p);
    o.hidden = hidden;
    o.precision = cape::Precision::float32;
    std::vector<double> parameters(static_cast<std::size_t>(cape::dag_parameter_count(m, o)));
    Rng rng(12);
    for (std::size_t e = 0; e < std::size_t{m * p * hidden}; ++e)
      parameters[e] = static_cast<float>(scale * rng.normal());
    Matrix a(m, m), slope; // h depends on the strengths |a_ij|^2 = sum_k W_ijk^2 alone
    for (std::int64_t j = 0; j < m; ++j)
      for (std::int64_t c = 0; c < p; ++c)
        for (std::int64_t u = 0; u < hidden; ++u)
          a(causes(c, j), j) = std::hypot(
              a(causes(c, j), j), parameters[static_cast<std::size_t>((j * hidden + u) * p + c)]);
    const double h = cape::acyclicity(a, cape::Constraint::expm, &slope); // slope = 2 a dh/dS

    std::vector<double> with, without;
    const double added = cape::dag_loss(x, parameters, 0, alpha, o, &with) -
                         cape::dag_loss(x, parameters, 0, 0, o, &without);
    BOOST_TEST_CONTEXT("scale " << scale << ", h " << h) {
      BOOST_TEST(added == alpha * h, boost::test_tools::tolerance(1e-5));
      double largest = 0, error = 0;
      for (std::int64_t j = 0; j < m; ++j)
        for (std::int64_t u = j * hidden; u < (j + 1) * hidden; ++u)
          for (std::int64_t c = 0; c < p; ++c) {
            const auto e = static_cast<std::size_t>(u * p + c);
            const std::int64_t i = causes(c, j);
            const double expected = alpha * slope(i, j) * parameters[e] / a(i, j);
            largest = std::max(largest, std::fabs(expected));
            error = std::max(error, std::fabs(with[e] - without[e] - expected));
          }
      BOOST_TEST(error <= 1e-5 * largest);
    }
  }
}

BOOST_AUTO_TEST_CASE(of_all_other_columns_change_no_bit) {
  const Matrix x = cape::simulate_data(cape::simulate_dag(6, {}, 6), 300, {}, 6);
  DagOptions o = with_candidates(5);
  o.epochs = 10;
  const Dag dag = learn(x, o);
  o.candidates = -1;
  BOOST_TEST((dag.weights == learn(x, o).weights));
}

BOOST_AUTO_TEST_CASE(give_a_graph_about_as_good_and_no_edge_outside) {
  cape::GraphOptions graph;
  graph.model = cape::GraphModel::erdos_renyi;
  const cape::Digraph truth = cape::simulate_dag(60, graph, 7);
  const Matrix x = cape::simulate_data(truth, 1500, {}, 7);
  const auto auprc = [&](const Dag& dag) {
    return cape::compare_scores(to_matrix(dag.weights), truth).auprc;
  };
  const Dag full = learn(x, with_candidates(-1)), packed = learn(x, with_candidates(20));
  BOOST_TEST_MESSAGE("AUPRC of all pairs " << auprc(full) << ", of candidates " << auprc(packed));
  BOOST_TEST(auprc(packed) >= 0.95 * auprc(full));
  BOOST_TEST(cape::is_acyclic(packed.graph));
  BOOST_TEST(packed.converged);
  for (std::int64_t j = 0; j < 60; ++j)
    BOOST_TEST(
        packed.weights.offsets[std::size_t(j) + 1] - packed.weights.offsets[std::size_t(j)] <= 20);
}

BOOST_AUTO_TEST_CASE(give_the_same_bits_for_any_number_of_threads) {
  const Matrix x = cape::simulate_data(cape::simulate_dag(70, {}, 8), 400, {}, 8);
  DagOptions o = with_candidates(12);
  o.epochs = 10;
  const Dag one = learn(x, o), three = learn(x, o, 3);
  BOOST_TEST((one.weights == three.weights && one.sign == three.sign && one.h == three.h));
}

BOOST_AUTO_TEST_CASE(hold_what_the_user_requires) {
  const Matrix x = noise(300, 30, 9);
  cape::Knowledge knowledge;
  knowledge.required = {{4, 17, 0}, {5, 17, 0}};
  knowledge.forbidden = {{6, 17, 0}};
  DagOptions o = with_candidates(2);
  o.epochs = 10;
  Run run;
  const Dag dag = cape::learn_dag(x, o, run, {knowledge, {}});
  BOOST_TEST((dag.weights(4, 17) != 0 && dag.weights(5, 17) != 0)); // no room for others
  for (const std::int64_t i : {4, 5})
    BOOST_TEST(std::ranges::any_of(dag.graph.edges(),
                                   [&](const cape::Edge& e) { return e.from == i && e.to == 17; }));
  BOOST_TEST(dag.weights(6, 17) == 0);
}

// The view claims columns that are not there: they must not be read.
BOOST_AUTO_TEST_CASE(fit_where_all_pairs_are_refused_with_the_numbers) {
  const double nothing = 0;
  const std::int64_t m = 2'000'000;
  const cape::MatrixView x{&nothing, 10, m, 10};
  Run run;
  BOOST_TEST(fails_with(Status::out_of_memory, "a graph of 2000000 features from 10 observations",
                        [&] { cape::learn_dag(x, DagOptions(), run); }));
  BOOST_TEST(cape::learn_dag_memory(10, m, with_candidates(4)) <
             1e-4 * cape::learn_dag_memory(10, m, DagOptions()));
}

BOOST_AUTO_TEST_CASE(are_refused_where_they_mean_nothing) {
  const Matrix x = noise(50, 6, 10);
  Run run;
  for (const std::int64_t count : {0, -3, 6})
    BOOST_TEST(fails_with(Status::invalid_argument, "count is " + std::to_string(count),
                          [&] { cape::candidate_causes(x, count, run); }));
  Matrix bad = x;
  bad(2, 3) = std::numeric_limits<double>::quiet_NaN();
  BOOST_TEST(
      fails_with(Status::invalid_argument, "x", [&] { cape::candidate_causes(bad, 2, run); }));
  DagOptions o = with_candidates(2);
  o.constraint = cape::Constraint::logdet;
  BOOST_TEST(fails_with(Status::invalid_argument, "dag.candidates is 2", [&] { learn(x, o); }));
  o = with_candidates(0);
  BOOST_TEST(fails_with(Status::invalid_argument, "dag.candidates", [&] { learn(x, o); }));
}
