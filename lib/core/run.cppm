// The context of a computation: seed, threads, progress, cancellation.
module;
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string_view>
#include <thread>
export module cape.core:run;

export namespace cape {

/// What a long computation tells while it runs. `stage` must outlive the run (a literal does).
struct Progress {
  /// "preprocess", "simulate", "dag.impute", "dag", "dag.support", "dag.refine", "dag.threshold" or
  /// "embed"; "" in functions that have no steps to tell of.
  std::string_view stage;
  std::int64_t step = 0;  ///< steps done
  std::int64_t total = 0; ///< steps in all; 0 when not known
  double loss = std::numeric_limits<double>::quiet_NaN();
  double constraint = std::numeric_limits<double>::quiet_NaN(); ///< h(A) in Step I
};
/// Called on the thread that started the computation and on no other; return false to cancel.
using ProgressFunction = std::function<bool(const Progress&)>;

/// The context of one computation: seed, threads, progress. Every long function takes one.
/// Results depend on the seed and never on the number of threads.
class Run {
public:
  /// threads >= 1, else Error(invalid_argument). The progress function is called when `interval`
  /// has passed since it last returned, so that a slow one does not hold up the work; an interval
  /// of 0 calls it whenever there is an occasion, which is how tests and benchmarks see each of
  /// them.
  explicit Run(std::uint64_t seed = 1, int threads = 1, ProgressFunction progress = {},
               std::chrono::milliseconds interval = std::chrono::milliseconds(50));
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;
  ~Run();

  std::uint64_t seed() const noexcept { return seed_; }
  int threads() const noexcept { return threads_; }

  /// Say where we are. On the owner's thread, when the interval has passed (and at a new stage and
  /// the last step), calls the progress function; throws Error(cancelled) once that has returned
  /// false. Cheap: call it often, before every 10^8 floating-point operations or so.
  void report(const Progress& progress);
  /// report() again what was last reported: for loops inside a step. Callable from any thread;
  /// threads other than the owner's only look whether the run was cancelled.
  void poll();

  /// body(i) for i in 0 .. n-1 on up to threads() threads; each i must write only what is its own.
  /// The first exception of a body reaches the caller. Polls between the bodies.
  void parallel_for(std::int64_t n, const std::function<void(std::int64_t)>& body);

private:
  struct Arena;
  void call_progress();
  std::uint64_t seed_;
  int threads_;
  std::unique_ptr<Arena> arena_; ///< of the threads, made when first needed
  ProgressFunction progress_;
  std::chrono::milliseconds interval_;
  std::thread::id owner_;
  Progress last_;
  std::chrono::steady_clock::time_point next_call_;
  std::atomic<bool> cancelled_{false};
};

} // namespace cape
