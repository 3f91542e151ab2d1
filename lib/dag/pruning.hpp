// The graph of a fit by a threshold on its weights.
#pragma once

namespace cape {

/// Fill graph, order, threshold, effective_threshold and n_removed_for_acyclicity from weights and
/// sign. Nodes are visited in the given order, so that ties do not depend on how they are numbered.
void set_pruned_graph(Dag& dag, double tau, std::span<const std::int64_t> visit, Run& run);

} // namespace cape
