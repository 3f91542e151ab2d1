// cape.hyperbolic (Step II): hyperbolic geometry, and the embedding of a weighted graph in it so
// that distance is causal strength and radius is causal specificity (paper, sec_hyperbolic;
// docs/method.md for the objective). The hyperboloid model is H^d = { p in R^(d+1): <p,p>_L = -1,
// p0 > 0 }.
module;
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>
export module cape.hyperbolic;
import cape.core;
import cape.optim;
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

/// NaN and -1 mean automatic. fields() has the ranges, the meanings and the sources.
struct EmbedOptions {
  std::int64_t dims = 64; ///< d; the transformer's feature dimension is 2d
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
/// follow the order of the graph at the end, along every edge that lies on no cycle, however deep it
/// is and whatever its weights (the last epoch of the history is before that). Same seed, same bits, for any
/// number of threads; renumbering the nodes renumbers the result (up to a permutation of nodes that
/// the graph does not tell apart).
/// Error(invalid_argument) for an option out of range, a graph without nodes, or a temperature so
/// low that exp(-2 max_radius / temperature) underflows; Error(out_of_memory), naming the need,
/// before anything is allocated if it is above the machine's memory. Memory: embed_dag_memory().
/// O(epochs M^2 d), parallel; with drawn negatives O(epochs M (positives + negatives) d), from
/// landmarks. docs/method.md, section 3; paper, eq_OptH.
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

// Not exported: what the implementation units of this stage share. Points are columns here.
namespace cape {

/// The rows of a view as columns, p0 computed anew; throws unless they are on the hyperboloid.
Matrix hyperboloid_points(const MatrixView& view, std::string_view name);
/// Shorten e until |e| < 1 strictly.
void keep_in_ball(std::span<double> e);
/// Checks of arguments: error(dim_mismatch) unless of the same length, error(invalid_argument)
/// unless finite.
void check_sizes(std::span<const double> given, std::span<const double> right,
                 std::string_view name);
void check_vector(std::span<const double> v, std::string_view name);
void check_same_columns(const Matrix& a, const Matrix& b);

namespace lorentz {
/// Along the geodesic from p with the unit tangent u for a time t of either sign: to `end`, and u
/// becomes the velocity there, u transported. Takes its arguments to be right.
void follow(std::span<const double> p, std::span<double> u, double t, std::span<double> end);
} // namespace lorentz

/// The order that a graph asks of its nodes: along every edge that lies on no cycle, the effect
/// above its cause. (A cycle asks for none.)
class CausalOrder {
public:
  explicit CausalOrder(const Digraph& graph);
  std::int64_t size() const noexcept { return std::ssize(edges_); } ///< edges on no cycle
  /// Edges along which a value does not rise.
  std::int64_t count_against(std::span<const double> values) const;
  /// The margin by which values are to rise along an edge so that along the longest path they rise
  /// by at most `span`, and at most `most`.
  double margin_within(double span, double most) const;
  /// The smallest values that are not below the given ones and rise by the margin along every edge,
  /// and the largest that are not above them and do. What lies between the two at one ratio
  /// everywhere rises by it as well. O(E).
  std::vector<double> raised(std::span<const double> values, double margin) const;
  std::vector<double> lowered(std::span<const double> values, double margin) const;

private:
  std::vector<Edge> edges_; ///< those out of a node follow all those into it
  std::int64_t depth_ = 0;  ///< edges of the longest path
};

/// Radii that follow the order, near the given ones and at most max_radius; the same ones if they
/// follow it.
std::vector<double> ordered_radii(const CausalOrder& order, std::span<const double> radius,
                                  double max_radius);

/// The terms in the radii: ranking along edges and levels (soft objective), and the PageRank term.
class RadialTerms {
public:
  RadialTerms(const Digraph& graph, const EmbedOptions& options, Run& run);
  /// Adds to terms.ranking and .generality, and to the gradient, if not null.
  void operator()(const Matrix& points, EmbedEpoch& terms, Matrix* gradient, Run& run) const;

private:
  EmbedOptions options_;
  std::vector<Edge> edges_;
  std::vector<double> pagerank_;
  double margin_ = 0, temperature_ = 0; ///< of the ranking
  std::vector<double> levels_;          ///< what radii less their mean are drawn to
};

/// The objective of a graph, for evaluation at many points. Its matrices are symmetric; of each the
/// upper triangle is kept, in panels of columns (rows 0 .. last column), which are also the pieces
/// that threads work on.
class EmbeddingObjective {
public:
  /// Weights in (0, 1], options without automatic values; distances: undirected_distances() of the
  /// graph (soft objective; else not looked at).
  EmbeddingObjective(const Digraph& graph, const Matrix& distances, const EmbedOptions& options,
                     Run& run);
  /// The terms at points ((d+1) x M), and into gradient, if not null, the Euclidean gradient.
  EmbedEpoch operator()(const Matrix& points, Matrix* gradient, Run& run);

private:
  struct Panel {
    std::int64_t first = 0; ///< column
    std::int64_t cols = 0;
    std::int64_t rows = 0;   ///< first + cols
    std::int64_t offset = 0; ///< of its first element
  };
  void set_soft_targets(const Matrix& distances, Run& run);
  void set_positives(const Digraph& graph, Run& run);
  void pair_terms(const Matrix& points, Run& run);
  double soft_term();
  double sparse_term(const Matrix& points, Run& run);
  void pair_gradient(const Matrix& points, Matrix& gradient, Run& run);
  std::int64_t slot(std::int64_t i, std::int64_t j) const; ///< of element (i, j), i <= j

  std::int64_t nodes_ = 0;
  EmbedOptions options_;
  RadialTerms radial_;
  std::vector<Edge> positives_; ///< anchor -> positive, sorted by anchor; empty for soft
  std::vector<Panel> panels_;
  std::vector<double> targets_;  ///< soft: panels of T_mn + T_nm; else a column of zeros
  std::vector<double> pull_;     ///< panels: attraction / sinh d
  std::vector<double> push_;     ///< panels: exp(-d/tau) / sinh d
  std::vector<double> row_sums_; ///< M x panels: a panel's part of sum_n exp(-d_mn/tau)
  std::vector<double> mass_;     ///< sum_n exp(-d_mn/tau), n != m
  std::vector<double> share_;    ///< factor of row m's repulsions; 0: node m is no anchor
  std::vector<double> pulled_;   ///< per panel: sum of targets times distances
  std::vector<char> anchor_;     ///< soft: node m has targets
};

/// The soft objective for many nodes: targets are cut to the nearest nodes, whose share is 1 again,
/// and of the others a sample is drawn anew at every evaluation, the same for all anchors. Memory
/// and time are linear in the nodes.
class SampledObjective {
public:
  SampledObjective(const Digraph& graph, const EmbedOptions& options, Run& run);
  /// The sample is that of this epoch.
  EmbedEpoch operator()(const Matrix& points, Matrix* gradient, std::int64_t epoch, Run& run);
  double truncated_mass() const noexcept { return truncated_mass_; }

private:
  struct Sample {
    std::vector<std::int64_t> nodes, places; ///< and where in the pool they are
    Matrix points;
    std::vector<std::vector<std::int64_t>> drawn; ///< where in the sample a node is
  };
  struct Incoming {
    std::int64_t anchor = 0, pair = 0;
  };
  void set_positives(const Digraph& graph, Run& run);
  double weight_of(std::int64_t m, double distance) const;
  std::span<const std::int64_t> positives_of(std::int64_t m) const;
  double stand_for(std::int64_t m, std::span<const std::int64_t> apart, const Sample& sample) const;
  double block_terms(const Matrix& points, const Sample& sample, std::int64_t first,
                     std::int64_t count);
  void block_gradient(const Matrix& points, const Sample& sample, std::int64_t first,
                      std::int64_t count, Matrix& gradient) const;

  std::int64_t nodes_ = 0;
  EmbedOptions options_;
  RadialTerms radial_;
  std::vector<std::int64_t> pool_;
  BasicMatrix<float> pool_weights_;     ///< pool x nodes: exp((nearest - D*)/ts)
  std::vector<double> nearest_;         ///< D* to the nearest node
  std::vector<double> total_;           ///< sum of exp((nearest - D*)/ts) over all nodes
  std::vector<std::int64_t> positives_; ///< anchor by anchor
  std::vector<std::int64_t> offsets_;   ///< where an anchor's begin
  std::vector<double> targets_;         ///< T of each
  std::vector<Incoming> incoming_;      ///< node by node: the anchors that it is a positive of
  std::vector<std::int64_t> incoming_offsets_;
  std::vector<double> pair_push_, pair_pull_; ///< of positives: exp(-d/tau) and T, over sinh d
  Matrix push_, pull_;                        ///< the same of sample x nodes
  std::vector<double> mass_;                  ///< Z
  double truncated_mass_ = 0;
};

/// Adam with one second moment a node, or null for plain descent.
using NodeAdam = std::optional<optim::GroupAdam>;
NodeAdam node_adam(const EmbedOptions& options, std::int64_t coordinates, std::int64_t nodes);

/// Full-batch Riemannian descent: Adam with the means of the gradients carried along
/// (docs/method.md, section 3), or the paper's RSGD (Eq_euc_rieman, eq_proj_tangent, eq_exp).
class RiemannianOptimizer {
public:
  RiemannianOptimizer(const EmbedOptions& options, std::int64_t nodes);
  /// Move the points against the Euclidean gradient, in the epoch with this number (from 1); how
  /// many were held at max_radius.
  std::int64_t step(Matrix& points, const Matrix& gradient, std::int64_t epoch,
                    double learning_rate, Run& run);
  /// All that it remembers from one step to the next.
  std::vector<std::span<double>> state();

private:
  bool move(std::span<double> point, std::span<const double> gradient, std::int64_t node,
            std::int64_t epoch, double learning_rate);
  double max_radius_;
  NodeAdam adam_;
};

/// The soft objective in flat space, and its descent; points are kept as those of the hyperboloid
/// whose normal coordinates they are. Dense and on one thread: for ablations.
class EuclideanDescent {
public:
  EuclideanDescent(const Digraph& graph, const EmbedOptions& options, Run& run);
  /// The gradient is with respect to the normal coordinates (rows 1 .. d; row 0 is 0).
  EmbedEpoch operator()(const Matrix& points, Matrix* gradient, Run& run) const;
  std::int64_t step(Matrix& points, const Matrix& gradient, std::int64_t epoch,
                    double learning_rate);
  std::vector<std::span<double>> state(); ///< as that of RiemannianOptimizer

private:
  EmbedOptions options_;
  RadialTerms radial_;
  Matrix targets_; ///< T
  NodeAdam adam_;
};

/// Points ((d+1) x M) for the descent to start from: at random, or by classical scaling of all
/// distances (as for the objective), or of those from some landmarks, among which the others are
/// placed.
Matrix landmark_start(const Digraph& graph, const EmbedOptions& options, Run& run);
Matrix starting_points(Matrix distances, const EmbedOptions& options, std::int64_t nodes, Run& run);

} // namespace cape
