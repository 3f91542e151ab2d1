// cape.hyperbolic (Step II): hyperbolic geometry, and the embedding of a weighted graph in it so
// that distance is causal strength and radius is causal specificity (paper, sec_hyperbolic;
// docs/method.md for the objective). The hyperboloid model is H^d = { p in R^(d+1): <p,p>_L = -1,
// p0 > 0 }.
module;
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>
export module cape.hyperbolic;
import cape.core;
import cape.graph;

export namespace cape {

/// The hyperboloid model. Points and tangents have d+1 coordinates, the time-like one first;
/// outputs may be the inputs. O(d) each. Error(dim_mismatch) for sizes that do not fit or d < 1;
/// Error(invalid_argument) for what is not finite, points off the manifold and vectors that are not
/// tangent (by more than 1e-6 of their size), and results beyond the range of double: points
/// farther out than 350, tangents longer than 1e150.
namespace lorentz {
/// <p,q>_L = -p0 q0 + sum p_i q_i, of any two vectors.
double inner(std::span<const double> p, std::span<const double> q);
/// Length sqrt(<v,v>_L) of a tangent at p, without cancellation; v0 follows from the others and is
/// not looked at.
double norm(std::span<const double> p, std::span<const double> v);
/// Geodesic distance 2 asinh(sqrt(<p-q,p-q>_L) / 2), the difference written as a sum of positive
/// terms: exact 0 at coincidence, relative precision at any radius (differences of coordinates
/// below 1e-154 count as none).
double distance(std::span<const double> p, std::span<const double> q);
/// Recompute p0 = sqrt(1 + |p~|^2), so that p is on the hyperboloid.
void project(std::span<double> p);
/// Orthogonal projection of u on the tangent space at p: u + <p,u>_L p (paper, prop_proj).
void project_tangent(std::span<const double> p, std::span<const double> u, std::span<double> out);
/// Exponential map (paper, prop_exp), its end put back on the hyperboloid; exp of 0 is p itself.
/// A path stops once it is 300 minus the radius of p long.
void exp(std::span<const double> p, std::span<const double> v, std::span<double> out);
/// Logarithm: the tangent at p whose exponential is q; 0 at coincidence.
void log(std::span<const double> p, std::span<const double> q, std::span<double> out);
/// Parallel transport of the tangent v from p to q along the geodesic.
void transport(std::span<const double> p, std::span<const double> q, std::span<const double> v,
               std::span<double> out);
/// To the Poincare ball: e = p~ / (1 + p0) (paper, supp_equivalence); e has d coordinates. Beyond a
/// radius of about 35 that rounds to norm 1: e is then shortened until |e| < 1 strictly.
void to_poincare(std::span<const double> p, std::span<double> e);
/// All distances between the rows of a (m x (d+1)) and b (n x (d+1)): m x n, by matrix products
/// where these keep at least 12 digits and from the points themselves elsewhere. Errors as above.
/// O(m n d), parallel.
Matrix distances(const MatrixView& a, const MatrixView& b, Run& run);
} // namespace lorentz

/// The Poincare ball model, d coordinates, |e| < 1. Outputs may be the inputs. O(d) each.
/// Error(dim_mismatch) for sizes that do not fit or d < 1; Error(invalid_argument) for points
/// outside the open ball and vectors that are not finite.
namespace poincare {
/// arcosh(1 + 2 |a-b|^2 / ((1-|a|^2)(1-|b|^2))) (paper, eq_pdistance), as
/// 2 asinh(|a-b| / sqrt((1-|a|^2)(1-|b|^2))): no cancellation but that of 1-|a| (differences of
/// coordinates below 1e-154 count as none).
double distance(std::span<const double> a, std::span<const double> b);
/// To the hyperboloid: (1 + |e|^2, 2e) / (1 - |e|^2) (paper, supp_equivalence).
void to_lorentz(std::span<const double> e, std::span<double> p);
/// Exponential map: a (+) tanh(|v| / (1-|a|^2)) v/|v|.
void exp(std::span<const double> a, std::span<const double> v, std::span<double> out);
/// Logarithm: the tangent at a whose exponential is b; 0 at coincidence.
void log(std::span<const double> a, std::span<const double> b, std::span<double> out);
/// Mobius addition a (+) b.
void add(std::span<const double> a, std::span<const double> b, std::span<double> out);
/// All distances between the rows of a (m x d) and b (n x d): m x n. O(m n d), parallel.
Matrix distances(const MatrixView& a, const MatrixView& b, Run& run);
} // namespace poincare

enum class Objective : std::int32_t {
  soft,     ///< soft positives over all path lengths + radius ranking + PageRank (default)
  literal,  ///< the paper's eq_losscon: anchor = cause, weight |A_mn|; puts causes OUTSIDE effects
  effect,   ///< anchor = effect, positives = ancestors within k hops, weight = best path
  symmetric ///< positives = ancestors and descendants within k hops, weight = best path
};
enum class Optimizer : std::int32_t { radam, rsgd };
/// Where the distances of the objective are taken. euclidean is the paper's ablation without
/// hyperbolic space: the points are descended in flat space, and then read as normal coordinates at
/// the origin of the hyperboloid, so that radii stay and results have the same form.
enum class Space : std::int32_t { hyperbolic, euclidean };

/// Where the descent starts.
enum class Start : std::int32_t {
  automatic,
  scaling, ///< classical scaling of the distances in the graph, among landmarks if they are many
  random   ///< normal with standard deviation 0.1, about the origin
};

/// What of Step I is embedded, see fit(); embed_dag() embeds the graph that it is given.
enum class Coverage : std::int32_t {
  edges,  ///< the graph: features without edges are put at the origin
  support ///< and for features without edges what has most to do with them, see covered_graph()
};

/// NaN and -1 mean automatic. fields() has the ranges, the meanings and the sources.
struct EmbedOptions {
  std::int64_t dims = 64; ///< d; the transformer's feature dimension is 2d
  Coverage coverage = Coverage::support;
  Objective objective = Objective::soft;
  Optimizer optimizer = Optimizer::radam;
  Space space = Space::hyperbolic;
  double hop_cost = 2.0;         ///< c: an edge costs c - ln |A|
  double soft_temperature = 3.0; ///< ts of the targets
  /// tau of the distances; automatic: 0.25 for dims >= 8, else 0.5 (soft), 1 (others)
  double temperature = std::numeric_limits<double>::quiet_NaN();
  double rank_weight = 1.0; ///< of the ranking of radii along edges (soft objective)
  double rank_margin = 0.02;
  double rank_temperature = 0.01;
  double level_weight =
      1.0; ///< of the term that makes radii comparable everywhere (soft objective)
  /// of radii, from the most to the least general node; automatic: 0.15 for dims >= 8, else 1
  double level_spread = std::numeric_limits<double>::quiet_NaN();
  /// lambda_g; automatic: 0.01 (soft, of M pi), 0.1 (others, of pi)
  double generality_weight = std::numeric_limits<double>::quiet_NaN();
  double restart = 0.15;    ///< w of the PageRank
  std::int64_t k_hop = 2;   ///< literal, effect and symmetric objectives
  std::int64_t epochs = -1; ///< at most; automatic: 500 (soft), 1000 (others)
  /// On a plateau, when the mean loss of 20 epochs is below that of the 20 before by less than this
  /// part of the whole fall so far, the learning rate is cut to a quarter, and below 2 % of the
  /// first the descent ends; 0: never. Not looked at where negatives are drawn
  double tolerance = 1e-3;
  /// Falls to 2 % of it along a cosine; automatic: 0.1 (soft), 0.01 (others), times M for rsgd
  double learning_rate = std::numeric_limits<double>::quiet_NaN();
  /// Nodes drawn at every epoch to stand for all that are not near; 0: none, all pairs count;
  /// automatic: 0 up to 5000 nodes with edges and for the k-hop objectives, else 512
  std::int64_t negatives = -1;
  std::int64_t positives = 64; ///< targets of a node where negatives are drawn
  double max_radius = 16.0;    ///< points are kept within this distance of the origin
  Start start = Start::automatic; ///< automatic: scaling for the soft objective, else random
  /// Epochs at the beginning with a tenth of the learning rate; automatic: 10 for rsgd, else 0
  std::int64_t burn_in = -1;
};
OptionFields fields(EmbedOptions& options);

struct EmbedEpoch {
  std::int64_t epoch = 0; ///< from 1
  double loss = 0;
  double contrastive = 0;
  double ranking = 0;    ///< of radii, along edges and by level
  double generality = 0; ///< the PageRank term
};

struct Embedding {
  Matrix hyperboloid;             ///< M x (d+1), one row a node
  Matrix poincare;                ///< M x d
  std::vector<double> generality; ///< psi = 1 - |e| (paper, def_causal generality)
  std::vector<double> radius;     ///< hyperbolic distance to the origin = causal specificity
  std::vector<double> pagerank;
  std::vector<EmbedEpoch> history;
  std::int64_t n_clamped = 0; ///< times a point was held at max_radius
  /// Edges whose cause is not nearer the origin than their effect. Where radii are ranked (soft
  /// objective, rank_weight above 0) these are edges on cycles: at the end of the descent radii are
  /// moved, by as little as that takes, until all others are in order.
  std::int64_t n_out_of_order = 0;
  std::vector<std::string> warnings; ///< sentences for the user
  /// The loss moved by less than 1e-3 of itself over the last tenth of the epochs (at least 10),
  /// and, where radii are ranked, they follow the order along every edge that lies on no cycle.
  bool converged = false;
  bool stopped_early = false; ///< on a plateau (options.tolerance), before the last epoch
  /// Where negatives were drawn: the part of the targets beyond the nearest options.positives, for
  /// which those of drawn nodes stand; else 0.
  double truncated_mass = 0;
};

/// Embed a graph (a DAG or any directed graph; weights by absolute value; if any |weight| is above
/// 1 all are divided by the largest). Nodes without edges have no place in the causal order: they
/// take no part in the objective and are put at the origin (angles 0 in Step III: no position), so
/// that the others lie where they would without them. A graph without edges needs no descent: its
/// history is one epoch of loss 0. M = 1, parts that are not connected and cycles are fine. The
/// soft objective starts from classical scaling of the graph's distances, the others from N(0,
/// 0.1^2) around the origin; full-batch steps of at most length 2. Where radii are ranked, they
/// follow the order of the graph at the end, along every edge that lies on no cycle, however deep
/// it is and whatever its weights (the last epoch of the history is before that). Same seed, same
/// bits, for any number of threads; renumbering the nodes renumbers the result (up to a permutation
/// of nodes that the graph does not tell apart). Error(invalid_argument) for an option out of
/// range, a graph without nodes, or a temperature so low that exp(-2 max_radius / temperature)
/// underflows; Error(out_of_memory), naming the need, before anything is allocated if it is above
/// the machine's memory. Memory: embed_dag_memory(). O(epochs M^2 d), parallel; with drawn
/// negatives O(epochs M (positives + negatives) d), from landmarks. docs/method.md, section 3;
/// paper, eq_OptH.
Embedding embed_dag(const Digraph& graph, const EmbedOptions& options, Run& run);

/// The largest working set of embed_dag() on a graph of M nodes that all have edges, in bytes:
/// 8 (3.5 M^2 + 6 M (d+1)), and with drawn negatives 8 M (8 positives + 2 negatives + 6 (d+1) +
/// 700). Measured: 0.9 of it at M = 3000, 1.06 to 1.09 times it at M = 10,000 with drawn negatives.
/// Error(invalid_argument) if nodes is negative or for options out of range.
double embed_dag_memory(std::int64_t nodes, const EmbedOptions& options);
/// Seconds that it takes at most, without ending on a plateau: a rough figure for one thread of a
/// present server CPU, from the operations that there are. Error as above.
double embed_dag_seconds(std::int64_t nodes, const EmbedOptions& options);

/// The same, from the checkpoint on if it is not empty, and keeping it up to date: after an
/// Error(cancelled), or any other, another call goes on after the last whole epoch. The bits of the
/// result are those of a fit that was not interrupted. Error(invalid_argument) if the checkpoint is
/// that of another graph, options or seed. Costs up to 32 M (d+2) bytes more.
Embedding embed_dag(const Digraph& graph, const EmbedOptions& options, Run& run,
                    Checkpoint& checkpoint);

/// The objective at given points, M x (d+1), and its Euclidean gradient with respect to their
/// coordinates (same shape; null if not wanted), for tests and other optimisers. options.dims must
/// be d. With options.space euclidean the gradient is with respect to the normal coordinates at the
/// origin (column 0 is 0). Off the hyperboloid the objective is continued with d_l =
/// arcosh(-<p,q>_L) and r = asinh |p~|; for descent turn the gradient by g_l and project it (paper,
/// Eq_euc_rieman). Error(dim_mismatch) for another shape; Error(invalid_argument) for points that
/// are not finite, not on the hyperboloid or beyond max_radius, and as embed_dag().
double embedding_loss(const Digraph& graph, const MatrixView& points, const EmbedOptions& options,
                      Matrix* gradient, Run& run);

} // namespace cape
