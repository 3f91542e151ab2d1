// Step II: one epoch of the default objective against the time of its two matrix products alone
// (the Gram matrix, and S P of the gradient), and whole fits. The ratio is between times of one
// run.
#include <benchmark/benchmark.h>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <set>
#include <vector>
import cape;

extern "C" void dgemm_(const char*, const char*, const int*, const int*, const int*, const double*,
                       const double*, const int*, const double*, const int*, const double*, double*,
                       const int*);

namespace {

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Of one thread's work, whatever else the machine does.
double processor_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

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

void fit_once(const cape::Digraph& graph, std::int64_t dims, std::int64_t epochs, int threads) {
  cape::EmbedOptions options;
  options.dims = dims;
  options.epochs = epochs;
  cape::Run run(1, threads);
  benchmark::DoNotOptimize(cape::embed_dag(graph, options, run));
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

// With the default 500 epochs.
void fit(benchmark::State& state) {
  const cape::Digraph graph = random_dag(state.range(0));
  for (auto _ : state) {
    const double start = wall_seconds();
    fit_once(graph, state.range(1), -1, static_cast<int>(state.range(2)));
    state.SetIterationTime(wall_seconds() - start);
  }
}
BENCHMARK(fit)
    ->ArgNames({"M", "d", "threads"})
    ->Args({200, 64, 1})
    ->Args({200, 64, 2})
    ->Args({1000, 64, 1})
    ->Args({1000, 64, 2})
    ->UseManualTime()
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

} // namespace

BENCHMARK_MAIN();
