module;
#include "internal/message.hpp"
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <variant>
#include <vector>
module cape.hyperbolic;
#include "hyperbolic/result.hpp"

namespace cape {
namespace {

std::string order_warning(std::int64_t against, std::int64_t edges, std::int64_t on_cycles) {
  std::string text = message(against, " of ", edges,
                             " edges have their cause no nearer the origin than their effect");
  if (on_cycles > 0)
    text += message("; ", on_cycles,
                    " edges lie on cycles, along which no order of radii can follow every edge");
  return text;
}

} // namespace

Embedding at_origin(std::int64_t nodes, std::int64_t dims) {
  const auto n = static_cast<std::size_t>(nodes);
  Embedding out{.hyperboloid = Matrix(nodes, dims + 1), // GCC 14 fails at one without values
                .poincare = Matrix(nodes, dims),
                .generality = std::vector<double>(n, 1.0),
                .radius = std::vector<double>(n),
                .pagerank = {},
                .history = {},
                .warnings = {}};
  std::fill_n(out.hyperboloid.column(0), nodes, 1.0);
  return out;
}

void put_in_rows(const Matrix& points, const std::vector<std::int64_t>& nodes, Embedding& out) {
  const std::int64_t d = points.rows() - 1;
  std::vector<double> e(static_cast<std::size_t>(d));
  for (std::int64_t k = 0; k < points.cols(); ++k) {
    const std::int64_t node = nodes[static_cast<std::size_t>(k)];
    const auto row = static_cast<std::size_t>(node);
    lorentz::to_poincare({points.column(k), static_cast<std::size_t>(d) + 1}, e);
    double pp = 0;
    for (std::int64_t i = 0; i <= d; ++i) out.hyperboloid(node, i) = points(i, k);
    for (std::int64_t i = 0; i < d; ++i) {
      out.poincare(node, i) = e[static_cast<std::size_t>(i)];
      pp += points(i + 1, k) * points(i + 1, k);
    }
    // 1 - |e| with |e| = tanh(r/2), without its cancellation.
    out.radius[row] = std::asinh(std::sqrt(pp));
    out.generality[row] = 2 / (1 + std::exp(out.radius[row]));
  }
}

void check_order(const Digraph& graph, const CausalOrder& order,
                 const std::vector<std::int64_t>& nodes, bool wanted, Embedding& out) {
  std::vector<double> radius(nodes.size());
  for (std::size_t k = 0; k < nodes.size(); ++k)
    radius[k] = out.radius[static_cast<std::size_t>(nodes[k])];
  out.n_out_of_order = std::ranges::count_if(graph.edges(), [&](const Edge& e) {
    return !(radius[static_cast<std::size_t>(e.from)] < radius[static_cast<std::size_t>(e.to)]);
  });
  if (!wanted || out.n_out_of_order == 0) return;
  const std::int64_t edges = std::ssize(graph.edges());
  out.warnings.push_back(order_warning(out.n_out_of_order, edges, edges - order.size()));
  out.converged = out.converged && order.count_against(radius) == 0;
}

} // namespace cape
