#define BOOST_TEST_MODULE graph
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <string>
#include <vector>
import cape;

using cape::Digraph;
using cape::Edge;
using cape::Matrix;
using cape::Rng;
using cape::Run;
using Order = std::vector<std::int64_t>;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

auto code_is(cape::Status code) {
  return [code](const cape::Error& e) { return e.code() == code; };
}
const auto invalid = code_is(cape::Status::invalid_argument);
const auto mismatch = code_is(cape::Status::dim_mismatch);

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

// Every ordered pair is an edge with the given probability; weights are normal.
Digraph random_graph(std::int64_t nodes, double density, Rng& rng) {
  std::vector<Edge> edges;
  for (std::int64_t m = 0; m < nodes; ++m)
    for (std::int64_t n = 0; n < nodes; ++n)
      if (m != n && rng.uniform() < density) edges.push_back({m, n, rng.normal()});
  return Digraph(nodes, edges);
}

// reach[m][n]: is there a directed path of one edge or more (Warshall)?
std::vector<std::vector<bool>> closure(const Digraph& graph) {
  const std::int64_t nodes = graph.size();
  std::vector reach(at(nodes), std::vector<bool>(at(nodes), false));
  for (const Edge& e : graph.edges()) reach[at(e.from)][at(e.to)] = true;
  for (std::size_t k = 0; k < at(nodes); ++k)
    for (std::size_t i = 0; i < at(nodes); ++i)
      if (reach[i][k])
        for (std::size_t j = 0; j < at(nodes); ++j)
          if (reach[k][j]) reach[i][j] = true;
  return reach;
}

bool has_cycle(const Digraph& graph) {
  const auto reach = closure(graph);
  for (std::size_t m = 0; m < reach.size(); ++m)
    if (reach[m][m]) return true;
  return false;
}

// Best product over all simple paths of at most `left` more edges, by enumeration.
void enumerate_paths(const Digraph& graph, std::int64_t node, std::int64_t left, double product,
                     std::vector<bool>& on_path, std::vector<double>& best) {
  on_path[at(node)] = true;
  best[at(node)] = std::max(best[at(node)], product);
  if (left > 0)
    for (const Edge& e : graph.out(node))
      if (!on_path[at(e.to)])
        enumerate_paths(graph, e.to, left - 1, product * std::min(std::fabs(e.weight), 1.0),
                        on_path, best);
  on_path[at(node)] = false;
}

Matrix best_by_enumeration(const Digraph& graph, std::int64_t hops) {
  Matrix strengths(graph.size(), graph.size());
  for (std::int64_t m = 0; m < graph.size(); ++m) {
    std::vector<bool> on_path(at(graph.size()), false);
    std::vector<double> best(at(graph.size()), 0.0);
    enumerate_paths(graph, m, hops, 1.0, on_path, best);
    for (std::int64_t n = 0; n < graph.size(); ++n) strengths(m, n) = best[at(n)];
  }
  return strengths;
}

Order inverse(const Order& order) {
  Order place(order.size());
  for (std::size_t k = 0; k < order.size(); ++k) place[at(order[k])] = std::int64_t(k);
  return place;
}

std::vector<double> pagerank(const Digraph& graph, double restart = 0.15) {
  Run run;
  return cape::pagerank(graph, restart, run);
}
std::vector<Edge> k_hop_strengths(const Digraph& graph, std::int64_t hops) {
  Run run;
  return cape::k_hop_strengths(graph, hops, run);
}
Matrix best_path_strengths(const Digraph& graph) {
  Run run;
  return cape::best_path_strengths(graph, run);
}
Order canonical_order(const Digraph& graph) {
  Run run;
  return cape::canonical_order(graph, run);
}

Digraph canonical(const Digraph& graph) {
  return graph.renumbered(inverse(canonical_order(graph)));
}

} // namespace

BOOST_AUTO_TEST_SUITE(digraph)

BOOST_AUTO_TEST_CASE(edges_are_sorted_and_zero_weights_left_out) {
  const Digraph g(4, {{3, 0, 1.5}, {0, 2, -1}, {0, 1, 2}, {1, 3, 0.0}});
  const std::vector<Edge> expected{{0, 1, 2}, {0, 2, -1}, {3, 0, 1.5}};
  BOOST_TEST((g.edges() == expected));
  BOOST_TEST(g.out(0).size() == 2u);
  BOOST_TEST(g.out(1).size() == 0u);
  BOOST_TEST(g.out(3).size() == 1u);
  BOOST_TEST((g.out(3)[0] == Edge{3, 0, 1.5}));
}

BOOST_AUTO_TEST_CASE(row_of_the_adjacency_is_the_cause) {
  const Digraph g(3, {{0, 2, -0.5}});
  BOOST_TEST(g.adjacency()(0, 2) == -0.5);
  BOOST_TEST(g.adjacency()(2, 0) == 0.0);
}

BOOST_AUTO_TEST_CASE(adjacency_round_trips_in_either_layout) {
  Rng rng(1);
  const Digraph g = random_graph(17, 0.3, rng);
  const Matrix a = g.adjacency();
  BOOST_TEST((Digraph::from_adjacency(a) == g));
  std::vector<double> by_row;
  for (std::int64_t m = 0; m < 17; ++m)
    for (std::int64_t n = 0; n < 17; ++n) by_row.push_back(a(m, n));
  BOOST_TEST((Digraph::from_adjacency({by_row.data(), 17, 17, 17, cape::Layout::row_major}) == g));
}

BOOST_AUTO_TEST_CASE(graphs_without_nodes_or_edges) {
  BOOST_TEST(Digraph().size() == 0);
  BOOST_TEST((Digraph() == Digraph(0)));
  BOOST_TEST(Digraph(5).edges().empty());
  BOOST_TEST(Digraph(5).out(4).empty());
  BOOST_TEST(Digraph::from_adjacency(Matrix()).size() == 0);
}

BOOST_AUTO_TEST_CASE(renumbering_moves_edges) {
  const Digraph g(3, {{0, 1, 2.0}, {1, 2, 3.0}});
  const Digraph h = g.renumbered(Order{2, 0, 1});
  BOOST_TEST((h == Digraph(3, {{2, 0, 2.0}, {0, 1, 3.0}})));
}

BOOST_AUTO_TEST_CASE(bad_graphs_are_refused) {
  BOOST_CHECK_EXCEPTION(Digraph(-1), cape::Error, invalid);
  BOOST_CHECK_EXCEPTION(Digraph(2, {{0, 2, 1}}), cape::Error, invalid);
  BOOST_CHECK_EXCEPTION(Digraph(2, {{-1, 0, 1}}), cape::Error, invalid);
  BOOST_CHECK_EXCEPTION(Digraph(2, {{1, 1, 1}}), cape::Error, invalid);
  BOOST_CHECK_EXCEPTION(Digraph(2, {{0, 1, 1}, {0, 1, 2}}), cape::Error, invalid);
  BOOST_CHECK_EXCEPTION(Digraph(2, {{0, 1, std::nan("")}}), cape::Error, invalid);
  BOOST_CHECK_EXCEPTION(Digraph(2, {{0, 1, infinity}}), cape::Error, invalid);
  BOOST_CHECK_EXCEPTION(Digraph::from_adjacency(Matrix(2, 3)), cape::Error, mismatch);
  Matrix loop(2, 2);
  loop(1, 1) = 1;
  BOOST_CHECK_EXCEPTION(Digraph::from_adjacency(loop), cape::Error, invalid);
  Matrix nan(2, 2);
  nan(0, 1) = std::nan("");
  BOOST_CHECK_EXCEPTION(Digraph::from_adjacency(nan), cape::Error, invalid);
  const Digraph g(3);
  BOOST_CHECK_EXCEPTION(g.renumbered(Order{0, 1}), cape::Error, mismatch);
  BOOST_CHECK_EXCEPTION(g.renumbered(Order{0, 1, 1}), cape::Error, invalid);
  BOOST_CHECK_EXCEPTION(g.renumbered(Order{0, 1, 3}), cape::Error, invalid);
}

BOOST_AUTO_TEST_CASE(message_names_edge_and_range) {
  BOOST_CHECK_EXCEPTION(Digraph(2, {{0, 5, 1}}), cape::Error, [](const cape::Error& e) {
    const std::string what = e.what();
    return what.find("0 -> 5") != what.npos && what.find("there are 2") != what.npos;
  });
  const auto says = [](const std::string& part) {
    return [part](const cape::Error& e) {
      return std::string(e.what()).find(part) != std::string::npos;
    };
  };
  BOOST_CHECK_EXCEPTION(Digraph(3, {{1, 2, 1}, {1, 2, 3}}), cape::Error,
                        says("edge 1 -> 2 (weight 1; nodes counted from 0) is given twice"));
  BOOST_CHECK_EXCEPTION(Digraph(3, {{2, 2, 1}}), cape::Error, says("edge 2 -> 2 (weight 1; nodes"));
  BOOST_CHECK_EXCEPTION(best_path_strengths(Digraph(3, {{1, 2, 2}, {2, 1, 1}})), cape::Error,
                        says("edge 1 -> 2 (weight 2; nodes counted from 0) lies on a cycle"));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(acyclicity)

BOOST_AUTO_TEST_CASE(topological_order_takes_the_smallest_free_node) {
  const Digraph g(5, {{4, 0, 1}, {0, 2, 1}, {3, 2, 1}});
  BOOST_TEST((cape::topological_order(g) == Order{1, 3, 4, 0, 2}));
  BOOST_TEST(cape::topological_order(Digraph(0)).empty());
}

BOOST_AUTO_TEST_CASE(causes_come_before_effects) {
  Rng rng(2);
  for (int trial = 0; trial < 50; ++trial) {
    const Digraph g = cape::project_acyclic(random_graph(20, 0.2, rng), 0).graph;
    const Order place = inverse(cape::topological_order(g));
    for (const Edge& e : g.edges()) BOOST_TEST(place[at(e.from)] < place[at(e.to)]);
  }
}

BOOST_AUTO_TEST_CASE(cycles_are_found) {
  Rng rng(3);
  int cyclic = 0;
  for (int trial = 0; trial < 200; ++trial) {
    const Digraph g = random_graph(8, 0.12, rng);
    cyclic += has_cycle(g);
    BOOST_TEST(cape::is_acyclic(g) == !has_cycle(g));
    if (has_cycle(g)) BOOST_CHECK_EXCEPTION(cape::topological_order(g), cape::Error, invalid);
  }
  BOOST_TEST((cyclic > 20 && cyclic < 180)); // both kinds were met
}

BOOST_AUTO_TEST_CASE(strong_components_are_the_nodes_that_reach_each_other) {
  Rng rng(11);
  for (const double density : {0.0, 0.01, 0.03, 0.06, 0.3})
    for (int repeat = 0; repeat < 5; ++repeat) {
      const Digraph g = random_graph(60, density, rng);
      const auto reach = closure(g);
      const auto component = cape::strong_components(g);
      for (std::size_t m = 0; m < 60; ++m)
        for (std::size_t n = 0; n < 60; ++n)
          BOOST_TEST((component[m] == component[n]) == (m == n || (reach[m][n] && reach[n][m])));
      for (const Edge& e : g.edges()) BOOST_TEST(component[at(e.from)] >= component[at(e.to)]);
      const auto count = *std::ranges::max_element(component) + 1;
      for (std::int64_t c = 0; c < count; ++c)
        BOOST_TEST((std::ranges::find(component, c) != component.end()));
    }
  BOOST_TEST(cape::strong_components(Digraph(0)).empty());
}

// A path so long that a recursion per node would not fit on the stack.
BOOST_AUTO_TEST_CASE(strong_components_of_a_long_cycle_are_one) {
  constexpr std::int64_t nodes = 1'000'000;
  std::vector<Edge> edges;
  for (std::int64_t m = 0; m < nodes; ++m) edges.push_back({m, (m + 1) % nodes, 1});
  const auto component = cape::strong_components(Digraph(nodes, std::move(edges)));
  BOOST_TEST(std::ranges::all_of(component, [](std::int64_t c) { return c == 0; }));
}

// Edges from the strongest down, each left out if its effect reaches its cause by those before.
BOOST_AUTO_TEST_CASE(projection_by_components_is_that_of_the_whole_graph) {
  Rng rng(12);
  for (const double density : {0.03, 0.06, 0.2}) {
    const Digraph g = random_graph(50, density, rng);
    std::vector<Edge> edges = g.edges(), kept, removed;
    std::ranges::sort(edges, std::ranges::greater(),
                      [](const Edge& e) { return std::fabs(e.weight); });
    for (const Edge& e : edges)
      (closure(Digraph(50, kept))[at(e.to)][at(e.from)] ? removed : kept).push_back(e);
    const auto p = cape::project_acyclic(g, 0);
    BOOST_TEST((p.graph == Digraph(50, kept)));
    BOOST_TEST((p.removed == removed));
    BOOST_TEST(!removed.empty());
  }
}

BOOST_AUTO_TEST_CASE(three_cycle_above_the_threshold_loses_its_weakest_edge) {
  const Digraph g(3, {{0, 1, 0.9}, {1, 2, 0.8}, {2, 0, 0.25}});
  const auto p = cape::project_acyclic(g, 0.2);
  BOOST_TEST((p.graph == Digraph(3, {{0, 1, 0.9}, {1, 2, 0.8}})));
  BOOST_TEST(p.n_below_threshold == 0);
  BOOST_TEST((p.removed == std::vector<Edge>{{2, 0, 0.25}}));
}

BOOST_AUTO_TEST_CASE(threshold_is_strict_and_on_the_magnitude) {
  const Digraph g(4, {{0, 1, 0.2}, {1, 2, -0.3}, {2, 3, -0.1}});
  const auto p = cape::project_acyclic(g, 0.2);
  BOOST_TEST((p.graph == Digraph(4, {{1, 2, -0.3}})));
  BOOST_TEST(p.n_below_threshold == 2);
  BOOST_TEST(p.removed.empty());
}

BOOST_AUTO_TEST_CASE(equal_weights_are_resolved_by_node_numbers) {
  const auto p = cape::project_acyclic(Digraph(2, {{0, 1, 1}, {1, 0, -1}}), 0);
  BOOST_TEST((p.graph == Digraph(2, {{0, 1, 1}})));
  BOOST_TEST((p.removed == std::vector<Edge>{{1, 0, -1}}));
}

// Against a naive projection: add edges from the strongest down, looking for a cycle each time.
BOOST_AUTO_TEST_CASE(projection_equals_the_naive_one) {
  Rng rng(4);
  for (int trial = 0; trial < 60; ++trial) {
    const double density = trial % 3 == 0 ? 1.0 : 0.3;
    const double tau = trial % 2 == 0 ? 0.0 : 0.5;
    const Digraph g = random_graph(12, density, rng);
    std::vector<Edge> edges = g.edges(), kept, removed;
    std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) {
      return std::fabs(a.weight) > std::fabs(b.weight);
    });
    std::int64_t below = 0;
    for (const Edge& e : edges) {
      if (std::fabs(e.weight) <= tau) {
        ++below;
        continue;
      }
      kept.push_back(e);
      if (has_cycle(Digraph(12, kept))) {
        kept.pop_back();
        removed.push_back(e);
      }
    }
    const auto p = cape::project_acyclic(g, tau);
    BOOST_TEST((p.graph == Digraph(12, kept)));
    BOOST_TEST((p.removed == removed));
    BOOST_TEST(p.n_below_threshold == below);
    BOOST_TEST(!has_cycle(p.graph));
  }
}

BOOST_AUTO_TEST_CASE(projection_of_a_projection_changes_nothing) {
  Rng rng(5);
  const auto once = cape::project_acyclic(random_graph(70, 0.5, rng), 0.1);
  const auto twice = cape::project_acyclic(once.graph, 0.1);
  BOOST_TEST((twice.graph == once.graph));
  BOOST_TEST(twice.removed.empty());
}

// Without a cycle every pair of a full graph keeps exactly one of its two edges.
BOOST_AUTO_TEST_CASE(dense_graph_of_500_nodes_without_threshold) {
  Rng rng(6);
  const Digraph g = random_graph(500, 1.0, rng);
  const auto p = cape::project_acyclic(g, 0);
  BOOST_TEST(p.graph.edges().size() == 500u * 499u / 2u);
  BOOST_TEST(p.removed.size() == 500u * 499u / 2u);
  BOOST_TEST(cape::is_acyclic(p.graph));
}

BOOST_AUTO_TEST_CASE(bad_thresholds_are_refused) {
  for (const double tau : {-0.1, std::nan(""), infinity})
    BOOST_CHECK_EXCEPTION(cape::project_acyclic(Digraph(2), tau), cape::Error, invalid);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(ranks)

// By hand: with c = 1, a node has 1 + 0.85 (mass of its effects); then normalise.
BOOST_AUTO_TEST_CASE(pagerank_of_small_graphs) {
  const auto near = boost::test_tools::tolerance(1e-14);
  const std::vector<double> chain = pagerank(Digraph(3, {{0, 1, 1}, {1, 2, 1}}));
  BOOST_TEST(chain[0] == 2.5725 / 5.4225, near);
  BOOST_TEST(chain[1] == 1.85 / 5.4225, near);
  BOOST_TEST(chain[2] == 1 / 5.4225, near);
  const std::vector<double> fork = pagerank(Digraph(3, {{0, 1, 1}, {0, 2, 1}}));
  BOOST_TEST(fork[0] == 2.7 / 4.7, near);
  BOOST_TEST(fork[1] == 1 / 4.7, near);
  BOOST_TEST(fork[2] == 1 / 4.7, near);
  for (const double p : pagerank(Digraph(4))) BOOST_TEST(p == 0.25);
  BOOST_TEST(pagerank(Digraph(0)).empty());
  BOOST_TEST(pagerank(Digraph(1))[0] == 1.0);
}

// The definition itself: pi = w / M + (1 - w) P' pi with the full dense P, by power iteration.
BOOST_AUTO_TEST_CASE(pagerank_is_the_stationary_vector) {
  Rng rng(7);
  for (const double restart : {0.05, 0.15, 0.9})
    for (const double density : {0.02, 0.2, 1.0}) {
      const std::int64_t nodes = 30;
      const Digraph g = random_graph(nodes, density, rng);
      Matrix p(nodes, nodes); // p(n, m): from effect n to cause m
      const Matrix a = g.adjacency();
      for (std::int64_t n = 0; n < nodes; ++n) {
        double total = 0;
        for (std::int64_t m = 0; m < nodes; ++m) total += std::fabs(a(m, n));
        for (std::int64_t m = 0; m < nodes; ++m)
          p(n, m) = total > 0 ? std::fabs(a(m, n)) / total : 1.0 / double(nodes);
      }
      std::vector<double> pi(at(nodes), 1.0 / double(nodes));
      for (int step = 0; step < 1000; ++step) {
        std::vector<double> next(at(nodes), restart / double(nodes));
        for (std::int64_t n = 0; n < nodes; ++n)
          for (std::int64_t m = 0; m < nodes; ++m)
            next[at(m)] += (1 - restart) * p(n, m) * pi[at(n)];
        pi = next;
      }
      const std::vector<double> rank = pagerank(g, restart);
      double sum = 0;
      for (std::size_t m = 0; m < at(nodes); ++m) {
        BOOST_TEST(rank[m] > 0);
        BOOST_TEST(rank[m] == pi[m], boost::test_tools::tolerance(1e-11));
        sum += rank[m];
      }
      BOOST_TEST(sum == 1.0, boost::test_tools::tolerance(1e-13));
    }
}

BOOST_AUTO_TEST_CASE(causes_rank_above_effects_in_a_chain) {
  std::vector<Edge> edges;
  for (std::int64_t m = 0; m < 99; ++m) edges.push_back({m, m + 1, m % 2 ? -3.0 : 0.1});
  const std::vector<double> rank = pagerank(Digraph(100, edges));
  for (std::size_t m = 0; m + 1 < 100; ++m) BOOST_TEST(rank[m] > rank[m + 1]);
}

BOOST_AUTO_TEST_CASE(pagerank_depends_on_the_shares_of_the_weights_alone) {
  const auto near = boost::test_tools::tolerance(1e-14);
  const auto fork = [](double a, double b, double c) {
    return Digraph(4, {{0, 2, a}, {1, 2, b}, {3, 2, c}, {2, 3, a}});
  };
  const std::vector<double> expected = pagerank(fork(1, 1, 0.5));
  for (const double size : {1e-300, 1e-200, 1e200, 1.7e308}) {
    const std::vector<double> rank = pagerank(fork(size, -size, size / 2));
    for (std::size_t m = 0; m < 4; ++m) BOOST_TEST(rank[m] == expected[m], near);
  }
}

BOOST_AUTO_TEST_CASE(pagerank_ends_for_any_restart) {
  // On an acyclic graph it needs no restart to come to rest; on a cycle all nodes are alike.
  const double least = std::numeric_limits<double>::denorm_min();
  const std::vector<double> chain = pagerank(Digraph(3, {{0, 1, 1}, {1, 2, 1}}), least);
  for (std::size_t m = 0; m < 3; ++m)
    BOOST_TEST(chain[m] == static_cast<double>(3 - m) / 6, boost::test_tools::tolerance(1e-14));
  const Digraph cycle(2, {{0, 1, 1}, {1, 0, 1}});
  for (const double restart : {0.001, 0.01, 0.999})
    for (const double p : pagerank(cycle, restart))
      BOOST_TEST(p == 0.5, boost::test_tools::tolerance(1e-14));
  for (const double restart : {1e-7, 1e-17, least})
    BOOST_CHECK_EXCEPTION(pagerank(cycle, restart), cape::Error,
                          code_is(cape::Status::not_converged));
}

BOOST_AUTO_TEST_CASE(bad_restarts_are_refused) {
  for (const double restart : {0.0, 1.0, -1.0, std::nan("")})
    BOOST_CHECK_EXCEPTION(pagerank(Digraph(2), restart), cape::Error, invalid);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(paths)

BOOST_AUTO_TEST_CASE(best_paths_equal_enumeration) {
  Rng rng(8);
  for (int trial = 0; trial < 40; ++trial) {
    const Digraph g = cape::strengths(random_graph(7, trial % 2 ? 0.2 : 0.6, rng));
    const Matrix expected = best_by_enumeration(g, 7), strengths = best_path_strengths(g);
    for (std::int64_t m = 0; m < 7; ++m)
      for (std::int64_t n = 0; n < 7; ++n)
        BOOST_TEST(strengths(m, n) == expected(m, n), boost::test_tools::tolerance(1e-14));
  }
}

BOOST_AUTO_TEST_CASE(k_hops_equal_enumeration) {
  Rng rng(9);
  for (int trial = 0; trial < 40; ++trial)
    for (const std::int64_t hops : {1, 2, 3, 100}) {
      const Digraph g = random_graph(7, trial % 2 ? 0.2 : 0.6, rng);
      const Matrix expected = best_by_enumeration(g, hops);
      const std::vector<Edge> pairs = k_hop_strengths(g, hops);
      std::size_t i = 0;
      for (std::int64_t m = 0; m < 7; ++m)
        for (std::int64_t n = 0; n < 7; ++n)
          if (m != n && expected(m, n) > 0) {
            BOOST_REQUIRE(i < pairs.size());
            BOOST_TEST(pairs[i].from == m);
            BOOST_TEST(pairs[i].to == n);
            BOOST_TEST(pairs[i].weight == expected(m, n), boost::test_tools::tolerance(1e-14));
            ++i;
          }
      BOOST_TEST(i == pairs.size());
    }
}

BOOST_AUTO_TEST_CASE(strengths_are_shares_of_the_largest_weight_above_one) {
  const Digraph small(3, {{0, 1, -0.5}, {1, 2, 0.25}}), large(3, {{0, 1, -4}, {1, 2, 1}});
  BOOST_TEST((cape::strengths(small) == Digraph(3, {{0, 1, 0.5}, {1, 2, 0.25}})));
  BOOST_TEST((cape::strengths(large) == Digraph(3, {{0, 1, 1}, {1, 2, 0.25}})));
  const Digraph far(3, {{0, 1, 1e300}, {1, 2, 1e-300}}); // edges do not vanish
  BOOST_TEST(cape::strengths(far).edges().size() == 2u);
}

BOOST_AUTO_TEST_CASE(paths_of_weights_above_one_are_their_products) {
  const Digraph two(3, {{0, 1, 2}, {1, 2, -0.4}});
  BOOST_TEST(best_path_strengths(two)(0, 1) == 2.0, boost::test_tools::tolerance(1e-14));
  BOOST_TEST(best_path_strengths(two)(0, 2) == 0.8, boost::test_tools::tolerance(1e-14));
  BOOST_TEST(best_path_strengths(two)(2, 0) == 0.0);
  // All paths of acyclic graphs by enumeration, and of graphs whose cycles have small weights.
  Rng rng(18);
  for (int trial = 0; trial < 60; ++trial) {
    std::vector<Edge> edges;
    for (std::int64_t i = 0; i < 9; ++i)
      for (std::int64_t j = 0; j < 9; ++j) {
        const bool within = i / 3 == j / 3;
        if (i == j || i / 3 > j / 3 || rng.uniform() < 0.4) continue;
        if (within && (trial % 2 == 0 ? i > j : false)) continue;
        const double largest = within && trial % 2 == 1 ? 0.99 : 5;
        edges.push_back({8 - i, 8 - j, rng.uniform(0.1, largest)});
      }
    const Digraph g(9, edges);
    const Matrix s = best_path_strengths(g);
    for (std::int64_t m = 0; m < 9; ++m) {
      std::vector<double> best(9);
      const std::function<void(std::int64_t, double, std::uint32_t)> go =
          [&](std::int64_t node, double product, std::uint32_t seen) {
            best[at(node)] = std::max(best[at(node)], product);
            for (const Edge& e : g.out(node))
              if (!(seen >> e.to & 1U)) go(e.to, product * e.weight, seen | 1U << e.to);
          };
      go(m, 1, 1U << m);
      for (std::int64_t n = 0; n < 9; ++n)
        BOOST_TEST(s(m, n) == best[at(n)], boost::test_tools::tolerance(1e-12));
    }
  }
  const auto invalid = [](const cape::Error& e) {
    return e.code() == cape::Status::invalid_argument;
  };
  BOOST_CHECK_EXCEPTION(best_path_strengths(Digraph(3, {{0, 1, 2}, {1, 0, 0.1}, {1, 2, 1}})),
                        cape::Error, invalid);
  BOOST_CHECK_EXCEPTION(best_path_strengths(Digraph(3, {{0, 1, 1e200}, {1, 2, 1e200}})),
                        cape::Error, invalid);
}

BOOST_AUTO_TEST_CASE(paths_of_tiny_weights_do_not_vanish) {
  std::vector<Edge> edges;
  for (std::int64_t i = 1; i < 20; ++i) edges.push_back({i - 1, i, i % 2 ? 1e-300 : -1e-200});
  const Digraph g(20, edges);
  const Matrix s = best_path_strengths(g);
  Run run;
  const Matrix lengths = cape::best_path_lengths(g, run);
  for (std::int64_t i = 0; i < 20; ++i)
    for (std::int64_t j = 0; j < 20; ++j) {
      BOOST_TEST((s(i, j) > 0) == (i <= j));
      BOOST_TEST(std::isfinite(lengths(i, j)) == (i <= j));
    }
  BOOST_TEST(lengths(0, 19) == (10 * 300 + 9 * 200) * std::log(10.0),
             boost::test_tools::tolerance(1e-13));
  BOOST_TEST(k_hop_strengths(g, 19).size() == 190u);
}

BOOST_AUTO_TEST_CASE(weights_above_one_count_as_one_within_hops) {
  const Digraph g(3, {{0, 1, -5}, {1, 2, 0.5}});
  BOOST_TEST((k_hop_strengths(g, 2) == std::vector<Edge>{{0, 1, 1.0}, {0, 2, 0.5}, {1, 2, 0.5}}));
}

BOOST_AUTO_TEST_CASE(undirected_distances_equal_floyd_warshall) {
  Rng rng(10);
  for (const double hop_cost : {0.0, 0.7, infinity})
    for (const double density : {0.03, 0.1, 0.5}) {
      const std::int64_t nodes = 25;
      const Digraph g = random_graph(nodes, density, rng);
      Matrix d(nodes, nodes);
      for (std::int64_t m = 0; m < nodes; ++m)
        for (std::int64_t n = 0; n < nodes; ++n) d(m, n) = m == n ? 0 : infinity;
      for (const Edge& e : g.edges()) {
        const double cost =
            std::isinf(hop_cost) ? 1.0 : hop_cost - std::log(std::min(std::fabs(e.weight), 1.0));
        d(e.from, e.to) = d(e.to, e.from) = std::min(d(e.from, e.to), cost);
      }
      for (std::int64_t k = 0; k < nodes; ++k)
        for (std::int64_t m = 0; m < nodes; ++m)
          for (std::int64_t n = 0; n < nodes; ++n) d(m, n) = std::min(d(m, n), d(m, k) + d(k, n));
      Run run;
      const Matrix distances = cape::undirected_distances(g, hop_cost, run);
      for (std::int64_t m = 0; m < nodes; ++m)
        for (std::int64_t n = 0; n < nodes; ++n) {
          BOOST_TEST(distances(m, n) == distances(n, m));
          if (std::isinf(d(m, n)))
            BOOST_TEST(std::isinf(distances(m, n)));
          else
            BOOST_TEST(distances(m, n) == d(m, n), boost::test_tools::tolerance(1e-13));
        }
    }
}

BOOST_AUTO_TEST_CASE(distances_do_not_depend_on_threads) {
  Rng rng(11);
  const Digraph g = random_graph(120, 0.05, rng);
  Run one(1, 1), many(1, 8);
  BOOST_TEST((cape::undirected_distances(g, 0.5, one) == cape::undirected_distances(g, 0.5, many)));
}

BOOST_AUTO_TEST_CASE(distances_from_some_nodes_and_nearest_nodes_agree_with_all_distances) {
  Rng rng(21);
  for (int trial = 0; trial < 20; ++trial) {
    const Digraph g = random_graph(30, trial % 2 ? 0.03 : 0.15, rng);
    Run run(1, 1 + trial % 2);
    const Matrix all = cape::undirected_distances(g, 0.5, run);
    const Order sources{7, 0, 29};
    const Matrix some = cape::undirected_distances_from(g, sources, 0.5, run);
    for (std::int64_t k = 0; k < 3; ++k)
      for (std::int64_t n = 0; n < 30; ++n) {
        const double a = some(n, k), b = all(n, sources[at(k)]);
        BOOST_TEST((a == b || std::abs(a - b) <= 1e-12));
      }
    for (const std::int64_t count : {1, 5, 100}) {
      const cape::NearestNodes nearest = cape::nearest_nodes(g, count, 0.5, run);
      BOOST_REQUIRE(nearest.offsets.size() == 31u);
      for (std::int64_t m = 0; m < 30; ++m) {
        std::vector<double> expected;
        for (std::int64_t n = 0; n < 30; ++n)
          if (n != m && std::isfinite(all(m, n))) expected.push_back(all(m, n));
        std::ranges::sort(expected);
        const std::int64_t first = nearest.offsets[at(m)],
                           found = nearest.offsets[at(m) + 1] - first;
        BOOST_REQUIRE(found == std::min<std::int64_t>(count, std::ssize(expected)));
        for (std::int64_t i = 0; i < found; ++i) {
          const Edge& e = nearest.near[at(first + i)];
          BOOST_TEST(e.from == m);
          BOOST_TEST(std::abs(e.weight - expected[at(i)]) <= 1e-12);
          BOOST_TEST(std::abs(e.weight - all(m, e.to)) <= 1e-12);
        }
      }
    }
  }
  Run run;
  BOOST_CHECK_EXCEPTION(cape::nearest_nodes(Digraph(2), 0, 1, run), cape::Error, invalid);
  BOOST_CHECK_EXCEPTION(cape::nearest_nodes(Digraph(2), 1, -1, run), cape::Error, invalid);
  BOOST_CHECK_EXCEPTION(cape::undirected_distances_from(Digraph(2), Order{2}, 1, run), cape::Error,
                        invalid);
}

BOOST_AUTO_TEST_CASE(long_computations_can_be_cancelled) {
  Rng rng(12);
  const Digraph g = random_graph(50, 0.05, rng);
  Run run(1, 1, [](const cape::Progress&) { return false; });
  const auto cancelled = code_is(cape::Status::cancelled);
  BOOST_CHECK_EXCEPTION(cape::undirected_distances(g, 0.5, run), cape::Error, cancelled);
  BOOST_CHECK_EXCEPTION(cape::pagerank(g, 0.15, run), cape::Error, cancelled);
  BOOST_CHECK_EXCEPTION(cape::k_hop_strengths(g, 2, run), cape::Error, cancelled);
  BOOST_CHECK_EXCEPTION(cape::best_path_strengths(cape::strengths(g), run), cape::Error,
                        cancelled);
  BOOST_CHECK_EXCEPTION(cape::canonical_order(g, run), cape::Error, cancelled);
  const Digraph cycle(2, {{0, 1, 1}, {1, 0, 1}});
  BOOST_CHECK_EXCEPTION(cape::project_acyclic(cycle, 0, run), cape::Error, cancelled);
}

BOOST_AUTO_TEST_CASE(bad_hops_and_costs_are_refused) {
  Run run;
  BOOST_CHECK_EXCEPTION(k_hop_strengths(Digraph(2), 0), cape::Error, invalid);
  BOOST_CHECK_EXCEPTION(cape::undirected_distances(Digraph(2), -1, run), cape::Error, invalid);
  BOOST_CHECK_EXCEPTION(cape::undirected_distances(Digraph(2), std::nan(""), run), cape::Error,
                        invalid);
  // Lengths that would leave the range of double: nodes would pass for unconnected.
  BOOST_CHECK_EXCEPTION(cape::undirected_distances(Digraph(2), 1e308, run), cape::Error, invalid);
  std::vector<Edge> chain;
  for (std::int64_t i = 1; i < 50; ++i) chain.push_back({i - 1, i, 1e-300});
  BOOST_TEST(std::isfinite(cape::undirected_distances(Digraph(50, chain), 1e290, run)(0, 49)));
}

BOOST_AUTO_TEST_CASE(graphs_without_nodes_have_no_paths) {
  Run run;
  BOOST_TEST(k_hop_strengths(Digraph(0), 2).empty());
  BOOST_TEST(best_path_strengths(Digraph(0)).empty());
  BOOST_TEST(cape::undirected_distances(Digraph(0), 1, run).empty());
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(canonical_numbers)

BOOST_AUTO_TEST_CASE(order_is_a_permutation) {
  Rng rng(13);
  Order order = canonical_order(random_graph(40, 0.05, rng));
  std::ranges::sort(order);
  for (std::size_t i = 0; i < order.size(); ++i) BOOST_TEST(order[i] == std::int64_t(i));
  BOOST_TEST(order.size() == 40u);
  BOOST_TEST(canonical_order(Digraph(0)).empty());
}

BOOST_AUTO_TEST_CASE(renumbered_weighted_graphs_have_one_canonical_form) {
  Rng rng(14);
  for (int trial = 0; trial < 30; ++trial) {
    const Digraph g = random_graph(30, trial % 2 ? 0.03 : 0.3, rng);
    BOOST_TEST((canonical(g.renumbered(rng.permutation(30))) == canonical(g)));
  }
}

// Equal weights: nodes that only their place in the graph tells apart, and symmetric ones.
BOOST_AUTO_TEST_CASE(renumbered_symmetric_graphs_have_one_canonical_form) {
  Rng rng(15);
  std::vector<Edge> tree, pairs, cycle;
  for (std::int64_t n = 1; n < 63; ++n) tree.push_back({(n - 1) / 2, n, 1});
  for (std::int64_t m = 0; m < 20; m += 2) pairs.push_back({m, m + 1, 0.5});
  for (std::int64_t m = 0; m < 12; ++m) cycle.push_back({m, (m + 1) % 12, -1});
  for (const Digraph& g : {Digraph(63, tree), Digraph(25, pairs), Digraph(12, cycle), Digraph(9)})
    for (int trial = 0; trial < 10; ++trial)
      BOOST_TEST((canonical(g.renumbered(rng.permutation(g.size()))) == canonical(g)));
}

BOOST_AUTO_TEST_CASE(weights_and_directions_tell_nodes_apart) {
  BOOST_TEST((canonical(Digraph(2, {{0, 1, 1}})) == canonical(Digraph(2, {{1, 0, 1}}))));
  BOOST_TEST((canonical(Digraph(2, {{0, 1, 1}})) != canonical(Digraph(2, {{0, 1, 2}}))));
  BOOST_TEST((canonical(Digraph(3, {{0, 1, 1}, {0, 2, 1}})) !=
              canonical(Digraph(3, {{1, 0, 1}, {2, 0, 1}}))));
}

BOOST_AUTO_TEST_SUITE_END()
