#define BOOST_TEST_MODULE pipeline
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

import cape;

namespace {

cape::Options quick() {
  cape::Options options;
  options.dag.epochs = 5;
  options.dag.refine = cape::Refine::never;
  options.embed.dims = 4;
  options.embed.epochs = 20;
  return options;
}

// Data with a known cause of every column: simulate_data on a small random graph.
cape::Matrix table(std::int64_t rows = 120) {
  return simulate_data(cape::simulate_dag(6, {}, 3), rows, {}, 3);
}

} // namespace

BOOST_AUTO_TEST_CASE(a_fit_is_its_three_steps) {
  const cape::Matrix x = table();
  const cape::Options options = quick();
  cape::Run whole(5), steps(5);
  const cape::Fit fit = cape::fit(x, options, whole);

  const cape::Dag dag = learn_dag(x, options.dag, steps);
  const cape::Digraph graph = graph_to_embed(dag, options.embed);
  const cape::Embedding embedding = embed_dag(graph, options.embed, steps);
  const cape::Matrix angles = rotary_angles(embedding.poincare, options.rotary.scale);
  BOOST_TEST((fit.dag.weights == dag.weights));
  BOOST_TEST((fit.dag.graph == dag.graph));
  BOOST_TEST((fit.embedding.hyperboloid == embedding.hyperboloid));
  BOOST_TEST((fit.angles == angles));

  const cape::GraphFit rest = fit_graph(graph, options, steps);
  BOOST_TEST((rest.angles == angles));
}

// Two joined pairs and noise, cut so that there are no edges: by its coverage a fit leaves all at
// the origin, or the noise alone. Where there are edges, their order of radii is kept.
BOOST_AUTO_TEST_CASE(coverage_says_what_has_a_place) {
  cape::Matrix x(200, 5);
  cape::Rng rng(4);
  for (std::int64_t i = 0; i < x.rows(); ++i) {
    x(i, 0) = rng.normal();
    x(i, 1) = x(i, 0) + rng.normal();
    x(i, 2) = rng.normal();
    x(i, 3) = x(i, 2) + rng.normal();
    x(i, 4) = rng.normal();
  }
  for (const double threshold : {100.0, 0.0}) {
    cape::Options options = quick();
    options.dag.threshold = threshold;
    BOOST_TEST((options.embed.coverage == cape::Coverage::support));
    cape::Run run(5);
    const cape::Fit wide = cape::fit(x, options, run);
    BOOST_TEST((wide.dag.graph.edges().empty() == (threshold == 100)));
    for (const cape::Edge& e : wide.dag.graph.edges())
      BOOST_TEST(wide.embedding.radius[static_cast<std::size_t>(e.from)] <
                 wide.embedding.radius[static_cast<std::size_t>(e.to)]);
    for (std::size_t j = 0; j < 4; ++j) BOOST_TEST(wide.embedding.radius[j] > 0);
    if (threshold == 100) BOOST_TEST(wide.embedding.radius[4] == 0);
    set_option(options, "embed.coverage", "edges");
    const cape::Fit narrow = cape::fit(x, options, run);
    BOOST_TEST((narrow.dag.graph == wide.dag.graph));
    BOOST_TEST((narrow.embedding.hyperboloid ==
                embed_dag(wide.dag.graph, options.embed, run).hyperboloid));
    if (threshold == 100)
      for (const double r : narrow.embedding.radius) BOOST_TEST(r == 0);
  }
  cape::Options options;
  BOOST_CHECK_EXCEPTION(set_option(options, "embed.coverage", "all"), cape::Error,
                        [](const cape::Error& e) {
                          return std::string_view(e.what()).find("embed.coverage is \"all\"") !=
                                 std::string_view::npos;
                        });
}

BOOST_AUTO_TEST_CASE(the_number_of_threads_changes_no_bit) {
  const cape::Matrix x = table();
  cape::Run one(5, 1), two(5, 2);
  const cape::Fit a = cape::fit(x, quick(), one), b = cape::fit(x, quick(), two);
  BOOST_TEST((a.dag.weights == b.dag.weights));
  BOOST_TEST((a.embedding.hyperboloid == b.embedding.hyperboloid));
  BOOST_TEST((a.angles == b.angles));
}

BOOST_AUTO_TEST_CASE(counts_are_preprocessed_and_then_fitted) {
  const cape::Matrix x = table();
  const cape::SparseMatrix counts = cape::simulate_counts(x, 20, 0.1, 1);
  cape::Options options = quick();
  options.preprocess.min_features = 1;
  options.preprocess.min_cells = 1;
  cape::Run whole(5), steps(5);
  const cape::CountsFit both = fit_counts(counts.view(), options, whole);
  const cape::Preprocessed data = preprocess(counts.view(), options.preprocess, steps);
  const cape::Fit fit = cape::fit(data.x, options, steps);
  BOOST_TEST((both.data.x == data.x));
  BOOST_TEST((both.fit.angles == fit.angles));
}

BOOST_AUTO_TEST_CASE(an_option_of_the_last_step_is_refused_before_the_first_begins) {
  const cape::Matrix x = table();
  cape::Options options = quick();
  options.rotary.scale = -1;
  bool begun = false;
  cape::Run run(1, 1, [&](const cape::Progress&) { return begun = true; });
  BOOST_CHECK_EXCEPTION(cape::fit(x, options, run), cape::Error, [](const cape::Error& e) {
    return e.code() == cape::Status::invalid_argument &&
           std::string_view(e.what()).find("rotary.scale") != std::string_view::npos;
  });
  BOOST_TEST(!begun);
  BOOST_CHECK_THROW(fit_graph(cape::Digraph(3), options, run), cape::Error);
}

BOOST_AUTO_TEST_CASE(a_graph_without_edges_and_a_single_node_are_encoded) {
  cape::Run run;
  for (std::int64_t nodes : {1, 5}) {
    const cape::GraphFit fit = fit_graph(cape::Digraph(nodes), quick(), run);
    BOOST_TEST(fit.angles.rows() == nodes);
    for (std::int64_t i = 0; i < fit.angles.size(); ++i)
      BOOST_TEST(std::isfinite(fit.angles.data()[i]));
  }
}

BOOST_AUTO_TEST_CASE(the_estimate_grows_with_the_data_and_the_work) {
  cape::Options options;
  options.dag.refine = cape::Refine::never;
  const cape::Estimate base = estimate(10000, 100, options);
  BOOST_TEST(base.bytes > 8.0 * 10000 * 100); // the table alone
  BOOST_TEST(base.seconds > 0);
  BOOST_TEST(estimate(20000, 100, options).seconds > base.seconds);
  BOOST_TEST(estimate(10000, 200, options).seconds > base.seconds);
  BOOST_TEST(estimate(20000, 100, options).bytes >= base.bytes);
  BOOST_TEST(estimate(10000, 200, options).bytes > base.bytes);
  cape::Options twice = options;
  twice.dag.epochs *= 2;
  BOOST_TEST(estimate(10000, 100, twice).seconds > base.seconds);
  cape::Options refined = options;
  refined.dag.refine = cape::Refine::always;
  BOOST_TEST(estimate(10000, 100, refined).seconds > base.seconds);
  refined.dag.refine = cape::Refine::automatic; // without a search beyond 100 columns
  BOOST_TEST(estimate(10000, 100, refined).seconds > estimate(10000, 101, refined).seconds);
  // Beyond 5,000 columns 60 of them are tested, on at most 5,000 rows, for the threshold.
  const auto tests = [&](std::int64_t rows, std::int64_t columns) {
    return estimate(rows, columns, refined).seconds - estimate(rows, columns, options).seconds;
  };
  const auto close = boost::test_tools::tolerance(1e-6);
  BOOST_TEST(tests(10000, 5000) > 0);
  BOOST_TEST(tests(5000, 5001) / 60 == tests(5000, 5000) / 5000, close);
  BOOST_TEST(tests(10000, 5001) == tests(5000, 5001), close);
  refined.dag.threshold = 0.2;
  BOOST_TEST(tests(10000, 5001) == 0);
  BOOST_CHECK_THROW(estimate(-1, 10, options), cape::Error);
  // 10,000 rows of doubles twice, 640 floats per column four times, and what is small beside them.
  cape::Options wide;
  wide.dag.candidates = 64;
  const double bytes = estimate(10000, 20000, wide).bytes;
  BOOST_TEST(bytes > 20000 * (8 * 2 * 10000.0 + 4 * 4 * 640));
  BOOST_TEST(bytes < 8e9);
  wide.dag.candidates = -1;
  BOOST_TEST(estimate(10000, 20000, wide).bytes > 20000 * (8 * 2 * 10000.0 + 4 * 4 * 200000));
  BOOST_CHECK_THROW(estimate(std::int64_t{1} << 40, std::int64_t{1} << 40, options), cape::Error);
}

BOOST_AUTO_TEST_CASE(the_estimate_is_that_of_both_steps) {
  cape::Options options;
  for (const std::int64_t m : {30, 8000}) {
    const cape::Estimate e = estimate(200, m, options);
    BOOST_TEST(e.seconds == cape::learn_dag_seconds(200, m, options.dag) +
                                cape::embed_dag_seconds(m, options.embed));
    BOOST_TEST(e.bytes == std::max(cape::learn_dag_memory(200, m, options.dag),
                                   8.0 * 200 * static_cast<double>(m) +
                                       cape::embed_dag_memory(m, options.embed)));
  }
  // Drawn negatives and candidates: linear in the columns; all pairs: at least quadratic.
  const cape::EmbedOptions& embed = options.embed;
  BOOST_TEST(cape::embed_dag_seconds(40000, embed) == 2 * cape::embed_dag_seconds(20000, embed),
             boost::test_tools::tolerance(1e-9));
  BOOST_TEST(cape::embed_dag_memory(40000, embed) == 2 * cape::embed_dag_memory(20000, embed),
             boost::test_tools::tolerance(1e-9));
  BOOST_TEST(cape::embed_dag_seconds(4000, embed) > 3 * cape::embed_dag_seconds(2000, embed));
  BOOST_TEST(cape::learn_dag_seconds(1000, 4000, options.dag) >
             3 * cape::learn_dag_seconds(1000, 2000, options.dag));
  options.dag.refine = cape::Refine::never;
  for (const std::int64_t below : {2, 10}) { // candidates, rank
    cape::DagOptions dag = options.dag;
    if (below == 10)
      dag.sem = cape::Sem::linear, dag.rank = below;
    else
      dag.candidates = below;
    BOOST_TEST(cape::learn_dag_seconds(1000, 4000, dag) <
               0.1 * cape::learn_dag_seconds(1000, 4000, options.dag));
  }
  BOOST_CHECK_THROW(cape::embed_dag_memory(-1, embed), cape::Error);
  BOOST_CHECK_THROW(cape::embed_dag_seconds(-1, embed), cape::Error);
  BOOST_CHECK_THROW(cape::learn_dag_seconds(-1, 10, options.dag), cape::Error);
  options.dag.rank = 2; // of sem linear only
  BOOST_CHECK_THROW(cape::learn_dag_seconds(10, 10, options.dag), cape::Error);
}
