// cape.dag (Step I): a weighted causal DAG over the columns of a table, by a generalised nonlinear
// structural equation model under an acyclicity constraint (paper, sec_DAG), with the corrections
// of docs/method.md. A[m,n] is m -> n.
module;
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>
export module cape.dag;
export import :options;
export import :knowledge;
export import :objective;
export import :refinement;
import cape.core;
import cape.graph;

export namespace cape {

/// One epoch of the augmented Lagrangian.
struct DagEpoch {
  std::int64_t epoch = 0; ///< from 1
  double loss = 0;        ///< reconstruction + kl + L1 + L2 + rho/2 h^2 + alpha h
  double reconstruction =
      0; ///< -E log p(X|Z) up to constants; 0 for mlp and linear, whose decoder is exact
  /// KL(q(Z|X) || N(0, I)) up to constants: 1/2 sum_j mean z_j^2. With standardize the noise has
  /// the likelihood of unequal variances, 1/2 sum_j log mean z_j^2, which counts as reconstruction
  double kl = 0;
  double h = 0;   ///< at the end of the epoch, or as last renewed, see learn_dag()
  double rho = 0; ///< during the epoch
  double alpha = 0;
};

/// How far the edges of a graph follow the variances of its columns (varsortability, by edges).
struct VarianceOrder {
  /// Of the edges, those from the column of less variance to that of more; equal ones count half
  double rising = 0;
  double deviation = 0; ///< its standard deviation where the order of the variances is a random one
};
/// deviations: of every node, standard deviations or any numbers of their order. Under a random
/// order the share is 1/2 on average, with the variance (E + sum of (effects - causes)^2 over the
/// nodes) / (12 E^2). All 0 without edges. Error(dim_mismatch, invalid_argument). O(M + E).
VarianceOrder variance_order(const Digraph& graph, std::span<const double> deviations);

struct Dag {
  // M x M, by columns; zeros, which are most of their entries, are not stored.
  SparseMatrix weights; ///< before pruning; zero diagonal. Model G: norms (>= 0); linear and paper:
                        ///< signed. Of low rank: without those of at most a tenth of the threshold
  SparseMatrix sign;    ///< -1 or 1: direction in which the effect moves with the cause; 0: either
  /// How much speaks for each ordered pair: |weights| over their root mean square, and, of up to
  /// 1,000 columns, min(1, 5 M / N) times a stability selection by the lasso over its own. A
  /// ranking for where directions cannot be told; not acyclic; comparable within a fit only. 0:
  /// nothing
  SparseMatrix support;
  std::int64_t bags = 0;  ///< fits to parts of the rows whose mean `weights` is; 0: one fit to all
  SparseMatrix bag_share; ///< of these, those with a weight above the threshold; empty without bags
  /// In the column of every feature that has one above noise: its partner, the one that it has most
  /// to do with, whatever the others say, on 2,000 evenly spaced rows at most. The entry is the root
  /// of the share of the squares of the one's normal scores that the scores of the other and their
  /// squares explain, or of two columns of which most rows have one value, the correlation of having
  /// another; it is below 0 if what is known lets the edge run from the feature to the partner
  /// only. Above noise: of all features with a partner a tenth at most are expected to have none
  /// (Storey's adaptive rule over the features, of p times the other features, at most .5; p of F
  /// tests of the scores or, of two such columns, Fisher's exact one). With candidates, partners
  /// are among these
  SparseMatrix partners;
  SparseMatrix statistic; ///< t statistics of the refinement (0 where not tested); empty if not
                          ///< refined
  /// Of a refined graph: the share of its edges, but those required, that is expected to join what
  /// is not joined, one way or the other (see DagOptions::refine_fdr), and the pairs that could
  /// have been joined by chance; 0 if that was not limited
  double false_discovery_rate = 0;
  std::int64_t tested_pairs = 0;
  /// What is returned as the DAG: pruned or refined, acyclic, signed by `sign`. Pruned: the sizes
  /// are those of `weights`. Refined: what the edge explains, TestedEdges::strength, but at least
  /// 0.01. An edge that the user's knowledge keeps against a smaller size gets the threshold
  Digraph graph;
  std::vector<Edge> required;      ///< by the user's knowledge; prune() keeps them too
  std::vector<std::int64_t> order; ///< a topological order of graph
  std::vector<DagEpoch> history;
  bool converged = false; ///< h <= h_tolerance at the end
  bool refined = false;
  /// h of the unpruned weights, with bags the largest of theirs; of low rank: with the diagonal, an
  /// upper bound
  double h = 0;
  double lambda = 0; ///< the L1 weight that was used
  double threshold = 0;
  /// The smallest |weight| of an edge of the graph (threshold if there is none)
  double effective_threshold = 0;
  ThresholdSuggestion suggestion; ///< where the threshold was chosen by it
  std::int64_t n_removed_for_acyclicity = 0;
  std::vector<double> center, scale;  ///< applied to the columns before learning
  /// Standard deviations of the columns as they came, see variance_order(); of those without
  /// variance 1
  std::vector<double> deviation;
  std::vector<std::int64_t> constant; ///< columns without variance: kept as isolated nodes
  std::vector<Edge> collinear;        ///< exactly collinear pairs (weight: their correlation)
  std::vector<std::string> warnings;  ///< sentences for the user
};

/// Learn a DAG over the columns of x (N x M, observations x features).
/// Needs N >= 10 and at least 2 columns that vary, else Error(invalid_argument); values must be
/// finite (NaN allowed when options.missing is mask).
/// Columns are centred; those without variance end up isolated. Error(not_converged) if the loss
/// leaves the range of double; Error(cancelled).
///
/// The columns are put in an order of their content before learning: a permutation of the columns
/// permutes the result and changes nothing else (identical columns apart). With standardize, values
/// are kept to 2^-20 standard deviations, so that the units of a column change nothing either. The
/// order of the rows decides on the minibatches, so permuting them gives another fit of the same
/// kind. Same seed, same bits, for any number of threads.
///
/// Missing values are drawn from their distribution given what is known of their row, by chained
/// equations: each column on the 30 others that predict it best, one for five rows where it is
/// known at most; ten sweeps of least squares, and with up to 5,000 columns, unless sem is linear,
/// four of the refinement's regressions. The graph is learned from the completed table, and the
/// refinement tests an edge on the rows where both its ends are known. That is right if what is
/// missing is so at random given what is known (it may depend on values that are there, not on
/// those that are not). O(N M 30^2) for a sweep of least squares, and M regressions for one of
/// networks.
///
/// An epoch has at least clamp(3600 / M, 15, 120) steps: a table with few rows is passed over
/// several times. (10 nodes, 80 rows, mean SHD of 10 graphs with 16 edges: 1 step an epoch 18.6, 15
/// steps 14.3, and with the automatic lambda 8 to 9.) Above 127 columns dh/dA is renewed every k =
/// clamp(M / 64, 1, 64) steps, up to step s every max(4, s / 4) if that is less, and at the end of
/// every epoch, or, if an epoch has less than 4 k steps, of every rho_interval-th and the last one.
/// O(steps (batch M^2 hidden + M^3 / k)) for model G.
/// Paper: eq_OptDAG, eq_lossdag; docs/method.md for the departures.
///
/// Prior: edges that its knowledge excludes have the weight 0 in every step; required ones are free
/// of lambda and always in the graph. A row's weight multiplies its part of the loss. The fit is to
/// the bit that of the table without its rows of weight 0, and of those whose values are all
/// missing. A column that does not vary within any batch has no variance. One that varies, but
/// whose equation holds in fewer than 10 rows, or only where it does not vary within a batch, gets
/// no causes but those required (an error with rank above 0), and Dag::warnings says so. Columns
/// that interventions aim at (Design::targeted) are learned with one more column each, a root of
/// their standard deviation that is 0 in all other rows; an edge from it counts as one from its
/// column, with the root of the sum of both squares, in weights, support and graph, and the larger
/// share and t. Where that closes cycles, the weakest edges go. Its sign is 0, as is the direction
/// of the intervention unknown, and it is refined like any other; h, history and tested_pairs are
/// of the wider table. Perturbed
/// values and weights keep the graph from being refined. Error(invalid_argument) for numbers out of
/// range, an edge both required and excluded, a cycle of required edges, a required edge of a
/// column without variance; Error(dim_mismatch) for members of another length.
///
/// Checkpoint, unless it is null: the fit goes on from it if it is not empty, and keeps it up to
/// date: after an Error(cancelled), or any other, another call goes on where this one was, and has
/// the bits of a fit that was not interrupted. It is the state at the end of the last epoch that
/// ended with a renewal of dh/dA, and after the last epoch every regression of the refinement that
/// was finished; what was done since then, and the screening before the first epoch, is done again.
/// When an error leaves it, it has all that it had before. Error(invalid_argument) if it is that of
/// another table, prior, options or seed, of another build of this library, or of another BLAS
/// kernel or SIMD target, or damaged. Holds three doubles for every parameter of the model, three
/// for every pair of columns where there are bags, and four numbers for every regression.
Dag learn_dag(const MatrixView& x, const DagOptions& options, Run& run, const Prior& prior = {},
              Checkpoint* checkpoint = nullptr);

/// A table that is read in parts, so that it need not fit into memory.
struct RowSource {
  std::int64_t rows = 0, columns = 0;
  /// Write these rows (numbers from 0, in any order) of all columns to out, column by column: value
  /// (r, j) goes to out[j * numbers.size() + r]. The same row must always have the same values. It
  /// is called on the thread that learns, and what it throws reaches the caller.
  std::function<void(std::span<const std::int64_t> numbers, double* out)> read;
};
/// The same fit of a table that is never in memory as a whole: to the bit that of the same values
/// in a matrix. The rows are passed over seven times in order (eight where columns may be
/// collinear), in blocks of 1 M values or 256 rows; the rows that screening looks at, if there are
/// candidates, are read once more; and so are those of every minibatch.
/// Values must be finite, whatever options.missing, and of a prior only the knowledge can be used.
/// A fit that is refined reads the whole table, and Error(out_of_memory) if that does not fit.
/// Memory: that of learn_dag_memory() without the tables, and 8 bytes a row. Other errors as above.
Dag learn_dag(const RowSource& source, const DagOptions& options, Run& run,
              const Knowledge& knowledge = {}, Checkpoint* checkpoint = nullptr);

/// The largest working set of learn_dag() on a table of this size in bytes, the table included,
/// when nothing is missing, weighted or in batches: each of those adds a table. A checkpoint adds
/// three times the weights, and some 80 bytes for a regression of the refinement; of low rank, the
/// weights of the result come on top. learn_dag() throws Error(out_of_memory) with this figure when
/// the machine has less. Measured: docs/performance.md. Error(invalid_argument) for sizes or
/// options out of range.
double learn_dag_memory(std::int64_t rows, std::int64_t columns, const DagOptions& options);

/// Seconds that learn_dag() takes on a table of this size, a rough figure for one thread of a
/// present server CPU, from the operations that there are; without the drawing of missing values,
/// which depends on where they are. Error(invalid_argument) as above.
double learn_dag_seconds(std::int64_t rows, std::int64_t columns, const DagOptions& options);

/// The same fit cut at another threshold (finite, tau >= 0), without training again; always
/// acyclic. Looks at weights, sign, order and required alone, so that a refined fit becomes an
/// unrefined one, and a fit can be made again from these four; sign, order and required may be
/// empty. What the fit had to say of its own graph, Dag::warnings, is not said of the new one.
/// Error(invalid_argument, dim_mismatch, cancelled).
Dag prune(const Dag& dag, double tau, Run& run);
Dag prune(const Dag& dag, double tau);
/// The same of a graph that was not learned here, whose weights are those of its edges.
Dag prune(const Digraph& graph, double tau, Run& run);

/// The graph and, for every feature without edges, an edge to it from its partner (or to that, see
/// Dag::partners), so that Step II has a place for it. In their order, those whose partner they are
/// joined to already are left as they are: of two features that are each other's partner the first
/// is the effect. These edges weigh the partner's entry times the weakest edge of the graph, or 1
/// if it has none, and close no ring, so that the result is acyclic. The graph alone if it was
/// restored from its weights. O(M + E).
Digraph covered_graph(const Dag& dag);

/// The weights before pruning, unsigned, as a graph; it may have cycles.
Digraph unpruned_graph(const Dag& dag);

} // namespace cape
