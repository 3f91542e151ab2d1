module;
#include <cmath>
#include <cstdint>
#include <memory>
#include <new>
#include <string_view>
#include <typeinfo>
#include <utility>
module cape.dag;

namespace cape::sem {

Model::~Model() = default;

std::unique_ptr<Model> make_model(std::int64_t features, Causes causes, const DagOptions& options) {
  // More than the parameters of any model: their number fits into 64 bits if this does.
  constexpr std::int64_t beside_weights = 1024;
  const std::int64_t channels = options.sem == Sem::mlp ? options.hidden : 1;
  const std::string_view what = "the parameters of the model";
  const std::int64_t inputs = causes.empty() ? features : causes.rows();
  checked_size(checked_size(features, channels, what) + beside_weights, inputs + beside_weights,
               what);
  switch (options.sem) {
  case Sem::linear: return make_linear(features, options);
  case Sem::paper: return make_paper(features, options);
  case Sem::literal: return make_literal(features, options);
  case Sem::mlp: break;
  }
  return make_mlp(features, std::move(causes), options);
}

double column_score(double* z, std::int64_t rows, const double* weight, bool unequal_variances) {
  const double n = static_cast<double>(rows);
  double squares = 0, count = n; // a column counts by the weight of its rows
  if (weight) {
    count = 0;
    double sum = 0;
    for (std::int64_t r = 0; r < rows; ++r) {
      count += weight[r];
      sum += weight[r] * z[r];
    }
    const double mean = count > 0 ? sum / count : 0;
    for (std::int64_t r = 0; r < rows; ++r) {
      const double d = z[r] - mean;
      z[r] = weight[r] * d;
      squares += z[r] * d;
    }
  } else {
    for (std::int64_t r = 0; r < rows; ++r) squares += z[r] * z[r];
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
  for (std::int64_t r = 0; r < rows; ++r) z[r] *= scale;
  return score;
}

} // namespace cape::sem
