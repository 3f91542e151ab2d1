// The paper's objective word for word.
module;
#include "internal/arma.hpp"
#include "internal/borrow.hpp"
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
    score.kl = mixing_.score(batch, f_, borrow(parameters, m, m), Noise{}, slope, f_slope_);

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

std::unique_ptr<Model<double>> make_literal(std::int64_t features) {
  return std::make_unique<LiteralSem>(features);
}

} // namespace cape::sem
