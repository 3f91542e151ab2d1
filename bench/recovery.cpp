// Step I: how many edges it gets wrong, against graphs that are known. Simulated data: N = 5000
// unless the name says another number of rows, raw unless standardized, seeds that nothing was
// chosen on; mean (sd) of the structural Hamming distance and mean area under the precision-recall
// curve (sd), of model G cut at 0.2, of the refined graph, and of NOTEARS for linear models as a
// yardstick (bench/notears.hpp); the share of their edges whose ends are not joined in truth; and
// what the support and absolute correlation, which are no graphs, reach of the curve.
//   bench_recovery [--seeds N] [SETTING...]    all settings without one
// Real data and SynTReN are read from CAPE_TEST_DATA and left out without it.
#include "data.hpp"
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>
import cape;

#include "timing.hpp"

using bench::processor_seconds;
#include "beeline.hpp"
#include "notears.hpp"
#include "npy.hpp"

namespace {

using cape::Digraph;
using cape::GraphModel;
using cape::Matrix;
using cape::Mechanism;

constexpr std::uint64_t first_seed = 1001;

struct Setting {
  std::string name;
  GraphModel model;
  double edges_per_node;
  std::int64_t nodes;
  Mechanism mechanism;
  bool standardize = false;
  cape::Sem sem = cape::Sem::mlp;
  std::int64_t rows = 5000;
};
const std::vector<Setting> settings = {
    {"BA2-10-mlp", GraphModel::barabasi_albert, 2, 10, Mechanism::mlp},
    {"BA1-10-mlp", GraphModel::barabasi_albert, 1, 10, Mechanism::mlp},
    {"ER2-10-mlp", GraphModel::erdos_renyi, 2, 10, Mechanism::mlp},
    {"BA2-30-mlp", GraphModel::barabasi_albert, 2, 30, Mechanism::mlp},
    {"BA2-10-mlp-standardized", GraphModel::barabasi_albert, 2, 10, Mechanism::mlp, true},
    {"BA2-10-lin", GraphModel::barabasi_albert, 2, 10, Mechanism::linear, false, cape::Sem::linear},
    {"BA1-10-quadratic", GraphModel::barabasi_albert, 1, 10, Mechanism::quadratic, true},
    {"BA2-10-gp", GraphModel::barabasi_albert, 2, 10, Mechanism::gp_additive},
    {"BA2-10-mim", GraphModel::barabasi_albert, 2, 10, Mechanism::mim},
    {"BA2-10-mlp-1000-rows", GraphModel::barabasi_albert, 2, 10, Mechanism::mlp, false,
     cape::Sem::mlp, 1000},
    {"BA2-10-mlp-200-rows", GraphModel::barabasi_albert, 2, 10, Mechanism::mlp, false,
     cape::Sem::mlp, 200},
    {"BA2-100-mlp", GraphModel::barabasi_albert, 2, 100, Mechanism::mlp},
    {"ER2-100-mlp", GraphModel::erdos_renyi, 2, 100, Mechanism::mlp},
    {"ER2-100-mlp-100-rows", GraphModel::erdos_renyi, 2, 100, Mechanism::mlp, false, cape::Sem::mlp,
     100},
    {"BA1-100-mlp-100-rows", GraphModel::barabasi_albert, 1, 100, Mechanism::mlp, false,
     cape::Sem::mlp, 100},
    {"ER2-100-mlp-200-rows", GraphModel::erdos_renyi, 2, 100, Mechanism::mlp, false, cape::Sem::mlp,
     200},
    {"BA2-100-mlp-200-rows", GraphModel::barabasi_albert, 2, 100, Mechanism::mlp, false,
     cape::Sem::mlp, 200},
    {"ER2-100-mlp-standardized-100-rows", GraphModel::erdos_renyi, 2, 100, Mechanism::mlp, true,
     cape::Sem::mlp, 100},
    {"BA1-100-mlp-standardized-100-rows", GraphModel::barabasi_albert, 1, 100, Mechanism::mlp, true,
     cape::Sem::mlp, 100},
    {"BA2-100-mlp-standardized-100-rows", GraphModel::barabasi_albert, 2, 100, Mechanism::mlp, true,
     cape::Sem::mlp, 100},
    {"ER2-100-mlp-standardized-200-rows", GraphModel::erdos_renyi, 2, 100, Mechanism::mlp, true,
     cape::Sem::mlp, 200},
    {"BA1-100-mlp-standardized-200-rows", GraphModel::barabasi_albert, 1, 100, Mechanism::mlp, true,
     cape::Sem::mlp, 200},
    {"BA2-100-mlp-standardized-200-rows", GraphModel::barabasi_albert, 2, 100, Mechanism::mlp, true,
     cape::Sem::mlp, 200},
    {"ER2-200-mlp-500-rows", GraphModel::erdos_renyi, 2, 200, Mechanism::mlp, false, cape::Sem::mlp,
     500},
    {"BA1-200-mlp-standardized-300-rows", GraphModel::barabasi_albert, 1, 200, Mechanism::mlp, true,
     cape::Sem::mlp, 300},
    {"ER2-500-mlp-2000-rows", GraphModel::erdos_renyi, 2, 500, Mechanism::mlp, false,
     cape::Sem::mlp, 2000},
};

struct Moments {
  double n = 0, sum = 0, squares = 0;
  void add(double v) {
    n += 1;
    sum += v;
    squares += v * v;
  }
  double mean() const { return sum / n; }
  double sd() const {
    return n > 1 ? std::sqrt(std::max(0.0, squares - sum * sum / n) / (n - 1)) : 0;
  }
};

struct Method {
  std::string name;
  Moments shd, auprc, seconds;
  Moments unjoined; ///< share of the edges whose ends are not joined in truth

  void print(const std::string& setting, double edges) const {
    std::printf("%-24s %6.1f  %-14s ", setting.c_str(), edges, name.c_str());
    if (shd.n > 0)
      std::printf("%6.1f (%4.1f)  %.3f (%.3f)  %.2f  %6.1f\n", shd.mean(), shd.sd(), auprc.mean(),
                  auprc.sd(), unjoined.mean(), seconds.mean());
    else
      std::printf("               %.3f (%.3f)\n", auprc.mean(), auprc.sd());
    std::fflush(stdout);
  }
};

Matrix sizes(Matrix a) {
  for (std::int64_t e = 0; e < a.size(); ++e) a.data()[e] = std::fabs(a.data()[e]);
  return a;
}

// Edges that were kept by their t, then all others by their weights.
Matrix ranks(const cape::Dag& dag) {
  Matrix scores = sizes(to_matrix(dag.weights));
  const double largest = *std::max_element(scores.data(), scores.data() + scores.size());
  for (const cape::Edge& e : dag.graph.edges())
    scores(e.from, e.to) = largest + 1 + std::max(0.0, dag.statistic(e.from, e.to));
  return scores;
}

Matrix correlations(Matrix x) {
  const std::int64_t n = x.rows(), m = x.cols();
  for (std::int64_t j = 0; j < m; ++j) { // to mean 0 and length 1
    double* c = x.column(j);
    const double mean = std::accumulate(c, c + n, 0.0) / static_cast<double>(n);
    for (std::int64_t i = 0; i < n; ++i) c[i] -= mean;
    const double length = std::sqrt(std::inner_product(c, c + n, c, 0.0));
    for (std::int64_t i = 0; i < n; ++i) c[i] /= length;
  }
  Matrix r(m, m);
  for (std::int64_t j = 0; j < m; ++j)
    for (std::int64_t i = 0; i < j; ++i)
      r(i, j) = r(j, i) =
          std::fabs(std::inner_product(x.column(i), x.column(i) + n, x.column(j), 0.0));
  return r;
}

double unjoined_share(const Digraph& graph, const Digraph& truth) {
  const Matrix joined = truth.adjacency();
  double wrong = 0;
  for (const cape::Edge& e : graph.edges())
    wrong += joined(e.from, e.to) == 0 && joined(e.to, e.from) == 0;
  return wrong / std::max<double>(1, static_cast<double>(graph.edges().size()));
}

class Comparison {
public:
  void add(const Matrix& x, const Digraph& truth, cape::DagOptions options, std::uint64_t seed) {
    double start = processor_seconds();
    const auto record = [&](Method& method, const Digraph& graph, const Matrix& scores) {
      method.shd.add(static_cast<double>(cape::compare_graphs(graph, truth).shd));
      method.auprc.add(cape::compare_scores(scores, truth).auprc);
      method.seconds.add(processor_seconds() - start);
      method.unjoined.add(unjoined_share(graph, truth));
    };
    correlation_.auprc.add(cape::compare_scores(correlations(x), truth).auprc);
    cape::Run run(seed);
    const cape::Dag dag = cape::learn_dag(x, options, run);
    support_.auprc.add(cape::compare_scores(to_matrix(dag.support), truth).auprc);
    if (dag.refined) record(refined_, dag.graph, ranks(dag));
    record(plain_, cape::prune(dag, dag.threshold).graph, sizes(to_matrix(dag.weights)));
    constexpr std::int64_t largest_yardstick = 100; // columns: beyond, it takes many minutes
    // Of as many, it takes a minute: two graphs show where it is.
    if (x.cols() > largest_yardstick || (x.cols() == largest_yardstick && notears_.auprc.n == 2))
      return;
    start = processor_seconds();
    Matrix scaled = x;
    if (options.standardize)
      for (std::int64_t j = 0; j < x.cols(); ++j)
        for (std::int64_t i = 0; i < x.rows(); ++i)
          scaled(i, j) /= dag.scale[static_cast<std::size_t>(j)];
    const Matrix w = sizes(notears::fit(scaled));
    record(notears_, cape::project_acyclic(Digraph::from_adjacency(w), 0.3).graph, w);
  }

  void print(const std::string& name, double edges) const {
    for (const Method* m : {&plain_, &refined_, &support_, &notears_, &correlation_})
      if (m->auprc.n > 0) m->print(name, edges);
  }

private:
  Method plain_{"G", {}, {}, {}, {}}, refined_{"G+R", {}, {}, {}, {}},
      support_{"support", {}, {}, {}, {}}, notears_{"NOTEARS", {}, {}, {}, {}},
      correlation_{"|correlation|", {}, {}, {}, {}};
};

void simulated(const Setting& s, int seeds) {
  Comparison comparison;
  Moments edges;
  for (std::uint64_t seed = first_seed; seed < first_seed + static_cast<std::uint64_t>(seeds);
       ++seed) {
    cape::GraphOptions graph;
    graph.model = s.model;
    graph.edges_per_node = s.edges_per_node;
    cape::DataOptions data;
    data.mechanism = s.mechanism;
    const Digraph truth = cape::simulate_dag(s.nodes, graph, seed);
    edges.add(static_cast<double>(truth.edges().size()));
    cape::DagOptions options;
    options.sem = s.sem;
    options.standardize = s.standardize;
    comparison.add(cape::simulate_data(truth, s.rows, data, seed), truth, options, seed);
  }
  comparison.print(s.name, edges.mean());
}

// Every pair of a table and its graph, fitted from several seeds.
void from_files(const std::string& name,
                const std::vector<std::pair<std::string, std::string>>& files, int seeds) {
  Comparison comparison;
  Moments edges;
  for (const auto& [table, graph] : files) {
    const Digraph truth = Digraph::from_adjacency(test::read_npy(test::data_directory() / graph));
    edges.add(static_cast<double>(truth.edges().size()));
    cape::DagOptions options;
    options.standardize = true;
    const Matrix x = test::read_npy(test::data_directory() / table);
    for (int seed = 1; seed <= seeds; ++seed)
      comparison.add(x, truth, options, static_cast<std::uint64_t>(seed));
  }
  comparison.print(name, edges.mean());
}

void sachs(int seeds) {
  if (test::data_missing("sachs")) return;
  const std::string directory = "sachs/sachs/continuous/";
  from_files("Sachs-standardized", {{directory + "data1.npy", directory + "DAG1.npy"}}, seeds);
}

void syntren(int seeds) {
  if (test::data_missing("syntren")) return;
  std::vector<std::pair<std::string, std::string>> files;
  for (const char* k : {"1", "2", "3", "4", "5"})
    files.emplace_back(std::string("syntren/data") + k + ".npy",
                       std::string("syntren/DAG") + k + ".npy");
  from_files("SynTReN-standardized", files, std::max(1, seeds / 5));
}

// Simulated single cells of published models (BEELINE) and their networks, which have cycles: the
// area under the precision-recall curve over that of a random ranking, and the same of
// |correlation|.
void beeline(int seeds) {
  if (test::data_missing("beeline_curated")) return;
  std::printf("%-24s %6s  AUPRC / random: G, G+R, |correlation|\n", "BEELINE curated", "edges");
  for (const char* name : {"VSC", "GSD", "mCAD"}) {
    const std::string path =
        (test::data_directory() / "beeline_curated" / name).string() + "_2000_0_";
    const auto [genes, x] = test::read_expression(path + "ExpressionData.csv.gz");
    const Digraph truth = test::read_network(path + "refNetwork.csv", genes);
    const auto m = static_cast<double>(genes.size());
    const double random = static_cast<double>(truth.edges().size()) / (m * (m - 1));
    cape::DagOptions options;
    options.standardize = true;
    Moments plain, refined;
    for (int seed = 1; seed <= seeds; ++seed) {
      cape::Run run(static_cast<std::uint64_t>(seed));
      const cape::Dag dag = cape::learn_dag(x, options, run);
      plain.add(cape::compare_scores(sizes(to_matrix(dag.weights)), truth).auprc / random);
      refined.add(cape::compare_scores(ranks(dag), truth).auprc / random);
    }
    std::printf("%-24s %6d  %.2f (%.2f)  %.2f (%.2f)  %.2f\n", name,
                static_cast<int>(truth.edges().size()), plain.mean(), plain.sd(), refined.mean(),
                refined.sd(), cape::compare_scores(correlations(x), truth).auprc / random);
    std::fflush(stdout);
  }
}

// Which share of the true causes is among p candidates, and what learning from them costs.
double recall(const Matrix& x, const Digraph& truth, std::int64_t p) {
  cape::Run run;
  const auto causes = cape::candidate_causes(x, p, run);
  const auto found = std::ranges::count_if(truth.edges(), [&](const cape::Edge& e) {
    return std::binary_search(causes.column(e.to), causes.column(e.to) + p, e.from);
  });
  return static_cast<double>(found) / static_cast<double>(truth.edges().size());
}

// The same of the p columns of the largest absolute correlation.
double recall_of_correlation(const Matrix& correlation, const Digraph& truth, std::int64_t p) {
  const auto found = std::ranges::count_if(truth.edges(), [&](const cape::Edge& e) {
    const double* r = correlation.column(e.to);
    return std::count_if(r, r + correlation.rows(),
                         [&](double other) { return other > r[e.from]; }) < p;
  });
  return static_cast<double>(found) / static_cast<double>(truth.edges().size());
}

void candidates() {
  constexpr std::int64_t p = 64;
  for (const auto& [name, model] :
       {std::pair{"ER2", GraphModel::erdos_renyi}, std::pair{"BA2", GraphModel::barabasi_albert}}) {
    cape::GraphOptions graph;
    graph.model = model;
    for (const std::int64_t nodes : {500, 2000}) {
      const Digraph truth = cape::simulate_dag(nodes, graph, first_seed);
      const Matrix x = cape::simulate_data(truth, 8000, {}, first_seed);
      const double start = processor_seconds();
      std::printf("%s-%d-mlp, N = 8000: recall of %d candidates %.3f", name,
                  static_cast<int>(nodes), static_cast<int>(p), recall(x, truth, p));
      std::printf(", %.1f s\n", processor_seconds() - start);
      const Matrix correlation = correlations(x);
      std::printf("  |correlation|: recall of as many %.3f, AUPRC %.3f\n",
                  recall_of_correlation(correlation, truth, p),
                  cape::compare_scores(correlation, truth).auprc);
      std::fflush(stdout);
      for (const std::int64_t count : {p, std::int64_t{-1}}) {
        if (nodes > 500 && count < 0) continue;
        cape::DagOptions options;
        options.candidates = count;
        cape::Run run(1);
        const double fit_start = processor_seconds();
        const cape::Dag dag = cape::learn_dag(x, options, run);
        const double seconds = processor_seconds() - fit_start;
        std::printf("  learned from %s: SHD %d of %d edges, AUPRC %.3f, %.0f s\n",
                    count < 0 ? "all columns" : "them",
                    static_cast<int>(cape::compare_graphs(dag.graph, truth).shd),
                    static_cast<int>(truth.edges().size()),
                    cape::compare_scores(sizes(to_matrix(dag.weights)), truth).auprc, seconds);
        std::fflush(stdout);
      }
    }
  }
}

// A graph in which only `causes` nodes have effects, each that many: the rank of A is at most
// their number.
Digraph few_causes(std::int64_t nodes, std::int64_t causes, std::int64_t effects,
                   std::uint64_t seed) {
  cape::Rng rng(seed);
  const std::vector<std::int64_t> order = rng.permutation(nodes);
  std::vector<cape::Edge> edges;
  for (std::int64_t c = 0; c < causes; ++c) {
    std::vector<std::int64_t> later = rng.permutation(nodes - c - 1);
    later.resize(static_cast<std::size_t>(effects));
    for (const std::int64_t place : later)
      edges.push_back({order[static_cast<std::size_t>(c)],
                       order[static_cast<std::size_t>(c + 1 + place)],
                       (rng.uniform() < 0.5 ? -1 : 1) * rng.uniform(0.5, 2)});
  }
  return Digraph(nodes, std::move(edges));
}

// What A = UV' costs and gives where the rank is low and where it is not.
void low_rank(int seeds) {
  struct Case {
    std::int64_t nodes, causes; ///< 0: BA2
    std::vector<std::int64_t> ranks;
  };
  const Case cases[] = {{60, 5, {0, 5, 10, 20}},
                        {200, 20, {0, 20, 40}},
                        {200, 0, {0, 40}},
                        {500, 20, {0, 40}},
                        {500, 0, {0, 40}}};
  cape::DataOptions data;
  data.mechanism = Mechanism::linear;
  for (const auto& [nodes, causes, ranks] : cases) {
    const std::string graph = causes == 0 ? "BA2" : std::to_string(causes) + "-causes";
    const std::string name = graph + "-" + std::to_string(nodes) + "-lin";
    Moments edges;
    Method correlation{"|correlation|", {}, {}, {}, {}};
    std::vector<Method> methods;
    for (const std::int64_t rank : ranks)
      methods.push_back({"G, rank " + std::to_string(rank), {}, {}, {}, {}});
    for (std::uint64_t seed = first_seed; seed < first_seed + static_cast<std::uint64_t>(seeds);
         ++seed) {
      const Digraph truth = causes == 0 ? cape::simulate_dag(nodes, {}, seed)
                                        : few_causes(nodes, causes, 2 * nodes / causes, seed);
      const Matrix x = cape::simulate_data(truth, 5000, data, seed);
      edges.add(static_cast<double>(truth.edges().size()));
      correlation.auprc.add(cape::compare_scores(correlations(x), truth).auprc);
      for (std::size_t r = 0; r < ranks.size(); ++r) {
        cape::DagOptions options;
        options.sem = cape::Sem::linear;
        options.refine = cape::Refine::never;
        options.rank = ranks[r];
        cape::Run run(seed);
        const double start = processor_seconds();
        const cape::Dag dag = cape::learn_dag(x, options, run);
        Method& method = methods[r];
        method.seconds.add(processor_seconds() - start);
        method.shd.add(static_cast<double>(cape::compare_graphs(dag.graph, truth).shd));
        method.unjoined.add(unjoined_share(dag.graph, truth));
        method.auprc.add(cape::compare_scores(sizes(to_matrix(dag.weights)), truth).auprc);
      }
    }
    for (const Method& method : methods) method.print(name, edges.mean());
    correlation.print(name, edges.mean());
  }
}

} // namespace

int main(int argc, char** argv) {
  int seeds = 10;
  std::vector<std::string> wanted;
  for (int a = 1; a < argc; ++a)
    if (std::string(argv[a]) == "--seeds" && a + 1 < argc)
      seeds = std::max(1, std::atoi(argv[++a]));
    else
      wanted.emplace_back(argv[a]);
  const auto is_wanted = [&](const std::string& name) {
    return wanted.empty() || std::ranges::find(wanted, name) != wanted.end();
  };
  std::printf("%-24s %6s  %-14s %6s %6s  %s %5s  %s  %s\n", "setting", "edges", "method", "SHD",
              "(sd)", "AUPRC", "(sd)", "unjoined", "seconds");
  for (const Setting& s : settings)
    if (is_wanted(s.name)) simulated(s, seeds);
  if (is_wanted("candidates")) candidates();
  if (is_wanted("low-rank")) low_rank(seeds);
  if (is_wanted("sachs")) sachs(seeds);
  if (is_wanted("syntren")) syntren(seeds);
  if (is_wanted("beeline")) beeline(seeds);
}
