#define BOOST_TEST_MODULE simulate
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <set>
#include <tuple>
#include <vector>
import cape;
#include "occasions.hpp"

using cape::DataOptions;
using cape::Digraph;
using cape::Edge;
using cape::GraphModel;
using cape::GraphOptions;
using cape::Matrix;
using cape::Mechanism;
using cape::Noise;

namespace {

auto code_is(cape::Status code) {
  return [code](const cape::Error& e) { return e.code() == code; };
}
const auto invalid = code_is(cape::Status::invalid_argument);

GraphOptions barabasi(double edges_per_node) {
  return {.model = GraphModel::barabasi_albert, .edges_per_node = edges_per_node};
}
GraphOptions erdos(double edges_per_node) {
  return {.model = GraphModel::erdos_renyi, .edges_per_node = edges_per_node};
}

std::vector<std::int64_t> degrees(const Digraph& g) {
  std::vector<std::int64_t> d(static_cast<std::size_t>(g.size()), 0);
  for (const Edge& e : g.edges()) {
    ++d[static_cast<std::size_t>(e.from)];
    ++d[static_cast<std::size_t>(e.to)];
  }
  return d;
}

struct Moments {
  double mean = 0, variance = 0, n = 0;
  double error() const { return std::sqrt(variance / n); } // of the mean
};
Moments moments(const std::vector<double>& v) {
  Moments m;
  m.n = double(v.size());
  for (const double x : v) m.mean += x / m.n;
  for (const double x : v) m.variance += (x - m.mean) * (x - m.mean) / (m.n - 1);
  return m;
}
Moments column_moments(const Matrix& x, std::int64_t j) {
  return moments({x.column(j), x.column(j) + x.rows()});
}

// The noise of a simulation is keyed by node alone: the same seed on a graph without edges.
Matrix noise_of(const Digraph& g, std::int64_t rows, const DataOptions& o, std::uint64_t seed) {
  return cape::simulate_data(Digraph(g.size()), rows, o, seed);
}

} // namespace

BOOST_AUTO_TEST_SUITE(graphs)

BOOST_AUTO_TEST_CASE(barabasi_albert_has_m_edges_per_later_node) {
  for (const auto& [nodes, m, edges] : {std::tuple{10, 1, 9u},
                                        {10, 2, 16u},
                                        {30, 2, 56u},
                                        {100, 2, 196u},
                                        {300, 2, 596u},
                                        {2, 2, 0u}})
    for (const std::uint64_t seed : {1u, 2u})
      BOOST_TEST(cape::simulate_dag(nodes, barabasi(m), seed).edges().size() == edges);
}

// Four nodes, m = 1: a path before the last node, which finds the middle, of half of all degrees,
// with probability 1/2 (without preference: 1/3).
BOOST_AUTO_TEST_CASE(barabasi_albert_prefers_high_degrees) {
  const int trials = 4000;
  int stars = 0;
  for (int seed = 0; seed < trials; ++seed) {
    const auto d = degrees(cape::simulate_dag(4, barabasi(1), std::uint64_t(seed)));
    stars += *std::max_element(d.begin(), d.end()) == 3;
  }
  BOOST_TEST(std::fabs(stars / double(trials) - 0.5) < 5 * std::sqrt(0.25 / trials));
}

BOOST_AUTO_TEST_CASE(erdos_renyi_has_the_expected_number_of_edges) {
  std::vector<double> edges;
  for (std::uint64_t seed = 0; seed < 400; ++seed)
    edges.push_back(double(cape::simulate_dag(10, erdos(2), seed).edges().size()));
  // 45 pairs with probability 0.4: mean 18, variance 10.8.
  BOOST_TEST(std::fabs(moments(edges).mean - 18) < 5 * std::sqrt(10.8 / 400));
  BOOST_TEST(std::fabs(moments(edges).variance - 10.8) < 5 * 10.8 * std::sqrt(2.0 / 400));
  BOOST_TEST(cape::simulate_dag(10, erdos(0), 1).edges().empty());
  BOOST_TEST(cape::simulate_dag(10, erdos(50), 1).edges().size() == 45u);
}

BOOST_AUTO_TEST_CASE(hubs_are_not_preferentially_causes) {
  std::vector<double> excess;
  for (std::uint64_t seed = 0; seed < 600; ++seed) {
    const Digraph g = cape::simulate_dag(20, barabasi(2), seed);
    double out = double(g.out(0).size()), in = 0; // node 0 is of the core
    for (const Edge& e : g.edges()) in += e.to == 0;
    excess.push_back(out - in);
  }
  BOOST_TEST(std::fabs(moments(excess).mean) < 5 * moments(excess).error());
}

BOOST_AUTO_TEST_CASE(graphs_are_acyclic_with_weights_in_range) {
  for (const GraphOptions& o : {barabasi(1), barabasi(3), erdos(2)})
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
      const Digraph g = cape::simulate_dag(40, o, seed);
      BOOST_TEST(cape::is_acyclic(g));
      int negative = 0;
      for (const Edge& e : g.edges()) {
        BOOST_TEST(std::fabs(e.weight) > 0.5);
        BOOST_TEST(std::fabs(e.weight) < 2.0);
        negative += e.weight < 0;
      }
      BOOST_TEST((negative > 0 && negative < int(g.edges().size())));
    }
  GraphOptions positive = barabasi(2);
  positive.signed_weights = false;
  const Digraph g = cape::simulate_dag(40, positive, 3);
  for (const Edge& e : g.edges()) BOOST_TEST(e.weight > 0.5);
}

BOOST_AUTO_TEST_CASE(graph_is_a_function_of_the_seed) {
  BOOST_TEST((cape::simulate_dag(50, barabasi(2), 7) == cape::simulate_dag(50, barabasi(2), 7)));
  BOOST_TEST((cape::simulate_dag(50, barabasi(2), 7) != cape::simulate_dag(50, barabasi(2), 8)));
}

BOOST_AUTO_TEST_CASE(bad_graph_arguments_are_refused) {
  BOOST_CHECK_EXCEPTION(cape::simulate_dag(0, barabasi(2), 1), cape::Error, invalid);
  for (const double m : {0.0, 0.5, 1.5, -1.0, std::nan("")})
    BOOST_CHECK_EXCEPTION(cape::simulate_dag(5, barabasi(m), 1), cape::Error, invalid);
  BOOST_CHECK_EXCEPTION(cape::simulate_dag(5, erdos(-1), 1), cape::Error, invalid);
  GraphOptions o;
  o.min_weight = 3;
  BOOST_CHECK_EXCEPTION(cape::simulate_dag(5, o, 1), cape::Error, invalid);
  o.min_weight = 0;
  BOOST_CHECK_EXCEPTION(cape::simulate_dag(5, o, 1), cape::Error, invalid);
  BOOST_TEST(cape::simulate_dag(1, barabasi(2), 1).size() == 1);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(data)

BOOST_AUTO_TEST_CASE(linear_data_solve_the_structural_equations) {
  const Digraph g = cape::simulate_dag(15, barabasi(2), 1);
  const DataOptions o{.mechanism = Mechanism::linear};
  const Matrix x = cape::simulate_data(g, 200, o, 5), noise = noise_of(g, 200, o, 5),
               a = g.adjacency();
  for (std::int64_t i = 0; i < 200; ++i)
    for (std::int64_t n = 0; n < 15; ++n) {
      double expected = noise(i, n);
      for (std::int64_t m = 0; m < 15; ++m) expected += x(i, m) * a(m, n);
      BOOST_TEST(std::fabs(x(i, n) - expected) < 1e-12 * (1 + std::fabs(expected)));
    }
}

BOOST_AUTO_TEST_CASE(noise_has_the_stated_moments) {
  const double pi = std::acos(-1.0);
  for (const auto& [noise, mean, sd] :
       {std::tuple{Noise::gaussian, 0.0, 1.0},
        {Noise::exponential, 1.0, 1.0},
        {Noise::gumbel, 0.57721566490153286, pi / std::sqrt(6.0)}}) {
    const DataOptions o{.noise = noise, .noise_scale = 3.0};
    const Moments m = column_moments(cape::simulate_data(Digraph(2), 50000, o, 3), 1);
    BOOST_TEST(std::fabs(m.mean - 3 * mean) < 5 * m.error());
    // The kurtosis of the three is at most 9: the error of a variance is below sd^2 sqrt(8 / n).
    BOOST_TEST(std::fabs(m.variance - 9 * sd * sd) < 5 * 9 * sd * sd * std::sqrt(8.0 / 50000));
  }
}

BOOST_AUTO_TEST_CASE(mlp_is_a_bounded_function_of_the_causes) {
  const Digraph g(3, {{0, 2, 1}, {1, 2, 1}});
  const DataOptions o{.mechanism = Mechanism::mlp};
  const Matrix x = cape::simulate_data(g, 3000, o, 11), noise = noise_of(g, 3000, o, 11);
  std::vector<double> signal;
  for (std::int64_t i = 0; i < 3000; ++i) {
    BOOST_TEST(x(i, 0) == noise(i, 0)); // roots are noise
    signal.push_back(x(i, 2) - noise(i, 2));
    BOOST_TEST(std::fabs(signal.back()) <= 200.0); // 100 units, |weights| below 2
  }
  BOOST_TEST(moments(signal).variance > 0.01);
}

BOOST_AUTO_TEST_CASE(weights_enter_the_linear_mechanism_alone) {
  const Digraph g(2, {{0, 1, 0.5}}), h(2, {{0, 1, -2}});
  for (const Mechanism m :
       {Mechanism::mlp, Mechanism::gp_additive, Mechanism::quadratic, Mechanism::mim})
    BOOST_TEST((cape::simulate_data(g, 20, {.mechanism = m}, 1) ==
                cape::simulate_data(h, 20, {.mechanism = m}, 1)));
  BOOST_TEST((cape::simulate_data(g, 20, {.mechanism = Mechanism::linear}, 1) !=
              cape::simulate_data(h, 20, {.mechanism = Mechanism::linear}, 1)));
}

BOOST_AUTO_TEST_CASE(quadratic_is_a_form_of_the_causes) {
  const Digraph g(2, {{0, 1, 1}});
  const DataOptions o{.mechanism = Mechanism::quadratic};
  std::set<bool> signs;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Matrix x = cape::simulate_data(g, 50, o, seed), noise = noise_of(g, 50, o, seed);
    const double c = (x(0, 1) - noise(0, 1)) / (x(0, 0) * x(0, 0));
    BOOST_TEST((std::fabs(c) > 0.499 && std::fabs(c) < 1.001));
    signs.insert(c < 0);
    for (std::int64_t i = 0; i < 50; ++i)
      BOOST_TEST(std::fabs(x(i, 1) - noise(i, 1) - c * x(i, 0) * x(i, 0)) < 1e-8);
  }
  BOOST_TEST(signs.size() == 2u);
}

// Of a small cause x the effect is tanh ax + cos bx + sin cx = 1 + (a + c) x - b^2 x^2 / 2 + ...
BOOST_AUTO_TEST_CASE(multiple_index_model_has_the_expansion_of_its_links) {
  const Digraph g(2, {{0, 1, 1}});
  const DataOptions o{.mechanism = Mechanism::mim, .noise_scale = 1e-4};
  std::set<bool> signs;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Matrix x = cape::simulate_data(g, 2, o, seed), noise = noise_of(g, 2, o, seed);
    double quotient[2];
    for (std::int64_t i = 0; i < 2; ++i) quotient[i] = (x(i, 1) - noise(i, 1) - 1) / x(i, 0);
    const double curvature = (quotient[0] - quotient[1]) / (x(0, 0) - x(1, 0));
    BOOST_TEST((curvature > -2.05 && curvature < -0.1));
    BOOST_TEST(std::fabs(quotient[0]) < 4.01);
    signs.insert(quotient[0] < 0);
  }
  BOOST_TEST(signs.size() == 2u);
}

// Over seeds, g(s) g(t) averages to the kernel exp(-(s - t)^2 / 2).
BOOST_AUTO_TEST_CASE(gaussian_process_has_the_rbf_covariance) {
  const Digraph g(2, {{0, 1, 1}});
  const DataOptions o{.mechanism = Mechanism::gp_additive};
  std::vector<double> excess, square;
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    const Matrix x = cape::simulate_data(g, 2, o, seed), noise = noise_of(g, 2, o, seed);
    const double s = x(0, 0), t = x(1, 0);
    const double gs = x(0, 1) - noise(0, 1), gt = x(1, 1) - noise(1, 1);
    excess.push_back(gs * gt - std::exp(-(s - t) * (s - t) / 2));
    square.push_back(gs * gs);
  }
  BOOST_TEST(std::fabs(moments(excess).mean) < 5 * moments(excess).error());
  BOOST_TEST(std::fabs(moments(square).mean - 1) < 5 * moments(square).error());
}

BOOST_AUTO_TEST_CASE(data_are_a_function_of_the_seed) {
  const Digraph g = cape::simulate_dag(10, erdos(2), 1);
  BOOST_TEST((cape::simulate_data(g, 30, {}, 1) == cape::simulate_data(g, 30, {}, 1)));
  BOOST_TEST((cape::simulate_data(g, 30, {}, 1) != cape::simulate_data(g, 30, {}, 2)));
}

BOOST_AUTO_TEST_CASE(growing_data_are_an_error_and_not_infinite) {
  std::vector<Edge> chain;
  for (std::int64_t m = 0; m < 40; ++m) chain.push_back({m, m + 1, 1});
  BOOST_CHECK_EXCEPTION(
      cape::simulate_data(Digraph(41, chain), 100, {.mechanism = Mechanism::quadratic}, 1),
      cape::Error, code_is(cape::Status::unsupported));
}

BOOST_AUTO_TEST_CASE(bad_data_arguments_are_refused) {
  const Digraph cycle(2, {{0, 1, 1}, {1, 0, 1}});
  BOOST_CHECK_EXCEPTION(cape::simulate_data(cycle, 10, {}, 1), cape::Error, invalid);
  BOOST_CHECK_EXCEPTION(cape::simulate_data(Digraph(2), 0, {}, 1), cape::Error, invalid);
  for (const double scale : {0.0, -1.0, std::nan("")})
    BOOST_CHECK_EXCEPTION(cape::simulate_data(Digraph(2), 5, {.noise_scale = scale}, 1),
                          cape::Error, invalid);
  BOOST_CHECK_EXCEPTION(cape::simulate_data(Digraph(2), 5, {.mechanism = Mechanism(9)}, 1),
                        cape::Error, invalid);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(counts)

BOOST_AUTO_TEST_CASE(counts_are_a_valid_sparse_matrix_without_zeros) {
  const Matrix x = cape::simulate_data(cape::simulate_dag(20, barabasi(2), 1), 100, {}, 1);
  const cape::SparseMatrix counts = cape::simulate_counts(x, 1.5, 0.5, 1);
  cape::check_view(counts.view(), "counts");
  BOOST_TEST(counts.rows == 100);
  BOOST_TEST(counts.cols == 20);
  BOOST_TEST((counts.layout == cape::Layout::row_major));
  for (const double v : counts.values) BOOST_TEST((v >= 1 && v == std::floor(v)));
  const cape::SparseMatrix again = cape::simulate_counts(x, 1.5, 0.5, 1);
  BOOST_TEST((counts.values == again.values && counts.indices == again.indices));
  BOOST_TEST((counts.values != cape::simulate_counts(x, 1.5, 0.5, 2).values));
}

// x constant: given the depths (log-sd 0.3, mean 1) a count has mean m d and variance
// m d + 0.5 (m d)^2; hence in all the mean m and the variance m + m^2 (1.5 exp(0.09) - 1).
BOOST_AUTO_TEST_CASE(counts_have_the_stated_moments) {
  const double m = 4;
  const cape::SparseMatrix counts = cape::simulate_counts(Matrix(20000, 1), m, 0.5, 9);
  std::vector<double> values = counts.values;
  values.resize(20000, 0.0);
  const Moments c = moments(values);
  double fourth = 0;
  for (const double v : values) fourth += std::pow(v - c.mean, 4) / 20000;
  BOOST_TEST(std::fabs(c.mean - m) < 5 * c.error());
  BOOST_TEST(std::fabs(c.variance - (m + m * m * (1.5 * std::exp(0.09) - 1))) <
             5 * std::sqrt((fourth - c.variance * c.variance) / 20000));
}

BOOST_AUTO_TEST_CASE(log_counts_rise_by_half_per_standard_deviation) {
  const std::int64_t rows = 40000;
  Matrix x(rows, 1);
  for (std::int64_t i = 0; i < rows; ++i) x(i, 0) = i % 2 ? 7.0 : 3.0; // standardised: 1 and -1
  const cape::SparseMatrix counts = cape::simulate_counts(x, 10, 0.1, 2);
  double low = 0, high = 0;
  for (std::size_t i = 0; i < std::size_t(rows); ++i)
    for (std::int64_t e = counts.offsets[i]; e < counts.offsets[i + 1]; ++e)
      (i % 2 ? high : low) += counts.values[std::size_t(e)];
  // Means near 14.6 and 5.4, relative errors below 1%.
  BOOST_TEST(high / low == std::exp(1.0), boost::test_tools::tolerance(0.03));
  BOOST_TEST((low + high) / double(rows) == 10.0, boost::test_tools::tolerance(0.02));
}

// x is standardised: its scale says nothing, out to the ends of double.
BOOST_AUTO_TEST_CASE(counts_do_not_depend_on_the_scale_of_x) {
  cape::Rng rng(8);
  Matrix x(300, 2);
  for (std::int64_t i = 0; i < 300; ++i)
    for (std::int64_t j = 0; j < 2; ++j) x(i, j) = rng.normal();
  const cape::SparseMatrix counts = cape::simulate_counts(x, 10, 0.1, 2);
  for (const int power : {-1000, -600, 3, 600, 1000}) {
    Matrix scaled(300, 2);
    for (std::int64_t i = 0; i < 300; ++i)
      for (std::int64_t j = 0; j < 2; ++j) scaled(i, j) = std::scalbn(x(i, j), power);
    BOOST_TEST(cape::simulate_counts(scaled, 10, 0.1, 2).values == counts.values);
  }
}

BOOST_AUTO_TEST_CASE(bad_count_arguments_are_refused) {
  const Matrix x(3, 2);
  Matrix nan(3, 2);
  nan(1, 1) = std::nan("");
  BOOST_CHECK_EXCEPTION(cape::simulate_counts(nan, 1, 1, 1), cape::Error, invalid);
  for (const double mean : {0.0, -1.0, 1e7, std::nan("")})
    BOOST_CHECK_EXCEPTION(cape::simulate_counts(x, mean, 1, 1), cape::Error, invalid);
  for (const double dispersion : {-0.1, 1e4, std::nan("")})
    BOOST_CHECK_EXCEPTION(cape::simulate_counts(x, 1, dispersion, 1), cape::Error, invalid);
  BOOST_TEST(cape::simulate_counts(Matrix(), 1, 1, 1).values.empty());
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(cancelling)

// Every long loop gives occasions to cancel, at which it ends; the seed of the run is the seed.
BOOST_AUTO_TEST_CASE(simulations_end_in_the_middle) {
  const Digraph graph = cape::simulate_dag(30, barabasi(2), 3);
  const Matrix x = cape::simulate_data(graph, 400, {}, 3);
  struct Work {
    const char* what;
    std::function<void(cape::Run&)> run;
    std::int64_t least; ///< occasions
  };
  const auto data = [&](Mechanism mechanism) {
    return [&graph, mechanism](cape::Run& run) {
      cape::simulate_data(graph, 400, {.mechanism = mechanism}, run);
    };
  };
  const std::int64_t edges = std::ssize(graph.edges());
  const Work works[] = {
      {"erdos", [](cape::Run& run) { cape::simulate_dag(300, erdos(2), run); }, 299},
      {"barabasi", [](cape::Run& run) { cape::simulate_dag(300, barabasi(2), run); }, 298},
      {"many partners", [](cape::Run& run) { cape::simulate_dag(4100, barabasi(4096), run); }, 12},
      {"linear", data(Mechanism::linear), 60 + edges},
      {"mlp", data(Mechanism::mlp), 60 + 100 * edges},
      {"gp_additive", data(Mechanism::gp_additive), 60 + 512 * edges},
      {"quadratic", data(Mechanism::quadratic), 60 + edges},
      {"mim", data(Mechanism::mim), 60 + 3 * edges},
      {"many rows",
       [](cape::Run& run) { cape::simulate_data(Digraph(1, {}), 1 << 20, {}, run); }, 16},
      {"counts", [&](cape::Run& run) { cape::simulate_counts(x, 5, 0.5, run); }, 400 + 30 * 5}};
  for (const Work& work : works) {
    BOOST_TEST_CONTEXT(work.what) {
      const test::Occasions whole = test::occasions(work.run, [](const auto&) { return false; });
      BOOST_TEST(whole.count >= work.least);
      std::int64_t n = 0;
      const test::Occasions part = test::occasions(
          work.run, [&](const cape::Progress&) { return ++n == whole.count / 2; });
      BOOST_TEST(part.count == whole.count / 2);
    }
  }
  cape::Run run(3);
  BOOST_TEST(cape::simulate_data(graph, 400, {}, run)(399, 29) == x(399, 29));
}

BOOST_AUTO_TEST_SUITE_END()
