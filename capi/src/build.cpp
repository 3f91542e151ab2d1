// Status and build: what the library is.
#include <string>

#include "guard.hpp"

namespace {

// A text about this process: made once and kept. "" if there was no memory for it.
struct Text {
  explicit Text(std::string (*make)()) noexcept {
    cape::capi::guard([&] { value = make(); });
  }
  std::string value;
};

std::string version() {
  return std::to_string(cape::version_major) + "." + std::to_string(cape::version_minor) + "." +
         std::to_string(cape::version_patch);
}

} // namespace

const char* cape_status_name(int status) {
  return cape::status_name(static_cast<cape::Status>(status)).data(); // literals: null-terminated
}

uint32_t cape_abi_version(void) { return CAPE_ABI_VERSION; }

const char* cape_version_string(void) {
  static const Text text(version);
  return text.value.c_str();
}

const char* cape_build_id(void) { return cape::build_id().data(); }

const char* cape_build_info(void) {
  static const Text text(cape::build_info);
  return text.value.c_str();
}

const char* cape_blas_kernel(void) {
  static const Text text([] { return cape::blas_info().kernel; });
  return text.value.c_str();
}

const char* cape_blas_best_kernel(void) {
  static const Text text([] { return cape::blas_info().cpu_best; });
  return text.value.c_str();
}

cape_status cape_self_test(void) {
  return cape::capi::guard([] { cape::self_test(); });
}

cape_status cape_blas_rate(double* gflops_out, int64_t n) {
  cape::capi::clear(gflops_out);
  return cape::capi::guard(
      [&] { cape::capi::required(gflops_out, "gflops_out") = cape::blas_rate(n); });
}
