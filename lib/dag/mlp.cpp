// Model G (docs/method.md, section 2): every effect has an MLP of its own, and every edge a weight
// into each of its units.
//   z_j = x_j - c_j - sum_k v_jk sigmoid(sum_i W_ijk x_i + b_jk)
module;
#include "dag/kernels/column_product.hpp"
#include "dag/kernels/hidden_layer.hpp"
#include "internal/arma.hpp"
#include "internal/borrow.hpp"
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <numeric>
#include <span>
#include <typeinfo>
#include <utility>
#include <variant>
#include <vector>
module cape.dag;
#include "dag/edge_weights.hpp"
#include "dag/noise.hpp"

namespace cape::sem {
namespace {

// The edge weights of a table with many columns start smaller, so that the spectral radius of S at
// the start does not grow with their number.
double initial_scale(std::int64_t features) {
  return 0.05 * std::min(1.0, std::sqrt(30.0 / static_cast<double>(features)));
}

// Calls multiply(first, last) for pieces of so many rows of a product, each row of `products`
// products, such that a piece is short on a slow CPU too.
template <class Multiply>
void in_pieces(std::int64_t rows, std::int64_t products, Run& run, Multiply multiply) {
  constexpr std::int64_t most = 50'000'000;
  const std::int64_t length = std::max<std::int64_t>(16, most / products);
  for (std::int64_t first = 0; first < rows; first += length) {
    run.poll();
    multiply(static_cast<arma::uword>(first),
             static_cast<arma::uword>(std::min(rows, first + length)) - 1);
  }
}

template <class T>
class MlpSem final : public EdgeWeightModel<T> {
public:
  MlpSem(const Shape& shape, Causes causes, const Noise& noise)
      : EdgeWeightModel<T>(shape, std::move(causes)), hidden_(shape.channels),
        noise_(noise), part_(static_cast<std::size_t>(shape.features)) {}

  void initialize(T* parameters, Run& run) const override;
  void set_edge(std::int64_t c, std::int64_t j, double weight, T* parameters) const override;
  Score score(const Batch<T>& batch, const T* parameters, T* gradient, Run& run) override;
  void edge_signs(const Table& table, const T* parameters, Matrix& sign, Run& run) override;

private:
  using EdgeWeightModel<T>::shape, EdgeWeightModel<T>::causes, EdgeWeightModel<T>::edge_parameters;

  // Where the parts of the vector start: W, v (features x hidden), b (likewise), c (features).
  std::int64_t v_at() const { return edge_parameters(); }
  std::int64_t b_at() const { return v_at() + shape().features * hidden_; }
  std::int64_t c_at() const { return b_at() + shape().features * hidden_; }
  std::int64_t blocks() const { return (shape().features + block_effects - 1) / block_effects; }
  // Effects first ... end - 1.
  struct Block {
    std::int64_t first, end;
  };
  Block block(std::int64_t number) const {
    return {number * block_effects, std::min(shape().features, (number + 1) * block_effects)};
  }
  void pre_activate(const Batch<T>& batch, const Block& block, const T* parameters, Run& run);
  void weight_gradient(const Batch<T>& batch, const Block& block, T* gradient, Run& run) const;
  simd::ColumnChoice<T> inputs_of(std::int64_t effect, const Batch<T>& batch) const {
    return {batch.x, batch.rows, causes().column(effect), shape().inputs};
  }

  std::int64_t hidden_;
  Noise noise_;
  std::vector<T> units_;     // rows x (features * hidden): sigmoids, then their gradients
  std::vector<T> residual_;  // rows x features: z, then its gradient
  std::vector<double> part_; // score by effect
};

template <class T>
void MlpSem<T>::initialize(T* parameters, Run& run) const {
  const std::int64_t m = shape().features, inputs = shape().inputs;
  const double weight = initial_scale(inputs), out = 1 / std::sqrt(static_cast<double>(hidden_));
  run.parallel_for(m, [&](std::int64_t j) {
    Rng rng(run.seed(), {hash("dag.init"), static_cast<std::uint64_t>(j)});
    for (std::int64_t u = j * hidden_; u < (j + 1) * hidden_; ++u) {
      for (std::int64_t c = 0; c < inputs; ++c)
        parameters[u * inputs + c] =
            static_cast<T>(causes().empty() && c == j ? 0 : weight * rng.normal());
      parameters[v_at() + u] = static_cast<T>(out * rng.normal());
      // Units that start on the flank of their sigmoid see the curvature of an effect: with b near
      // 0, an effect that is even in its cause would leave the weights at 0 for good.
      parameters[b_at() + u] = static_cast<T>(rng.normal());
    }
    parameters[c_at() + j] = 0;
  });
}

// In equal parts to all units, so that each moves the effect in the direction of the weight.
template <class T>
void MlpSem<T>::set_edge(std::int64_t c, std::int64_t j, double weight, T* parameters) const {
  const double part = weight / std::sqrt(static_cast<double>(hidden_));
  for (std::int64_t u = j * hidden_; u < (j + 1) * hidden_; ++u)
    parameters[u * shape().inputs + c] =
        static_cast<T>(std::copysign(part, part * static_cast<double>(parameters[v_at() + u])));
}

// The units of a block of effects, without biases. All effects see the same inputs, which makes one
// product, or each sees its own.
template <class T>
void MlpSem<T>::pre_activate(const Batch<T>& batch, const Block& block, const T* parameters,
                             Run& run) {
  const std::int64_t m = shape().features, n = batch.rows, inputs = shape().inputs,
                     start = block.first * hidden_, columns = block.end * hidden_ - start;
  if (causes().empty()) {
    const arma::Mat<T> x = borrow(batch.x, n, m),
                       weights = borrow(parameters + start * inputs, inputs, columns);
    arma::Mat<T> units = borrow(units_.data() + start * n, n, columns);
    in_pieces(n, inputs * columns, run, [&](arma::uword first, arma::uword last) {
      if (last - first + 1 == x.n_rows)
        units = x * weights;
      else
        units.rows(first, last) = x.rows(first, last) * weights;
    });
  } else {
    for (std::int64_t j = block.first; j < block.end; ++j)
      simd::column_product(inputs_of(j, batch), parameters + j * hidden_ * inputs, hidden_,
                           units_.data() + j * hidden_ * n);
  }
}

// From the derivatives with respect to the units.
template <class T>
void MlpSem<T>::weight_gradient(const Batch<T>& batch, const Block& block, T* gradient,
                                Run& run) const {
  const std::int64_t m = shape().features, n = batch.rows, inputs = shape().inputs,
                     start = block.first * hidden_, columns = block.end * hidden_ - start;
  if (causes().empty()) {
    arma::Mat<T> slopes = borrow(gradient + start * inputs, inputs, columns);
    const arma::Mat<T> x = borrow(batch.x, n, m),
                       units = borrow(units_.data() + start * n, n, columns);
    in_pieces(inputs, n * columns, run, [&](arma::uword first, arma::uword last) {
      if (last - first + 1 == x.n_cols)
        slopes = x.t() * units;
      else
        slopes.rows(first, last) = x.cols(first, last).t() * units;
    });
    for (std::int64_t j = block.first; j < block.end; ++j)
      for (std::int64_t u = j * hidden_; u < (j + 1) * hidden_; ++u) gradient[u * m + j] = 0;
  } else {
    for (std::int64_t j = block.first; j < block.end; ++j)
      simd::column_product_transposed(inputs_of(j, batch), units_.data() + j * hidden_ * n, hidden_,
                                      gradient + j * hidden_ * inputs);
  }
}

template <class T>
Score MlpSem<T>::score(const Batch<T>& batch, const T* parameters, T* gradient, Run& run) {
  const std::int64_t m = shape().features, n = batch.rows;
  units_.resize(static_cast<std::size_t>(n * m * hidden_));
  residual_.resize(static_cast<std::size_t>(n * m));

  run.parallel_for(blocks(), [&](std::int64_t number) {
    const Block effects = block(number);
    pre_activate(batch, effects, parameters, run);
    for (std::int64_t j = effects.first; j < effects.end; ++j) {
      const std::int64_t u = j * hidden_;
      const T *v = parameters + v_at() + u, shift = parameters[c_at() + j];
      T* z = residual_.data() + j * n;
      for (std::int64_t r = 0; r < n; ++r) z[r] = batch.x[j * n + r] - shift;
      simd::hidden_layer(units_.data() + u * n, n, hidden_, parameters + b_at() + u, v, z);
      part_[static_cast<std::size_t>(j)] =
          noise_.score(z, n, batch.weight ? batch.weight + j * n : nullptr);
      gradient[c_at() + j] = -arma::accu(borrow(z, n, 1));
      simd::hidden_layer_slopes(units_.data() + u * n, n, hidden_, v, z, gradient + v_at() + u,
                                gradient + b_at() + u);
    }
    weight_gradient(batch, effects, gradient, run);
  });

  double total = 0;
  for (const double part : part_) total += part;
  return noise_.part(total);
}

// The sign of the mean derivative of an effect's MLP with respect to the cause over the rows. With
// dz = -1 the derivative with respect to a bias is the sum over the rows of v s (1 - s).
template <class T>
void MlpSem<T>::edge_signs(const Table& table, const T* parameters, Matrix& sign, Run& run) {
  const std::int64_t m = shape().features, inputs = shape().inputs, k_all = m * hidden_;
  constexpr std::int64_t chunk = 256;
  std::vector<double> slope(static_cast<std::size_t>(k_all));
  const std::vector<T> down(static_cast<std::size_t>(chunk), T(-1));
  for (std::int64_t start = 0; start < table.rows(); start += chunk) {
    const std::int64_t n = std::min(chunk, table.rows() - start);
    std::vector<std::int64_t> numbers(static_cast<std::size_t>(n));
    std::iota(numbers.begin(), numbers.end(), start);
    const BasicMatrix<T> values = table.read<T>(numbers, run);
    units_.resize(static_cast<std::size_t>(n * k_all));
    run.parallel_for(blocks(), [&](std::int64_t number) {
      const Block effects = block(number);
      pre_activate({values.data(), nullptr, n}, effects, parameters, run);
      std::vector<T> z(static_cast<std::size_t>(n)), v_slope(static_cast<std::size_t>(hidden_)),
          bias_slope(v_slope);
      for (std::int64_t j = effects.first; j < effects.end; ++j) {
        const std::int64_t u = j * hidden_;
        const T* v = parameters + v_at() + u;
        T* units = units_.data() + u * n;
        simd::hidden_layer(units, n, hidden_, parameters + b_at() + u, v, z.data());
        simd::hidden_layer_slopes(units, n, hidden_, v, down.data(), v_slope.data(),
                                  bias_slope.data());
        for (std::int64_t k = 0; k < hidden_; ++k)
          slope[static_cast<std::size_t>(u + k)] += bias_slope[static_cast<std::size_t>(k)];
      }
    });
  }
  run.parallel_for(m, [&](std::int64_t j) {
    for (std::int64_t c = 0; c < inputs; ++c) {
      double sum = 0;
      for (std::int64_t u = j * hidden_; u < (j + 1) * hidden_; ++u)
        sum += parameters[u * inputs + c] * slope[static_cast<std::size_t>(u)];
      sign(c, j) = (sum > 0) - (sum < 0);
    }
  });
}

} // namespace

template <class T>
std::unique_ptr<Model<T>> make_mlp(std::int64_t features, Causes causes, const Noise& noise,
                                   const DagOptions& options) {
  const std::int64_t inputs = causes.empty() ? features : causes.rows();
  const std::int64_t units = features * options.hidden;
  const Shape shape{features, inputs, options.hidden, inputs * units + 2 * units + features,
                    inputs * units + units};
  return std::make_unique<MlpSem<T>>(shape, std::move(causes), noise);
}

template std::unique_ptr<Model<float>> make_mlp(std::int64_t, Causes, const Noise&,
                                                         const DagOptions&);
template std::unique_ptr<Model<double>> make_mlp(std::int64_t, Causes, const Noise&,
                                                         const DagOptions&);

} // namespace cape::sem
