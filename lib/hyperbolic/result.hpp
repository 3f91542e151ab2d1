// The result of Step II, of points that are columns.
#pragma once
#include "hyperbolic/order.hpp"

namespace cape {

/// All nodes at the origin, where those without edges stay.
Embedding at_origin(std::int64_t nodes, std::int64_t dims);
/// Points in columns to rows: column k is node number nodes[k].
void put_in_rows(const Matrix& points, const std::vector<std::int64_t>& nodes, Embedding& out);
/// Count the edges against the order, and say so if there should be none; node k of the graph is
/// number nodes[k] of the result.
void check_order(const Digraph& graph, const CausalOrder& order,
                 const std::vector<std::int64_t>& nodes, bool wanted, Embedding& out);

} // namespace cape
