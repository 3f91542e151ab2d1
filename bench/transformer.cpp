// Transformers: what a training step and a forward pass cost beside their matrix products at
// SGEMM's rate, what a second thread brings, and the time of embedding cells; with the bars of
// docs/performance.md. Ratios are between times of one run, taken alternately.
//   bench_transformer [ROW...]    rows: step forward threads small; all of them without one.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
import cape;

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
  for (std::int64_t i = 0; i < angles.size(); ++i) angles.data()[i] = rng.normal();
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

} // namespace

int main(int argc, char** argv) {
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
