// Step I where rows are few: penalties by pair, bags, support, and how many edges chance may give.
#define BOOST_TEST_MODULE few_rows
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <vector>
import cape;
#include "errors.hpp"
#include "row_source.hpp"

namespace {

using cape::Checkpoint;
using cape::Dag;
using cape::DagOptions;
using cape::Matrix;
using cape::MatrixView;
using cape::Prior;
using cape::Refine;
using cape::Rng;
using cape::Run;
using cape::Sem;
using cape::Status;
using test::fails_with;

constexpr double infinity = std::numeric_limits<double>::infinity();

// A chain whose first columns are linear and whose later ones go with the square of their cause.
Matrix chain(std::int64_t rows, std::int64_t columns, std::uint64_t seed) {
  Matrix x(rows, columns);
  Rng rng(seed);
  for (std::int64_t j = 0; j < columns; ++j)
    for (std::int64_t i = 0; i < rows; ++i) {
      const double cause = j > 0 ? x(i, j - 1) : 0;
      x(i, j) = (j > columns / 2 ? std::min(cause * cause, 4.0) : 0.7 * cause) + rng.normal();
    }
  return x;
}

double correlation(std::span<const double> a, std::span<const double> b) {
  const double n = static_cast<double>(a.size());
  const double ma = std::accumulate(a.begin(), a.end(), 0.0) / n,
               mb = std::accumulate(b.begin(), b.end(), 0.0) / n;
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    ab += (a[i] - ma) * (b[i] - mb);
    aa += (a[i] - ma) * (a[i] - ma);
    bb += (b[i] - mb) * (b[i] - mb);
  }
  return aa > 0 && bb > 0 ? ab / std::sqrt(aa * bb) : 0;
}

std::span<const double> column(const Matrix& x, std::int64_t j) {
  return {x.column(j), static_cast<std::size_t>(x.rows())};
}

// What a line in x leaves of its squares.
std::vector<double> curvature(std::span<const double> x) {
  std::vector<double> square(x.size());
  std::ranges::transform(x, square.begin(), [](double v) { return v * v; });
  const double n = static_cast<double>(x.size());
  const double mx = std::accumulate(x.begin(), x.end(), 0.0) / n,
               ms = std::accumulate(square.begin(), square.end(), 0.0) / n;
  double xs = 0, xx = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xs += (x[i] - mx) * (square[i] - ms);
    xx += (x[i] - mx) * (x[i] - mx);
  }
  for (std::size_t i = 0; i < x.size(); ++i) square[i] -= ms + xs / xx * (x[i] - mx);
  return square;
}

DagOptions quick(Sem sem) {
  DagOptions o;
  o.sem = sem;
  o.refine = Refine::never;
  o.epochs = 20;
  o.bags = 3;
  return o;
}

} // namespace

BOOST_AUTO_TEST_SUITE(penalty)

BOOST_AUTO_TEST_CASE(factors_are_those_of_the_formula) {
  for (const std::int64_t rows : {30, 400}) {
    const std::int64_t m = 8;
    const Matrix x = chain(rows, m, 3);
    Run run(1, 2);
    const Matrix factor = cape::adaptive_penalty(x, run);
    Matrix q(m, m);
    std::vector<double> all;
    for (std::int64_t j = 0; j < m; ++j)
      for (std::int64_t i = 0; i < m; ++i) {
        if (i != j)
          q(i, j) = std::pow(correlation(column(x, i), column(x, j)), 2) +
                    std::max(0.0, std::pow(correlation(curvature(column(x, i)), column(x, j)), 2) -
                                      2 * std::log(double(m)) / double(rows));
        all.push_back(q(i, j));
      }
    std::ranges::sort(all, std::greater<>());
    const double typical = all[12 - 1], power = std::min(1.0, 5.0 * m / double(rows));
    for (std::int64_t j = 0; j < m; ++j)
      for (std::int64_t i = 0; i < m; ++i)
        BOOST_TEST(factor(i, j) ==
                       (i == j ? 0 : std::clamp(std::pow(typical / q(i, j), power), 0.3, 4.0)),
                   boost::test_tools::tolerance(1e-4));
  }
}

BOOST_AUTO_TEST_CASE(factors_know_no_units_and_take_extremes) {
  Matrix x = chain(50, 5, 4);
  Run run;
  const Matrix factor = cape::adaptive_penalty(x, run);
  for (std::int64_t i = 0; i < 50; ++i) x(i, 0) *= 0x1p900, x(i, 1) *= 0x1p-900, x(i, 2) = 7;
  const Matrix scaled = cape::adaptive_penalty(x, run);
  for (std::int64_t j = 0; j < 5; ++j)
    for (std::int64_t i = 0; i < 5; ++i) {
      BOOST_TEST(std::isfinite(scaled(i, j)));
      if (i != j && (i == 2 || j == 2)) BOOST_TEST(scaled(i, j) == 4); // a constant shows nothing
    }
  const Matrix zeros(20, 3);
  BOOST_TEST(cape::adaptive_penalty(zeros, run)(0, 1) == 1); // nothing tells pairs apart
  BOOST_TEST(fails_with(Status::invalid_argument, "x is",
                        [&] { cape::adaptive_penalty(Matrix(1, 3), run); }));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(stability)

// The causes that enter the lasso's path of y first, by coordinate descent on a fine grid.
std::vector<std::size_t> entering(const std::vector<std::vector<double>>& x,
                                  const std::vector<double>& y, std::size_t most) {
  const std::size_t n = y.size();
  std::vector<double> b(x.size());
  std::vector<std::size_t> order;
  const auto product = [&](const std::vector<double>& a, const std::vector<double>& c) {
    return std::inner_product(a.begin(), a.end(), c.begin(), 0.0);
  };
  double lambda = 0;
  for (const auto& a : x) lambda = std::max(lambda, std::fabs(product(a, y)));
  std::vector<double> rest = y;
  for (int step = 0; step < 1500 && order.size() < most; ++step, lambda *= 0.995) {
    for (int sweep = 0; sweep < 60; ++sweep)
      for (std::size_t k = 0; k < x.size(); ++k) {
        const double size = product(x[k], x[k]);
        if (size == 0) continue;
        const double at = product(x[k], rest) + size * b[k];
        const double now = std::copysign(std::max(std::fabs(at) - lambda, 0.0), at) / size;
        for (std::size_t i = 0; i < n; ++i) rest[i] -= (now - b[k]) * x[k][i];
        b[k] = now;
      }
    for (std::size_t k = 0; k < x.size(); ++k)
      if (b[k] != 0 && std::ranges::find(order, k) == order.end()) order.push_back(k);
  }
  return order;
}

BOOST_AUTO_TEST_CASE(scores_are_those_of_the_lasso_by_coordinate_descent) {
  constexpr std::int64_t rows = 30, m = 7, half = rows / 2, splits = 100;
  const Matrix x = chain(rows, m, 5);
  Run run(9, 2);
  const Matrix score = cape::stability_selection(x, run);
  Matrix expected(m, m);
  for (std::int64_t split = 0; split < splits; ++split) {
    Rng rng(9, {cape::hash("dag.stability"), static_cast<std::uint64_t>(split)});
    const std::vector<std::int64_t> order = rng.permutation(rows);
    for (std::int64_t side = 0; side < 2; ++side) {
      std::vector<std::vector<double>> unit, scaled;
      for (std::int64_t j = 0; j < m; ++j) {
        std::vector<double> v;
        for (std::int64_t r = 0; r < half; ++r)
          v.push_back(x(order[static_cast<std::size_t>(side * half + r)], j));
        const double mean = std::accumulate(v.begin(), v.end(), 0.0) / half;
        double length = 0;
        for (double& e : v) e -= mean, length += e * e;
        for (double& e : v) e /= std::sqrt(length);
        unit.push_back(v);
        const double scale = rng.uniform(0.2, 1);
        for (double& e : v) e *= scale;
        scaled.push_back(std::move(v));
      }
      for (std::int64_t j = 0; j < m; ++j) {
        std::vector<std::vector<double>> others = scaled;
        others[static_cast<std::size_t>(j)].assign(half, 0);
        const auto first = entering(others, unit[static_cast<std::size_t>(j)], 5);
        for (std::size_t k = 0; k < std::min<std::size_t>(5, first.size()); ++k)
          expected(static_cast<std::int64_t>(first[k]), j) += (5.0 - double(k)) / 5 / (2 * splits);
      }
    }
  }
  // Two that enter between two points of the grid may change places.
  double wrong = 0;
  for (std::int64_t e = 0; e < m * m; ++e)
    wrong = std::max(wrong, std::fabs(score.data()[e] - expected.data()[e]));
  BOOST_TEST(wrong < 0.01);
}

BOOST_AUTO_TEST_CASE(scores_take_what_is_no_table_for_a_lasso) {
  Matrix x(12, 4);
  Rng rng(1);
  for (std::int64_t i = 0; i < 12; ++i) {
    x(i, 0) = 1e300 * rng.normal();
    x(i, 1) = x(i, 0); // identical
    x(i, 2) = 5;       // constant
    x(i, 3) = i == 3;  // one row
  }
  Run run;
  const Matrix score = cape::stability_selection(x, run);
  for (std::int64_t j = 0; j < 4; ++j)
    for (std::int64_t i = 0; i < 4; ++i) {
      BOOST_TEST((score(i, j) >= 0 && score(i, j) <= 1));
      if (i == j || i == 2 || j == 2) BOOST_TEST(score(i, j) == 0);
    }
  BOOST_TEST(score(0, 1) > 0.9);
  BOOST_TEST(fails_with(Status::invalid_argument, "4",
                        [&] { cape::stability_selection(Matrix(3, 2), run); }));
  x(0, 0) = infinity;
  BOOST_TEST(fails_with(Status::invalid_argument, "x", [&] { cape::stability_selection(x, run); }));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(p_values)

BOOST_AUTO_TEST_CASE(published_values) {
  // 3 of 20 rows and 4 of 20, 3 in both: 17 of the 4845 ways to choose 4 have them all.
  std::vector<double> x(20), y(20);
  x[2] = x[5] = x[11] = 1;
  y[2] = y[5] = y[11] = y[17] = 8;
  BOOST_TEST(cape::edge_p_value(x, y, Matrix(), 50) == 2 * 17.0 / 4845,
             boost::test_tools::tolerance(1e-12));
  // Student's t with 10 and 30 degrees of freedom: upper 5 %, 2.5 % and 0.1 %.
  Rng rng(2);
  for (const auto& [n, t, tail] : {std::tuple{11, 1.812, 0.05},
                                   {11, 2.228, 0.025},
                                   {11, 4.144, 0.001},
                                   {31, 1.697, 0.05},
                                   {31, 3.385, 0.001}}) {
    // No relation: orthogonal, and so are the squares, by symmetry.
    std::vector<double> even, odd;
    for (int i = 0; i < n; ++i) {
      even.push_back(std::abs(i - n / 2) + 1e-3 * std::abs(i - n / 2) * (i % 2));
      odd.push_back(i);
    }
    const double by_chance = cape::edge_p_value(even, odd, Matrix(), -infinity);
    BOOST_TEST(cape::edge_p_value(even, odd, Matrix(), t) == std::min(by_chance, 2 * tail),
               boost::test_tools::tolerance(0.04));
    BOOST_TEST(by_chance > 0.2);
  }
}

// Of columns without a relation, p is below 0.05 in a twentieth of the cases, whatever they are.
// (Half of it comes from t, which is none here.)
BOOST_AUTO_TEST_CASE(p_is_uniform_where_there_is_nothing) {
  const std::vector<std::function<double(Rng&)>> kinds = {
      [](Rng& r) { return r.normal(); },
      [](Rng& r) { return r.normal() / std::sqrt(-std::log(r.uniform(0, 1))); },
      [](Rng& r) { return r.uniform(0, 1) < 0.3 ? 1 + r.uniform(0, 1) : 0.0; },
      [](Rng& r) { return r.uniform(0, 1) < 0.03 ? 1 + r.uniform(0, 1) : 0.0; }};
  constexpr int trials = 600, n = 200;
  for (std::size_t a = 0; a < kinds.size(); ++a)
    for (std::size_t b = 0; b < kinds.size(); ++b) {
      int below = 0, far_below = 0;
      for (int t = 0; t < trials; ++t) {
        Rng rng(7, {a, b, static_cast<std::uint64_t>(t)});
        std::vector<double> x, y;
        Matrix others(n, 2);
        for (int i = 0; i < n; ++i) {
          x.push_back(kinds[a](rng));
          y.push_back(kinds[b](rng));
          others(i, 0) = rng.normal();
          others(i, 1) = kinds[0](rng) + others(i, 0);
        }
        const double p = cape::edge_p_value(x, y, others, -infinity);
        BOOST_TEST_REQUIRE((p >= 0 && p <= 1));
        below += p < 0.1;
        far_below += p < 0.004;
      }
      // 30 expected, sd 5.3, and 1.2. Twice as many of counts (sd 7.3), which have no t, at most:
      // they are discrete.
      const bool counts = a >= 2 && b >= 2;
      BOOST_TEST(below < (counts ? 85 : 50), "kinds " << a << " and " << b << ": " << below);
      BOOST_TEST(far_below < (counts ? 10 : 7), "kinds " << a << " and " << b << ": " << far_below);
      if (a < 3 && b < 3) BOOST_TEST(below > 12, "kinds " << a << " and " << b << ": " << below);
    }
}

// Nor are there too many that are far below, where most rows of both have one value: F tests of
// their scores gave 46 and more below 1e-3, of 10 expected, and 8 below 1e-5.
BOOST_AUTO_TEST_CASE(p_of_sparse_columns_is_small_no_more_often_than_it_says) {
  constexpr int trials = 10000, n = 1000;
  for (const auto& [first, second] : {std::pair(0.05, 0.1), {0.1, 0.1}, {0.1, 0.3}}) {
    int below = 0, far_below = 0;
    for (int t = 0; t < trials; ++t) {
      Rng rng(9, {static_cast<std::uint64_t>(1000 * first),
                  static_cast<std::uint64_t>(100 * second), static_cast<std::uint64_t>(t)});
      std::vector<double> x, y;
      const auto count = [&rng](double detected) {
        return rng.uniform(0, 1) < detected ? 1 + static_cast<double>(rng.poisson(1)) : 0.0;
      };
      for (int i = 0; i < n; ++i) {
        x.push_back(count(first));
        y.push_back(count(second));
      }
      const double p = cape::edge_p_value(x, y, Matrix(), infinity);
      below += p < 1e-3;
      far_below += p < 1e-5;
    }
    // More than 20 of 10 have the probability .002, more than one of .1 .005.
    BOOST_TEST(below <= 20, first << " and " << second << ": " << below);
    BOOST_TEST(far_below <= 1, first << " and " << second << ": " << far_below);
  }
}

BOOST_AUTO_TEST_CASE(p_sees_lines_and_bends_and_what_others_explain) {
  constexpr int n = 300;
  std::vector<double> x, line, bend, child;
  Matrix parent(n, 1);
  Rng rng(8);
  for (int i = 0; i < n; ++i) {
    x.push_back(rng.normal());
    line.push_back(0.4 * x.back() + rng.normal());
    bend.push_back(0.4 * x.back() * x.back() + rng.normal());
    parent(i, 0) = 2 * x.back() + rng.normal();
    child.push_back(parent(i, 0) + rng.normal());
  }
  const double none = -infinity;
  BOOST_TEST(cape::edge_p_value(x, line, Matrix(), none) < 1e-6);
  BOOST_TEST(cape::edge_p_value(x, bend, Matrix(), none) < 1e-6);
  BOOST_TEST(cape::edge_p_value(x, child, Matrix(), none) < 1e-20);
  BOOST_TEST(cape::edge_p_value(x, child, parent, none) > 0.01);
  // Too many others for the rows.
  Matrix many(8, 6);
  for (std::int64_t e = 0; e < many.size(); ++e) many.data()[e] = rng.normal();
  BOOST_TEST(cape::edge_p_value(std::span(x).first(8), std::span(line).first(8), many, none) == 1);
}

// A cause that is a function of another one adds nothing, nor does one that is there twice.
BOOST_AUTO_TEST_CASE(p_is_one_where_another_cause_is_the_same) {
  constexpr int n = 100;
  std::vector<double> x, y;
  Matrix same(n, 1);
  Rng rng(3);
  for (int i = 0; i < n; ++i) {
    x.push_back(rng.normal());
    same(i, 0) = std::exp(x.back());
    y.push_back(x.back() + rng.normal());
  }
  BOOST_TEST(cape::edge_p_value(x, y, same, -infinity) == 1);
}

BOOST_AUTO_TEST_CASE(bad_input) {
  const std::vector<double> x(5, 1.0), y{1, 2, 3, 4, 5}, bad{1, 2, 3, 4, infinity};
  const auto refused = [&](std::span<const double> a, std::span<const double> b,
                           const Matrix& others, double t, Status status, const char* what) {
    BOOST_TEST(fails_with(status, what, [&] { cape::edge_p_value(a, b, others, t); }));
  };
  refused(y, std::span(y).first(4), {}, 1, Status::dim_mismatch, "as many");
  refused({}, {}, {}, 1, Status::invalid_argument, "at least 2");
  refused(y, y, Matrix(4, 1), 1, Status::dim_mismatch, "others");
  refused(bad, y, {}, 1, Status::invalid_argument, "x has");
  refused(y, bad, {}, 1, Status::invalid_argument, "y has");
  refused(y, y, {}, std::nan(""), Status::invalid_argument, "t is NaN");
  BOOST_TEST(cape::edge_p_value(x, y, Matrix(), 9) == 1); // does not vary
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(bags)

BOOST_AUTO_TEST_CASE(shares_are_those_of_the_bags_and_bits_do_not_depend_on_threads) {
  for (const Sem sem : {Sem::mlp, Sem::linear}) {
    const Matrix x = chain(60, 40, 6);
    DagOptions options = quick(sem);
    options.standardize = true;
    Run one(2, 1), three(2, 3);
    const Dag a = cape::learn_dag(x, options, one), b = cape::learn_dag(x, options, three);
    BOOST_TEST((a.weights == b.weights && a.support == b.support && a.bag_share == b.bag_share &&
                a.h == b.h));
    BOOST_TEST(a.bags == 3);
    BOOST_TEST(!a.bag_share.values.empty());
    for (const double s : a.bag_share.values)
      BOOST_TEST(std::fabs(3 * s - std::round(3 * s)) < 1e-12);
    // What most bags have, the graph has, one way or the other, but for cycles.
    for (std::int64_t j = 0; j < 40; ++j) {
      BOOST_TEST(a.support(j, j) == 0);
      for (std::int64_t i = 0; i < 40; ++i)
        if (a.bag_share(i, j) == 0) BOOST_TEST(std::fabs(a.weights(i, j)) <= a.threshold + 1e-12);
    }
    BOOST_TEST(a.history.size() == 6u); // 30 % of 20 epochs
    Run other(3, 1);
    BOOST_TEST(!(cape::learn_dag(x, options, other).weights == a.weights));
  }
}

BOOST_AUTO_TEST_CASE(as_many_as_the_shape_asks_for) {
  DagOptions options = quick(Sem::linear);
  options.bags = -1;
  options.epochs = 4;
  Run run;
  BOOST_TEST(cape::learn_dag(chain(30, 20, 1), options, run).bags == 10);
  BOOST_TEST(cape::learn_dag(chain(40, 20, 1), options, run).bags == 0);
  options.rank = 2;
  BOOST_TEST(cape::learn_dag(chain(30, 20, 1), options, run).bags == 0);
}

BOOST_AUTO_TEST_CASE(rows_from_a_source_give_the_same_bits) {
  const Matrix x = chain(50, 30, 7);
  for (const bool standardize : {false, true}) {
    DagOptions options = quick(Sem::mlp);
    options.standardize = standardize;
    options.candidates = standardize ? 6 : -1;
    Run run(5, 2), again(5, 1);
    const Dag a = cape::learn_dag(x, options, run),
              b = cape::learn_dag(test::rows_of(x), options, again);
    BOOST_TEST((a.weights == b.weights && a.support == b.support && a.bag_share == b.bag_share));
  }
}

BOOST_AUTO_TEST_CASE(a_fit_that_went_on_is_the_fit_that_was_not_interrupted) {
  const Matrix x = chain(40, 30, 8);
  const DagOptions options = quick(Sem::mlp);
  Run run(4, 1);
  const Dag whole = cape::learn_dag(x, options, run);
  std::int64_t steps = 0, last = 0, total = 0;
  {
    const auto count = [&](const cape::Progress& p) {
      if (p.stage == "dag" && p.total > 0) {
        BOOST_TEST(p.step >= last); // forwards, over all bags
        last = p.step, total = p.total;
        ++steps;
      }
      return true;
    };
    Run counted(4, 1, count, std::chrono::milliseconds(0));
    cape::learn_dag(x, options, counted);
    BOOST_TEST(last == total);
    BOOST_TEST(steps >= total);
  }
  Checkpoint checkpoint;
  int interrupted = 0;
  for (const std::int64_t at :
       {total / 9, total / 3 - 1, total / 3, total / 3 + 1, total / 2, 2 * total / 3, total - 1}) {
    const auto before = [&](const cape::Progress& p) { return p.stage != "dag" || p.step < at; };
    Run stopped(4, 1, before, std::chrono::milliseconds(0));
    try {
      cape::learn_dag(x, options, stopped, {}, &checkpoint);
    } catch (const cape::Error& e) {
      BOOST_TEST((e.code() == Status::cancelled));
      ++interrupted;
    }
  }
  BOOST_TEST(interrupted >= 5);
  Run rest(4, 2);
  const Dag resumed = cape::learn_dag(x, options, rest, {}, &checkpoint);
  BOOST_TEST((resumed.weights == whole.weights && resumed.sign == whole.sign &&
              resumed.bag_share == whole.bag_share && resumed.h == whole.h));
  BOOST_TEST(resumed.history.size() == whole.history.size());
  BOOST_TEST(resumed.history.back().loss == whole.history.back().loss);
  BOOST_TEST(checkpoint.epoch == 3 * 6);

  // Cancelled at every 29th occasion to, whatever is done there.
  Checkpoint everywhere;
  for (std::int64_t attempts = 0, done = 0; done == 0; ++attempts) {
    BOOST_TEST_REQUIRE(attempts < 400);
    std::int64_t calls = 0;
    Run stopped(
        4, 1, [&](const cape::Progress&) { return ++calls < 29 + 23 * attempts; },
        std::chrono::milliseconds(0));
    try {
      const Dag dag = cape::learn_dag(x, options, stopped, {}, &everywhere);
      BOOST_TEST((dag.weights == whole.weights && dag.bag_share == whole.bag_share));
      done = 1;
    } catch (const cape::Error& e) {
      BOOST_TEST((e.code() == Status::cancelled), e.what());
    }
  }

  Checkpoint other = checkpoint;
  other.epoch = 3 * 6 + 1;
  BOOST_TEST(fails_with(Status::invalid_argument, "checkpoint is damaged",
                        [&] { cape::learn_dag(x, options, rest, {}, &other); }));
  other = checkpoint;
  other.values[2 * 30 * 30 + 1] = 7; // a share
  BOOST_TEST(fails_with(Status::invalid_argument, "checkpoint is damaged",
                        [&] { cape::learn_dag(x, options, rest, {}, &other); }));
  checkpoint.values.pop_back();
  BOOST_TEST(fails_with(Status::invalid_argument, "checkpoint is damaged",
                        [&] { cape::learn_dag(x, options, rest, {}, &checkpoint); }));
}

BOOST_AUTO_TEST_CASE(signs_are_those_of_signed_means) {
  DagOptions options = quick(Sem::linear);
  options.epochs = 30;
  options.bags = 4;
  Run run(3, 1);
  const Dag dag = cape::learn_dag(chain(24, 20, 3), options, run);
  for (std::int64_t j = 0; j < 20; ++j)
    for (std::int64_t i = 0; i < 20; ++i) {
      const double w = dag.weights(i, j);
      BOOST_TEST(dag.sign(i, j) == (w > 0) - (w < 0));
    }
}

// What is excluded has neither weight nor support, in weighted, gappy and perturbed tables too.
BOOST_AUTO_TEST_CASE(knowledge_and_design_hold_in_every_bag) {
  constexpr std::int64_t rows = 60, m = 12;
  Matrix x = chain(rows, m, 9);
  Prior prior;
  prior.knowledge.forbidden = {{0, 1, 1}};
  prior.knowledge.required = {{5, 0, 1}};
  prior.knowledge.roots = {7};
  for (std::int64_t i = 0; i < rows; ++i) prior.design.weight.push_back(i % 4 == 0 ? 0.25 : 1);
  for (std::int64_t i = 0; i < 10; ++i) prior.design.perturbed.push_back({i, 3});
  x(20, 4) = x(21, 5) = std::nan("");
  DagOptions options = quick(Sem::mlp);
  options.missing = cape::Missing::mask;
  options.standardize = true;
  Run run;
  const Dag dag = cape::learn_dag(x, options, run, prior);
  BOOST_TEST(dag.weights(0, 1) == 0);
  BOOST_TEST(dag.support(0, 1) == 0);
  BOOST_TEST(dag.support(1, 2) > 0);
  for (std::int64_t i = 0; i < m; ++i) BOOST_TEST(dag.support(i, 7) == 0);
  bool required = false;
  for (const cape::Edge& e : dag.graph.edges()) required |= e.from == 5 && e.to == 0;
  BOOST_TEST(required);
}

BOOST_AUTO_TEST_CASE(bad_options) {
  DagOptions options;
  Run run;
  options.bags = 1001;
  BOOST_TEST(fails_with(Status::invalid_argument, "dag.bags",
                        [&] { cape::learn_dag(chain(20, 3, 1), options, run); }));
  options.bags = -1;
  options.refine_fdr = 1.5;
  BOOST_TEST(fails_with(Status::invalid_argument, "dag.refine_fdr",
                        [&] { cape::learn_dag(chain(20, 3, 1), options, run); }));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(graphs)

// Independent columns have an edge in a tenth of all tables at most: three of eight have the
// probability .04.
BOOST_AUTO_TEST_CASE(noise_gives_no_graph) {
  const std::vector<std::function<double(Rng&)>> kinds = {
      [](Rng& r) { return r.normal(); },
      [](Rng& r) { return r.normal() / std::sqrt(-std::log(r.uniform(0, 1))); },
      [](Rng& r) { return r.uniform(0, 1) < 0.3 ? 1 + r.uniform(0, 1) : 0.0; },
      [](Rng& r) { return r.uniform(0, 1) < 0.03 ? 1 + r.uniform(0, 1) : 0.0; }};
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    int with_edges = 0, edges = 0;
    for (std::uint64_t table = 0; table < 8; ++table) {
      const std::int64_t rows = kind == 3 ? 300 : 40, m = 10;
      Matrix x(rows, m);
      Rng rng(11, {kind, table});
      for (std::int64_t e = 0; e < x.size(); ++e) x.data()[e] = kinds[kind](rng);
      DagOptions options;
      options.standardize = table % 2 == 0;
      options.epochs = options.refine_epochs = 40;
      Run run(1, 2);
      const Dag dag = cape::learn_dag(x, options, run);
      with_edges += !dag.graph.edges().empty();
      edges += static_cast<int>(dag.graph.edges().size());
      BOOST_TEST(dag.false_discovery_rate <= 0.1);
    }
    BOOST_TEST(with_edges <= 2, "kind " << kind << ": " << with_edges << " with " << edges);
  }
}

// The weight of a refined edge is its partial correlation where relations are linear: here .8 /
// sqrt(1.64) = .625 for the first, and the second cause, given the first, 1 / sqrt(2) = .707.
BOOST_AUTO_TEST_CASE(refined_weights_are_partial_correlations) {
  constexpr std::int64_t rows = 4000;
  Matrix x(rows, 4);
  Rng rng(12);
  for (std::int64_t i = 0; i < rows; ++i) {
    x(i, 0) = rng.normal();
    x(i, 1) = -0.8 * x(i, 0) + rng.normal();
    x(i, 2) = rng.normal();
    x(i, 3) = x(i, 1) + x(i, 2) + rng.normal();
  }
  for (const Sem sem : {Sem::linear, Sem::mlp}) {
    DagOptions options;
    options.sem = sem;
    Run run(1, 2);
    const Dag dag = cape::learn_dag(x, options, run);
    BOOST_TEST_REQUIRE(dag.refined);
    const auto weight = [&](std::int64_t i, std::int64_t j) {
      for (const cape::Edge& e : dag.graph.edges())
        if (e.from == i && e.to == j) return e.weight;
      return 0.0;
    };
    BOOST_TEST(weight(0, 1) == -0.8 / std::sqrt(1.64), boost::test_tools::tolerance(0.06));
    BOOST_TEST(weight(2, 3) == std::sqrt(0.5), boost::test_tools::tolerance(0.06));
    // x1 given x2: sd of x1 is sqrt(1.64), so that x3 less x2 has 1.64 of 2.64 by it.
    BOOST_TEST(weight(1, 3) == std::sqrt(1.64 / 2.64), boost::test_tools::tolerance(0.06));
    BOOST_TEST(dag.graph.edges().size() == 3u);
  }
}

BOOST_AUTO_TEST_SUITE_END()
