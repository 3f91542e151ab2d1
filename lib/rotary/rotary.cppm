// cape.rotary (Step III): points of the Poincare ball as angles of a rotary position encoding
// (paper, sec_position). Coordinates are interleaved: pair t of a vector is (v[2t], v[2t+1]),
// counted from 0.
module;
#include <cstdint>
#include <numbers>
export module cape.rotary;
import cape.core;

export namespace cape {

struct RotaryOptions {
  double scale = std::numbers::pi / 4; ///< c: angles are c times ball coordinates
};
OptionFields fields(RotaryOptions& options);

/// phi = scale * e: M x d from ball coordinates M x d (paper, after eq attention). Error
/// (invalid_argument) if a row's norm is not below 1 or scale is not positive and finite. O(M d).
Matrix rotary_angles(const MatrixView& ball, double scale = std::numbers::pi / 4);

/// R(phi) v for every row: v L x D with D even, angles (radians) L x D/2 (paper, eq_R,
/// eq_rotary_matrix_a). Error(dim_mismatch) for other shapes, with both numbers;
/// Error(invalid_argument) for input that is not finite or so large that the result is not. O(L D).
Matrix rotate(const MatrixView& v, const MatrixView& angles);
/// R(phi)' v: the inverse, which is also the gradient of rotate() with respect to v. Shapes and
/// errors as rotate().
Matrix rotate_back(const MatrixView& v, const MatrixView& angles);
/// The gradient of sum(d_rotated * rotate(v, angles)) with respect to the angles: L x D/2; that of
/// v is rotate_back(d_rotated, angles). d_rotated has the shape of v; errors as rotate(). O(L D).
Matrix rotate_angle_gradient(const MatrixView& v, const MatrixView& angles,
                             const MatrixView& d_rotated);

} // namespace cape
