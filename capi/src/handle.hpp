// The objects behind the handles of the C interface.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "guard.hpp"

namespace cape::capi {

/// First in every object: its type, so that a pointer to something else (and, as long as the memory
/// has not been used again, one to a freed object) is found out.
template <std::uint64_t value>
struct Tagged {
  static constexpr std::uint64_t tag_value = value;
  std::uint64_t tag = value;

  Tagged() = default;
  Tagged(const Tagged&) = default;
  Tagged& operator=(const Tagged&) = default;
  ~Tagged() { static_cast<volatile std::uint64_t&>(tag) = 0; } // volatile: not a dead store
};

/// The object of a handle. Error(invalid_argument) if it is null, Error(bad_state) if it is not
/// one.
template <class T>
T& object(T* handle, std::string_view name) {
  if (required(handle, name).tag != T::tag_value)
    throw Error(Status::bad_state,
                std::string(name) + " is not a handle of this type, or has been freed");
  return *handle;
}

/// Free what the handle owns; nothing for null and for what is not a handle of this type.
template <class T>
void release(T* handle) noexcept {
  if (handle != nullptr && handle->tag == T::tag_value) delete handle;
}

/// Make an object and hand it to the caller: make() gives the value that it is built from. *out is
/// null while the call has not succeeded.
template <class T, class Make>
cape_status create(T** out, Make&& make) noexcept {
  clear(out);
  return guard([&] {
    required(out, "out");
    *out = new T(make());
  });
}

/// Matrix and sparse views, checked. An older client's struct may lack the last fields.
MatrixView view_of(const cape_matrix_view* view, std::string_view name);
SparseView view_of(const cape_sparse_view* view, std::string_view name);

/// A source of rows, checked.
cape_row_source checked_source(const cape_row_source* source);
/// What reads rows from it, column by column, and throws Error(io) once it gives up.
std::function<void(std::span<const std::int64_t> rows, double* out)>
reader_of(const cape_row_source& source);

/// A view of n rows.
MatrixView rows_view(const cape_matrix_view* view, std::int64_t n, std::string_view name);

/// The C string. Error(invalid_argument) if it is null.
inline std::string_view text(const char* value, std::string_view name) {
  return &required(value, name);
}

} // namespace cape::capi

namespace cape::capi {

/// What the calls that take one options handle share: whether they are to stop, and why the last of
/// them to end failed.
struct Calls {
  std::atomic<bool> cancelled = false;
  static_assert(std::atomic<bool>::is_always_lock_free); // for signal handlers
  std::mutex lock;                                       ///< of the text
  ErrorText error{};
};

} // namespace cape::capi

struct cape_options : cape::capi::Tagged<0x6f70'7469'6f6e'7301> {
  cape::Options values;
  cape_progress_fn progress = nullptr;
  void* progress_context = nullptr;
  std::shared_ptr<cape::capi::Calls> calls = std::make_shared<cape::capi::Calls>();
};

struct cape_prior : cape::capi::Tagged<0x7072'696f'7200'0001>, cape::Prior {};

struct cape_checkpoint : cape::capi::Tagged<0x6368'6563'6b70'0001> {
  cape::FitCheckpoint state;
  cape::Checkpoint model;
  /// Entries of Step I's journal when the size was last asked for. While a fit runs it grows, on
  /// other threads too, and what is saved must have the size that was told.
  mutable std::atomic<std::int64_t> counted = 0;
};

struct cape_model : cape::capi::Tagged<0x6d6f'6465'6c00'0001> {
  explicit cape_model(cape::Backbone untrained) : backbone(std::move(untrained)) {}
  explicit cape_model(cape::Trained trained)
      : backbone(std::move(trained.backbone)), history(std::move(trained.history)),
        best_epoch(trained.best_epoch) {}
  cape::Backbone backbone;
  std::vector<cape::TrainingEpoch> history; ///< of the training that gave it
  int64_t best_epoch = 0;
};

struct cape_table : cape::capi::Tagged<0x7461'626c'6500'0001> {
  explicit cape_table(cape::Preprocessed table) : data(std::move(table)) {}
  cape::Preprocessed data;
};

struct cape_scan : cape::capi::Tagged<0x7363'616e'0000'0001> {
  explicit cape_scan(cape::FeatureScan empty) : scan(std::move(empty)) {}
  cape::FeatureScan scan;
};

/// Without history and scaling if it was learned elsewhere, see cape_dag_restore().
struct cape_dag : cape::capi::Tagged<0x6461'6700'0000'0001> {
  explicit cape_dag(cape::Dag fitted, bool is_learned)
      : dag(std::move(fitted)), learned(is_learned) {}
  /// A graph that was not learned here.
  explicit cape_dag(cape::Digraph graph) : learned(false) { dag.graph = std::move(graph); }
  cape::Dag dag; ///< the graph alone unless learned
  bool learned;
};

struct cape_embedding : cape::capi::Tagged<0x656d'6265'6464'0001> {
  explicit cape_embedding(cape::Embedding fitted) : embedding(std::move(fitted)) {}
  cape::Embedding embedding;
};

struct cape_result : cape::capi::Tagged<0x7265'7375'6c74'0001> {
  explicit cape_result(cape::Fit fit)
      : dag(std::move(fit.dag), true), embedding(std::move(fit.embedding)),
        angles(std::move(fit.angles)) {}
  cape_dag dag;
  cape_embedding embedding;
  cape::Matrix angles;
};

namespace cape::capi {

/// The context of a computation from the options "run.", the progress callback and
/// cape_options_cancel().
Run make_run(const cape_options& options);

/// Error(cancelled) after cape_options_cancel().
void check_cancelled(const Calls& calls);

/// Run the body of an entry point with a copy of the options, which the caller may change
/// meanwhile; why it failed is kept for cape_options_error().
template <class Body>
cape_status guard(const cape_options* options, Body&& body) noexcept {
  std::shared_ptr<Calls> calls;
  const cape_status status = guard([&] {
    const cape_options copy = object(options, "options");
    calls = copy.calls;
    check_cancelled(*calls);
    body(copy);
  });
  if (calls) {
    const std::lock_guard lock(calls->lock);
    copy_text(calls->error, cape_last_error()); // "" after a success
  }
  return status;
}

/// Make an object with options: make(the copy of them).
template <class T, class Make>
cape_status create(T** out, const cape_options* options, Make&& make) noexcept {
  clear(out);
  return guard(options, [&](const cape_options& o) {
    required(out, "out");
    *out = new T(make(o));
  });
}

/// Run the body of an entry point that needs of the options the run alone (threads, progress,
/// seed), so that they may be null: body(run).
template <class Body>
cape_status guard_run(const cape_options* options, Body&& body) noexcept {
  if (options == nullptr)
    return guard([&] {
      Run run;
      body(run);
    });
  return guard(options, [&](const cape_options& o) {
    Run run = make_run(o);
    body(run);
  });
}

/// Make an object in such an entry point: make(run).
template <class T, class Make>
cape_status create_run(T** out, const cape_options* options, Make&& make) noexcept {
  clear(out);
  return guard_run(options, [&](Run& run) {
    required(out, "out");
    *out = new T(make(run));
  });
}

/// An object made of a table with what is known of it, or null: make(table, prior, options, run).
template <class T, class Make>
cape_status compute(T** out, const cape_matrix_view* x, const cape_prior* prior,
                    const cape_options* options, Make make) noexcept {
  return create(out, options, [&](const cape_options& o) {
    const MatrixView table = view_of(x, "x");
    const cape_prior nothing;
    const cape_prior& p = prior == nullptr ? nothing : object(prior, "prior");
    Run run = make_run(o);
    return make(table, p, o, run);
  });
}

} // namespace cape::capi
