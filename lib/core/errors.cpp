module;
#include "internal/memory_limit.hpp"
#include "internal/message.hpp"
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
module cape.core;

namespace cape {

std::string_view status_name(Status status) noexcept {
  switch (status) {
  case Status::ok: return "ok";
  case Status::internal: return "internal";
  case Status::invalid_argument: return "invalid_argument";
  case Status::dim_mismatch: return "dim_mismatch";
  case Status::out_of_memory: return "out_of_memory";
  case Status::not_converged: return "not_converged";
  case Status::cancelled: return "cancelled";
  case Status::io: return "io";
  case Status::bad_format: return "bad_format";
  case Status::unsupported: return "unsupported";
  case Status::bad_state: return "bad_state";
  }
  return "unknown";
}

std::int64_t checked_size(std::int64_t rows, std::int64_t cols, std::string_view what) {
  // One exabyte of doubles is the most that an address can reach; below it no product of sizes
  // that the library forms can overflow.
  constexpr std::int64_t limit = std::int64_t{1} << 57;
  if (rows < 0 || cols < 0 || (cols > 0 && rows > limit / cols))
    throw Error(Status::invalid_argument,
                message(what, " is ", rows, " x ", cols,
                        ": dimensions must not be negative and their product must be below 2^57"));
  return rows * cols;
}

void check_memory(double bytes, std::string_view what) {
  const double have = memory_limit();
  if (bytes <= have) return;
  const auto megabytes = [](double n) { return std::round(n / 1e5) / 10; };
  throw Error(Status::out_of_memory,
              message(what, " needs ", megabytes(bytes), " MB of memory; this process can have ",
                      megabytes(have)));
}

} // namespace cape
