module;
#include "internal/message.hpp"
#include <cmath>
#include <cstdint>
#include <functional>
#include <new>
#include <span>
#include <string>
#include <typeinfo>
#include <variant>
#include <vector>
module cape.hyperbolic;
#include "hyperbolic/cost.hpp"
#include "hyperbolic/descent.hpp"
#include "hyperbolic/lorentz.hpp"
#include "hyperbolic/options.hpp"

namespace cape {

double embedding_loss(const Digraph& graph, const MatrixView& points, const EmbedOptions& options,
                      Matrix* gradient, Run& run) {
  check_nodes(graph);
  const std::int64_t m = graph.size();
  const EmbedOptions o = settled(options, m);
  check_working_set(m, o);
  if (points.rows != m || points.cols != o.dims + 1)
    throw Error(Status::dim_mismatch,
                message("points is ", points.rows, " x ", points.cols, "; for ", m, " nodes in ",
                        o.dims, " dimensions it must be ", m, " x ", o.dims + 1));
  const Matrix columns = hyperboloid_points(points, "points");
  for (std::int64_t i = 0; i < m; ++i)
    if (std::acosh(columns(0, i)) > o.max_radius * (1 + 1e-9))
      throw Error(Status::invalid_argument,
                  message("row ", i, " of points (counted from 0) is ", std::acosh(columns(0, i)),
                          " from the origin; it must be within embed.max_radius, ", o.max_radius));
  const Digraph strong = strengths(graph);
  const ObjectiveFunction objective = objective_of(strong, o, run);
  constexpr std::int64_t epoch = 0;
  if (!gradient) return objective(columns, nullptr, epoch, run).loss;
  Matrix by_column(columns.rows(), m);
  const double loss = objective(columns, &by_column, epoch, run).loss;
  *gradient = Matrix(m, columns.rows());
  for (std::int64_t i = 0; i < m; ++i)
    for (std::int64_t k = 0; k < columns.rows(); ++k) (*gradient)(i, k) = by_column(k, i);
  return loss;
}

} // namespace cape
