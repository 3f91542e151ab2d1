module;
#include "simd/vector_math.hpp"
#include <string>
#include <string_view>
#include <thread>
module cape.core;

namespace cape {

std::string_view build_id() noexcept { return CAPE_BUILD_ID; }

std::string build_info() {
  const BlasInfo blas = blas_info();
  // clang-format off
  return "cape " CAPE_VERSION " (" CAPE_BUILD_ID ")\n"
         "compiler: " CAPE_COMPILER "\n"
         "blas: " + blas.library + "\n"
         "blas kernel: " + blas.kernel + (blas.chosen_by_user ? " (set by the user)" : "") + "\n"
         "best kernel of this cpu: " + blas.cpu_best + "\n"
         "simd: " + simd::target() + "\n"
         "hardware threads: " + std::to_string(std::thread::hardware_concurrency());
  // clang-format on
}

} // namespace cape
