// What the single-threaded OpenBLAS needs to serve a program of many threads well: the right
// kernel, and a lock.
module;
#include "internal/message.hpp"
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <string>
#include <string_view>
#include <sys/mman.h>
module cape.core;
#include "core/work_buffer.hpp"

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

// Debian's OpenBLAS picks its kernels from a table of CPU models and takes a slow one for a CPU
// that is newer than the table. The choice is made again here, from what the CPU can do.
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
//
// Where there is no room for another buffer, OpenBLAS would ask for it for ever. So it is asked for
// one of those that it has: a thread waits until another gives its own back.
namespace {

constinit std::mutex buffers;
std::condition_variable given_back;
int n_buffers = 0; // that OpenBLAS has made; it keeps them
int n_in_use = 0;

// Its size with all kernels of x86-64 and arm64.
constexpr std::size_t buffer_size = std::size_t{128} << 20;

bool room_for_buffer() {
  void* const trial = mmap(nullptr, buffer_size, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (trial == MAP_FAILED) return false;
  munmap(trial, buffer_size);
  return true;
}

} // namespace

extern "C" void* __wrap_blas_memory_alloc(int position) {
  std::unique_lock lock(buffers);
  while (n_in_use == n_buffers) {
    if (n_buffers == 0 || room_for_buffer()) {
      ++n_buffers;
      break;
    }
    given_back.wait(lock);
  }
  ++n_in_use;
  return __real_blas_memory_alloc(position);
}

extern "C" void __wrap_blas_memory_free(void* buffer) {
  {
    const std::lock_guard lock(buffers);
    __real_blas_memory_free(buffer);
    --n_in_use;
  }
  given_back.notify_one();
}

void require_work_buffer() {
  const std::lock_guard lock(buffers);
  if (n_buffers > 0) return;
  if (!room_for_buffer())
    throw Error(
        Status::out_of_memory,
        message("linear algebra needs ", buffer_size >> 20,
                " MB of address space for its work, which this process does not have: raise "
                "the limit (ulimit -v) or the memory that may be committed"));
  __real_blas_memory_free(__real_blas_memory_alloc(0)); // now, while there is room
  n_buffers = 1;
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
