// What automatic options stand for.
#pragma once

namespace cape {

/// The options, checked, with values for what was automatic.
EmbedOptions settled(EmbedOptions options, std::int64_t nodes);
/// Do they ask for an order of radii?
inline bool ranks_radii(const EmbedOptions& options) {
  return options.objective == Objective::soft && options.rank_weight > 0;
}

} // namespace cape
