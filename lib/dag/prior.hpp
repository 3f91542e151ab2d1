// The errors of learn_dag() for what is said to be known before.
#pragma once

namespace cape {

/// For a table of so many columns; but those of the required edges together with the rest, which
/// are EdgeFactors'.
void check_knowledge(const Knowledge& knowledge, std::int64_t columns);
/// For a table of this size.
void check_design(const Design& design, std::int64_t rows, std::int64_t columns);

} // namespace cape
