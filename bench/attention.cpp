// Attention, 8 heads of 64, one thread, float, rotated queries and keys: GF/s of the best iteration
// (4 H L^2 d operations forward, 10 H L^2 d backward), and as a share of the SGEMM 2048^3 rate next
// to it. Times are of the CPU, which other work on the machine disturbs less than the clock's.
#include <algorithm>
#include <benchmark/benchmark.h>
#include <cstdint>
#include <ctime>
#include <vector>
import cape;

extern "C" void sgemm_(const char*, const char*, const int*, const int*, const int*, const float*,
                       const float*, const int*, const float*, const int*, const float*, float*,
                       const int*);

namespace {

template <class F>
double seconds(F f) {
  const std::clock_t start = std::clock();
  f();
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

std::vector<float> random_values(cape::Rng& rng, std::int64_t n) {
  std::vector<float> x(static_cast<std::size_t>(n));
  for (float& value : x) value = static_cast<float>(rng.uniform(-1, 1));
  return x;
}

double sgemm_rate() {
  constexpr int n = 2048;
  cape::Rng rng(1);
  const std::vector<float> a = random_values(rng, n * n), b = random_values(rng, n * n);
  std::vector<float> c(a.size());
  const float one = 1, zero = 0;
  double best = 1e9;
  for (int repeat = 0; repeat < 4; ++repeat)
    best = std::min(best, seconds([&] {
                      sgemm_("N", "N", &n, &n, &n, &one, a.data(), &n, b.data(), &n, &zero,
                             c.data(), &n);
                    }));
  return 2.0 * n * n * n / best / 1e9;
}

template <class Body>
void measure(benchmark::State& state, double operations, Body body) {
  const double sgemm_before = sgemm_rate();
  double best = 1e9;
  for (auto _ : state) {
    const double time = seconds(body);
    state.SetIterationTime(time);
    best = std::min(best, time);
  }
  const double rate = operations / best / 1e9, sgemm = std::max(sgemm_before, sgemm_rate());
  state.counters["GF/s"] = rate;
  state.counters["SGEMM"] = sgemm;
  state.counters["share"] = rate / sgemm;
}

struct Case {
  explicit Case(std::int64_t length) {
    cape::Rng rng(2);
    const std::int64_t heads = 8, head_dim = 64;
    q = random_values(rng, length * heads * head_dim);
    k = random_values(rng, length * heads * head_dim);
    v = random_values(rng, length * heads * head_dim);
    angles = random_values(rng, length * head_dim / 2);
    out.resize(q.size());
    log_sum_exp.resize(static_cast<std::size_t>(heads * length));
    in = {.heads = heads,
          .q_length = length,
          .k_length = length,
          .head_dim = head_dim,
          .q = q.data(),
          .k = k.data(),
          .v = v.data(),
          .q_angles = angles.data(),
          .k_angles = angles.data()};
    products = 2.0 * static_cast<double>(heads * length * length * head_dim); // of one GEMM
  }
  std::vector<float> q, k, v, angles, out, log_sum_exp;
  cape::AttentionInput<float> in;
  double products;
};

void forward(benchmark::State& state) {
  Case c(state.range(0));
  cape::Run run;
  measure(state, 2 * c.products,
          [&] { cape::attention_forward(c.in, c.out.data(), c.log_sum_exp.data(), run); });
}

void backward(benchmark::State& state) {
  Case c(state.range(0));
  cape::Run run;
  cape::attention_forward(c.in, c.out.data(), c.log_sum_exp.data(), run);
  std::vector<float> d_q(c.q.size()), d_k(c.q.size()), d_v(c.q.size());
  measure(state, 5 * c.products, [&] {
    cape::attention_backward(c.in, c.out.data(), c.log_sum_exp.data(), c.v.data(),
                             {.q = d_q.data(), .k = d_k.data(), .v = d_v.data()}, run);
  });
}

} // namespace

BENCHMARK(forward)->Arg(512)->Arg(2048)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK(backward)->Arg(512)->Arg(2048)->UseManualTime()->Unit(benchmark::kMillisecond);

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  benchmark::AddCustomContext("build", cape::build_info());
  benchmark::RunSpecifiedBenchmarks();
}
