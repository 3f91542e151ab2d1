// The linear model z = x - xA: f of the paper is the identity.
module;
#include "internal/arma.hpp"
#include "internal/borrow.hpp"
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
#include "dag/noise.hpp"

namespace cape::sem {
namespace {

class LinearSem final : public EdgeWeightModel<double> {
public:
  LinearSem(std::int64_t features, const Noise& noise)
      : EdgeWeightModel({features, features, 1, features * features, 0}), noise_(noise) {}

  void initialize(double* parameters, Run&) const override {
    for (std::int64_t e = 0; e < edge_parameters(); ++e) parameters[e] = 0;
  }

  Score score(const Batch<double>& batch, const double* parameters, double* gradient,
              Run&) override {
    const std::int64_t n = batch.rows, m = shape().features;
    const arma::mat x = borrow(batch.x, n, m), a = borrow(parameters, m, m);
    arma::mat slope = borrow(gradient, m, m);
    residual_ = x - x * a;
    double total = 0;
    for (std::int64_t j = 0; j < m; ++j)
      total += noise_.score(residual_.colptr(static_cast<arma::uword>(j)), n,
                            batch.weight ? batch.weight + j * n : nullptr);
    slope = x.t() * residual_;
    slope *= -1;
    slope.diag().zeros();
    return noise_.part(total);
  }

  void edge_signs(const Table&, const double* parameters, Matrix& sign, Run&) override {
    for (std::int64_t e = 0; e < edge_parameters(); ++e)
      sign.data()[e] = (parameters[e] > 0) - (parameters[e] < 0);
  }

private:
  Noise noise_;
  arma::mat residual_;
};

} // namespace

std::unique_ptr<Model<double>> make_linear(std::int64_t features, const Noise& noise) {
  return std::make_unique<LinearSem>(features, noise);
}

} // namespace cape::sem
