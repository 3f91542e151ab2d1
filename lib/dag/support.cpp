module;
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <new>
#include <span>
#include <typeinfo>
#include <variant>
#include <vector>
module cape.dag;
#include "dag/stability_lasso.hpp"
#include "dag/support.hpp"

namespace cape::sem {
namespace {

constexpr std::int64_t most_features = 1000; ///< for the lasso, which takes seconds there
constexpr double rows_per_feature = 5;       ///< up to these it counts in full

// Root of the mean square over all pairs, or 1 if that is 0. No square overflows or vanishes.
double typical_size(std::span<const double> values, double pairs) {
  double largest = 0, squares = 0;
  for (const double v : values) largest = std::max(largest, std::fabs(v));
  if (largest == 0) return 1;
  for (const double v : values) squares += (v / largest) * (v / largest);
  return largest * std::sqrt(squares / pairs);
}

} // namespace

SparseMatrix support_of(const SparseMatrix& weights, const Table& table, const EdgeFactors& known,
                        Run& run) {
  const double m = static_cast<double>(table.features()), n = static_cast<double>(table.rows());
  const double pairs = m * (m - 1), by_weight = typical_size(weights.values, pairs);
  if (table.features() > most_features) {
    SparseMatrix support = weights;
    for (double& v : support.values) v = std::fabs(v) / by_weight;
    return support;
  }
  Matrix support = stability_scores(table, known, run);
  const std::span<double> values(support.data(), static_cast<std::size_t>(support.size()));
  const double by_score = std::min(1.0, rows_per_feature * m / n) / typical_size(values, pairs);
  for (double& v : values) v *= by_score;
  const Matrix weight = to_matrix(weights);
  for (std::int64_t e = 0; e < weight.size(); ++e)
    values[static_cast<std::size_t>(e)] += std::fabs(weight.data()[e]) / by_weight;
  return to_sparse(support);
}

double support_memory(std::int64_t rows, std::int64_t features) {
  if (features > most_features) return 0;
  const double n = static_cast<double>(ranked_rows(rows)), m = static_cast<double>(features);
  return 8 * (1.5 * n * m + 4 * m * m); // the rows, half of them; correlations, scores, weights
}

double support_operations(std::int64_t rows, std::int64_t features) {
  if (features > most_features) return 0;
  const double n = static_cast<double>(ranked_rows(rows)), m = static_cast<double>(features);
  return 200 * n * m * m; // a product of all columns with all, of each half
}

} // namespace cape::sem
