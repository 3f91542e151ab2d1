// Where the descent starts. Points are columns.
#pragma once

namespace cape {

/// Points ((d+1) x M) for the descent to start from: at random, or by classical scaling of all
/// distances (as for the objective), or of those from some landmarks, among which the others are
/// placed.
Matrix landmark_start(const Digraph& graph, const EmbedOptions& options, Run& run);
Matrix starting_points(Matrix distances, const EmbedOptions& options, std::int64_t nodes, Run& run);

} // namespace cape
