module;
#include <algorithm>
#include <cmath>
#include <cstdint>
module cape.pipeline;

namespace cape {
namespace {

// Seconds per unit of work on one core of a present server CPU with AVX-512, fitted to timed runs;
// in double, and half of it in float.
constexpr double per_product = 1.0 / 60e9; // a floating point operation in a minibatch's products
constexpr double per_measure = 1.0 / 40e9; // the same in the M x M products of h and its gradient
constexpr double per_sigmoid = 2e-9;       // a hidden unit, forward and backward
constexpr double per_regression = 1.4e-9;  // a row, hidden unit and candidate, over all regressions
constexpr double per_pair = 2e-9;          // a pair of nodes, besides its inner products
constexpr double per_coordinate = 1.5e-8;  // a step of the Riemannian optimiser

double real(std::int64_t count) { return static_cast<double>(count); }

// Causes that an effect may have.
double inputs(double m, const DagOptions& options) {
  return options.sem == Sem::mlp && options.candidates > 0 ? std::min(m, real(options.candidates))
                                                           : m;
}

double hidden_units(const DagOptions& options) {
  return options.sem == Sem::linear ? 1 : real(options.hidden);
}

// Of both kinds of association, six times and seven at once, in float.
double screening_seconds(double n, double m, const DagOptions& options) {
  if (inputs(m, options) == m) return 0;
  const double rows = std::min(n, std::clamp(8192 * 10000 / m, 2048.0, 8192.0));
  return 2 * 13 * 2 * rows * m * m * per_product / 2;
}

// As the augmented Lagrangian does it: tables with few rows are passed over several times in an
// epoch, and on wide ones h is not computed in every step.
double learning_seconds(double n, double m, const DagOptions& options) {
  const double rows = std::max(1.0, std::min(n, real(options.batch_size)));
  const double steps = std::max(n / rows, std::clamp(3600 / std::max(m, 1.0), 15.0, 120.0));
  const double units = rows * m * hidden_units(options);
  const double measures = 1 / std::max(1.0, std::floor(m / 64));
  const bool in_float = options.sem == Sem::mlp && options.precision != Precision::float64;
  return (in_float ? 0.5 : 1) * real(options.epochs) * steps *
         (units * inputs(m, options) * 4 * per_product + units * per_sigmoid +
          measures * 20 * m * m * inputs(m, options) * per_measure);
}

// A column has 10 candidates, made symmetric: some 20, and more in hubs, whose elimination takes the
// square of their number. Least squares take seconds.
double refinement_seconds(double n, double m, const DagOptions& options) {
  if (!refines(options, static_cast<std::int64_t>(m)) || options.sem == Sem::linear) return 0;
  return per_regression * n * m * std::min(m, 40.0) * real(options.refine_epochs) *
         real(options.refine_hidden);
}

double embedding_seconds(double m, const EmbedOptions& options) {
  const double automatic = options.objective == Objective::soft ? 500 : 1000;
  const double epochs = options.epochs < 0 ? automatic : real(options.epochs);
  const double dims = real(options.dims);
  return epochs * (m * m * (3 * dims * per_product + per_pair) + m * dims * per_coordinate);
}

} // namespace

Estimate estimate(std::int64_t n, std::int64_t m, const Options& options) {
  checked_size(n, m, "the table");
  const double rows = real(n), cols = real(m);
  const double dims = real(options.embed.dims);

  Estimate out;
  out.seconds = screening_seconds(rows, cols, options.dag) +
                learning_seconds(rows, cols, options.dag) +
                refinement_seconds(rows, cols, options.dag) +
                embedding_seconds(cols, options.embed);
  // The pairwise matrices of Step II, or what is drawn of them; and its points.
  const bool all_pairs = options.embed.objective != Objective::soft ||
                         options.embed.negatives == 0 || (options.embed.negatives < 0 && m <= 5000);
  const double negatives = options.embed.negatives < 0 ? 512 : real(options.embed.negatives);
  const double pair_values =
      all_pairs ? 9 * cols * cols : cols * (7 * real(options.embed.positives) + negatives);
  const double embedding = 8 * (rows * cols + pair_values + 8 * cols * (dims + 1));
  out.bytes = std::max(learn_dag_memory(n, m, options.dag), embedding);
  return out;
}

} // namespace cape
