// Stability selection of causes by the lasso (N. Meinshausen and P. Buehlmann, 2010; scored by the
// place at which a cause enters, as A.-C. Haury et al., TIGRESS, 2012): where rows are few, what
// enters early in most halves of them is a better ranking of pairs than the weights of one fit.
module;
#include "internal/arma.hpp"
#include "internal/message.hpp"
#include "internal/sizes.hpp"
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <new>
#include <span>
#include <typeinfo>
#include <utility>
#include <variant>
#include <vector>
module cape.dag;
#include "dag/row_source.hpp"
#include "dag/stability_lasso.hpp"

namespace cape::sem {
namespace {

constexpr std::int64_t splits = 100;       ///< of the rows in two halves
constexpr std::size_t entered = 5;         ///< causes that have a score, of an effect and half
constexpr std::int64_t block_effects = 32; ///< that are one task
constexpr double rounded = 1 - 1e-9; ///< what is nearer the end of a step than this is at its end
constexpr double least_scale = 0.2;        ///< penalties are divided by U(least_scale, 1)
constexpr std::int64_t most_rows = 2000;   ///< that are looked at

// The causes that enter the lasso's path first, in order (B. Efron et al., Least angle regression,
// 2004, with the lasso's steps back). product: of the scaled causes with the effect, 0 for what is
// none; gram(i, k): of two causes.
template <class Gram>
std::vector<std::size_t> first_to_enter(std::vector<double> product, Gram gram) {
  const std::size_t none = product.size();
  std::vector<std::size_t> active, order;
  std::vector<double> sign, weight;
  std::vector<char> is_active(none, 0);
  for (std::size_t i = 0; i < none; ++i) is_active[i] = product[i] == 0;
  std::size_t next = none;
  double level = 0;
  for (std::size_t i = 0; i < none; ++i)
    if (std::fabs(product[i]) > level) level = std::fabs(product[i]), next = i;
  if (level < 1e-12) return order;
  const double end = 1e-10 * level;
  // Ties could go round for ever.
  for (std::size_t steps = 0; steps < 8 * entered && level > end; ++steps) {
    if (next != none) {
      active.push_back(next);
      sign.push_back(product[next] > 0 ? 1 : -1);
      weight.push_back(0);
      is_active[next] = 1;
      if (std::ranges::find(order, next) == order.end()) order.push_back(next);
      if (order.size() == entered) break;
    }
    const auto size = static_cast<arma::uword>(active.size());
    if (size == 0) break;
    arma::mat among(size, size);
    for (arma::uword a = 0; a < size; ++a)
      for (arma::uword b = 0; b < size; ++b) among(a, b) = gram(active[a], active[b]);
    arma::vec direction;
    if (!arma::solve(direction, among, arma::vec(sign.data(), size), arma::solve_opts::fast)) break;
    double step = level;
    next = none;
    std::size_t leaves = active.size();
    std::vector<double> slope(product.size());
    for (std::size_t i = 0; i < product.size(); ++i) {
      for (std::size_t a = 0; a < active.size(); ++a) slope[i] += gram(i, active[a]) * direction[a];
      if (is_active[i]) continue;
      for (const double s : {1.0, -1.0})
        if (const double rest = 1 - s * slope[i]; rest > 1e-12)
          if (const double at = (level - s * product[i]) / rest; at >= 0 && at < rounded * step)
            step = at, next = i;
    }
    for (std::size_t a = 0; a < active.size(); ++a)
      if (const double at = -weight[a] / direction[a]; at > 1e-12 && at < rounded * step)
        step = at, next = none, leaves = a;
    if (next == none && leaves == active.size()) break; // least squares
    for (std::size_t i = 0; i < product.size(); ++i) product[i] -= step * slope[i];
    for (std::size_t a = 0; a < active.size(); ++a) weight[a] += step * direction[a];
    level -= step;
    if (leaves < active.size()) {
      is_active[active[leaves]] = 0;
      const auto at = static_cast<std::ptrdiff_t>(leaves);
      active.erase(active.begin() + at);
      sign.erase(sign.begin() + at);
      weight.erase(weight.begin() + at);
    }
  }
  return order;
}

// Effects whose rows count alike, and how much these do; all 1 if it is empty.
struct Group {
  std::vector<std::int64_t> effects;
  std::vector<double> weight;
};

std::vector<Group> groups_of(const Matrix& weight, std::int64_t features) {
  std::vector<Group> groups;
  std::map<std::vector<double>, std::size_t> known;
  for (std::int64_t j = 0; j < features; ++j) {
    std::vector<double> own;
    if (!weight.empty()) own.assign(weight.column(j), weight.column(j) + weight.rows());
    const auto [at, is_new] = known.try_emplace(std::move(own), groups.size());
    if (is_new) groups.push_back({{}, at->first});
    groups[at->second].effects.push_back(j);
  }
  return groups;
}

// Columns of these rows about their weighted means, of weighted length 1; 0 where they do not vary.
arma::mat unit_columns(const Matrix& x, std::span<const std::int64_t> rows,
                       const std::vector<double>& weight, Run& run) {
  arma::mat z(rows.size(), static_cast<arma::uword>(x.cols()));
  arma::vec w(rows.size(), arma::fill::ones);
  if (!weight.empty())
    for (std::size_t r = 0; r < rows.size(); ++r) w[r] = weight[static_cast<std::size_t>(rows[r])];
  const double total = arma::accu(w);
  const arma::vec root = arma::sqrt(w);
  run.parallel_for(ceil_div(x.cols(), block_effects), [&](std::int64_t b) {
    for (std::int64_t j = b * block_effects; j < std::min(x.cols(), (b + 1) * block_effects); ++j) {
      arma::vec column(rows.size());
      for (std::size_t r = 0; r < rows.size(); ++r) column[r] = x(rows[r], j);
      column.elem(arma::find(w == 0)).zeros(); // what does not count has no size either
      if (const double size = arma::abs(column).max(); size > 0) column /= size;
      const double before = arma::norm(column % root);
      if (total > 0) column -= arma::dot(w, column) / total;
      column %= root;
      const double length = arma::norm(column);
      if (length > 1e-9 * before)
        column /= length;
      else
        column.zeros();
      z.col(static_cast<arma::uword>(j)) = column;
    }
  });
  return z;
}

// weight: of every value's equation, or empty.
Matrix scores_of(const Matrix& x, const Matrix& weight, const EdgeFactors& known, Run& run) {
  const std::int64_t m = x.cols(), n = x.rows(), half = n / 2;
  const std::vector<Group> groups = groups_of(weight, m);
  Matrix score(m, m);
  for (std::int64_t split = 0; split < splits; ++split) {
    Rng rng(run.seed(), {hash("dag.stability"), static_cast<std::uint64_t>(split)});
    const std::vector<std::int64_t> rows = rng.permutation(n);
    run.report({"dag.support", split, splits});
    for (std::int64_t side = 0; side < 2; ++side) {
      std::vector<double> scale(static_cast<std::size_t>(m));
      for (double& s : scale) s = rng.uniform(least_scale, 1);
      for (const Group& group : groups) {
        const arma::mat z =
            unit_columns(x,
                         std::span(rows).subspan(static_cast<std::size_t>(side * half),
                                                 static_cast<std::size_t>(half)),
                         group.weight, run);
        // All of it, or of few effects the columns that their paths ask for.
        const bool is_large = 8 * std::ssize(group.effects) >= m;
        arma::mat correlation(z.n_cols, is_large ? z.n_cols : 0);
        run.parallel_for(is_large ? ceil_div(m, block_effects) : 0, [&](std::int64_t b) {
          const auto first = static_cast<arma::uword>(b * block_effects),
                     last = static_cast<arma::uword>(std::min(m, (b + 1) * block_effects)) - 1;
          correlation.cols(first, last) = z.t() * z.cols(first, last);
        });
        run.parallel_for(ceil_div(std::ssize(group.effects), block_effects), [&](std::int64_t b) {
          const std::int64_t end = std::min(std::ssize(group.effects), (b + 1) * block_effects);
          for (std::int64_t e = b * block_effects; e < end; ++e) {
            run.poll();
            const std::int64_t effect = group.effects[static_cast<std::size_t>(e)];
            const std::vector<double> factor =
                known.empty() ? std::vector<double>() : known.causes_of(effect);
            std::map<std::size_t, arma::vec> asked_for;
            const auto correlations_with = [&](std::size_t k) -> const double* {
              if (is_large) return correlation.colptr(k);
              const auto [at, is_new] = asked_for.try_emplace(k);
              if (is_new) at->second = z.t() * z.col(k);
              return at->second.memptr();
            };
            std::vector<double> product(scale.size());
            const double* with_effect = correlations_with(static_cast<std::size_t>(effect));
            for (std::size_t i = 0; i < scale.size(); ++i)
              if (static_cast<std::int64_t>(i) != effect &&
                  (factor.empty() || !std::isinf(factor[i])))
                product[i] = scale[i] * with_effect[i];
            const std::vector<std::size_t> order =
                first_to_enter(std::move(product), [&](std::size_t i, std::size_t k) {
                  return scale[i] * scale[k] * correlations_with(k)[i];
                });
            for (std::size_t k = 0; k < order.size(); ++k)
              score(static_cast<std::int64_t>(order[k]), effect) +=
                  static_cast<double>(entered - k) / static_cast<double>(entered);
          }
        });
      }
    }
  }
  for (double& s : std::span(score.data(), static_cast<std::size_t>(score.size())))
    s /= 2 * static_cast<double>(splits);
  return score;
}

} // namespace

std::int64_t ranked_rows(std::int64_t rows) { return std::min(rows, most_rows); }

Matrix stability_scores(const Table& table, const EdgeFactors& known, Run& run) {
  const std::vector<std::int64_t> rows = spaced_rows_of(table.rows(), ranked_rows(table.rows()));
  return scores_of(table.read<double>(rows, run), table.read_weights<double>(rows, run), known,
                   run);
}

} // namespace cape::sem

namespace cape {

Matrix stability_selection(const MatrixView& x, Run& run) {
  check_view(x, "x");
  check_finite(x, "x");
  if (x.rows < 4)
    throw Error(Status::invalid_argument,
                message("x has ", x.rows, " rows; it must have at least 4"));
  return sem::scores_of(rows_of(x, spaced_rows_of(x.rows, sem::ranked_rows(x.rows))), {}, {}, run);
}

} // namespace cape
