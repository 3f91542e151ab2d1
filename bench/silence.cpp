// How long a progress callback is left waiting: of every long function, on one thread, the longest
// time of the processor between two occasions to call it, and the part of the whole that the
// occasions themselves take. The bar is 50 ms, on a CPU half as fast 100 ms. Arguments choose rows by
// a part of their names.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>
import cape;

#include "timing.hpp"

using bench::processor_seconds;

namespace {

using cape::Run;

struct Row {
  std::string name;
  std::function<std::function<void(Run&)>()> prepare; ///< makes the inputs, and returns the work
  double budget = 20; ///< seconds after which the work is stopped
};

void measure(const Row& row) {
  const std::function<void(Run&)> work = row.prepare();
  double longest = 0, at = 0;
  std::int64_t occasions = 0;
  std::string where = "start", before = "start", from = "start", to = "start";
  const double start = processor_seconds();
  double last = start;
  const auto look = [&](std::string_view stage, std::int64_t step) {
    const double now = processor_seconds();
    before = where;
    where = std::string(stage) + " " + std::to_string(step);
    if (now - last > longest) {
      longest = now - last;
      at = now - start;
      from = before;
      to = where;
    }
    ++occasions;
    last = processor_seconds();
    return last - start < row.budget;
  };
  Run run(1, 1, [&](const cape::Progress& p) { return look(p.stage, p.step); },
          std::chrono::milliseconds(0));
  std::string end = "end";
  try {
    work(run);
  } catch (const cape::Error& error) {
    end = error.code() == cape::Status::cancelled ? "stopped" : error.what();
  }
  look(end, 0);
  std::printf("  %-46s %7.1f ms, at %6.2f of %6.2f s (%s to %s), %lld occasions  %s\n",
              row.name.c_str(), 1e3 * longest, at, last - start, from.c_str(), to.c_str(),
              static_cast<long long>(occasions), longest <= 0.05 ? "ok" : "TOO LONG");
  std::fflush(stdout);
}

cape::Matrix noise(std::int64_t rows, std::int64_t cols) {
  cape::Rng rng(7);
  cape::Matrix x(rows, cols);
  for (std::int64_t j = 0; j < cols; ++j)
    for (std::int64_t i = 0; i < rows; ++i)
      x(i, j) = rng.normal() + (j % 5 ? 0.7 * x(i, j - 1) : 0);
  return x;
}

cape::Digraph tree(std::int64_t nodes, std::int64_t causes = 2) {
  cape::Rng rng(1);
  std::vector<cape::Edge> edges;
  for (std::int64_t node = 1; node < nodes; ++node) {
    std::vector<std::int64_t> from;
    for (std::int64_t k = 0; k < std::min(causes, node); ++k) from.push_back(rng.integer(node));
    std::ranges::sort(from);
    from.erase(std::unique(from.begin(), from.end()), from.end());
    for (const std::int64_t cause : from) edges.push_back({cause, node, rng.uniform(0.3, 1)});
  }
  return cape::Digraph(nodes, edges);
}

// A training step of a model, and an epoch's end, which renews the checkpoint.
Row pretrain(const char* name, const char* preset, std::int64_t cells, std::int64_t features) {
  return {name, [=] {
            cape::Matrix x = noise(cells, features), angles = noise(features, 256);
            std::vector<std::string> names;
            for (std::int64_t i = 0; i < features; ++i) names.push_back("g" + std::to_string(i));
            cape::BackboneOptions o = cape::backbone_preset(preset);
            o.values = cape::Values::continuous;
            Run run;
            return [=, start = cape::make_backbone(names, angles, o, run)](Run& r) {
              cape::PretrainOptions training;
              training.epochs = 2, training.validation = 0;
              training.batch_cells = cells, training.length = features;
              cape::Checkpoint checkpoint;
              cape::pretrain(start, cape::cells_of(x.view()), training, r, &checkpoint);
            };
          }};
}

Row learn(const char* name, std::int64_t rows, std::int64_t cols, cape::DagOptions options) {
  return {name, [=] {
            return [=, x = noise(rows, cols)](Run& run) { cape::learn_dag(x, options, run); };
          }};
}

// A fifth of the values is missing.
Row draw(const char* name, std::int64_t rows, std::int64_t cols, cape::DagOptions options) {
  return {name, [=] {
            cape::Matrix x = noise(rows, cols);
            cape::Rng rng(2);
            for (std::int64_t e = 0; e < x.size(); ++e)
              if (rng.uniform() < 0.2) x.data()[e] = std::numeric_limits<double>::quiet_NaN();
            return [=](Run& run) {
              cape::DagOptions mask = options;
              mask.missing = cape::Missing::mask;
              cape::learn_dag(x, mask, run);
            };
          }};
}

Row embed(const char* name, std::int64_t nodes, cape::EmbedOptions options) {
  return {name, [=] {
            return [=, graph = tree(nodes)](Run& run) { cape::embed_dag(graph, options, run); };
          }};
}

std::vector<std::int64_t> labels(std::int64_t n) {
  std::vector<std::int64_t> out(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) out[static_cast<std::size_t>(i)] = i % 7;
  return out;
}

// Of one head of 128; features > 0: linear attention with so many.
template <class T>
Row attention(const char* name, std::int64_t length, std::int64_t features, bool backward) {
  return {name, [=]() -> std::function<void(Run&)> {
            constexpr std::int64_t dim = 128;
            const auto n = static_cast<std::size_t>(length * dim);
            std::vector<T> q(n), angles(n / 2);
            cape::Rng rng(3);
            for (T& x : q) x = static_cast<T>(rng.normal());
            for (T& x : angles) x = static_cast<T>(rng.uniform());
            return [=, out = std::vector<T>(n), dq = std::vector<T>(n), dk = std::vector<T>(n),
                    dv = std::vector<T>(n),
                    lse = std::vector<T>(static_cast<std::size_t>(length))](Run& run) mutable {
              cape::AttentionInput<T> in;
              in.batch = in.heads = 1;
              in.q_length = in.k_length = length;
              in.head_dim = dim;
              in.q = in.k = in.v = q.data();
              in.q_angles = in.k_angles = angles.data();
              const cape::AttentionGradient<T> gradient{.q = dq.data(), .k = dk.data(), .v = dv.data()};
              if (features > 0) {
                const std::vector<T> directions =
                    cape::attention_directions<T>(features, dim, 1, run);
                cape::linear_attention_forward<T>(in, features, directions.data(), out.data(), run);
                if (backward)
                  cape::linear_attention_backward<T>(in, features, directions.data(), q.data(),
                                                     gradient, run);
              } else {
                cape::attention_forward<T>(in, out.data(), lse.data(), run);
                if (backward)
                  cape::attention_backward<T>(in, out.data(), lse.data(), q.data(), gradient, run);
              }
            };
          }};
}

// Every ordered pair of nodes has an edge.
cape::Digraph full(std::int64_t nodes) {
  cape::Rng rng(1);
  std::vector<cape::Edge> edges;
  for (std::int64_t i = 0; i < nodes; ++i)
    for (std::int64_t j = 0; j < nodes; ++j)
      if (i != j) edges.push_back({i, j, rng.normal()});
  return cape::Digraph(nodes, std::move(edges));
}

// A function of a graph.
template <class Function>
Row of(const char* name, cape::Digraph graph, Function function) {
  return {name, [=] { return [=](Run& run) { function(graph, run); }; }};
}

cape::SparseMatrix counts(std::int64_t cells, std::int64_t features) {
  cape::SparseMatrix out;
  out.rows = cells;
  out.cols = features;
  out.layout = cape::Layout::row_major;
  out.offsets = {0};
  for (std::int64_t i = 0; i < cells; ++i) {
    for (std::int64_t j = i % 10; j < features; j += 10) {
      out.indices.push_back(static_cast<std::int32_t>(j));
      out.values.push_back(static_cast<double>(1 + (i * j) % 5));
    }
    out.offsets.push_back(std::ssize(out.values));
  }
  return out;
}

} // namespace

int main(int argc, char** argv) {
  using cape::DagOptions;
  const auto quick = [](std::int64_t epochs) {
    DagOptions o;
    o.epochs = epochs;
    o.refine = cape::Refine::never;
    return o;
  };
  const auto with = [](DagOptions o, auto set) {
    set(o);
    return o;
  };
  const auto always = [](DagOptions& o) { o.refine = cape::Refine::always; };
  cape::EmbedOptions wide;
  wide.dims = 64;
  wide.epochs = 3;
  const auto wide_with = [&](auto set) {
    cape::EmbedOptions o = wide;
    set(o);
    return o;
  };
  const std::vector<Row> rows = {
      learn("dag mlp 2000 x 12", 2000, 12, quick(30)),
      learn("dag mlp 200 x 800", 200, 800, quick(2)),
      learn("dag mlp 2000 x 1500", 2000, 1500, quick(1)),
      learn("dag mlp float64 1000 x 600", 1000, 600,
            with(quick(1), [](auto& o) { o.precision = cape::Precision::float64; })),
      learn("dag mlp 100000 x 50", 100000, 50, quick(1)),
      learn("dag mlp batch 20000, 20000 x 300", 20000, 300,
            with(quick(1), [](auto& o) { o.batch_size = 20000; })),
      learn("dag logdet 500 x 700", 500, 700,
            with(quick(1), [](auto& o) { o.constraint = cape::Constraint::logdet; })),
      learn("dag linear 1000 x 1000", 1000, 1000,
            with(quick(1), [](auto& o) { o.sem = cape::Sem::linear; })),
      learn("dag linear 100000 x 300", 100000, 300,
            with(quick(1), [](auto& o) { o.sem = cape::Sem::linear; })),
      learn("dag paper 500 x 500", 500, 500,
            with(quick(1), [](auto& o) { o.sem = cape::Sem::paper; })),
      learn("dag literal 500 x 500", 500, 500,
            with(quick(1), [](auto& o) { o.sem = cape::Sem::literal; })),
      learn("dag rank 40 1000 x 1500", 1000, 1500,
            with(quick(1), [](auto& o) { o.sem = cape::Sem::linear, o.rank = 40; })),
      learn("dag candidates 2000 x 3000", 2000, 3000,
            with(quick(1), [](auto& o) { o.candidates = 32; })),
      learn("dag candidates 20000 x 3000", 20000, 3000,
            with(quick(1), [](auto& o) { o.candidates = 32; })),
      learn("dag suggested threshold 1000 x 6000", 1000, 6000,
            with(quick(1), [](auto& o) { o.candidates = 16, o.refine = cape::Refine::automatic; })),
      learn("dag and refinement 5000 x 30", 5000, 30, with(quick(5), always)),
      learn("dag and refinement 50000 x 12", 50000, 12, with(quick(1), always)),
      learn("dag and refinement 2000 x 200", 2000, 200, with(quick(2), always)),
      learn("dag and refinement linear 20000 x 100", 20000, 100,
            with(with(quick(2), always), [](auto& o) { o.sem = cape::Sem::linear; })),
      learn("dag and refinement linear 2000 x 500", 2000, 500,
            with(with(quick(2), always), [](auto& o) { o.sem = cape::Sem::linear; })),
      draw("dag with missing values 5000 x 30", 5000, 30, quick(1)),
      draw("dag with missing values 500 x 1000", 500, 1000, quick(1)),
      draw("dag with missing values 50000 x 12", 50000, 12, quick(1)),
      embed("embed 1000", 1000, wide),
      embed("embed 3000", 3000, wide),
      embed("embed 5000", 5000, wide),
      embed("embed symmetric 3000", 3000,
            wide_with([](auto& o) { o.objective = cape::Objective::symmetric; })),
      embed("embed literal 3000", 3000,
            wide_with([](auto& o) { o.objective = cape::Objective::literal; })),
      embed("embed euclidean 3000", 3000,
            wide_with([](auto& o) { o.space = cape::Space::euclidean; })),
      embed("embed sampled 30000", 30000, wide),
      embed("embed 4096 dimensions 600", 600, wide_with([](auto& o) { o.dims = 4096; })),
      of("graph projection, all of 1,500 nodes", full(1500),
         [](auto& g, Run& run) { cape::project_acyclic(g, 0.1, run); }),
      of("graph pagerank 300,000 nodes", tree(300000),
         [](auto& g, Run& run) { cape::pagerank(g, 1e-3, run); }),
      of("graph path strengths 3,000 nodes", tree(3000),
         [](auto& g, Run& run) { cape::best_path_strengths(g, run); }),
      of("graph hop strengths 20,000 nodes", tree(20000),
         [](auto& g, Run& run) { cape::k_hop_strengths(g, 4, run); }),
      of("graph distances 3,000 nodes", tree(3000),
         [](auto& g, Run& run) { cape::undirected_distances(g, 1, run); }),
      of("graph nearest 20,000 nodes", tree(20000),
         [](auto& g, Run& run) { cape::nearest_nodes(g, 64, 1, run); }),
      of("graph canonical order 300,000 nodes", tree(300000),
         [](auto& g, Run& run) { cape::canonical_order(g, run); }),
      of("evaluate embedding 2,000 nodes", tree(2000),
         [](auto& g, Run& run) {
           const cape::Matrix d = cape::undirected_distances(g, 1, run);
           cape::compare_embedding(g, d, std::vector<double>(2000, 1.0), run);
         }),
      {"evaluate silhouette 5,000 x 100",
       [] {
         return [x = noise(5000, 100)](Run& run) { cape::silhouette(x, labels(5000), run); };
       }},
      {"preprocess 20,000 cells x 20,000",
       [] {
         return [x = counts(20000, 20000)](Run& run) {
           cape::PreprocessOptions options;
           options.n_variable = 500;
           cape::preprocess(x, options, run);
         };
       }},
      {"hyperbolic distances 5,000 x 5,000 in 64",
       [] {
         cape::Matrix points = noise(5000, 65);
         for (std::int64_t i = 0; i < points.rows(); ++i) {
           double sum = 1;
           for (std::int64_t k = 1; k < points.cols(); ++k) sum += points(i, k) * points(i, k);
           points(i, 0) = std::sqrt(sum);
         }
         return [=](Run& run) { cape::lorentz::distances(points, points, run); };
       }},
      attention<float>("attention 8192", 8192, 0, false),
      attention<float>("attention and backward 8192", 8192, 0, true),
      attention<double>("attention and backward double 8192", 8192, 0, true),
      attention<float>("linear attention 200,000, 266 features", 200000, 266, false),
      attention<float>("linear attention 20,000, 20,000 features", 20000, 20000, false),
      attention<float>("linear attention and backward 20,000, 266 features", 20000, 266, true),
      pretrain("pretraining, scgpt, 4 x 1,024 tokens", "scgpt", 4, 1023),
  };
  std::printf("longest time between two occasions to call back, of the processor\n");
  for (const Row& row : rows) {
    bool chosen = argc < 2;
    for (int i = 1; i < argc; ++i) chosen |= row.name.find(argv[i]) != std::string::npos;
    if (chosen) measure(row);
  }
}
