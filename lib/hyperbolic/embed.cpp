module;
#include "internal/message.hpp"
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <typeinfo>
#include <utility>
#include <variant>
#include <vector>
module cape.hyperbolic;
import cape.optim;
#include "hyperbolic/euclidean.hpp"
#include "hyperbolic/lorentz.hpp"
#include "hyperbolic/objective.hpp"
#include "hyperbolic/optimizer.hpp"
#include "hyperbolic/order.hpp"
#include "hyperbolic/sampled.hpp"
#include "hyperbolic/start.hpp"

namespace cape {
namespace {

constexpr std::int64_t most_nodes_exact = 5000;

// The options with values for what was automatic.
EmbedOptions settled(EmbedOptions o, std::int64_t nodes) {
  check_options(fields(o));
  const bool soft = o.objective == Objective::soft;
  if (std::isnan(o.temperature)) o.temperature = !soft ? 1.0 : o.dims >= 8 ? 0.25 : 0.5;
  if (std::isnan(o.level_spread)) o.level_spread = o.dims >= 8 ? 0.15 : 1.0;
  if (std::isnan(o.generality_weight)) o.generality_weight = soft ? 0.01 : 0.1;
  if (o.negatives == -1) o.negatives = soft && nodes > most_nodes_exact ? 512 : 0;
  if (o.space == Space::euclidean && (!soft || o.negatives > 0))
    throw Error(
        Status::invalid_argument,
        "embed.space is euclidean; it must be hyperbolic unless embed.objective is soft and "
        "embed.negatives 0");
  if (o.negatives > 0 && !soft)
    throw Error(Status::invalid_argument, message("embed.negatives is ", o.negatives,
                                                  "; it must be 0 unless embed.objective is soft"));
  if (o.epochs == -1) o.epochs = soft ? 500 : 1000;
  if (o.start == Start::automatic) o.start = soft ? Start::scaling : Start::random;
  if (o.burn_in == -1) o.burn_in = o.optimizer == Optimizer::rsgd ? 10 : 0;
  if (o.negatives > 0) o.tolerance = 0; // a plateau cannot be told from the noise of the draws
  if (std::isnan(o.learning_rate)) {
    o.learning_rate = soft ? 0.1 : 0.01;
    if (o.optimizer == Optimizer::rsgd) o.learning_rate *= static_cast<double>(nodes);
  }
  const double lowest = 2 * o.max_radius / 650; // exp(-650) is a normal number, its inverse too
  if (o.temperature < lowest)
    throw Error(Status::invalid_argument,
                message("embed.temperature is ", o.temperature, "; with embed.max_radius ",
                        o.max_radius, " it must be at least ", lowest));
  return o;
}

// The pairwise matrices; or the positives, the sample's gradients and distances to the landmarks;
// and the points. The options are settled.
double working_set(std::int64_t nodes, const EmbedOptions& options) {
  const double m = static_cast<double>(nodes), d = static_cast<double>(options.dims + 1);
  const double pairs = options.negatives == 0
                           ? 3.5 * m * m
                           : m * static_cast<double>(8 * std::min(options.positives, nodes) +
                                                     2 * options.negatives + 700);
  return 8 * (pairs + 6 * m * d);
}

void check_working_set(std::int64_t nodes, const EmbedOptions& options) {
  check_memory(working_set(nodes, options),
               message("embedding ", nodes, " nodes in ", options.dims, " dimensions"));
}

// As the soft objective needs them, or the start.
Matrix target_distances(const Digraph& graph, const EmbedOptions& options, Run& run) {
  if (options.objective != Objective::soft && options.start != Start::scaling) return {};
  return undirected_distances(graph, options.hop_cost, run);
}

void check_nodes(const Digraph& graph) {
  if (graph.size() == 0)
    throw Error(Status::invalid_argument, "the graph has no nodes; it must have at least 1");
}

void check_node_count(std::int64_t nodes) {
  if (nodes < 0)
    throw Error(Status::invalid_argument,
                message("nodes is ", nodes, "; it must not be negative"));
}

// The loss moved by less than 1e-3 of itself over the last tenth of the epochs.
bool settled_down(const std::vector<EmbedEpoch>& history) {
  const std::size_t n = history.size();
  if (n < 10) return false;
  const double last = history.back().loss, before = history[n - 1 - n / 10].loss;
  return std::abs(last - before) <= 1e-3 * std::abs(last);
}

// The learning rate: a cosine from the first to 2 % of it, less while burning in, and less after
// every plateau (EmbedOptions::tolerance), so that steps that are too long do not pass for the end.
class Pace {
public:
  explicit Pace(const EmbedOptions& options)
      : options_(options), cosine_(options.epochs, last),
        plateau_(20, options.tolerance, options.burn_in) {}

  double rate() const {
    const double part = epoch_ < options_.burn_in ? 0.1 : cut_;
    return part * options_.learning_rate * cosine_(epoch_);
  }

  /// After an epoch with this loss: whether the descent is at its end before its last epoch.
  bool stops(double loss) {
    ++epoch_;
    if (!plateau_.reached(loss)) return false;
    cut_ /= 4;
    return rate() < last * options_.learning_rate && epoch_ < options_.epochs;
  }

private:
  static constexpr double last = 0.02;
  EmbedOptions options_;
  optim::CosineSchedule cosine_;
  optim::Plateau plateau_;
  std::int64_t epoch_ = 0;
  double cut_ = 1;
};

// All nodes at the origin, where those without edges stay.
Embedding at_origin(std::int64_t nodes, std::int64_t dims) {
  Embedding out;
  out.hyperboloid = Matrix(nodes, dims + 1);
  std::fill_n(out.hyperboloid.column(0), nodes, 1.0);
  out.poincare = Matrix(nodes, dims);
  out.generality.assign(static_cast<std::size_t>(nodes), 1.0);
  out.radius.resize(static_cast<std::size_t>(nodes));
  return out;
}

// Points in columns to rows: column k is node number nodes[k].
void put_in_rows(const Matrix& points, const std::vector<std::int64_t>& nodes, Embedding& out) {
  const std::int64_t d = points.rows() - 1;
  std::vector<double> e(static_cast<std::size_t>(d));
  for (std::int64_t k = 0; k < points.cols(); ++k) {
    const std::int64_t node = nodes[static_cast<std::size_t>(k)];
    const auto row = static_cast<std::size_t>(node);
    lorentz::to_poincare({points.column(k), static_cast<std::size_t>(d) + 1}, e);
    double pp = 0;
    for (std::int64_t i = 0; i <= d; ++i) out.hyperboloid(node, i) = points(i, k);
    for (std::int64_t i = 0; i < d; ++i) {
      out.poincare(node, i) = e[static_cast<std::size_t>(i)];
      pp += points(i + 1, k) * points(i + 1, k);
    }
    // 1 - |e| with |e| = tanh(r/2), without its cancellation.
    out.radius[row] = std::asinh(std::sqrt(pp));
    out.generality[row] = 2 / (1 + std::exp(out.radius[row]));
  }
}

// Do the options ask for an order of radii?
bool ranks_radii(const EmbedOptions& options) {
  return options.objective == Objective::soft && options.rank_weight > 0;
}

// Moves points along their directions until their radii follow the order.
void put_in_order(const CausalOrder& order, double max_radius, Matrix& points) {
  std::vector<double> length(static_cast<std::size_t>(points.cols())), radius(length.size());
  for (std::size_t i = 0; i < length.size(); ++i) {
    const double* p = points.column(static_cast<std::int64_t>(i));
    double sum = 0;
    for (std::int64_t k = 1; k < points.rows(); ++k) sum += p[k] * p[k];
    length[i] = std::sqrt(sum);
    radius[i] = std::asinh(length[i]);
  }
  const std::vector<double> wanted = ordered_radii(order, radius, max_radius);
  for (std::size_t i = 0; i < length.size(); ++i) {
    if (wanted[i] == radius[i]) continue;
    double* p = points.column(static_cast<std::int64_t>(i));
    if (length[i] > 0)
      for (std::int64_t k = 1; k < points.rows(); ++k) p[k] *= std::sinh(wanted[i]) / length[i];
    else
      p[1] = std::sinh(wanted[i]); // the origin has no direction
    lorentz::project({p, static_cast<std::size_t>(points.rows())});
  }
}

std::string order_warning(std::int64_t against, std::int64_t edges, std::int64_t on_cycles) {
  std::string text = message(against, " of ", edges,
                             " edges have their cause no nearer the origin than their effect");
  if (on_cycles > 0)
    text += message("; ", on_cycles,
                    " edges lie on cycles, along which no order of radii can follow every edge");
  return text;
}

// Count the edges against the order, and say so if there should be none; node k of the graph is
// number nodes[k] of the result.
void check_order(const Digraph& graph, const CausalOrder& order,
                 const std::vector<std::int64_t>& nodes, bool wanted, Embedding& out) {
  std::vector<double> radius(nodes.size());
  for (std::size_t k = 0; k < nodes.size(); ++k)
    radius[k] = out.radius[static_cast<std::size_t>(nodes[k])];
  out.n_out_of_order = std::ranges::count_if(graph.edges(), [&](const Edge& e) {
    return !(radius[static_cast<std::size_t>(e.from)] < radius[static_cast<std::size_t>(e.to)]);
  });
  if (!wanted || out.n_out_of_order == 0) return;
  const std::int64_t edges = std::ssize(graph.edges());
  out.warnings.push_back(order_warning(out.n_out_of_order, edges, edges - order.size()));
  out.converged = out.converged && order.count_against(radius) == 0;
}

// The nodes with edges, and the graph of them alone.
struct Linked {
  std::vector<std::int64_t> nodes;
  Digraph graph;
};
Linked linked_part(const Digraph& graph) {
  std::vector<std::int64_t> place(static_cast<std::size_t>(graph.size()), -1);
  for (const Edge& e : graph.edges())
    place[static_cast<std::size_t>(e.from)] = place[static_cast<std::size_t>(e.to)] = 0;
  Linked out;
  for (std::int64_t i = 0; i < graph.size(); ++i)
    if (place[static_cast<std::size_t>(i)] == 0) {
      place[static_cast<std::size_t>(i)] = std::ssize(out.nodes);
      out.nodes.push_back(i);
    }
  std::vector<Edge> edges = graph.edges();
  for (Edge& e : edges) {
    e.from = place[static_cast<std::size_t>(e.from)];
    e.to = place[static_cast<std::size_t>(e.to)];
  }
  out.graph = Digraph(std::ssize(out.nodes), std::move(edges));
  return out;
}

using ObjectiveFunction = std::function<EmbedEpoch(const Matrix&, Matrix*, std::int64_t, Run&)>;

// The same, whatever the number of the epoch.
ObjectiveFunction in_every_epoch(EmbeddingObjective objective) {
  return [objective = std::move(objective)](const Matrix& points, Matrix* gradient, std::int64_t,
                                            Run& run) mutable {
    return objective(points, gradient, run);
  };
}

// What is descended, and from where.
struct Descent {
  ObjectiveFunction objective;
  std::function<std::int64_t(Matrix&, const Matrix&, std::int64_t, double, Run&)> step;
  std::vector<std::span<double>> optimizer_state; // in `step`
  Matrix points;
  double truncated_mass = 0;
};

Descent prepare(const Digraph& graph, const EmbedOptions& options, Run& run) {
  Descent out;
  if (options.space == Space::euclidean) {
    auto descent = std::make_shared<EuclideanDescent>(graph, options, run);
    out.objective = [descent](const Matrix& points, Matrix* gradient, std::int64_t, Run& r) {
      return (*descent)(points, gradient, r);
    };
    out.step = [descent](Matrix& points, const Matrix& gradient, std::int64_t epoch, double rate,
                         Run&) { return descent->step(points, gradient, epoch, rate); };
    out.optimizer_state = descent->state();
    out.points = starting_points(target_distances(graph, options, run), options, graph.size(), run);
    return out;
  }
  auto optimizer = std::make_shared<RiemannianOptimizer>(options, graph.size());
  out.step = [optimizer](Matrix& points, const Matrix& gradient, std::int64_t epoch, double rate,
                         Run& r) { return optimizer->step(points, gradient, epoch, rate, r); };
  out.optimizer_state = optimizer->state();
  if (options.negatives > 0) {
    SampledObjective objective(graph, options, run);
    out.truncated_mass = objective.truncated_mass();
    out.objective = std::move(objective);
    out.points = landmark_start(graph, options, run);
  } else {
    Matrix distances = target_distances(graph, options, run);
    out.objective = in_every_epoch(EmbeddingObjective(graph, distances, options, run));
    out.points = starting_points(std::move(distances), options, graph.size(), run);
  }
  return out;
}

// Of all that the descent depends on.
std::uint64_t fit_id(const Digraph& graph, EmbedOptions options, std::uint64_t seed) {
  std::vector<double> edges;
  for (const Edge& e : graph.edges())
    edges.insert(edges.end(), {static_cast<double>(e.from), static_cast<double>(e.to), e.weight});
  std::string text = message(seed, " ", graph.size(), " ", hash(edges));
  for (const OptionField& field : fields(options)) text += " " + option_text(field);
  return hash(text);
}

// A checkpoint's values: the history, the number of clamps, the optimiser's state and the points.
constexpr std::int64_t epoch_values = 4;

std::vector<std::span<double>> state(Descent& descent) {
  std::vector<std::span<double>> out = descent.optimizer_state;
  out.emplace_back(descent.points.data(), static_cast<std::size_t>(descent.points.size()));
  return out;
}

// Room first, for some more epochs: between the old state and the new one nothing can fail.
void save(Descent& descent, const Embedding& result, Checkpoint& checkpoint) {
  const std::vector<std::span<double>> parts = state(descent);
  const std::int64_t epochs = (std::ssize(result.history) / 1000 + 1) * 1000;
  std::size_t room = static_cast<std::size_t>(epoch_values * epochs + 1);
  for (const std::span<double> part : parts) room += part.size();
  std::vector<double>& out = checkpoint.values;
  out.reserve(room);
  out.clear();
  for (const EmbedEpoch& e : result.history)
    out.insert(out.end(), {e.loss, e.contrastive, e.ranking, e.generality});
  out.push_back(static_cast<double>(result.n_clamped));
  for (const std::span<double> part : parts) out.insert(out.end(), part.begin(), part.end());
  checkpoint.epoch = std::ssize(result.history);
}

void restore(const Checkpoint& checkpoint, Descent& descent, Embedding& result) {
  const std::vector<std::span<double>> parts = state(descent);
  std::int64_t expected = epoch_values * checkpoint.epoch + 1;
  for (const std::span<double> part : parts) expected += std::ssize(part);
  checkpoint.check(expected);
  const double* in = checkpoint.values.data();
  for (std::int64_t e = 1; e <= checkpoint.epoch; ++e, in += epoch_values)
    result.history.push_back({e, in[0], in[1], in[2], in[3]});
  constexpr double most = 1e15; // an integer that a double holds
  if (!(*in >= 0 && *in <= most))
    throw Error(Status::invalid_argument,
                message("checkpoint is damaged: it counts ", *in, " points that were clamped"));
  result.n_clamped = static_cast<std::int64_t>(*in++);
  for (const std::span<double> part : parts) {
    std::copy_n(in, part.size(), part.begin());
    in += part.size();
  }
}

// embed_dag(); checkpoint: null, or where to go on.
Embedding embed(const Digraph& graph, const EmbedOptions& options, Run& run,
                Checkpoint* checkpoint) {
  check_nodes(graph);
  const Linked linked = linked_part(strengths(graph));
  const std::int64_t m = linked.graph.size();
  const EmbedOptions o = settled(options, m);
  check_working_set(m, o);
  if (checkpoint) checkpoint->claim(fit_id(graph, options, run.seed()), "graph, options or seed");
  Embedding out = at_origin(graph.size(), o.dims);
  if (m == 0) {
    out.pagerank = pagerank(graph, o.restart, run);
    out.history.push_back({.epoch = 1});
    out.converged = true;
    return out;
  }

  // In an order of their content, nodes meet the same arithmetic however they are numbered.
  const std::vector<std::int64_t> order = canonical_order(linked.graph, run);
  std::vector<std::int64_t> place(order.size()), nodes(order.size());
  for (std::size_t k = 0; k < order.size(); ++k) {
    place[static_cast<std::size_t>(order[k])] = static_cast<std::int64_t>(k);
    nodes[k] = linked.nodes[static_cast<std::size_t>(order[k])];
  }
  const Digraph canonical = linked.graph.renumbered(place);
  const std::vector<double> rank =
      pagerank(Digraph(graph.size(), canonical.edges()), o.restart, run);
  out.pagerank.assign(static_cast<std::size_t>(graph.size()), rank.back());
  for (std::size_t k = 0; k < nodes.size(); ++k)
    out.pagerank[static_cast<std::size_t>(nodes[k])] = rank[k];

  Descent descent = prepare(canonical, o, run);
  if (checkpoint && checkpoint->epoch > 0) restore(*checkpoint, descent, out);
  Pace pace(o);
  for (const EmbedEpoch& e : out.history) out.stopped_early = pace.stops(e.loss);
  Matrix gradient(o.dims + 1, m);
  for (std::int64_t epoch = std::ssize(out.history) + 1; epoch <= o.epochs && !out.stopped_early;
       ++epoch) {
    out.history.push_back(descent.objective(descent.points, &gradient, epoch, run));
    const double loss = out.history.back().loss;
    out.history.back().epoch = epoch;
    out.n_clamped += descent.step(descent.points, gradient, epoch, pace.rate(), run);
    out.stopped_early = pace.stops(loss);
    if (checkpoint) save(descent, out, *checkpoint);
    run.report({.stage = "embed", .step = epoch, .total = o.epochs, .loss = loss});
  }
  const CausalOrder causal(canonical);
  if (ranks_radii(o)) put_in_order(causal, o.max_radius, descent.points);
  put_in_rows(descent.points, nodes, out);
  out.truncated_mass = descent.truncated_mass;
  out.converged = settled_down(out.history);
  check_order(canonical, causal, nodes, ranks_radii(o), out);
  return out;
}

} // namespace

Embedding embed_dag(const Digraph& graph, const EmbedOptions& options, Run& run) {
  return embed(graph, options, run, nullptr);
}

Embedding embed_dag(const Digraph& graph, const EmbedOptions& options, Run& run,
                    Checkpoint& checkpoint) {
  return embed(graph, options, run, &checkpoint);
}

double embedding_loss(const Digraph& graph, const MatrixView& points, const EmbedOptions& options,
                      Matrix* gradient, Run& run) {
  check_nodes(graph);
  const std::int64_t m = graph.size();
  const EmbedOptions o = settled(options, m);
  check_working_set(m, o);
  if (points.rows != m || points.cols != o.dims + 1)
    throw Error(Status::dim_mismatch,
                message("points is ", points.rows, " x ", points.cols, "; for ", m, " nodes in ",
                        o.dims, " dimensions it must be ", m, " x ", o.dims + 1));
  const Matrix columns = hyperboloid_points(points, "points");
  for (std::int64_t i = 0; i < m; ++i)
    if (std::acosh(columns(0, i)) > o.max_radius * (1 + 1e-9))
      throw Error(Status::invalid_argument,
                  message("row ", i, " of points (counted from 0) is ", std::acosh(columns(0, i)),
                          " from the origin; it must be within embed.max_radius, ", o.max_radius));
  const Digraph strong = strengths(graph);
  ObjectiveFunction objective;
  if (o.negatives > 0)
    objective = SampledObjective(strong, o, run);
  else if (o.space == Space::euclidean)
    objective = [flat = EuclideanDescent(strong, o, run)](const Matrix& p, Matrix* g, std::int64_t,
                                                          Run& r) { return flat(p, g, r); };
  else
    objective =
        in_every_epoch(EmbeddingObjective(strong, target_distances(strong, o, run), o, run));
  constexpr std::int64_t epoch = 0;
  if (!gradient) return objective(columns, nullptr, epoch, run).loss;
  Matrix by_column(columns.rows(), m);
  const double loss = objective(columns, &by_column, epoch, run).loss;
  *gradient = Matrix(m, columns.rows());
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t k = 0; k < columns.rows(); ++k) (*gradient)(i, k) = by_column(k, i);
  return loss;
}

double embed_dag_memory(std::int64_t nodes, const EmbedOptions& options) {
  check_node_count(nodes);
  return working_set(nodes, settled(options, nodes));
}

double embed_dag_seconds(std::int64_t nodes, const EmbedOptions& options) {
  check_node_count(nodes);
  const EmbedOptions o = settled(options, nodes);
  // On one core of a present server CPU with AVX-512, fitted to timed runs.
  constexpr double per_operation = 1.0 / 60e9; // of the products of all pairs
  constexpr double per_pair = 2e-9;            // besides its inner products
  constexpr double per_drawn = 3e-10, per_positive = 4.5e-9; // a coordinate of such a pair
  constexpr double per_coordinate = 1.5e-8;                  // a step of the optimiser
  const double m = static_cast<double>(nodes), d = static_cast<double>(o.dims);
  const double pairs = o.negatives == 0
                           ? m * m * (3 * d * per_operation + per_pair)
                           : m * d * (per_drawn * static_cast<double>(o.negatives) +
                                      per_positive * static_cast<double>(o.positives));
  return static_cast<double>(o.epochs) * (pairs + m * d * per_coordinate);
}

} // namespace cape
