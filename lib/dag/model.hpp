// Structural equation models as the training sees them.
#pragma once
#include "dag/causes.hpp"
#include "dag/noise.hpp"
#include "dag/table.hpp"

namespace cape::sem {

// Training computes in T, which is double or float. Sums over many rows, weights or edges are
// double always.

/// Effects that are one task of a step. Fixed, so that the bits do not depend on the number of
/// threads.
inline constexpr std::int64_t block_effects = 32;

/// The rows that one step of the optimiser sees.
template <class T>
struct Batch {
  const T* x = nullptr; ///< rows x features, column-major without gaps
  /// Weight of each value's own equation: 0 where it was set from outside; null: all 1
  const T* weight = nullptr;
  std::int64_t rows = 0;
};

struct Shape {
  std::int64_t features = 0;
  std::int64_t inputs = 0; ///< of an effect
  std::int64_t channels = 1;
  std::int64_t parameters = 0;
  std::int64_t ridged = 0; ///< the leading parameters that the ridge holds
};

/// What is learned of the edges, features x features.
struct LearnedEdges {
  SparseMatrix weights; ///< norms over the channels; the weights themselves if there is one only
  SparseMatrix sign;    ///< -1 or 1
};

/// Factors of lambda by which the sizes of parameters count: the same for `length` leading ones,
/// the next for as many behind them, and so on; none for the rest.
struct Shrinkage {
  std::int64_t length = 0;
  std::vector<double> factor;
};

/// The terms of the objective beside -ELBO (paper, eq_lossdag, and the ridge of model G).
template <class T>
struct Penalty {
  double lambda = 0;
  double l2 = 0;
  double rho = 0;
  double alpha = 0;
  /// inputs x features, of lambda; null: 1 everywhere
  const BasicMatrix<T>* factor = nullptr;
};

/// What these terms see of the parameters of a model: the graph.
template <class T>
class EdgeTerms {
public:
  virtual ~EdgeTerms();
  /// h of the parameters. It and its gradient hold for the calls below until this is called again.
  virtual double constraint(const T* parameters, Run& run) = 0;
  /// The value of the terms. Adds the gradient of all but the L1 term.
  virtual double add(const T* parameters, const Penalty<T>& penalty, T* gradient, Run& run) = 0;
  /// How the L1 term takes the parameters, without the penalty's factors.
  virtual Shrinkage shrinkage(const T* parameters) const = 0;
};

/// A structural equation model whose parameters are one vector.
template <class T>
class Model {
public:
  explicit Model(const Shape& shape, Causes causes = {})
      : shape_(shape), causes_(std::move(causes)) {}
  virtual ~Model();
  const Shape& shape() const noexcept { return shape_; }
  const Causes& causes() const noexcept { return causes_; }

  virtual void initialize(T* parameters, Run& run) const = 0;
  /// Give the edge from input c of effect j this weight, in parameters that were initialised.
  virtual void set_edge(std::int64_t c, std::int64_t j, double weight, T* parameters) const = 0;
  /// -ELBO of a batch (mean over rows, sum over features) and its gradient, which is overwritten.
  virtual Score score(const Batch<T>& batch, const T* parameters, T* gradient, Run& run) = 0;
  /// The other terms of the objective; the model outlives them.
  virtual std::unique_ptr<EdgeTerms<T>> edge_terms(Constraint form) const = 0;
  /// The edges, and how their effects move with their causes over the rows.
  virtual LearnedEdges edges(const Table& table, const T* parameters, Run& run) = 0;

private:
  Shape shape_;
  Causes causes_;
};

/// The model of the options. Only sem mlp takes causes, and computes in float.
template <class T>
std::unique_ptr<Model<T>> make_model(std::int64_t features, Causes causes, const Noise& noise,
                                     const DagOptions& options);
// The models, each in the file of its name.
template <class T>
std::unique_ptr<Model<T>> make_mlp(std::int64_t features, Causes causes, const Noise& noise,
                                   const DagOptions& options);
std::unique_ptr<Model<double>> make_linear(std::int64_t features, const Noise& noise);
/// The linear model of options.rank > 0.
std::unique_ptr<Model<double>> make_low_rank(std::int64_t features, const Noise& noise,
                                             const DagOptions& options);
std::unique_ptr<Model<double>> make_paper(std::int64_t features, const Noise& noise);
std::unique_ptr<Model<double>> make_literal(std::int64_t features);

} // namespace cape::sem
