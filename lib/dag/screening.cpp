// The columns that may be causes of an effect, by association: see candidate_causes().
module;
#include "internal/arma.hpp"
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <new>
#include <numeric>
#include <span>
#include <string>
#include <typeinfo>
#include <utility>
#include <variant>
#include <vector>
module cape.dag;
#include "dag/range.hpp"
#include "dag/row_source.hpp"
#include "dag/screening.hpp"

namespace cape::sem {
namespace {

constexpr std::int64_t most_rows = 8192, least_rows = 2048;
constexpr std::int64_t screened_block = 256; ///< columns whose associations are held at a time
constexpr std::int64_t screened_part = 1024; ///< causes that are looked at at a time
constexpr std::int64_t product_rows = 512;   ///< that one product sums over
constexpr std::int64_t screening_rounds = 6; ///< for three quarters of the candidates
constexpr std::int64_t interactions = 6;     ///< known causes with which others may act together
constexpr float ridge = 1e-3f;               ///< on regressors of length 1

// Columns of mean 0 and length 1: x itself, or its distance from the mean.
arma::fmat unit_columns(const MatrixView& x, bool distances, Run& run) {
  const std::int64_t n = screened_rows(x.rows, x.cols);
  arma::fmat out(static_cast<arma::uword>(n), static_cast<arma::uword>(x.cols), arma::fill::zeros);
  run.parallel_for(x.cols, [&](std::int64_t j) {
    std::vector<double> v(static_cast<std::size_t>(n));
    Range range;
    for (std::int64_t r = 0; r < n; ++r) {
      v[static_cast<std::size_t>(r)] = x(spaced_row(r, x.rows, n), j);
      range.add(v[static_cast<std::size_t>(r)]);
    }
    if (range.constant()) return; // its column stays 0
    // By a power of 2, which changes no bit of the result: no square overflows or vanishes.
    for (double& value : v) value = std::scalbn(value, -std::ilogb(range.size()));
    const auto center = [&v] {
      const double mean = std::accumulate(v.begin(), v.end(), 0.0) / static_cast<double>(v.size());
      for (double& value : v) value -= mean;
    };
    center();
    if (distances) {
      for (double& value : v) value = std::fabs(value);
      center();
    }
    const double length = std::sqrt(std::inner_product(v.begin(), v.end(), v.begin(), 0.0));
    float* column = out.colptr(static_cast<arma::uword>(j));
    for (std::int64_t r = 0; r < n; ++r)
      column[r] = length > 0 ? static_cast<float>(v[static_cast<std::size_t>(r)] / length) : 0;
  });
  return out;
}

// The screening of learn_dag(): see candidate_causes().
class Screening {
public:
  Screening(const MatrixView& x, const EdgeFactors& factors, std::int64_t count, Run& run)
      : factors_(factors), run_(run), plain_(unit_columns(x, false, run)),
        distance_(unit_columns(x, true, run)), residual_(plain_), causes_(count, x.cols) {}

  Causes operator()() {
    const std::int64_t count = causes_.rows();
    for (std::int64_t round = 1; round <= screening_rounds; ++round)
      extend(3 * count * round / (4 * screening_rounds), 1);
    extend(count, 1 + std::min(known_, interactions));
    for (std::int64_t j = 0; j < causes_.cols(); ++j)
      std::sort(causes_.column(j), causes_.column(j) + causes_.rows());
    return std::move(causes_);
  }

private:
  void extend(std::int64_t target, std::int64_t probes);
  void choose(float* score, std::int64_t j, std::int64_t target);
  void explain(std::int64_t j);

  const EdgeFactors& factors_;
  Run& run_;
  arma::fmat plain_, distance_, residual_;
  Causes causes_;
  std::int64_t known_ = 0; ///< candidates of every effect so far
};

// The columns most associated with what is left of every effect, up to `target` of them. A cause
// that shows only together with another is seen in the product of the rest with the strongest
// causes known, which are the other probes.
void Screening::extend(std::int64_t target, std::int64_t probes) {
  const std::int64_t m = causes_.cols();
  if (target == known_) return;
  if (known_ > 0) run_.parallel_for(m, [&](std::int64_t j) { explain(j); });
  const std::int64_t block_effects = std::max<std::int64_t>(1, screened_block / probes);
  run_.parallel_for((m + block_effects - 1) / block_effects, [&](std::int64_t block) {
    const std::int64_t first = block * block_effects, last = std::min(m, first + block_effects);
    arma::fmat rest(plain_.n_rows, static_cast<arma::uword>((last - first) * probes));
    for (std::int64_t j = first; j < last; ++j)
      for (std::int64_t k = 0; k < probes; ++k) {
        auto probe = rest.col(static_cast<arma::uword>((j - first) * probes + k));
        probe = residual_.col(static_cast<arma::uword>(j));
        if (k > 0) probe %= plain_.col(static_cast<arma::uword>(causes_(k - 1, j)));
        if (k > 0) probe *= std::sqrt(static_cast<float>(plain_.n_rows)); // about the old length
      }
    BasicMatrix<float> score(m, last - first);
    for (std::int64_t start = 0; start < m; start += screened_part) {
      const auto from = static_cast<arma::uword>(start),
                 count = static_cast<arma::uword>(std::min(m - start, screened_part));
      for (arma::fmat* columns : {&plain_, &distance_}) {
        const arma::fmat causes(columns->colptr(from), columns->n_rows, count, false, true);
        arma::fmat association(count, rest.n_cols, arma::fill::zeros);
        for (arma::uword row = 0; row < causes.n_rows; row += product_rows) {
          const arma::uword end = std::min<arma::uword>(causes.n_rows, row + product_rows) - 1;
          association += causes.rows(row, end).t() * rest.rows(row, end);
          run_.poll();
        }
        for (arma::uword c = 0; c < association.n_cols; ++c) {
          float* best = score.column(static_cast<std::int64_t>(c) / probes) + start;
          const float* found = association.colptr(c);
          for (arma::uword i = 0; i < association.n_rows; ++i)
            best[i] = std::max(best[i], std::fabs(found[i]));
        }
      }
    }
    for (std::int64_t j = first; j < last; ++j) choose(score.column(j - first), j, target);
  });
  known_ = target;
}

void Screening::choose(float* score, std::int64_t j, std::int64_t target) {
  constexpr float never = -std::numeric_limits<float>::infinity();
  if (!factors_.empty()) {
    const std::vector<double> factor = factors_.causes_of(j);
    for (std::size_t i = 0; i < factor.size(); ++i) {
      if (std::isinf(factor[i])) score[i] -= 2; // associations are at most 1
      if (factor[i] == 0) score[i] += 2;
    }
  }
  score[j] = never;
  std::int64_t* causes = causes_.column(j);
  for (std::int64_t c = 0; c < known_; ++c) score[causes[c]] = never;
  std::vector<std::int64_t> by_score(static_cast<std::size_t>(causes_.cols()));
  std::iota(by_score.begin(), by_score.end(), std::int64_t{0});
  std::ranges::partial_sort(by_score, by_score.begin() + (target - known_), {},
                            [&](std::int64_t i) { return std::pair(-score[i], i); });
  std::copy_n(by_score.begin(), target - known_, causes + known_);
}

// What a ridge regression on the known causes and their distances leaves of effect j.
void Screening::explain(std::int64_t j) {
  arma::fmat regressors(plain_.n_rows, static_cast<arma::uword>(2 * known_));
  for (std::int64_t c = 0; c < known_; ++c) {
    const auto cause = static_cast<arma::uword>(causes_(c, j)), at = static_cast<arma::uword>(c);
    regressors.col(2 * at) = plain_.col(cause);
    regressors.col(2 * at + 1) = distance_.col(cause);
  }
  arma::fmat gram = regressors.t() * regressors;
  gram.diag() += ridge;
  const auto effect = static_cast<arma::uword>(j);
  const arma::fvec target = regressors.t() * plain_.col(effect);
  arma::fvec coefficients;
  if (arma::solve(coefficients, gram, target, arma::solve_opts::fast))
    residual_.col(effect) = plain_.col(effect) - regressors * coefficients;
}

} // namespace

Causes screen(const MatrixView& x, const EdgeFactors& factors, std::int64_t count, Run& run) {
  return Screening(x, factors, count, run)();
}

std::int64_t screened_rows(std::int64_t rows, std::int64_t columns) {
  const std::int64_t wanted = most_rows * 10'000 / std::max<std::int64_t>(columns, 1);
  return std::min(rows, std::clamp(wanted, least_rows, most_rows));
}

// Of both kinds of association, in every round and with every probe of the last.
std::int64_t screening_products() { return 2 * (screening_rounds + 1 + interactions); }

} // namespace cape::sem

namespace cape {

BasicMatrix<std::int64_t> candidate_causes(const MatrixView& x, std::int64_t count, Run& run) {
  check_view(x, "x");
  check_finite(x, "x");
  if (x.rows < 2) throw Error(Status::invalid_argument, "x has fewer than 2 rows");
  if (count < 1 || count >= x.cols)
    throw Error(Status::invalid_argument, "count is " + std::to_string(count) +
                                              "; it must lie in [1, " + std::to_string(x.cols) +
                                              ")");
  return sem::screen(x, EdgeFactors(), count, run);
}

} // namespace cape
