// The paper's own form z = f(x)(I - A) with one f for all columns (eq_enc): once with the scale of
// f held by its Jacobian, and once word for word.
module;
#include "internal/arma.hpp"
#include "internal/borrow.hpp"
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

// z = f (I - A) for values f of a batch: z, its score, and the gradients with respect to A (into
// slope) and to f (into f_slope).
class MixingLayer {
public:
  double score(const Batch<double>& batch, const arma::mat& f, const arma::mat& a,
               bool unequal_variances, arma::mat& slope, arma::mat& f_slope) {
    z_ = f - f * a;
    double total = 0;
    for (arma::uword j = 0; j < z_.n_cols; ++j)
      total +=
          column_score(z_.colptr(j), batch.rows,
                       batch.weight ? batch.weight + j * z_.n_rows : nullptr, unequal_variances);
    slope = f.t() * z_;
    slope *= -1;
    slope.diag().zeros();
    f_slope = z_ - z_ * a.t();
    return total;
  }

private:
  arma::mat z_;
};

// The sign of A: f is shared, so a cause and its effect go through it the same way.
void signs_of(const double* a, Matrix& sign) {
  for (std::int64_t e = 0; e < sign.size(); ++e) sign.data()[e] = (a[e] > 0) - (a[e] < 0);
}

// f(x) = c + x + sum_k u_k tanh(w_k x + b_k). Without an anchor nothing fixes the scale of f; the
// change of variables does: log p(x) = log p(z) + sum_j log|f'(x_j)|.
class PaperSem final : public EdgeWeightModel<double> {
public:
  PaperSem(std::int64_t features, bool unequal_variances)
      : EdgeWeightModel({features, features, 1, features * features + 3 * units + 1, 0}),
        unequal_variances_(unequal_variances) {}

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

  bool unequal_variances_;
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
  const double noise = mixing_.score(batch, f_, a, unequal_variances_, slope, f_slope_);

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
  return unequal_variances_ ? Score{noise - log_jacobian, 0} : Score{-log_jacobian, noise};
}

// y = c + sum_k v_k relu(w_k x + b_k), entry by entry: the "1-64-1" of the paper.
class ScalarRelu {
public:
  static constexpr int units = 64;
  static constexpr int parameters = 3 * units + 1;

  static void initialize(Rng& rng, double* p) { // Glorot and Bengio's uniform
    const double bound = std::sqrt(6.0 / (units + 1));
    for (int k = 0; k < 3 * units; ++k)
      p[k] = k / units == 1 ? 0 : rng.uniform(-bound, bound); // w, b = 0, v
    p[3 * units] = 0;
  }
  static void forward(const double* p, const arma::mat& x, arma::mat& y, Run& run) {
    const double *w = p, *b = w + units, *v = b + units;
    y.set_size(x.n_rows, x.n_cols);
    y.fill(v[units]);
    for (int k = 0; k < units; ++k) {
      run.poll();
      for (arma::uword e = 0; e < x.n_elem; ++e)
        y.memptr()[e] += v[k] * std::max(w[k] * x.memptr()[e] + b[k], 0.0);
    }
  }
  /// From dy to the gradients of the parameters and dx.
  static void backward(const double* p, const arma::mat& x, const arma::mat& dy, double* gradient,
                       arma::mat& dx, Run& run) {
    const double *w = p, *b = w + units, *v = b + units;
    double *gw = gradient, *gb = gw + units, *gv = gb + units;
    dx.zeros(x.n_rows, x.n_cols);
    for (int k = 0; k < units; ++k) {
      run.poll();
      double sw = 0, sb = 0, sv = 0;
      for (arma::uword e = 0; e < x.n_elem; ++e) {
        const double pre = w[k] * x.memptr()[e] + b[k];
        if (pre <= 0) continue;
        const double d = dy.memptr()[e];
        sv += d * pre;
        sb += d * v[k];
        sw += d * v[k] * x.memptr()[e];
        dx.memptr()[e] += d * v[k] * w[k];
      }
      gw[k] = sw;
      gb[k] = sb;
      gv[k] = sv;
    }
    gv[units] = arma::accu(dy);
  }
};

// eq_enc, eq_dec and eq_OptDAG as written, the posterior being its mean: Z (I - A)^-1 is f(X)
// again, so the decoder sees f(X), the reconstruction says nothing about A, and neither does
// anything else fix the scale of f: A and f shrink together.
class LiteralSem final : public EdgeWeightModel<double> {
public:
  explicit LiteralSem(std::int64_t features)
      : EdgeWeightModel(
            {features, features, 1, features * features + 2 * ScalarRelu::parameters, 0}) {}

  void initialize(double* parameters, Run& run) const override {
    std::fill_n(parameters, edge_parameters(), 0.0);
    Rng rng(run.seed(), {hash("dag.init")});
    ScalarRelu::initialize(rng, parameters + edge_parameters());
    ScalarRelu::initialize(rng, parameters + edge_parameters() + ScalarRelu::parameters);
  }

  Score score(const Batch<double>& batch, const double* parameters, double* gradient,
              Run& run) override {
    const std::int64_t m = shape().features;
    const double* encoder = parameters + edge_parameters();
    const double* decoder = encoder + ScalarRelu::parameters;
    double* encoder_gradient = gradient + edge_parameters();
    const arma::mat x = borrow(batch.x, batch.rows, m);

    ScalarRelu::forward(encoder, x, f_, run);
    arma::mat slope = borrow(gradient, m, m);
    Score score;
    score.kl = mixing_.score(batch, f_, borrow(parameters, m, m), false, slope, f_slope_);

    ScalarRelu::forward(decoder, f_, error_, run);
    error_ -= x;
    const double n = static_cast<double>(batch.rows);
    arma::mat weighted = error_ / n;
    if (batch.weight) weighted %= borrow(batch.weight, batch.rows, m);
    score.reconstruction = 0.5 * arma::accu(weighted % error_);
    error_ = std::move(weighted);
    ScalarRelu::backward(decoder, f_, error_, encoder_gradient + ScalarRelu::parameters, back_,
                         run);
    f_slope_ += back_;
    ScalarRelu::backward(encoder, x, f_slope_, encoder_gradient, back_, run);
    return score;
  }

  void edge_signs(const Table&, const double* parameters, Matrix& sign, Run&) override {
    signs_of(parameters, sign);
  }

private:
  MixingLayer mixing_;
  arma::mat f_, f_slope_, error_, back_;
};

} // namespace

std::unique_ptr<Model<double>> make_paper(std::int64_t features, const DagOptions& options) {
  return std::make_unique<PaperSem>(features, options.standardize);
}

std::unique_ptr<Model<double>> make_literal(std::int64_t features, const DagOptions&) {
  return std::make_unique<LiteralSem>(features);
}

} // namespace cape::sem
