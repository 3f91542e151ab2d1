// Step I with A = UV' of low rank: h against the dense one, gradients against central differences,
// and what it learns where the rank is low.
#define BOOST_TEST_MODULE low_rank
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>
import cape;
#include "errors.hpp"
#include "occasions.hpp"
#include "row_source.hpp"
#include "tables.hpp"

namespace {

using cape::Constraint;
using cape::Dag;
using cape::DagOptions;
using cape::Knowledge;
using cape::Matrix;
using cape::Refine;
using cape::Rng;
using cape::Run;
using cape::Sem;
using cape::Status;
using test::fails_with;
using test::random_matrix;
using test::rows_of;

Matrix product(const Matrix& u, const Matrix& v) {
  Matrix a(u.rows(), v.rows());
  for (std::int64_t j = 0; j < v.rows(); ++j)
    for (std::int64_t i = 0; i < u.rows(); ++i)
      for (std::int64_t k = 0; k < u.cols(); ++k) a(i, j) += u(i, k) * v(j, k);
  return a;
}

// Columns a and b of both by the same angle.
void rotate(Matrix& u, Matrix& v, std::int64_t a, std::int64_t b) {
  for (Matrix* f : {&u, &v})
    for (std::int64_t i = 0; i < f->rows(); ++i) {
      const double x = (*f)(i, a), y = (*f)(i, b);
      (*f)(i, a) = 0.6 * x - 0.8 * y;
      (*f)(i, b) = 0.8 * x + 0.6 * y;
    }
}

DagOptions of_rank(std::int64_t rank) {
  DagOptions o;
  o.sem = Sem::linear;
  o.rank = rank;
  o.refine = Refine::never;
  return o;
}

struct Regulated {
  Matrix a; ///< rank `causes` at most
  Matrix x;
};
// `causes` columns that have `effects` effects each, with weights of 0.5 to 2 in size, in random
// places; rows with normal noise.
Regulated regulated(std::int64_t columns, std::int64_t causes, std::int64_t effects,
                    std::int64_t rows, std::uint64_t seed) {
  Rng rng(seed);
  const std::vector<std::int64_t> order = rng.permutation(columns);
  Regulated r{Matrix(columns, columns), Matrix(rows, columns)};
  for (std::int64_t c = 0; c < causes; ++c) {
    std::vector<std::int64_t> later = rng.permutation(columns - c - 1);
    later.resize(static_cast<std::size_t>(effects));
    for (const std::int64_t place : later)
      r.a(order[static_cast<std::size_t>(c)], order[static_cast<std::size_t>(c + 1 + place)]) =
          (rng.uniform() < 0.5 ? -1 : 1) * rng.uniform(0.5, 2);
  }
  for (const std::int64_t j : order)
    for (std::int64_t i = 0; i < rows; ++i) {
      r.x(i, j) = rng.normal();
      for (std::int64_t k = 0; k < columns; ++k)
        if (r.a(k, j) != 0) r.x(i, j) += r.a(k, j) * r.x(i, k);
    }
  return r;
}

// Pairs of columns that are not joined as they should be.
std::int64_t wrong_pairs(const Matrix& truth, const cape::Digraph& graph) {
  Matrix found(truth.rows(), truth.cols());
  for (const cape::Edge& e : graph.edges()) found(e.from, e.to) = 1;
  std::int64_t wrong = 0;
  for (std::int64_t j = 0; j < truth.cols(); ++j)
    for (std::int64_t i = 0; i < j; ++i)
      wrong += (truth(i, j) != 0) != (found(i, j) != 0) || (truth(j, i) != 0) != (found(j, i) != 0);
  return wrong;
}

} // namespace

BOOST_AUTO_TEST_SUITE(h)

// 3 x 3: A is formed; the others have more rows than pairs of columns of U.
BOOST_AUTO_TEST_CASE(agrees_with_that_of_the_dense_product) {
  struct Size {
    std::int64_t m, r;
    double scale;
  };
  for (const auto& [m, r, scale] : {Size{3, 3, 0.7}, {40, 1, 0.3}, {40, 2, 0.35}, {60, 4, 0.25},
                                    {300, 3, 0.2}, {300, 10, 0.1}, {56, 10, 0.3}, {50, 10, 0.3}}) {
    const Matrix u = random_matrix(m, r, scale, 1), v = random_matrix(m, r, scale, 2);
    Matrix gradient, u_gradient, v_gradient;
    const double h = cape::acyclicity(product(u, v), Constraint::expm, &gradient);
    BOOST_TEST_CONTEXT("M = " << m << ", r = " << r << ", h = " << h) {
      BOOST_TEST(cape::low_rank_acyclicity(u, v, &u_gradient, &v_gradient) == h,
                 boost::test_tools::tolerance(1e-10));
      // dh/dU = (dh/dA) V, dh/dV = (dh/dA)' U.
      Matrix transposed(m, m), v_columns(r, m), u_columns(r, m);
      for (std::int64_t j = 0; j < m; ++j) {
        for (std::int64_t i = 0; i < m; ++i) transposed(i, j) = gradient(j, i);
        for (std::int64_t k = 0; k < r; ++k) v_columns(k, j) = v(j, k), u_columns(k, j) = u(j, k);
      }
      const Matrix u_expected = product(gradient, v_columns),
                   v_expected = product(transposed, u_columns);
      double size = 0, error = 0;
      for (std::int64_t e = 0; e < u.size(); ++e) {
        size = std::max({size, std::fabs(u_expected.data()[e]), std::fabs(v_expected.data()[e])});
        error = std::max({error, std::fabs(u_gradient.data()[e] - u_expected.data()[e]),
                          std::fabs(v_gradient.data()[e] - v_expected.data()[e])});
      }
      BOOST_TEST(error <= 1e-10 * size);
    }
  }
}

// Four layers of 100 nodes: three pairs of factors lead from a layer to all later ones, and one
// more, of the size `back`, from the last to the first, which closes the cycles. Rotating the
// columns of U and V together leaves A as it is, and nothing of that structure in the products.
BOOST_AUTO_TEST_CASE(is_exact_enough_for_its_tolerance_where_it_is_small) {
  constexpr std::int64_t m = 400, layer = 100, r = 7;
  for (const double forth : {0.3, 0.6})
    for (const double back : {1e-2, 1e-3, 1e-4, 0.0}) {
      Matrix u = random_matrix(m, r, forth, 3), v = random_matrix(m, r, forth, 4);
      for (std::int64_t i = 0; i < m; ++i)
        for (std::int64_t k = 0; k < r; ++k) {
          if (i / layer != k / 2) u(i, k) = 0;
          if (k < 6 && i / layer <= k / 2) v(i, k) = 0;
          if (k == 6) v(i, k) *= i < layer ? back : 0;
        }
      const double dense = cape::acyclicity(product(u, v), Constraint::expm);
      for (std::int64_t b = 1; b < r; ++b)
        for (std::int64_t a = 0; a < b; ++a) rotate(u, v, a, b);
      const double low_rank = cape::low_rank_acyclicity(u, v);
      BOOST_TEST_MESSAGE("h " << dense << ", off by " << low_rank - dense);
      BOOST_TEST(std::fabs(low_rank - dense) <= 1e-10 * dense + 1e-11);
      BOOST_TEST(low_rank >= 0);
    }
}

BOOST_AUTO_TEST_CASE(is_finite_for_any_factors) {
  for (const auto& [m, r] : {std::pair{4, 3}, {30, 2}})
    for (const double size : {10.0, 1e10, 1e100, 1e300}) {
      Matrix u_gradient, v_gradient;
      const double h = cape::low_rank_acyclicity(random_matrix(m, r, size, 4),
                                                 random_matrix(m, r, size, 5), &u_gradient,
                                                 &v_gradient);
      BOOST_TEST(h == std::numeric_limits<double>::max());
      double steepest = 0;
      for (const Matrix* g : {&u_gradient, &v_gradient})
        for (std::int64_t e = 0; e < g->size(); ++e) {
          BOOST_TEST_REQUIRE(std::isfinite(g->data()[e]));
          steepest = std::max(steepest, std::fabs(g->data()[e]));
        }
      BOOST_TEST(steepest > 0);
    }
  BOOST_TEST(cape::low_rank_acyclicity(Matrix(30, 2), Matrix(30, 2)) == 0);
  BOOST_TEST(cape::low_rank_acyclicity(Matrix(0, 2), Matrix(0, 2)) == 0);
}

BOOST_AUTO_TEST_CASE(of_bad_factors_is_an_error) {
  const Matrix u = random_matrix(5, 2, 1, 1);
  BOOST_TEST(fails_with(Status::dim_mismatch,
                        [&] { cape::low_rank_acyclicity(u, random_matrix(5, 3, 1, 1)); }));
  BOOST_TEST(fails_with(Status::dim_mismatch,
                        [&] { cape::low_rank_acyclicity(u, random_matrix(4, 2, 1, 1)); }));
  BOOST_TEST(fails_with(Status::dim_mismatch,
                        [] { cape::low_rank_acyclicity(Matrix(5, 0), Matrix(5, 0)); }));
  Matrix bad = u;
  bad(3, 1) = std::numeric_limits<double>::quiet_NaN();
  BOOST_TEST(fails_with(Status::invalid_argument, [&] { cape::low_rank_acyclicity(u, bad); }));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(objective)

// -ELBO of z = x - x(A - diag A) plus lambda sum_a |u_a||v_a| + rho/2 h^2 + alpha h, as loops.
BOOST_AUTO_TEST_CASE(is_its_definition) {
  constexpr std::int64_t n = 30, m = 8, r = 2;
  const Matrix x = random_matrix(n, m, 1, 6), u = random_matrix(m, r, 0.3, 7),
               v = random_matrix(m, r, 0.3, 8);
  const Matrix a = product(u, v);
  double squares = 0, absolute = 0;
  for (std::int64_t j = 0; j < m; ++j)
    for (std::int64_t i = 0; i < n; ++i) {
      double z = x(i, j);
      for (std::int64_t k = 0; k < m; ++k)
        if (k != j) z -= x(i, k) * a(k, j);
      squares += z * z;
    }
  for (std::int64_t k = 0; k < r; ++k) {
    double u_size = 0, v_size = 0;
    for (std::int64_t i = 0; i < m; ++i) u_size += std::fabs(u(i, k)), v_size += std::fabs(v(i, k));
    absolute += u_size * v_size;
  }
  const double h = cape::acyclicity(a, Constraint::expm);
  std::vector<double> parameters(u.data(), u.data() + u.size());
  parameters.insert(parameters.end(), v.data(), v.data() + v.size());
  DagOptions options = of_rank(r);
  options.lambda = 0.3;
  BOOST_TEST(cape::dag_parameter_count(m, options) == 2 * m * r);
  BOOST_TEST(cape::dag_loss(x, parameters, 3, 5, options) ==
                 0.5 * squares / n + 0.3 * absolute + 1.5 * h * h + 5 * h,
             boost::test_tools::tolerance(1e-10));
}

BOOST_AUTO_TEST_CASE(gradient_agrees_with_central_differences) {
  constexpr std::int64_t n = 25;
  for (const bool standardize : {false, true})
    for (const auto& [m, r] : {std::pair{5, 3}, {12, 2}}) {
      Matrix x = random_matrix(n, m, 1, 9);
      DagOptions options = of_rank(r);
      options.standardize = standardize;
      options.lambda = 0.2;
      options.missing = cape::Missing::mask;
      x(3, 2) = std::numeric_limits<double>::quiet_NaN();
      std::vector<double> p(static_cast<std::size_t>(cape::dag_parameter_count(m, options)));
      Rng rng(10);
      for (double& value : p) value = 0.4 * rng.normal();
      std::vector<double> gradient;
      cape::dag_loss(x, p, 2, 0.7, options, &gradient);
      BOOST_TEST_REQUIRE(gradient.size() == p.size());
      for (std::size_t e = 0; e < p.size(); ++e) {
        constexpr double step = 1e-5;
        std::vector<double> high = p, low = p;
        high[e] += step;
        low[e] -= step;
        const double slope = (cape::dag_loss(x, high, 2, 0.7, options) -
                              cape::dag_loss(x, low, 2, 0.7, options)) /
                             (2 * step);
        BOOST_TEST(std::fabs(gradient[e] - slope) < 1e-6 * std::max(1.0, std::fabs(slope)));
      }
    }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(fit)

// 60 columns of which 5 have effects: the rank of A is 5. With no more than that some fits end in a
// local minimum.
BOOST_AUTO_TEST_CASE(finds_graphs_of_few_causes) {
  std::int64_t low_rank = 0, full = 0, edges = 0;
  for (const std::uint64_t seed : {1, 2, 3}) {
    const Regulated truth = regulated(60, 5, 11, 1000, seed);
    Run run(seed, 1);
    const Dag dag = cape::learn_dag(truth.x, of_rank(8), run);
    BOOST_TEST(dag.converged);
    low_rank += wrong_pairs(truth.a, dag.graph);
    full += wrong_pairs(truth.a, cape::learn_dag(truth.x, of_rank(0), run).graph);
    edges += 55;
    BOOST_TEST_MESSAGE("wrong pairs: " << low_rank << ", full rank " << full << " of " << edges);
  }
  BOOST_TEST(low_rank <= edges / 6);
  BOOST_TEST(2 * low_rank < full);
}

BOOST_AUTO_TEST_CASE(is_the_same_for_any_number_of_threads) {
  const Regulated truth = regulated(150, 4, 10, 300, 4);
  DagOptions options = of_rank(16); // 136 pairs: products of columns and of rows in two tasks
  options.epochs = 4;
  Run one(5, 1), three(5, 3);
  const Dag a = cape::learn_dag(truth.x, options, one);
  const Dag b = cape::learn_dag(truth.x, options, three);
  BOOST_TEST((a.weights == b.weights && a.h == b.h));
  BOOST_TEST(a.history.back().loss == b.history.back().loss);
  // And the same from a source of rows.
  BOOST_TEST((cape::learn_dag(rows_of(truth.x), options, one).weights == a.weights));
}

// h from the products of pairs of columns, which are 2 M r^3 operations or more.
BOOST_AUTO_TEST_CASE(can_be_stopped_at_any_moment) {
  const Matrix x = random_matrix(150, 1000, 1, 11);
  constexpr double operations = 20 * 2.0 * 1000 * 40 * 40 * 40; // of 20 renewals of h
  std::int64_t before = 0;
  const test::Occasions seen = test::occasions(
      [&](Run& run) { cape::learn_dag(x, of_rank(40), run); },
      [&](const cape::Progress& p) {
        before += p.step == 0;
        return p.step == 2;
      });
  BOOST_TEST(static_cast<double>(seen.count - before) >= operations / test::piece);
  BOOST_TEST(seen.after_cancelling == 0);
}

BOOST_AUTO_TEST_CASE(goes_on_from_a_checkpoint_with_the_same_bits) {
  // From 128 columns on h is not renewed in every step.
  const Regulated truth = regulated(140, 4, 10, 300, 6);
  DagOptions options = of_rank(5);
  options.epochs = 8;
  Run run(7, 1);
  const Dag whole = cape::learn_dag(truth.x, options, run);
  cape::Checkpoint checkpoint;
  Run stopped(7, 1, [](const cape::Progress& p) { return p.step < 200; });
  BOOST_TEST(fails_with(Status::cancelled, [&] {
    cape::learn_dag(truth.x, options, stopped, {}, &checkpoint);
  }));
  BOOST_TEST(checkpoint.epoch >= 1);
  const Dag rest = cape::learn_dag(truth.x, options, run, {}, &checkpoint);
  BOOST_TEST((rest.weights == whole.weights && rest.h == whole.h));
  options.rank = 6;
  BOOST_TEST(fails_with(Status::invalid_argument, [&] {
    cape::learn_dag(truth.x, options, run, {}, &checkpoint);
  }));
}

BOOST_AUTO_TEST_CASE(keeps_the_weights_above_a_tenth_of_the_threshold) {
  const Regulated truth = regulated(40, 3, 10, 400, 8);
  DagOptions options = of_rank(4);
  options.epochs = 20;
  Run run(9, 1);
  const Dag some = cape::learn_dag(truth.x, options, run);
  options.threshold = 0;
  const Dag all = cape::learn_dag(truth.x, options, run);
  for (std::int64_t j = 0; j < 40; ++j)
    for (std::int64_t i = 0; i < 40; ++i)
      BOOST_TEST_REQUIRE(some.weights(i, j) ==
                         (std::fabs(all.weights(i, j)) > 0.02 ? all.weights(i, j) : 0));
  BOOST_TEST(some.weights(3, 3) == 0);
}

BOOST_AUTO_TEST_CASE(is_refused_where_it_has_no_meaning) {
  const Regulated truth = regulated(20, 3, 5, 50, 10);
  Run run(1, 1);
  const auto refused = [&](const std::function<void(DagOptions&, Knowledge&)>& change) {
    DagOptions options = of_rank(3);
    Knowledge knowledge;
    change(options, knowledge);
    return fails_with(Status::invalid_argument, [&] {
      cape::learn_dag(truth.x, options, run, {knowledge, {}});
    });
  };
  BOOST_TEST(refused([](DagOptions& o, Knowledge&) { o.rank = 21; }));
  BOOST_TEST(refused([](DagOptions& o, Knowledge&) { o.rank = -1; }));
  BOOST_TEST(refused([](DagOptions& o, Knowledge&) { o.sem = Sem::mlp; }));
  BOOST_TEST(refused([](DagOptions& o, Knowledge&) { o.sem = Sem::paper; }));
  BOOST_TEST(refused([](DagOptions& o, Knowledge&) { o.constraint = Constraint::logdet; }));
  BOOST_TEST(refused([](DagOptions& o, Knowledge&) { o.candidates = 5; }));
  BOOST_TEST(refused([](DagOptions&, Knowledge& k) { k.forbidden = {{0, 1, 0}}; }));
  BOOST_TEST(refused([](DagOptions&, Knowledge& k) { k.required = {{0, 1, 0}}; }));
  BOOST_TEST(refused([](DagOptions&, Knowledge& k) { k.penalty = Matrix(20, 20); }));
  BOOST_TEST(refused([](DagOptions&, Knowledge& k) { k.start = {{0, 1, 0.5}}; }));
  BOOST_TEST(refused([](DagOptions&, Knowledge& k) { k.tier = std::vector<std::int64_t>(20, 1); }));

  // Constant columns do not count.
  Matrix x = truth.x;
  for (std::int64_t j = 2; j < 20; ++j)
    for (std::int64_t i = 0; i < 50; ++i) x(i, j) = 1;
  BOOST_TEST(fails_with(Status::invalid_argument, [&] { cape::learn_dag(x, of_rank(3), run); }));
  DagOptions options = of_rank(3);
  BOOST_TEST(fails_with(Status::invalid_argument, [&] { cape::dag_parameter_count(2, options); }));
  BOOST_TEST(fails_with(Status::invalid_argument, [&] { cape::learn_dag_memory(50, 2, options); }));
}

BOOST_AUTO_TEST_SUITE_END()
