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
#include <vector>
module cape.dag;

namespace cape::sem {
namespace {

// Effects are independent given the batch; a block of them is one task. Fixed, so that the bits do
// not depend on the number of threads.
constexpr std::int64_t block_effects = 32;

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
  MlpSem(std::int64_t features, std::int64_t hidden, bool unequal_variances)
      : Model({features, hidden, features * features * hidden + 2 * features * hidden + features,
               features * features * hidden + features * hidden}),
        hidden_(hidden), unequal_variances_(unequal_variances),
        part_(static_cast<std::size_t>(features)) {}

  void initialize(std::uint64_t seed, double* parameters) const override;
  Score score(const Batch& batch, const double* parameters, double* gradient, Run& run) override;
  void edge_signs(const Batch& table, const double* parameters, Matrix& sign, Run& run) override;

private:
  // Where the parts of the vector start: W, v (features x hidden), b (likewise), c (features).
  std::int64_t v_at() const { return edge_parameters(); }
  std::int64_t b_at() const { return v_at() + shape().features * hidden_; }
  std::int64_t c_at() const { return b_at() + shape().features * hidden_; }
  void activate(const Batch& batch, const double* parameters, std::int64_t first,
                std::int64_t count);

  std::int64_t hidden_;
  bool unequal_variances_;
  std::vector<double> units_;    // rows x (features * hidden): sigmoids, then their gradients
  std::vector<double> residual_; // rows x features: z, then its gradient
  std::vector<double> part_;     // score by effect
};

void MlpSem::initialize(std::uint64_t seed, double* parameters) const {
  const std::int64_t m = shape().features;
  const double weight = initial_scale(m), out = 1 / std::sqrt(static_cast<double>(hidden_));
  for (std::int64_t j = 0; j < m; ++j) {
    Rng rng(seed, {hash("dag.init"), static_cast<std::uint64_t>(j)});
    for (std::int64_t u = j * hidden_; u < (j + 1) * hidden_; ++u) {
      for (std::int64_t i = 0; i < m; ++i)
        parameters[u * m + i] = i == j ? 0 : weight * rng.normal();
      parameters[v_at() + u] = out * rng.normal();
      // Units that start on the flank of their sigmoid see the curvature of an effect: with b near
      // 0, an effect that is even in its cause would leave the weights at 0 for good.
      parameters[b_at() + u] = rng.normal();
    }
    parameters[c_at() + j] = 0;
  }
}

// The sigmoids of the effects first ... first + count - 1, into units_.
void MlpSem::activate(const Batch& batch, const double* parameters, std::int64_t first,
                      std::int64_t count) {
  const std::int64_t m = shape().features, n = batch.rows, columns = count * hidden_;
  double* units = units_.data() + first * hidden_ * n;
  const double* bias = parameters + b_at() + first * hidden_;
  for (std::int64_t u = 0; u < columns; ++u) std::fill_n(units + u * n, n, bias[u]);
  arma::mat pre = borrow(units, n, columns);
  pre += borrow(batch.x, n, m) * borrow(parameters + first * hidden_ * m, m, columns);
  simd::sigmoid(units, units, n * columns);
}

Score MlpSem::score(const Batch& batch, const double* parameters, double* gradient, Run& run) {
  const std::int64_t m = shape().features, n = batch.rows;
  units_.resize(static_cast<std::size_t>(n * m * hidden_));
  residual_.resize(static_cast<std::size_t>(n * m));

  const std::int64_t blocks = (m + block_effects - 1) / block_effects;
  run.parallel_for(blocks, [&](std::int64_t block) {
    const std::int64_t first = block * block_effects, count = std::min(block_effects, m - first);
    activate(batch, parameters, first, count);
    for (std::int64_t j = first; j < first + count; ++j) {
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
    const std::int64_t columns = count * hidden_;
    arma::mat weight_gradient = borrow(gradient + first * hidden_ * m, m, columns);
    weight_gradient =
        borrow(batch.x, n, m).t() * borrow(units_.data() + first * hidden_ * n, n, columns);
    for (std::int64_t j = first; j < first + count; ++j)
      for (std::int64_t u = j * hidden_; u < (j + 1) * hidden_; ++u) gradient[u * m + j] = 0;
  });

  double total = 0;
  for (const double part : part_) total += part;
  return unequal_variances_ ? Score{total, 0} : Score{0, total};
}

// The sign of the mean derivative of an effect's MLP with respect to the cause over the rows.
void MlpSem::edge_signs(const Batch& table, const double* parameters, Matrix& sign, Run& run) {
  const std::int64_t m = shape().features, k_all = m * hidden_;
  constexpr std::int64_t chunk = 256;
  std::vector<double> slope(static_cast<std::size_t>(k_all)); // sum over rows of v s (1 - s)
  std::vector<double> rows(static_cast<std::size_t>(chunk * m));
  for (std::int64_t start = 0; start < table.rows; start += chunk) {
    const std::int64_t n = std::min(chunk, table.rows - start);
    for (std::int64_t j = 0; j < m; ++j)
      std::copy_n(table.x + j * table.rows + start, n, rows.data() + j * n);
    units_.resize(static_cast<std::size_t>(n * k_all));
    activate({rows.data(), nullptr, n}, parameters, 0, m);
    for (std::int64_t u = 0; u < k_all; ++u)
      for (const double* s = units_.data() + u * n; s < units_.data() + (u + 1) * n; ++s)
        slope[static_cast<std::size_t>(u)] += parameters[v_at() + u] * *s * (1 - *s);
    run.poll();
  }
  for (std::int64_t j = 0; j < m; ++j)
    for (std::int64_t i = 0; i < m; ++i) {
      double sum = 0;
      for (std::int64_t u = j * hidden_; u < (j + 1) * hidden_; ++u)
        sum += parameters[u * m + i] * slope[static_cast<std::size_t>(u)];
      sign(i, j) = (sum > 0) - (sum < 0);
    }
}

} // namespace

std::unique_ptr<Model> make_mlp(std::int64_t features, const DagOptions& options) {
  return std::make_unique<MlpSem>(features, options.hidden, options.standardize);
}

} // namespace cape::sem
