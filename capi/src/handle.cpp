#include <functional>

#include "handle.hpp"

namespace cape::capi {
namespace {

// What a later version may give a meaning is 0 now, so that it is never ignored.
void check_reserved(std::int32_t given, std::string_view name) {
  if (given != 0)
    throw Error(Status::unsupported, message(name, "->reserved is ", given, "; it must be 0"));
}

} // namespace

MatrixView view_of(const cape_matrix_view* view, std::string_view name) {
  const auto given = read_struct(view, name, cape_matrix_view{});
  check_reserved(given.reserved, name);
  const MatrixView out{given.data, given.n_rows, given.n_cols, given.ld,
                       static_cast<Layout>(given.layout)};
  check_view(out, name);
  return out;
}

SparseView view_of(const cape_sparse_view* view, std::string_view name) {
  const auto given = read_struct(view, name, cape_sparse_view{});
  check_reserved(given.reserved, name);
  const SparseView out{given.values, given.indices, given.offsets,
                       given.n_rows, given.n_cols,  static_cast<Layout>(given.layout)};
  check_view(out, name);
  return out;
}

cape_row_source checked_source(const cape_row_source* source) {
  const auto given = read_struct(source, "source", cape_row_source{});
  required(given.read, "source.read");
  return given;
}

std::function<void(std::span<const std::int64_t>, double*)>
reader_of(const cape_row_source& source) {
  return [source](std::span<const std::int64_t> rows, double* values) {
    const auto n = static_cast<std::int64_t>(rows.size());
    if (source.read(values, rows.data(), n, source.ctx) != 0)
      throw Error(Status::io, message("source.read gave up on ", n, " rows, the first of them row ",
                                      rows.front(), " (counted from 0)"));
  };
}

MatrixView rows_view(const cape_matrix_view* view, std::int64_t n, std::string_view name) {
  const MatrixView out = view_of(view, name);
  check_length(out.rows, n, message("the number of rows of ", name));
  return out;
}

void check_cancelled(const Calls& calls) {
  if (calls.cancelled) throw Error(Status::cancelled, "cancelled by cape_options_cancel()");
}

Run make_run(const cape_options& options) {
  const auto progress = [fn = options.progress, context = options.progress_context,
                         calls = options.calls](const Progress& now) {
    check_cancelled(*calls);
    if (fn == nullptr) return true;
    const std::string stage(now.stage);
    const cape_progress report{sizeof(cape_progress), stage.c_str(), now.step, now.total, now.loss,
                               now.constraint};
    return fn(&report, context) == 0;
  };
  const RunOptions& run = options.values.run;
  return Run(static_cast<std::uint64_t>(run.seed), static_cast<int>(run.threads), progress);
}

} // namespace cape::capi
