// Step II. First the quality table: what the default embedding keeps of graphs that were not used
// in choosing it (metrics of compare_embedding(), means over seeds), and the paper's loss for
// comparison, and how Step I's own graphs are embedded (of data in CAPE_TEST_DATA; left out without
// them). Arguments like embed.rank_margin=0.1 change an option in all its rows. Then the
// speed: one epoch against the time of its two matrix products alone (the Gram matrix, and S P of
// the gradient), and whole fits; the ratio is between times of one run. --benchmark_filter=NONE
// leaves the speed out, --no-quality the table.
#include "data.hpp"
#include <benchmark/benchmark.h>
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <sys/resource.h>
#include <variant>
#include <vector>
import cape;

#include "timing.hpp"

using bench::processor_seconds;
using bench::wall_seconds;
#include "npy.hpp"

extern "C" void dgemm_(const char*, const char*, const int*, const int*, const int*, const double*,
                       const double*, const int*, const double*, const int*, const double*, double*,
                       const int*);

namespace {

// Every node gets two earlier causes.
cape::Digraph random_dag(std::int64_t m) {
  cape::Rng rng(1);
  std::vector<cape::Edge> edges;
  for (std::int64_t node = 1; node < m; ++node) {
    const std::set<std::int64_t> causes{rng.integer(node), rng.integer(node)};
    for (const std::int64_t cause : causes) edges.push_back({cause, node, rng.uniform(0.3, 1)});
  }
  return cape::Digraph(m, edges);
}

std::uint64_t first_seed = 401; // to choose options, use others
constexpr int n_seeds = 3;

struct Family {
  const char* name;
  std::int64_t nodes;
  cape::GraphModel model;
  double edges_per_node; // 0: the balanced binary tree
};
constexpr Family families[] = {{"BA1", 30, cape::GraphModel::barabasi_albert, 1},
                               {"BA1", 100, cape::GraphModel::barabasi_albert, 1},
                               {"BA1", 200, cape::GraphModel::barabasi_albert, 1},
                               {"BA2", 30, cape::GraphModel::barabasi_albert, 2},
                               {"BA2", 100, cape::GraphModel::barabasi_albert, 2},
                               {"BA2", 200, cape::GraphModel::barabasi_albert, 2},
                               {"ER2", 30, cape::GraphModel::erdos_renyi, 2},
                               {"ER2", 100, cape::GraphModel::erdos_renyi, 2},
                               {"ER2", 200, cape::GraphModel::erdos_renyi, 2},
                               {"T", 255, cape::GraphModel::barabasi_albert, 0}};

cape::Digraph make_graph(const Family& family, std::uint64_t seed) {
  if (family.edges_per_node > 0) {
    cape::GraphOptions options;
    options.model = family.model;
    options.edges_per_node = family.edges_per_node;
    options.min_weight = 0.3;
    options.max_weight = 1;
    return cape::simulate_dag(family.nodes, options, seed);
  }
  cape::Rng rng(seed);
  std::vector<cape::Edge> edges;
  for (std::int64_t i = 1; i < family.nodes; ++i)
    edges.push_back({(i - 1) / 2, i, rng.uniform(0.3, 1)});
  return cape::Digraph(family.nodes, edges);
}

// Epochs: -1 for as many as it takes.
std::size_t fit_once(const cape::Digraph& graph, std::int64_t dims, std::int64_t epochs,
                     int threads) {
  cape::EmbedOptions options;
  options.dims = dims;
  options.epochs = epochs;
  if (epochs > 0) options.tolerance = 0;
  cape::Run run(1, threads);
  return cape::embed_dag(graph, options, run).history.size();
}

double products_seconds(std::int64_t nodes, std::int64_t dims) {
  const auto m = static_cast<int>(nodes), d = static_cast<int>(dims);
  std::vector<double> points(static_cast<std::size_t>(nodes * dims), 0.5),
      gram(static_cast<std::size_t>(nodes * nodes)), gradient(points.size());
  const double one = 1, zero = 0;
  const double start = processor_seconds();
  dgemm_("T", "N", &m, &m, &d, &one, points.data(), &d, points.data(), &d, &zero, gram.data(), &m);
  dgemm_("N", "N", &d, &m, &m, &one, points.data(), &d, gram.data(), &m, &zero, gradient.data(),
         &d);
  benchmark::DoNotOptimize(gradient.data());
  return processor_seconds() - start;
}

// An epoch is the difference of a long and a short fit.
void epoch(benchmark::State& state) {
  const cape::Digraph graph = random_dag(state.range(0));
  const std::int64_t dims = state.range(1), few = 5, many = 55;
  double epochs = 0, products = 0;
  for (auto _ : state) {
    const double start = processor_seconds();
    fit_once(graph, dims, few, 1);
    const double between = processor_seconds();
    fit_once(graph, dims, many, 1);
    const double seconds =
        (processor_seconds() - 2 * between + start) / static_cast<double>(many - few);
    for (int repeat = 0; repeat < 20; ++repeat)
      products += products_seconds(state.range(0), dims) / 20;
    epochs += seconds;
    state.SetIterationTime(seconds);
  }
  state.counters["products_ms"] = 1e3 * products / static_cast<double>(state.iterations());
  state.counters["ratio"] = epochs / products;
  state.counters["ratio_to_three"] = epochs / (1.5 * products); // 3 x 2 M^2 d operations
}
BENCHMARK(epoch)
    ->ArgNames({"M", "d"})
    ->Args({200, 64})
    ->Args({1000, 64})
    ->Args({1024, 64})
    ->Args({3000, 64})
    ->UseManualTime()
    ->Iterations(3)
    ->Unit(benchmark::kMillisecond);

// With the defaults, on BA2; of one thread the processor's time. start_ms: of a fit of one epoch.
void fit(benchmark::State& state) {
  const cape::Digraph graph =
      make_graph({"BA2", state.range(0), cape::GraphModel::barabasi_albert, 2}, first_seed);
  const auto threads = static_cast<int>(state.range(2));
  const auto now = [&] { return threads == 1 ? processor_seconds() : wall_seconds(); };
  const double before = now();
  fit_once(graph, state.range(1), 1, threads);
  state.counters["start_ms"] = 1e3 * (now() - before);
  for (auto _ : state) {
    const double start = now();
    state.counters["epochs"] = static_cast<double>(fit_once(graph, state.range(1), -1, threads));
    state.SetIterationTime(now() - start);
  }
}
BENCHMARK(fit)
    ->ArgNames({"M", "d", "threads"})
    ->Args({200, 64, 1})
    ->Args({200, 64, 2})
    ->Args({1000, 64, 1})
    ->Args({1000, 64, 2})
    ->UseManualTime()
    ->Iterations(5)
    ->Unit(benchmark::kMillisecond);

// Many nodes, with drawn negatives: 2 and 12 epochs, and the most memory that the process had.
void many_nodes(benchmark::State& state) {
  const cape::Digraph graph = random_dag(state.range(0));
  for (auto _ : state) {
    const double start = processor_seconds();
    fit_once(graph, state.range(1), 2, 1);
    const double between = processor_seconds();
    fit_once(graph, state.range(1), 12, 1);
    const double seconds = (processor_seconds() - 2 * between + start) / 10;
    state.SetIterationTime(seconds);
    state.counters["prepare_s"] = between - start - 2 * seconds;
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  state.counters["peak_GB"] = static_cast<double>(usage.ru_maxrss) * 1024 / 1e9;
}
BENCHMARK(many_nodes)
    ->ArgNames({"M", "d"})
    ->Args({10000, 64})
    ->Args({50000, 64})
    ->UseManualTime()
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

// ------------------------------------------------------------------------------------- quality

using Metrics = cape::EmbeddingMetrics;
constexpr double Metrics::*columns[] = {&Metrics::distance, &Metrics::parents_closer,
                                        &Metrics::precision, &Metrics::strength,
                                        &Metrics::specificity};
// Between the points of an embedding; in flat space between the normal coordinates at the origin,
// radius times direction.
cape::Matrix distances_of(const cape::Embedding& e, cape::Space space, cape::Run& run) {
  if (space == cape::Space::hyperbolic)
    return cape::lorentz::distances(e.hyperboloid, e.hyperboloid, run);
  const std::int64_t m = e.poincare.rows();
  const auto coordinate = [&](std::int64_t i, std::int64_t k) {
    const double norm = 1 - e.generality[static_cast<std::size_t>(i)];
    return norm > 0 ? e.poincare(i, k) / norm * e.radius[static_cast<std::size_t>(i)] : 0;
  };
  cape::Matrix distances(m, m);
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t j = 0; j < m; ++j) {
      double squares = 0;
      for (std::int64_t k = 0; k < e.poincare.cols(); ++k)
        squares += (coordinate(i, k) - coordinate(j, k)) * (coordinate(i, k) - coordinate(j, k));
      distances(i, j) = std::sqrt(squares);
    }
  return distances;
}

void print_row(const char* name, std::int64_t nodes, std::int64_t dims, const Metrics& m) {
  std::printf("%-10s %5s-%-4lld d=%-3lld", "", name, static_cast<long long>(nodes),
              static_cast<long long>(dims));
  for (const auto column : columns) std::printf(" %6.3f", m.*column);
  std::printf("\n");
}

void quality_table(const char* title, const cape::EmbedOptions& options) {
  std::printf("%s, d = %lld, seeds %llu-%llu\n%-25s gd     pc     MAP    str    desc\n", title,
              static_cast<long long>(options.dims), static_cast<unsigned long long>(first_seed),
              static_cast<unsigned long long>(first_seed + n_seeds - 1), "");
  Metrics all,
      worst{.distance = 1, .strength = 1, .parents_closer = 1, .specificity = 1, .precision = 1};
  for (const Family& family : families) {
    Metrics mean;
    for (std::uint64_t seed = first_seed; seed < first_seed + n_seeds; ++seed) {
      const cape::Digraph graph = make_graph(family, seed);
      cape::Run run(seed, 1);
      const cape::Embedding e = cape::embed_dag(graph, options, run);
      const Metrics m =
          cape::compare_embedding(graph, distances_of(e, options.space, run), e.radius, run);
      for (const auto column : columns) mean.*column += m.*column / n_seeds;
    }
    print_row(family.name, family.nodes, options.dims, mean);
    for (const auto column : columns) {
      all.*column += mean.*column / static_cast<double>(std::size(families));
      worst.*column = std::min(worst.*column, mean.*column);
    }
  }
  print_row("mean", 0, options.dims, all);
  print_row("worst", 0, options.dims, worst);
  std::fflush(stdout);
}

// "embed.rank_margin=0.1"; false if there is no such option.
bool set_option(cape::EmbedOptions& options, std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == text.npos) return false;
  const std::string_view value = text.substr(equals + 1);
  for (const cape::OptionField& field : cape::fields(options)) {
    if (field.name != text.substr(0, equals)) continue;
    const auto read = [&](auto* out) {
      std::from_chars(value.data(), value.data() + value.size(), *out);
    };
    if (const auto* number = std::get_if<double*>(&field.value)) read(*number);
    if (const auto* integer = std::get_if<std::int64_t*>(&field.value)) read(*integer);
    if (const auto* choice = std::get_if<cape::Choice>(&field.value))
      choice->set(static_cast<std::int32_t>(std::ranges::find(choice->names, value) -
                                            choice->names.begin()));
    return true;
  }
  return false;
}

void quality(cape::EmbedOptions options) {
  for (const std::int64_t dims : {16, 10, 3}) {
    options.dims = dims;
    quality_table("default", options);
  }
  for (const std::int64_t dims : {2, 3, 4, 5}) {
    options.dims = dims;
    options.space = cape::Space::euclidean;
    quality_table("flat space", options);
    options.space = cape::Space::hyperbolic;
    if (dims != 3) quality_table("default", options);
  }
  options.dims = 16;
  options.objective = cape::Objective::literal;
  quality_table("the paper's loss, literally", options);
}

// Step I's own graphs: of its edges that are true, and of all true ones, those whose cause is
// nearer the origin of the embedding.
struct Learned {
  double found = 0, causes = 0, found_closer = 0, closer = 0;

  void add(const cape::Matrix& x, const cape::Matrix& truth, bool standardize,
           const cape::EmbedOptions& options) {
    cape::DagOptions dag;
    dag.standardize = standardize;
    cape::Run run(1, 1);
    const cape::Digraph graph = cape::learn_dag(x, dag, run).graph;
    const cape::Matrix learned = graph.adjacency();
    const std::vector<double> radius = cape::embed_dag(graph, options, run).radius;
    for (std::int64_t j = 0; j < truth.cols(); ++j)
      for (std::int64_t i = 0; i < truth.rows(); ++i) {
        if (truth(i, j) == 0) continue;
        const bool nearer =
            radius[static_cast<std::size_t>(i)] < radius[static_cast<std::size_t>(j)];
        ++causes;
        closer += nearer;
        if (learned(i, j) == 0) continue;
        ++found;
        found_closer += nearer;
      }
  }
  void print(const char* name) const {
    std::printf("%-25s %4.0f of %4.0f true edges found; cause nearer: %.3f of these, %.3f of all\n",
                name, found, causes, found_closer / found, closer / causes);
    std::fflush(stdout);
  }
};

cape::Matrix table(const std::vector<std::vector<double>>& rows) {
  cape::Matrix out(std::ssize(rows), std::ssize(rows.front()));
  for (std::int64_t i = 0; i < out.rows(); ++i)
    for (std::int64_t j = 0; j < out.cols(); ++j)
      out(i, j) = rows[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)];
  return out;
}

void learned_graphs(cape::EmbedOptions options) {
  options.dims = 16;
  std::printf("learned graphs, d = 16\n");
  if (!test::data_missing("sem_gcastle")) {
    const std::filesystem::path folder = test::data_directory() / "sem_gcastle";
    for (const char* name :
         {"BA1-10-mlp", "BA2-10-mlp", "ER2-10-mlp", "BA2-10-lin", "BA2-30-mlp"}) {
      Learned learned;
      for (const char* seed : {"1", "2", "3", "4", "5"}) {
        const std::string file = std::string(name) + "_s" + seed;
        if (!std::filesystem::exists(folder / (file + "_B.csv"))) continue;
        learned.add(table(test::read_numbers(folder / (file + "_X.csv.gz"))),
                    table(test::read_numbers(folder / (file + "_B.csv"))), false, options);
      }
      learned.print(name);
    }
  }
  if (!test::data_missing("syntren")) {
    const std::filesystem::path folder = test::data_directory() / "syntren";
    for (const bool standardize : {false, true}) {
      Learned learned;
      for (const char* k : {"1", "2", "3", "4", "5"})
        learned.add(test::read_npy(folder / (std::string("data") + k + ".npy")),
                    test::read_npy(folder / (std::string("DAG") + k + ".npy")), standardize,
                    options);
      learned.print(standardize ? "SynTReN 1-5, standardized" : "SynTReN 1-5");
    }
  }
}

} // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  cape::EmbedOptions options;
  bool with_quality = true;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--no-quality") {
      with_quality = false;
    } else if (argument.starts_with("--first-seed=")) {
      std::from_chars(argument.data() + argument.find('=') + 1, argument.data() + argument.size(),
                      first_seed);
    } else if (!set_option(options, argument)) {
      std::fprintf(stderr, "unknown argument %s\n", argv[i]);
      return 1;
    }
  }
  if (with_quality) {
    learned_graphs(options);
    quality(options);
  }
  benchmark::RunSpecifiedBenchmarks();
}
