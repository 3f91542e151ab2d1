module;
#include <cmath>
#include <cstdint>
#include <memory>
#include <new>
#include <string_view>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <vector>
module cape.dag;

namespace cape::sem {

namespace {

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

template <class T>
Fit train_in(const Table& table, const Causes& causes, double lambda, const Matrix& factor,
             const std::vector<Edge>& start, const DagOptions& options, Run& run,
             Checkpoint* checkpoint) {
  const std::unique_ptr<Model<T>> model = make_model<T>(table.features(), causes, options);
  Solution<T> solution =
      augmented_lagrangian(*model, table, lambda, factor, start, options, run, checkpoint);
  return {model->edges(table, solution.parameters.data(), run), std::move(solution.history),
          solution.h};
}

} // namespace

template <class T>
Model<T>::~Model() = default;

template <class T>
LearnedEdges EdgeWeightModel<T>::edges(const Table& table, const T* parameters, Run& run) {
  LearnedEdges learned;
  learned.weights = unpacked(adjacency(shape(), parameters), this->causes());
  Matrix sign(shape().inputs, shape().features);
  edge_signs(table, parameters, sign, run);
  learned.sign = unpacked(sign, this->causes());
  return learned;
}

bool in_float(const DagOptions& options) {
  if (options.precision == Precision::float32 && options.sem != Sem::mlp)
    throw Error(Status::invalid_argument,
                "dag.precision is float; only dag.sem mlp can be trained in it");
  return options.sem == Sem::mlp && options.precision != Precision::float64;
}

template <class T>
std::unique_ptr<Model<T>> make_model(std::int64_t features, Causes causes,
                                     const DagOptions& options) {
  // More than the parameters of any model: their number fits into 64 bits if this does.
  constexpr std::int64_t beside_weights = 1024;
  const std::int64_t channels = options.sem == Sem::mlp ? options.hidden : 1;
  const std::string_view what = "the parameters of the model";
  const std::int64_t inputs = causes.empty() ? features : causes.rows();
  checked_size(checked_size(features, channels, what) + beside_weights, inputs + beside_weights,
               what);
  if constexpr (std::is_same_v<T, double>) switch (options.sem) {
    case Sem::linear:
      return options.rank > 0 ? make_low_rank(features, options) : make_linear(features, options);
    case Sem::paper: return make_paper(features, options);
    case Sem::literal: return make_literal(features, options);
    case Sem::mlp: break;
    }
  return make_mlp<T>(features, std::move(causes), options);
}

Fit train(const Table& table, const Causes& causes, double lambda, const Matrix& factor,
          const std::vector<Edge>& start, const DagOptions& options, Run& run,
          Checkpoint* checkpoint) {
  const auto learn = in_float(options) ? train_in<float> : train_in<double>;
  return learn(table, causes, lambda, factor, start, options, run, checkpoint);
}

template <class T>
double column_score(T* z, std::int64_t rows, const T* weight, bool unequal_variances) {
  const double n = static_cast<double>(rows);
  double squares = 0, count = n; // a column counts by the weight of its rows
  if (weight) {
    count = 0;
    double sum = 0;
    for (std::int64_t r = 0; r < rows; ++r) {
      count += weight[r];
      sum += weight[r] * z[r];
    }
    const T mean = static_cast<T>(count > 0 ? sum / count : 0);
    for (std::int64_t r = 0; r < rows; ++r) {
      const T d = z[r] - mean;
      z[r] = weight[r] * d;
      squares += z[r] * d;
    }
  } else {
    constexpr std::int64_t lanes = 8; // parts of the sum, which is then not a chain of additions
    double part[lanes] = {};
    for (std::int64_t r = 0; r < rows; ++r) part[r % lanes] += static_cast<double>(z[r]) * z[r];
    for (const double p : part) squares += p;
  }
  double score, scale;
  if (unequal_variances) {
    constexpr double floor = 1e-12; // an effect that is exactly explained must not reach log 0
    if (count == 0) return 0;
    const double variance = squares / count + floor;
    score = 0.5 * count / n * std::log(variance);
    scale = 1 / (n * variance);
  } else {
    score = 0.5 * squares / n;
    scale = 1 / n;
  }
  for (std::int64_t r = 0; r < rows; ++r) z[r] *= static_cast<T>(scale);
  return score;
}

template class Model<float>;
template class Model<double>;
template LearnedEdges EdgeWeightModel<float>::edges(const Table&, const float*, Run&);
template LearnedEdges EdgeWeightModel<double>::edges(const Table&, const double*, Run&);
template std::unique_ptr<Model<float>> make_model(std::int64_t, Causes, const DagOptions&);
template std::unique_ptr<Model<double>> make_model(std::int64_t, Causes, const DagOptions&);
template double column_score(float*, std::int64_t, const float*, bool);
template double column_score(double*, std::int64_t, const double*, bool);

} // namespace cape::sem
