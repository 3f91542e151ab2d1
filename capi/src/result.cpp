// The whole run.
#include <cmath>
#include <new>
#include <string>

#include "handle.hpp"

using namespace cape::capi;

cape_status cape_fit_from(cape_result** out, const cape_matrix_view* x, const cape_prior* prior,
                          cape_checkpoint* checkpoint, const cape_options* options) {
  return compute(out, x, prior, options,
                 [&](const auto& table, const auto& p, const auto& o, auto& run) {
                   try {
                     cape::FitCheckpoint* state =
                         checkpoint ? &object(checkpoint, "checkpoint").state : nullptr;
                     return cape::fit(table, o.values, run, p, state);
                   } catch (const std::bad_alloc&) { // say how much is needed
                     const double bytes = estimate(table.rows, table.cols, o.values).bytes;
                     throw cape::Error(cape::Status::out_of_memory,
                                       cape::message("out of memory: a fit of ", table.rows,
                                                     " observations x ", table.cols,
                                                     " features needs about ",
                                                     std::ceil(bytes / 1e5) / 10, " MB"));
                   }
                 });
}

cape_status cape_fit(cape_result** out, const cape_matrix_view* x, const cape_options* options) {
  return cape_fit_from(out, x, nullptr, nullptr, options);
}

void cape_result_free(cape_result* result) { release(result); }

cape_status cape_result_dag(const cape_dag** out, const cape_result* result) {
  clear(out);
  return guard([&] { required(out, "out") = &object(result, "result").dag; });
}

cape_status cape_result_embedding(const cape_embedding** out, const cape_result* result) {
  clear(out);
  return guard([&] { required(out, "out") = &object(result, "result").embedding; });
}

cape_status cape_result_angles(double* out, int64_t n_rows, int64_t n_cols,
                               const cape_result* result) {
  return guard([&] { copy_matrix(out, n_rows, n_cols, object(result, "result").angles); });
}

namespace {

template <class T>
cape_status angles_by_row(T* out, int64_t n_rows, int64_t n_cols, const cape_result* result) {
  return guard([&] {
    const cape::Matrix& angles = object(result, "result").angles;
    check_sizes(n_rows, n_cols, angles.rows(), angles.cols());
    if (angles.empty()) return;
    required(out, "out");
    for (int64_t i = 0; i < n_rows; ++i)
      for (int64_t j = 0; j < n_cols; ++j) out[i * n_cols + j] = static_cast<T>(angles(i, j));
  });
}

} // namespace

cape_status cape_result_angles_by_row(double* out, int64_t n_rows, int64_t n_cols,
                                      const cape_result* result) {
  return angles_by_row(out, n_rows, n_cols, result);
}

cape_status cape_result_angles_by_row_f32(float* out, int64_t n_rows, int64_t n_cols,
                                          const cape_result* result) {
  return angles_by_row(out, n_rows, n_cols, result);
}

cape_status cape_estimate(double* bytes_out, double* seconds_out, int64_t n, int64_t m,
                          const cape_options* options) {
  clear(bytes_out, seconds_out);
  return guard(options, [&](const cape_options& o) {
    required(bytes_out, "bytes_out");
    required(seconds_out, "seconds_out");
    const cape::Estimate need = estimate(n, m, o.values);
    *bytes_out = need.bytes;
    *seconds_out = need.seconds;
  });
}
