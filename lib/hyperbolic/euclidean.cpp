module;
#include "internal/borrow.hpp"
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>
module cape.hyperbolic;
import cape.optim;
#include "hyperbolic/euclidean.hpp"

namespace cape {
namespace {

constexpr arma::uword panel = 64; // columns between two polls

// Rows T_mn = softmax over n != m of -D*_mn / ts; 0 for a node that reaches no other.
void to_soft_targets(Matrix& distances, double temperature, Run& run) {
  arma::mat t = borrow(distances);
  t.diag().fill(std::numeric_limits<double>::infinity());
  for (arma::uword m = 0; m < t.n_rows; ++m) {
    if (m % 8 == 0) run.poll();
    const arma::rowvec row = t.row(m) / -temperature;
    const double nearest = row.max();
    if (std::isfinite(nearest)) {
      t.row(m) = arma::exp(row - nearest);
      t.row(m) /= arma::accu(t.row(m));
    } else {
      t.row(m).zeros();
    }
  }
}

} // namespace

EuclideanDescent::EuclideanDescent(const Digraph& graph, const EmbedOptions& options, Run& run)
    : options_(options), radial_(graph, options, run),
      targets_(undirected_distances(graph, options.hop_cost, run)),
      adam_(node_adam(options, options.dims, graph.size())) {
  to_soft_targets(targets_, options.soft_temperature, run);
}

// The soft objective with d = |x - y| and r = |x|. The radial terms are asked at the points of the
// hyperboloid that have x as normal coordinates: their radius is |x|, and its slope there 1 / p0.
EmbedEpoch EuclideanDescent::operator()(const Matrix& points, Matrix* gradient, Run& run) const {
  const arma::mat lifted = borrow(points), p = lifted.tail_rows(lifted.n_rows - 1);
  const auto nodes = static_cast<double>(points.cols());
  const arma::mat targets = borrow(targets_);
  arma::rowvec length = arma::sqrt(arma::sum(arma::square(p), 0)), stretch = arma::asinh(length);
  for (arma::uword i = 0; i < length.n_elem; ++i)
    stretch[i] = length[i] > 0 ? stretch[i] / length[i] : 1;
  arma::mat x = p;
  x.each_row() %= stretch;
  const arma::rowvec squares = arma::sum(arma::square(x), 0);
  const auto by_panels = [&](auto work) {
    for (arma::uword first = 0; first < x.n_cols; first += panel) {
      run.poll();
      work(first, std::min(first + panel, x.n_cols) - 1);
    }
  };
  arma::mat distance(x.n_cols, x.n_cols, arma::fill::none),
      energy(arma::size(distance), arma::fill::none);
  arma::vec mass(x.n_cols, arma::fill::zeros),
      anchor(mass); // anchor: 1, or 0 for a node that is none
  double attraction = 0;
  by_panels([&](arma::uword first, arma::uword last) {
    arma::mat d = -2 * x.t() * x.cols(first, last);
    d.each_row() += squares.cols(first, last);
    d.each_col() += squares.t();
    d = arma::sqrt(arma::clamp(d, 0.0, std::numeric_limits<double>::max()));
    d.rows(first, last).diag().zeros();
    arma::mat e = arma::exp(-d / options_.temperature);
    e.rows(first, last).diag().zeros();
    mass += arma::sum(e, 1);
    anchor += arma::sum(targets.cols(first, last), 1);
    attraction += arma::accu(targets.cols(first, last) % d);
    distance.cols(first, last) = d;
    energy.cols(first, last) = e;
  });
  mass.elem(arma::find(anchor == 0)).ones(); // of a node alone it is 0
  EmbedEpoch terms;
  terms.contrastive =
      (attraction / options_.temperature + arma::dot(anchor, arma::log(mass))) / nodes;
  Matrix radial(points.rows(), points.cols());
  radial_(points, terms, gradient ? &radial : nullptr, run);
  terms.loss = terms.contrastive + terms.ranking + terms.generality;
  if (!gradient) return terms;
  by_panels([&](arma::uword first, arma::uword last) {
    auto e = energy.cols(first, last);
    e.each_col() %= -anchor / mass;
    e += targets.cols(first, last);
  });
  arma::mat by_x = x;
  by_panels([&](arma::uword first, arma::uword last) {
    arma::mat slopes = (energy.cols(first, last) + energy.rows(first, last).t()) /
                       (options_.temperature * nodes);
    slopes.for_each([&, d = distance.colptr(first)](double& s) mutable {
      s = *d > 1e-12 ? s / *d : 0;
      ++d;
    });
    by_x.cols(first, last).each_row() %= arma::rowvec(arma::sum(slopes, 0));
    by_x.cols(first, last) -= x * slopes;
  });
  arma::mat out = borrow(*gradient);
  out.row(0).zeros();
  arma::mat by_radius = borrow(radial).eval().tail_rows(p.n_rows);
  by_radius.each_row() %= lifted.row(0);
  borrow(*gradient).tail_rows(p.n_rows) = by_x + by_radius;
  return terms;
}

std::vector<std::span<double>> EuclideanDescent::state() {
  return adam_ ? adam_->state() : std::vector<std::span<double>>();
}

// Plain descent, or Adam with one second moment a node, in the normal coordinates.
std::int64_t EuclideanDescent::step(Matrix& points, const Matrix& gradient, std::int64_t epoch,
                                    double learning_rate) {
  const auto dims = static_cast<std::size_t>(options_.dims);
  std::int64_t held = 0;
  for (std::int64_t i = 0; i < points.cols(); ++i) {
    const std::span<double> p{points.column(i) + 1, dims};
    std::span<const double> direction{gradient.column(i) + 1, dims};
    double length = 0, squares = 0;
    for (std::size_t k = 0; k < dims; ++k) {
      length += p[k] * p[k];
      squares += direction[k] * direction[k];
    }
    length = std::sqrt(length);
    double rate = learning_rate;
    if (adam_) {
      rate /= adam_->update(i, direction, std::sqrt(squares), epoch);
      direction = adam_->mean(i);
    }
    const double shrink = length > 0 ? std::asinh(length) / length : 1;
    double radius = 0;
    for (std::size_t k = 0; k < dims; ++k) {
      p[k] = p[k] * shrink - rate * direction[k];
      radius += p[k] * p[k];
    }
    radius = std::sqrt(radius);
    const double kept = std::min(radius, options_.max_radius);
    held += radius > kept;
    const double grow = radius > 0 ? std::sinh(kept) / radius : 1;
    for (double& x : p) x *= grow;
    lorentz::project({points.column(i), static_cast<std::size_t>(points.rows())});
  }
  return held;
}

} // namespace cape
