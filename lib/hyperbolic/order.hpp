// The causal order of radii.
#pragma once

namespace cape {

/// The order that a graph asks of its nodes: along every edge that lies on no cycle, the effect
/// above its cause. (A cycle asks for none.)
class CausalOrder {
public:
  explicit CausalOrder(const Digraph& graph);
  inline std::int64_t size() const noexcept { return std::ssize(edges_); } ///< edges on no cycle
  /// Edges along which a value does not rise.
  std::int64_t count_against(std::span<const double> values) const;
  /// The margin by which values are to rise along an edge so that along the longest path they rise
  /// by at most `span`, and at most `most`.
  double margin_within(double span, double most) const;
  /// The smallest values that are not below the given ones and rise by the margin along every edge,
  /// and the largest that are not above them and do. What lies between the two at one ratio
  /// everywhere rises by it as well. O(E).
  std::vector<double> raised(std::span<const double> values, double margin) const;
  std::vector<double> lowered(std::span<const double> values, double margin) const;

private:
  std::vector<Edge> edges_; ///< those out of a node follow all those into it
  std::int64_t depth_ = 0;  ///< edges of the longest path
};

/// Radii that follow the order, near the given ones and at most max_radius; the same ones if they
/// follow it.
std::vector<double> ordered_radii(const CausalOrder& order, std::span<const double> radius,
                                  double max_radius);

/// Moves points, which are columns, along their directions until their radii follow the order.
void put_in_order(const CausalOrder& order, double max_radius, Matrix& points);

} // namespace cape
