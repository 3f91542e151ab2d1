// cape.dag:refinement: edges by held-out tests (docs/method.md, Refinement and Threshold).
module;
#include <cstdint>
#include <span>
#include <vector>
export module cape.dag:refinement;
import cape.core;
import cape.graph;
import :options;

export namespace cape {

/// Squared errors of predicting one column from others, N values in the units of x squared.
/// Cross-fitted in 1 + floor(5000 / N) folds, within 2 and 10: the rows are parted at random, and a
/// network of refine_hidden sigmoid units with a linear part, trained for refine_epochs epochs on
/// all rows but those of a fold, predicts these; with sem linear, least squares does.
/// Without parents, the squared distance from the column's mean; a fit that leaves the range of
/// float predicts that mean too. `x` may have any centre and scale. A pure function of the seed and
/// of the contents of the columns: neither their numbers nor the order of parents change a bit. N
/// >= 10; target and parents are different columns of x, none constant. O(refine_epochs max(N,
/// 5000) |parents| refine_hidden); with sem linear, O(N M^2 + |parents|^3).
std::vector<double> cross_fitted_error(const MatrixView& x, std::int64_t target,
                                       std::span<const std::int64_t> parents,
                                       const DagOptions& options, Run& run);

/// What backward elimination by held-out tests finds; the weights of the edges are t.
struct TestedEdges {
  std::vector<Edge> kept;   ///< edges that stay, by rising (from, to)
  std::vector<Edge> tested; ///< these, and the dropped ones with their last t
  /// The tested ones by the root of the share of the error without the cause that goes with it: 0
  /// to 1, whatever the units; of linear relations the partial correlation given the other causes
  std::vector<Edge> strength;
};
/// A graph that such tests decided on.
struct TestedGraph {
  TestedEdges edges;
  std::vector<std::int64_t> order; ///< every edge that stays runs along it
};

/// A DAG from learned weights: their order (strongest edges first, without those that close a
/// cycle), improved by moving single columns up to refine_window positions, at most 6 sweeps, as
/// long as the cross-fitted error of predicting every column from its predecessors falls; then
/// backward elimination of predecessors by a paired t-test of the errors with and without them over
/// all rows (the larger t of the errors as they are and of errors up to 2.34 times their 95 %
/// quantile, three standard deviations of normal ones), the smallest t first, until all t are at
/// least refine_t and above 0. The error is the sum of mean squared errors, which has to fall by
/// 0.003 of its mean over the columns, or, with unequal_variances, the sum of half their
/// logarithms, which has to fall by 0.003. Only the 10 strongest partners of a column (30 with sem
/// linear), by max(|A_ij|, |A_ji|) and made symmetric, are tested as its causes. x: N x M, finite,
/// N >= 10, no column constant; weights: M x M, finite, the diagonal is ignored. About 4 M
/// refine_window regressions a sweep, and up to M min(M, 10)^2 / 2 for the elimination (linear: 30
/// for 10).
TestedGraph refine(const MatrixView& x, const MatrixView& weights, bool unequal_variances,
                   const DagOptions& options, Run& run);

/// How early each column (row of the result) enters the lasso's path of each other one, M x M: the
/// mean over 200 halves of the rows, each with penalties divided by U(0.2, 1), of (6 - k) / 5 for
/// the k-th to enter of the first five; 1: always first, 0: never among them (N. Meinshausen and P.
/// Buehlmann, Stability selection, 2010; scored as A.-C. Haury et al., TIGRESS, 2012). 2,000 evenly
/// spaced rows at most are looked at. x finite, at least 4 rows; else Error(invalid_argument). Same
/// seed, same bits. O(200 N M^2), parallel.
Matrix stability_selection(const MatrixView& x, Run& run);

/// p of an edge from x to y given other causes and the t of the refinement: twice the smaller of
/// Student's for t, and of an F test of the normal scores of x and their squares in a regression of
/// those of y, with those of the other causes; without the squares where fewer than 30 rows of
/// either are away from the value that most have, and the other way round, from y to x, where most
/// rows of y have one value: F tests take what is explained for normal. Where most rows of either
/// have one value, it is that of Fisher's exact test of having another, whatever the others and t:
/// neither F nor t hold for few rows. x and y of N >= 2 finite values, others N x any number;
/// Error(invalid_argument, dim_mismatch). 1 where rows are too few for them. O(N log N + N
/// others^2).
double edge_p_value(std::span<const double> x, std::span<const double> y, const MatrixView& others,
                    double t);

/// Dag::partners of a table alone: N x M, finite, N >= 2, of which at least 2 columns vary, else
/// Error(invalid_argument). O(N M^2), parallel.
SparseMatrix strongest_partners(const MatrixView& x, Run& run);

/// A threshold, and what speaks for it.
struct ThresholdSuggestion {
  double threshold = 0;
  std::int64_t effects = 0; ///< columns whose causes were tested; 0: there is no suggestion
  std::int64_t causes = 0;  ///< that the tests keep for them
  /// Edges into those columns that the weights above threshold have too many or lack
  std::int64_t differing = 0;
};

/// A threshold for a graph that was learned from x (N x M, finite), by tests of 60 columns drawn by
/// the seed of run: their causes are chosen among ten partners each as the refinement does it, on
/// at most 5,000 evenly spaced rows, and the threshold is the one with the fewest edges into them
/// that are too many or too few. graph has all weights, see unpruned_graph(); those below 0.02 have
/// no say. Of the options sem and refine_* are used, which should be those of that fit; x is what
/// it was learned from (within batches, if there are any, the caller centres it). Some 60 * 30
/// regressions, whatever M. Error(invalid_argument, dim_mismatch).
ThresholdSuggestion suggest_threshold(const MatrixView& x, const Digraph& graph,
                                      const DagOptions& options, Run& run);

} // namespace cape
