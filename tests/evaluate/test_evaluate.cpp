#define BOOST_TEST_MODULE evaluate
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>
import cape;

using cape::Digraph;
using cape::Edge;
using cape::GraphMetrics;
using cape::Matrix;
using cape::Rng;
using cape::Run;
using Labels = std::vector<std::int64_t>;

namespace {

auto code_is(cape::Status code) {
  return [code](const cape::Error& e) { return e.code() == code; };
}
const auto invalid = code_is(cape::Status::invalid_argument);
const auto mismatch = code_is(cape::Status::dim_mismatch);
const auto near = boost::test_tools::tolerance(1e-13);

Matrix random_scores(std::int64_t nodes, Rng& rng, bool ties) {
  Matrix s(nodes, nodes);
  for (std::int64_t m = 0; m < nodes; ++m)
    for (std::int64_t n = 0; n < nodes; ++n) s(m, n) = ties ? double(rng.integer(4)) : rng.normal();
  return s;
}

Labels random_labels(std::size_t n, std::int64_t kinds, Rng& rng) {
  Labels labels(n);
  for (std::int64_t& l : labels) l = rng.integer(kinds) * 7 - 3;
  return labels;
}

} // namespace

BOOST_AUTO_TEST_SUITE(embeddings)

// The chain 0 -> 1 -> 2 on a line in its order is kept perfectly; node 3 has no edge.
BOOST_AUTO_TEST_CASE(a_chain_on_a_line) {
  const Digraph chain(4, {{0, 1, 0.9}, {1, 2, 0.5}});
  Matrix d(4, 4);
  const double at[] = {0, 1, 3, 100};
  for (std::int64_t i = 0; i < 4; ++i)
    for (std::int64_t j = 0; j < 4; ++j) d(i, j) = std::abs(at[i] - at[j]);
  Run run;
  cape::EmbeddingMetrics m =
      cape::compare_embedding(chain, d, std::vector<double>{0, 1, 2, 0}, run);
  // hops 1, 1, 2 have the ranks 0.5, 0.5, 2 and distances 1, 2, 3: Spearman is sqrt(3) / 2
  BOOST_TEST(m.distance == std::sqrt(3.0) / 2, near);
  BOOST_TEST(m.strength == 1.0, near); // -ln .9, -ln .5, -ln .45 against 1, 2, 3
  BOOST_TEST(m.parents_closer == 1.0);
  BOOST_TEST(m.specificity == 1.0, near);
  BOOST_TEST(m.precision == 1.0);
  m = cape::compare_embedding(chain, d, std::vector<double>{2, 1, 0, 0}, run);
  BOOST_TEST(m.parents_closer == 0.0);
  BOOST_TEST(m.specificity == -1.0, near);
  // Ends nearest to each other: their neighbour comes second.
  d(0, 2) = d(2, 0) = 0.5;
  m = cape::compare_embedding(chain, d, std::vector<double>{0, 0, 0, 0}, run);
  BOOST_TEST(m.precision == (0.5 + 1 + 0.5) / 3, near);
  BOOST_TEST(m.specificity == 0.0); // radii do not vary
  BOOST_TEST(
      cape::compare_embedding(Digraph(2), Matrix(2, 2), std::vector<double>{0, 0}, run).distance ==
      0);
}

// Nodes at one distance are one step, whatever their numbers: with all in one place a neighbour is
// found at the share of neighbours among the others.
BOOST_AUTO_TEST_CASE(equal_distances_are_one_step) {
  std::vector<Edge> edges;
  for (std::int64_t i = 1; i < 6; ++i) edges.push_back({0, i, 1});
  const std::vector<double> radius(6, 1.0);
  Run run;
  for (const std::int64_t hub : {0, 3, 5}) {
    std::vector<Edge> star = edges;
    for (Edge& e : star) {
      e.from = hub;
      if (e.to == hub) e.to = 0;
    }
    const cape::EmbeddingMetrics m =
        cape::compare_embedding(Digraph(6, star), Matrix(6, 6), radius, run);
    BOOST_TEST(m.precision == (1 + 5 * 1.0 / 5) / 6, near);
    BOOST_TEST(m.parents_closer == 0.0); // as near is not nearer
    BOOST_TEST(m.distance == 0.0);
  }
}

// However weak the edges: who is behind whom, and how far.
BOOST_AUTO_TEST_CASE(paths_of_tiny_weights_count) {
  std::vector<Edge> edges;
  for (std::int64_t i = 1; i < 30; ++i) edges.push_back({i - 1, i, 1e-300});
  Matrix d(30, 30);
  std::vector<double> radius;
  for (std::int64_t i = 0; i < 30; ++i) {
    radius.push_back(static_cast<double>(i));
    for (std::int64_t j = 0; j < 30; ++j) d(i, j) = std::abs(static_cast<double>(i - j));
  }
  Run run;
  const cape::EmbeddingMetrics m = cape::compare_embedding(Digraph(30, edges), d, radius, run);
  BOOST_TEST(m.strength == 1.0, near);
  BOOST_TEST(m.specificity == 1.0, near);
}

BOOST_AUTO_TEST_CASE(bad_embeddings_are_refused) {
  const Digraph chain(2, {{0, 1, 1}});
  Run run;
  const std::vector<double> two{0, 1};
  BOOST_CHECK_EXCEPTION(cape::compare_embedding(chain, Matrix(2, 3), two, run), cape::Error,
                        mismatch);
  BOOST_CHECK_EXCEPTION(cape::compare_embedding(chain, Matrix(2, 2), {}, run), cape::Error,
                        mismatch);
  const std::vector<double> nan{0, std::nan("")};
  BOOST_CHECK_EXCEPTION(cape::compare_embedding(chain, Matrix(2, 2), nan, run), cape::Error,
                        invalid);
  Run cancelled(1, 1, [](const cape::Progress&) { return false; });
  BOOST_CHECK_EXCEPTION(cape::compare_embedding(chain, Matrix(2, 2), two, cancelled), cape::Error,
                        code_is(cape::Status::cancelled));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(graphs)

// Truth 0->1, 1->2, 2->3, 0->3; estimate: 0->1 right, 2->1 reversed, 0->2 extra, 2->3 and 0->3
// missing. 12 ordered pairs, 8 of them untrue.
BOOST_AUTO_TEST_CASE(counts_of_a_small_graph_by_hand) {
  const Digraph truth(4, {{0, 1, 1}, {1, 2, 1}, {2, 3, 1}, {0, 3, 1}});
  const Digraph estimate(4, {{0, 1, 0.3}, {2, 1, -2}, {0, 2, 1}});
  const GraphMetrics m = cape::compare_graphs(estimate, truth);
  BOOST_TEST(m.true_edges == 4);
  BOOST_TEST(m.estimated_edges == 3);
  BOOST_TEST(m.correct == 1);
  BOOST_TEST(m.reversed == 1);
  BOOST_TEST(m.extra == 1);
  BOOST_TEST(m.missing == 2);
  BOOST_TEST(m.shd == 4);
  BOOST_TEST(m.tpr == 0.25, near);
  BOOST_TEST(m.recall == 0.25, near);
  BOOST_TEST(m.fdr == 2.0 / 3, near);
  BOOST_TEST(m.fpr == 2.0 / 8, near);
  BOOST_TEST(m.precision == 1.0 / 3, near);
  BOOST_TEST(m.f1 == 2.0 / 7, near);
}

BOOST_AUTO_TEST_CASE(a_reversed_edge_costs_one_and_a_removed_edge_costs_one) {
  const Digraph truth(3, {{0, 1, 1}, {1, 2, 1}});
  BOOST_TEST(cape::compare_graphs(Digraph(3, {{1, 0, 1}, {1, 2, 1}}), truth).shd == 1);
  BOOST_TEST(cape::compare_graphs(Digraph(3, {{1, 2, 1}}), truth).shd == 1);
  // Both directions where one is true: one edge too many.
  BOOST_TEST(cape::compare_graphs(Digraph(3, {{0, 1, 1}, {1, 0, 1}, {1, 2, 1}}), truth).shd == 1);
}

BOOST_AUTO_TEST_CASE(the_truth_itself_is_perfect) {
  const Digraph truth = cape::simulate_dag(30, {}, 1);
  const GraphMetrics m = cape::compare_graphs(truth, truth);
  BOOST_TEST(m.shd == 0);
  BOOST_TEST(m.f1 == 1.0);
  BOOST_TEST(m.fdr == 0.0);
}

// shd is the number of unordered pairs on which two graphs without two-way edges differ.
BOOST_AUTO_TEST_CASE(shd_counts_the_pairs_that_differ) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    const Digraph a = cape::simulate_dag(15, {}, seed), b = cape::simulate_dag(15, {}, seed + 100);
    const Matrix wa = a.adjacency(), wb = b.adjacency();
    std::int64_t differ = 0;
    for (std::int64_t m = 0; m < 15; ++m)
      for (std::int64_t n = 0; n < m; ++n)
        differ += (wa(m, n) != 0) != (wb(m, n) != 0) || (wa(n, m) != 0) != (wb(n, m) != 0);
    BOOST_TEST(cape::compare_graphs(a, b).shd == differ);
    BOOST_TEST(cape::compare_graphs(b, a).shd == differ);
  }
}

BOOST_AUTO_TEST_CASE(graphs_without_edges_or_nodes_give_finite_metrics) {
  const GraphMetrics none = cape::compare_graphs(Digraph(0), Digraph(0));
  BOOST_TEST(none.shd == 0);
  BOOST_TEST((none.fdr == 0 && none.tpr == 0 && none.fpr == 0 && none.f1 == 0));
  const GraphMetrics empty = cape::compare_graphs(Digraph(3), Digraph(3, {{0, 1, 1}}));
  BOOST_TEST(empty.missing == 1);
  BOOST_TEST((empty.fdr == 0 && empty.precision == 0 && empty.f1 == 0));
}

BOOST_AUTO_TEST_CASE(graphs_of_different_sizes_are_refused) {
  BOOST_CHECK_EXCEPTION(cape::compare_graphs(Digraph(2), Digraph(3)), cape::Error, mismatch);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(scores)

// Three nodes, true pairs 0->1 and 1->2. Ranked: 0->1 (5), 2->0 (4), 1->2 (3), then untrue ones.
// AP = 1/2 (1/1) + 1/2 (2/3); 7 of the 8 (true, untrue) comparisons are right.
BOOST_AUTO_TEST_CASE(areas_of_a_small_graph_by_hand) {
  Matrix s(3, 3);
  s(0, 1) = 5;
  s(2, 0) = 4;
  s(1, 2) = 3;
  s(0, 2) = 1;
  s(0, 0) = s(1, 1) = std::numeric_limits<double>::quiet_NaN(); // not read
  const auto areas = cape::compare_scores(s, Digraph(3, {{0, 1, 1}, {1, 2, 1}}));
  BOOST_TEST(areas.auprc == 5.0 / 6, near);
  BOOST_TEST(areas.auroc == 7.0 / 8, near);
}

BOOST_AUTO_TEST_CASE(areas_equal_their_definitions) {
  Rng rng(1);
  for (int trial = 0; trial < 40; ++trial) {
    const std::int64_t nodes = 9;
    const Matrix s = random_scores(nodes, rng, trial % 2);
    const Digraph truth = cape::simulate_dag(nodes, {}, std::uint64_t(trial));
    const Matrix a = truth.adjacency();
    std::vector<double> yes, no;
    for (std::int64_t m = 0; m < nodes; ++m)
      for (std::int64_t n = 0; n < nodes; ++n)
        if (m != n) (a(m, n) != 0 ? yes : no).push_back(s(m, n));
    double wins = 0;
    for (const double p : yes)
      for (const double q : no) wins += p > q ? 1.0 : p == q ? 0.5 : 0.0;
    // Average precision: the mean over true pairs of the precision at their score.
    double precision = 0;
    for (const double p : yes) {
      const auto above = [p](double v) { return v >= p; };
      const auto tp = double(std::ranges::count_if(yes, above));
      const auto fp = double(std::ranges::count_if(no, above));
      precision += tp / (tp + fp);
    }
    const auto areas = cape::compare_scores(s, truth);
    BOOST_TEST(areas.auroc == wins / double(yes.size() * no.size()), near);
    BOOST_TEST(areas.auprc == precision / double(yes.size()), near);
  }
}

BOOST_AUTO_TEST_CASE(areas_of_many_pairs_with_ties_equal_those_by_counting) {
  Rng rng(2);
  const std::int64_t nodes = 400; // more pairs than are sorted at once
  const Digraph truth = cape::simulate_dag(nodes, {}, 5);
  const Matrix a = truth.adjacency();
  Matrix s(nodes, nodes);
  std::vector<double> yes(50), no(50); // pairs of every score
  for (std::int64_t m = 0; m < nodes; ++m)
    for (std::int64_t n = 0; n < nodes; ++n) {
      s(m, n) = double(rng.integer(50));
      if (m != n) ++(a(m, n) != 0 ? yes : no)[std::size_t(s(m, n))];
    }
  double wins = 0, precision = 0, tp = 0, fp = 0, all_yes = 0, all_no = 0;
  for (std::size_t v = 50; v-- > 0;) {
    tp += yes[v];
    fp += no[v];
    precision += yes[v] * tp / (tp + fp);
    wins += no[v] * (tp - yes[v] / 2);
    all_yes += yes[v];
    all_no += no[v];
  }
  const auto areas = cape::compare_scores(s, truth);
  BOOST_TEST(areas.auroc == wins / (all_yes * all_no), near);
  BOOST_TEST(areas.auprc == precision / all_yes, near);
  Run stopped(1, 1, [](const cape::Progress&) { return false; }, std::chrono::milliseconds(0));
  BOOST_CHECK_THROW(cape::compare_scores(s, truth, stopped), cape::Error);
}

BOOST_AUTO_TEST_CASE(the_truth_as_score_is_perfect_and_constant_scores_are_chance) {
  const Digraph truth = cape::simulate_dag(20, {.signed_weights = false}, 3);
  const auto best = cape::compare_scores(truth.adjacency(), truth);
  BOOST_TEST(best.auprc == 1.0, near);
  BOOST_TEST(best.auroc == 1.0, near);
  const auto chance = cape::compare_scores(Matrix(20, 20), truth);
  BOOST_TEST(chance.auprc == double(truth.edges().size()) / 380.0, near);
  BOOST_TEST(chance.auroc == 0.5, near);
}

BOOST_AUTO_TEST_CASE(one_sided_truths_give_finite_areas) {
  const auto none = cape::compare_scores(Matrix(3, 3), Digraph(3));
  BOOST_TEST(none.auprc == 0.0);
  BOOST_TEST(none.auroc == 0.5);
  const auto all = cape::compare_scores(Matrix(2, 2), Digraph(2, {{0, 1, 1}, {1, 0, 1}}));
  BOOST_TEST(all.auprc == 1.0);
  BOOST_TEST(all.auroc == 0.5);
  BOOST_TEST(cape::compare_scores(Matrix(), Digraph(0)).auroc == 0.5);
}

BOOST_AUTO_TEST_CASE(bad_scores_are_refused) {
  BOOST_CHECK_EXCEPTION(cape::compare_scores(Matrix(2, 3), Digraph(2)), cape::Error, mismatch);
  BOOST_CHECK_EXCEPTION(cape::compare_scores(Matrix(2, 2), Digraph(3)), cape::Error, mismatch);
  Matrix s(2, 2);
  s(1, 0) = std::nan("");
  BOOST_CHECK_EXCEPTION(cape::compare_scores(s, Digraph(2)), cape::Error, invalid);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(clusters)

// {0,1}{2,3} against {0,1}{2}{3}: one pair in common of 2 and 1, expected 2 * 1 / 6:
// ARI = (1 - 1/3) / (3/2 - 1/3) = 4/7. I = ln 2, entropies ln 2 and 1.5 ln 2: NMI = 2 / 2.5.
BOOST_AUTO_TEST_CASE(indices_of_small_partitions_by_hand) {
  const Labels a{0, 0, 1, 1}, b{5, 5, -1, 9};
  BOOST_TEST(cape::adjusted_rand_index(a, b) == 4.0 / 7, near);
  BOOST_TEST(cape::normalized_mutual_information(a, b) == 0.8, near);
  const Labels crossed{0, 1, 0, 1}; // no pair in common: (0 - 2/3) / (2 - 2/3)
  BOOST_TEST(cape::adjusted_rand_index(a, crossed) == -0.5, near);
  BOOST_TEST(std::fabs(cape::normalized_mutual_information(a, crossed)) < 1e-15);
}

// Over all pairs of items: ARI = 2 (ad - bc) / ((a + b)(b + d) + (a + c)(c + d)).
BOOST_AUTO_TEST_CASE(rand_index_equals_pair_counting) {
  Rng rng(2);
  for (int trial = 0; trial < 30; ++trial) {
    const Labels u = random_labels(40, 4, rng), v = random_labels(40, 3, rng);
    double a = 0, b = 0, c = 0, d = 0;
    for (std::size_t i = 0; i < 40; ++i)
      for (std::size_t j = 0; j < i; ++j)
        ++(u[i] == u[j] ? (v[i] == v[j] ? a : b) : (v[i] == v[j] ? c : d));
    BOOST_TEST(cape::adjusted_rand_index(u, v) ==
                   2 * (a * d - b * c) / ((a + b) * (b + d) + (a + c) * (c + d)),
               near);
  }
}

BOOST_AUTO_TEST_CASE(indices_are_symmetric_and_ignore_the_names_of_labels) {
  Rng rng(3);
  const Labels u = random_labels(60, 5, rng), v = random_labels(60, 3, rng);
  Labels renamed = u;
  for (std::int64_t& l : renamed) l = -13 * l + 1;
  for (const auto index : {cape::adjusted_rand_index, cape::normalized_mutual_information}) {
    BOOST_TEST(index(u, v) == index(v, u), near);
    BOOST_TEST(index(u, renamed) == 1.0, near);
    BOOST_TEST(index(renamed, v) == index(u, v), near);
  }
}

BOOST_AUTO_TEST_CASE(unrelated_labels_have_rand_index_zero_on_average) {
  Rng rng(4);
  double mean = 0, square = 0;
  const int trials = 500;
  for (int trial = 0; trial < trials; ++trial) {
    const double r =
        cape::adjusted_rand_index(random_labels(100, 4, rng), random_labels(100, 4, rng));
    mean += r / trials;
    square += r * r / trials;
  }
  BOOST_TEST(std::fabs(mean) < 5 * std::sqrt(square / trials));
}

BOOST_AUTO_TEST_CASE(degenerate_partitions) {
  const Labels one{3, 3, 3}, each{1, 2, 3};
  BOOST_TEST(cape::adjusted_rand_index(one, one) == 1.0);
  BOOST_TEST(cape::adjusted_rand_index(each, each) == 1.0);
  BOOST_TEST(cape::adjusted_rand_index(one, each) == 0.0);
  BOOST_TEST(cape::adjusted_rand_index(Labels{1}, Labels{2}) == 1.0);
  BOOST_TEST(cape::normalized_mutual_information(one, one) == 1.0);
  BOOST_TEST(cape::normalized_mutual_information(one, each) == 0.0);
  BOOST_TEST(cape::normalized_mutual_information(each, each) == 1.0, near);
}

BOOST_AUTO_TEST_CASE(bad_labellings_are_refused) {
  for (const auto index : {cape::adjusted_rand_index, cape::normalized_mutual_information}) {
    BOOST_CHECK_EXCEPTION(index(Labels{1, 2}, Labels{1}), cape::Error, mismatch);
    BOOST_CHECK_EXCEPTION(index(Labels{}, Labels{}), cape::Error, invalid);
  }
}

// Points 0, 1 and 10, 12: widths (11-1)/11, (10-1)/10, (9.5-2)/9.5, (11.5-2)/11.5.
BOOST_AUTO_TEST_CASE(silhouette_of_points_on_a_line_by_hand) {
  const std::vector<double> points{0, 1, 10, 12};
  Run run;
  const double expected = (10.0 / 11 + 9.0 / 10 + 7.5 / 9.5 + 9.5 / 11.5) / 4;
  BOOST_TEST(cape::silhouette({points.data(), 4, 1, 4}, Labels{8, 8, 2, 2}, run) == expected, near);
  // A singleton counts 0; the widths of 10 and 12 are the same with 0 and 1 as clusters each
  // but for the nearer of the two: b = 9 and 11.
  BOOST_TEST(cape::silhouette({points.data(), 4, 1, 4}, Labels{0, 1, 2, 2}, run) ==
                 (7.0 / 9 + 9.0 / 11) / 4,
             near);
}

BOOST_AUTO_TEST_CASE(silhouette_does_not_depend_on_scale_layout_or_threads) {
  Rng rng(5);
  Matrix x(60, 3), huge(60, 3), tiny(60, 3), beside(60, 4);
  for (std::int64_t i = 0; i < 60; ++i)
    for (std::int64_t j = 0; j < 3; ++j) {
      x(i, j) = rng.normal();
      huge(i, j) = x(i, j) * 0x1p1000; // squares overflow
      tiny(i, j) = x(i, j) * 0x1p-1000; // and underflow
      beside(i, j) = tiny(i, j);
      beside(i, 3) = 1; // a column that says nothing
    }
  std::vector<double> by_row;
  for (std::int64_t i = 0; i < 60; ++i)
    for (std::int64_t j = 0; j < 3; ++j) by_row.push_back(x(i, j));
  const Labels labels = random_labels(60, 3, rng);
  Run one(1, 1), many(1, 8);
  const double s = cape::silhouette(x, labels, one);
  BOOST_TEST(cape::silhouette(x, labels, many) == s);
  const cape::MatrixView rows{by_row.data(), 60, 3, 3, cape::Layout::row_major};
  BOOST_TEST(cape::silhouette(rows, labels, one) == s);
  BOOST_TEST(cape::silhouette(huge, labels, one) == s, near);
  BOOST_TEST(cape::silhouette(tiny, labels, one) == s, near);
  BOOST_TEST(cape::silhouette(beside, labels, one) == s, near);
  const std::vector<double> ends{-1.7e308, -1.6e308, 1.6e308, 1.7e308}; // differences overflow
  BOOST_TEST(cape::silhouette({ends.data(), 4, 1, 4}, Labels{0, 0, 1, 1}, one) ==
                 (32.5 / 33.5 + 31.5 / 32.5) / 2,
             near);
}

BOOST_AUTO_TEST_CASE(silhouette_of_equal_points_is_zero) {
  Run run;
  BOOST_TEST(cape::silhouette(Matrix(4, 2), Labels{1, 1, 2, 2}, run) == 0.0);
}

BOOST_AUTO_TEST_CASE(bad_silhouettes_are_refused) {
  Run run;
  const Matrix x(3, 2);
  BOOST_CHECK_EXCEPTION(cape::silhouette(x, Labels{1, 2}, run), cape::Error, mismatch);
  BOOST_CHECK_EXCEPTION(cape::silhouette(x, Labels{1, 1, 1}, run), cape::Error, invalid);
  BOOST_CHECK_EXCEPTION(cape::silhouette(Matrix(), Labels{}, run), cape::Error, invalid);
  Matrix nan(2, 1);
  nan(0, 0) = std::nan("");
  BOOST_CHECK_EXCEPTION(cape::silhouette(nan, Labels{1, 2}, run), cape::Error, invalid);
  Run cancelled(1, 1, [](const cape::Progress&) { return false; });
  BOOST_CHECK_EXCEPTION(cape::silhouette(x, Labels{1, 1, 2}, cancelled), cape::Error,
                        code_is(cape::Status::cancelled));
}

BOOST_AUTO_TEST_SUITE_END()
