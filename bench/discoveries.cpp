// How many edges chance gives: what Step I's limit of false discoveries rests on, where columns are
// mostly one value as single-cell counts are.
//   bench_discoveries p [PAIRS]         of independent columns, the share of p below 1e-3 and 1e-5
//   bench_discoveries graphs [GRAPHS] [ROWS...]
//                                       of simulated graphs, the share of the refined graph's edges
//                                       whose ends are not joined, and of the true edges found
// Seeds from 2001.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <set>
#include <string>
#include <utility>
#include <vector>
import cape;

#include "timing.hpp"

namespace {

using cape::Edge;
using cape::Matrix;
using cape::Rng;
using cape::Run;

constexpr std::uint64_t first_seed = 2001;
constexpr double dense = 1; ///< as a share of values that are not 0

// The logarithm of one and a count of this mean, overdispersed.
double log_count(double mean, Rng& rng) {
  return std::log1p(static_cast<double>(rng.poisson(mean * rng.gamma(2) / 2)));
}

// The mean at which a count is not 0 in this share of the rows, given factors of every row: by
// halving. P(0) of a Poisson number whose mean is m G/2, G of the gamma distribution of shape 2.
double mean_for(double detected, const std::vector<double>& factor) {
  double low = 1e-9, high = 1e6;
  for (int k = 0; k < 100; ++k) {
    const double mean = std::sqrt(low * high);
    double share = 0;
    for (const double f : factor)
      share += (1 - 1 / ((1 + mean * f / 2) * (1 + mean * f / 2))) / double(factor.size());
    (share < detected ? low : high) = mean;
  }
  return low;
}

std::vector<double> independent(double detected, std::int64_t rows, Rng& rng) {
  std::vector<double> x;
  const double mean = detected == dense ? 0 : mean_for(detected, {1});
  for (std::int64_t i = 0; i < rows; ++i)
    x.push_back(detected == dense ? rng.normal() : log_count(mean, rng));
  return x;
}

void p_values(std::int64_t pairs) {
  std::printf("shares of p, over 1e-3 and 1e-5; %lld pairs each\n", static_cast<long long>(pairs));
  const std::vector<double> kinds = {0.05, 0.1, 0.3, dense};
  for (const std::int64_t rows : {200, 1000, 3000})
    for (std::size_t a = 0; a < kinds.size(); ++a)
      for (std::size_t b = 0; b < kinds.size(); ++b) {
        std::int64_t below = 0, far_below = 0;
        for (std::int64_t k = 0; k < pairs; ++k) {
          Rng rng(first_seed,
                  {a, b, static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(k)});
          const std::vector<double> x = independent(kinds[a], rows, rng),
                                    y = independent(kinds[b], rows, rng);
          Matrix other(rows, 1);
          const std::vector<double> z = independent(kinds[(a + b) % kinds.size()], rows, rng);
          std::copy(z.begin(), z.end(), other.data());
          const double p =
              cape::edge_p_value(x, y, other, -std::numeric_limits<double>::infinity());
          below += p < 1e-3;
          far_below += p < 1e-5;
        }
        std::printf("%5lld rows, %3.0f %% -> %3.0f %%: %6.2f %8.2f\n", static_cast<long long>(rows),
                    100 * kinds[a], 100 * kinds[b], 1e3 * double(below) / double(pairs),
                    1e5 * double(far_below) / double(pairs));
        std::fflush(stdout);
      }
}

// Data of a graph whose mechanisms act on what is measured: the rate of a count, or the mean of a
// dense column, depends on the values of its causes.
Matrix data_of(const cape::Digraph& graph, const std::vector<double>& detected, std::int64_t rows,
               std::uint64_t seed) {
  Matrix x(rows, graph.size());
  Rng rng(seed, {cape::hash("bench.discoveries")});
  const auto order = cape::topological_order(graph);
  for (const std::int64_t j : order) {
    std::vector<double> effect(static_cast<std::size_t>(rows));
    for (const Edge& e : graph.edges()) {
      if (e.to != j) continue;
      double mean = 0, squares = 0;
      for (std::int64_t i = 0; i < rows; ++i) mean += x(i, e.from) / double(rows);
      for (std::int64_t i = 0; i < rows; ++i)
        squares += (x(i, e.from) - mean) * (x(i, e.from) - mean) / double(rows);
      // Lines between dense columns would not tell which is the cause.
      const bool bent = detected[static_cast<std::size_t>(j)] == dense;
      for (std::int64_t i = 0; i < rows; ++i) {
        const double cause = (x(i, e.from) - mean) / std::sqrt(std::max(squares, 1e-12));
        effect[static_cast<std::size_t>(i)] +=
            e.weight * (bent ? 2 * std::sin(1.5 * cause) : cause);
      }
    }
    const double share = detected[static_cast<std::size_t>(j)];
    std::vector<double> factor;
    for (const double v : effect) factor.push_back(std::exp(std::min(v, 4.0)));
    const double mean = share == dense ? 0 : mean_for(share, factor);
    for (std::int64_t i = 0; i < rows; ++i) {
      const auto at = static_cast<std::size_t>(i);
      x(i, j) = share == dense ? effect[at] + rng.normal() : log_count(mean * factor[at], rng);
    }
  }
  return x;
}

void graphs(std::int64_t count, const std::vector<std::int64_t>& all_rows) {
  constexpr std::int64_t nodes = 110; // above 100 the order is not searched for: seconds a graph
  std::printf("rows, detected: edges; kept, unjoined (standard error), of the true ones found\n");
  const std::vector<std::vector<double>> kinds = {{0.05},           {0.1},        {0.3},
                                                  {0.05, 0.1, 0.3}, {0.1, dense}, {dense}};
  for (const bool hubs : {false, true})
    for (const std::int64_t rows : all_rows)
      for (const std::vector<double>& kind : kinds) {
        double edges = 0, kept = 0, found = 0, sum = 0, squares = 0;
        const double seconds = bench::processor_seconds();
        for (std::int64_t g = 0; g < count; ++g) {
          const std::uint64_t seed = first_seed + static_cast<std::uint64_t>(g);
          cape::GraphOptions shape;
          shape.model = hubs ? cape::GraphModel::barabasi_albert : cape::GraphModel::erdos_renyi;
          shape.edges_per_node = hubs ? 2 : 1;
          shape.min_weight = 0.4;
          shape.max_weight = 0.8;
          const cape::Digraph graph = cape::simulate_dag(nodes, shape, seed);
          std::vector<double> detected;
          for (std::int64_t j = 0; j < nodes; ++j)
            detected.push_back(kind[static_cast<std::size_t>(j) % kind.size()]);
          const Matrix x = data_of(graph, detected, rows, seed);
          Run run(seed, 1);
          cape::DagOptions options;
          options.standardize = true;
          const cape::Dag dag = cape::learn_dag(x, options, run);
          std::set<std::pair<std::int64_t, std::int64_t>> joined;
          for (const Edge& e : graph.edges()) joined.insert(std::minmax(e.from, e.to));
          double right = 0;
          for (const Edge& e : dag.graph.edges())
            right += joined.contains(std::minmax(e.from, e.to));
          const double all = static_cast<double>(dag.graph.edges().size());
          const double wrong = all > 0 ? 1 - right / all : 0;
          edges += static_cast<double>(graph.edges().size());
          kept += all;
          found += right;
          sum += wrong;
          squares += wrong * wrong;
        }
        const double n = static_cast<double>(count), mean = sum / n;
        std::string name;
        for (const double share : kind)
          name += (name.empty() ? "" : ", ") +
                  (share == dense ? std::string("dense") : std::to_string(int(100 * share)) + " %");
        std::printf("%s, %5lld rows, %-14s %5.1f; %5.1f, %.3f (%.3f), %.2f; %.1f s\n",
                    hubs ? "BA2" : "ER1", static_cast<long long>(rows), name.c_str(), edges / n,
                    kept / n, mean,
                    n > 1 ? std::sqrt(std::max(0.0, squares / n - mean * mean) / (n - 1)) : 0,
                    found / edges, (bench::processor_seconds() - seconds) / n);
        std::fflush(stdout);
      }
}

} // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const std::int64_t count = argc > 2 ? std::atoll(argv[2]) : what == "p" ? 100000 : 10;
  std::vector<std::int64_t> rows;
  for (int a = 3; a < argc; ++a) rows.push_back(std::atoll(argv[a]));
  if ((what != "p" && what != "graphs") || count < 1) {
    std::fprintf(stderr, "usage: bench_discoveries p [PAIRS] | graphs [GRAPHS] [ROWS...]\n");
    return 2;
  }
  if (what == "p")
    p_values(count);
  else
    graphs(count, rows.empty() ? std::vector<std::int64_t>{200, 1000, 3000} : rows);
}
