// The work buffer of the linear algebra; included in the purview of cape.core.
#pragma once

namespace cape {

/// Make sure that OpenBLAS has a work buffer, without which it would wait for ever.
/// Error(out_of_memory) if there is no room. Every Run asks; what computes without one asks itself.
void require_work_buffer();

} // namespace cape
