// cape.dag (Step I): a weighted causal DAG over the columns of a table, by a generalised nonlinear
// structural equation model under an acyclicity constraint (paper, sec_DAG), with the corrections
// of docs/method.md. A[m,n] is m -> n.
module;
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>
export module cape.dag;
import cape.core;
import cape.graph;

export namespace cape {

/// The structural equation model.
enum class Sem : std::int32_t {
  mlp,    ///< z_j = x_j - MLP_j(x), gated per edge (model G, the default)
  linear, ///< z = x - xA
  paper,  ///< z = f(x)(I - A), f shared by all columns, scale fixed by the log-Jacobian
  literal ///< the paper's objective word for word; collapses to A = 0, kept to show that it does
};
/// The smooth acyclicity measure h.
enum class Constraint : std::int32_t {
  expm,  ///< tr exp(A o A) - M (paper, eq_OptDAG)
  logdet ///< -log det(I - A o A), for spectral radius below 1
};
enum class Refine : std::int32_t { automatic, never, always };
enum class Missing : std::int32_t {
  fail, ///< NaN in the table is an error
  mask  ///< a NaN is drawn from its distribution given the rest of its row, see learn_dag()
};
/// The numbers that training computes with.
enum class Precision : std::int32_t {
  automatic, ///< float32 for sem mlp, else float64
  float64,
  float32 ///< sem mlp only, else Error(invalid_argument)
};

/// What is known of the graph before it is learned. Columns are given by their numbers; an empty
/// member says nothing. Only the ends of an edge are looked at.
struct Knowledge {
  /// In the graph whatever the data say; without a cycle. Here and below an edge may be given twice
  std::vector<Edge> required;
  std::vector<Edge> forbidden; ///< never in the graph
  /// Of every column: no edge runs from a later tier to an earlier one. Negative: any tier
  std::vector<std::int64_t> tier;
  std::vector<std::int64_t> roots;      ///< columns without causes
  std::vector<std::int64_t> leaves;     ///< columns without effects
  std::vector<std::int64_t> regulators; ///< only these have effects
  Matrix penalty;                       ///< M x M factors (>= 0, finite) of lambda
  /// Edges with the weights that the descent starts from, signed, in the units of Dag::weights: those
  /// of an earlier fit. A hint that saves epochs (docs/method.md), not a constraint
  std::vector<Edge> start;
};

/// An intervention: in this row the column was set from outside, so that its own equation does not
/// hold there. What it does to others still counts, also of a column that was set in every row.
struct Perturbation {
  std::int64_t row = 0, column = 0;
};
/// What is known of the rows of a table; an empty member says nothing.
struct Design {
  /// Of every row, >= 0 and finite; only ratios matter. Equal ones say nothing; of 0, or of less than
  /// 1e-308 of the largest: the row counts for nothing, and its values are not looked at
  std::vector<double> weight;
  /// The batch of every row: columns are centred within each, so that batches may differ in level
  std::vector<std::int64_t> batch;
  std::vector<Perturbation> perturbed;
};

struct DagOptions {
  Sem sem = Sem::mlp;
  Constraint constraint = Constraint::expm;
  /// Automatic: always for up to 5,000 columns that vary with sem mlp, and with sem linear unless
  /// they are standardized
  Refine refine = Refine::automatic;
  bool standardize =
      false; ///< scale columns to unit variance and use the likelihood of unequal variances
  Missing missing = Missing::fail;
  Precision precision = Precision::automatic; ///< of training; results and refinement keep theirs
  /// L1 weight. Automatic: 1 for literal, else max(0.45 sqrt(log M / N), 0.02 for mlp or 0.05 for
  /// linear and paper), with M the number of columns that vary
  double lambda = std::numeric_limits<double>::quiet_NaN();
  double l2 = 0.002;      ///< ridge on the weights of the MLPs
  /// tau: |A| of at most this are pruned. Automatic: 0.2, or suggest_threshold() where refine is
  /// automatic and the columns are too many for it
  double threshold = std::numeric_limits<double>::quiet_NaN();
  /// Columns that may be causes of an effect, chosen by association before learning: with p of them
  /// a step costs O(batch M p hidden), and weights and h need no M x M matrix. Automatic: all
  /// columns (sem mlp)
  std::int64_t candidates = -1;
  /// 0: a weight for every edge. r > 0: A = UV' with U and V of r columns each, which costs
  /// O(batch M r) a step and O(M r^4) for h (paper: r = 40). For graphs with few causes: the rank
  /// of A is at most their number, and that of other sparse graphs is high (docs/method.md). At most
  /// M; sem linear, constraint expm, all columns as candidates and no Knowledge
  std::int64_t rank = 0;
  std::int64_t hidden = 10; ///< units of an effect's MLP
  std::int64_t epochs = 100;
  std::int64_t batch_size = 128;
  double learning_rate = 1e-2;    ///< peak; falls to 2 % of it along a cosine
  double rho_growth = 2.5;        ///< the penalty's factor, every rho_interval epochs at most
  std::int64_t rho_interval = -1; ///< automatic: epochs / 20
  double rho_max = 1e16;
  /// Converged when h is at most this; rho and alpha stay once it is at most half of it. Automatic:
  /// 1e-5 M for M columns with variance, at least 1e-4. Two edges above 0.1 in a cycle have
  /// h > 1e-4. Far below it the weights' steps are larger than the cycles left, and a larger penalty
  /// only wears down the edges that are real.
  double h_tolerance = std::numeric_limits<double>::quiet_NaN();
  /// A parent stays if dropping it raises the held-out error by t >= this. Automatic: 3.04 - 200 / N
  /// for N rows, which is 3 for 5,000, but at least 1.
  double refine_t = std::numeric_limits<double>::quiet_NaN();
  /// Positions that the insertion search tries to either side. Automatic: none beyond 100 columns,
  /// else all for sem linear and 3 for mlp
  std::int64_t refine_window = -1;
  std::int64_t refine_hidden = 32; ///< units of a network; neither is used for sem linear
  std::int64_t refine_epochs = 100;
};
OptionFields fields(DagOptions& options);

/// A threshold, and what speaks for it.
struct ThresholdSuggestion {
  double threshold = 0;
  std::int64_t effects = 0; ///< columns whose causes were tested; 0: there is no suggestion
  std::int64_t causes = 0;  ///< that the tests keep for them
  /// Edges into those columns that the weights above threshold have too many or lack
  std::int64_t differing = 0;
};

/// One epoch of the augmented Lagrangian.
struct DagEpoch {
  std::int64_t epoch = 0; ///< from 1
  double loss = 0;        ///< reconstruction + kl + L1 + L2 + rho/2 h^2 + alpha h
  double reconstruction =
      0; ///< -E log p(X|Z) up to constants; 0 for mlp and linear, whose decoder is exact
  /// KL(q(Z|X) || N(0, I)) up to constants: 1/2 sum_j mean z_j^2. With standardize the noise has
  /// the likelihood of unequal variances, 1/2 sum_j log mean z_j^2, which counts as reconstruction
  double kl = 0;
  double h = 0; ///< at the end of the epoch, or as last renewed if that is less often, see learn_dag()
  double rho = 0; ///< during the epoch
  double alpha = 0;
};

struct Dag {
  // M x M, by columns; zeros, which are most of their entries, are not stored.
  SparseMatrix weights; ///< before pruning; zero diagonal. Model G: norms (>= 0); linear and paper:
                        ///< signed. Of low rank: without those of at most a tenth of the threshold
  SparseMatrix sign;    ///< -1 or 1: direction in which the effect moves with the cause
  SparseMatrix statistic; ///< t statistics of the refinement (0 where not tested); empty if not
                          ///< refined
  /// What is returned as the DAG: pruned or refined, acyclic. Edge weights are `weights`, signed by
  /// `sign`; an edge that the refinement or the user's knowledge keeps against a smaller weight
  /// gets the threshold
  Digraph graph;
  std::vector<Edge> required;      ///< by the user's knowledge; prune() keeps them too
  std::vector<std::int64_t> order; ///< a topological order of graph
  std::vector<DagEpoch> history;
  bool converged = false; ///< h <= h_tolerance at the end
  bool refined = false;
  double h = 0;      ///< h of the unpruned weights; of low rank: with the diagonal, an upper bound
  double lambda = 0; ///< the L1 weight that was used
  double threshold = 0;
  double effective_threshold = 0; ///< the smallest |weight| that was kept (threshold if none)
  ThresholdSuggestion suggestion; ///< where the threshold was chosen by it
  std::int64_t n_removed_for_acyclicity = 0;
  std::vector<double> center, scale;  ///< applied to the columns before learning
  std::vector<std::int64_t> constant; ///< columns without variance: kept as isolated nodes
  std::vector<Edge> collinear;        ///< exactly collinear pairs (weight: their correlation)
  std::vector<std::string> warnings;  ///< sentences for the user
};

/// Whether learn_dag() refines the graph of that many columns that vary, if no value is perturbed or
/// weighted. The order of standardized linear relations cannot be learned, so that
/// there is nothing to refine automatically.
bool refines(const DagOptions& options, std::int64_t columns);

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
/// equations: each column on the 30 others that predict it best, one for five rows where it is known
/// at most; ten sweeps of least squares, and with up to 5,000 columns, unless sem is linear, four of
/// the refinement's regressions. The graph is learned from the completed table, and the refinement
/// tests an edge on the rows where both its ends are known. That is right if what is missing is so at
/// random given what is known (it may depend on values that are there, not on those that are not).
/// O(N M 30^2) for a sweep of least squares, and M regressions for one of networks.
///
/// An epoch has at least clamp(3600 / M, 15, 120) steps: a table with few rows is passed over
/// several times. (10 nodes, 80 rows, mean SHD of 10 graphs with 16 edges: 1 step an epoch 18.6, 15
/// steps 14.3, and with the automatic lambda 8 to 9.) Above 127 columns dh/dA is renewed every k =
/// clamp(M / 64, 1, 64) steps, up to step s every max(4, s / 4) if that is less, and at the end of
/// every epoch, or, if an epoch has less than 4 k steps, of every rho_interval-th and the last one.
/// O(steps (batch M^2 hidden + M^3 / k)) for model G.
/// Paper: eq_OptDAG, eq_lossdag; docs/method.md for the departures.
Dag learn_dag(const MatrixView& x, const DagOptions& options, Run& run);

/// The same with what is known of the graph and of the rows. Edges that knowledge excludes have the
/// weight 0 in every step; required ones are free of lambda and always in the graph. A row's weight
/// multiplies its part of the loss. The fit is to the bit that of the table without its rows of weight
/// 0, and of those whose values are all missing. A column that does not vary within any batch has no
/// variance. One that varies, but whose equation holds in fewer than 10 rows, or only where it does
/// not vary within a batch, gets no causes but those required (an error with rank above 0), and
/// Dag::warnings says so. Perturbed values and weights keep the graph from being
/// refined. Error(invalid_argument) for numbers out of range, an edge both
/// required and excluded, a cycle of required edges, a required edge of a column without variance;
/// Error(dim_mismatch) for members of another length.
Dag learn_dag(const MatrixView& x, const Knowledge& knowledge, const Design& design,
              const DagOptions& options, Run& run);

/// A table that is read in parts, so that it need not fit into memory.
struct RowSource {
  std::int64_t rows = 0, columns = 0;
  /// Write these rows (numbers from 0, in any order) of all columns to out, column by column: value
  /// (r, j) goes to out[j * numbers.size() + r]. The same row must always have the same values. It
  /// is called on the thread that learns, and what it throws reaches the caller.
  std::function<void(std::span<const std::int64_t> numbers, double* out)> read;
};

/// The same fit of a table that is never in memory as a whole: to the bit that of the same values in
/// a matrix. The rows are passed over seven times in order (eight where columns may be collinear), in
/// blocks of 1 M values or 256 rows; the rows that screening looks at, if there are candidates, are
/// read once more; and so are those of every minibatch.
/// Values must be finite, whatever options.missing. A fit that is refined reads the whole table, and
/// Error(out_of_memory) if that does not fit. Memory: that of learn_dag_memory() without the tables,
/// and 8 bytes a row. Other errors as above.
Dag learn_dag(const RowSource& source, const Knowledge& knowledge, const DagOptions& options,
              Run& run);

/// The largest working set of learn_dag() on a table of this size in bytes, the table included,
/// when nothing is missing, weighted or in batches: each of those adds a table. A checkpoint adds
/// three times the weights, and some 80 bytes for a regression of the refinement; of low rank, the
/// weights of the result come on top. learn_dag() throws Error(out_of_memory) with this figure when
/// the machine has less. Measured: docs/performance.md. Error(invalid_argument) for sizes or
/// options out of range.
double learn_dag_memory(std::int64_t rows, std::int64_t columns, const DagOptions& options);

/// Seconds that learn_dag() takes on a table of this size, a rough figure for one thread of a
/// present server CPU, from the operations that there are. Error(invalid_argument) as above.
double learn_dag_seconds(std::int64_t rows, std::int64_t columns, const DagOptions& options);

/// The same, from the checkpoint on if it is not empty, and keeping it up to date: after an
/// Error(cancelled), or any other, another call goes on where this one was. The bits of the result
/// are those of a fit that was not interrupted. The checkpoint is the state at the end of the last
/// epoch that ended with a renewal of dh/dA, and after the last epoch every regression of the
/// refinement that was finished; what was done since then, and the screening before the first
/// epoch, is done again. When an error leaves it, it has all that it had before.
/// Error(invalid_argument) if the checkpoint is that of another table, knowledge, options or seed,
/// of another build of this library, or of another BLAS kernel or SIMD target, or damaged. Holds
/// three doubles for every parameter of the model, and two numbers for every regression.
Dag learn_dag(const MatrixView& x, const Knowledge& knowledge, const Design& design,
              const DagOptions& options, Run& run, Checkpoint& checkpoint);
Dag learn_dag(const RowSource& source, const Knowledge& knowledge, const DagOptions& options,
              Run& run, Checkpoint& checkpoint);

/// The same fit cut at another threshold (finite, tau >= 0), without training again; always
/// acyclic. Looks at weights, sign, order and required alone, so that a refined fit becomes an
/// unrefined one, and a fit can be made again from these four; sign, order and required may be
/// empty. What the fit had to say of its own graph, Dag::warnings, is not said of the new one.
/// Error(invalid_argument, dim_mismatch, cancelled).
Dag prune(const Dag& dag, double tau, Run& run);
Dag prune(const Dag& dag, double tau);
/// The same of a graph that was not learned here, whose weights are those of its edges.
Dag prune(const Digraph& graph, double tau, Run& run);

/// The weights before pruning, unsigned, as a graph; it may have cycles.
Digraph unpruned_graph(const Dag& dag);

/// A threshold for a graph that was learned from x (N x M, finite), by tests of 60 columns drawn by
/// the seed of run: their causes are chosen among ten partners each as the refinement does it, on at
/// most 5,000 evenly spaced rows, and the threshold is the one with the fewest edges into them that
/// are too many or too few. graph has all weights, see unpruned_graph(); those below 0.02 have no
/// say. Of the options sem and refine_* are used, which should be those of that fit; x is what it was
/// learned from (within batches, if there are any, the caller centres it). Some 60 * 30 regressions,
/// whatever M. Error(invalid_argument, dim_mismatch).
ThresholdSuggestion suggest_threshold(const MatrixView& x, const Digraph& graph,
                                      const DagOptions& options, Run& run);

/// h(A) and, if gradient is not null, dh/dA (M x M). A square and finite. expm: never overflows to
/// infinity: beyond exp(700) the value is capped at the largest finite number and the gradient's
/// direction kept. logdet: Error(invalid_argument) if the spectral radius of A o A is >= 1.
/// O(M^3), parallel.
double acyclicity(const MatrixView& a, Constraint constraint, Matrix* gradient, Run& run);
double acyclicity(const MatrixView& a, Constraint constraint, Matrix* gradient = nullptr);

/// h of A = UV' (expm, diagonal included) and, if not null, its gradients with respect to u and v
/// (M x r, finite, r >= 1), without an M x M matrix if M is above R = r (r + 1) / 2: A o A = PQ'
/// with R columns of products in P and Q, and tr exp(PQ') - M = tr exp(Q'P) - R. Q'P has entries of
/// both signs, so that h is then exact to rounding times the size of exp(Q'P), not relative to h:
/// to some 1e-12 for hundreds of columns and weights of about 1. Values count as at most 1e35 in
/// size. Capped as acyclicity(). O(M R^2 + R^3), or O(M^3) for M <= R. Error(invalid_argument,
/// dim_mismatch).
double low_rank_acyclicity(const MatrixView& u, const MatrixView& v, Matrix* u_gradient = nullptr,
                           Matrix* v_gradient = nullptr);

/// For every column x_j of x, `count` others (1 <= count < M) that may be its causes, by rising
/// number: count x M. Three quarters of them are taken in six rounds, the columns whose values, or
/// distances from the mean, correlate most with what a ridge regression of x_j on the values and
/// distances of the columns taken before leaves; the last quarter also by the correlation with the
/// products of that rest and the six columns taken first, which shows causes that act together only.
/// Evenly spaced rows are looked at, 8192 at most, and above 10,000 columns 8192 * 10,000 / M, but
/// 2048 at least. x finite, at least 2 rows; else Error(invalid_argument). O(N M^2 + N M count^2)
/// time, O(M (N + count)) memory, for N rows looked at.
BasicMatrix<std::int64_t> candidate_causes(const MatrixView& x, std::int64_t count, Run& run);

/// Number of parameters of options.sem on a table with this many features (>= 1).
std::int64_t dag_parameter_count(std::int64_t features, const DagOptions& options);

/// The training objective of Step I on all rows of x (centred by the caller), for other optimisers
/// and for tests: -ELBO + lambda |W|_1 + l2/2 |.|^2 + rho/2 h^2 + alpha h (paper, eq_lossdag), and
/// its gradient if that is not null. A missing value is not drawn here, as learn_dag() does: as a
/// cause it is the mean of its column, as an effect it is left out. The parameters start with the edge weights, channel k of
/// i -> j at (j * channels + k) * features + i (channels: hidden for sem mlp, else 1); self weights
/// must be 0 and their gradient is 0. With options.candidates = p, cause number c of effect j,
/// which is candidate_causes(x, p)(c, j), takes the place of i and p that of features. Computed in
/// double, and in float only if options.precision is float32. With options.rank = r the parameters
/// are U and V (features x r, by columns), |W|_1 is sum_a |u_a|_1 |v_a|_1 >= |UV'|_1, h that of
/// low_rank_acyclicity(), and self weights do not count as causes.
double dag_loss(const MatrixView& x, std::span<const double> parameters, double rho, double alpha,
                const DagOptions& options, std::vector<double>* gradient = nullptr);

// ------------------------------------------------------------- refinement (docs/method.md)

/// Squared errors of predicting one column from others, N values in the units of x squared.
/// Cross-fitted in 1 + floor(5000 / N) folds, within 2 and 10: the rows are parted at random, and a
/// network of refine_hidden sigmoid units with a linear part, trained for refine_epochs epochs on
/// all rows but those of a fold, predicts these; with sem linear, least squares does.
/// Without parents, the squared distance from the column's mean; a fit that leaves the range of
/// float predicts that mean too. `x` may have any centre and scale. A pure function of the seed and
/// of the contents of the columns: neither their numbers nor the order of parents change a bit. N
/// >= 10; target and parents are different columns of x, none constant. O(refine_epochs max(N, 5000)
/// |parents| refine_hidden); with sem linear, O(N M^2 + |parents|^3).
std::vector<double> cross_fitted_error(const MatrixView& x, std::int64_t target,
                                       std::span<const std::int64_t> parents,
                                       const DagOptions& options, Run& run);

struct Refinement {
  Matrix statistic; ///< M x M: the t of every edge kept and of the last test of a dropped one; 0
                    ///< where not tested
  std::vector<Edge> kept;          ///< edges that stay, by rising (from, to); weight = t
  std::vector<std::int64_t> order; ///< the order found; every edge runs along it
};

/// A DAG from learned weights: their order (strongest edges first, without those that close a
/// cycle), improved by moving single columns up to refine_window positions, at most 6 sweeps, as
/// long as the cross-fitted error of predicting every column from its predecessors falls; then
/// backward elimination of predecessors by a paired t-test of the errors with and without them over
/// all rows (the larger t of the errors as they are and of errors up to 2.34 times their 95 %
/// quantile, three standard deviations of normal ones), the smallest t first, until all t are at
/// least refine_t. The error is the sum of mean squared errors, which has to fall by 0.003 of its
/// mean over the columns, or, with unequal_variances, the sum of half their logarithms, which has
/// to fall by 0.003. Only the 10 strongest partners of a column (30 with sem linear), by max(|A_ij|,
/// |A_ji|) and made symmetric, are tested as its causes. x: N x M, finite, N >= 10, no column constant; weights: M x
/// M, finite, the diagonal is ignored. About 4 M refine_window regressions a sweep, and up to M
/// min(M, 10)^2 / 2 for the elimination (linear: 30 for 10).
Refinement refine(const MatrixView& x, const MatrixView& weights, bool unequal_variances,
                  const DagOptions& options, Run& run);

} // namespace cape

// Not exported: what the implementation units of this stage share.
namespace cape {

/// Knowledge as factors of lambda: infinite where there can be no edge, 0 where there must be one.
/// Answers by effect, so that no M x M matrix is needed.
class EdgeFactors {
public:
  /// Nothing is known.
  EdgeFactors() = default;
  /// Of these columns of a table, numbered by their place in the list; some of the table's, the
  /// exogenous ones, have no causes but those required. The knowledge went through check() and
  /// outlives this. Error(invalid_argument) for required edges that knowledge excludes or that have a
  /// cycle.
  EdgeFactors(const Knowledge& knowledge, std::int64_t table_columns,
              std::span<const std::int64_t> columns, std::span<const std::int64_t> exogenous);
  bool empty() const noexcept { return knowledge_ == nullptr; } ///< all factors are 1
  /// The factors of all causes of an effect. Not of an empty one. O(M).
  std::vector<double> causes_of(std::int64_t effect) const;
  const std::vector<Edge>& required() const noexcept { return required_; }

private:
  std::vector<double> allowed_causes_of(std::int64_t effect) const;
  void check_required() const;
  const Knowledge* knowledge_ = nullptr;
  std::vector<std::int64_t> columns_, tier_;
  std::vector<char> is_cause_, is_effect_, is_exogenous_;
  std::vector<Edge> forbidden_, required_; ///< by rising effect
};

} // namespace cape

namespace cape::sem {

/// Effects that are one task of a step. Fixed, so that the bits do not depend on the number of
/// threads.
constexpr std::int64_t block_effects = 32;

// Training computes in T, which is double or float. Sums over many rows, weights or edges are
// double always.

/// The range of some values.
struct Range {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  void add(double v) {
    low = v < low ? v : low;
    high = v > high ? v : high;
  }
  double size() const { return high > -low ? high : -low; }
  /// Whether they are apart by rounding at most, or none.
  bool constant() const { return !(high / 2 - low / 2 > 1e-14 * size()); }
};

/// The rows that one step of the optimiser sees.
template <class T>
struct Batch {
  const T* x = nullptr; ///< rows x features, column-major without gaps
  /// Weight of each value's own equation: 0 where it was set from outside; null: all 1
  const T* weight = nullptr;
  std::int64_t rows = 0;
};

/// Whether a value is missing, of every value of a table; empty: none is.
using Mask = BasicMatrix<std::int8_t>;

/// What is learned from: the columns of a source that vary, centred (and scaled), 0 where missing until impute(), in
/// an order of their content, so that the fit does not depend on how they were numbered. In memory,
/// or read when rows are wanted; every number is the same either way.
class Table {
public:
  /// weight: of every value's own equation, by the source's rows and columns; empty if all are 1. A
  /// column whose weights are all 0 has no equation. Source and weight outlive the table.
  /// Error(invalid_argument) unless 2 columns vary.
  Table(const RowSource& source, const Matrix& weight, bool standardize, bool in_memory, Run& run);

  std::int64_t rows() const noexcept { return source_.rows; }
  std::int64_t source_columns() const noexcept { return source_.columns; }
  std::int64_t features() const noexcept { return std::ssize(columns_); }
  /// Of every feature its column in the source.
  const std::vector<std::int64_t>& columns() const noexcept { return columns_; }
  // By the source's columns.
  const std::vector<double>& center() const noexcept { return center_; }
  const std::vector<double>& scale() const noexcept { return scale_; }
  const std::vector<std::int64_t>& constant() const noexcept { return constant_; }
  /// Columns that vary and have no equation.
  const std::vector<std::int64_t>& exogenous() const noexcept { return exogenous_; }
  /// A hash of all values.
  std::uint64_t content() const noexcept { return content_; }
  /// Exactly collinear pairs of the source's columns (weight: their correlation).
  std::vector<Edge> collinear_pairs(Run& run) const;

  /// Rows by number, in the type that computes with them: rows.size() x features.
  template <class T>
  BasicMatrix<T> read(std::span<const std::int64_t> rows, Run& run) const;
  /// Their weights; empty if all are 1.
  template <class T>
  BasicMatrix<T> read_weights(std::span<const std::int64_t> rows, Run& run) const;
  /// Evenly spaced rows.
  Matrix spaced_rows(std::int64_t count, Run& run) const;
  /// The same of these features only; other columns are never in memory for more than a block.
  Matrix spaced_rows(std::int64_t count, std::span<const std::int64_t> features, Run& run) const;
  /// All rows; empty if they are not in memory.
  const Matrix& values() const noexcept { return values_; }

  /// Draw the missing values of a table in memory, see learn_dag(). Columns that had gaps have the mean
  /// 0 again, or every batch of them has; those known in fewer than 10 rows become exogenous.
  void impute(const Design& design, const DagOptions& options, Run& run);
  /// Which values were drawn, rows x features.
  const Mask& missing() const noexcept { return missing_; }
  /// The same of evenly spaced rows of these features.
  Mask spaced_missing(std::int64_t count, std::span<const std::int64_t> features) const;

private:
  struct Moments;
  void find_moments(Run& run);
  void sort_by_content(Run& run);
  Matrix raw(std::span<const std::int64_t> rows) const;
  template <class T>
  BasicMatrix<T> prepared(std::span<const std::int64_t> rows, Run& run) const;
  template <class T>
  BasicMatrix<T> gather(const Matrix& from, std::span<const std::int64_t> rows,
                std::span<const std::int64_t> columns, Run& run) const;

  const RowSource& source_;
  const Matrix& weight_;
  bool standardize_;
  std::vector<double> center_, scale_;
  std::vector<double> deviation_; ///< standard deviations, of the source's columns as read
  std::vector<std::int64_t> constant_, exogenous_, columns_;
  std::uint64_t content_ = 0;
  Matrix values_;
  Mask missing_;
};

/// Draw the values of x that are missing (0 there, columns of mean 0). Equations hold where the weight
/// is positive.
void impute(Matrix& x, const Mask& missing, const Matrix& weight, const DagOptions& options,
            Run& run);

/// The two parts of -ELBO.
struct Score {
  double reconstruction = 0;
  double kl = 0;
};

/// Column numbers of the causes that every effect may have: inputs x features, without the effect
/// itself. Empty: all columns.
using Causes = BasicMatrix<std::int64_t>;

struct Shape {
  std::int64_t features = 0;
  std::int64_t inputs = 0; ///< of an effect
  std::int64_t channels = 1;
  std::int64_t parameters = 0;
  std::int64_t ridged = 0; ///< the leading parameters that the ridge holds
};

/// What is learned of the edges, features x features.
struct LearnedEdges {
  SparseMatrix weights; ///< norms over the channels; the weights themselves if there is one only
  SparseMatrix sign;    ///< -1 or 1
};

/// Factors of lambda by which the sizes of parameters count: the same for `length` leading ones, the
/// next for as many behind them, and so on; none for the rest.
struct Shrinkage {
  std::int64_t length = 0;
  std::vector<double> factor;
};

/// The terms of the objective beside -ELBO (paper, eq_lossdag, and the ridge of model G).
struct Penalty {
  double lambda = 0;
  double l2 = 0;
  double rho = 0;
  double alpha = 0;
  const Matrix* factor = nullptr; ///< of lambda; null: 1 everywhere
};

/// What these terms see of the parameters of a model: the graph.
template <class T>
class EdgeTerms {
public:
  virtual ~EdgeTerms();
  /// h of the parameters. It and its gradient hold for the calls below until this is called again.
  virtual double constraint(const T* parameters, Run& run) = 0;
  /// The value of the terms. Adds the gradient of all but the L1 term.
  virtual double add(const T* parameters, const Penalty& penalty, T* gradient, Run& run) = 0;
  /// How the L1 term takes the parameters, without the penalty's factors.
  virtual Shrinkage shrinkage(const T* parameters) const = 0;
};

/// A structural equation model whose parameters are one vector.
template <class T>
class Model {
public:
  explicit Model(const Shape& shape, Causes causes = {})
      : shape_(shape), causes_(std::move(causes)) {}
  virtual ~Model();
  const Shape& shape() const noexcept { return shape_; }
  const Causes& causes() const noexcept { return causes_; }

  virtual void initialize(T* parameters, Run& run) const = 0;
  /// Give the edge from input c of effect j this weight, in parameters that were initialised.
  virtual void set_edge(std::int64_t c, std::int64_t j, double weight, T* parameters) const = 0;
  /// -ELBO of a batch (mean over rows, sum over features) and its gradient, which is overwritten.
  virtual Score score(const Batch<T>& batch, const T* parameters, T* gradient, Run& run) = 0;
  /// The other terms of the objective; the model outlives them.
  virtual std::unique_ptr<EdgeTerms<T>> edge_terms(Constraint form) const = 0;
  /// The edges, and how their effects move with their causes over the rows.
  virtual LearnedEdges edges(const Table& table, const T* parameters, Run& run) = 0;

private:
  Shape shape_;
  Causes causes_;
};

/// A model whose parameters start with the edge weights W: channel k of the edge from input c of
/// effect j is entry (j * channels + k) * inputs + c, so that the weights of one effect are adjacent
/// columns of an inputs x (features * channels) matrix. Input c of effect j is column causes(c, j),
/// or column c if all columns are inputs; self weights are then 0 and so is their gradient. The
/// strength of an edge is S[c,j] = sum_k W[c,j,k]^2, which is what the constraint sees.
template <class T>
class EdgeWeightModel : public Model<T> {
public:
  using Model<T>::Model, Model<T>::shape;
  std::int64_t edge_parameters() const noexcept {
    return shape().inputs * shape().features * shape().channels;
  }
  void set_edge(std::int64_t c, std::int64_t j, double weight, T* parameters) const override {
    parameters[j * shape().inputs + c] = static_cast<T>(weight);
  }
  std::unique_ptr<EdgeTerms<T>> edge_terms(Constraint form) const final;
  LearnedEdges edges(const Table& table, const T* parameters, Run& run) final;
  /// Into sign (inputs x features): -1, 0 or 1, how the effect moves with the cause over the rows.
  virtual void edge_signs(const Table& table, const T* parameters, Matrix& sign, Run& run) = 0;
};

/// Only sem mlp takes causes, and computes in float.
template <class T>
std::unique_ptr<Model<T>> make_model(std::int64_t features, Causes causes,
                                     const DagOptions& options);
template <class T>
std::unique_ptr<Model<T>> make_mlp(std::int64_t features, Causes causes, const DagOptions& options);
std::unique_ptr<Model<double>> make_linear(std::int64_t features, const DagOptions& options);
/// The linear model of options.rank > 0.
std::unique_ptr<Model<double>> make_low_rank(std::int64_t features, const DagOptions& options);
std::unique_ptr<Model<double>> make_paper(std::int64_t features, const DagOptions& options);
std::unique_ptr<Model<double>> make_literal(std::int64_t features, const DagOptions& options);

/// What training at that rank holds beside the table, in bytes, with minibatches of so many rows.
double low_rank_memory(std::int64_t features, double batch, std::int64_t rank);
/// Error(invalid_argument) if options.rank is above 0 and the number of columns, the other options
/// or the knowledge exclude it.
void check_low_rank(std::int64_t columns, const Knowledge& knowledge, const DagOptions& options);

/// Whether to train in float, and Error(invalid_argument) if the options ask for it in vain.
bool in_float(const DagOptions& options);

/// What one column adds to -ELBO, z (rows) being its noise: 1/2 mean w z^2, or 1/2 log mean w z^2
/// when variances are unequal; w is `weight`, or 1 if that is null. With weights z is taken about
/// its weighted mean: columns are centred over all rows, and the noise where the equation holds may
/// have another level. z is overwritten by the gradient with respect to z.
template <class T>
double column_score(T* z, std::int64_t rows, const T* weight, bool unequal_variances);

/// Inputs that an effect of this model has: the candidates of the options, or all features.
std::int64_t input_count(std::int64_t features, const DagOptions& options);
/// The `count` columns most associated with each column of a centred table, see candidate_causes().
/// What is required is chosen first, what is excluded last.
Causes screen(const MatrixView& x, const EdgeFactors& factors, std::int64_t count, Run& run);
/// Rows that the screening looks at: its time grows with them and with the square of the columns.
std::int64_t screened_rows(std::int64_t rows, std::int64_t columns);
/// The products of all columns with all columns, over those rows, that it takes.
std::int64_t screening_products();

/// tr exp(S) - M and its gradient exp(S)^T for S >= 0 on a sparse pattern: entry (c, j) of s and
/// gradient (inputs x features) belongs to the edge causes(c, j) -> j. Where an entry of s is 0, or
/// the edge lies on no cycle, the gradient is written as 0 (the former's is multiplied by the weight,
/// the latter's is 0). Every strongly connected component is taken by itself, in blocks of rows of
/// exp(S), by the Taylor series, which needs no M x M matrix: O(K nonzeros) per term for K nodes, and
/// O(K) memory per thread. At most the largest finite number. Rows are summed in T, or in double
/// where entries leave the range of float; h is summed in double. All terms are >= 0, so that
/// relative errors are those of T's rounding.
template <class T>
double sparse_expm(const Matrix& s, const Causes& causes, Matrix& gradient, Run& run);

/// h(S) of S >= 0 (square) and dh/dS; its workspace is kept between calls. expm is computed in T.
template <class T>
class AcyclicityConstraint {
public:
  explicit AcyclicityConstraint(Constraint form);
  ~AcyclicityConstraint();
  /// +inf for logdet when the spectral radius of S is >= 1; the gradient is then not written.
  double operator()(const Matrix& s, Matrix& gradient, Run& run);

private:
  struct Workspace;
  Constraint form_;
  std::unique_ptr<Workspace> workspace_;
};

/// The value of the objective.
struct Loss {
  double total = 0;
  Score score;
  double h = 0;
};

/// The objective, with what a step needs allocated once.
template <class T>
class Objective {
public:
  Objective(Model<T>& model, Constraint form) : model_(model), terms_(model.edge_terms(form)) {}
  /// h of the parameters. It and its gradient hold for the calls below until this is called again.
  double constraint(const T* parameters, Run& run) {
    return h_ = terms_->constraint(parameters, run);
  }
  /// The whole loss, and the gradient of its smooth part: of all terms but the L1 term.
  Loss operator()(const Batch<T>& batch, const T* parameters, const Penalty& penalty, T* gradient,
                  Run& run);
  /// How the L1 term takes the parameters, without the penalty's factors.
  Shrinkage shrinkage(const T* parameters) const { return terms_->shrinkage(parameters); }

private:
  Model<T>& model_;
  std::unique_ptr<EdgeTerms<T>> terms_;
  double h_ = 0;
};

/// How often augmented_lagrangian() does what.
struct Pace {
  Pace(std::int64_t rows, std::int64_t features, const DagOptions& options);
  std::int64_t epochs, batch_rows, steps_per_epoch, steps;
  std::int64_t constraint_interval = 1; ///< steps that h and its gradient hold for, at most
  std::int64_t update_interval;         ///< epochs between updates of alpha and rho
  /// With h at its end an epoch leaves a state to go on from. Where that would make h much more
  /// work, only the epochs do after which the multipliers need it.
  bool ends_with_h(std::int64_t epoch) const;
  /// The step before which h is renewed next, from the one before which it was.
  std::int64_t next_renewal(std::int64_t step) const;
  /// Of h, in a whole fit.
  std::int64_t renewals() const;
};

/// options.h_tolerance, or the automatic choice for so many features.
double h_tolerance(const DagOptions& options, std::int64_t features);

/// The paper's alternating updates: proximal AdamW on minibatches; alpha and rho now and then.
template <class T>
struct Solution {
  std::vector<T> parameters;
  std::vector<DagEpoch> history;
  double h = 0;
};
/// factor: inputs x features factors of lambda, infinite where there can be no edge; or empty.
/// start: edges from input `from` of effect `to`, with the weights that they start from.
/// checkpoint: null, or where to go on, kept up to date.
template <class T>
Solution<T> augmented_lagrangian(Model<T>& model, const Table& table, double lambda,
                                 const Matrix& factor, const std::vector<Edge>& start,
                                 const DagOptions& options, Run& run, Checkpoint* checkpoint);

/// A trained model.
struct Fit {
  LearnedEdges edges;
  std::vector<DagEpoch> history;
  double h = 0;
};
/// The model of the options, trained by augmented_lagrangian() in the options' precision.
Fit train(const Table& table, const Causes& causes, double lambda, const Matrix& factor,
          const std::vector<Edge>& start, const DagOptions& options, Run& run,
          Checkpoint* checkpoint);

} // namespace cape::sem

namespace cape {

/// What is not zero, column by column.
std::vector<Edge> entries(const SparseMatrix& a);
/// Stands for the weight of a required edge where edges compete: stronger than all others.
constexpr double required_weight = std::numeric_limits<double>::max();
/// Of every one of `size` numbers its place in `numbers`, or -1.
std::vector<std::int64_t> places(std::int64_t size, std::span<const std::int64_t> numbers);
/// The edges whose ends both have a place, by their places, sorted by effect.
std::vector<Edge> edges_between(const std::vector<Edge>& edges,
                                std::span<const std::int64_t> place);

/// Every edge once, in the order of their first places, with the weight 1.
std::vector<Edge> distinct(const std::vector<Edge>& edges);

/// The errors of learn_dag() for knowledge of a table of so many columns, but those of the required
/// edges together with the rest, which are EdgeFactors'.
void check(const Knowledge& knowledge, std::int64_t columns);

/// The caller's table and ours.
double table_bytes(std::int64_t rows, std::int64_t columns);

/// A table in memory, which outlives the source.
RowSource rows_of(const MatrixView& x);

/// learn_dag() with or without a checkpoint.
Dag learn_dag(const MatrixView& x, const Knowledge& knowledge, const Design& design,
              const DagOptions& options, Run& run, Checkpoint* checkpoint);

constexpr std::int64_t least_rows = 10; ///< to learn an equation from, or to test an edge
/// The errors of learn_dag() for a design of a table of this size.
void check(const Design& design, std::int64_t rows, std::int64_t columns);
/// The rows that count: those with a weight and, where values may be missing, with a value.
std::vector<std::int64_t> counted_rows(const MatrixView& x, const Design& design, Missing missing);
/// These rows of a table, and what is known of them: without weights if they are equal.
Matrix of_rows(const MatrixView& x, std::span<const std::int64_t> rows);
Design of_rows(const Design& design, std::span<const std::int64_t> rows);
/// What every value's own equation counts (rows x columns): the weight of its row, of mean 1, or 0
/// where the value is perturbed. Empty if all count 1.
Matrix equation_weights(std::int64_t rows, std::int64_t columns, const Design& design);
/// Weights 0 for the equations of x that cannot be learned: of columns that have fewer than 10 rows
/// with a weight, or do not vary within any batch of them.
void drop_equations(const MatrixView& x, const Design& design, Matrix& weight);
/// x without the mean of every batch; exactly 0 where a batch does not vary. design.batch is not
/// empty. Every row counts.
Matrix center_batches(const MatrixView& x, const Design& design);

/// Folds of the cross-fitting of N rows.
std::int64_t refinement_folds(std::int64_t rows);
/// The t at which refine() keeps a parent: options.refine_t, or the automatic choice for N rows.
double refinement_t(const DagOptions& options, std::int64_t rows);
/// refine() within such factors. An edge is tested on the rows where neither end is missing. journal,
/// here and below: null, or where finished regressions are kept and looked for, all of one fit.
Refinement refine(const MatrixView& x, const sem::Mask& missing, const MatrixView& weights,
                  const Matrix& factor, bool unequal_variances, const DagOptions& options, Run& run,
                  Journal* journal);

/// Whether the refinement of so many columns looks for a better order of them.
bool searches_order(const DagOptions& options, std::int64_t columns);
/// Partners of a column that may be its causes. Least squares cost next to nothing; a network is
/// short of rows with more inputs.
std::int64_t most_partners(Sem sem);

/// What backward elimination by held-out tests finds; the weights of the edges are t.
struct Elimination {
  std::vector<Edge> kept;
  std::vector<Edge> tested; ///< all pairs, with the last t of each
};
/// causes: of every column of x those that it may have, rising. required edges are not tested.
/// report is called before every round of regressions, with the number of effects that may still
/// lose a cause. missing: see refine().
Elimination eliminate(const MatrixView& x, const sem::Mask& missing, const std::vector<std::vector<std::int64_t>>& causes,
                      const std::vector<Edge>& required, const DagOptions& options, Run& run,
                      Journal* journal, const std::function<void(std::size_t)>& report);

/// The threshold where no tests suggest another: options.threshold, or the automatic one. Weights
/// of less than a tenth of the latter have no say in the tests.
constexpr double automatic_threshold = 0.2;
double plain_threshold(const DagOptions& options);

/// Whether the threshold is chosen by tests of a sample of the effects, as of too many columns to
/// test them all; and that sample's effects and rows, at most.
bool tests_sample(const DagOptions& options, std::int64_t columns);
constexpr std::int64_t sampled_effects = 60, sampled_rows = 5000;

/// suggest_threshold() from the table that these weights, by its source's columns, were learned
/// from.
ThresholdSuggestion suggest_threshold(const sem::Table& table, const std::vector<Edge>& weights,
                                      const DagOptions& options, Run& run, Journal* journal);

/// The refinement where columns are many: their order is that of the weights (by the source's
/// columns), and each is tested against its strongest partners. The result is by features of the
/// table. O(M) regressions, and a part of the table in memory.
struct TestedGraph {
  Elimination edges;
  std::vector<std::int64_t> order;
};
TestedGraph test_graph(const sem::Table& table, const std::vector<Edge>& weights,
                       const EdgeFactors& known, const DagOptions& options, Run& run,
                       Journal* journal);

/// Fill graph, order, threshold, effective_threshold and n_removed_for_acyclicity from weights and
/// sign. Nodes are visited in the given order, so that ties do not depend on how they are numbered.
void cut(Dag& dag, double tau, std::span<const std::int64_t> visit, Run& run);
/// An edge that stays whatever its weight: the signed weight, at least the threshold in size.
Edge kept_edge(const Dag& dag, std::int64_t from, std::int64_t to);

} // namespace cape
