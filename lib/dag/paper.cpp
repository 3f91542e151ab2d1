// The paper's own form z = f(x)(I - A) (eq_enc), the scale of f held by its Jacobian.
module;
#include "internal/arma.hpp"
#include "internal/borrow.hpp"
#include "simd/vector_math.hpp"
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <span>
#include <typeinfo>
#include <utility>
#include <variant>
#include <vector>
module cape.dag;
#include "dag/edge_weights.hpp"
#include "dag/mixing.hpp"

namespace cape::sem {
namespace {

// f(x) = c + x + sum_k u_k tanh(w_k x + b_k). Without an anchor nothing fixes the scale of f; the
// change of variables does: log p(x) = log p(z) + sum_j log|f'(x_j)|.
class PaperSem final : public EdgeWeightModel<double> {
public:
  PaperSem(std::int64_t features, const Noise& noise)
      : EdgeWeightModel({features, features, 1, features * features + 3 * units + 1, 0}),
        noise_(noise) {}

  void initialize(double* parameters, Run& run) const override {
    std::fill_n(parameters, edge_parameters(), 0.0);
    Rng rng(run.seed(), {hash("dag.init")});
    double* w = parameters + edge_parameters();
    for (int k = 0; k < 2 * units; ++k) w[k] = rng.normal();               // w, b
    for (int k = 2 * units; k < 3 * units; ++k) w[k] = 0.1 * rng.normal(); // u: f starts near x
    w[3 * units] = 0;
  }

  Score score(const Batch<double>& batch, const double* parameters, double* gradient,
              Run&) override;

  void edge_signs(const Table&, const double* parameters, Matrix& sign, Run&) override {
    signs_of(parameters, sign);
  }

private:
  static constexpr int units = 16;
  static constexpr double jacobian_floor = 1e-3; ///< log|f'| must not reach -inf where f turns

  Noise noise_;
  MixingLayer mixing_;
  arma::mat t_; ///< tanh by entry of the batch and unit
  arma::mat f_, f_slope_, derivative_, derivative_slope_;
};

Score PaperSem::score(const Batch<double>& batch, const double* parameters, double* gradient,
                      Run&) {
  const std::int64_t m = shape().features, n = batch.rows, size = n * m;
  const double *w = parameters + edge_parameters(), *b = w + units, *u = b + units, c = u[units];
  const double* x = batch.x;

  t_.set_size(static_cast<arma::uword>(size), units);
  f_ = borrow(x, n, m) + c;
  derivative_.ones(f_.n_rows, f_.n_cols);
  for (int k = 0; k < units; ++k) {
    double* t = t_.colptr(static_cast<arma::uword>(k));
    for (std::int64_t e = 0; e < size; ++e) t[e] = w[k] * x[e] + b[k];
    simd::tanh(t, t, size);
    double *f = f_.memptr(), *d = derivative_.memptr();
    for (std::int64_t e = 0; e < size; ++e) {
      f[e] += u[k] * t[e];
      d[e] += u[k] * w[k] * (1 - t[e] * t[e]);
    }
  }

  const arma::mat a = borrow(parameters, m, m);
  arma::mat slope = borrow(gradient, m, m);
  const double noise = mixing_.score(batch, f_, a, noise_, slope, f_slope_);

  double log_jacobian = 0;
  derivative_slope_.zeros(f_.n_rows, f_.n_cols);
  for (std::int64_t e = 0; e < size; ++e) {
    const double weight = batch.weight ? batch.weight[e] : 1;
    const double d = derivative_.memptr()[e], height = std::fabs(d) + jacobian_floor;
    log_jacobian += weight * std::log(height);
    derivative_slope_.memptr()[e] = -weight * (d < 0 ? -1 : 1) / (height * static_cast<double>(n));
  }
  log_jacobian /= static_cast<double>(n);

  double *gw = gradient + edge_parameters(), *gb = gw + units, *gu = gb + units;
  const double *gf = f_slope_.memptr(), *gd = derivative_slope_.memptr();
  for (int k = 0; k < units; ++k) {
    const double* t = t_.colptr(static_cast<arma::uword>(k));
    double sw = 0, sb = 0, su = 0;
    for (std::int64_t e = 0; e < size; ++e) {
      const double steep = 1 - t[e] * t[e];
      // with respect to the argument of tanh: through f, and through f'
      const double argument = (gf[e] - 2 * gd[e] * w[k] * t[e]) * u[k] * steep;
      su += gf[e] * t[e] + gd[e] * w[k] * steep;
      sw += argument * x[e] + gd[e] * u[k] * steep;
      sb += argument;
    }
    gw[k] = sw;
    gb[k] = sb;
    gu[k] = su;
  }
  gu[units] = arma::accu(f_slope_);
  Score score = noise_.part(noise);
  score.reconstruction -= log_jacobian;
  return score;
}

} // namespace

std::unique_ptr<Model<double>> make_paper(std::int64_t features, const Noise& noise) {
  return std::make_unique<PaperSem>(features, noise);
}

} // namespace cape::sem
