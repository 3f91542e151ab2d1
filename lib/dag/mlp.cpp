// Model G (docs/method.md, section 2): every effect has an MLP of its own, and every edge a weight
// into each of its units.
//   z_j = x_j - c_j - sum_k v_jk sigmoid(sum_i W_ijk x_i + b_jk)
module;
#include "internal/arma.hpp"
#include "simd/vector_math.hpp"
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <new>
#include <typeinfo>
#include <utility>
#include <vector>
module cape.dag;

namespace cape::sem {
namespace {

// Effects are independent given the batch; a block of them is one task. Fixed, so that the bits do
// not depend on the number of threads. Effects with candidates of their own have no product in
// common: each is a task.
constexpr std::int64_t shared_block = 32;

// The edge weights of a table with many columns start smaller, so that the spectral radius of S at
// the start does not grow with their number.
double initial_scale(std::int64_t features) {
  return 0.05 * std::min(1.0, std::sqrt(30.0 / static_cast<double>(features)));
}

arma::mat borrow(const double* data, std::int64_t rows, std::int64_t cols) {
  return arma::mat(const_cast<double*>(data), static_cast<arma::uword>(rows),
                   static_cast<arma::uword>(cols), false, true);
}
arma::vec borrow(const double* data, std::int64_t size) {
  return arma::vec(const_cast<double*>(data), static_cast<arma::uword>(size), false, true);
}

class MlpSem final : public Model {
public:
  MlpSem(const Shape& shape, Causes causes, bool unequal_variances)
      : Model(shape, std::move(causes)), hidden_(shape.channels),
        unequal_variances_(unequal_variances), part_(static_cast<std::size_t>(shape.features)) {}

  void initialize(std::uint64_t seed, double* parameters) const override;
  Score score(const Batch& batch, const double* parameters, double* gradient, Run& run) override;
  void edge_signs(const Batch& table, const double* parameters, Matrix& sign, Run& run) override;

private:
  // Where the parts of the vector start: W, v (features x hidden), b (likewise), c (features).
  std::int64_t v_at() const { return edge_parameters(); }
  std::int64_t b_at() const { return v_at() + shape().features * hidden_; }
  std::int64_t c_at() const { return b_at() + shape().features * hidden_; }
  // Effects first ... first + count - 1 of a block, which see the same inputs (rows x inputs).
  struct Block {
    std::int64_t first, count;
    arma::mat inputs;
  };
  std::int64_t blocks() const {
    return causes().empty() ? (shape().features + shared_block - 1) / shared_block
                            : shape().features;
  }
  Block block(const Batch& batch, std::int64_t number) const;
  void activate(const Block& block, const double* parameters);

  std::int64_t hidden_;
  bool unequal_variances_;
  std::vector<double> units_;    // rows x (features * hidden): sigmoids, then their gradients
  std::vector<double> residual_; // rows x features: z, then its gradient
  std::vector<double> part_;     // score by effect
};

void MlpSem::initialize(std::uint64_t seed, double* parameters) const {
  const std::int64_t m = shape().features, inputs = shape().inputs;
  const double weight = initial_scale(inputs), out = 1 / std::sqrt(static_cast<double>(hidden_));
  for (std::int64_t j = 0; j < m; ++j) {
    Rng rng(seed, {hash("dag.init"), static_cast<std::uint64_t>(j)});
    for (std::int64_t u = j * hidden_; u < (j + 1) * hidden_; ++u) {
      for (std::int64_t c = 0; c < inputs; ++c)
        parameters[u * inputs + c] = causes().empty() && c == j ? 0 : weight * rng.normal();
      parameters[v_at() + u] = out * rng.normal();
      // Units that start on the flank of their sigmoid see the curvature of an effect: with b near
      // 0, an effect that is even in its cause would leave the weights at 0 for good.
      parameters[b_at() + u] = rng.normal();
    }
    parameters[c_at() + j] = 0;
  }
}

MlpSem::Block MlpSem::block(const Batch& batch, std::int64_t number) const {
  const std::int64_t m = shape().features, inputs = shape().inputs, n = batch.rows;
  if (causes().empty()) {
    const std::int64_t first = number * shared_block;
    return {first, std::min(shared_block, m - first), borrow(batch.x, n, m)};
  }
  Block own{number, 1, arma::mat(static_cast<arma::uword>(n), static_cast<arma::uword>(inputs))};
  for (std::int64_t c = 0; c < inputs; ++c)
    std::copy_n(batch.x + causes()(c, number) * n, n,
                own.inputs.colptr(static_cast<arma::uword>(c)));
  return own;
}

// The sigmoids of the effects of a block, into units_.
void MlpSem::activate(const Block& block, const double* parameters) {
  const std::int64_t inputs = shape().inputs, columns = block.count * hidden_;
  const auto n = static_cast<std::int64_t>(block.inputs.n_rows), start = block.first * hidden_;
  double* units = units_.data() + start * n;
  const double* bias = parameters + b_at() + start;
  for (std::int64_t u = 0; u < columns; ++u) std::fill_n(units + u * n, n, bias[u]);
  arma::mat pre = borrow(units, n, columns);
  pre += block.inputs * borrow(parameters + start * inputs, inputs, columns);
  simd::sigmoid(units, units, n * columns);
}

Score MlpSem::score(const Batch& batch, const double* parameters, double* gradient, Run& run) {
  const std::int64_t m = shape().features, inputs = shape().inputs, n = batch.rows;
  units_.resize(static_cast<std::size_t>(n * m * hidden_));
  residual_.resize(static_cast<std::size_t>(n * m));

  run.parallel_for(blocks(), [&](std::int64_t number) {
    const Block effects = block(batch, number);
    const std::int64_t first = effects.first, end = first + effects.count;
    activate(effects, parameters);
    for (std::int64_t j = first; j < end; ++j) {
      const double* v = parameters + v_at() + j * hidden_;
      arma::mat units = borrow(units_.data() + j * hidden_ * n, n, hidden_);
      arma::vec z = borrow(residual_.data() + j * n, n);
      z = borrow(batch.x + j * n, n) - units * borrow(v, hidden_);
      z -= parameters[c_at() + j];
      part_[static_cast<std::size_t>(j)] = column_score(
          z.memptr(), n, batch.weight ? batch.weight + j * n : nullptr, unequal_variances_);

      gradient[c_at() + j] = -arma::accu(z);
      borrow(gradient + v_at() + j * hidden_, hidden_) = -(units.t() * z);
      for (std::int64_t k = 0; k < hidden_; ++k) {
        double* s = units.colptr(static_cast<arma::uword>(k));
        for (std::int64_t r = 0; r < n; ++r) s[r] = -v[k] * z[r] * s[r] * (1 - s[r]);
        gradient[b_at() + j * hidden_ + k] = arma::accu(borrow(s, n));
      }
    }
    const std::int64_t columns = effects.count * hidden_, start = first * hidden_;
    arma::mat weight_gradient = borrow(gradient + start * inputs, inputs, columns);
    weight_gradient = effects.inputs.t() * borrow(units_.data() + start * n, n, columns);
    if (causes().empty())
      for (std::int64_t j = first; j < end; ++j)
        for (std::int64_t u = j * hidden_; u < (j + 1) * hidden_; ++u) gradient[u * m + j] = 0;
  });

  double total = 0;
  for (const double part : part_) total += part;
  return unequal_variances_ ? Score{total, 0} : Score{0, total};
}

// The sign of the mean derivative of an effect's MLP with respect to the cause over the rows.
void MlpSem::edge_signs(const Batch& table, const double* parameters, Matrix& sign, Run& run) {
  const std::int64_t m = shape().features, inputs = shape().inputs, k_all = m * hidden_;
  constexpr std::int64_t chunk = 256;
  std::vector<double> slope(static_cast<std::size_t>(k_all)); // sum over rows of v s (1 - s)
  std::vector<double> rows(static_cast<std::size_t>(chunk * m));
  for (std::int64_t start = 0; start < table.rows; start += chunk) {
    const std::int64_t n = std::min(chunk, table.rows - start);
    for (std::int64_t j = 0; j < m; ++j)
      std::copy_n(table.x + j * table.rows + start, n, rows.data() + j * n);
    units_.resize(static_cast<std::size_t>(n * k_all));
    run.parallel_for(blocks(), [&](std::int64_t number) {
      const Block effects = block({rows.data(), nullptr, n}, number);
      activate(effects, parameters);
      const std::int64_t end = (effects.first + effects.count) * hidden_;
      for (std::int64_t u = effects.first * hidden_; u < end; ++u)
        for (const double* s = units_.data() + u * n; s < units_.data() + (u + 1) * n; ++s)
          slope[static_cast<std::size_t>(u)] += parameters[v_at() + u] * *s * (1 - *s);
    });
  }
  for (std::int64_t j = 0; j < m; ++j)
    for (std::int64_t c = 0; c < inputs; ++c) {
      double sum = 0;
      for (std::int64_t u = j * hidden_; u < (j + 1) * hidden_; ++u)
        sum += parameters[u * inputs + c] * slope[static_cast<std::size_t>(u)];
      sign(c, j) = (sum > 0) - (sum < 0);
    }
}

} // namespace

std::unique_ptr<Model> make_mlp(std::int64_t features, Causes causes, const DagOptions& options) {
  const std::int64_t inputs = causes.empty() ? features : causes.rows();
  const std::int64_t units = features * options.hidden;
  const Model::Shape shape{features, inputs, options.hidden, inputs * units + 2 * units + features,
                           inputs * units + units};
  return std::make_unique<MlpSem>(shape, std::move(causes), options.standardize);
}

} // namespace cape::sem
