module;
#include "internal/borrow.hpp"
#include "internal/sizes.hpp"
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>
module cape.hyperbolic;
#include "hyperbolic/start.hpp"

namespace cape {
namespace {

// Scaling gives this many coordinates at most; what is beyond them is small and left to the
// descent.
constexpr std::int64_t max_coordinates = 64;
// A symmetric eigenproblem up to this size is solved as a whole, a larger one in a Krylov space of
// this size: LAPACK cannot be interrupted, and takes minutes at a few thousand.
constexpr std::int64_t direct_size = 320;
constexpr std::int64_t krylov_block = 80;
constexpr std::int64_t product_cols = 16;

// -1/2 J D^2 J for scaled distances, in place; unconnected pairs stand a little beyond the farthest
// pair. False if no two nodes are connected.
bool center_squares(Matrix& d, double scale, Run& run) {
  const std::int64_t n = d.rows();
  double farthest = 0;
  bool connected = false;
  for (std::int64_t j = 0; j < n; ++j) {
    run.poll();
    for (std::int64_t i = 0; i < j; ++i)
      if (std::isfinite(d(i, j))) {
        connected = true;
        farthest = std::max(farthest, d(i, j));
      }
  }
  if (!connected) return false;
  std::vector<double> mean(static_cast<std::size_t>(n));
  run.parallel_for(n, [&](std::int64_t j) {
    double sum = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const double x = scale * (std::isfinite(d(i, j)) ? d(i, j) : 1.25 * farthest);
      d(i, j) = x * x;
      sum += x * x;
    }
    mean[static_cast<std::size_t>(j)] = sum / static_cast<double>(n);
  });
  double grand = 0;
  for (const double m : mean) grand += m / static_cast<double>(n);
  run.parallel_for(n, [&](std::int64_t j) {
    for (std::int64_t i = 0; i < n; ++i)
      d(i, j) = -0.5 * (d(i, j) - mean[static_cast<std::size_t>(i)] -
                        mean[static_cast<std::size_t>(j)] + grand);
  });
  return true;
}

arma::mat product(Matrix& b, const arma::mat& x, Run& run) {
  arma::mat out(x.n_rows, x.n_cols);
  const auto cols = static_cast<std::int64_t>(x.n_cols);
  run.parallel_for(ceil_div(cols, product_cols), [&](std::int64_t k) {
    const auto first = static_cast<arma::uword>(k * product_cols);
    const auto last = static_cast<arma::uword>(std::min((k + 1) * product_cols, cols)) - 1;
    out.cols(first, last) = borrow(b) * x.cols(first, last);
  });
  return out;
}

void check(bool success) {
  if (!success) throw Error(Status::internal, "LAPACK failed in the start of the embedding");
}

// An orthonormal basis of the columns, by blocks of few: LAPACK's QR of all cannot be interrupted.
// Twice against what is there already is enough (L. Giraud et al., 2005).
arma::mat orthonormal(const arma::mat& columns, Run& run) {
  arma::mat basis(columns.n_rows, columns.n_cols), block, r;
  for (arma::uword first = 0; first < columns.n_cols; first += product_cols) {
    const arma::uword last = std::min<arma::uword>(columns.n_cols, first + product_cols) - 1;
    arma::mat rest = columns.cols(first, last);
    for (int pass = 0; pass < 2; ++pass) {
      if (first > 0) rest -= basis.head_cols(first) * (basis.head_cols(first).t() * rest).eval();
      run.poll();
      check(arma::qr_econ(block, r, rest));
      rest = block;
    }
    basis.cols(first, last) = block;
  }
  return basis;
}

// Eigenvalues (rising) and vectors of the symmetric b; of a large one, Ritz pairs from a block
// Krylov space, whose upper end is accurate.
void leading_eigenpairs(Matrix& b, arma::vec& values, arma::mat& vectors, Run& run) {
  if (b.rows() <= direct_size) {
    check(arma::eig_sym(values, vectors, borrow(b)));
    return;
  }
  arma::mat block(static_cast<arma::uword>(b.rows()), krylov_block), space;
  for (arma::uword j = 0; j < block.n_cols; ++j) {
    Rng rng(run.seed(), {hash("embed.krylov"), j});
    for (double& x : block.col(j)) x = rng.normal();
  }
  for (std::int64_t k = 0; k < direct_size / krylov_block; ++k) {
    block = orthonormal(product(b, block, run), run);
    space = arma::join_rows(space, block);
    run.poll();
  }
  const arma::mat basis = orthonormal(space, run);
  const arma::mat image = product(b, basis, run);
  arma::mat small(basis.n_cols, basis.n_cols);
  for (arma::uword first = 0; first < image.n_cols; first += product_cols) {
    const arma::uword last = std::min<arma::uword>(image.n_cols, first + product_cols) - 1;
    small.cols(first, last) = basis.t() * image.cols(first, last);
    run.poll();
  }
  check(arma::eig_sym(values, vectors, arma::symmatu(small)));
  run.poll();
  arma::mat lifted(basis.n_rows, vectors.n_cols);
  for (arma::uword first = 0; first < vectors.n_cols; first += product_cols) {
    const arma::uword last = std::min<arma::uword>(vectors.n_cols, first + product_cols) - 1;
    lifted.cols(first, last) = basis * vectors.cols(first, last);
    run.poll();
  }
  vectors = std::move(lifted);
}

// Classical scaling: rows of y get the leading coordinates; a coordinate's entry of largest size is
// positive.
void scale_classically(Matrix distances, double scale, Matrix& y, Run& run) {
  if (!center_squares(distances, scale, run)) return;
  arma::vec values;
  arma::mat vectors;
  leading_eigenpairs(distances, values, vectors, run);
  const auto available = static_cast<std::int64_t>(values.n_elem);
  const std::int64_t count = std::min({y.rows(), available, max_coordinates});
  for (std::int64_t k = 0; k < count; ++k) {
    const auto from = static_cast<arma::uword>(available - 1 - k);
    const double size = std::sqrt(std::max(values[from], 0.0));
    const arma::subview_col<double> v = vectors.col(from);
    const double sign = v[arma::index_max(arma::abs(v))] < 0 ? -1 : 1;
    for (std::int64_t i = 0; i < y.cols(); ++i)
      y(k, i) = sign * size * v[static_cast<arma::uword>(i)];
  }
}

double start_scale(const EmbedOptions& options) {
  return 0.7 * options.temperature / options.soft_temperature;
}

// The descent moves points that are far out slowly, and takes a line through the origin for order:
// if any is beyond a radius of 3, all are drawn in.
constexpr double farthest_start = 3.0;

Matrix drawn_in(Matrix y) {
  double farthest = 0;
  for (std::int64_t i = 0; i < y.cols(); ++i) {
    double sum = 0;
    for (std::int64_t k = 0; k < y.rows(); ++k) sum += y(k, i) * y(k, i);
    farthest = std::max(farthest, std::sqrt(sum));
  }
  if (farthest > farthest_start)
    for (std::int64_t i = 0; i < y.cols(); ++i)
      for (std::int64_t k = 0; k < y.rows(); ++k) y(k, i) *= farthest_start / farthest;
  return y;
}

// y, the rows coordinates, with noise, as normal coordinates at the origin.
Matrix around_origin(Matrix y, double noise, const EmbedOptions& options, Run& run) {
  Matrix points(options.dims + 1, y.cols());
  for (std::int64_t i = 0; i < y.cols(); ++i) {
    if (i % 16 == 0) run.poll();
    Rng rng(run.seed(), {hash("embed.start"), static_cast<std::uint64_t>(i)});
    double sum = 0;
    for (std::int64_t k = 0; k < options.dims; ++k) {
      y(k, i) += noise * rng.normal();
      sum += y(k, i) * y(k, i);
    }
    const double length = std::sqrt(sum), radius = std::min(length, options.max_radius);
    const double factor = length > 0 ? std::sinh(radius) / length : 0;
    for (std::int64_t k = 0; k < options.dims; ++k) points(k + 1, i) = factor * y(k, i);
    lorentz::project({points.column(i), static_cast<std::size_t>(options.dims) + 1});
  }
  return points;
}

Matrix random_start(std::int64_t nodes, const EmbedOptions& options, Run& run) {
  return around_origin(Matrix(options.dims, nodes), 0.1, options, run);
}

// Landmark scaling (V. de Silva and J. B. Tenenbaum, 2004): of squared distances delta to the
// landmarks, less their means over the landmarks, the coordinates are -1/2 of the products with the
// landmarks' coordinates over their squared lengths.
void place_among_landmarks(const Matrix& distances, const Matrix& landmarks, double scale,
                           Matrix& y, Run& run) {
  const std::int64_t count = landmarks.cols();
  double farthest = 0;
  for (std::int64_t k = 0; k < count; ++k)
    for (std::int64_t i = 0; i < distances.rows(); ++i)
      if (std::isfinite(distances(i, k))) farthest = std::max(farthest, distances(i, k));
  const auto squared = [&](std::int64_t i, std::int64_t k) {
    const double d = scale * (std::isfinite(distances(i, k)) ? distances(i, k) : 1.25 * farthest);
    return d * d;
  };
  std::vector<double> lengths(static_cast<std::size_t>(y.rows()));
  for (std::int64_t c = 0; c < y.rows(); ++c)
    for (std::int64_t k = 0; k < count; ++k)
      lengths[static_cast<std::size_t>(c)] += landmarks(c, k) * landmarks(c, k);
  run.parallel_for(y.cols(), [&](std::int64_t i) {
    for (std::int64_t k = 0; k < count; ++k) {
      const double s = squared(i, k);
      // The landmarks' coordinates sum to 0, so that the mean to be taken off s cancels.
      for (std::int64_t c = 0; c < y.rows(); ++c)
        if (lengths[static_cast<std::size_t>(c)] > 0)
          y(c, i) -= 0.5 * s * landmarks(c, k) / lengths[static_cast<std::size_t>(c)];
    }
  });
}

} // namespace

Matrix starting_points(Matrix distances, const EmbedOptions& options, std::int64_t nodes,
                       Run& run) {
  if (options.start == Start::random) return random_start(nodes, options, run);
  Matrix y(options.dims, nodes);
  scale_classically(std::move(distances), start_scale(options), y, run);
  return around_origin(drawn_in(std::move(y)), 1e-3, options, run);
}

Matrix landmark_start(const Digraph& graph, const EmbedOptions& options, Run& run) {
  if (options.start == Start::random) return random_start(graph.size(), options, run);
  std::vector<std::int64_t> sources =
      Rng(run.seed(), {hash("embed.landmarks")}).permutation(graph.size());
  sources.resize(static_cast<std::size_t>(std::min(direct_size, graph.size())));
  const Matrix distances = undirected_distances_from(graph, sources, options.hop_cost, run);
  const std::int64_t count = std::ssize(sources);
  Matrix between(count, count), landmarks(options.dims, count), y(options.dims, graph.size());
  for (std::int64_t k = 0; k < count; ++k)
    for (std::int64_t l = 0; l < k; ++l)
      between(l, k) = between(k, l) = distances(sources[static_cast<std::size_t>(l)], k);
  scale_classically(std::move(between), start_scale(options), landmarks, run);
  place_among_landmarks(distances, landmarks, start_scale(options), y, run);
  return around_origin(drawn_in(std::move(y)), 1e-3, options, run);
}

} // namespace cape
