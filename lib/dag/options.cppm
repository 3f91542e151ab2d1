// cape.dag:options: how Step I learns.
module;
#include <cstdint>
#include <limits>
export module cape.dag:options;
import cape.core;

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
  /// of A is at most their number, and that of other sparse graphs is high (docs/method.md). At
  /// most M; sem linear, constraint expm, all columns as candidates and no Knowledge
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
  /// h > 1e-4. Far below it the weights' steps are larger than the cycles left, and a larger
  /// penalty only wears down the edges that are real.
  double h_tolerance = std::numeric_limits<double>::quiet_NaN();
  /// A parent stays if dropping it raises the held-out error by t >= this. Automatic: 3.04 - 200 /
  /// N for N rows, which is 3 for 5,000, but at least 1.
  double refine_t = std::numeric_limits<double>::quiet_NaN();
  /// Rate of false discoveries among all pairs at which the refined graph is cut; 1: not at all
  double refine_fdr = 0.1;
  /// Positions that the insertion search tries to either side. Automatic: none beyond 100 columns
  /// or with less than twice as many rows, else all for sem linear and 3 for mlp
  std::int64_t refine_window = -1;
  std::int64_t refine_hidden = 32; ///< units of a network; neither is used for sem linear
  std::int64_t refine_epochs = 100;
  /// Fits to 80 % of the rows, with 30 % of the epochs, whose mean is taken; 0: one fit to all
  /// rows. Automatic: 10 where there are up to 500 columns and less than twice as many rows, else
  /// none
  std::int64_t bags = -1;
};
OptionFields fields(DagOptions& options);

/// Whether learn_dag() refines the graph of that many columns that vary, if no value is perturbed
/// or weighted. The order of standardized linear relations cannot be learned, so that
/// there is nothing to refine automatically.
bool refines(const DagOptions& options, std::int64_t columns);

} // namespace cape
