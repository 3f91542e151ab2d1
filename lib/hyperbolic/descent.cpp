module;
#include "internal/message.hpp"
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <typeinfo>
#include <utility>
#include <variant>
#include <vector>
module cape.hyperbolic;
import cape.optim;
#include "hyperbolic/descent.hpp"
#include "hyperbolic/euclidean.hpp"
#include "hyperbolic/objective.hpp"
#include "hyperbolic/optimizer.hpp"
#include "hyperbolic/sampled.hpp"
#include "hyperbolic/start.hpp"

namespace cape {
namespace {

// A checkpoint's values: the history, the number of clamps, the optimiser's state and the points.
constexpr std::int64_t epoch_values = 4;

// As the soft objective needs them, or the start.
Matrix target_distances(const Digraph& graph, const EmbedOptions& options, Run& run) {
  if (options.objective != Objective::soft && options.start != Start::scaling) return {};
  return undirected_distances(graph, options.hop_cost, run);
}

// The same, whatever the number of the epoch.
ObjectiveFunction in_every_epoch(EmbeddingObjective objective) {
  return [objective = std::move(objective)](const Matrix& points, Matrix* gradient, std::int64_t,
                                            Run& run) mutable {
    return objective(points, gradient, run);
  };
}

} // namespace

ObjectiveFunction objective_of(const Digraph& graph, const EmbedOptions& options, Run& run) {
  if (options.negatives > 0) return SampledObjective(graph, options, run);
  if (options.space == Space::euclidean)
    return [flat = EuclideanDescent(graph, options, run)](const Matrix& p, Matrix* g, std::int64_t,
                                                          Run& r) { return flat(p, g, r); };
  return in_every_epoch(
      EmbeddingObjective(graph, target_distances(graph, options, run), options, run));
}

Descent::Descent(const Digraph& graph, const EmbedOptions& options, Run& run) {
  if (options.space == Space::euclidean) {
    auto descent = std::make_shared<EuclideanDescent>(graph, options, run);
    objective = [descent](const Matrix& at, Matrix* gradient, std::int64_t, Run& r) {
      return (*descent)(at, gradient, r);
    };
    step = [descent](Matrix& at, const Matrix& gradient, std::int64_t epoch, double rate, Run&) {
      return descent->step(at, gradient, epoch, rate);
    };
    optimizer_state = descent->state();
    points = starting_points(target_distances(graph, options, run), options, graph.size(), run);
    return;
  }
  auto optimizer = std::make_shared<RiemannianOptimizer>(options, graph.size());
  step = [optimizer](Matrix& at, const Matrix& gradient, std::int64_t epoch, double rate, Run& r) {
    return optimizer->step(at, gradient, epoch, rate, r);
  };
  optimizer_state = optimizer->state();
  if (options.negatives > 0) {
    SampledObjective sampled(graph, options, run);
    truncated_mass = sampled.truncated_mass();
    objective = std::move(sampled);
    points = landmark_start(graph, options, run);
  } else {
    Matrix distances = target_distances(graph, options, run);
    objective = in_every_epoch(EmbeddingObjective(graph, distances, options, run));
    points = starting_points(std::move(distances), options, graph.size(), run);
  }
}

std::vector<std::span<double>> Descent::state() {
  std::vector<std::span<double>> out = optimizer_state;
  out.emplace_back(points.data(), static_cast<std::size_t>(points.size()));
  return out;
}

void Descent::save(const Embedding& result, Checkpoint& checkpoint) {
  const std::vector<std::span<double>> parts = state();
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

void Descent::restore(const Checkpoint& checkpoint, Embedding& result) {
  const std::vector<std::span<double>> parts = state();
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

} // namespace cape
