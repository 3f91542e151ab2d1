// cape.simulate: random causal graphs and data with a known truth. Everything is a pure function of
// its arguments and the seed, which is that of the run; with the seed alone nobody watches.
module;
#include <cstdint>
#include <vector>
export module cape.simulate;
import cape.core;
import cape.graph;

export namespace cape {

enum class GraphModel : std::int32_t { erdos_renyi, barabasi_albert };

struct GraphOptions {
  GraphModel model = GraphModel::barabasi_albert;
  /// Barabási-Albert: edges m that each new node brings, a whole number; the graph has
  /// m (nodes - m) of them. Erdős–Rényi: every pair is an edge with probability
  /// 2 edges_per_node / nodes, so that edges_per_node (nodes - 1) edges are expected.
  double edges_per_node = 2;
  double min_weight = 0.5; ///< |weight| is uniform in [min_weight, max_weight] ...
  double max_weight = 2.0;
  bool signed_weights = true; ///< ... with a random sign
};
OptionFields fields(GraphOptions& options);

/// A random DAG: an undirected graph of the model, its edges turned along a random order of the
/// nodes (so that hubs are not preferentially causes). The settings are those of the reference
/// experiments (docs/method.md, section 2). Error(invalid_argument) if nodes < 1, an option is out
/// of its range, or Barabási-Albert is given a broken number of edges. O(nodes^2) for Erdős–Rényi,
/// else O(edges).
Digraph simulate_dag(std::int64_t nodes, const GraphOptions& options, Run& run);
Digraph simulate_dag(std::int64_t nodes, const GraphOptions& options, std::uint64_t seed);

enum class Mechanism : std::int32_t {
  linear, ///< x_j = sum_i A[i,j] x_i + noise
  mlp,    ///< x_j = w2' sigmoid(W1' x_pa) + noise, 100 hidden units, |weights| in U(0.5, 2) with
          ///< random signs
  gp_additive, ///< x_j = sum_i g_ij(x_i) + noise, g_ij from a Gaussian process (RBF, length 1;
               ///< random Fourier features, 512 of them)
  quadratic,   ///< x_j = sum_{i <= k} c_ik x_i x_k over its causes + noise, |c| in U(0.5, 1) with
               ///< random signs. Every step of a path squares the data: for short paths.
  mim          ///< multiple index model: x_j = tanh(a'x_pa) + cos(b'x_pa) + sin(c'x_pa) + noise,
               ///< |weights| in U(0.5, 2) with random signs
};
enum class Noise : std::int32_t { gaussian, exponential, gumbel };

struct DataOptions {
  Mechanism mechanism = Mechanism::mlp;
  Noise noise = Noise::gaussian;
  double noise_scale = 1.0; ///< standard deviation of gaussian noise; scale of the other two
};
OptionFields fields(DataOptions& options);

/// rows x graph.size() observations from a structural equation model on an acyclic graph. The
/// weights of the graph enter the linear mechanism alone; a node without causes is noise. Noise of
/// exponential and gumbel is not centred. Error(invalid_argument) on a cycle, rows < 1, or an
/// option out of its range; Error(unsupported) if the data outgrow a double (long paths,
/// quadratic). O(rows (nodes + E)), times 100 for mlp and 512 for gp_additive.
Matrix simulate_data(const Digraph& graph, std::int64_t rows, const DataOptions& options, Run& run);
Matrix simulate_data(const Digraph& graph, std::int64_t rows, const DataOptions& options,
                     std::uint64_t seed);

/// Counts: entry (i, j) is negative binomial with mean depth_i exp(a_j + 0.5 x_ij) and variance
/// mean + dispersion mean^2, where x is standardised by column (a constant column becomes 0),
/// depths are log-normal with mean 1 and log-sd 0.3, and a_j makes the means of a column average
/// `mean`. cells x features, row_major (CSR), zeros left out. mean in [1e-6, 1e6], dispersion in
/// [0, 1000] (0: Poisson), x finite; else Error(invalid_argument). O(cells features).
SparseMatrix simulate_counts(const MatrixView& x, double mean, double dispersion, Run& run);
SparseMatrix simulate_counts(const MatrixView& x, double mean, double dispersion,
                             std::uint64_t seed);

} // namespace cape
