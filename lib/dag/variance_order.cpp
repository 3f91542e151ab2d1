module;
#include "internal/message.hpp"
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <new>
#include <span>
#include <string>
#include <typeinfo>
#include <utility>
#include <variant>
#include <vector>
module cape.dag;

namespace cape {

VarianceOrder variance_order(const Digraph& graph, std::span<const double> deviations) {
  if (std::ssize(deviations) != graph.size())
    throw Error(Status::dim_mismatch, message("deviations has ", deviations.size(),
                                              " values; the graph has ", graph.size(), " nodes"));
  if (!std::ranges::all_of(deviations, [](double v) { return std::isfinite(v); }))
    throw Error(Status::invalid_argument, "deviations has values that are not finite");
  const auto edges = static_cast<double>(graph.edges().size());
  if (edges == 0) return {};
  double rising = 0;
  std::vector<double> surplus(deviations.size()); // effects less causes
  for (const Edge& e : graph.edges()) {
    const auto from = static_cast<std::size_t>(e.from), to = static_cast<std::size_t>(e.to);
    rising += deviations[from] < deviations[to] ? 1 : deviations[from] == deviations[to] ? 0.5 : 0;
    ++surplus[from];
    --surplus[to];
  }
  // Two edges of one node rise together with the probability 1/3 if both leave or both enter it,
  // and 1/6 if it is between them.
  double squares = 0;
  for (const double s : surplus) squares += s * s;
  return {rising / edges, std::sqrt((edges + squares) / 12) / edges};
}

} // namespace cape
