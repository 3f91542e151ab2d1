#define BOOST_TEST_MODULE refine
#define BOOST_TEST_NO_MAIN
#include "dag/kernels/node_regression.hpp"
#include "simd/vector_math.hpp"
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <limits>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>
import cape;

namespace {

using cape::DagOptions;
using cape::Edge;
using cape::Matrix;
using cape::Rng;
using cape::Run;
using cape::Status;
using cape::TestedGraph;

// ------------------------------------------------------------ the network, naively and in double

struct Naive {
  std::int64_t inputs, hidden;
  std::vector<double> p; // (inputs + 1) x hidden weights, hidden outputs, inputs + 1 linear

  Naive(std::int64_t n_inputs, std::int64_t n_hidden)
      : inputs(n_inputs), hidden(n_hidden),
        p(static_cast<std::size_t>((inputs + 2) * hidden + inputs + 1)) {}
  double at(std::int64_t i) const { return p[static_cast<std::size_t>(i)]; }

  double predict(const double* x) const { // x ends with the constant 1
    double f = 0;
    for (std::int64_t i = 0; i <= inputs; ++i) f += at((inputs + 2) * hidden + i) * x[i];
    for (std::int64_t k = 0; k < hidden; ++k) {
      double a = 0;
      for (std::int64_t i = 0; i <= inputs; ++i) a += at(i * hidden + k) * x[i];
      f += at((inputs + 1) * hidden + k) / (1 + std::exp(-std::clamp(a, -25.0, 25.0)));
    }
    return f;
  }
};

struct Sample {
  std::int64_t n, inputs;
  std::vector<double> x, y; // rows of inputs + 1

  Sample(std::int64_t rows, std::int64_t n_inputs, Rng& rng) : n(rows), inputs(n_inputs) {
    for (std::int64_t r = 0; r < n; ++r) {
      for (std::int64_t i = 0; i < inputs; ++i) x.push_back(static_cast<float>(rng.normal()));
      x.push_back(1);
      y.push_back(static_cast<float>(rng.normal()));
    }
  }
  const double* row(std::int64_t r) const { return x.data() + r * (inputs + 1); }
  double loss(const Naive& net, const std::vector<std::int64_t>& rows) const {
    double sum = 0;
    for (const std::int64_t r : rows) {
      const double e = net.predict(row(r)) - y[static_cast<std::size_t>(r)];
      sum += e * e;
    }
    return sum / static_cast<double>(rows.size());
  }
  std::vector<double> numeric_gradient(Naive net, const std::vector<std::int64_t>& rows) const {
    std::vector<double> g;
    for (double& value : net.p) {
      const double kept = value, h = 1e-6;
      value = kept + h;
      const double above = loss(net, rows);
      value = kept - h;
      g.push_back((above - loss(net, rows)) / (2 * h));
      value = kept;
    }
    return g;
  }
};

// The same network and table in the form of the kernels.
struct Kernel {
  cape::simd::NodeRegression net;
  cape::simd::Aligned<float> table;
  std::vector<float> target;
  std::vector<std::int64_t> place; // of every parameter of the naive network

  Kernel(const Naive& naive, const Sample& sample)
      : net(naive.inputs, naive.hidden), table(sample.n * net.stride()),
        target(sample.y.begin(), sample.y.end()) {
    table.fill(0);
    for (std::int64_t r = 0; r < sample.n; ++r)
      for (std::int64_t i = 0; i <= sample.inputs; ++i)
        table.data()[r * net.stride() + i] = static_cast<float>(sample.row(r)[i]);
    for (std::int64_t i = 0; i <= naive.inputs; ++i)
      for (std::int64_t k = 0; k < naive.hidden; ++k) place.push_back(net.weight(i, k));
    for (std::int64_t k = 0; k < naive.hidden; ++k) place.push_back(net.output(k));
    for (std::int64_t i = 0; i <= naive.inputs; ++i) place.push_back(net.linear(i));
    for (std::size_t q = 0; q < place.size(); ++q)
      net.parameters()[place[q]] = static_cast<float>(naive.p[q]);
  }
};

Naive random_network(std::int64_t inputs, std::int64_t hidden, double sd, Rng& rng) {
  Naive net(inputs, hidden);
  for (double& value : net.p) value = static_cast<float>(sd * rng.normal());
  return net;
}

std::vector<std::int64_t> some_rows(std::int64_t n, std::int64_t of, Rng& rng) {
  std::vector<std::int64_t> rows = rng.permutation(of);
  rows.resize(static_cast<std::size_t>(n));
  return rows;
}

// ---------------------------------------------------------------------------------- simulated data

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

// Columns a, b, c, y: a and b independent causes of y, c independent of all; noise variance 1.
struct Regression {
  Matrix x;
  double noise_variance = 0; // of the noise that was drawn
};
Regression simulate_regression(std::int64_t n, std::uint64_t seed) {
  Regression r{Matrix(n, 4), 0};
  Rng rng(seed, {cape::hash("test.regression")});
  for (std::int64_t i = 0; i < n; ++i) {
    for (std::int64_t j = 0; j < 3; ++j) r.x(i, j) = rng.normal();
    const double noise = rng.normal();
    r.noise_variance += noise * noise / static_cast<double>(n);
    r.x(i, 3) = 4 * sigmoid(3 * r.x(i, 0)) + std::sin(2 * r.x(i, 1)) + 7 + noise;
  }
  return r;
}

// 0 -> 1 -> 2, 0 -> 3 <- 2, 4 alone; nonlinear, noise of variance 1.
Matrix simulate_graph(std::int64_t n, std::uint64_t seed) {
  Matrix x(n, 5);
  Rng rng(seed, {cape::hash("test.graph")});
  for (std::int64_t i = 0; i < n; ++i) {
    x(i, 0) = rng.normal();
    x(i, 1) = 5 * sigmoid(2 * x(i, 0)) + rng.normal();
    x(i, 2) = 3 * std::sin(x(i, 1)) + rng.normal();
    x(i, 3) = x(i, 0) * x(i, 2) + rng.normal();
    x(i, 4) = rng.normal();
  }
  return x;
}
const std::set<std::pair<std::int64_t, std::int64_t>> true_edges{{0, 1}, {1, 2}, {0, 3}, {2, 3}};

std::set<std::pair<std::int64_t, std::int64_t>> pairs(const std::vector<Edge>& edges) {
  std::set<std::pair<std::int64_t, std::int64_t>> out;
  for (const Edge& e : edges) out.emplace(e.from, e.to);
  return out;
}

Matrix random_weights(std::int64_t m, std::uint64_t seed) {
  Matrix w(m, m);
  Rng rng(seed, {cape::hash("test.weights")});
  for (std::int64_t j = 0; j < m; ++j)
    for (std::int64_t i = 0; i < m; ++i)
      if (i != j) w(i, j) = rng.uniform();
  return w;
}

double mean(const std::vector<double>& v) {
  return std::accumulate(v.begin(), v.end(), 0.0) / static_cast<double>(v.size());
}

double naive_paired_t(const std::vector<double>& without, const std::vector<double>& with,
                      double limit) {
  std::vector<double> d;
  for (std::size_t i = 0; i < with.size(); ++i)
    d.push_back(std::min(without[i], limit) - std::min(with[i], limit));
  const double m = mean(d);
  double variance = 0;
  for (const double v : d) variance += (v - m) * (v - m) / static_cast<double>(d.size() - 1);
  return m / (std::sqrt(variance) / std::sqrt(static_cast<double>(d.size())));
}

// The larger one of the squared errors, and of those up to 9 / 3.8415 (3^2 / 1.96^2) times their
// 95 % quantile.
double naive_t(const std::vector<double>& without, const std::vector<double>& with) {
  std::vector<double> sorted = with;
  std::ranges::sort(sorted);
  const double limit = sorted[sorted.size() * 95 / 100] * 9 / 3.8415;
  return std::max(naive_paired_t(without, with, limit),
                  naive_paired_t(without, with, std::numeric_limits<double>::infinity()));
}

DagOptions quick() {
  DagOptions options;
  options.refine_epochs = 30;
  return options;
}

std::function<bool(const cape::Error&)> names(Status status, const std::string& word) {
  return [=](const cape::Error& e) {
    return e.code() == status && std::string(e.what()).find(word) != std::string::npos;
  };
}

} // namespace

// ------------------------------------------------------------------------------------- the kernel
BOOST_AUTO_TEST_SUITE(kernel)

BOOST_AUTO_TEST_CASE(loss_and_prediction_equal_a_naive_network_for_any_shape) {
  Rng rng(1, {cape::hash("test.loss")});
  for (const std::int64_t inputs : {0, 1, 3, 4, 15, 16, 40})
    for (const std::int64_t hidden : {1, 10, 32, 33}) {
      const Sample sample(21, inputs, rng);
      const Naive naive = random_network(inputs, hidden, 0.7, rng);
      Kernel kernel(naive, sample);
      std::vector<float> out(21);
      kernel.net.predict(kernel.table.data(), 21, out.data());
      for (std::int64_t r = 0; r < 21; ++r)
        BOOST_TEST(out[static_cast<std::size_t>(r)] == naive.predict(sample.row(r)),
                   boost::test_tools::tolerance(1e-4));
      for (const std::int64_t n : {1, 7, 20}) {
        const auto rows = some_rows(n, 21, rng);
        BOOST_TEST(kernel.net.loss(kernel.table.data(), kernel.target.data(), rows.data(), n) ==
                       sample.loss(naive, rows),
                   boost::test_tools::tolerance(1e-4));
      }
    }
}

BOOST_AUTO_TEST_CASE(gradient_equals_central_differences) {
  Rng rng(2, {cape::hash("test.gradient")});
  for (const auto& [inputs, hidden, n] :
       {std::tuple<std::int64_t, std::int64_t, std::int64_t>{1, 1, 1},
        {3, 5, 7},
        {5, 32, 64},
        {16, 40, 10}}) {
    const Sample sample(70, inputs, rng);
    const Naive naive = random_network(inputs, hidden, 0.5, rng);
    Kernel kernel(naive, sample);
    const auto rows = some_rows(n, 70, rng);
    kernel.net.loss(kernel.table.data(), kernel.target.data(), rows.data(), n);
    const std::vector<double> expected = sample.numeric_gradient(naive, rows);
    double largest = 0, error = 0;
    for (std::size_t q = 0; q < expected.size(); ++q) {
      largest = std::max(largest, std::abs(expected[q]));
      error = std::max(error, std::abs(kernel.net.gradient()[kernel.place[q]] - expected[q]));
    }
    BOOST_TEST(error <= 1e-5 * largest, "error " << error << " of " << largest);
  }
}

BOOST_AUTO_TEST_CASE(saturated_units_give_finite_values_and_gradients) {
  Rng rng(3, {cape::hash("test.saturated")});
  const Sample sample(16, 3, rng);
  const Naive naive = random_network(3, 8, 1e4, rng);
  Kernel kernel(naive, sample);
  std::vector<std::int64_t> rows(16);
  std::iota(rows.begin(), rows.end(), 0);
  BOOST_TEST(kernel.net.loss(kernel.table.data(), kernel.target.data(), rows.data(), 16) ==
                 sample.loss(naive, rows),
             boost::test_tools::tolerance(1e-4));
  for (const std::int64_t q : kernel.place) BOOST_TEST(std::isfinite(kernel.net.gradient()[q]));
}

// Every target is held against the same computation in double, so they agree with one another.
BOOST_AUTO_TEST_CASE(adam_follows_a_naive_trajectory_in_double) {
  Rng rng(4, {cape::hash("test.adam")});
  const Sample sample(200, 3, rng);
  Naive naive = random_network(3, 6, 0.5, rng);
  Kernel kernel(naive, sample);
  std::vector<double> m(naive.p.size()), s(naive.p.size());
  double first = 0, last = 0;
  for (int step = 1; step <= 60; ++step) {
    const auto rows = some_rows(50, 200, rng);
    const double rate = 0.03;
    const std::vector<double> g = sample.numeric_gradient(naive, rows);
    for (std::size_t q = 0; q < g.size(); ++q) {
      m[q] = 0.9 * m[q] + 0.1 * g[q];
      s[q] = 0.99 * s[q] + 0.01 * g[q] * g[q];
      naive.p[q] -= rate * (m[q] / (1 - std::pow(0.9, step))) /
                    (std::sqrt(s[q] / (1 - std::pow(0.99, step))) + 1e-8);
    }
    kernel.net.step(kernel.table.data(), kernel.target.data(), rows.data(), 50, rate);
    last = sample.loss(naive, rows);
    if (step == 1) first = last;
  }
  BOOST_TEST(last < first);
  for (std::size_t q = 0; q < naive.p.size(); ++q)
    BOOST_TEST(std::abs(kernel.net.parameters()[kernel.place[q]] - naive.p[q]) < 1e-2);
}

BOOST_AUTO_TEST_SUITE_END()

// -------------------------------------------------------------------------- the node regression
BOOST_AUTO_TEST_SUITE(regression)

BOOST_AUTO_TEST_CASE(error_on_the_true_parents_is_the_noise_variance) {
  // The excess over the variance of the drawn noise is that of a fit of about 160 weights to 2500
  // rows: 160/2500 = 0.064 if all of them were free.
  for (const std::uint64_t seed : {1, 2, 3}) {
    const Regression r = simulate_regression(5000, seed);
    Run run(seed);
    const std::vector<std::int64_t> parents{0, 1};
    const double e = mean(cape::cross_fitted_error(r.x, 3, parents, {}, run));
    BOOST_TEST(e > r.noise_variance - 0.01);
    BOOST_TEST(e < r.noise_variance + 0.064);
  }
}

BOOST_AUTO_TEST_CASE(without_parents_the_error_is_the_squared_distance_from_the_mean) {
  const Regression r = simulate_regression(100, 4);
  Run run;
  const std::vector<double> e = cape::cross_fitted_error(r.x, 3, {}, {}, run);
  double centre = 0;
  for (std::int64_t i = 0; i < 100; ++i) centre += r.x(i, 3) / 100;
  for (std::int64_t i = 0; i < 100; ++i) {
    const double d = r.x(i, 3) - centre;
    BOOST_TEST(std::abs(e[static_cast<std::size_t>(i)] - d * d) < 1e-5);
  }
}

BOOST_AUTO_TEST_CASE(errors_belong_to_their_rows) {
  // y is a function of a but for one row, which must be the one of the large error.
  Matrix x(400, 2);
  Rng rng(5, {cape::hash("test.rows")});
  for (std::int64_t i = 0; i < 400; ++i) {
    x(i, 0) = rng.normal();
    x(i, 1) = 2 * x(i, 0);
  }
  x(123, 1) += 8;
  Run run;
  const std::vector<std::int64_t> parents{0};
  const std::vector<double> e = cape::cross_fitted_error(x, 1, parents, {}, run);
  BOOST_TEST((std::ranges::max_element(e) - e.begin()) == 123);
}

BOOST_AUTO_TEST_CASE(t_tells_true_parents_from_irrelevant_ones) {
  // Without an effect P(t >= 3) is at most twice that of a standard normal, 0.0027; more than 2 of
  // 40 then have a probability below 2e-4.
  int false_positives = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const Regression r = simulate_regression(1000, 100 + seed);
    Run run(seed);
    const DagOptions options;
    const auto error = [&](std::vector<std::int64_t> parents) {
      return cape::cross_fitted_error(r.x, 3, parents, options, run);
    };
    const std::vector<double> full = error({0, 1, 2});
    false_positives += naive_t(error({0, 1}), full) >= 3;
    BOOST_TEST(naive_t(error({1, 2}), full) > 6);
    BOOST_TEST(naive_t(error({0, 2}), full) > 3);
  }
  BOOST_TEST(false_positives <= 2);
}

BOOST_AUTO_TEST_CASE(neither_numbers_nor_order_of_columns_change_a_bit) {
  const Regression r = simulate_regression(200, 6);
  const std::vector<std::int64_t> to{2, 0, 3, 1};
  Matrix moved(200, 4);
  for (std::int64_t j = 0; j < 4; ++j)
    for (std::int64_t i = 0; i < 200; ++i) moved(i, to[static_cast<std::size_t>(j)]) = r.x(i, j);
  const Matrix& x = r.x;
  Run run;
  const std::vector<std::int64_t> parents{0, 1, 2}, reversed{2, 1, 0}, there{2, 0, 3};
  for (const cape::Sem sem : {cape::Sem::linear, cape::Sem::mlp}) {
    DagOptions options = quick();
    options.sem = sem;
    const auto first = cape::cross_fitted_error(x, 3, parents, options, run);
    BOOST_TEST((first == cape::cross_fitted_error(x, 3, reversed, options, run)));
    BOOST_TEST((first == cape::cross_fitted_error(moved, 1, there, options, run)));
  }
  const auto e = cape::cross_fitted_error(x, 3, parents, quick(), run);
  Matrix transposed(4, 200);
  for (std::int64_t j = 0; j < 4; ++j)
    for (std::int64_t i = 0; i < 200; ++i) transposed(j, i) = x(i, j);
  const cape::MatrixView by_row{transposed.data(), 200, 4, 4, cape::Layout::row_major};
  BOOST_TEST((e == cape::cross_fitted_error(by_row, 3, parents, quick(), run)));
  Run other(2);
  BOOST_TEST((e != cape::cross_fitted_error(x, 3, parents, quick(), other)));
}

// On rows of y = 2 a - 3 b + 1 every half of the rows has the same least squares.
BOOST_AUTO_TEST_CASE(least_squares_predict_a_linear_relation_to_rounding_and_no_parabola) {
  Matrix x(101, 4);
  Rng rng(4);
  for (std::int64_t i = 0; i < x.rows(); ++i) {
    for (std::int64_t j = 0; j < 2; ++j) x(i, j) = rng.normal();
    x(i, 2) = 2 * x(i, 0) - 3 * x(i, 1) + 1;
    x(i, 3) = x(i, 0) * x(i, 0);
  }
  DagOptions options;
  options.sem = cape::Sem::linear;
  Run run(3);
  const std::vector<std::int64_t> causes{0, 1}, cause{0};
  for (const double e : cape::cross_fitted_error(x, 2, causes, options, run)) BOOST_TEST(e < 1e-8);
  BOOST_TEST(mean(cape::cross_fitted_error(x, 3, cause, options, run)) > 1);
  options.sem = cape::Sem::mlp;
  BOOST_TEST(mean(cape::cross_fitted_error(x, 3, cause, options, run)) < 0.5);
}

// The error of a new row after least squares on n rows with p normal inputs and a constant is
// sigma^2 (1 + 1/n) (n - 2) / (n - p - 2) on average: 1.31 for n = 90, p = 20, and 1.78 for half of
// the rows.
BOOST_AUTO_TEST_CASE(regressions_on_few_rows_are_trained_on_nine_tenths_of_them) {
  constexpr int tables = 100;
  DagOptions options;
  options.sem = cape::Sem::linear;
  std::vector<std::int64_t> causes(20);
  std::iota(causes.begin(), causes.end(), 1);
  double sum = 0;
  for (std::uint64_t seed = 1; seed <= tables; ++seed) {
    Rng rng(seed);
    Matrix x(100, 21);
    for (std::int64_t e = 0; e < x.size(); ++e) x.data()[e] = rng.normal();
    Run run(seed);
    sum += mean(cape::cross_fitted_error(x, 0, causes, options, run));
  }
  BOOST_TEST(std::fabs(sum / tables - (1 + 1 / 90.0) * 88 / 68) < 0.08); // four standard errors
}

BOOST_AUTO_TEST_CASE(few_rows_and_wild_values_give_finite_errors) {
  for (const std::int64_t n : {10, 11, 37, 129}) {
    Matrix x(n, 3);
    Rng rng(7, {static_cast<std::uint64_t>(n)});
    for (std::int64_t i = 0; i < n; ++i) {
      x(i, 0) = 1e100 * std::tan(3.14159 * (rng.uniform() - 0.5));
      x(i, 1) = i == 0; // a single 1
      x(i, 2) = 1e-100 * rng.normal();
    }
    Run run;
    const std::vector<std::int64_t> parents{0, 1};
    for (const double e : cape::cross_fitted_error(x, 2, parents, {}, run))
      BOOST_TEST((std::isfinite(e) && e >= 0));
  }
}

BOOST_AUTO_TEST_CASE(bad_arguments_are_refused) {
  const Matrix x = simulate_graph(20, 1);
  Run run;
  const DagOptions options;
  const auto refused = [&](const Matrix& table, std::int64_t target,
                           std::vector<std::int64_t> parents, const DagOptions& o,
                           const std::string& word) {
    BOOST_CHECK_EXCEPTION(cape::cross_fitted_error(table, target, parents, o, run), cape::Error,
                          names(Status::invalid_argument, word));
  };
  refused(x, 5, {0}, options, "target is 5");
  refused(x, -1, {0}, options, "target is -1");
  refused(x, 0, {5}, options, "parents is 5");
  refused(x, 0, {1, 1}, options, "parents");
  refused(x, 0, {0, 1}, options, "parents");
  refused(simulate_graph(9, 1), 0, {1}, options, "10 rows");
  refused(Matrix(20, 2), 0, {1}, options, "column 0");
  Matrix flat = x; // the rounding of a constant is no variance
  for (std::int64_t i = 0; i < 20; ++i) flat(i, 1) = 1e9 / 7 * (i % 2 ? 1 : 1 + 0x1p-52);
  refused(flat, 0, {1}, options, "column 1 (counted from 0) does not vary");
  Matrix bad = x;
  bad(3, 2) = std::numeric_limits<double>::quiet_NaN();
  refused(bad, 0, {1}, options, "NaN at row 3, column 2");
  bad(3, 2) = 1e200;
  refused(bad, 0, {1}, options, "column 2");
  DagOptions wrong;
  wrong.refine_hidden = 0;
  refused(x, 0, {1}, wrong, "refine_hidden");
  wrong = {};
  wrong.refine_epochs = 0;
  refused(x, 0, {1}, wrong, "refine_epochs");
}

BOOST_AUTO_TEST_SUITE_END()

// ---------------------------------------------------------------------- search and elimination
BOOST_AUTO_TEST_SUITE(refinement)

// The t of an edge; 0 where it was not tested.
double t_of(const TestedGraph& graph, std::int64_t from, std::int64_t to) {
  for (const Edge& e : graph.edges.tested)
    if (e.from == from && e.to == to) return e.weight;
  return 0;
}

BOOST_AUTO_TEST_CASE(finds_the_graph_from_a_poor_start) {
  // Weights that say 3 -> 2 -> 1 -> 0: no edge points the right way, and 0 has to pass all others.
  Matrix w(5, 5);
  w(3, 2) = w(2, 1) = w(1, 0) = 1;
  for (const bool unequal : {false, true}) {
    Run run(1);
    const TestedGraph r = cape::refine(simulate_graph(2000, 1), w, unequal, {}, run);
    BOOST_TEST((pairs(r.edges.kept) == true_edges), "unequal variances: " << unequal);
  }
}

BOOST_AUTO_TEST_CASE(the_scale_of_the_data_does_not_matter) {
  Matrix x = simulate_graph(2000, 2);
  for (std::int64_t j = 0; j < 5; ++j)
    for (std::int64_t i = 0; i < x.rows(); ++i) x(i, j) = 1e6 * x(i, j) - 1e5;
  Run run(1);
  BOOST_TEST(
      (pairs(cape::refine(x, random_weights(5, 1), false, {}, run).edges.kept) == true_edges));
}

// t has no units, up to where a variance leaves the doubles.
BOOST_AUTO_TEST_CASE(no_scale_makes_squares_of_errors_overflow_or_vanish) {
  const Matrix x = simulate_graph(300, 2);
  for (const cape::Sem sem : {cape::Sem::mlp, cape::Sem::linear}) {
    DagOptions options;
    options.sem = sem;
    options.refine_window = 0;
    options.refine_epochs = 10;
    Run run(1);
    const TestedGraph plain = cape::refine(x, random_weights(5, 1), true, options, run);
    BOOST_TEST(!plain.edges.kept.empty());
    for (const int exponent : {480, 300, -300, -480}) {
      Matrix scaled = x;
      for (std::int64_t e = 0; e < x.size(); ++e)
        scaled.data()[e] = std::ldexp(x.data()[e], exponent);
      const TestedGraph r = cape::refine(scaled, random_weights(5, 1), true, options, run);
      BOOST_TEST(!r.edges.kept.empty());
      if (sem == cape::Sem::mlp) continue; // whose seeds are the contents of columns
      BOOST_TEST_REQUIRE((pairs(r.edges.kept) == pairs(plain.edges.kept)));
      for (std::size_t e = 0; e < r.edges.kept.size(); ++e) // but for the order of sums
        BOOST_TEST(r.edges.kept[e].weight == plain.edges.kept[e].weight,
                   boost::test_tools::tolerance(1e-6));
    }
    Matrix beyond = x;
    for (std::int64_t e = 0; e < x.size(); ++e) beyond.data()[e] = std::ldexp(x.data()[e], 520);
    BOOST_CHECK_EXCEPTION(cape::refine(beyond, random_weights(5, 1), true, options, run),
                          cape::Error,
                          names(Status::invalid_argument, "must be positive and below 1e150"));
  }
}

BOOST_AUTO_TEST_CASE(the_automatic_limit_of_t_falls_with_the_rows) {
  for (const auto& [n, limit] : {std::pair<std::int64_t, double>{60, 1}, {160, 1.79}}) {
    int told_from_3 = 0;
    for (const std::uint64_t seed : {1, 2, 3, 4}) {
      Matrix x(n, 7);
      Rng rng(seed, {cape::hash("test.noise")});
      for (std::int64_t e = 0; e < x.size(); ++e) x.data()[e] = rng.normal();
      for (std::int64_t j = 1; j < 7; ++j) // effects of rising size
        for (std::int64_t i = 0; i < n; ++i)
          x(i, j) += static_cast<double>(3 + j) * x(i, 0) / std::sqrt(static_cast<double>(n));
      Run run(seed);
      const auto kept = [&](const DagOptions& options) {
        return pairs(cape::refine(x, random_weights(7, seed), false, options, run).edges.kept);
      };
      DagOptions options;
      options.sem = cape::Sem::linear;
      const auto automatic = kept(options);
      options.refine_t = limit;
      BOOST_TEST((automatic == kept(options)));
      options.refine_t = 3;
      told_from_3 += automatic != kept(options);
    }
    BOOST_TEST(told_from_3 > 0);
  }
}

BOOST_AUTO_TEST_CASE(is_a_dag_along_its_order_with_every_t_at_the_limit_or_above) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    Matrix x(60, 7);
    Rng rng(seed, {cape::hash("test.noise")});
    for (std::int64_t i = 0; i < 60; ++i) {
      const double common = rng.normal();
      for (std::int64_t j = 0; j < 7; ++j) x(i, j) = common + 0.3 * rng.normal();
    }
    DagOptions options = quick();
    options.refine_t = 1;
    Run run(seed);
    const TestedGraph r = cape::refine(x, random_weights(7, seed), seed == 2, options, run);
    std::vector<std::int64_t> place(7, -1);
    for (std::int64_t p = 0; p < std::ssize(r.order); ++p)
      place[static_cast<std::size_t>(r.order[static_cast<std::size_t>(p)])] = p;
    BOOST_TEST(r.order.size() == 7u);
    BOOST_TEST((std::ranges::find(place, -1) == place.end()));
    BOOST_TEST(!r.edges.kept.empty());
    for (const Edge& e : r.edges.kept) {
      BOOST_TEST(place[static_cast<std::size_t>(e.from)] < place[static_cast<std::size_t>(e.to)]);
      BOOST_TEST(e.weight >= 1);
      BOOST_TEST(e.weight == t_of(r, e.from, e.to));
    }
    for (std::int64_t j = 0; j < 7; ++j)
      for (std::int64_t i = 0; i < 7; ++i) {
        BOOST_TEST(std::isfinite(t_of(r, i, j)));
        if (place[static_cast<std::size_t>(i)] >= place[static_cast<std::size_t>(j)])
          BOOST_TEST(t_of(r, i, j) == 0);
      }
  }
}

BOOST_AUTO_TEST_CASE(t_is_that_of_the_paired_errors_with_and_without_a_parent) {
  const Matrix x = simulate_graph(500, 3);
  Run run(5);
  const DagOptions options = quick();
  const TestedGraph r = cape::refine(x, random_weights(5, 3), false, options, run);
  BOOST_TEST(!r.edges.kept.empty());
  for (const Edge& e : r.edges.kept) {
    std::vector<std::int64_t> with, without;
    for (const Edge& f : r.edges.kept)
      if (f.to == e.to) {
        with.push_back(f.from);
        if (f.from != e.from) without.push_back(f.from);
      }
    const double t = naive_t(cape::cross_fitted_error(x, e.to, without, options, run),
                             cape::cross_fitted_error(x, e.to, with, options, run));
    BOOST_TEST(e.weight == t, boost::test_tools::tolerance(1e-9));
  }
}

// One row in a hundred is an outlier of the effect: without a limit, the variance that they bring
// to the differences hides the cause, which explains 80 % of the variance of the other rows.
BOOST_AUTO_TEST_CASE(a_few_outliers_do_not_hide_a_strong_effect) {
  Rng rng(21);
  Matrix x(1000, 2), w(2, 2);
  for (std::int64_t r = 0; r < x.rows(); ++r) {
    x(r, 0) = rng.normal();
    x(r, 1) = 2 * x(r, 0) + rng.normal() + (r % 100 == 0 ? 100 * rng.normal() : 0);
  }
  w(0, 1) = 1;
  Run run(3);
  DagOptions options = quick();
  options.refine_window = 0;
  const TestedGraph r = cape::refine(x, w, true, options, run);
  const std::vector<double> without = cape::cross_fitted_error(x, 1, {}, options, run);
  const std::vector<double> with =
      cape::cross_fitted_error(x, 1, std::vector<std::int64_t>{0}, options, run);
  BOOST_TEST(naive_paired_t(without, with, std::numeric_limits<double>::infinity()) < 3);
  BOOST_TEST_REQUIRE(r.edges.kept.size() == 1);
  BOOST_TEST(r.edges.kept[0].weight > 8);
}

BOOST_AUTO_TEST_CASE(the_number_of_threads_changes_no_bit) {
  const Matrix x = simulate_graph(300, 4), w = random_weights(5, 4);
  Run one(9, 1);
  const TestedGraph expected = cape::refine(x, w, false, quick(), one);
  for (const int threads : {2, 8}) {
    Run run(9, threads);
    const TestedGraph r = cape::refine(x, w, false, quick(), run);
    BOOST_TEST((r.edges.tested == expected.edges.tested));
    BOOST_TEST((r.edges.kept == expected.edges.kept));
    BOOST_TEST((r.order == expected.order));
  }
}

BOOST_AUTO_TEST_CASE(a_permutation_of_the_columns_permutes_the_result) {
  // 0 is the strongest cause of all, and so on: the start order leaves no choice.
  const Matrix x = simulate_graph(300, 5);
  Matrix w(5, 5);
  for (std::int64_t j = 0; j < 5; ++j)
    for (std::int64_t i = 0; i < j; ++i) w(i, j) = 1 + 0.1 * static_cast<double>(j * 5 + i);
  const std::vector<std::int64_t> to{3, 1, 4, 0, 2};
  const auto at = [&](std::int64_t j) { return to[static_cast<std::size_t>(j)]; };
  Matrix xp(300, 5), wp(5, 5);
  for (std::int64_t j = 0; j < 5; ++j) {
    for (std::int64_t i = 0; i < 300; ++i) xp(i, at(j)) = x(i, j);
    for (std::int64_t i = 0; i < 5; ++i) wp(at(i), at(j)) = w(i, j);
  }
  Run run(9);
  const TestedGraph r = cape::refine(x, w, false, quick(), run);
  const TestedGraph p = cape::refine(xp, wp, false, quick(), run);
  for (std::size_t k = 0; k < 5; ++k) BOOST_TEST(p.order[k] == at(r.order[k]));
  for (std::int64_t j = 0; j < 5; ++j)
    for (std::int64_t i = 0; i < 5; ++i) BOOST_TEST(t_of(p, at(i), at(j)) == t_of(r, i, j));
}

BOOST_AUTO_TEST_CASE(copies_of_a_column_stay_finite) {
  Matrix x = simulate_graph(200, 6);
  for (std::int64_t i = 0; i < 200; ++i) x(i, 4) = x(i, 0);
  for (const bool unequal : {false, true})
    for (const cape::Sem sem : {cape::Sem::mlp, cape::Sem::linear}) {
      DagOptions options = quick();
      options.sem = sem;
      Run run(1);
      const TestedGraph r = cape::refine(x, random_weights(5, 6), unequal, options, run);
      for (std::int64_t j = 0; j < 5; ++j)
        for (std::int64_t i = 0; i < 5; ++i) BOOST_TEST(std::isfinite(t_of(r, i, j)));
    }
}

BOOST_AUTO_TEST_CASE(one_column_and_more_columns_than_candidates_work) {
  Run run(1);
  Matrix alone(20, 1);
  for (std::int64_t i = 0; i < 20; ++i) alone(i, 0) = static_cast<double>(i);
  const TestedGraph single = cape::refine(alone, Matrix(1, 1), false, quick(), run);
  BOOST_TEST((single.order == std::vector<std::int64_t>{0}));
  BOOST_TEST(single.edges.kept.empty());

  // 24 columns: 0 -> 1, and the pair is each other's strongest; everything else is noise.
  Matrix x(300, 24), w = random_weights(24, 7);
  Rng rng(7, {cape::hash("test.wide")});
  for (std::int64_t i = 0; i < 300; ++i) {
    for (std::int64_t j = 0; j < 24; ++j) x(i, j) = rng.normal();
    x(i, 1) += 3 * x(i, 0);
  }
  w(0, 1) = 5;
  DagOptions options;
  options.refine_epochs = 10;
  options.refine_window = 0;
  const TestedGraph wide = cape::refine(x, w, false, options, run);
  BOOST_TEST(pairs(wide.edges.kept).contains({0, 1}));
}

BOOST_AUTO_TEST_CASE(progress_is_told_and_work_stops_when_cancelled) {
  const Matrix x = simulate_graph(20000, 7), w = random_weights(5, 7);
  for (const int threads : {1, 2}) {
    int calls = 0;
    std::int64_t last_step = -1;
    bool forward = true;
    Run run(1, threads, [&](const cape::Progress& p) {
      forward = forward && p.step >= last_step && p.stage == "dag.refine";
      last_step = p.step;
      return ++calls < 6;
    });
    BOOST_CHECK_EXCEPTION(cape::refine(x, w, false, {}, run), cape::Error,
                          names(Status::cancelled, "cancelled"));
    BOOST_TEST(calls == 6);
    BOOST_TEST(forward);
  }
}

BOOST_AUTO_TEST_CASE(bad_arguments_are_refused) {
  const Matrix x = simulate_graph(20, 1);
  Run run;
  BOOST_CHECK_EXCEPTION(cape::refine(x, Matrix(5, 4), false, {}, run), cape::Error,
                        names(Status::dim_mismatch, "weights is 5 x 4"));
  Matrix w(5, 5);
  w(0, 1) = std::numeric_limits<double>::infinity();
  BOOST_CHECK_EXCEPTION(cape::refine(x, w, false, {}, run), cape::Error,
                        names(Status::invalid_argument, "weights"));
  const std::vector<std::pair<std::string, std::function<void(DagOptions&)>>> wrong{
      {"refine_window", [](DagOptions& o) { o.refine_window = -2; }},
      {"refine_t", [](DagOptions& o) { o.refine_t = -1; }},
      {"refine_hidden", [](DagOptions& o) { o.refine_hidden = -3; }},
      {"refine_epochs", [](DagOptions& o) { o.refine_epochs = 0; }}};
  for (const auto& [name, spoil] : wrong) {
    DagOptions options;
    spoil(options);
    BOOST_CHECK_EXCEPTION(cape::refine(x, Matrix(5, 5), false, options, run), cape::Error,
                          names(Status::invalid_argument, name));
  }
}

BOOST_AUTO_TEST_SUITE_END()

int main(int argc, char** argv) {
  const char* forced = std::getenv("CAPE_SIMD_TARGET");
  if (forced != nullptr && std::string(forced) != cape::simd::target()) {
    std::cout << "this build or CPU has no target " << forced << std::endl;
    return 77;
  }
  return boost::unit_test::unit_test_main([] { return true; }, argc, argv);
}
