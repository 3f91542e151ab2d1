// cape.graph: weighted directed graphs, as Step I learns them and Step II embeds them.
// A[m,n] is m -> n everywhere: the row is the cause, the column the effect.
module;
#include <cstdint>
#include <limits>
#include <span>
#include <vector>
export module cape.graph;
import cape.core;

export namespace cape {

struct Edge {
  std::int64_t from = 0; ///< the cause
  std::int64_t to = 0;   ///< the effect
  double weight = 0;
  bool operator==(const Edge&) const = default;
};

/// A weighted directed graph on nodes 0 .. size()-1: at most one edge per ordered pair, no loops,
/// no zero weights; weights may be negative. Edges are stored in rows (causes), sorted by (from,
/// to).
class Digraph {
public:
  Digraph() = default;
  /// A graph without edges. Error(invalid_argument) if nodes < 0.
  explicit Digraph(std::int64_t nodes);
  /// From edges in any order. Error(invalid_argument) for an end outside the graph, a loop, a pair
  /// given twice, or a weight that is not finite; edges of weight 0 are left out. O(E log E).
  Digraph(std::int64_t nodes, std::vector<Edge> edges);
  /// From a square adjacency matrix with a zero diagonal, A[m,n] = weight of m -> n.
  static Digraph from_adjacency(const MatrixView& a);

  std::int64_t size() const noexcept { return nodes_; }
  const std::vector<Edge>& edges() const noexcept { return edges_; }
  /// The edges out of a node, by rising effect.
  std::span<const Edge> out(std::int64_t node) const {
    return {edges_.data() + offsets_[static_cast<std::size_t>(node)],
            edges_.data() + offsets_[static_cast<std::size_t>(node) + 1]};
  }
  /// The dense M x M adjacency matrix.
  Matrix adjacency() const;
  /// The same graph with its nodes renumbered: node i of this becomes node to[i].
  Digraph renumbered(std::span<const std::int64_t> to) const;
  bool operator==(const Digraph&) const = default;

private:
  std::int64_t nodes_ = 0;
  std::vector<Edge> edges_;
  std::vector<std::int64_t> offsets_{0};
};

/// The same graph with weights as strengths in (0, 1]: absolute values, divided by the largest if
/// any is above 1, and not below the smallest normal number. O(E log E).
Digraph strengths(const Digraph& graph);

/// Causes before effects (Kahn; the smallest free node first). Error(invalid_argument) if there is
/// a cycle. O(M log M + E).
std::vector<std::int64_t> topological_order(const Digraph& graph);
/// Is there no directed cycle? O(M log M + E).
bool is_acyclic(const Digraph& graph);

/// The strongly connected component of every node: numbers from 0, the same for two nodes exactly
/// if each reaches the other; an edge between two components runs from the higher number to the
/// lower. O(M + E) (R. Tarjan, SIAM J. Comput. 1 (1972) 146-160).
std::vector<std::int64_t> strong_components(const Digraph& graph);

/// Edges with |weight| > tau, and of those the ones that close no cycle with stronger ones: edges
/// enter from the strongest down, and one that would close a cycle is left out. The result is
/// acyclic at any tau >= 0, and every edge left out is the weakest of a cycle (docs/method.md,
/// section 2). Ties go to the smaller (from, to). O(E log E) when tau alone suffices;
/// else each strongly connected component of K nodes adds O(K^2 P / 64) and K^2 bits of memory, for
/// the P pairs of its nodes that a path joins at most.
/// Error(invalid_argument) unless tau is finite and not negative.
struct AcyclicProjection {
  Digraph graph;
  std::int64_t n_below_threshold = 0; ///< edges removed by tau
  std::vector<Edge> removed;          ///< edges removed for acyclicity, strongest first
};
AcyclicProjection project_acyclic(const Digraph& graph, double tau);
/// The same, polling the run from edge to edge: components of thousands of nodes take seconds.
AcyclicProjection project_acyclic(const Digraph& graph, double tau, Run& run);

/// Stationary vector of the random walk from effects to their causes, restarted with probability w
/// (paper, eq_gregariousness): P[n,m] = |A[m,n]| / sum_m |A[m,n]|; a node without causes, for which
/// the paper divides by zero, restarts everywhere alike. Positive, sums to 1; larger means causally
/// more general. 0 < restart < 1, else Error(invalid_argument). O(E log(1/eps) / restart), and on
/// an acyclic graph at most O(E M). Error(cancelled).
std::vector<double> pagerank(const Digraph& graph, double restart, Run& run);

/// Pairs (m, n, w) with n reachable from m in 1..hops directed steps, n != m, and w the largest
/// product of |weights| over such paths (weights above 1 count as 1; not below the smallest normal
/// number). Sorted by (from, to). O(M hops E) at worst. Error(invalid_argument) if hops < 1;
/// Error(cancelled).
std::vector<Edge> k_hop_strengths(const Digraph& graph, std::int64_t hops, Run& run);

/// Smallest sum of -ln |weight| over all directed paths, M x M: +inf where there is no path, 0 on
/// the diagonal; negative where a product of weights is above 1. O(M (M + E) log M), parallel.
/// Error(invalid_argument) for a weight above 1 on a cycle, which would be gone round for ever;
/// Error(cancelled).
Matrix best_path_lengths(const Digraph& graph, Run& run);

/// Largest product of |weights| over all directed paths, M x M; 0 where there is no path and not
/// below the smallest normal number where there is one, 1 on the diagonal. Cost and errors as
/// above; Error(invalid_argument) for a product beyond the range of a double too.
Matrix best_path_strengths(const Digraph& graph, Run& run);

/// Shortest distances over the undirected graph when an edge costs hop_cost - ln min(|weight|, 1)
/// (docs/method.md, section 3); +inf where not connected. An infinite hop_cost counts hops.
/// M x M, symmetric. O(M (M + E) log M), parallel. Error(invalid_argument) unless hop_cost
/// is in [0, 1e290] or infinite; Error(cancelled).
Matrix undirected_distances(const Digraph& graph, double hop_cost, Run& run);

/// The same distances from some nodes alone: M x sources. O(sources (M + E) log M), parallel. Error
/// (invalid_argument) for a source outside the graph too.
Matrix undirected_distances_from(const Digraph& graph, std::span<const std::int64_t> sources,
                                 double hop_cost, Run& run);

/// The `count` nodes nearest to every node by the same distances (fewer where fewer can be
/// reached), the nearest first and of equal ones the smaller number; the weight is the distance.
/// Node m's are near[offsets[m]] .. near[offsets[m+1] - 1]. O(M count degree log), parallel. Error
/// (invalid_argument) unless count >= 1 and hop_cost >= 0; Error(cancelled).
struct NearestNodes {
  std::vector<Edge> near;
  std::vector<std::int64_t> offsets;
};
NearestNodes nearest_nodes(const Digraph& graph, std::int64_t count, double hop_cost, Run& run);

/// Numbers of the nodes in an order that depends on the graph alone and not on how its nodes are
/// numbered, except among nodes that the graph does not tell apart (colour refinement on weights,
/// ties broken one node at a time): graph.renumbered(inverse of the order) is the same for every
/// numbering unless nodes that look alike from all their neighbourhoods are not interchangeable, as
/// in some regular graphs of equal weights. Entry k is the node that comes k-th. O(E log E) when
/// the weights differ. Error(cancelled).
std::vector<std::int64_t> canonical_order(const Digraph& graph, Run& run);

} // namespace cape
