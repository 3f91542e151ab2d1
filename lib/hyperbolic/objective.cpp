module;
#include "hyperbolic/kernels/contrastive.hpp"
#include "internal/borrow.hpp"
#include "internal/sizes.hpp"
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <new>
#include <span>
#include <string_view>
#include <typeinfo>
#include <vector>
module cape.hyperbolic;
#include "hyperbolic/lorentz.hpp"
#include "hyperbolic/objective.hpp"

#include "internal/sort.hpp"

namespace cape {
namespace {

constexpr std::int64_t panel_cols = 64;

// Below this part of p0 q0, cosh d - 1 from the Gram matrix has lost half its digits or more, and
// the distance of the pair is computed from the points.
constexpr double lost = 1e-8;
// Gradients of distance have length 1 for any d > 0 and are 0 at d = 0; the passage is this wide.
constexpr double min_sinh = 1.4e-6;

} // namespace

EmbeddingObjective::EmbeddingObjective(const Digraph& graph, const Matrix& distances,
                                       const EmbedOptions& options, Run& run)
    : nodes_(graph.size()), options_(options), radial_(graph, options, run) {
  std::int64_t size = 0;
  for (std::int64_t first = 0; first < nodes_; first += panel_cols) {
    const std::int64_t cols = std::min(panel_cols, nodes_ - first);
    panels_.push_back({first, cols, first + cols, size});
    size += cols * (first + cols);
  }
  resize(targets_, options_.objective == Objective::soft ? size : nodes_, run);
  resize(pull_, size, run);
  resize(push_, size, run);
  resize(row_sums_, nodes_ * std::ssize(panels_), run);
  mass_.resize(at(nodes_));
  share_.resize(at(nodes_));
  pulled_.resize(panels_.size());
  if (options_.objective == Objective::soft) {
    set_soft_targets(distances, run);
  } else {
    set_positives(graph, run);
  }
}

std::int64_t EmbeddingObjective::slot(std::int64_t i, std::int64_t j) const {
  const Panel& panel = panels_[at(j / panel_cols)];
  return panel.offset + (j - panel.first) * panel.rows + i;
}

// T_mn = softmax over n != m of -D*_mn / ts; a node that reaches no other has no targets.
void EmbeddingObjective::set_soft_targets(const Matrix& distances, Run& run) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  std::vector<double> nearest(at(nodes_), infinity), total(at(nodes_));
  anchor_.resize(at(nodes_));
  const double ts = options_.soft_temperature;
  run.parallel_for(nodes_, [&](std::int64_t m) {
    const double* d = distances.column(m);
    for (std::int64_t n = 0; n < nodes_; ++n)
      if (n != m) nearest[at(m)] = std::min(nearest[at(m)], d[n]);
    anchor_[at(m)] = nearest[at(m)] < infinity;
    if (!anchor_[at(m)]) return;
    for (std::int64_t n = 0; n < nodes_; ++n)
      if (n != m) total[at(m)] += std::exp((nearest[at(m)] - d[n]) / ts);
  });
  const auto target = [&](std::int64_t m, double d) {
    return std::exp((nearest[at(m)] - d) / ts) / total[at(m)];
  };
  run.parallel_for(nodes_, [&](std::int64_t n) {
    if (!anchor_[at(n)]) return;
    for (std::int64_t m = 0; m < n; ++m)
      if (anchor_[at(m)])
        targets_[at(slot(m, n))] = target(m, distances(m, n)) + target(n, distances(m, n));
  });
}

void EmbeddingObjective::set_positives(const Digraph& graph, Run& run) {
  const Objective kind = options_.objective;
  const Matrix strength = kind == Objective::literal ? graph.adjacency() : Matrix();
  for (const Edge& e : k_hop_strengths(graph, options_.k_hop, run)) {
    if (kind == Objective::literal)
      positives_.push_back({e.from, e.to, strength(e.from, e.to)}); // 0 without a direct edge
    else
      positives_.push_back({e.to, e.from, e.weight});
    if (kind == Objective::symmetric) positives_.push_back(e);
  }
  const auto strongest_of_a_pair_first = [](const Edge& a, const Edge& b) {
    return a.from != b.from ? a.from < b.from : a.to != b.to ? a.to < b.to : a.weight > b.weight;
  };
  sort_in_pieces(positives_, strongest_of_a_pair_first, run);
  // On a cycle a pair is both ancestor and descendant: its stronger path counts.
  const auto same = [](const Edge& a, const Edge& b) { return a.from == b.from && a.to == b.to; };
  positives_.erase(std::unique(positives_.begin(), positives_.end(), same), positives_.end());
}

EmbedEpoch EmbeddingObjective::operator()(const Matrix& points, Matrix* gradient, Run& run) {
  pair_terms(points, run);
  EmbedEpoch terms;
  terms.contrastive =
      options_.objective == Objective::soft ? soft_term() : sparse_term(points, run);
  if (gradient) pair_gradient(points, *gradient, run);
  radial_(points, terms, gradient, run);
  terms.loss = terms.contrastive + terms.ranking + terms.generality;
  return terms;
}

// push_, pull_, mass_ and pulled_. A thread takes a panel: one product for its part of the Gram
// matrix -<p,q>_L, then one pass over its columns.
void EmbeddingObjective::pair_terms(const Matrix& points, Run& run) {
  const bool soft = options_.objective == Objective::soft;
  std::vector<double> p0(at(nodes_));
  for (std::int64_t i = 0; i < nodes_; ++i) p0[at(i)] = points(0, i);
  std::fill(row_sums_.begin(), row_sums_.end(), 0.0);
  std::fill(mass_.begin(), mass_.end(), 0.0);
  run.parallel_for(static_cast<std::int64_t>(panels_.size()), [&](std::int64_t k) {
    const Panel& panel = panels_[at(k)];
    double* push = push_.data() + panel.offset;
    const arma::mat own = borrow_columns(points, panel.first, panel.cols);
    arma::mat turned = own; // a copy: the initialiser itself would be the points' memory
    turned.tail_rows(turned.n_rows - 1) *= -1;
    arma::mat gram(push, at(panel.rows), at(panel.cols), false, true);
    gram = borrow_columns(points, 0, panel.rows).t() * turned;
    double* row_sums = row_sums_.data() + k * nodes_;
    pulled_[at(k)] = 0;
    for (std::int64_t c = 0; c < panel.cols; ++c) {
      const std::int64_t j = panel.first + c, start = panel.offset + c * panel.rows;
      double* x = push_.data() + start;
      if (simd::subtract_one(x, p0.data(), p0[at(j)], lost, j))
        for (std::int64_t i = 0; i < j; ++i)
          if (x[i] < lost * p0[at(i)] * p0[at(j)]) {
            const double half =
                std::sinh(lorentz::distance(point(points, i), point(points, j)) / 2);
            x[i] = 2 * half * half;
          }
      const simd::ContrastiveSums sums =
          simd::contrastive_column(x, pull_.data() + start, targets_.data() + (soft ? start : 0),
                                   row_sums, 1 / options_.temperature, min_sinh, j);
      mass_[at(j)] += sums.energy;
      pulled_[at(k)] += sums.pulled;
    }
  });
  for (std::size_t k = 0; k < panels_.size(); ++k)
    for (std::int64_t i = 0; i < panels_[k].rows; ++i)
      mass_[at(i)] += row_sums_[k * at(nodes_) + at(i)];
}

// -(1/M) sum_mn T_mn ln Q_mn with Q_mn = exp(-d_mn/tau) / mass_m.
double EmbeddingObjective::soft_term() {
  double sum = 0;
  for (const double pulled : pulled_) sum += pulled / options_.temperature;
  for (std::int64_t m = 0; m < nodes_; ++m) {
    share_[at(m)] = anchor_[at(m)] ? 1 / mass_[at(m)] : 0;
    if (anchor_[at(m)]) sum += std::log(mass_[at(m)]);
  }
  return sum / static_cast<double>(nodes_);
}

// eq_losscon: anchor m, positives n with weight w, negatives all others but m:
// (1/M) sum w (d/tau + ln(e + E)), e = exp(-d_mn/tau), E the sum of the negatives' exponentials.
double EmbeddingObjective::sparse_term(const Matrix& points, Run& run) {
  struct Pair {
    double distance, energy;
  };
  std::vector<Pair> pairs;
  double sum = 0;
  std::fill(share_.begin(), share_.end(), 0.0);
  for (std::size_t begin = 0, end = 0; begin < positives_.size(); begin = end) {
    run.poll();
    const std::int64_t m = positives_[begin].from;
    double negatives = mass_[at(m)];
    pairs.clear();
    for (end = begin; end < positives_.size() && positives_[end].from == m; ++end) {
      const double d = lorentz::distance(point(points, m), point(points, positives_[end].to));
      pairs.push_back({d, std::exp(-d / options_.temperature)});
      negatives -= pairs.back().energy;
    }
    if (negatives < 0 || end - begin == at(nodes_ - 1)) negatives = 0; // none left but rounding
    for (std::size_t k = begin; k < end; ++k) {
      const auto [d, energy] = pairs[k - begin];
      sum += positives_[k].weight * (d / options_.temperature + std::log(energy + negatives));
      share_[at(m)] += positives_[k].weight / (energy + negatives);
    }
    for (std::size_t k = begin; k < end; ++k) {
      const auto [d, energy] = pairs[k - begin];
      if (d == 0) continue;
      const double pull = positives_[k].weight * negatives / (energy + negatives);
      const auto [low, high] = std::minmax(m, positives_[k].to);
      // pair_gradient() takes every pair for a negative; a positive is none.
      pull_[at(slot(low, high))] +=
          (pull + energy * share_[at(m)]) / std::max(std::sinh(d), min_sinh);
    }
  }
  return sum / static_cast<double>(nodes_);
}

// With S_mn = pull_mn - push_mn (share_m + share_n), the sum of dL/d(cosh d_mn) over both orders,
// dL/dp_m = sum_n S_mn (q0, -q~) / (tau M).
void EmbeddingObjective::pair_gradient(const Matrix& points, Matrix& gradient, Run& run) {
  const double scale = 1 / (options_.temperature * static_cast<double>(nodes_));
  const auto n_panels = static_cast<std::int64_t>(panels_.size());
  std::vector<double>& s = push_; // S takes its place, strictly above the diagonal
  run.parallel_for(n_panels, [&](std::int64_t k) {
    const Panel& own = panels_[at(k)];
    for (std::int64_t c = 0; c < own.cols; ++c) {
      const std::int64_t j = own.first + c, start = own.offset + c * own.rows;
      simd::contrastive_slopes(s.data() + start, pull_.data() + start, share_.data(), share_[at(j)],
                               j);
      std::fill_n(s.data() + start + j, own.rows - j, 0.0);
    }
  });
  run.parallel_for(n_panels, [&](std::int64_t k) {
    const Panel& own = panels_[at(k)];
    // The rows of the block that lie right of the diagonal, column by column of S as they are kept.
    const std::int64_t behind = nodes_ - own.first;
    const auto memory = std::make_unique_for_overwrite<double[]>(at(own.cols * behind));
    for (std::size_t other = at(k); other < panels_.size(); ++other) {
      const Panel& panel = panels_[other];
      for (std::int64_t c = 0; c < panel.cols; ++c)
        std::copy_n(s.data() + panel.offset + c * panel.rows + own.first, own.cols,
                    memory.get() + (panel.first + c - own.first) * own.cols);
    }
    const arma::mat above(s.data() + own.offset, at(own.rows), at(own.cols), false, true);
    const arma::mat right(memory.get(), at(own.cols), at(behind), false, true);
    arma::mat out = borrow_columns(gradient, own.first, own.cols);
    out = borrow_columns(points, 0, own.rows) * above;
    out += borrow_columns(points, own.first, behind) * right.t();
    out.row(0) *= scale;
    out.tail_rows(out.n_rows - 1) *= -scale;
  });
}

} // namespace cape
