// cape.hyperbolic (Step II): hyperbolic geometry, and the embedding of a weighted graph in it so that
// distance is causal strength and radius is causal specificity (paper, sec_hyperbolic; docs/method.md
// for the objective). The hyperboloid model is H^d = { p in R^(d+1): <p,p>_L = -1, p0 > 0 }.
module;
#include <cstdint>
#include <limits>
#include <span>
#include <vector>
export module cape.hyperbolic;
import cape.core;
import cape.graph;

export namespace cape {

/// The hyperboloid model. Points and tangents have d+1 coordinates, the time-like one first; outputs
/// may be the inputs. O(d) each. Preconditions (sizes equal, points on the manifold) are the
/// caller's, except where said; finite input gives finite output.
namespace lorentz {
/// <p,q>_L = -p0 q0 + sum p_i q_i.
double inner(std::span<const double> p, std::span<const double> q);
/// Geodesic distance 2 asinh(sqrt(<p-q,p-q>_L) / 2): exact 0 at coincidence, no cancellation.
double distance(std::span<const double> p, std::span<const double> q);
/// Recompute p0 = sqrt(1 + |p~|^2), so that p is on the hyperboloid.
void project(std::span<double> p);
/// Orthogonal projection of u on the tangent space at p: u + <p,u>_L p (paper, prop_proj).
void project_tangent(std::span<const double> p, std::span<const double> u, std::span<double> out);
/// Exponential map (paper, prop_exp); exp of 0 is p itself.
void exp(std::span<const double> p, std::span<const double> v, std::span<double> out);
/// Logarithm: the tangent at p whose exponential is q.
void log(std::span<const double> p, std::span<const double> q, std::span<double> out);
/// Parallel transport of the tangent v from p to q along the geodesic.
void transport(std::span<const double> p, std::span<const double> q, std::span<const double> v,
               std::span<double> out);
/// To the Poincare ball: e = p~ / (1 + p0) (paper, supp_equivalence); e has d coordinates, |e| < 1
/// strictly.
void to_poincare(std::span<const double> p, std::span<double> e);
/// All distances between the rows of a (m x (d+1)) and b (n x (d+1)): m x n.
Matrix distances(const MatrixView& a, const MatrixView& b, Run& run);
} // namespace lorentz

/// The Poincare ball model, d coordinates, |e| < 1.
namespace poincare {
/// arcosh(1 + 2 |a-b|^2 / ((1-|a|^2)(1-|b|^2))) without cancellation (paper, eq_pdistance).
double distance(std::span<const double> a, std::span<const double> b);
/// To the hyperboloid: (1 + |e|^2, 2e) / (1 - |e|^2) (paper, supp_equivalence). Error
/// (invalid_argument) if |e| >= 1.
void to_lorentz(std::span<const double> e, std::span<double> p);
/// Exponential and logarithm at a, and Mobius addition a (+) b.
void exp(std::span<const double> a, std::span<const double> v, std::span<double> out);
void log(std::span<const double> a, std::span<const double> b, std::span<double> out);
void add(std::span<const double> a, std::span<const double> b, std::span<double> out);
/// All distances between the rows of a (m x d) and b (n x d): m x n.
Matrix distances(const MatrixView& a, const MatrixView& b, Run& run);
} // namespace poincare

enum class Objective : std::int32_t {
  soft,     ///< soft positives over all path lengths + radius ranking + PageRank (default, "W")
  literal,  ///< the paper's eq_losscon: anchor = cause, weight |A_mn|
  effect,   ///< anchor = effect, positives = ancestors within k hops, weight = best path
  symmetric ///< both anchors
};
enum class Optimizer : std::int32_t { radam, rsgd };

struct EmbedOptions {
  std::int64_t dims = 64; ///< d; the transformer's feature dimension is 2d
  Objective objective = Objective::soft;
  Optimizer optimizer = Optimizer::radam;
  double hop_cost = 2.0;         ///< c: an edge costs c - ln |A|
  double soft_temperature = 3.0; ///< ts of the targets
  double temperature = std::numeric_limits<double>::quiet_NaN(); ///< of the distances; automatic: 0.25 for dims >= 8, else 0.5
  double rank_weight = 1.0;       ///< of the ranking of radii along edges
  double rank_margin = 0.02;
  double rank_temperature = 0.01;
  double generality_weight = std::numeric_limits<double>::quiet_NaN(); ///< lambda_g; automatic: 0.01 (soft, of M pi), 0.1 (others, of pi)
  double restart = 0.15;          ///< w of the PageRank
  std::int64_t k_hop = 2;         ///< literal, effect and symmetric objectives
  std::int64_t epochs = -1;       ///< automatic: 500 (soft), 1000 (others)
  double learning_rate = std::numeric_limits<double>::quiet_NaN(); ///< automatic: 0.1 (soft), 0.01 (others)
  double max_radius = 16.0;       ///< points are kept within this distance of the origin
};
OptionFields fields(EmbedOptions& options);

struct EmbedEpoch {
  std::int64_t epoch = 0; ///< from 1
  double loss = 0;
  double contrastive = 0;
  double ranking = 0;
  double generality = 0; ///< the PageRank term
};

struct Embedding {
  Matrix hyperboloid; ///< M x (d+1), one row a node
  Matrix poincare;    ///< M x d
  std::vector<double> generality; ///< psi = 1 - |e| (paper, def_causal generality)
  std::vector<double> radius;     ///< hyperbolic distance to the origin = causal specificity
  std::vector<double> pagerank;
  std::vector<EmbedEpoch> history;
  std::int64_t n_clamped = 0; ///< times a point was held at max_radius
  bool converged = false;     ///< the loss moved by less than 1e-3 of itself over the last tenth of the epochs
};

/// Embed a graph (a DAG or any directed graph; weights by absolute value; if any |weight| is above 1
/// all are divided by the largest). Isolated nodes, graphs without edges and M = 1 are fine.
/// Same seed, same bits, for any number of threads; renumbering the nodes renumbers the result.
/// Memory O(M^2 + M d); O(epochs M^2 d).
Embedding embed_dag(const Digraph& graph, const EmbedOptions& options, Run& run);

/// The objective and its Euclidean gradient with respect to the hyperboloid coordinates, for tests
/// and for other optimisers: points M x (d+1). gradient may be null.
double embedding_loss(const Digraph& graph, const MatrixView& points, const EmbedOptions& options,
                      Matrix* gradient, Run& run);

} // namespace cape
