// cape.dag:objective: the objective of Step I and its parts, for other optimisers and for tests.
module;
#include <cstdint>
#include <span>
#include <vector>
export module cape.dag:objective;
import cape.core;
import :options;

export namespace cape {

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
/// products of that rest and the six columns taken first, which shows causes that act together
/// only. Evenly spaced rows are looked at, 8192 at most, and above 10,000 columns 8192 * 10,000 /
/// M, but 2048 at least. x finite, at least 2 rows; else Error(invalid_argument). O(N M^2 + N M
/// count^2) time, O(M (N + count)) memory, for N rows looked at.
BasicMatrix<std::int64_t> candidate_causes(const MatrixView& x, std::int64_t count, Run& run);

/// Factors of lambda for every pair, M x M, 0 on the diagonal where there is none: (q* / q)^g
/// within [0.3, 4], with q = cor(x_i, x_j)^2 + max(0, cor(u_i, x_j)^2 - 2 log M / N) where u_i is
/// what a line in x_i leaves of x_i^2, q* the floor(1.5 M)-th largest q, and g = min(1, 5 M / N):
/// with few rows the penalty falls on what shows nothing, with many on all alike. 8192 evenly
/// spaced rows at most are looked at. x finite, at least 2 rows; else Error(invalid_argument). O(N
/// M^2), parallel.
Matrix adaptive_penalty(const MatrixView& x, Run& run);

/// Number of parameters of options.sem on a table with this many features (>= 1).
std::int64_t dag_parameter_count(std::int64_t features, const DagOptions& options);

/// The training objective of Step I on all rows of x (centred by the caller), for other optimisers
/// and for tests: -ELBO + lambda |W|_1 + l2/2 |.|^2 + rho/2 h^2 + alpha h (paper, eq_lossdag), and
/// its gradient if that is not null. One lambda for all pairs, see adaptive_penalty(); r of the
/// noise is columns / rows. A missing value is not drawn here, as learn_dag() does: as a cause it
/// is the mean of its column, as an effect it is left out. The parameters start with the edge
/// weights, channel k of i -> j at (j * channels + k) * features + i (channels: hidden for sem mlp,
/// else 1); self weights must be 0 and their gradient is 0. With options.candidates = p, cause
/// number c of effect j, which is candidate_causes(x, p)(c, j), takes the place of i and p that of
/// features. Computed in double, and in float only if options.precision is float32. With
/// options.rank = r the parameters are U and V (features x r, by columns), |W|_1 is sum_a |u_a|_1
/// |v_a|_1 >= |UV'|_1, h that of low_rank_acyclicity(), and self weights do not count as causes.
double dag_loss(const MatrixView& x, std::span<const double> parameters, double rho, double alpha,
                const DagOptions& options, std::vector<double>* gradient = nullptr);

} // namespace cape
