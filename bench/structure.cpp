// Step I: what an epoch costs beside its matrix products, how it grows, and whole fits; with the
// bars of docs/performance.md. Ratios are between processor times of one run, taken alternately.
//   bench_structure [ROW...]    rows: epoch growth threads fits thirty; all of them without one.
//   bench_structure memory|wide|widest   peak memory, each in a process of its own. wide: a whole
//                                        fit of 20,000 columns, half an hour of two cores; widest:
//                                        an epoch of 49,156
//   bench_structure low-rank             A = UV' of rank 40
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string_view>
#include <sys/resource.h>
#include <utility>
#include <vector>
import cape;

#include "timing.hpp"

using bench::processor_seconds;
using bench::row;
using bench::time;
using bench::wall_seconds;

extern "C" {
void dgemm_(const char*, const char*, const int*, const int*, const int*, const double*,
            const double*, const int*, const double*, const int*, const double*, double*,
            const int*);
void sgemm_(const char*, const char*, const int*, const int*, const int*, const float*,
            const float*, const int*, const float*, const int*, const float*, float*, const int*);
}

namespace {

constexpr std::int64_t batch = 128, hidden = 10; // the defaults

cape::Matrix table(std::int64_t rows, std::int64_t nodes, std::uint64_t seed = 1) {
  cape::GraphOptions graph;
  return cape::simulate_data(cape::simulate_dag(nodes, graph, seed), rows,
                             {cape::Mechanism::linear}, seed);
}

cape::Dag fit(const cape::Matrix& x, std::int64_t epochs, cape::Refine refine, int threads,
              cape::Precision precision = cape::Precision::automatic) {
  cape::DagOptions options;
  options.epochs = epochs;
  options.refine = refine;
  options.precision = precision;
  cape::Run run(1, threads);
  return cape::learn_dag(x, options, run);
}

// The difference of a longer and a shorter fit leaves the epochs alone.
double epoch_seconds(double (*clock)(), const cape::Matrix& x, std::int64_t epochs, int threads,
                     cape::Precision precision = cape::Precision::automatic) {
  const auto seconds = [&](std::int64_t n) {
    return time(clock, [&] { fit(x, n, cape::Refine::never, threads, precision); });
  };
  const double one = seconds(1);
  return (seconds(1 + epochs) - one) / static_cast<double>(epochs);
}

// The two products of a step as one GEMM each: pre-activations and weight gradient.
template <class T, class Gemm>
double products_seconds(Gemm gemm, std::int64_t nodes, int repeats) {
  const int m = static_cast<int>(nodes), b = batch, u = m * hidden;
  const T one = 1, zero = 0;
  std::vector<T> x(static_cast<std::size_t>(m) * b, T(0.5)),
      w(static_cast<std::size_t>(m) * static_cast<std::size_t>(u), T(0.5)),
      units(static_cast<std::size_t>(u) * b);
  const auto products = [&] {
    gemm("N", "N", &b, &u, &m, &one, x.data(), &b, w.data(), &m, &zero, units.data(), &b);
    gemm("T", "N", &m, &u, &b, &one, x.data(), &b, units.data(), &b, &zero, w.data(), &m);
  };
  products();
  return time(processor_seconds,
              [&] {
                for (int i = 0; i < repeats; ++i) {
                  std::ranges::fill(w, T(0.5));
                  products();
                }
              }) /
         repeats;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

void epoch() {
  constexpr std::int64_t nodes = 900, rows = 10000;
  constexpr double steps = (rows + batch - 1) / batch;
  const cape::Matrix x = table(rows, nodes);
  std::vector<double> over_products, over_products32, shares, float_to_double;
  for (int repeat = 0; repeat < 3; ++repeat) {
    const double products = steps * products_seconds<double>(dgemm_, nodes, 10);
    const double seconds = epoch_seconds(processor_seconds, x, 1, 1, cape::Precision::float64);
    const double products32 = steps * products_seconds<float>(sgemm_, nodes, 10);
    const double seconds32 = epoch_seconds(processor_seconds, x, 1, 1, cape::Precision::float32);
    const cape::Matrix weights = to_matrix(fit(x, 1, cape::Refine::never, 1).weights);
    cape::Matrix gradient;
    const double measure = time(
        processor_seconds, [&] { cape::acyclicity(weights, cape::Constraint::expm, &gradient); });
    const double renewals = steps / static_cast<double>(nodes / 64) + 1;
    std::printf("  M = 900, N = 10,000: epoch %.2f s, its products %.2f s, h %.3f s; in float "
                "%.2f s, %.2f s\n",
                seconds, products, measure, seconds32, products32);
    over_products.push_back(seconds / products);
    over_products32.push_back(seconds32 / products32);
    shares.push_back(renewals * measure / seconds);
    float_to_double.push_back(seconds32 / seconds);
  }
  row("epoch in double / its products (median of 3)", median(over_products), "<=", 1.6);
  row("h and its gradient in double, share of an epoch", median(shares), "<=", 0.25);
  row("epoch in float / epoch in double (median of 3)", median(float_to_double), "<=", 0.6);
  row("epoch in float / its products (median of 3)", median(over_products32), "<=", 1.6);
}

void growth() {
  const double base = epoch_seconds(processor_seconds, table(10000, 100), 10, 1);
  const double tall = epoch_seconds(processor_seconds, table(90000, 100), 2, 1);
  const double wide = epoch_seconds(processor_seconds, table(10000, 900), 1, 1);
  row("exponent in N, 10,000 to 90,000 at M = 100", std::log(tall / base) / std::log(9),
      "<=", 1.05);
  row("exponent in M, 100 to 900 at N = 10,000", std::log(wide / base) / std::log(9), "<=", 2.1);
}

void threads() {
  const cape::Matrix x = table(10000, 500);
  const double one = epoch_seconds(wall_seconds, x, 1, 1);
  const double two = epoch_seconds(wall_seconds, x, 1, 2);
  row("one thread / two threads, M = 500 (wall time)", one / two, ">=", 1.7);
}

cape::Matrix nonlinear(std::int64_t nodes) {
  return cape::simulate_data(cape::simulate_dag(nodes, {}, 1), 5000, {}, 1);
}

void fits() {
  const cape::Matrix x = nonlinear(10);
  const auto seconds = [&](double (*clock)(), cape::Refine refine, int n) {
    return time(clock, [&] { fit(x, 100, refine, n); });
  };
  row("fit, N = 5000, M = 10, without refinement: s", //
      seconds(processor_seconds, cape::Refine::never, 1), "<=", 0.3);
  row("the same with refinement: s", seconds(processor_seconds, cape::Refine::always, 1), "<=", 3);
  row("the same, two threads (wall time): s", seconds(wall_seconds, cape::Refine::always, 2),
      "<=", 1.7);
}

void thirty() {
  const cape::Matrix x = nonlinear(30);
  row("fit, N = 5000, M = 30, with refinement: s",
      time(processor_seconds, [&] { fit(x, 100, cape::Refine::always, 1); }), "<=", 25);
}

// The high-water mark of the process, so that there is one such row in each.
double peak_bytes() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return 1024 * static_cast<double>(usage.ru_maxrss);
}

// What memory goes to does not depend on the number of epochs.
void peak(std::int64_t nodes, std::int64_t rows, std::int64_t candidates, double bar) {
  cape::DagOptions options;
  options.refine = cape::Refine::never;
  options.candidates = candidates;
  options.epochs = 1;
  const cape::Matrix x = table(rows, nodes);
  cape::Run run;
  const double seconds = time(processor_seconds, [&] { cape::learn_dag(x, options, run); });
  const double bytes = peak_bytes();
  std::printf("  M = %lld, N = %lld, one epoch: %.0f s\n", static_cast<long long>(nodes),
              static_cast<long long>(rows), seconds);
  row("peak memory, GB", bytes / 1e9, "<=", bar);
  row("learn_dag_memory() over the peak", cape::learn_dag_memory(rows, nodes, options) / bytes,
      "<=", 1.25);
}

// Both clocks.
struct Seconds {
  double wall = 0, processor = 0;
  static Seconds now() { return {wall_seconds(), processor_seconds()}; }
  Seconds& operator+=(const Seconds& b) {
    wall += b.wall, processor += b.processor;
    return *this;
  }
  Seconds operator-(const Seconds& b) const { return {wall - b.wall, processor - b.processor}; }
};

// What a fit with candidates spends its time on, by its reports: up to the first one it reads and
// screens, and a step that reports another h has renewed it.
class Phases {
public:
  bool operator()(const cape::Progress& progress) {
    if (progress.step == step_) return true;
    const Seconds now = Seconds::now(), spent = now - last_;
    const bool renewed = progress.constraint != h_;
    (step_ == 0 ? screening : renewed ? renewing : stepping) += spent;
    if (step_ > 0) (renewed ? renewals : steps) += progress.step - step_;
    if (renewed) {
      std::printf("  step %lld of %lld, h %.3g, loss %.6g; s: %.0f, processor %.0f\n",
                  static_cast<long long>(progress.step), static_cast<long long>(progress.total),
                  progress.constraint, progress.loss, now.wall - start_.wall,
                  now.processor - start_.processor);
      std::fflush(stdout);
    }
    step_ = progress.step, h_ = progress.constraint, last_ = now;
    return true;
  }

  Seconds screening, stepping, renewing;
  std::int64_t steps = 0, renewals = 0;

private:
  Seconds start_ = Seconds::now(), last_ = start_;
  std::int64_t step_ = 0;
  double h_ = 0;
};

// The area under the precision-recall curve; true edges without a weight count as never found.
double average_precision(const cape::SparseMatrix& weights, const cape::Digraph& truth) {
  std::vector<std::pair<std::int64_t, std::int64_t>> edges;
  for (const cape::Edge& e : truth.edges()) edges.emplace_back(e.from, e.to);
  std::ranges::sort(edges);
  std::vector<std::pair<double, bool>> found;
  for (std::size_t j = 0; j + 1 < weights.offsets.size(); ++j)
    for (auto e = static_cast<std::size_t>(weights.offsets[j]);
         e < static_cast<std::size_t>(weights.offsets[j + 1]); ++e)
      found.emplace_back(std::fabs(weights.values[e]),
                         std::ranges::binary_search(
                             edges, std::pair<std::int64_t, std::int64_t>(weights.indices[e], j)));
  std::ranges::sort(found, std::greater());
  double sum = 0, correct = 0;
  for (std::size_t k = 0; k < found.size(); ++k)
    if (found[k].second) sum += ++correct / static_cast<double>(k + 1);
  return sum / static_cast<double>(edges.size());
}

void wide() {
  constexpr std::int64_t nodes = 20000, rows = 10000;
  cape::GraphOptions graph;
  graph.model = cape::GraphModel::erdos_renyi;
  const cape::Digraph truth = cape::simulate_dag(nodes, graph, 1);
  const cape::Matrix x = cape::simulate_data(truth, rows, {}, 1);
  std::printf("  simulated; peak %.2f GB\n", peak_bytes() / 1e9);
  std::fflush(stdout);

  cape::DagOptions options;
  options.candidates = 64;
  Phases phases;
  cape::Run run(1, 2, std::ref(phases));
  const Seconds start = Seconds::now();
  const cape::Dag dag = cape::learn_dag(x, options, run);
  const Seconds all = Seconds::now() - start;
  const double bytes = peak_bytes();
  const auto print = [](const char* what, const Seconds& s, std::int64_t count) {
    std::printf("  %-28s %5.0f s, processor %5.0f s", what, s.wall, s.processor);
    if (count > 0) std::printf("; %lld of them", static_cast<long long>(count));
    std::printf("\n");
  };
  print("reading, screening, first h", phases.screening, 0);
  print("steps", phases.stepping, phases.steps);
  print("steps that renew h", phases.renewing, phases.renewals);
  print("all", all, 0);
  const cape::GraphMetrics metrics = cape::compare_graphs(dag.graph, truth);
  std::printf("  h %.2g; edges %lld of %lld, precision %.3f, recall %.3f, AUPRC %.3f; "
              "%zu weights\n",
              dag.h, static_cast<long long>(metrics.estimated_edges),
              static_cast<long long>(metrics.true_edges), metrics.precision, metrics.recall,
              average_precision(dag.weights, truth), dag.weights.values.size());
  row("whole fit, M = 20,000, N = 10,000, two threads: min", all.wall / 60, "<=", 60);
  row("peak memory, GB", bytes / 1e9, "<=", 8);
  row("learn_dag_memory() over the peak", cape::learn_dag_memory(rows, nodes, options) / bytes,
      "<=", 1.25);
}

// A = UV' of rank 40 against a weight for every edge: h, an epoch, and the peak of one on many
// columns.
void low_rank() {
  constexpr std::int64_t nodes = 2000, many = 20000, rank = 40, rows = 1000;
  cape::Rng rng(1);
  cape::Matrix u(nodes, rank), v(nodes, rank), a(nodes, nodes), gradient, v_gradient;
  for (cape::Matrix* factor : {&u, &v})
    for (std::int64_t e = 0; e < factor->size(); ++e) factor->data()[e] = 0.05 * rng.normal();
  for (std::int64_t k = 0; k < rank; ++k)
    for (std::int64_t j = 0; j < nodes; ++j)
      for (std::int64_t i = 0; i < nodes; ++i) a(i, j) += u(i, k) * v(j, k);
  const double of_factors =
      time(processor_seconds, [&] { cape::low_rank_acyclicity(u, v, &gradient, &v_gradient); });
  const double of_edges =
      time(processor_seconds, [&] { cape::acyclicity(a, cape::Constraint::expm, &gradient); });
  std::printf("  h, M = %d: of rank 40 %.2f s, of all edges %.2f s\n", static_cast<int>(nodes),
              of_factors, of_edges);
  row("h of rank 40 / of all edges, M = 2000", of_factors / of_edges, "<=", 0.5);

  cape::DagOptions options;
  options.sem = cape::Sem::linear;
  options.refine = cape::Refine::never;
  const auto epochs = [&](const cape::Matrix& x, std::int64_t of_rank, std::int64_t count) {
    options.rank = of_rank;
    options.epochs = count;
    cape::Run run;
    return time(processor_seconds, [&] { cape::learn_dag(x, options, run); });
  };
  const cape::Matrix x = table(rows, nodes);
  const double thin = epochs(x, rank, 6) - epochs(x, rank, 1);
  const double full = epochs(x, 0, 6) - epochs(x, 0, 1);
  std::printf("  five epochs: of rank 40 %.1f s, of all edges %.1f s\n", thin, full);
  row("epoch of rank 40 / of all edges, M = 2000", thin / full, "<=", 0.5);

  const cape::Matrix wide_table = table(rows, many);
  const double seconds = epochs(wide_table, rank, 1);
  const double bytes = peak_bytes();
  std::printf("  M = %d, N = %d, one epoch: %.0f s\n", static_cast<int>(many),
              static_cast<int>(rows), seconds);
  row("peak memory, GB", bytes / 1e9, "<=", 2);
  row("learn_dag_memory() over the peak", cape::learn_dag_memory(rows, many, options) / bytes,
      "<=", 1.25);
}

void memory() { peak(2000, 10000, -1, 3); }
void widest() { peak(49156, 1000, 64, 8); }

} // namespace

int main(int argc, char** argv) {
  const struct {
    std::string_view name;
    void (*run)();
    bool alone = false; ///< only when it is asked for
  } rows[] = {{"epoch", epoch},     {"growth", growth},       {"threads", threads},
              {"fits", fits},       {"thirty", thirty},       {"memory", memory, true},
              {"wide", wide, true}, {"widest", widest, true}, {"low-rank", low_rank, true}};
  const std::vector<std::string_view> wanted(argv + 1, argv + argc);
  for (const std::string_view name : wanted)
    if (std::ranges::none_of(rows, [&](const auto& r) { return r.name == name; })) {
      std::fprintf(stderr,
                   "no row '%s': epoch, growth, threads, fits, thirty, memory, wide, widest, "
                   "low-rank\n",
                   name.data());
      return 2;
    }
  for (const auto& r : rows)
    if (wanted.empty() ? !r.alone : std::ranges::find(wanted, r.name) != wanted.end()) r.run();
}
