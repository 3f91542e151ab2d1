// Lists of edges, and their ends by other numbers.
#pragma once

namespace cape {

/// Stands for the weight of a required edge where edges compete: stronger than all others.
inline constexpr double required_weight = std::numeric_limits<double>::max();

/// What is not zero, column by column.
std::vector<Edge> edges_of(const SparseMatrix& a);
/// From and to of edges.
using Pairs = std::set<std::pair<std::int64_t, std::int64_t>>;
Pairs pairs_of(const std::vector<Edge>& edges);
/// Every edge once, in the order of their first places, with the weight 1.
std::vector<Edge> distinct(const std::vector<Edge>& edges);
/// Of every one of `size` numbers its place in `numbers`, or -1.
std::vector<std::int64_t> inverse_numbering(std::int64_t size,
                                            std::span<const std::int64_t> numbers);
/// The edges whose ends both have a place, by their places, sorted by effect.
std::vector<Edge> edges_between(const std::vector<Edge>& edges,
                                std::span<const std::int64_t> place);
/// A matrix of columns of the caller's, of that size, from edges by their places in `columns`; what
/// was left out is 0.
SparseMatrix scatter(const std::vector<Edge>& edges, const std::vector<std::int64_t>& columns,
                     std::int64_t size, Run& run);

} // namespace cape
