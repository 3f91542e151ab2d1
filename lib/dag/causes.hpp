// The columns that an effect is learned from.
#pragma once

namespace cape::sem {

/// Column numbers of the causes that every effect may have: inputs x features, without the effect
/// itself. Empty: all columns.
using Causes = BasicMatrix<std::int64_t>;

} // namespace cape::sem
