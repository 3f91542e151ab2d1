module;
#include <algorithm>
#include <cmath>
#include <cstdint>
module cape.pipeline;

namespace cape {
namespace {

// Rates of one core of a present CPU, in floating point operations a second: products of large
// matrices, of small ones (the minibatches of Step I), and element-wise work.
constexpr double large_products = 30e9;
constexpr double small_products = 8e9;
constexpr double elements = 1e9;

bool refines(const DagOptions& options, double m) {
  return options.refine == Refine::always ||
         (options.refine == Refine::automatic && options.sem == Sem::mlp && m <= 20);
}

// One forward and one backward pass over all rows; the acyclicity measure and its gradient, about 20
// products of M x M, once per minibatch.
double learning_seconds(double n, double m, const DagOptions& options) {
  const double hidden = options.sem == Sem::mlp ? static_cast<double>(options.hidden) : 1;
  const double passes = 4 * n * m * m * hidden / small_products + n * m * hidden / elements;
  const double steps = std::ceil(n / static_cast<double>(options.batch_size));
  const double measure = steps * 20 * 2 * m * m * m / (m < 100 ? small_products : large_products);
  return static_cast<double>(options.epochs) * (passes + measure);
}

// About 5 M^2 regressions on M/2 parents, each on two folds (design: refinement).
double refinement_seconds(double n, double m, const DagOptions& options) {
  const double one = 8 * n * m / 2 * static_cast<double>(options.refine_hidden) *
                     static_cast<double>(options.refine_epochs) / small_products;
  return 5 * m * m * one;
}

double embedding_seconds(double m, const EmbedOptions& options) {
  const double automatic = options.objective == Objective::soft ? 500 : 1000;
  const double epochs = options.epochs < 0 ? automatic : static_cast<double>(options.epochs);
  return epochs * m * m *
         (6 * static_cast<double>(options.dims) / large_products + 8 / elements);
}

} // namespace

Estimate estimate(std::int64_t n, std::int64_t m, const Options& options) {
  checked_size(n, m, "the table");
  const double rows = static_cast<double>(n), cols = static_cast<double>(m);
  const double pairs = cols * cols, dims = static_cast<double>(options.embed.dims);
  const double hidden =
      options.dag.sem == Sem::mlp ? static_cast<double>(options.dag.hidden) : 1;

  Estimate out;
  out.seconds = learning_seconds(rows, cols, options.dag) +
                (refines(options.dag, cols) ? refinement_seconds(rows, cols, options.dag) : 0) +
                embedding_seconds(cols, options.embed);
  // The table and two copies; weights, gradient and two moments of the optimiser; the matrices of
  // the acyclicity measure. Then the pairwise matrices and points of Step II.
  const double learning = 8 * (3 * rows * cols + 4 * pairs * hidden + 12 * pairs);
  const double embedding = 8 * (rows * cols + 9 * pairs + 8 * cols * (dims + 1));
  out.bytes = std::max(learning, embedding);
  return out;
}

} // namespace cape
