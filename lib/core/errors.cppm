// Status codes and errors, and the checks of sizes that come before all others.
module;
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
export module cape.core:errors;

export namespace cape {

/// Why a call failed. The values are pinned: the C ABI returns them as they are.
enum class Status : std::int32_t {
  ok = 0,
  internal = 1,
  invalid_argument = 2,
  dim_mismatch = 3,
  out_of_memory = 4,
  not_converged = 5,
  cancelled = 6,
  io = 7,
  bad_format = 8,
  unsupported = 9,
  bad_state = 10
};

/// The pinned name of a status, e.g. "invalid_argument"; "unknown" for any other value.
std::string_view status_name(Status status) noexcept;

/// The only exception that the library throws on purpose. what() names the argument, the value
/// that was given and what would be right.
class Error : public std::runtime_error {
public:
  Error(Status code, const std::string& message) : std::runtime_error(message), code_(code) {}
  Status code() const noexcept { return code_; }

private:
  Status code_;
};

/// rows * cols as a count of elements; Error(invalid_argument) if either is negative or the
/// product does not fit, before anything is allocated. `what` names the object in the message.
std::int64_t checked_size(std::int64_t rows, std::int64_t cols, std::string_view what);

/// Error(out_of_memory) with the figures if `bytes` is more than this machine's physical memory; to
/// be asked before a large allocation. `what` says what needs it: "embedding 9 nodes".
void check_memory(double bytes, std::string_view what);

} // namespace cape
