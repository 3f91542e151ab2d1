module;
// As in internal/arma.hpp: libstdc++ deprecates a function that its own stable_sort calls.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#include <algorithm>
#pragma GCC diagnostic pop
#include <cstdint>
#include <functional>
#include <limits>
#include <new>
#include <set>
#include <span>
#include <typeinfo>
#include <utility>
#include <vector>
#include <variant>
module cape.dag;
#include "dag/edge_lists.hpp"

namespace cape {

std::vector<Edge> edges_of(const SparseMatrix& a) {
  std::vector<Edge> all;
  for (std::int64_t j = 0; j < a.cols; ++j)
    for (auto e = static_cast<std::size_t>(a.offsets[static_cast<std::size_t>(j)]);
         e < static_cast<std::size_t>(a.offsets[static_cast<std::size_t>(j) + 1]); ++e)
      all.push_back({a.indices[e], j, a.values[e]});
  return all;
}

Pairs pairs_of(const std::vector<Edge>& edges) {
  Pairs pairs;
  for (const Edge& e : edges) pairs.emplace(e.from, e.to);
  return pairs;
}

std::vector<Edge> distinct(const std::vector<Edge>& edges) {
  Pairs known;
  std::vector<Edge> once;
  for (const Edge& e : edges)
    if (known.emplace(e.from, e.to).second) once.push_back({e.from, e.to, 1});
  return once;
}

std::vector<std::int64_t> inverse_numbering(std::int64_t size,
                                            std::span<const std::int64_t> numbers) {
  std::vector<std::int64_t> place(static_cast<std::size_t>(size), -1);
  for (std::size_t p = 0; p < numbers.size(); ++p)
    place[static_cast<std::size_t>(numbers[p])] = static_cast<std::int64_t>(p);
  return place;
}

std::vector<Edge> edges_between(const std::vector<Edge>& edges,
                                std::span<const std::int64_t> place) {
  std::vector<Edge> between;
  for (const Edge& e : edges) {
    const std::int64_t from = place[static_cast<std::size_t>(e.from)],
                       to = place[static_cast<std::size_t>(e.to)];
    if (from >= 0 && to >= 0) between.push_back({from, to, e.weight});
  }
  std::ranges::stable_sort(between, {}, &Edge::to);
  return between;
}

SparseMatrix scatter(const std::vector<Edge>& edges, const std::vector<std::int64_t>& columns,
                     std::int64_t size, Run& run) {
  std::vector<std::vector<std::pair<std::int32_t, double>>> entries(static_cast<std::size_t>(size));
  for (const Edge& e : edges)
    entries[static_cast<std::size_t>(columns[static_cast<std::size_t>(e.to)])].emplace_back(
        columns[static_cast<std::size_t>(e.from)], e.weight);
  SparseMatrix out;
  out.rows = out.cols = size;
  out.offsets.push_back(0);
  for (auto& column : entries) {
    run.poll();
    std::ranges::sort(column);
    for (const auto& [row, value] : column) {
      out.indices.push_back(row);
      out.values.push_back(value);
    }
    out.offsets.push_back(std::ssize(out.values));
  }
  return out;
}

} // namespace cape
