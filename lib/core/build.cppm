// What the library was built from, and what it found to compute with.
module;
#include <cstdint>
#include <string>
#include <string_view>
export module cape.core:build;

export namespace cape {

inline constexpr int version_major = 0;
inline constexpr int version_minor = 1;
inline constexpr int version_patch = 0;

/// The linear algebra underneath, as found at run time.
struct BlasInfo {
  std::string library;         ///< OpenBLAS's own configuration string
  std::string kernel;          ///< the kernel in use, e.g. "SkylakeX"
  std::string cpu_best;        ///< the best kernel that this CPU could run
  bool chosen_by_user = false; ///< OPENBLAS_CORETYPE was set by the user and respected
};
BlasInfo blas_info();

/// Compare products of matrices of odd shapes (plain, transposed, symmetric) with a plain loop.
/// Error(internal) naming the kernel if they disagree by more than rounding: OpenBLAS has had
/// kernels that are wrong on some CPUs. About a millisecond.
void self_test();

/// DGEMM of n x n matrices through the BLAS in use, on one thread: GF/s, the best of five by
/// processor time. n in 1 .. 8192, else Error(invalid_argument). O(n^3).
double blas_rate(std::int64_t n);

/// Version, compiler, BLAS, SIMD target and threads on one line each.
std::string build_info();
/// A short id of the sources that this library was built from (or the version when not known).
std::string_view build_id() noexcept;

} // namespace cape
