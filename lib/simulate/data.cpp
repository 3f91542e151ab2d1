module;
#include "internal/message.hpp"
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numbers>
#include <string>
#include <variant>
#include <vector>
module cape.simulate;
#include "simulate/blocks.hpp"

namespace cape {
namespace {

constexpr std::int64_t hidden_units = 100;
constexpr std::int64_t fourier_features = 512;

// The contribution of its causes is added to the column of an effect that holds its noise.
struct Effect {
  std::int64_t node;
  std::vector<Edge> causes; // by rising cause
};

double signed_uniform(Rng& rng, double low, double high) {
  const double magnitude = rng.uniform(low, high);
  return rng.uniform() < 0.5 ? -magnitude : magnitude;
}

void add_linear(const Effect& effect, Matrix& x, Run& run) {
  double* y = x.column(effect.node);
  for (const Edge& e : effect.causes) {
    const double* cause = x.column(e.from);
    for_each_polled(x.rows(), run, [&](std::int64_t i) { y[i] += e.weight * cause[i]; });
  }
}

void add_mlp(const Effect& effect, Rng rng, Matrix& x, Run& run) {
  double* y = x.column(effect.node);
  std::vector<double> inputs(static_cast<std::size_t>(x.rows()));
  double* input = inputs.data();
  for (std::int64_t unit = 0; unit < hidden_units; ++unit) {
    std::ranges::fill(inputs, 0.0);
    for (const Edge& e : effect.causes) {
      const double* cause = x.column(e.from);
      const double weight = signed_uniform(rng, 0.5, 2.0);
      for_each_polled(x.rows(), run, [&](std::int64_t i) { input[i] += weight * cause[i]; });
    }
    const double weight = signed_uniform(rng, 0.5, 2.0);
    for_each_polled(x.rows(), run,
                    [&](std::int64_t i) { y[i] += weight / (1 + std::exp(-input[i])); });
  }
}

// A. Rahimi and B. Recht, Random features for large-scale kernel machines, NIPS 2007: a sum of
// cosines of random frequencies is a draw from the process with the kernel exp(-(s - t)^2 / 2).
void add_gaussian_process(const Edge& edge, Rng rng, Matrix& x, Run& run) {
  const double* cause = x.column(edge.from);
  double* y = x.column(edge.to);
  const double scale = std::sqrt(2.0 / static_cast<double>(fourier_features));
  for (std::int64_t f = 0; f < fourier_features; ++f) {
    const double amplitude = scale * rng.normal(), frequency = rng.normal(),
                 phase = rng.uniform(0, 2 * std::numbers::pi);
    for_each_polled(x.rows(), run, [&](std::int64_t i) {
      y[i] += amplitude * std::cos(frequency * cause[i] + phase);
    });
  }
}

void add_quadratic(const Effect& effect, Rng rng, Matrix& x, Run& run) {
  double* y = x.column(effect.node);
  for (std::size_t a = 0; a < effect.causes.size(); ++a)
    for (std::size_t b = a; b < effect.causes.size(); ++b) {
      const double* left = x.column(effect.causes[a].from);
      const double* right = x.column(effect.causes[b].from);
      const double coefficient = signed_uniform(rng, 0.5, 1.0);
      for_each_polled(x.rows(), run,
                      [&](std::int64_t i) { y[i] += coefficient * left[i] * right[i]; });
    }
}

void add_indices(const Effect& effect, Rng rng, Matrix& x, Run& run) {
  double* y = x.column(effect.node);
  for (double (*link)(double) : {+[](double v) { return std::tanh(v); },
                                 +[](double v) { return std::cos(v); },
                                 +[](double v) { return std::sin(v); }}) {
    std::vector<double> indices(static_cast<std::size_t>(x.rows()));
    double* index = indices.data();
    for (const Edge& e : effect.causes) {
      const double* cause = x.column(e.from);
      const double weight = signed_uniform(rng, 0.5, 2.0);
      for_each_polled(x.rows(), run, [&](std::int64_t i) { index[i] += weight * cause[i]; });
    }
    for_each_polled(x.rows(), run, [&](std::int64_t i) { y[i] += link(index[i]); });
  }
}

void add_causes(const Effect& effect, Mechanism mechanism, Matrix& x, Run& run) {
  if (effect.causes.empty()) return;
  const auto id = [](std::int64_t node) { return static_cast<std::uint64_t>(node); };
  const Rng rng(run.seed(), {hash("simulate.mechanism"), id(effect.node)});
  switch (mechanism) {
  case Mechanism::linear: return add_linear(effect, x, run);
  case Mechanism::mlp: return add_mlp(effect, rng, x, run);
  case Mechanism::quadratic: return add_quadratic(effect, rng, x, run);
  case Mechanism::mim: return add_indices(effect, rng, x, run);
  case Mechanism::gp_additive:
    for (const Edge& e : effect.causes)
      add_gaussian_process(e, Rng(run.seed(), {hash("simulate.process"), id(e.from), id(e.to)}), x,
                           run);
  }
}

void fill_with_noise(std::int64_t node, const DataOptions& options, Matrix& x, Run& run) {
  Rng rng(run.seed(), {hash("simulate.noise"), static_cast<std::uint64_t>(node)});
  for_each_polled(x.rows(), run, [&](std::int64_t i) {
    const double unit = options.noise == Noise::gaussian      ? rng.normal()
                        : options.noise == Noise::exponential ? rng.exponential()
                                                              : rng.gumbel();
    x(i, node) = options.noise_scale * unit;
  });
}

void check_bounded(std::int64_t node, const Matrix& x) {
  for (std::int64_t i = 0; i < x.rows(); ++i)
    if (!std::isfinite(x(i, node)))
      throw Error(Status::unsupported,
                  message("the data grow beyond the range of a double at node ", node,
                          " (counted from 0): weights multiply along paths, and every step of a "
                          "quadratic mechanism squares them; use a graph with shorter paths or "
                          "smaller weights, a smaller simulate.noise_scale, or another mechanism"));
}

} // namespace

OptionFields fields(DataOptions& o) {
  return {
      {.name = "simulate.mechanism",
       .value = choice(o.mechanism, {"linear", "mlp", "gp_additive", "quadratic", "mim"}),
       .doc = "How causes act on an effect.",
       .source = "method note, simulator"},
      {.name = "simulate.noise",
       .value = choice(o.noise, {"gaussian", "exponential", "gumbel"}),
       .doc = "Distribution of the noise; the last two are not centred.",
       .source = "method note, simulator"},
      {.name = "simulate.noise_scale",
       .value = &o.noise_scale,
       .min = 0,
       .open_min = true,
       .doc = "Standard deviation of gaussian noise; scale of the other two.",
       .source = "method note, simulator"},
  };
}

Matrix simulate_data(const Digraph& graph, std::int64_t rows, const DataOptions& options,
                     std::uint64_t seed) {
  Run run(seed);
  return simulate_data(graph, rows, options, run);
}

Matrix simulate_data(const Digraph& graph, std::int64_t rows, const DataOptions& options,
                     Run& run) {
  if (rows < 1)
    throw Error(Status::invalid_argument, message("rows is ", rows, "; it must be at least 1"));
  DataOptions o = options;
  check_options(fields(o));
  const std::vector<std::int64_t> order = topological_order(graph);
  std::vector<Effect> effects(static_cast<std::size_t>(graph.size()));
  for (const Edge& e : graph.edges()) effects[static_cast<std::size_t>(e.to)].causes.push_back(e);
  Matrix x(rows, graph.size());
  std::int64_t done = 0;
  run.report({.stage = "simulate", .total = graph.size()});
  for (const std::int64_t node : order) {
    Effect& effect = effects[static_cast<std::size_t>(node)];
    effect.node = node;
    fill_with_noise(node, o, x, run);
    add_causes(effect, o.mechanism, x, run);
    check_bounded(node, x);
    run.report({.stage = "simulate", .step = ++done, .total = graph.size()});
  }
  return x;
}

} // namespace cape
