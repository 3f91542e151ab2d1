module;
#include "internal/message.hpp"
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <new>
#include <span>
#include <string>
#include <typeinfo>
#include <utility>
#include <variant>
#include <vector>
module cape.hyperbolic;
import cape.optim;
#include "hyperbolic/cost.hpp"
#include "hyperbolic/descent.hpp"
#include "hyperbolic/options.hpp"
#include "hyperbolic/result.hpp"

namespace cape {
namespace {

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

// Of all that the descent depends on.
std::uint64_t fit_id(const Digraph& graph, EmbedOptions options, std::uint64_t seed) {
  std::vector<double> edges;
  for (const Edge& e : graph.edges())
    edges.insert(edges.end(), {static_cast<double>(e.from), static_cast<double>(e.to), e.weight});
  std::string text = message(seed, " ", graph.size(), " ", hash(edges));
  for (const OptionField& field : fields(options)) text += " " + option_text(field);
  return hash(text);
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

  Descent descent(canonical, o, run);
  if (checkpoint && checkpoint->epoch > 0) descent.restore(*checkpoint, out);
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
    if (checkpoint) descent.save(out, *checkpoint);
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

} // namespace cape
