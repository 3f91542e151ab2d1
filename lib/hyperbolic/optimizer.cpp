module;
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <new>
#include <numeric>
#include <span>
#include <typeinfo>
#include <vector>
module cape.hyperbolic;

namespace cape {
// GCC 14 crashes on a member whose imported class it has not completed before.
static_assert(sizeof(Matrix) > 0 && sizeof(std::vector<double>) > 0);

namespace {

constexpr std::int64_t block_nodes = 64;
constexpr double longest_step = 2.0;
constexpr double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-10;

// Bring a point that is beyond the largest radius back to it; true if it was.
bool hold(std::span<double> p, double max_radius) {
  double sum = 0;
  for (std::size_t i = 1; i < p.size(); ++i) sum += p[i] * p[i];
  const double length = std::sqrt(sum), largest = std::sinh(max_radius);
  if (length <= largest) return false;
  for (double& x : p.subspan(1)) x *= largest / length;
  lorentz::project(p);
  return true;
}

} // namespace

RiemannianOptimizer::RiemannianOptimizer(const EmbedOptions& options, std::int64_t nodes)
    : kind_(options.optimizer), max_radius_(options.max_radius) {
  if (kind_ == Optimizer::rsgd) return;
  momentum_ = Matrix(options.dims + 1, nodes);
  second_.resize(static_cast<std::size_t>(nodes));
}

std::vector<std::span<double>> RiemannianOptimizer::moments() {
  return {{momentum_.data(), static_cast<std::size_t>(momentum_.size())}, second_};
}

std::int64_t RiemannianOptimizer::step(Matrix& points, const Matrix& gradient, std::int64_t epoch,
                                       double learning_rate, Run& run) {
  const auto n = static_cast<std::size_t>(points.rows());
  const std::int64_t blocks = (points.cols() + block_nodes - 1) / block_nodes;
  std::vector<std::int64_t> held(static_cast<std::size_t>(blocks));
  run.parallel_for(blocks, [&](std::int64_t b) {
    const std::int64_t last = std::min((b + 1) * block_nodes, points.cols());
    for (std::int64_t i = b * block_nodes; i < last; ++i)
      held[static_cast<std::size_t>(b)] +=
          move({points.column(i), n}, {gradient.column(i), n}, i, epoch, learning_rate);
  });
  return std::accumulate(held.begin(), held.end(), std::int64_t{0});
}

bool RiemannianOptimizer::move(std::span<double> point, std::span<const double> gradient,
                               std::int64_t node, std::int64_t epoch, double learning_rate) {
  std::vector<double> direction(gradient.begin(), gradient.end());
  direction[0] = -direction[0];
  lorentz::project_tangent(point, direction, direction);

  double rate = learning_rate;
  if (kind_ == Optimizer::radam) {
    double& second = second_[static_cast<std::size_t>(node)];
    const double length = lorentz::norm(point, direction);
    const double* momentum = momentum_.column(node);
    for (std::size_t k = 0; k < point.size(); ++k)
      direction[k] = beta1 * momentum[k] + (1 - beta1) * direction[k];
    second = beta2 * second + (1 - beta2) * length * length;
    const auto t = static_cast<double>(epoch);
    rate /= (1 - std::pow(beta1, t)) * (std::sqrt(second / (1 - std::pow(beta2, t))) + epsilon);
  }
  const double length = lorentz::norm(point, direction);
  bool held = false;
  if (length > 0) {
    for (double& x : direction) x /= length;
    std::vector<double> end(point.size());
    lorentz::follow(point, direction, -std::min(rate * length, longest_step), end);
    std::copy(end.begin(), end.end(), point.begin());
    held = hold(point, max_radius_);
    if (held) lorentz::transport(end, point, direction, direction);
  }
  if (kind_ == Optimizer::radam)
    for (std::size_t k = 0; k < point.size(); ++k)
      momentum_(static_cast<std::int64_t>(k), node) = length * direction[k];
  return held;
}

} // namespace cape
