// What the single-threaded OpenBLAS needs to serve a program of many threads well: the right kernel,
// and a lock.
module;
#include <cstdlib>
#include <mutex>
#include <string>
#include <string_view>
module cape.core;

extern "C" {
char* openblas_get_config(void);
char* openblas_get_corename(void);
void gotoblas_dynamic_init(void);
void gotoblas_dynamic_quit(void);
void* __real_blas_memory_alloc(int position);
void __real_blas_memory_free(void* buffer);
}

namespace cape {
namespace {

// The best kernel that this CPU could run, by OpenBLAS's name; null to leave it to OpenBLAS.
const char* best_kernel() {
#if defined(__x86_64__)
  __builtin_cpu_init(); // a constructor may run before the compiler's own initialisation
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512cd"))
    return "SkylakeX";
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "Haswell";
#endif
  return nullptr;
}

constexpr const char* variable = "OPENBLAS_CORETYPE";

// OpenBLAS's kernels of one instruction set are alike: no switch inside a group.
int group(std::string_view kernel) {
  if (kernel == "SkylakeX" || kernel == "Cooperlake" || kernel == "SapphireRapids") return 3;
  if (kernel == "Haswell" || kernel == "Zen" || kernel == "Excavator") return 2;
  return 1;
}

} // namespace

// Debian's OpenBLAS picks its kernels from a table of CPU models and takes a slow one for a CPU that
// is newer than the table. The choice is made again here, from what the CPU can do.
//
// Runs when the library is loaded, before or after OpenBLAS's own constructor (which does nothing
// when a kernel is already there). The environment of the process is left as it was. Its name is
// C's so that the build can ask for it: nothing refers to it, and a static library would leave it
// out.
extern "C" [[gnu::constructor]] void cape_choose_blas_kernel() {
  const char* best = best_kernel();
  if (best == nullptr || std::getenv(variable) != nullptr) return;
  gotoblas_dynamic_init();
  if (group(openblas_get_corename()) != group(best)) {
    gotoblas_dynamic_quit();
    setenv(variable, best, 1);
    gotoblas_dynamic_init();
    unsetenv(variable);
  }
}

// The single-threaded OpenBLAS (unless built with USE_LOCKING, and Debian's is not) hands out its
// work buffers without a lock: two threads can get the same one, and then both products are wrong.
// The linker puts these two in the place of its allocator (see lib/CMakeLists.txt).
namespace {
constinit std::mutex buffers;
} // namespace

extern "C" void* __wrap_blas_memory_alloc(int position) {
  const std::lock_guard lock(buffers);
  return __real_blas_memory_alloc(position);
}

extern "C" void __wrap_blas_memory_free(void* buffer) {
  const std::lock_guard lock(buffers);
  __real_blas_memory_free(buffer);
}

BlasInfo blas_info() {
  BlasInfo info;
  info.library = openblas_get_config();
  info.kernel = openblas_get_corename();
  const char* best = best_kernel();
  info.cpu_best = best != nullptr && group(info.kernel) != group(best) ? best : info.kernel;
  info.chosen_by_user = std::getenv(variable) != nullptr;
  return info;
}

} // namespace cape
