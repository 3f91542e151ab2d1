module;
#include "internal/message.hpp"
#include "simd/vector_math.hpp"
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <oneapi/tbb/info.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/partitioner.h>
#include <oneapi/tbb/task_arena.h>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
module cape.core;
#include "core/work_buffer.hpp"

#if defined(__SANITIZE_THREAD__)
#define CAPE_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define CAPE_THREAD_SANITIZER 1
#endif
#endif
#ifdef CAPE_THREAD_SANITIZER
extern "C" void __tsan_acquire(void*);
extern "C" void __tsan_release(void*);
#endif

namespace cape {
namespace {

// TBB orders a loop's bodies after what its caller did before and before what it does after. But
// TBB is built without ThreadSanitizer, which has to be told. Costs nothing without that tool.
struct HandOver {
#ifdef CAPE_THREAD_SANITIZER
  void give() { __tsan_release(this); }
  void take() { __tsan_acquire(this); }
#else
  void give() {}
  void take() {}
#endif
};
HandOver to_bodies, to_caller;

} // namespace

// One for all loops of a run: making an arena for every loop costs memory that TBB does not give
// back (5 MB a second of small loops).
struct Run::Arena : tbb::task_arena {
  using tbb::task_arena::task_arena;
};

Run::~Run() = default;

Run::Run(std::uint64_t seed, int threads, ProgressFunction progress,
         std::chrono::milliseconds interval)
    : seed_(seed), threads_(threads), progress_(std::move(progress)), interval_(interval),
      owner_(std::this_thread::get_id()), next_call_(std::chrono::steady_clock::now()) {
  if (threads < 1)
    throw Error(Status::invalid_argument,
                message("threads is ", threads, "; it must be at least 1"));
  if (const char* name = simd::unknown_target())
    throw Error(
        Status::invalid_argument,
        "CAPE_SIMD_TARGET is \"" + std::string(name) +
            "\" in the environment, which this build has no kernels for; unset it, or set it "
            "to the name of a set of instructions, such as SSSE3, AVX2 or AVX3");
  require_work_buffer();
}

void Run::call_progress() {
  if (progress_ && !progress_(last_)) cancelled_ = true;
  next_call_ = std::chrono::steady_clock::now() + interval_;
}

void Run::report(const Progress& progress) {
  if (std::this_thread::get_id() == owner_) {
    const bool new_stage = progress.stage != last_.stage;
    last_ = progress;
    const bool last_step = progress.total > 0 && progress.step == progress.total;
    if (new_stage || last_step || std::chrono::steady_clock::now() >= next_call_) call_progress();
  }
  if (cancelled_) throw Error(Status::cancelled, "cancelled by the progress callback");
}

void Run::poll() {
  if (std::this_thread::get_id() == owner_ && std::chrono::steady_clock::now() >= next_call_)
    call_progress();
  if (cancelled_) throw Error(Status::cancelled, "cancelled by the progress callback");
}

void Run::parallel_for(std::int64_t n, const std::function<void(std::int64_t)>& body) {
  if (threads_ == 1 || n < 2) {
    for (std::int64_t i = 0; i < n; ++i) {
      poll();
      body(i);
    }
    return;
  }
  struct Body {
    Body() { to_bodies.take(); }
    ~Body() { to_caller.give(); }
  };
  struct Loop {
    Loop() { to_bodies.give(); }
    ~Loop() { to_caller.take(); }
  };
  const auto guarded_body = [&](std::int64_t i) {
    const Body guard;
    poll();
    body(i);
  };
  const Loop guard;
  if (!arena_) // TBB warns of more threads than there are
    arena_ = std::make_unique<Arena>(std::min(threads_, tbb::info::default_concurrency()));
  try {
    arena_->execute(
        [&] { tbb::parallel_for(std::int64_t{0}, n, guarded_body, tbb::simple_partitioner{}); });
  } catch (const std::runtime_error& error) {
    // What TBB says if the system has no thread for it: "pthread_create has failed: ...".
    if (std::string_view(error.what()).starts_with("pthread_create"))
      throw Error(Status::out_of_memory,
                  message("the system starts no more threads (", error.what(), "); run.threads is ",
                          threads_, ", and 1 needs none"));
    throw;
  }
}

} // namespace cape
