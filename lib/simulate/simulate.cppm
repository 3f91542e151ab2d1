// cape.simulate: random causal graphs and data with a known truth. Everything is a pure function of
// its arguments and the seed.
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
  /// Barabási-Albert: edges that each new node brings. Erdős–Rényi: expected edges per node, so that
  /// the mean total degree is twice this.
  double edges_per_node = 2;
  double min_weight = 0.5; ///< |weight| is uniform in [min_weight, max_weight] ...
  double max_weight = 2.0;
  bool signed_weights = true; ///< ... with a random sign
};
OptionFields fields(GraphOptions& options);

/// A random DAG: an undirected graph of the model, its edges turned along a random order of the
/// nodes (so that hubs are not preferentially causes). nodes >= 1.
Digraph simulate_dag(std::int64_t nodes, const GraphOptions& options, std::uint64_t seed);

enum class Mechanism : std::int32_t {
  linear,    ///< x_j = sum_i A[i,j] x_i + noise
  mlp,       ///< x_j = w2' sigmoid(W1' x_pa) + noise, 100 hidden units, |weights| in U(0.5, 2)
  gp_additive, ///< x_j = sum_i g_ij(x_i) + noise, g_ij from a Gaussian process (RBF, length 1;
               ///< random Fourier features, 512 of them)
  quadratic  ///< x_j = random quadratic form of x_pa + noise
};
enum class Noise : std::int32_t { gaussian, exponential, gumbel };

struct DataOptions {
  Mechanism mechanism = Mechanism::mlp;
  Noise noise = Noise::gaussian;
  double noise_scale = 1.0; ///< standard deviation of gaussian noise; scale of the other two
};
OptionFields fields(DataOptions& options);

/// rows x graph.size() observations from a structural equation model on an acyclic graph
/// (Error(invalid_argument) on a cycle). Noise of exponential and gumbel is not centred.
Matrix simulate_data(const Digraph& graph, std::int64_t rows, const DataOptions& options,
                     std::uint64_t seed);

/// Counts: entry (i, j) is negative binomial with mean depth_i * exp(a_j + s x_ij) and the given
/// dispersion, where x is standardised by column, depths are log-normal around 1 and a_j is chosen
/// so that a column's mean is about `mean`. cells x features, row_major (CSR), zeros left out.
SparseMatrix simulate_counts(const MatrixView& x, double mean, double dispersion,
                             std::uint64_t seed);

} // namespace cape
