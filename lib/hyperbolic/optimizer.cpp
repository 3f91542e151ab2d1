module;
#include "internal/sizes.hpp"
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <new>
#include <numeric>
#include <optional>
#include <span>
#include <string_view>
#include <typeinfo>
#include <vector>
module cape.hyperbolic;
import cape.optim;
#include "hyperbolic/lorentz.hpp"
#include "hyperbolic/optimizer.hpp"

namespace cape {
// GCC 14 crashes on a member whose imported class it has not completed before.
static_assert(sizeof(Matrix) > 0 && sizeof(std::vector<double>) > 0);

namespace {

constexpr std::int64_t block_nodes = 64;
constexpr double longest_step = 2.0;

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

NodeAdam node_adam(const EmbedOptions& options, std::int64_t coordinates, std::int64_t nodes) {
  if (options.optimizer == Optimizer::rsgd) return std::nullopt;
  return optim::GroupAdam(coordinates, nodes, {.epsilon = 1e-10});
}

RiemannianOptimizer::RiemannianOptimizer(const EmbedOptions& options, std::int64_t nodes)
    : max_radius_(options.max_radius), adam_(node_adam(options, options.dims + 1, nodes)) {}

std::vector<std::span<double>> RiemannianOptimizer::state() {
  return adam_ ? adam_->state() : std::vector<std::span<double>>();
}

std::int64_t RiemannianOptimizer::step(Matrix& points, const Matrix& gradient, std::int64_t epoch,
                                       double learning_rate, Run& run) {
  const auto n = static_cast<std::size_t>(points.rows());
  const std::int64_t blocks = ceil_div(points.cols(), block_nodes);
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
  if (adam_) {
    rate /= adam_->update(node, direction, lorentz::norm(point, direction), epoch);
    std::ranges::copy(adam_->mean(node), direction.begin());
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
  if (adam_)
    std::ranges::transform(direction, adam_->mean(node).begin(),
                           [&](double x) { return length * x; });
  return held;
}

} // namespace cape
