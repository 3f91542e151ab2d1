module;
#include "internal/sizes.hpp"
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <numeric>
#include <span>
#include <typeinfo>
#include <utility>
#include <variant>
#include <vector>
module cape.dag;
#include "dag/acyclicity.hpp"
#include "dag/edge_weights.hpp"

namespace cape::sem {
namespace {

// Sums are taken in eight parts, which is fast and, unlike BLAS, the same for any alignment.
constexpr int lanes = 8;

template <class T>
T total(const T (&part)[lanes]) {
  return ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
}

struct Sums {
  double absolute = 0, squares = 0;
};

// Adds pull w, the gradient of the constraint and of the ridge for the n weights of one unit, and
// their |w| by factors, and w^2.
template <class T>
void add_penalty(const T* w, const T* pull, const T* factor, std::int64_t n, T* gradient,
                 Sums& sums) {
  T absolute[lanes] = {}, squares[lanes] = {};
  const auto add = [&](std::int64_t i, int lane) {
    gradient[i] += pull[i] * w[i];
    absolute[lane] += factor[i] * std::fabs(w[i]);
    squares[lane] += w[i] * w[i];
  };
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    for (int lane = 0; lane < lanes; ++lane) add(i + lane, lane);
  for (; i < n; ++i) add(i, 0);
  sums.absolute += total(absolute);
  sums.squares += total(squares);
}

// One weight or more for every edge, see EdgeWeightModel.
template <class T>
class EdgeWeightTerms final : public EdgeTerms<T> {
public:
  EdgeWeightTerms(const EdgeWeightModel<T>& model, Constraint form)
      : model_(model), measure_(make_acyclicity<T>(form, model.causes())),
        strength_(model.shape().inputs, model.shape().features),
        slope_(model.shape().inputs, model.shape().features),
        absolute_(static_cast<std::size_t>(ceil_div(model.shape().features, block_effects))),
        squares_(absolute_.size()) {}

  double constraint(const T* parameters, Run& run) override;
  double add(const T* parameters, const Penalty<T>& penalty, T* gradient, Run& run) override;
  Shrinkage shrinkage(const T*) const override { return {model_.edge_parameters(), {1.0}}; }

private:
  const EdgeWeightModel<T>& model_;
  AcyclicityMeasure measure_;
  Matrix strength_, slope_;                ///< S and dh/dS
  std::vector<double> absolute_, squares_; ///< sums over the weights of a block of effects
  double h_ = 0;
};

template <class T>
double EdgeWeightTerms<T>::constraint(const T* parameters, Run& run) {
  const std::int64_t m = model_.shape().features, inputs = model_.shape().inputs,
                     channels = model_.shape().channels;
  run.parallel_for(ceil_div(m, block_effects), [&](std::int64_t block) {
    const std::int64_t end = std::min(m, (block + 1) * block_effects);
    for (std::int64_t j = block * block_effects; j < end; ++j) {
      double* s = strength_.column(j);
      std::fill_n(s, inputs, 0.0);
      for (std::int64_t u = j * channels; u < (j + 1) * channels; ++u) {
        const T* w = parameters + u * inputs;
        for (std::int64_t i = 0; i < inputs; ++i) s[i] += static_cast<double>(w[i]) * w[i];
      }
    }
  });
  return h_ = measure_(strength_, slope_, run);
}

template <class T>
double EdgeWeightTerms<T>::add(const T* parameters, const Penalty<T>& penalty, T* gradient,
                               Run& run) {
  const std::int64_t m = model_.shape().features, inputs = model_.shape().inputs,
                     channels = model_.shape().channels;
  // All terms in one pass over the weights, which on wide tables do not fit into the cache.
  const double multiplier = 2 * (penalty.rho * h_ + penalty.alpha);
  const double l2 = model_.shape().ridged > 0 ? penalty.l2 : 0;
  const std::int64_t blocks = ceil_div(m, block_effects);
  run.parallel_for(blocks, [&](std::int64_t block) {
    Sums sums;
    std::vector<T> pull(static_cast<std::size_t>(inputs)), factor(pull.size(), T(1));
    const std::int64_t end = std::min(m, (block + 1) * block_effects);
    for (std::int64_t j = block * block_effects; j < end; ++j) {
      const double* slope = slope_.column(j);
      std::transform(slope, slope + inputs, pull.begin(),
                     [&](double s) { return static_cast<T>(multiplier * s + l2); });
      if (penalty.factor) // the weights of what is excluded are 0
        std::transform(penalty.factor->column(j), penalty.factor->column(j) + inputs,
                       factor.begin(), [](T f) { return std::isinf(f) ? T(0) : f; });
      for (std::int64_t u = j * channels; u < (j + 1) * channels; ++u)
        add_penalty(parameters + u * inputs, pull.data(), factor.data(), inputs,
                    gradient + u * inputs, sums);
    }
    absolute_[static_cast<std::size_t>(block)] = sums.absolute;
    squares_[static_cast<std::size_t>(block)] = sums.squares;
  });
  const double absolute = std::accumulate(absolute_.begin(), absolute_.end(), 0.0);
  double squares = std::accumulate(squares_.begin(), squares_.end(), 0.0);
  for (std::int64_t p = model_.edge_parameters(); p < model_.shape().ridged; ++p) {
    gradient[p] += static_cast<T>(l2) * parameters[p];
    squares += static_cast<double>(parameters[p]) * parameters[p];
  }

  return penalty.lambda * absolute + 0.5 * l2 * squares + 0.5 * penalty.rho * h_ * h_ +
         penalty.alpha * h_;
}

// Norms over the channels; the weights themselves where there is one channel only.
template <class T>
Matrix adjacency(const Shape& shape, const T* parameters) {
  const std::int64_t inputs = shape.inputs, channels = shape.channels;
  Matrix a(inputs, shape.features);
  for (std::int64_t j = 0; j < a.cols(); ++j)
    for (std::int64_t i = 0; i < inputs; ++i) {
      const T* w = parameters + j * channels * inputs + i;
      double squares = 0;
      for (std::int64_t k = 0; k < channels; ++k) {
        const double value = w[k * inputs];
        squares += value * value;
      }
      a(i, j) = channels == 1 ? static_cast<double>(*w) : std::sqrt(squares);
    }
  return a;
}

// Zeros are left out.
SparseMatrix unpacked(const Matrix& packed, const Causes& causes) {
  if (causes.empty()) return to_sparse(packed);
  SparseMatrix full;
  full.rows = full.cols = packed.cols();
  full.offsets.push_back(0);
  for (std::int64_t j = 0; j < packed.cols(); ++j) {
    for (std::int64_t c = 0; c < packed.rows(); ++c)
      if (packed(c, j) != 0) {
        full.indices.push_back(static_cast<std::int32_t>(causes(c, j)));
        full.values.push_back(packed(c, j));
      }
    full.offsets.push_back(std::ssize(full.values));
  }
  return full;
}

} // namespace

template <class T>
std::unique_ptr<EdgeTerms<T>> EdgeWeightModel<T>::edge_terms(Constraint form) const {
  return std::make_unique<EdgeWeightTerms<T>>(*this, form);
}

template <class T>
LearnedEdges EdgeWeightModel<T>::edges(const Table& table, const T* parameters, Run& run) {
  LearnedEdges learned;
  learned.weights = unpacked(adjacency(shape(), parameters), this->causes());
  Matrix sign(shape().inputs, shape().features);
  edge_signs(table, parameters, sign, run);
  learned.sign = unpacked(sign, this->causes());
  return learned;
}

template std::unique_ptr<EdgeTerms<float>> EdgeWeightModel<float>::edge_terms(Constraint) const;
template std::unique_ptr<EdgeTerms<double>> EdgeWeightModel<double>::edge_terms(Constraint) const;
template LearnedEdges EdgeWeightModel<float>::edges(const Table&, const float*, Run&);
template LearnedEdges EdgeWeightModel<double>::edges(const Table&, const double*, Run&);

} // namespace cape::sem
