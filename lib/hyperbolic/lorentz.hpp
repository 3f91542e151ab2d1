// What units share of the hyperboloid model. Points are columns.
#pragma once

namespace cape {

/// The rows of a view as columns, p0 computed anew; throws unless they are on the hyperboloid.
Matrix hyperboloid_points(const MatrixView& view, std::string_view name);

/// Point number i of some in columns.
inline std::span<const double> point(const Matrix& points, std::int64_t i) {
  return {points.column(i), static_cast<std::size_t>(points.rows())};
}

/// Checks of arguments: error(dim_mismatch) unless of the same length, error(invalid_argument)
/// unless finite.
void check_sizes(std::span<const double> given, std::span<const double> right,
                 std::string_view name);
void check_vector(std::span<const double> v, std::string_view name);
void check_same_columns(const Matrix& a, const Matrix& b);

namespace lorentz {
/// Along the geodesic from p with the unit tangent u for a time t of either sign: to `end`, and u
/// becomes the velocity there, u transported. Takes its arguments to be right.
void follow(std::span<const double> p, std::span<double> u, double t, std::span<double> end);
} // namespace lorentz

} // namespace cape
