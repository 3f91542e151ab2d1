// cape.core: what every stage shares and nothing of what a stage does: status codes and errors,
// matrix views and owning matrices, the description of options, counter-based random numbers, and
// the run context (seed, threads, progress, cancellation).
module;
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <variant>
#include <vector>
export module cape.core;

export namespace cape {

inline constexpr int version_major = 0;
inline constexpr int version_minor = 1;
inline constexpr int version_patch = 0;

// ---------------------------------------------------------------------------------------- errors

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

/// Error(out_of_memory) with the figures if `bytes` is more than this machine's physical memory; to be
/// asked before a large allocation. `what` says what needs it: "embedding 9 nodes".
void check_memory(double bytes, std::string_view what);

// -------------------------------------------------------------------------------------- matrices

enum class Layout : std::int32_t { col_major = 0, row_major = 1 };

/// A borrowed dense matrix. `ld` is the distance, in elements, between the starts of neighbouring
/// columns (col_major) or rows (row_major).
template <class T>
struct BasicMatrixView {
  const T* data = nullptr;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t ld = 0;
  Layout layout = Layout::col_major;

  const T& operator()(std::int64_t i, std::int64_t j) const {
    return layout == Layout::col_major ? data[j * ld + i] : data[i * ld + j];
  }
};
using MatrixView = BasicMatrixView<double>;

class Run;

/// An owning dense matrix, column-major without gaps (ld == rows), zero when created.
template <class T>
class BasicMatrix {
public:
  BasicMatrix() = default;
  BasicMatrix(std::int64_t rows, std::int64_t cols)
      : rows_(rows), cols_(cols),
        values_(static_cast<std::size_t>(checked_size(rows, cols, "matrix"))) {}
  /// The same, polling the run meanwhile: a gigabyte of zeros takes half a second.
  BasicMatrix(std::int64_t rows, std::int64_t cols, Run& run);

  std::int64_t rows() const noexcept { return rows_; }
  std::int64_t cols() const noexcept { return cols_; }
  std::int64_t size() const noexcept { return rows_ * cols_; }
  bool empty() const noexcept { return values_.empty(); }
  T* data() noexcept { return values_.data(); }
  const T* data() const noexcept { return values_.data(); }
  T* column(std::int64_t j) noexcept { return values_.data() + j * rows_; }
  const T* column(std::int64_t j) const noexcept { return values_.data() + j * rows_; }
  T& operator()(std::int64_t i, std::int64_t j) noexcept {
    return values_[static_cast<std::size_t>(j * rows_ + i)];
  }
  const T& operator()(std::int64_t i, std::int64_t j) const noexcept {
    return values_[static_cast<std::size_t>(j * rows_ + i)];
  }
  BasicMatrixView<T> view() const noexcept {
    return {values_.data(), rows_, cols_, rows_, Layout::col_major};
  }
  operator BasicMatrixView<T>() const noexcept { return view(); }
  bool operator==(const BasicMatrix&) const = default;

private:
  std::int64_t rows_ = 0;
  std::int64_t cols_ = 0;
  std::vector<T> values_;
};
using Matrix = BasicMatrix<double>;

/// A borrowed sparse matrix, compressed along columns (col_major: CSC) or rows (row_major: CSR).
/// `offsets` has one entry more than there are columns (rows); `indices` are the row (column)
/// numbers, strictly increasing inside each column (row).
/// An R dgCMatrix of genes x cells is, without a copy, the row_major form of cells x genes.
struct SparseView {
  const double* values = nullptr;
  const std::int32_t* indices = nullptr;
  const std::int64_t* offsets = nullptr;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  Layout layout = Layout::col_major;

  std::int64_t outer() const { return layout == Layout::col_major ? cols : rows; }
  std::int64_t inner() const { return layout == Layout::col_major ? rows : cols; }
  std::int64_t nonzeros() const { return outer() > 0 ? offsets[outer()] : 0; }
};

/// An owning sparse matrix in one of the two compressed forms; what is not stored is 0.
struct SparseMatrix {
  std::vector<double> values;
  std::vector<std::int32_t> indices;
  std::vector<std::int64_t> offsets;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  Layout layout = Layout::col_major;

  SparseView view() const {
    return {values.data(), indices.data(), offsets.data(), rows, cols, layout};
  }
  operator SparseView() const { return view(); }
  bool empty() const noexcept { return rows == 0 || cols == 0; }
  /// Entry (i, j), which must lie inside. O(log of the entries of its column (row)).
  double operator()(std::int64_t i, std::int64_t j) const;
  bool operator==(const SparseMatrix&) const = default;
};

/// Throw unless a view is usable: dimensions not negative, their product representable, data not
/// null where there are elements, ld at least the length of a column (row). `name` is the argument.
void check_view(const MatrixView& view, std::string_view name);
/// The same for a float matrix.
void check_view(const BasicMatrixView<float>& view, std::string_view name);
/// The same for a sparse view: offsets start at 0 and do not fall, indices in range and increasing.
/// O(nonzeros).
void check_view(const SparseView& view, std::string_view name);
/// Throw Error(invalid_argument) with the place of the first NaN or infinity and their count.
void check_finite(const MatrixView& view, std::string_view name);

/// The same for the entries of a sparse view.
void check_finite(const SparseView& view, std::string_view name);

/// A column-major copy of a view.
Matrix to_matrix(const MatrixView& view);
/// The same of a sparse view. Error(out_of_memory) if rows x cols numbers do not fit.
Matrix to_matrix(const SparseView& view);
/// The entries of a view that are not zero, compressed along its own layout. Error(invalid_argument)
/// unless both sides are below 2^31.
SparseMatrix to_sparse(const MatrixView& view);

// --------------------------------------------------------------------------------------- options

/// An option with a closed set of named values, bound to the field of an options struct.
struct Choice {
  std::vector<std::string_view> names;
  std::function<std::int32_t()> get;
  std::function<void(std::int32_t)> set;
};

/// One option: its key ("dag.lambda"), the field it is bound to, the range, what it does, and the
/// equation or section of the paper (or of docs/method.md) that it comes from. The default is
/// whatever the field of a newly made struct holds: there is no second place for it.
struct OptionField {
  std::string_view name;
  std::variant<double*, std::int64_t*, bool*, Choice> value;
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  bool open_min = false;  ///< min itself is not allowed
  bool open_max = false;  ///< max itself is not allowed
  bool automatic = false; ///< NaN (double) or -1 (integer) means: chosen by the stage, see doc
  std::string_view doc;
  std::string_view source;
};
using OptionFields = std::vector<OptionField>;

/// Bind an enum field. The enumerators must be 0, 1, 2, ... in the order of the names.
template <class Enum>
Choice choice(Enum& field, std::initializer_list<std::string_view> names) {
  return {names, [&field] { return static_cast<std::int32_t>(field); },
          [&field](std::int32_t i) { field = static_cast<Enum>(i); }};
}

/// Throw Error(invalid_argument) naming the first option that is out of its range, its value and
/// the range.
void check_options(const OptionFields& fields);
/// "[0, 1)" and the like, or the names of a choice; for messages and documentation.
std::string option_range(const OptionField& field);
/// The present value as text: "0.02", "nan", "100", "true", or the name of the choice. Numbers are
/// in the shortest form that reads back the same.
std::string option_text(const OptionField& field);
/// "double", "integer", "logical" or "choice".
std::string_view option_type(const OptionField& field);

// --------------------------------------------------------------------------------- random numbers

/// Counter-based random numbers (Philox 4x64-10): the stream is a pure function of the seed and the
/// key, so that work can be cut among any number of threads without changing a bit. The transforms
/// are our own (no std::*_distribution), so that the standard library does not matter.
class Rng {
public:
  /// A stream of its own for every (seed, key...).
  explicit Rng(std::uint64_t seed, std::initializer_list<std::uint64_t> key = {});

  std::uint64_t bits();
  double uniform();                        ///< in the open interval (0, 1)
  double uniform(double low, double high); ///< in (low, high)
  double normal();            ///< standard normal, by inversion: one number from one draw
  double exponential();       ///< rate 1
  double gumbel();            ///< standard Gumbel (location 0, scale 1)
  double gamma(double shape); ///< scale 1
  std::int64_t poisson(double mean);
  std::int64_t negative_binomial(double mean,
                                 double dispersion); ///< variance mean + dispersion*mean^2
  std::int64_t integer(std::int64_t n);              ///< uniform in 0 .. n-1, without bias
  std::vector<std::int64_t> permutation(std::int64_t n);

private:
  void refill();
  std::uint64_t key_[2];
  std::uint64_t counter_[4];
  std::uint64_t block_[4];
  int used_ = 4;
};

/// A 64-bit FNV-1a hash, to name streams ("dag.init") and to key them by content.
std::uint64_t hash(std::string_view text) noexcept;
std::uint64_t hash(std::span<const double> values) noexcept;
/// The hash of values that come in parts: that of all of them in one span.
class ValueHash {
public:
  ValueHash() noexcept;
  void add(std::span<const double> values) noexcept;
  std::uint64_t value() const noexcept;

private:
  std::uint64_t state_;
};

// ------------------------------------------------------------------------------------------- run

/// What a long computation tells while it runs. `stage` must outlive the run (a literal does).
struct Progress {
  std::string_view stage; ///< "dag.impute", "dag", "dag.refine", "dag.threshold", "embed"
  std::int64_t step = 0;  ///< steps done
  std::int64_t total = 0; ///< steps in all; 0 when not known
  double loss = std::numeric_limits<double>::quiet_NaN();
  double constraint = std::numeric_limits<double>::quiet_NaN(); ///< h(A) in Step I
};
/// Called on the thread that started the computation and on no other; return false to cancel.
using ProgressFunction = std::function<bool(const Progress&)>;

/// Results of finished pieces of work by their keys, in the order in which they were added. Any
/// thread may read and add at any time; only copies and assignments are the owner's alone.
class Journal {
public:
  struct Entry {
    std::uint64_t key;
    double value;
  };
  Journal();
  Journal(const Journal& other);
  Journal& operator=(const Journal& other);
  ~Journal();

  std::optional<double> find(std::uint64_t key) const;
  /// The first value of a key stays.
  void add(std::uint64_t key, double value);
  std::int64_t size() const;
  /// The first `count` entries, or all if there are fewer.
  std::vector<Entry> first(std::int64_t count) const;

private:
  struct Book;
  std::unique_ptr<Book> book_;
};

/// The context of one computation: seed, threads, progress. Every long function takes one.
/// Results depend on the seed and never on the number of threads.
class Run {
public:
  /// threads >= 1, else Error(invalid_argument). The progress function is called when `interval` has
  /// passed since it last returned, so that a slow one does not hold up the work; an interval of 0
  /// calls it whenever there is an occasion, which is how tests and benchmarks see each of them.
  explicit Run(std::uint64_t seed = 1, int threads = 1, ProgressFunction progress = {},
               std::chrono::milliseconds interval = std::chrono::milliseconds(50));
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;
  ~Run();

  std::uint64_t seed() const noexcept { return seed_; }
  int threads() const noexcept { return threads_; }

  /// Say where we are. On the owner's thread, when the interval has passed (and at a new stage and the
  /// last step), calls the progress function; throws Error(cancelled) once that has returned false.
  /// Cheap: call it often, before every 10^8 floating-point operations or so.
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

/// Lengthen values to that size by zeros, polling the run between pieces of 8 MB.
template <class T>
void lengthen(std::vector<T>& values, std::int64_t size, Run& run) {
  constexpr std::size_t piece = (std::size_t{1} << 23) / sizeof(T);
  const auto all = static_cast<std::size_t>(size);
  values.reserve(all);
  while (values.size() < all) {
    run.poll();
    values.resize(std::min(values.size() + piece, all));
  }
}

template <class T>
BasicMatrix<T>::BasicMatrix(std::int64_t rows, std::int64_t cols, Run& run)
    : rows_(rows), cols_(cols) {
  lengthen(values_, checked_size(rows, cols, "matrix"), run);
}

/// Where an interrupted fit can go on: its state at the end of an epoch, and what was finished
/// after the last one. Empty at the start.
struct Checkpoint {
  std::uint64_t fit = 0;     ///< stands for all of the caller's that the state depends on
  std::uint64_t build = 0;   ///< for the sources that it was computed by,
  std::uint64_t kernels = 0; ///< and for the BLAS kernel and the SIMD target, which round otherwise
  std::int64_t epoch = 0;     ///< whole epochs done
  std::vector<double> values; ///< what the fit has to know to go on
  Journal journal;            ///< of the refinement: its regressions and its decisions

  /// For this fit from now on. Error(invalid_argument) if it is that of another, which says in
  /// what; `same` is what both must have in common: "graph, options or seed".
  void claim(std::uint64_t id, std::string_view same);
  /// Error(invalid_argument) unless there are that many values, all of them finite.
  void check(std::int64_t expected) const;
};

// ------------------------------------------------------------------------------------------ build

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
