// cape.evaluate: how close a graph is to the true one, how much of a graph an embedding keeps, and
// how good a clustering is.
module;
#include <cstdint>
#include <span>
export module cape.evaluate;
import cape.core;
import cape.graph;

export namespace cape {

/// Counts over ordered pairs of nodes, with the conventions of NOTEARS and gCastle but for fpr,
/// whose pairs are ordered here: a reversed edge counts once in shd, and as a false positive in fdr
/// and precision. A ratio to nothing (no true edge, no estimated edge) is 0.
struct GraphMetrics {
  std::int64_t true_edges = 0, estimated_edges = 0;
  std::int64_t correct = 0;  ///< right direction
  std::int64_t reversed = 0; ///< the other direction alone is true
  std::int64_t missing = 0;  ///< true, and absent both ways
  std::int64_t extra = 0;    ///< estimated, and untrue both ways
  std::int64_t shd = 0;      ///< missing + extra + reversed
  double tpr = 0;            ///< correct / true_edges
  double fdr = 0;            ///< (reversed + extra) / estimated_edges
  double fpr = 0;            ///< (reversed + extra) / (ordered pairs without a true edge)
  double precision = 0;      ///< correct / estimated_edges
  double recall = 0;         ///< tpr by its other name
  double f1 = 0;             ///< harmonic mean of precision and recall
};
/// Error(dim_mismatch) if the graphs differ in size. Only presence and direction of edges count.
/// O(E log M).
GraphMetrics compare_graphs(const Digraph& estimated, const Digraph& truth);

/// Areas under the precision-recall curve (average precision: the sum of the rises in recall times
/// the precision after them, pairs of one score as one step) and under the ROC curve (ties count
/// one half). auprc is 0 without true pairs; auroc is 0.5 without true or without untrue pairs.
struct ScoreMetrics {
  double auprc = 0;
  double auroc = 0;
};
/// Of scores over all ordered pairs m != n; scores is M x M, larger = more likely m -> n, and its
/// diagonal is not read. Error(dim_mismatch) if it does not fit the graph, Error(invalid_argument)
/// for a score that is not finite; Error(cancelled). O(M^2 log M).
ScoreMetrics compare_scores(const MatrixView& scores, const Digraph& truth, Run& run);
ScoreMetrics compare_scores(const MatrixView& scores, const Digraph& truth);

/// What an embedding keeps of its graph, over the nodes that have edges; weights count as
/// strengths(), as in embedding. A rank correlation of what does not vary is 0.
struct EmbeddingMetrics {
  double distance = 0;       ///< gd: Spearman(undirected hops, distance), connected pairs
  double strength = 0;       ///< str: Spearman(-ln best directed path, distance), pairs with a path
  double parents_closer = 0; ///< pc: edges whose cause has the smaller radius, of all
  double specificity = 0;    ///< desc: Spearman(-number of descendants, radius)
  double precision = 0;      ///< MAP: mean average precision of neighbours by distance, the nodes
                             ///< at one distance as one step
};
/// distances is M x M, radius has M elements. All 0 for a graph without edges. Error(dim_mismatch)
/// for other sizes, Error(invalid_argument) for what is not finite; Error(cancelled).
/// O(M^2 log M + M E log M), three matrices of M x M; the hops and paths parallel.
EmbeddingMetrics compare_embedding(const Digraph& graph, const MatrixView& distances,
                                   std::span<const double> radius, Run& run);

/// Adjusted Rand index of two labellings (L. Hubert and P. Arabie, Comparing partitions, 1985): 1
/// for the same partition, 0 on average for unrelated ones; labels are any numbers. 1 if both are
/// one cluster, or both all singletons. Error(dim_mismatch) if the lengths differ,
/// Error(invalid_argument) if they are 0. O(n log n).
double adjusted_rand_index(std::span<const std::int64_t> a, std::span<const std::int64_t> b);
/// Mutual information of two labellings over the arithmetic mean of their entropies, in [0, 1]; 1
/// if both are one cluster. Errors and cost as for adjusted_rand_index().
double normalized_mutual_information(std::span<const std::int64_t> a,
                                     std::span<const std::int64_t> b);
/// Mean silhouette width of the rows of x under Euclidean distance, in [-1, 1] (P. J. Rousseeuw,
/// Silhouettes, 1987): (b - a) / max(a, b) for the mean distances a to the rest of a row's own
/// cluster and b to the nearest other one; singletons count 0. Needs at least two clusters. O(n^2
/// p), parallel. Error(dim_mismatch) unless there is a label for every row; Error(cancelled).
double silhouette(const MatrixView& x, std::span<const std::int64_t> labels, Run& run);

} // namespace cape
