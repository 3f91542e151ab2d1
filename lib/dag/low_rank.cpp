// The linear model z = x - xA with A = UV' of low rank (paper, supp_complexity): nothing is M x M
// where M is large beside the rank.
module;
#include "internal/arma.hpp"
#include "internal/borrow.hpp"
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <typeinfo>
#include <utility>
#include <variant>
#include <vector>
module cape.dag;
#include "dag/low_rank.hpp"
#include "dag/low_rank_acyclicity.hpp"
#include "dag/model.hpp"
#include "dag/noise.hpp"
#include "dag/options.hpp"

namespace cape::sem {
namespace {

class LowRankTerms final : public EdgeTerms<double> {
public:
  LowRankTerms(std::int64_t features, std::int64_t rank)
      : features_(features), rank_(rank), acyclicity_(features, rank) {}

  double constraint(const double* parameters, Run& run) override {
    return h_ = acyclicity_(factor(parameters, 0), factor(parameters, 1), run);
  }

  double add(const double* parameters, const Penalty<double>& penalty, double* gradient,
             Run& run) override {
    arma::mat u_slope = factor(gradient, 0), v_slope = factor(gradient, 1);
    acyclicity_.add_slopes(factor(parameters, 0), factor(parameters, 1),
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
  LowRankAcyclicity acyclicity_;
  double h_ = 0;
};

class LowRankSem final : public Model<double> {
public:
  LowRankSem(std::int64_t features, const Noise& noise, const DagOptions& options)
      : Model({features, features, 1, 2 * features * options.rank, 0}), rank_(options.rank),
        noise_(noise), floor_(0.1 * threshold_of(options)) {}

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
  Noise noise_;
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
    total += noise_.score(residual_.colptr(j), batch.rows,
                          batch.weight ? batch.weight + j * n : nullptr);
    diagonal_slope[j] = arma::dot(x.col(j), residual_.col(j));
  }
  run.poll();
  u_slope = v.each_col() % diagonal_slope - x.t() * (residual_ * v);
  v_slope = u.each_col() % diagonal_slope - residual_.t() * factors;
  return noise_.part(total);
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

std::unique_ptr<Model<double>> make_low_rank(std::int64_t features, const Noise& noise,
                                             const DagOptions& options) {
  return std::make_unique<LowRankSem>(features, noise, options);
}

double low_rank_memory(std::int64_t features, double batch, std::int64_t rank) {
  const double m = static_cast<double>(features), r = static_cast<double>(rank);
  const double pairs = r * (r + 1) / 2, exponential = std::min(m, pairs);
  // Factors, their gradient, two moments and a copy in h; a minibatch, its copy as read, the
  // residual and the factors of its rows; exp of h with its workspace; dh/dP, dh/dQ, and products
  // of a block of rows or of all.
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
