// What learn_dag() needs of memory.
#pragma once

namespace cape {

/// The caller's table and ours.
double table_bytes(std::int64_t rows, std::int64_t columns);

} // namespace cape
