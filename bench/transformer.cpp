// Transformers: what a training step and a forward pass cost beside their matrix products at
// SGEMM's rate, what a second thread brings, and the time of embedding cells; with the bars of
// docs/performance.md. Ratios are between times of one run, taken alternately.
//   bench_transformer [ROW...]    rows: step forward threads small; all of them without one.
//   bench_transformer memory [PART]   peaks, each in a process of its own, beside what was said: of
//                                     rows that have that part in their names. The longest takes
//                                     minutes and 3 GB
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>
import cape;

#include "peak.hpp"
#include "timing.hpp"

using bench::processor_seconds;
using bench::row;
using bench::time;
using bench::wall_seconds;

extern "C" void sgemm_(const char*, const char*, const int*, const int*, const int*, const float*,
                       const float*, const int*, const float*, const int*, const float*, float*,
                       const int*);

namespace {

// Floating-point operations a second of one thread's SGEMM of 1024 x 1024 matrices.
double sgemm_rate() {
  constexpr int n = 1024;
  static std::vector<float> a(n * n, 1), b(n * n, 1), c(n * n);
  const float one = 1, zero = 0;
  const auto product = [&] {
    sgemm_("N", "N", &n, &n, &n, &one, a.data(), &n, b.data(), &n, &zero, c.data(), &n);
  };
  product();
  return 4 * 2.0 * n * n * n / time(processor_seconds, [&] {
           for (int i = 0; i < 4; ++i) product();
         });
}

cape::Matrix values(std::int64_t cells, std::int64_t features) {
  cape::Matrix x(cells, features);
  cape::Rng rng(1, {1});
  for (std::int64_t i = 0; i < x.size(); ++i) x.data()[i] = rng.exponential();
  return x;
}

cape::Backbone model(const cape::BackboneOptions& options, std::int64_t features,
                     std::int64_t columns) {
  std::vector<std::string> names;
  for (std::int64_t i = 0; i < features; ++i) names.push_back("g" + std::to_string(i));
  cape::Matrix angles(features, columns);
  cape::Rng rng(2, {2});
  const double scale = options.positions == cape::PositionKind::distance ? 0.05 : 1; // in the ball
  for (std::int64_t i = 0; i < angles.size(); ++i) angles.data()[i] = scale * rng.normal();
  cape::Run run;
  return cape::make_backbone(std::move(names), std::move(angles), options, run);
}

// Operations of the products of one pass over `tokens` tokens in cells of `length`: linear layers
// of the blocks and of the value network, and the two products of attention.
double forward_operations(const cape::BackboneOptions& o, double tokens, double length) {
  const auto d = static_cast<double>(o.width), f = static_cast<double>(o.feed_forward),
             blocks = static_cast<double>(o.blocks);
  return 2 * tokens * (blocks * (4 * d * d + 2 * d * f + 2 * length * d) + d * d);
}
// Twice that again backward; attention takes the scores once more instead of keeping them, which
// counts as work of ours, not as a product that must be.
double step_operations(const cape::BackboneOptions& o, double tokens, double length,
                       double predicted) {
  const auto d = static_cast<double>(o.width);
  return 3 * (forward_operations(o, tokens, length) +
              2 * predicted * static_cast<double>(o.decoder_layers) * d * d);
}

constexpr std::int64_t features = 1023, length = 1024, batch = 4; // with <cls>

cape::BackboneOptions scgpt() {
  cape::BackboneOptions o = cape::backbone_preset("scgpt");
  o.values = cape::Values::continuous;
  return o;
}

double step_seconds(double (*clock)(), int threads) {
  static const cape::Matrix x = values(batch, features);
  static const cape::Backbone start = model(scgpt(), features, 256);
  const auto seconds = [&](std::int64_t epochs) {
    cape::PretrainOptions o;
    o.epochs = epochs;
    o.batch_cells = batch;
    o.length = features;
    o.validation = 0;
    cape::Run run(1, threads);
    return time(clock, [&] { cape::pretrain(start, cape::cells_of(x.view()), o, run); });
  };
  constexpr std::int64_t steps = 3;
  const double one = seconds(1);
  return (seconds(1 + steps) - one) / steps;
}

double forward_seconds(double (*clock)(), int threads, std::int64_t cells) {
  const cape::Matrix x = values(cells, features);
  static const cape::Backbone backbone = model(scgpt(), features, 256);
  cape::Run run(1, threads);
  return time(clock, [&] {
    cape::embed_cells(backbone, cape::cells_of(x.view()), cape::Pooling::cls, run);
  });
}

// The least of some measurements: what disturbs only adds.
double least(int n, const std::function<double()>& measure) {
  double best = measure();
  for (int i = 1; i < n; ++i) best = std::min(best, measure());
  return best;
}

void memory_row(const std::string& name, double measured, double said) {
  std::printf("%-48s measured %8.1f MB, said %8.1f MB, ratio %.2f\n", name.c_str(), measured / 1e6,
              said / 1e6, said / measured);
  std::fflush(stdout);
}

// Of the first step, and a second unless the cells are long.
void training_memory(const std::string& name, const cape::BackboneOptions& o, std::int64_t columns,
                     std::int64_t of_table, cape::PretrainOptions training, int threads) {
  training.epochs = 2;
  training.validation = 0;
  const std::int64_t steps = of_table < 5000 ? 2 : 1;
  const double measured = test::peak_of(
      [&] {
        return [=, x = values(std::max<std::int64_t>(training.batch_cells, 2), of_table),
                start = model(o, of_table, columns)](cape::Run&) {
          cape::Run run(1, threads, [=](const cape::Progress& p) { return p.step < steps; });
          try {
            cape::pretrain(start, cape::cells_of(x.view()), training, run);
          } catch (const cape::Error& e) {
            if (e.code() != cape::Status::cancelled) throw;
          }
        };
      },
      threads);
  memory_row(name, measured,
             cape::pretrain_memory(model(o, of_table, columns), training, threads));
}

void encoding_memory(const std::string& name, const cape::BackboneOptions& o, std::int64_t columns,
                     std::int64_t of_table, int threads) {
  const double measured = test::peak_of(
      [&] {
        return [=, x = values(1, of_table), start = model(o, of_table, columns)](cape::Run& run) {
          cape::embed_cells(start, cape::cells_of(x.view()), cape::Pooling::cls, run);
        };
      },
      threads);
  memory_row(name, measured, cape::encode_memory(model(o, of_table, columns), threads));
}

void memory(std::string_view part) {
  const auto wanted = [&](const std::string& name) {
    return name.find(part) != std::string::npos;
  };
  const auto train = [&](const std::string& name, const cape::BackboneOptions& o,
                         std::int64_t columns, std::int64_t of_table, std::int64_t cells,
                         int threads = 1) {
    cape::PretrainOptions training;
    training.batch_cells = cells;
    training.length = of_table;
    const std::string full =
        "training, " + name + ", " + std::to_string(cells) + " x " + std::to_string(of_table) +
        (threads > 1 ? ", " + std::to_string(threads) + " threads" : "");
    if (wanted(full)) training_memory(full, o, columns, of_table, training, threads);
  };
  cape::BackboneOptions small = cape::backbone_preset("small");
  for (const int threads : {1, 2}) train("small", small, 32, 500, 16, threads);
  small.dropout = 0;
  train("small without dropout", small, 32, 500, 16);
  small.positions = cape::PositionKind::relative;
  for (const int threads : {1, 2}) train("relative", small, 0, 1000, 4, threads);
  small.positions = cape::PositionKind::distance;
  train("distance", small, 16, 1000, 4);
  for (const int threads : {1, 2}) train("scgpt", scgpt(), 256, 1024, 4, threads);
  train("scbert", cape::backbone_preset("scbert"), 100, 4000, 1);
  for (const std::int64_t tokens : {5000, 10000, 20000}) train("scgpt", scgpt(), 256, tokens, 1, 2);
  for (const std::int64_t tokens : {5000, 10000, 20000}) {
    const std::string name = "embedding, scgpt, 1 x " + std::to_string(tokens) + ", 2 threads";
    if (wanted(name)) encoding_memory(name, scgpt(), 256, tokens, 2);
  }
}

} // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "memory") {
    memory(argc > 2 ? argv[2] : "");
    return 0;
  }
  if (argc > 1 && std::string_view(argv[1]) == "seconds") { // for transformer_torch.py
    std::printf("%.6f\n", step_seconds(processor_seconds, 1));
    return 0;
  }
  const auto wanted = [&](std::string_view name) {
    if (argc == 1) return true;
    for (int i = 1; i < argc; ++i)
      if (argv[i] == name) return true;
    return false;
  };
  const double tokens = batch * length;
  if (wanted("step")) {
    const double products = step_operations(scgpt(), tokens, length, 0.4 * tokens) / sgemm_rate();
    row("training step, scgpt, 4 x 1024 tokens, over its GEMMs",
        least(3, [] { return step_seconds(processor_seconds, 1); }) / products, "<=", 1.6);
  }
  if (wanted("forward")) {
    const double products = forward_operations(scgpt(), 2 * tokens, length) / sgemm_rate();
    const double seconds = least(3, [] {
      return forward_seconds(processor_seconds, 1, 3 * batch) -
             forward_seconds(processor_seconds, 1, batch);
    });
    row("forward pass of the same, over its GEMMs", seconds / products, "<=", 1.4);
  }
  if (wanted("threads"))
    row("training step, one thread over two",
        least(3, [] { return step_seconds(wall_seconds, 1); }) /
            least(3, [] { return step_seconds(wall_seconds, 2); }),
        ">=", 1.85);
  if (wanted("small")) {
    const cape::Matrix x = values(1000, 500);
    const cape::Backbone backbone = model(cape::backbone_preset("small"), 500, 32);
    cape::Run run(1, 2);
    const double seconds = time(wall_seconds, [&] {
      cape::embed_cells(backbone, cape::cells_of(x.view()), cape::Pooling::cls, run);
    });
    row("seconds for 10,000 cells x 500 features, small, two threads", 10 * seconds, "<=", 60);
  }
}
