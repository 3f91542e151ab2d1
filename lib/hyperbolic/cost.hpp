// What Step II needs: nodes, and memory for them.
#pragma once

namespace cape {

/// Error(invalid_argument) for a graph without nodes.
void check_nodes(const Digraph& graph);
/// Error(out_of_memory) if this machine has not what these options, settled, need.
void check_working_set(std::int64_t nodes, const EmbedOptions& options);

} // namespace cape
