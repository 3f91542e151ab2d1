// The objectives of Step II against their formulas written out naively, and their gradients against
// differences along geodesics.
#define BOOST_TEST_MODULE objective
#include <boost/test/unit_test.hpp>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>
import cape;
#include "errors.hpp"

using namespace cape;
using test::fails_with;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr Objective objectives[] = {Objective::soft, Objective::literal, Objective::effect,
                                    Objective::symmetric};

std::vector<double> row(const Matrix& m, std::int64_t i) {
  std::vector<double> out;
  for (std::int64_t k = 0; k < m.cols(); ++k) out.push_back(m(i, k));
  return out;
}

void set_row(Matrix& m, std::int64_t i, const std::vector<double>& values) {
  for (std::int64_t k = 0; k < m.cols(); ++k) m(i, k) = values[static_cast<std::size_t>(k)];
}

// Points no nearer to each other and to the origin than 0.02: distances have kinks there.
Matrix random_points(std::int64_t m, std::int64_t d, double spread, std::uint64_t seed) {
  Rng rng(seed);
  Matrix points(m, d + 1);
  std::vector<double> p(static_cast<std::size_t>(d) + 1);
  for (std::int64_t i = 0; i < m;) {
    for (std::size_t k = 1; k < p.size(); ++k) p[k] = spread * rng.normal();
    lorentz::project(p);
    bool apart = p[0] > std::cosh(0.02);
    for (std::int64_t j = 0; j < i && apart; ++j)
      apart = lorentz::distance(row(points, j), p) > 0.02;
    if (apart) set_row(points, i++, p);
  }
  return points;
}

// A random DAG (i -> j only for i < j), one node in five without edges.
Digraph random_dag(std::int64_t m, double density, std::uint64_t seed) {
  Rng rng(seed);
  std::vector<Edge> edges;
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = i + 1; j < m; ++j)
      if (i % 5 != 4 && j % 5 != 4 && rng.uniform() < density)
        edges.push_back({i, j, (rng.uniform() < 0.5 ? -1 : 1) * rng.uniform(0.3, 1)});
  return Digraph(m, edges);
}

Digraph cyclic_graph() {
  return Digraph(6,
                 {{0, 1, 0.5}, {1, 2, -0.9}, {2, 0, 0.4}, {2, 3, 1.0}, {3, 4, 0.7}, {4, 3, 0.2}});
}

Matrix square(std::int64_t m, double off, double diagonal) {
  Matrix out(m, m);
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < m; ++j) out(i, j) = i == j ? diagonal : off;
  return out;
}

Matrix pair_distances(const Matrix& points) {
  Matrix d(points.rows(), points.rows());
  for (std::int64_t i = 0; i < d.rows(); ++i)
    for (std::int64_t j = 0; j < d.rows(); ++j)
      d(i, j) = lorentz::distance(row(points, i), row(points, j));
  return d;
}

// Best product of |weights| over directed paths of at most `hops` edges between two different
// nodes.
Matrix path_strengths(const Matrix& a, std::int64_t hops) {
  const std::int64_t m = a.rows();
  Matrix best(m, m), step(m, m);
  for (std::int64_t i = 0; i < m; ++i) step(i, i) = 1;
  for (std::int64_t hop = 0; hop < hops; ++hop) {
    Matrix next(m, m);
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < m; ++j)
        for (std::int64_t k = 0; k < m; ++k)
          next(i, j) = std::max(next(i, j), step(i, k) * std::abs(a(k, j)));
    step = next;
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < m; ++j)
        if (i != j) best(i, j) = std::max(best(i, j), step(i, j));
  }
  return best;
}

// Edges of the longest path between any two nodes by edges that lie on no cycle; -1 without one.
Matrix longest_paths(const Digraph& graph) {
  const std::int64_t m = graph.size();
  const Matrix reach = path_strengths(graph.adjacency(), m);
  Matrix longest = square(m, -1, 0);
  for (std::int64_t round = 0; round < m; ++round)
    for (const Edge& e : graph.edges())
      for (std::int64_t i = 0; i < m; ++i)
        if (reach(e.to, e.from) == 0 && longest(i, e.from) >= 0)
          longest(i, e.to) = std::max(longest(i, e.to), longest(i, e.from) + 1);
  return longest;
}

// Ranks of the terms of the loss, one for one as they are written in docs/method.md and the paper.
double naive_soft(const Digraph& graph, const Matrix& points, const EmbedOptions& o) {
  const std::int64_t m = graph.size();
  const Matrix a = graph.adjacency(), d = pair_distances(points);
  Matrix path = square(m, infinity, 0); // Floyd-Warshall over the undirected graph
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < m; ++j)
      if (a(i, j) != 0) {
        const double cost = o.hop_cost - std::log(std::abs(a(i, j)));
        path(i, j) = std::min(path(i, j), cost);
        path(j, i) = std::min(path(j, i), cost);
      }
  for (std::int64_t k = 0; k < m; ++k)
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < m; ++j)
        path(i, j) = std::min(path(i, j), path(i, k) + path(k, j));
  double loss = 0;
  for (std::int64_t i = 0; i < m; ++i) {
    double targets = 0, energies = 0;
    for (std::int64_t n = 0; n < m; ++n)
      if (n != i) {
        targets += std::exp(-path(i, n) / o.soft_temperature);
        energies += std::exp(-d(i, n) / o.temperature);
      }
    if (targets == 0) continue;
    for (std::int64_t n = 0; n < m; ++n)
      if (n != i && path(i, n) < infinity)
        loss -= std::exp(-path(i, n) / o.soft_temperature) / targets *
                std::log(std::exp(-d(i, n) / o.temperature) / energies) / static_cast<double>(m);
  }
  Run run;
  const std::vector<double> pi = pagerank(graph, o.restart, run);
  const auto r = [&](std::int64_t i) { return std::acosh(points(i, 0)); };
  const Matrix longest = longest_paths(graph);
  double depth = 0;
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < m; ++j) depth = std::max(depth, longest(i, j));
  const double margin =
      depth > 0 ? std::min(o.rank_margin, std::min(4.0, o.max_radius / 4) / depth) : o.rank_margin;
  const double t = o.rank_temperature * margin / o.rank_margin;
  for (const Edge& e : graph.edges())
    loss += o.rank_weight / static_cast<double>(m) * t *
            std::log(1 + std::exp((r(e.from) - r(e.to) + margin) / t));
  for (std::int64_t i = 0; i < m; ++i)
    loss += o.generality_weight * pi[static_cast<std::size_t>(i)] * r(i);
  double mean = 0;
  for (std::int64_t i = 0; i < m; ++i) mean += r(i) / static_cast<double>(m);
  std::vector<double> level(static_cast<std::size_t>(m)), low = level, high = level;
  for (std::int64_t i = 0; i < m; ++i) {
    double before = 0; // how many are more general, and half of those that are as general
    for (std::int64_t j = 0; j < m; ++j) {
      const double p = pi[static_cast<std::size_t>(i)], q = pi[static_cast<std::size_t>(j)];
      if (j != i) before += std::abs(p - q) <= 1e-12 * p ? 0.5 : q > p ? 1 : 0;
    }
    level[static_cast<std::size_t>(i)] =
        m > 1 ? o.level_spread * (before / static_cast<double>(m - 1) - 0.5) : 0;
  }
  double mean_level = 0; // between what the levels of causes and those of effects ask for
  for (std::int64_t i = 0; i < m; ++i) {
    double &l = low[static_cast<std::size_t>(i)], &h = high[static_cast<std::size_t>(i)];
    l = h = level[static_cast<std::size_t>(i)];
    for (std::int64_t j = 0; j < m; ++j) {
      const double other = level[static_cast<std::size_t>(j)];
      if (longest(j, i) >= 0) h = std::max(h, other + margin * longest(j, i));
      if (longest(i, j) >= 0) l = std::min(l, other - margin * longest(i, j));
    }
    mean_level += (l + h) / 2 / static_cast<double>(m);
  }
  for (std::int64_t i = 0; i < m; ++i) {
    const double wanted =
        (low[static_cast<std::size_t>(i)] + high[static_cast<std::size_t>(i)]) / 2 - mean_level;
    loss += o.level_weight / static_cast<double>(2 * m) * std::pow(r(i) - mean - wanted, 2);
  }
  return loss;
}

double naive_k_hop(const Digraph& graph, const Matrix& points, const EmbedOptions& o) {
  const std::int64_t m = graph.size();
  const Matrix a = graph.adjacency(), d = pair_distances(points), path = path_strengths(a, o.k_hop);
  double loss = 0;
  for (std::int64_t i = 0; i < m; ++i) {
    // weight of n as a positive of i; -1: a negative
    const auto weight = [&](std::int64_t n) {
      const bool descendant = path(i, n) > 0, ancestor = path(n, i) > 0;
      if (o.objective == Objective::literal) return descendant ? std::abs(a(i, n)) : -1;
      if (o.objective == Objective::effect) return ancestor ? path(n, i) : -1;
      return ancestor || descendant ? std::max(path(i, n), path(n, i)) : -1;
    };
    double negatives = 0;
    for (std::int64_t n = 0; n < m; ++n)
      if (n != i && weight(n) < 0) negatives += std::exp(-d(i, n) / o.temperature);
    for (std::int64_t n = 0; n < m; ++n)
      if (n != i && weight(n) >= 0) {
        const double e = std::exp(-d(i, n) / o.temperature);
        loss -= weight(n) * std::log(e / (e + negatives)) / static_cast<double>(m);
      }
  }
  Run run;
  const std::vector<double> pi = pagerank(graph, o.restart, run);
  for (std::int64_t i = 0; i < m; ++i)
    loss += o.generality_weight * pi[static_cast<std::size_t>(i)] * std::acosh(points(i, 0)) /
            static_cast<double>(m);
  return loss;
}

EmbedOptions options_for(Objective objective, std::int64_t d) {
  EmbedOptions o;
  o.objective = objective;
  o.dims = d;
  o.temperature = objective == Objective::soft ? 0.5 : 1;
  o.level_spread = 0.4;
  o.generality_weight = 0.3;
  return o;
}

double loss_at(const Digraph& graph, const Matrix& points, const EmbedOptions& o) {
  Run run;
  return embedding_loss(graph, points, o, nullptr, run);
}

// The gradient applied to a move of all points along geodesics, against a difference of fourth
// order.
void check_gradient(const Digraph& graph, const Matrix& points, const EmbedOptions& o,
                    std::uint64_t seed, double h, double tolerance) {
  Run run;
  Matrix gradient;
  const double loss = embedding_loss(graph, points, o, &gradient, run);
  BOOST_TEST(loss == loss_at(graph, points, o));
  BOOST_REQUIRE(gradient.rows() == points.rows());
  BOOST_REQUIRE(gradient.cols() == points.cols());
  const std::int64_t m = points.rows();
  Matrix tangents(m, points.cols());
  Rng rng(seed, {hash("tangents")});
  double slope = 0;
  for (std::int64_t i = 0; i < m; ++i) {
    std::vector<double> p = row(points, i), v(p.size());
    for (double& x : v) x = rng.normal();
    lorentz::project_tangent(p, v, v);
    const double length = lorentz::norm(p, v);
    for (double& x : v) x /= length;
    set_row(tangents, i, v);
    for (std::int64_t k = 0; k < points.cols(); ++k) slope += gradient(i, k) * tangents(i, k);
  }
  const auto moved = [&](double t) {
    Matrix out(m, points.cols());
    for (std::int64_t i = 0; i < m; ++i) {
      std::vector<double> p = row(points, i), v = row(tangents, i);
      for (double& x : v) x *= t;
      lorentz::exp(p, v, p);
      set_row(out, i, p);
    }
    return loss_at(graph, out, o);
  };
  const double difference =
      (8 * (moved(h) - moved(-h)) - (moved(2 * h) - moved(-2 * h))) / (12 * h);
  BOOST_TEST(std::abs(slope - difference) <= tolerance * (1 + std::abs(slope)),
             "slope " << slope << " difference " << difference);
}

} // namespace

BOOST_AUTO_TEST_CASE(the_soft_objective_is_its_formula) {
  for (const std::int64_t m : {2, 6, 30, 70, 131}) // below, at and beyond a panel of 64 columns
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      const Digraph graph = random_dag(m, 0.3, seed);
      const Matrix points = random_points(m, 3, 1, seed);
      const EmbedOptions o = options_for(Objective::soft, 3);
      const double expected = naive_soft(graph, points, o);
      BOOST_TEST(std::abs(loss_at(graph, points, o) - expected) <= 1e-12 * (1 + expected));
    }
  // A node alone has neither distances nor an order.
  for (const Space space : {Space::hyperbolic, Space::euclidean}) {
    EmbedOptions alone = options_for(Objective::soft, 3);
    alone.space = space;
    Run run;
    Matrix gradient;
    const Matrix point = random_points(1, 3, 1, 1);
    BOOST_TEST(embedding_loss(Digraph(1), point, alone, &gradient, run) ==
                   alone.generality_weight * std::acosh(point(0, 0)),
               boost::test_tools::tolerance(1e-12));
    for (std::int64_t k = 0; k < 4; ++k) BOOST_TEST(std::isfinite(gradient(0, k)));
  }
  // A path so long that the margin shrinks.
  std::vector<Edge> chain;
  for (std::int64_t i = 1; i < 250; ++i) chain.push_back({i - 1, i, 0.8});
  EmbedOptions deep = options_for(Objective::soft, 3);
  const Matrix many = random_points(250, 3, 1, 7);
  const Digraph deep_graph(250, chain);
  BOOST_TEST(std::abs(loss_at(deep_graph, many, deep) - naive_soft(deep_graph, many, deep)) <=
             1e-10);
  deep.max_radius = 4; // of the points: 3
  BOOST_TEST(std::abs(loss_at(deep_graph, many, deep) - naive_soft(deep_graph, many, deep)) <=
             1e-10);
  const Matrix points = random_points(6, 2, 1, 1);
  const EmbedOptions o = options_for(Objective::soft, 2);
  BOOST_TEST(std::abs(loss_at(cyclic_graph(), points, o) - naive_soft(cyclic_graph(), points, o)) <=
             1e-12);
}

BOOST_AUTO_TEST_CASE(the_k_hop_objectives_are_eq_losscon) {
  for (const Objective kind : {Objective::literal, Objective::effect, Objective::symmetric})
    for (const std::int64_t hops : {1, 2, 3})
      for (const std::int64_t m : {2, 6, 30, 70}) {
        EmbedOptions o = options_for(kind, 3);
        o.k_hop = hops;
        const Digraph graph = random_dag(m, 0.2, 5);
        const Matrix points = random_points(m, 3, 1, 6);
        const double expected = naive_k_hop(graph, points, o);
        BOOST_TEST(std::abs(loss_at(graph, points, o) - expected) <= 1e-12 * (1 + expected));
        const Matrix few = random_points(6, 3, 1, 7);
        const double cyclic = naive_k_hop(cyclic_graph(), few, o);
        BOOST_TEST(std::abs(loss_at(cyclic_graph(), few, o) - cyclic) <= 1e-12 * (1 + cyclic));
      }
}

// Two nodes by hand: T = Q = 1, so that only the radial terms are left; k-hop: no negatives.
BOOST_AUTO_TEST_CASE(two_nodes_have_no_contrast) {
  const Digraph graph(2, {{0, 1, 0.8}});
  const Matrix points = random_points(2, 4, 0.7, 3);
  for (const Objective kind : objectives) {
    EmbedOptions o = options_for(kind, 4);
    o.rank_weight = 0;
    o.level_weight = 0;
    o.generality_weight = 0;
    BOOST_TEST(std::abs(loss_at(graph, points, o)) <= 1e-15);
  }
}

BOOST_AUTO_TEST_CASE(every_gradient_is_the_difference_of_its_objective) {
  for (const Objective kind : objectives)
    for (const std::int64_t d : {1, 2, 8})
      for (const std::int64_t m : {2, 12, 80})
        for (std::uint64_t seed = 0; seed < 3; ++seed) {
          EmbedOptions o = options_for(kind, d);
          o.rank_temperature = 0.2;
          check_gradient(random_dag(m, 0.3, seed), random_points(m, d, 2, seed), o, seed, 1e-4,
                         1e-8);
        }
  for (const Objective kind : objectives)
    check_gradient(cyclic_graph(), random_points(6, 3, 0.8, 1), options_for(kind, 3), 1, 1e-4,
                   1e-7);
}

BOOST_AUTO_TEST_CASE(the_gradient_holds_with_default_options_and_far_out) {
  for (const Objective kind : objectives) {
    EmbedOptions o;
    o.objective = kind;
    o.dims = 8;
    // Ranking at temperature 0.01: its fifth derivative is of order 1e8, h^4 of it is 1e-8.
    check_gradient(random_dag(40, 0.2, 2), random_points(40, 8, 0.5, 2), o, 3, 1e-4, 1e-6);
    // Radii of about 6 (p0 = 200).
    check_gradient(random_dag(20, 0.2, 4), random_points(20, 8, 70, 4), o, 5, 1e-4, 1e-6);
  }
}

// In flat space: moving normal coordinates, against a difference of fourth order.
BOOST_AUTO_TEST_CASE(the_gradient_in_flat_space_is_the_difference_of_its_objective) {
  const std::int64_t m = 20, d = 3;
  EmbedOptions o = options_for(Objective::soft, d);
  o.space = Space::euclidean;
  o.rank_temperature = 0.2;
  const Digraph graph = random_dag(m, 0.3, 6);
  Rng rng(7);
  Matrix x(m, d), v(m, d);
  for (std::int64_t i = 0; i < m * d; ++i) {
    x.data()[i] = 0.7 * rng.normal();
    v.data()[i] = rng.normal();
  }
  const auto lifted = [&](double t) {
    Matrix points(m, d + 1);
    for (std::int64_t i = 0; i < m; ++i) {
      std::vector<double> p{1};
      double length = 0;
      for (std::int64_t k = 0; k < d; ++k) {
        p.push_back(x(i, k) + t * v(i, k));
        length += p.back() * p.back();
      }
      length = std::sqrt(length);
      for (std::size_t k = 1; k < p.size(); ++k) p[k] *= std::sinh(length) / length;
      lorentz::project(p);
      set_row(points, i, p);
    }
    return points;
  };
  Run run;
  Matrix gradient;
  embedding_loss(graph, lifted(0), o, &gradient, run);
  double slope = 0;
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t k = 0; k < d; ++k) slope += gradient(i, k + 1) * v(i, k);
  const auto at = [&](double t) { return loss_at(graph, lifted(t), o); };
  const double h = 1e-4, difference = (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h);
  BOOST_TEST(std::abs(slope - difference) <= 1e-8 * (1 + std::abs(slope)));
}

// With every node a positive nothing is sampled; with fewer, the mean over draws is the whole
// objective (but for the logarithm of a mean, whose bias falls as 1 / negatives), and the mean
// gradient its gradient.
BOOST_AUTO_TEST_CASE(the_sampled_objective_estimates_the_whole_one) {
  const std::int64_t m = 40;
  const Digraph graph = random_dag(m, 0.12, 3);
  const Matrix points = random_points(m, 3, 1, 4);
  EmbedOptions o = options_for(Objective::soft, 3);
  const double whole = loss_at(graph, points, o);
  std::vector<Edge> edges; // a connected graph
  for (std::int64_t i = 1; i < m; ++i) edges.push_back({i / 3, i, 1 / static_cast<double>(i)});
  const Digraph connected(m, edges);
  EmbedOptions every = o;
  every.negatives = 16;
  every.positives = m;
  BOOST_TEST(std::abs(loss_at(connected, points, every) - loss_at(connected, points, o)) <=
             1e-12 * whole);
  check_gradient(connected, points, every, 5, 1e-4, 1e-6);
  // Whatever the temperature, and with weights whose targets leave the range of a float or a
  // double.
  std::vector<Edge> weak = edges, mixed = edges;
  for (Edge& e : weak) e.weight = 1e-300;
  for (Edge& e : mixed) e.weight = e.to % 2 == 0 ? 1 : 1e-300;
  for (const Digraph& g : {connected, Digraph(m, weak), Digraph(m, mixed)})
    for (const double temperature : {0.05, 0.06, 0.09, 0.1, 1.0, 100.0})
      for (const double soft_temperature : {0.01, 3.0}) {
        EmbedOptions all = o, sampled = every;
        all.temperature = sampled.temperature = temperature;
        all.soft_temperature = sampled.soft_temperature = soft_temperature;
        const double expected = loss_at(g, points, all);
        BOOST_TEST(std::abs(loss_at(g, points, sampled) - expected) <= 1e-12 * (1 + expected),
                   temperature << " " << soft_temperature);
        sampled.positives = 3;
        Run run(1);
        Matrix gradient;
        BOOST_TEST(std::isfinite(embedding_loss(g, points, sampled, &gradient, run)));
        BOOST_TEST(std::all_of(gradient.data(), gradient.data() + gradient.size(),
                               [](double x) { return std::isfinite(x); }));
      }

  o.positives = 5;
  const auto exact = [&](const Matrix& at) {
    EmbedOptions all = o;
    all.negatives = 0;
    return loss_at(graph, at, all);
  };
  const auto mean_loss = [&](std::int64_t negatives, std::uint64_t draws) {
    EmbedOptions sampled = o;
    sampled.negatives = negatives;
    double sum = 0;
    for (std::uint64_t seed = 0; seed < draws; ++seed) {
      Run draw(seed);
      sum += embedding_loss(graph, points, sampled, nullptr, draw) / static_cast<double>(draws);
    }
    return sum;
  };
  const double few = mean_loss(20, 4000) - whole, many = mean_loss(320, 400) - whole;
  BOOST_TEST_MESSAGE("bias of 20 and 320 negatives: " << few << " " << many);
  BOOST_TEST(std::abs(many) <= 0.005);
  BOOST_TEST(std::abs(few) <= 0.08);

  // The mean gradient, along a direction, against the difference of the whole objective there.
  Matrix direction(m, 4);
  Rng rng(8);
  const auto moved = [&](double t) {
    Matrix out = points;
    for (std::int64_t i = 0; i < m; ++i) {
      std::vector<double> p = row(points, i), v = row(direction, i);
      for (double& x : v) x *= t;
      lorentz::exp(p, v, p);
      set_row(out, i, p);
    }
    return out;
  };
  for (std::int64_t i = 0; i < m; ++i) {
    std::vector<double> v(4);
    for (double& x : v) x = rng.normal();
    lorentz::project_tangent(row(points, i), v, v);
    set_row(direction, i, v);
  }
  o.negatives = 320;
  constexpr int draws = 400;
  double slope = 0, squares = 0;
  for (int seed = 0; seed < draws; ++seed) {
    Run draw(static_cast<std::uint64_t>(seed));
    Matrix gradient;
    embedding_loss(graph, points, o, &gradient, draw);
    double s = 0;
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t k = 0; k < 4; ++k) s += gradient(i, k) * direction(i, k);
    slope += s / draws;
    squares += s * s / draws;
  }
  const double difference = (exact(moved(1e-4)) - exact(moved(-1e-4))) / 2e-4;
  const double error = std::sqrt((squares - slope * slope) / draws);
  BOOST_TEST_MESSAGE("slope " << slope << " +- " << error << ", difference " << difference);
  BOOST_TEST(std::abs(slope - difference) <= 5 * error + 0.01 * std::abs(slope));
}

// The gradient of distance is 0 at coincidence, and finite beside it.
BOOST_AUTO_TEST_CASE(coinciding_points_have_a_finite_gradient) {
  const Digraph graph = random_dag(10, 0.5, 8);
  for (const Objective kind : objectives)
    for (const double apart : {0.0, 1e-12, 1e-7}) {
      Matrix points = random_points(10, 3, 3, 9);
      for (std::int64_t i = 1; i < 10; ++i) {
        std::vector<double> p = row(points, 0);
        p[1] += apart * static_cast<double>(i);
        lorentz::project(p);
        set_row(points, i, p);
      }
      Run run;
      Matrix gradient;
      EmbedOptions o = options_for(kind, 3);
      o.rank_weight = 0;
      o.level_weight = 0;
      o.generality_weight = 0;
      BOOST_TEST(std::isfinite(embedding_loss(graph, points, o, &gradient, run)));
      for (std::int64_t i = 0; i < 10; ++i)
        for (std::int64_t k = 0; k < 4; ++k) {
          BOOST_TEST(std::isfinite(gradient(i, k)));
          if (apart == 0) BOOST_TEST(gradient(i, k) == 0);
        }
    }
}

BOOST_AUTO_TEST_CASE(the_origin_has_a_gradient) {
  Matrix points(3, 3);
  for (std::int64_t i = 0; i < 3; ++i) points(i, 0) = 1;
  for (const Objective kind : objectives) {
    Run run;
    Matrix gradient;
    embedding_loss(Digraph(3, {{0, 1, 1}, {1, 2, 1}}), points, options_for(kind, 2), &gradient,
                   run);
    for (std::int64_t i = 0; i < 3; ++i)
      for (std::int64_t k = 0; k < 3; ++k) BOOST_TEST(gradient(i, k) == 0);
  }
}

BOOST_AUTO_TEST_CASE(graphs_without_edges_have_no_contrastive_loss) {
  for (const Objective kind : objectives)
    for (const std::int64_t m : {1, 2, 4}) {
      EmbedOptions o = options_for(kind, 2);
      o.level_weight = 0;
      o.generality_weight = 0;
      BOOST_TEST(loss_at(Digraph(m), random_points(m, 2, 1, 1), o) == 0);
    }
}

BOOST_AUTO_TEST_CASE(weights_above_one_are_divided_by_the_largest) {
  const Digraph small(4, {{0, 1, 0.25}, {1, 2, -1}, {0, 3, 0.5}}),
      large(4, {{0, 1, 1}, {1, 2, -4}, {0, 3, -2}});
  const Matrix points = random_points(4, 3, 1, 2);
  for (const Objective kind : objectives)
    BOOST_TEST(loss_at(small, points, options_for(kind, 3)) ==
               loss_at(large, points, options_for(kind, 3)));
}

BOOST_AUTO_TEST_CASE(an_isometry_about_the_origin_changes_nothing) {
  const Digraph graph = random_dag(20, 0.2, 3);
  const Matrix points = random_points(20, 2, 1, 4);
  Matrix turned = points;
  for (std::int64_t i = 0; i < 20; ++i) {
    turned(i, 1) = std::cos(0.7) * points(i, 1) - std::sin(0.7) * points(i, 2);
    turned(i, 2) = std::sin(0.7) * points(i, 1) + std::cos(0.7) * points(i, 2);
  }
  for (const Objective kind : objectives) {
    const EmbedOptions o = options_for(kind, 2);
    BOOST_TEST(std::abs(loss_at(graph, points, o) - loss_at(graph, turned, o)) <= 1e-12);
  }
}

BOOST_AUTO_TEST_CASE(threads_do_not_change_a_bit) {
  const Digraph graph = random_dag(200, 0.05, 3);
  const Matrix points = random_points(200, 5, 1, 4);
  for (const Objective kind : objectives) {
    Run one(1, 1), two(1, 2);
    Matrix a, b;
    const EmbedOptions o = options_for(kind, 5);
    BOOST_TEST(embedding_loss(graph, points, o, &a, one) ==
               embedding_loss(graph, points, o, &b, two));
    BOOST_CHECK(a == b);
  }
}

BOOST_AUTO_TEST_CASE(bad_input_is_refused) {
  const Digraph graph(3, {{0, 1, 1}});
  const EmbedOptions o = options_for(Objective::soft, 2);
  const Matrix good = random_points(3, 2, 1, 1);
  Run run;
  const auto refused = [&](Status code, const Matrix& points, const EmbedOptions& options) {
    return fails_with(code, [&] { embedding_loss(graph, points, options, nullptr, run); });
  };
  BOOST_CHECK(refused(Status::dim_mismatch, random_points(2, 2, 1, 1), o));
  BOOST_CHECK(refused(Status::dim_mismatch, random_points(3, 3, 1, 1), o));
  Matrix bad = good;
  bad(1, 0) += 1;
  BOOST_CHECK(refused(Status::invalid_argument, bad, o));
  bad = good;
  bad(1, 1) = std::nan("");
  BOOST_CHECK(refused(Status::invalid_argument, bad, o));
  BOOST_CHECK(
      refused(Status::invalid_argument, random_points(3, 2, 1e8, 1), o)); // beyond max_radius
  EmbedOptions cold = o;
  cold.temperature = 0.02; // exp(-32 / 0.02) is 0
  BOOST_CHECK(refused(Status::invalid_argument, good, cold));
  BOOST_CHECK(fails_with(Status::invalid_argument,
                         [&] { embedding_loss(Digraph(0), Matrix(0, 3), o, nullptr, run); }));
}
