module;
#include "internal/sizes.hpp"
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <tuple>
#include <vector>
module cape.hyperbolic;
#include "hyperbolic/order.hpp"

namespace cape {
namespace {

// Radii are put in order with a margin that adds up to this along the longest path, or with the
// latter if that is less: enough to be told apart, and too little to be seen in distances.
constexpr double span_put_in_order = 0.04, most_put_in_order = 0.002;

} // namespace

// Components of strongly connected nodes are numbered against the edges between them.
CausalOrder::CausalOrder(const Digraph& graph) {
  const std::vector<std::int64_t> component = strong_components(graph);
  for (const Edge& e : graph.edges())
    if (component[at(e.from)] != component[at(e.to)]) edges_.push_back(e);
  std::ranges::sort(edges_, {}, [&](const Edge& e) {
    return std::tuple(-component[at(e.from)], e.from, e.to);
  });
  std::vector<std::int64_t> depth(at(graph.size()));
  for (const Edge& e : edges_) {
    depth[at(e.to)] = std::max(depth[at(e.to)], depth[at(e.from)] + 1);
    depth_ = std::max(depth_, depth[at(e.to)]);
  }
}

std::int64_t CausalOrder::count_against(std::span<const double> values) const {
  return std::ranges::count_if(
      edges_, [&](const Edge& e) { return !(values[at(e.from)] < values[at(e.to)]); });
}

double CausalOrder::margin_within(double span, double most) const {
  return depth_ > 0 ? std::min(span / static_cast<double>(depth_), most) : most;
}

std::vector<double> CausalOrder::raised(std::span<const double> values, double margin) const {
  std::vector<double> out(values.begin(), values.end());
  for (const Edge& e : edges_) out[at(e.to)] = std::max(out[at(e.to)], out[at(e.from)] + margin);
  return out;
}

std::vector<double> CausalOrder::lowered(std::span<const double> values, double margin) const {
  std::vector<double> out(values.begin(), values.end());
  for (std::size_t k = edges_.size(); k-- > 0;) {
    const Edge& e = edges_[k];
    out[at(e.from)] = std::min(out[at(e.from)], out[at(e.to)] - margin);
  }
  return out;
}

// Halfway between the raised and the lowered radii, or as far from the former as leaves every node
// at half of its raised radius: none comes to lie at the origin, where those without edges are.
std::vector<double> ordered_radii(const CausalOrder& order, std::span<const double> radius,
                                  double max_radius) {
  std::vector<double> out(radius.begin(), radius.end());
  if (order.count_against(radius) == 0) return out;
  const double margin =
      order.margin_within(std::min(span_put_in_order, max_radius / 4), most_put_in_order);
  for (double& r : out) r = std::max(r, margin);
  const std::vector<double> low = order.lowered(out, margin);
  out = order.raised(out, margin);
  double part = 0.5, farthest = 0;
  for (std::size_t i = 0; i < out.size(); ++i)
    if (low[i] < out[i] / 2) part = std::min(part, out[i] / 2 / (out[i] - low[i]));
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] += part * (low[i] - out[i]);
    farthest = std::max(farthest, out[i]);
  }
  if (farthest > max_radius)
    for (double& r : out) r *= max_radius / farthest;
  return out;
}

void put_in_order(const CausalOrder& order, double max_radius, Matrix& points) {
  std::vector<double> length(static_cast<std::size_t>(points.cols())), radius(length.size());
  for (std::size_t i = 0; i < length.size(); ++i) {
    const double* p = points.column(static_cast<std::int64_t>(i));
    double sum = 0;
    for (std::int64_t k = 1; k < points.rows(); ++k) sum += p[k] * p[k];
    length[i] = std::sqrt(sum);
    radius[i] = std::asinh(length[i]);
  }
  const std::vector<double> wanted = ordered_radii(order, radius, max_radius);
  for (std::size_t i = 0; i < length.size(); ++i) {
    if (wanted[i] == radius[i]) continue;
    double* p = points.column(static_cast<std::int64_t>(i));
    if (length[i] > 0)
      for (std::int64_t k = 1; k < points.rows(); ++k) p[k] *= std::sinh(wanted[i]) / length[i];
    else
      p[1] = std::sinh(wanted[i]); // the origin has no direction
    lorentz::project({p, static_cast<std::size_t>(points.rows())});
  }
}

} // namespace cape
