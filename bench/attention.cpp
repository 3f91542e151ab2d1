// Attention against the matrix product of the BLAS in use, the one taking turns with the other in
// one run, and against rivals where the build found them. Prints a table; with --json FILE the rows
// go there too, to compare versions.
//
// Rates count 4 B H L^2 d_h operations forward and 10 B H L^2 d_h backward. Times are of the
// process, which other work on the machine disturbs less than the clock's, except where two threads
// run. A ratio is the median of those of the turns.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <sys/resource.h>
#include <unistd.h>
#include <vector>
#ifdef CAPE_BENCH_ONEDNN
#include <oneapi/dnnl/dnnl.hpp>
#endif
import cape;

#include "timing.hpp"

using bench::wall_seconds;

extern "C" {
void sgemm_(const char*, const char*, const int*, const int*, const int*, const float*,
            const float*, const int*, const float*, const int*, const float*, float*, const int*);
void dgemm_(const char*, const char*, const int*, const int*, const int*, const double*,
            const double*, const int*, const double*, const int*, const double*, double*,
            const int*);
}

namespace {

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

template <class F>
double seconds(double (*clock)(), F f) {
  const double start = clock();
  f();
  return clock() - start;
}

// Of one call, when there are as many as fill about 50 ms.
template <class F>
double seconds_of_many(F f) {
  const double one = std::max(seconds(cpu_seconds, f), 1e-5);
  const int more = static_cast<int>(0.05 / one) + 1;
  return seconds(cpu_seconds,
                 [&] {
                   for (int i = 0; i < more; ++i) f();
                 }) /
         more;
}

double median(std::vector<double> x) {
  std::ranges::sort(x);
  return x[x.size() / 2];
}

template <class T>
std::vector<T> random_values(std::int64_t n, std::uint64_t stream) {
  cape::Rng rng(1, {stream});
  std::vector<T> x(static_cast<std::size_t>(n));
  for (T& value : x) value = static_cast<T>(rng.uniform(-1, 1));
  return x;
}

// One self-attention with angles that all heads share.
template <class T>
struct Problem {
  Problem(std::int64_t heads, std::int64_t length, std::int64_t head_dim)
      : q(random_values<T>(length * heads * head_dim, 1)), k(random_values<T>(std::ssize(q), 2)),
        v(random_values<T>(std::ssize(q), 3)), d_out(random_values<T>(std::ssize(q), 4)),
        angles(random_values<T>(length * head_dim / 2, 5)), out(q.size()), d_q(q.size()),
        d_k(q.size()), d_v(q.size()), log_sum_exp(static_cast<std::size_t>(heads * length)) {
    in = {.heads = heads,
          .q_length = length,
          .k_length = length,
          .head_dim = head_dim,
          .q = q.data(),
          .k = k.data(),
          .v = v.data(),
          .q_angles = angles.data(),
          .k_angles = angles.data()};
    product = 2.0 * static_cast<double>(heads * length * length * head_dim);
  }
  void forward(cape::Run& run) { cape::attention_forward(in, out.data(), log_sum_exp.data(), run); }
  void backward(cape::Run& run) {
    cape::attention_backward(in, out.data(), log_sum_exp.data(), d_out.data(),
                             {.q = d_q.data(), .k = d_k.data(), .v = d_v.data()}, run);
  }

  std::vector<T> q, k, v, d_out, angles, out, d_q, d_k, d_v, log_sum_exp;
  cape::AttentionInput<T> in;
  double product; // operations of a matrix product of all heads
};

// C = A B of 2048 x 2048.
template <class T>
class Product {
public:
  double operations() const { return 2.0 * n * n * n; }
  void operator()() {
    const T one = 1, zero = 0;
    if constexpr (sizeof(T) == 4)
      sgemm_("N", "N", &n, &n, &n, &one, a.data(), &n, b.data(), &n, &zero, c.data(), &n);
    else
      dgemm_("N", "N", &n, &n, &n, &one, a.data(), &n, b.data(), &n, &zero, c.data(), &n);
  }

private:
  int n = 2048;
  std::vector<T> a = random_values<T>(std::int64_t{n} * n, 6);
  std::vector<T> b = random_values<T>(std::int64_t{n} * n, 7);
  std::vector<T> c = std::vector<T>(a.size());
};

// ----------------------------------------------------------------------------------------- report

struct Row {
  std::string name;
  double value;
  double bar;
  bool at_most = false;
  std::string note = "";
};

class Report {
public:
  void add(const Row& row) {
    if (rows_.empty()) std::printf("%-54s %9s %9s\n", "", "measured", "bar");
    const bool good = row.at_most ? row.value <= row.bar : row.value >= row.bar;
    std::printf("%-54s %9.3f %2s %6.2f %s %s\n", row.name.c_str(), row.value,
                row.at_most ? "<=" : ">=", row.bar, good ? "   " : "NO ", row.note.c_str());
    std::fflush(stdout);
    rows_.push_back(row);
  }
  void write_json(const char* path, const std::string& cpu) const {
    std::ofstream file(path);
    file << "{\"cpu\": \"" << cpu << "\", \"build\": \"" << cape::build_id() << "\", \"rows\": [";
    for (std::size_t i = 0; i < rows_.size(); ++i)
      file << (i == 0 ? "\n" : ",\n") << "  {\"name\": \"" << rows_[i].name
           << "\", \"value\": " << rows_[i].value << ", \"bar\": " << rows_[i].bar
           << ", \"at_most\": " << (rows_[i].at_most ? "true" : "false") << "}";
    file << "\n]}\n";
  }

private:
  std::vector<Row> rows_;
};

std::string rate_note(double rate, const char* what, double reference) {
  char text[96];
  std::snprintf(text, sizeof text, "(%.0f GF/s; %s %.0f)", rate, what, reference);
  return text;
}

// The rate of `body` over that of the BLAS, taking turns.
template <class T>
void against_product(Report& report, const std::string& name, double bar, double operations,
                     const std::function<void()>& body) {
  static Product<T> product;
  body();
  product();
  std::vector<double> ratios, rates, references;
  const int turns = operations > 2e11 ? 3 : operations > 5e10 ? 5 : 11;
  for (int turn = 0; turn < turns; ++turn) {
    references.push_back(product.operations() / seconds(cpu_seconds, product) / 1e9);
    rates.push_back(operations / seconds_of_many(body) / 1e9);
    ratios.push_back(rates.back() / references.back());
  }
  report.add({name, median(ratios), bar, false,
              rate_note(median(rates), sizeof(T) == 4 ? "SGEMM" : "DGEMM", median(references))});
}

template <class T>
void forward_row(Report& report, std::int64_t length, std::int64_t head_dim, double bar) {
  Problem<T> p(8, length, head_dim);
  cape::Run run;
  const std::string name = std::string("forward, ") + (sizeof(T) == 4 ? "float" : "double") +
                           ", L = " + std::to_string(length) +
                           ", d_h = " + std::to_string(head_dim) + ": of GEMM";
  against_product<T>(report, name, bar, 2 * p.product, [&] { p.forward(run); });
}

void backward_row(Report& report, std::int64_t length, double bar) {
  Problem<float> p(8, length, 64);
  cape::Run run;
  p.forward(run);
  const std::string name = "backward, float, L = " + std::to_string(length) + ", d_h = 64: of GEMM";
  against_product<float>(report, name, bar, 5 * p.product, [&] { p.backward(run); });
}

// ---------------------------------------------------------------------------------- other figures

double peak_megabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024; // kilobytes on Linux
}

// Before anything else has raised the peak.
void memory_row(Report& report) {
  Problem<float> p(1, 20000, 64);
  cape::Run run;
  const double before = peak_megabytes();
  p.forward(run);
  report.add({"forward, 1 head, L = 20000: MiB above inputs and outputs", peak_megabytes() - before,
              16, true});
}

void rotation_row(Report& report) {
  Problem<float> p(8, 2048, 64);
  Problem<float> plain = p;
  plain.in = p.in;
  plain.in.q_angles = plain.in.k_angles = nullptr;
  cape::Run run;
  p.forward(run);
  std::vector<double> shares;
  for (int turn = 0; turn < 21; ++turn) {
    const double with = seconds(cpu_seconds, [&] { p.forward(run); });
    const double without = seconds(cpu_seconds, [&] { plain.forward(run); });
    shares.push_back(100 * (with - without) / with);
  }
  report.add({"forward, L = 2048: percent of the time for rotation", median(shares), 3, true});
}

void threads_row(Report& report) {
  Problem<float> p(8, 2048, 64);
  cape::Run one(1, 1), two(1, 2);
  p.forward(two);
  double best_one = 1e9, best_two = 1e9; // other work only adds to the clock's time
  for (int turn = 0; turn < 21; ++turn) {
    best_one = std::min(best_one, seconds(wall_seconds, [&] { p.forward(one); }));
    best_two = std::min(best_two, seconds(wall_seconds, [&] { p.forward(two); }));
  }
  report.add(
      {"forward, L = 2048: two threads against one, times faster", best_one / best_two, 1.85});
}

void linear_row(Report& report) {
  Problem<float> p(1, 20000, 64);
  cape::Run run;
  const std::int64_t features = 256;
  const auto directions = cape::attention_directions<float>(features, 64, 0, run);
  const auto linear = [&] {
    cape::linear_attention_forward(p.in, features, directions.data(), p.out.data(), run);
  };
  linear();
  std::vector<double> ratios;
  for (int turn = 0; turn < 5; ++turn) {
    const double exact = seconds(cpu_seconds, [&] { p.forward(run); });
    ratios.push_back(exact / seconds(cpu_seconds, linear));
  }
  report.add({"linear, L = 20000, 256 features: times faster than exact", median(ratios), 10});
}

#ifdef CAPE_BENCH_ONEDNN
// softmax(Q K' / sqrt(d)) V by oneDNN, some query rows a call, without rotation. Heads are matrices
// of their own, which suits it best.
class OneDnn {
public:
  OneDnn(std::int64_t n_heads, std::int64_t n_keys, std::int64_t dim, std::int64_t n_rows)
      : heads(n_heads), length(n_keys), d(dim), rows(n_rows),
        scores(static_cast<std::size_t>(rows * length)) {
    using Desc = dnnl::memory::desc;
    const auto type = dnnl::memory::data_type::f32;
    const auto rowwise = dnnl::memory::format_tag::ab, turned = dnnl::memory::format_tag::ba;
    const Desc q({rows, d}, type, rowwise), k({d, length}, type, turned),
        s({rows, length}, type, rowwise), v({length, d}, type, rowwise);
    first = dnnl::matmul({dnnl::matmul::desc(q, k, s), engine});
    softmax = dnnl::softmax_forward(
        {dnnl::softmax_forward::desc(dnnl::prop_kind::forward_inference, s, 1), engine});
    second = dnnl::matmul({dnnl::matmul::desc(s, v, q), engine});
    q_desc = q, k_desc = k, s_desc = s, v_desc = v;
  }
  void operator()(const float* q, const float* k, const float* v, float* out) {
    const auto memory = [&](const dnnl::memory::desc& desc, const float* data) {
      return dnnl::memory(desc, engine, const_cast<float*>(data));
    };
    for (std::int64_t h = 0; h < heads; ++h) {
      const std::int64_t head = h * length * d;
      for (std::int64_t i = 0; i < length; i += rows) {
        auto s = memory(s_desc, scores.data());
        first.execute(stream, {{DNNL_ARG_SRC, memory(q_desc, q + head + i * d)},
                               {DNNL_ARG_WEIGHTS, memory(k_desc, k + head)},
                               {DNNL_ARG_DST, s}});
        softmax.execute(stream, {{DNNL_ARG_SRC, s}, {DNNL_ARG_DST, s}});
        second.execute(stream, {{DNNL_ARG_SRC, s},
                                {DNNL_ARG_WEIGHTS, memory(v_desc, v + head)},
                                {DNNL_ARG_DST, memory(q_desc, out + head + i * d)}});
      }
    }
    stream.wait();
  }

private:
  std::int64_t heads, length, d, rows;
  std::vector<float> scores;
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
  dnnl::matmul first, second;
  dnnl::softmax_forward softmax;
  dnnl::memory::desc q_desc, k_desc, s_desc, v_desc;
};

void onednn_row(Report& report, std::int64_t length) {
  Problem<float> p(8, length, 64);
  cape::Run run;
  OneDnn rival(8, length, 64, 256);
  const auto other = [&] { rival(p.q.data(), p.k.data(), p.v.data(), p.out.data()); };
  other();
  std::vector<double> ratios, rates, other_rates;
  for (int turn = 0; turn < 11; ++turn) {
    other_rates.push_back(2 * p.product / seconds_of_many(other) / 1e9);
    rates.push_back(2 * p.product / seconds_of_many([&] { p.forward(run); }) / 1e9);
    ratios.push_back(rates.back() / other_rates.back());
  }
  report.add({"forward, L = " + std::to_string(length) + ": times faster than oneDNN",
              median(ratios), 1.05, false,
              rate_note(median(rates), "oneDNN", median(other_rates))});
}
#endif

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "unknown";
}

} // namespace

int main(int argc, char** argv) {
  if (std::getenv("OMP_NUM_THREADS") == nullptr) { // for oneDNN, whose threads are OpenMP's
    setenv("OMP_NUM_THREADS", "1", 1);
    execv("/proc/self/exe", argv);
  }
  std::printf("%s, %s\n\n", cpu_name().c_str(), cape::build_info().c_str());
  Report report;
  memory_row(report);
  forward_row<float>(report, 512, 64, 0.70);
  forward_row<float>(report, 2048, 64, 0.72);
  forward_row<float>(report, 8192, 64, 0.70);
  forward_row<float>(report, 2048, 32, 0.55);
  forward_row<float>(report, 2048, 128, 0.72);
  forward_row<double>(report, 2048, 64, 0.60);
  backward_row(report, 512, 0.55);
  backward_row(report, 2048, 0.55);
  backward_row(report, 8192, 0.55);
#ifdef CAPE_BENCH_ONEDNN
  for (const std::int64_t length : {512, 2048}) onednn_row(report, length);
#endif
  rotation_row(report);
  threads_row(report);
  linear_row(report);
  if (argc == 3 && std::strcmp(argv[1], "--json") == 0) report.write_json(argv[2], cpu_name());
}
