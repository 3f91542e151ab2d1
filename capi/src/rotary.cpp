// Step III: angles, rotation, score.
#include <cstddef>
#include <string>
#include <vector>

#include "handle.hpp"

using namespace cape::capi;

namespace {

using Rotation = cape::Matrix (*)(const cape::MatrixView&, const cape::MatrixView&);

cape_status rotate_with(Rotation rotation, double* out, int64_t n_rows, int64_t n_cols,
                        const cape_matrix_view* v, const cape_matrix_view* angles) noexcept {
  return guard([&] {
    const cape::MatrixView vectors = view_of(v, "v"), phi = view_of(angles, "angles");
    check_output(out, n_rows, n_cols, vectors.rows, vectors.cols);
    copy_matrix(out, n_rows, n_cols, rotation(vectors, phi));
  });
}

} // namespace

cape_status cape_rotary_angles(double* out, int64_t n_rows, int64_t n_cols,
                               const cape_embedding* embedding, double scale) {
  return guard([&] {
    const cape::Matrix& ball = object(embedding, "embedding").embedding.poincare;
    check_output(out, n_rows, n_cols, ball.rows(), ball.cols());
    copy_matrix(out, n_rows, n_cols, rotary_angles(ball, scale));
  });
}

cape_status cape_rotate(double* out, int64_t n_rows, int64_t n_cols, const cape_matrix_view* v,
                        const cape_matrix_view* angles) {
  return rotate_with(cape::rotate, out, n_rows, n_cols, v, angles);
}

cape_status cape_rotate_back(double* out, int64_t n_rows, int64_t n_cols, const cape_matrix_view* v,
                             const cape_matrix_view* angles) {
  return rotate_with(cape::rotate_back, out, n_rows, n_cols, v, angles);
}

cape_status cape_rotate_angle_gradient(double* out, int64_t n_rows, int64_t n_cols,
                                       const cape_matrix_view* v, const cape_matrix_view* angles,
                                       const cape_matrix_view* d_rotated) {
  return guard([&] {
    const cape::MatrixView vectors = view_of(v, "v"), phi = view_of(angles, "angles");
    const cape::MatrixView gradient = view_of(d_rotated, "d_rotated");
    check_output(out, n_rows, n_cols, phi.rows, phi.cols);
    copy_matrix(out, n_rows, n_cols, cape::rotate_angle_gradient(vectors, phi, gradient));
  });
}

cape_status cape_rotary_scores(double* score_out, double* upper_out, double* lower_out, int64_t n,
                               const cape_matrix_view* q, const cape_matrix_view* k,
                               const cape_matrix_view* phi_m, const cape_matrix_view* phi_n) {
  return guard([&] {
    const cape::MatrixView queries = rows_view(q, n, "q"), keys = rows_view(k, n, "k"),
                           from = rows_view(phi_m, n, "phi_m"), to = rows_view(phi_n, n, "phi_n");
    const auto size = static_cast<std::size_t>(n);
    std::vector<double> score(size), upper(size), lower(size);
    for (int64_t i = 0; i < n; ++i) {
      const auto s = static_cast<std::size_t>(i);
      const auto a = row_of(queries, i), b = row_of(keys, i), m = row_of(from, i),
                 o = row_of(to, i);
      const cape::ScoreBounds bounds = in_row(i, [&] {
        score[s] = cape::rotary_score(a, b, m, o);
        return cape::rotary_bounds(a, b, m, o);
      });
      upper[s] = bounds.upper;
      lower[s] = bounds.lower;
    }
    if (score_out != nullptr) copy_vector(score_out, n, score, "score_out");
    if (upper_out != nullptr) copy_vector(upper_out, n, upper, "upper_out");
    if (lower_out != nullptr) copy_vector(lower_out, n, lower, "lower_out");
  });
}
