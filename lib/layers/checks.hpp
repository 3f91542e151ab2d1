// Whether spans are as long as the shapes say.
#pragma once

namespace cape::layers {

inline void check_length(std::size_t length, std::int64_t expected, const char* name) {
  if (static_cast<std::int64_t>(length) != expected)
    throw Error(Status::dim_mismatch,
                message(name, " has ", length, " elements; it must have ", expected));
}

// So many rows of that many elements; 0 for none.
inline std::int64_t width_of(std::size_t size, std::int64_t rows, const char* name) {
  if (rows < 0 || (rows == 0 ? size != 0 : size % static_cast<std::size_t>(rows) != 0))
    throw Error(Status::dim_mismatch,
                message(name, " has ", size, " elements; they must fill ", rows, " rows"));
  return rows == 0 ? 0 : static_cast<std::int64_t>(size) / rows;
}

} // namespace cape::layers
