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

// Rows of a matrix as vectors, once it is known to have the right size.
struct Rows {
  Rows(const cape_matrix_view* m, std::string_view name, int64_t n_rows) : view(view_of(m, name)) {
    check_finite(view, name);
    check_length(view.rows, n_rows, std::string("the number of rows of ") + std::string(name));
  }
  std::vector<double> operator[](int64_t i) const { return row_of(view, i); }
  cape::MatrixView view;
};

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
    const Rows queries(q, "q", n), keys(k, "k", n), from(phi_m, "phi_m", n), to(phi_n, "phi_n", n);
    const auto size = static_cast<std::size_t>(n);
    std::vector<double> score(size), upper(size), lower(size);
    for (int64_t i = 0; i < n; ++i) {
      const auto s = static_cast<std::size_t>(i);
      score[s] = cape::rotary_score(queries[i], keys[i], from[i], to[i]);
      const cape::ScoreBounds bounds = cape::rotary_bounds(queries[i], keys[i], from[i], to[i]);
      upper[s] = bounds.upper;
      lower[s] = bounds.lower;
    }
    if (score_out != nullptr) copy_vector(score_out, n, score, "score_out");
    if (upper_out != nullptr) copy_vector(upper_out, n, upper, "upper_out");
    if (lower_out != nullptr) copy_vector(lower_out, n, lower, "lower_out");
  });
}
