module;
#include "hyperbolic/kernels/contrastive.hpp"
#include "internal/borrow.hpp"
#include "internal/sizes.hpp"
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <new>
#include <numeric>
#include <span>
#include <string_view>
#include <typeinfo>
#include <utility>
#include <vector>
module cape.hyperbolic;
#include "hyperbolic/lorentz.hpp"
#include "hyperbolic/sampled.hpp"

namespace cape {
namespace {

constexpr std::int64_t block_cols = 64;
// As in the exact objective (objective.cpp).
constexpr double lost = 1e-8, min_sinh = 1.4e-6;
// cosh d - 1 of a pair that must not count: exp(-d/tau) is nothing beside the others.
constexpr double nowhere = 1e30;
// Negatives are drawn from so many nodes, whose distances in the graph are known.
constexpr std::int64_t pool_size = 1024;

double excess_of_points(std::span<const double> p, std::span<const double> q) {
  const double half = std::sinh(lorentz::distance(p, q) / 2);
  return 2 * half * half;
}

// cosh d - 1.
double excess(std::span<const double> p, std::span<const double> q) {
  double product = p[0] * q[0] - 1;
  for (std::size_t i = 1; i < p.size(); ++i) product -= p[i] * q[i];
  return product < lost * p[0] * q[0] ? excess_of_points(p, q) : product;
}

// out += factor (p0, -p~): the gradient of cosh d times factor.
void add_turned(double factor, std::span<const double> p, double* out) {
  out[0] += factor * p[0];
  for (std::size_t i = 1; i < p.size(); ++i) out[i] -= factor * p[i];
}

} // namespace

SampledObjective::SampledObjective(const Digraph& graph, const EmbedOptions& options, Run& run)
    : nodes_(graph.size()), options_(options), radial_(graph, options, run),
      push_(options.negatives, graph.size(), run), pull_(options.negatives, graph.size(), run),
      mass_(at(graph.size())) {
  set_positives(graph, run);
  resize(pair_push_, std::ssize(positives_), run);
  resize(pair_pull_, std::ssize(positives_), run);
  incoming_offsets_.resize(at(nodes_) + 1);
  for (const std::int64_t n : positives_) ++incoming_offsets_[at(n) + 1];
  for (std::size_t i = 1; i < incoming_offsets_.size(); ++i)
    incoming_offsets_[i] += incoming_offsets_[i - 1];
  incoming_.resize(positives_.size());
  std::vector<std::int64_t> next(incoming_offsets_.begin(), incoming_offsets_.end() - 1);
  for (std::int64_t m = 0; m < nodes_; ++m) {
    if (m % 256 == 0) run.poll();
    for (std::int64_t k = offsets_[at(m)]; k < offsets_[at(m) + 1]; ++k)
      incoming_[at(next[at(positives_[at(k)])]++)] = {m, k};
  }
}

// exp((nearest - D*)/ts) of the nearest nodes and of the pool, and their sum over all nodes, in
// which those of the pool that are not near stand for all that are not.
void SampledObjective::set_positives(const Digraph& graph, Run& run) {
  pool_ = Rng(run.seed(), {hash("embed.pool")}).permutation(nodes_);
  pool_.resize(at(std::min(pool_size, nodes_)));
  const NearestNodes near = nearest_nodes(graph, options_.positives, options_.hop_cost, run);
  offsets_ = near.offsets;
  nearest_.resize(at(nodes_));
  total_.resize(at(nodes_));
  for (std::int64_t m = 0; m < nodes_; ++m) {
    const std::size_t first = at(offsets_[at(m)]), last = at(offsets_[at(m) + 1]);
    if (m % 256 == 0) run.poll();
    if (first < last) nearest_[at(m)] = near.near[first].weight;
    for (std::size_t k = first; k < last; ++k) {
      positives_.push_back(near.near[k].to);
      targets_.push_back(weight_of(m, near.near[k].weight));
      total_[at(m)] += targets_.back();
    }
  }
  pool_weights_ = BasicMatrix<float>(std::ssize(pool_), nodes_, run);
  for (std::size_t first = 0; first < pool_.size(); first += block_cols) {
    const std::size_t count = std::min(at(block_cols), pool_.size() - first);
    const Matrix far = undirected_distances_from(graph, std::span(pool_).subspan(first, count),
                                                 options_.hop_cost, run);
    run.parallel_for(nodes_, [&](std::int64_t m) {
      for (std::int64_t k = 0; k < far.cols(); ++k)
        pool_weights_(static_cast<std::int64_t>(first) + k, m) =
            pool_[first + at(k)] == m ? 0 // no target, and beyond a float where its edges are weak
                                      : static_cast<float>(weight_of(m, far(m, k)));
    });
  }
  std::vector<std::int64_t> place(at(nodes_), -1); // in the pool
  for (std::size_t i = 0; i < pool_.size(); ++i) place[at(pool_[i])] = static_cast<std::int64_t>(i);
  for (std::int64_t m = 0; m < nodes_; ++m) {
    run.poll();
    const std::span<const std::int64_t> close = positives_of(m);
    if (close.empty()) continue;
    double beyond = 0, valid = 0;
    for (std::int64_t i = 0; i < std::ssize(pool_); ++i) {
      beyond += static_cast<double>(pool_weights_(i, m));
      ++valid;
    }
    const auto leave_out = [&](std::int64_t n) {
      if (place[at(n)] < 0) return;
      beyond -= static_cast<double>(pool_weights_(place[at(n)], m));
      --valid;
    };
    leave_out(m);
    for (const std::int64_t n : close) leave_out(n);
    beyond = valid > 0 ? std::max(beyond, 0.0) *
                             static_cast<double>(nodes_ - 1 - std::ssize(close)) / valid
                       : 0;
    total_[at(m)] += beyond;
    truncated_mass_ += beyond / total_[at(m)] / static_cast<double>(nodes_);
    for (std::int64_t k = offsets_[at(m)]; k < offsets_[at(m) + 1]; ++k)
      targets_[at(k)] /= total_[at(m)];
  }
}

// Relative to the nearest node, so that nothing underflows.
double SampledObjective::weight_of(std::int64_t m, double distance) const {
  return std::exp((nearest_[at(m)] - distance) / options_.soft_temperature);
}

std::span<const std::int64_t> SampledObjective::positives_of(std::int64_t m) const {
  return {positives_.data() + offsets_[at(m)], positives_.data() + offsets_[at(m) + 1]};
}

// Every node is an anchor, so that the masses of the sampled nodes are known too: a pair repels by
// both its anchors' masses, and each point is moved by what it sees of the sample. (Moving the
// sampled nodes by what all see of them has the same mean, but a variance that grows with nodes /
// negatives.)
EmbedEpoch SampledObjective::operator()(const Matrix& points, Matrix* gradient, std::int64_t epoch,
                                        Run& run) {
  Rng rng(run.seed(), {hash("embed.negatives"), static_cast<std::uint64_t>(epoch)});
  Sample sample{.nodes = std::vector<std::int64_t>(at(options_.negatives)),
                .places = std::vector<std::int64_t>(at(options_.negatives)),
                .points = Matrix(points.rows(), options_.negatives),
                .drawn = std::vector<std::vector<std::int64_t>>(at(nodes_))};
  for (std::int64_t s = 0; s < options_.negatives; ++s) {
    sample.places[at(s)] = rng.integer(std::ssize(pool_));
    const std::int64_t n = pool_[at(sample.places[at(s)])];
    sample.nodes[at(s)] = n;
    sample.drawn[at(n)].push_back(s);
    std::copy_n(points.column(n), points.rows(), sample.points.column(s));
  }

  const std::int64_t blocks = ceil_div(nodes_, block_cols);
  const auto in_block = [&](std::int64_t b) {
    return std::min(block_cols, nodes_ - b * block_cols);
  };
  std::vector<double> sums(at(blocks));
  run.parallel_for(blocks, [&](std::int64_t b) {
    sums[at(b)] = block_terms(points, sample, b * block_cols, in_block(b));
  });
  if (gradient)
    run.parallel_for(blocks, [&](std::int64_t b) {
      block_gradient(points, sample, b * block_cols, in_block(b), *gradient);
    });
  EmbedEpoch terms;
  for (const double sum : sums) terms.contrastive += sum / static_cast<double>(nodes_);
  radial_(points, terms, gradient, run);
  terms.loss = terms.contrastive + terms.ranking + terms.generality;
  return terms;
}

// How many nodes each valid one of the sample stands for, of all but m and `apart` others.
double SampledObjective::stand_for(std::int64_t m, std::span<const std::int64_t> apart,
                                   const Sample& sample) const {
  std::int64_t valid = options_.negatives - std::ssize(sample.drawn[at(m)]);
  for (const std::int64_t n : apart) valid -= std::ssize(sample.drawn[at(n)]);
  return valid > 0
             ? static_cast<double>(nodes_ - 1 - std::ssize(apart)) / static_cast<double>(valid)
             : 0;
}

// For some anchors m: sum_n T_mn d_mn / tau + ln Z_m. Z_m is the sum over the positives, and over
// the sampled nodes that are none, each for all those that it stands for: unbiased.
double SampledObjective::block_terms(const Matrix& points, const Sample& sample, std::int64_t first,
                                     std::int64_t count) {
  const std::int64_t size = options_.negatives;
  const double beta = 1 / options_.temperature;
  std::vector<double> p0(at(size)), far(at(size)), energies(at(size));
  for (std::int64_t s = 0; s < size; ++s) p0[at(s)] = sample.points(0, s);
  const arma::mat own = borrow_columns(points, first, count);
  arma::mat turned = own; // a copy: the initialiser itself would be the points' memory
  turned.tail_rows(turned.n_rows - 1) *= -1;
  arma::mat gram = borrow_columns(push_, first, count);
  gram = borrow_columns(sample.points, 0, size).t() * turned;
  double sum = 0;
  for (std::int64_t m = first; m < first + count; ++m) {
    double* x = push_.column(m);
    if (simd::subtract_one(x, p0.data(), points(0, m), lost, size))
      for (std::int64_t s = 0; s < size; ++s)
        if (x[s] < lost * p0[at(s)] * points(0, m))
          x[s] = excess_of_points(point(points, m), point(sample.points, s));
    for (const std::int64_t s : sample.drawn[at(m)]) x[s] = nowhere;
    const std::span<const std::int64_t> near = positives_of(m);
    for (std::int64_t s = 0; s < size; ++s)
      far[at(s)] = near.empty() ? 0
                                : static_cast<double>(pool_weights_(sample.places[at(s)], m)) /
                                      total_[at(m)];
    // What those that do not count here would add to the pull.
    double not_counted = 0;
    for (const std::int64_t n : near)
      for (const std::int64_t s : sample.drawn[at(n)])
        not_counted += far[at(s)] * std::log1p(x[s] + std::sqrt(x[s] * (x[s] + 2)));
    std::ranges::fill(energies, 0.0);
    const double pulled = simd::contrastive_column(x, pull_.column(m), far.data(), energies.data(),
                                                   beta, min_sinh, size)
                              .pulled -
                          not_counted;
    const auto leave_out = [&](std::int64_t n) {
      for (const std::int64_t s : sample.drawn[at(n)]) energies[at(s)] = 0;
    };
    leave_out(m);
    for (const std::int64_t n : near) leave_out(n);
    const double stands = stand_for(m, near, sample);
    mass_[at(m)] = stands * std::accumulate(energies.begin(), energies.end(), 0.0);
    sum += stands * pulled * beta;
    for (std::size_t k = 0; k < near.size(); ++k) {
      const std::size_t pair = at(offsets_[at(m)]) + k;
      const double e = excess(point(points, m), point(points, near[k]));
      const double sinh = std::sqrt(e * (e + 2)), d = std::log1p(e + sinh);
      sum += targets_[pair] * d * beta;
      pair_push_[pair] = std::exp(-d * beta);
      mass_[at(m)] += pair_push_[pair];
      // Per unit of sinh, as push_ is; 0 at coincidence, where distance has no gradient.
      const double inverse = e > 0 ? 1 / std::max(sinh, min_sinh) : 0;
      pair_push_[pair] *= inverse;
      pair_pull_[pair] = targets_[pair] * inverse;
    }
    if (!near.empty()) sum += std::log(mass_[at(m)]);
  }
  return sum;
}

void SampledObjective::block_gradient(const Matrix& points, const Sample& sample,
                                      std::int64_t first, std::int64_t count,
                                      Matrix& gradient) const {
  const std::int64_t size = options_.negatives;
  const double scale = 1 / (options_.temperature * static_cast<double>(nodes_));
  // A node without positives is no anchor.
  const auto share = [this](std::int64_t n) {
    return positives_of(n).empty() ? 0 : 1 / mass_[at(n)];
  };
  std::vector<double> shares(at(size));
  for (std::int64_t s = 0; s < size; ++s) shares[at(s)] = share(sample.nodes[at(s)]);
  arma::mat slopes(at(size), at(count));
  std::vector<std::int64_t> anchors;
  for (std::int64_t m = first; m < first + count; ++m) {
    const std::span<const std::int64_t> near = positives_of(m);
    anchors.clear(); // those that m is a positive of
    for (std::int64_t k = incoming_offsets_[at(m)]; k < incoming_offsets_[at(m) + 1]; ++k)
      anchors.push_back(incoming_[at(k)].anchor);
    const double own = scale * stand_for(m, near, sample),
                 others = scale * stand_for(m, anchors, sample);
    const double *push = push_.column(m), *pull = pull_.column(m);
    double* slope = slopes.colptr(at(m - first));
    // The slopes that the pair has by m's part of the objective, and by that of the sampled node.
    const auto of_m = [&](std::int64_t s) { return own * (pull[s] - push[s] * share(m)); };
    const auto of_sampled = [&](std::int64_t s) {
      if (shares[at(s)] == 0) return 0.0;
      const std::int64_t n = sample.nodes[at(s)];
      const double turned = total_[at(m)] / total_[at(n)] * weight_of(n, nearest_[at(m)]);
      // A pull that is 0 stays so, even if what turns it is beyond a double.
      return others * ((pull[s] > 0 ? pull[s] * turned : 0) - push[s] * shares[at(s)]);
    };
    for (std::int64_t s = 0; s < size; ++s) slope[s] = of_m(s) + of_sampled(s);
    for (const std::int64_t n : near)
      for (const std::int64_t s : sample.drawn[at(n)]) slope[s] -= of_m(s);
    for (const std::int64_t n : anchors)
      for (const std::int64_t s : sample.drawn[at(n)]) slope[s] -= of_sampled(s);
    for (const std::int64_t s : sample.drawn[at(m)]) slope[s] = 0;
  }
  arma::mat out = borrow_columns(gradient, first, count);
  out = borrow_columns(sample.points, 0, size) * slopes;
  out.tail_rows(out.n_rows - 1) *= -1;
  for (std::int64_t m = first; m < first + count; ++m) {
    const std::span<const std::int64_t> near = positives_of(m);
    for (std::size_t k = 0; k < near.size(); ++k) {
      const std::size_t pair = at(offsets_[at(m)]) + k;
      add_turned(scale * (pair_pull_[pair] - pair_push_[pair] * share(m)), point(points, near[k]),
                 gradient.column(m));
    }
    for (std::int64_t k = incoming_offsets_[at(m)]; k < incoming_offsets_[at(m) + 1]; ++k) {
      const auto [anchor, pair] = incoming_[at(k)];
      add_turned(scale * (pair_pull_[at(pair)] - pair_push_[at(pair)] * share(anchor)),
                 point(points, anchor), gradient.column(m));
    }
  }
}

} // namespace cape
