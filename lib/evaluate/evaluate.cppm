// cape.evaluate: how close a graph is to the true one, and how good a clustering is.
module;
#include <cstdint>
#include <span>
export module cape.evaluate;
import cape.core;
import cape.graph;

export namespace cape {

/// Counts over ordered pairs of nodes. A reversed edge counts once in shd, and as a false positive in
/// fdr and precision (the convention of NOTEARS and gCastle).
struct GraphMetrics {
  std::int64_t true_edges = 0, estimated_edges = 0;
  std::int64_t correct = 0;  ///< right direction
  std::int64_t reversed = 0; ///< the other direction alone is true
  std::int64_t missing = 0;  ///< true, and absent both ways
  std::int64_t extra = 0;    ///< estimated, and untrue both ways
  std::int64_t shd = 0;      ///< missing + extra + reversed
  double tpr = 0;            ///< correct / true_edges
  double fdr = 0;            ///< (reversed + extra) / estimated_edges; 0 when none is estimated
  double fpr = 0;            ///< (reversed + extra) / (ordered pairs without a true edge)
  double precision = 0, recall = 0, f1 = 0;
};
/// Error(dim_mismatch) if the graphs differ in size. Only presence and direction of edges count.
GraphMetrics compare_graphs(const Digraph& estimated, const Digraph& truth);

/// Area under the precision-recall curve (average precision, ties as one step) and the ROC curve of
/// scores over all ordered pairs m != n; scores is M x M, larger = more likely m -> n. NaN-free:
/// without true (or without untrue) pairs the area is 0 (AUROC: 0.5).
struct ScoreMetrics {
  double auprc = 0;
  double auroc = 0;
};
ScoreMetrics compare_scores(const MatrixView& scores, const Digraph& truth);

/// Adjusted Rand index and normalised mutual information (arithmetic mean) of two labellings.
double adjusted_rand_index(std::span<const std::int64_t> a, std::span<const std::int64_t> b);
double normalized_mutual_information(std::span<const std::int64_t> a,
                                     std::span<const std::int64_t> b);
/// Mean silhouette width of the rows of x under Euclidean distance; singletons count 0. Needs at least
/// two clusters. O(n^2 p).
double silhouette(const MatrixView& x, std::span<const std::int64_t> labels, Run& run);

} // namespace cape
