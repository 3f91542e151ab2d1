// The linear model z = x - xA with A = UV' of low rank (paper, supp_complexity): nothing is M x M
// where M is large beside the rank.
module;
#include "internal/arma.hpp"
#include "internal/borrow.hpp"
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <new>
#include <numbers>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>
module cape.dag;

namespace cape::sem {
namespace {

// Pairs of columns (a, b), a <= b.
std::int64_t pair_count(std::int64_t rank) { return rank * (rank + 1) / 2; }

// Of every pair the product of the columns, times sqrt 2 where they differ: for rows u_i and v_j
// the products of these products sum up to <u_i, v_j>^2.
double pair_weight(arma::uword a, arma::uword b) { return a == b ? 1 : std::numbers::sqrt2; }
arma::mat pair_products(const arma::mat& rows) {
  arma::mat out(rows.n_rows, rows.n_cols * (rows.n_cols + 1) / 2);
  arma::uword pair = 0;
  for (arma::uword b = 0; b < rows.n_cols; ++b)
    for (arma::uword a = 0; a <= b; ++a)
      out.col(pair++) = pair_weight(a, b) * rows.col(a) % rows.col(b);
  return out;
}

// body(first, last) for blocks of that width of 0 ... n - 1, which are tasks.
template <class F>
void for_blocks(arma::uword n, arma::uword width, Run& run, F body) {
  run.parallel_for(static_cast<std::int64_t>((n + width - 1) / width), [&](std::int64_t block) {
    const arma::uword first = static_cast<arma::uword>(block) * width;
    body(first, std::min(n, first + width) - 1);
  });
}
// Of blocks that are multiplied by a matrix of this size: wide enough to be fast, and narrow enough
// to be done in some milliseconds, since only between them can a run be cancelled.
arma::uword task_width(arma::uword rows, arma::uword cols) {
  return std::clamp<arma::uword>(100'000'000 / (rows * cols), 16, 128);
}

// Adds multiplier times the gradient with respect to the factor, given that with respect to its
// products.
void add_pull_back(const arma::mat& factor, const arma::mat& slope, double multiplier,
                   arma::mat& gradient, Run& run) {
  constexpr arma::uword height = 512; // rows whose columns stay in the cache
  for_blocks(factor.n_rows, height, run, [&](arma::uword first, arma::uword last) {
    arma::uword pair = 0;
    for (arma::uword b = 0; b < factor.n_cols; ++b)
      for (arma::uword a = 0; a <= b; ++a, ++pair) {
        const double weight = multiplier * pair_weight(a, b);
        const double *s = slope.colptr(pair), *f_a = factor.colptr(a), *f_b = factor.colptr(b);
        double *g_a = gradient.colptr(a), *g_b = gradient.colptr(b);
        for (arma::uword i = first; i <= last; ++i) {
          const double pull = weight * s[i];
          g_a[i] += pull * f_b[i];
          g_b[i] += pull * f_a[i];
        }
      }
  });
}

// h = tr exp(A o A) - M for A = UV'. With P and Q the products of pairs, A o A = PQ', which has the
// eigenvalues of Q'P and zeros beside: h is tr exp(Q'P) - R, dh/dP = Q exp(Q'P)' and dh/dQ =
// P exp(Q'P). Where there are no more rows than pairs, A itself is smaller, and h more exact.
class LowRankConstraint {
public:
  LowRankConstraint(std::int64_t features, std::int64_t rank)
      : size_(std::min(features, pair_count(rank))), by_pairs_(size_ < features),
        constraint_(Constraint::expm), strength_(size_, size_), slope_(size_, size_) {}

  /// h.
  double operator()(const arma::mat& u_in, const arma::mat& v_in, Run& run) {
    const arma::mat u = bounded(u_in), v = bounded(v_in);
    return by_pairs_ ? of_pairs(u, v, run) : of_edges(u, v, run);
  }
  /// Adds multiplier times its gradients with respect to U and V, by dh/dP and dh/dQ of the last
  /// call of the above, whose factors may differ from these: the pull on a factor then still falls
  /// with the factor, as that on an edge weight does with the weight, and does not overshoot.
  void add_slopes(const arma::mat& u, const arma::mat& v, double multiplier, arma::mat& u_slope,
                  arma::mat& v_slope, Run& run) const {
    add_pull_back(bounded(u), p_slope_, multiplier, u_slope, run);
    add_pull_back(bounded(v), q_slope_, multiplier, v_slope, run);
  }

private:
  // So that fourth powers and their squares are finite.
  static arma::mat bounded(const arma::mat& factor) { return arma::clamp(factor, -1e35, 1e35); }
  double of_edges(const arma::mat& u, const arma::mat& v, Run& run);
  double of_pairs(const arma::mat& u, const arma::mat& v, Run& run);
  void scale_slope(const arma::mat& u, const arma::mat& v);

  std::int64_t size_;
  bool by_pairs_;
  AcyclicityConstraint<double> constraint_;
  Matrix strength_, slope_;     ///< A o A or Q'P, and exp of that, transposed
  arma::mat p_slope_, q_slope_; ///< dh/dP, dh/dQ
};

// Where exp is near the largest number its products with U and V must not pass it: the gradient
// then keeps its direction.
void LowRankConstraint::scale_slope(const arma::mat& u, const arma::mat& v) {
  arma::mat slope = borrow(slope_.data(), size_, size_);
  const auto largest = [](const arma::mat& a) { return std::max(a.max(), -a.min()); };
  const double bound = std::log(largest(slope)) + 3 * std::log(std::max(largest(u), largest(v))) +
                       std::log(4.0 * static_cast<double>(size_) * static_cast<double>(u.n_cols));
  if (constexpr double limit = 700; bound > limit) slope *= std::exp(limit - bound);
}

double LowRankConstraint::of_edges(const arma::mat& u, const arma::mat& v, Run& run) {
  arma::mat strength = borrow(strength_.data(), size_, size_);
  const arma::uword m = u.n_rows, width = task_width(m, m);
  for_blocks(m, width, run, [&](arma::uword first, arma::uword last) {
    strength.cols(first, last) = arma::square(u * v.rows(first, last).t());
  });
  const double h = constraint_(strength_, slope_, run);
  scale_slope(u, v);
  const arma::mat slope = borrow(slope_.data(), size_, size_);
  const arma::mat p = pair_products(u), q = pair_products(v);
  p_slope_.set_size(m, p.n_cols);
  q_slope_.set_size(m, p.n_cols);
  for_blocks(p.n_cols, width, run, [&](arma::uword first, arma::uword last) {
    p_slope_.cols(first, last) = slope * q.cols(first, last);
    q_slope_.cols(first, last) = slope.t() * p.cols(first, last);
  });
  return h;
}

double LowRankConstraint::of_pairs(const arma::mat& u, const arma::mat& v, Run& run) {
  constexpr arma::uword height = 256; // rows whose products of pairs are in memory
  const arma::uword m = u.n_rows;
  const auto pairs = static_cast<arma::uword>(size_);
  arma::mat strength = borrow(strength_.data(), size_, size_);
  strength.zeros();
  for (arma::uword first = 0; first < m; first += height) {
    const arma::span rows(first, std::min(m, first + height) - 1);
    const arma::mat p = pair_products(u.rows(rows.a, rows.b));
    const arma::mat q = pair_products(v.rows(rows.a, rows.b));
    for_blocks(pairs, task_width(pairs, height), run, [&](arma::uword from, arma::uword to) {
      strength.cols(from, to) += q.t() * p.cols(from, to);
    });
  }
  const double h = constraint_(strength_, slope_, run);
  scale_slope(u, v);
  const arma::mat slope = borrow(slope_.data(), size_, size_);
  p_slope_.set_size(m, pairs);
  q_slope_.set_size(m, pairs);
  for_blocks(m, task_width(pairs, pairs), run, [&](arma::uword first, arma::uword last) {
    p_slope_.rows(first, last) = pair_products(v.rows(first, last)) * slope;
    q_slope_.rows(first, last) = pair_products(u.rows(first, last)) * slope.t();
  });
  return h;
}

class LowRankTerms final : public EdgeTerms<double> {
public:
  LowRankTerms(std::int64_t features, std::int64_t rank)
      : features_(features), rank_(rank), constraint_(features, rank) {}

  double constraint(const double* parameters, Run& run) override {
    return h_ = constraint_(factor(parameters, 0), factor(parameters, 1), run);
  }

  double add(const double* parameters, const Penalty& penalty, double* gradient,
             Run& run) override {
    arma::mat u_slope = factor(gradient, 0), v_slope = factor(gradient, 1);
    constraint_.add_slopes(factor(parameters, 0), factor(parameters, 1),
                           penalty.rho * h_ + penalty.alpha, u_slope, v_slope, run);
    const std::vector<double> sizes = column_sizes(parameters);
    double absolute = 0;
    for (std::size_t a = 0; a < sizes.size() / 2; ++a)
      absolute += sizes[a] * sizes[a + sizes.size() / 2];
    return penalty.lambda * absolute + 0.5 * penalty.rho * h_ * h_ + penalty.alpha * h_;
  }

  Shrinkage shrinkage(const double* parameters) const override {
    std::vector<double> factor = column_sizes(parameters);
    std::rotate(factor.begin(), factor.begin() + rank_, factor.end());
    return {features_, std::move(factor)};
  }

private:
  // U, which is number 0, or V.
  arma::mat factor(const double* parameters, int number) const {
    return borrow(parameters + number * features_ * rank_, features_, rank_);
  }
  // |u_1|_1 ... |u_r|_1, |v_1|_1 ... |v_r|_1.
  std::vector<double> column_sizes(const double* parameters) const {
    const arma::rowvec sizes = arma::sum(arma::abs(borrow(parameters, features_, 2 * rank_)));
    return {sizes.begin(), sizes.end()};
  }

  std::int64_t features_, rank_;
  LowRankConstraint constraint_;
  double h_ = 0;
};

class LowRankSem final : public Model<double> {
public:
  LowRankSem(std::int64_t features, const DagOptions& options)
      : Model({features, features, 1, 2 * features * options.rank, 0}), rank_(options.rank),
        unequal_variances_(options.standardize),
        floor_(0.1 * plain_threshold(options)) {}

  // Small enough that h is small, whatever M and the rank; not 0, where the gradient is.
  void initialize(double* parameters, Run& run) const override {
    Rng rng(run.seed(), {hash("dag.init")});
    const double size = 0.1 / std::pow(static_cast<double>(shape().features * rank_), 0.25);
    for (std::int64_t p = 0; p < shape().parameters; ++p) {
      if (p % 4096 == 0) run.poll();
      parameters[p] = size * rng.normal();
    }
  }
  void set_edge(std::int64_t, std::int64_t, double, double*) const override {
    throw Error(Status::invalid_argument, "a model of low rank cannot start from edges");
  }
  std::unique_ptr<EdgeTerms<double>> edge_terms(Constraint) const override {
    return std::make_unique<LowRankTerms>(shape().features, rank_);
  }
  Score score(const Batch<double>& batch, const double* parameters, double* gradient,
              Run& run) override;
  LearnedEdges edges(const Table& table, const double* parameters, Run& run) override;

private:
  arma::mat u(const double* parameters) const {
    return borrow(parameters, shape().features, rank_);
  }
  arma::mat v(const double* parameters) const {
    return borrow(parameters + shape().features * rank_, shape().features, rank_);
  }

  std::int64_t rank_;
  bool unequal_variances_;
  double floor_; ///< smaller weights are not part of the result
  arma::mat residual_;
};

// The diagonal of A does not predict: z = x - x(A - diag A).
Score LowRankSem::score(const Batch<double>& batch, const double* parameters, double* gradient,
                        Run& run) {
  const auto n = static_cast<arma::uword>(batch.rows);
  const auto m = static_cast<arma::uword>(shape().features);
  const arma::mat x = borrow(batch.x, batch.rows, shape().features);
  const arma::mat u = this->u(parameters), v = this->v(parameters);
  arma::mat u_slope = this->u(gradient), v_slope = this->v(gradient);
  const arma::vec diagonal = arma::sum(u % v, 1);
  const arma::mat factors = x * u;
  residual_ = x - factors * v.t();
  arma::vec diagonal_slope(m);
  double total = 0;
  for (arma::uword j = 0; j < m; ++j) {
    residual_.col(j) += diagonal[j] * x.col(j);
    total += column_score(residual_.colptr(j), batch.rows,
                          batch.weight ? batch.weight + j * n : nullptr, unequal_variances_);
    diagonal_slope[j] = arma::dot(x.col(j), residual_.col(j));
  }
  run.poll();
  u_slope = v.each_col() % diagonal_slope - x.t() * (residual_ * v);
  v_slope = u.each_col() % diagonal_slope - residual_.t() * factors;
  return unequal_variances_ ? Score{total, 0} : Score{0, total};
}

LearnedEdges LowRankSem::edges(const Table&, const double* parameters, Run& run) {
  constexpr std::int64_t width = 64;
  const std::int64_t m = shape().features;
  const arma::mat u = this->u(parameters), v = this->v(parameters);
  LearnedEdges learned;
  learned.weights.rows = learned.weights.cols = m;
  learned.weights.offsets.push_back(0);
  for (std::int64_t first = 0; first < m; first += width) {
    const std::int64_t end = std::min(m, first + width);
    const arma::mat block =
        u * v.rows(static_cast<arma::uword>(first), static_cast<arma::uword>(end - 1)).t();
    for (std::int64_t j = first; j < end; ++j) {
      const double* column = block.colptr(static_cast<arma::uword>(j - first));
      for (std::int64_t i = 0; i < m; ++i)
        if (i != j && std::fabs(column[i]) > floor_) {
          learned.weights.indices.push_back(static_cast<std::int32_t>(i));
          learned.weights.values.push_back(column[i]);
        }
      learned.weights.offsets.push_back(std::ssize(learned.weights.values));
    }
    run.poll();
  }
  learned.sign = learned.weights;
  for (double& value : learned.sign.values) value = value > 0 ? 1 : -1;
  return learned;
}

} // namespace

std::unique_ptr<Model<double>> make_low_rank(std::int64_t features, const DagOptions& options) {
  return std::make_unique<LowRankSem>(features, options);
}

double low_rank_memory(std::int64_t features, double batch, std::int64_t rank) {
  const double m = static_cast<double>(features), r = static_cast<double>(rank);
  const double pairs = r * (r + 1) / 2, exponential = std::min(m, pairs);
  // Factors, their gradient, two moments and a copy in h; a minibatch, its copy as read, the
  // residual and the factors of its rows; exp of h with its workspace; dh/dP, dh/dQ, and products of
  // a block of rows or of all.
  return 8 * (5 * 2 * m * r + batch * (3 * m + 2 * r) + 8 * exponential * exponential +
              2 * m * pairs + (pairs < m ? 3 * 256 : 2 * m) * pairs);
}

void check_low_rank(std::int64_t columns, const Knowledge& knowledge, const DagOptions& options) {
  if (options.rank == 0) return;
  const auto refuse = [&](const std::string& what) {
    throw Error(Status::invalid_argument,
                "dag.rank is " + std::to_string(options.rank) + "; " + what);
  };
  if (options.rank > columns)
    refuse("it must be at most the number of columns with variance, " + std::to_string(columns));
  if (options.sem != Sem::linear) refuse("a rank above 0 needs dag.sem linear");
  if (options.constraint != Constraint::expm) refuse("a rank above 0 needs dag.constraint expm");
  if (options.candidates >= 0 && options.candidates < columns - 1)
    refuse("with dag.candidates " + std::to_string(options.candidates) +
           ", below the number of other columns, it must be 0");
  const Knowledge& k = knowledge;
  if (!(k.required.empty() && k.forbidden.empty() && k.tier.empty() && k.roots.empty() &&
        k.leaves.empty() && k.regulators.empty() && k.penalty.empty() && k.start.empty()))
    refuse("with knowledge of the graph, whose edges have no weights of their own at low rank, it "
           "must be 0");
}

} // namespace cape::sem

namespace cape {

double low_rank_acyclicity(const MatrixView& u, const MatrixView& v, Matrix* u_gradient,
                           Matrix* v_gradient) {
  check_view(u, "u");
  check_view(v, "v");
  if (u.rows != v.rows || u.cols != v.cols || u.cols < 1)
    throw Error(Status::dim_mismatch,
                "u is " + std::to_string(u.rows) + " x " + std::to_string(u.cols) + " and v " +
                    std::to_string(v.rows) + " x " + std::to_string(v.cols) +
                    "; they must have the same size and at least one column");
  check_finite(u, "u");
  check_finite(v, "v");
  Matrix u_slope(u.rows, u.cols), v_slope(u.rows, u.cols);
  double h = 0;
  if (u.rows > 0) {
    const Matrix u_values = to_matrix(u), v_values = to_matrix(v);
    const arma::mat u_factor = borrow(u_values.data(), u.rows, u.cols);
    const arma::mat v_factor = borrow(v_values.data(), u.rows, u.cols);
    Run run;
    sem::LowRankConstraint constraint(u.rows, u.cols);
    h = constraint(u_factor, v_factor, run);
    arma::mat u_out = borrow(u_slope.data(), u.rows, u.cols);
    arma::mat v_out = borrow(v_slope.data(), u.rows, u.cols);
    constraint.add_slopes(u_factor, v_factor, 1, u_out, v_out, run);
  }
  if (u_gradient) *u_gradient = std::move(u_slope);
  if (v_gradient) *v_gradient = std::move(v_slope);
  return h;
}

} // namespace cape
