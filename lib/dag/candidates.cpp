// Step I on many columns: which of them may be causes of which, and h on that sparse pattern.
module;
#include "internal/arma.hpp"
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <new>
#include <numeric>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>
module cape.dag;

namespace cape::sem {
namespace {

constexpr std::int64_t screened_rows = 8192;
constexpr std::int64_t screened_block = 64; ///< effects whose associations are held at a time
constexpr std::int64_t screening_rounds = 8;
constexpr std::int64_t interactions = 6; ///< known causes with which others may act together
constexpr float ridge = 1e-3f;           ///< on regressors of length 1

// Columns of mean 0 and length 1: x itself, or its distance from the mean.
arma::fmat unit_columns(const MatrixView& x, bool distances, Run& run) {
  const std::int64_t n = std::min(x.rows, screened_rows);
  arma::fmat out(static_cast<arma::uword>(n), static_cast<arma::uword>(x.cols));
  run.parallel_for(x.cols, [&](std::int64_t j) {
    std::vector<double> v(static_cast<std::size_t>(n));
    for (std::int64_t r = 0; r < n; ++r) v[static_cast<std::size_t>(r)] = x(r * x.rows / n, j);
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
  Screening(const MatrixView& x, const EdgeFactors& known, std::int64_t count, Run& run)
      : known_(known), run_(run), plain_(unit_columns(x, false, run)),
        distance_(unit_columns(x, true, run)), residual_(plain_), causes_(count, x.cols) {}

  Causes operator()() {
    std::int64_t known = 0;
    for (std::int64_t round = 1; round <= screening_rounds; ++round) {
      const std::int64_t target = causes_.rows() * round / screening_rounds;
      if (known > 0) run_.parallel_for(causes_.cols(), [&](std::int64_t j) { explain(j, known); });
      add(known, target);
      known = target;
    }
    for (std::int64_t j = 0; j < causes_.cols(); ++j)
      std::sort(causes_.column(j), causes_.column(j) + causes_.rows());
    return std::move(causes_);
  }

private:
  void add(std::int64_t known, std::int64_t target);
  void choose(std::vector<float>& score, std::int64_t j, std::int64_t known, std::int64_t target);
  void explain(std::int64_t j, std::int64_t known);

  const EdgeFactors& known_;
  Run& run_;
  arma::fmat plain_, distance_, residual_;
  Causes causes_;
};

// The columns most associated with what is left of every effect, from number `known` to `target`. A
// cause that shows only together with another is seen in the product of the rest with the strongest
// causes known; the last quarter of the candidates is for those.
void Screening::add(std::int64_t known, std::int64_t target) {
  const std::int64_t m = causes_.cols();
  const std::int64_t probes =
      4 * known < 3 * causes_.rows() ? 1 : 1 + std::min(known, interactions);
  run_.parallel_for((m + screened_block - 1) / screened_block, [&](std::int64_t block) {
    const std::int64_t first = block * screened_block, last = std::min(m, first + screened_block);
    arma::fmat rest(plain_.n_rows, static_cast<arma::uword>((last - first) * probes));
    for (std::int64_t j = first; j < last; ++j)
      for (std::int64_t k = 0; k < probes; ++k) {
        auto probe = rest.col(static_cast<arma::uword>((j - first) * probes + k));
        probe = residual_.col(static_cast<arma::uword>(j));
        if (k > 0) probe %= plain_.col(static_cast<arma::uword>(causes_(k - 1, j)));
        if (k > 0) probe *= std::sqrt(static_cast<float>(plain_.n_rows)); // about the old length
      }
    const arma::fmat monotone = arma::abs(plain_.t() * rest);
    run_.poll();
    const arma::fmat even = arma::abs(distance_.t() * rest);
    for (std::int64_t j = first; j < last; ++j) {
      const auto from = static_cast<arma::uword>((j - first) * probes),
                 to = from + static_cast<arma::uword>(probes) - 1;
      const arma::fvec strongest =
          arma::max(arma::max(monotone.cols(from, to), 1), arma::max(even.cols(from, to), 1));
      std::vector<float> score(strongest.begin(), strongest.end());
      choose(score, j, known, target);
    }
  });
}

void Screening::choose(std::vector<float>& score, std::int64_t j, std::int64_t known,
                       std::int64_t target) {
  constexpr float never = -std::numeric_limits<float>::infinity();
  if (!known_.empty()) {
    const std::vector<double> factor = known_.causes_of(j);
    for (std::size_t i = 0; i < score.size(); ++i) {
      if (std::isinf(factor[i])) score[i] -= 2; // associations are at most 1
      if (factor[i] == 0) score[i] += 2;
    }
  }
  score[static_cast<std::size_t>(j)] = never;
  std::int64_t* causes = causes_.column(j);
  for (std::int64_t c = 0; c < known; ++c) score[static_cast<std::size_t>(causes[c])] = never;
  std::vector<std::int64_t> by_score(score.size());
  std::iota(by_score.begin(), by_score.end(), std::int64_t{0});
  std::ranges::partial_sort(by_score, by_score.begin() + (target - known), {}, [&](std::int64_t i) {
    return std::pair(-score[static_cast<std::size_t>(i)], i);
  });
  std::copy_n(by_score.begin(), target - known, causes + known);
}

// What a ridge regression on the known causes and their distances leaves of effect j.
void Screening::explain(std::int64_t j, std::int64_t known) {
  arma::fmat regressors(plain_.n_rows, static_cast<arma::uword>(2 * known));
  for (std::int64_t c = 0; c < known; ++c) {
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

std::int64_t input_count(std::int64_t features, const DagOptions& options) {
  if (options.sem != Sem::mlp || options.candidates < 0 || options.candidates >= features - 1)
    return features;
  if (options.constraint == Constraint::logdet)
    throw Error(Status::invalid_argument,
                "dag.candidates is " + std::to_string(options.candidates) +
                    ", below the number of other columns; with dag.constraint logdet, which needs "
                    "all pairs, it must not be");
  return options.candidates;
}

Causes screen(const MatrixView& x, const EdgeFactors& known, std::int64_t count, Run& run) {
  return Screening(x, known, count, run)();
}

double sparse_expm(const Matrix& s, const Causes& causes, Matrix& gradient, Run& run) {
  constexpr std::int64_t width = 32;     ///< rows of exp(S) that are summed at a time
  constexpr double negligible = 0x1p-53; ///< a term's largest entry against that of the sum
  constexpr double limit = 1e150;        ///< of an entry; h is at its cap long before
  const std::int64_t m = s.cols(), inputs = s.rows(), blocks = (m + width - 1) / width;
  std::vector<double> trace(static_cast<std::size_t>(blocks));
  run.parallel_for(blocks, [&](std::int64_t block) {
    // Column i holds what walks from the rows first ... first + width - 1 bring to column i.
    const std::int64_t first = block * width, count = std::min(width, m - first);
    Matrix term(width, m), next(width, m), sum(width, m);
    std::vector<char> reached(static_cast<std::size_t>(m)), reached_next(reached.size());
    for (std::int64_t b = 0; b < count; ++b) {
      term(b, first + b) = 1;
      reached[static_cast<std::size_t>(first + b)] = 1;
    }
    double largest = 0, largest_sum = 0;
    for (int k = 1;; ++k) {
      largest = 0;
      for (std::int64_t j = 0; j < m; ++j) {
        double* to = next.column(j);
        bool any = false;
        for (std::int64_t c = 0; c < inputs; ++c) {
          const std::int64_t i = causes(c, j);
          if (s(c, j) == 0 || !reached[static_cast<std::size_t>(i)]) continue;
          if (!any) std::fill_n(to, width, 0.0);
          any = true;
          const double weight = s(c, j) / k;
          const double* from = term.column(i);
          for (std::int64_t b = 0; b < width; ++b) to[b] += weight * from[b];
        }
        reached_next[static_cast<std::size_t>(j)] = any;
        if (!any) continue;
        double* total = sum.column(j);
        for (std::int64_t b = 0; b < width; ++b) {
          total[b] += to[b];
          largest = std::max(largest, to[b]);
          largest_sum = std::max(largest_sum, total[b]);
        }
      }
      std::swap(term, next);
      std::swap(reached, reached_next);
      run.poll();
      if (largest <= negligible * largest_sum || largest_sum > limit) break;
    }
    double& part = trace[static_cast<std::size_t>(block)];
    for (std::int64_t b = 0; b < count; ++b) {
      const std::int64_t j = first + b;
      part += sum(b, j);
      for (std::int64_t c = 0; c < inputs; ++c) gradient(c, j) = sum(b, causes(c, j));
    }
    if (largest_sum > limit) part = std::numeric_limits<double>::infinity();
  });
  return std::min(std::accumulate(trace.begin(), trace.end(), 0.0),
                  std::numeric_limits<double>::max());
}

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
