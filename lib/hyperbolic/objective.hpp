// The objective over all pairs of nodes. Points are columns.
#pragma once
#include "hyperbolic/radial.hpp"

namespace cape {

/// The objective of a graph, for evaluation at many points. Its matrices are symmetric; of each the
/// upper triangle is kept, in panels of columns (rows 0 .. last column), which are also the pieces
/// that threads work on.
class EmbeddingObjective {
public:
  /// Weights in (0, 1], options without automatic values; distances: undirected_distances() of the
  /// graph (soft objective; else not looked at).
  EmbeddingObjective(const Digraph& graph, const Matrix& distances, const EmbedOptions& options,
                     Run& run);
  /// The terms at points ((d+1) x M), and into gradient, if not null, the Euclidean gradient.
  EmbedEpoch operator()(const Matrix& points, Matrix* gradient, Run& run);

private:
  struct Panel {
    std::int64_t first = 0; ///< column
    std::int64_t cols = 0;
    std::int64_t rows = 0;   ///< first + cols
    std::int64_t offset = 0; ///< of its first element
  };
  void set_soft_targets(const Matrix& distances, Run& run);
  void set_positives(const Digraph& graph, Run& run);
  void pair_terms(const Matrix& points, Run& run);
  double soft_term();
  double sparse_term(const Matrix& points, Run& run);
  void pair_gradient(const Matrix& points, Matrix& gradient, Run& run);
  std::int64_t slot(std::int64_t i, std::int64_t j) const; ///< of element (i, j), i <= j

  std::int64_t nodes_ = 0;
  EmbedOptions options_;
  RadialTerms radial_;
  std::vector<Edge> positives_; ///< anchor -> positive, sorted by anchor; empty for soft
  std::vector<Panel> panels_;
  std::vector<double> targets_;  ///< soft: panels of T_mn + T_nm; else a column of zeros
  std::vector<double> pull_;     ///< panels: attraction / sinh d
  std::vector<double> push_;     ///< panels: exp(-d/tau) / sinh d
  std::vector<double> row_sums_; ///< M x panels: a panel's part of sum_n exp(-d_mn/tau)
  std::vector<double> mass_;     ///< sum_n exp(-d_mn/tau), n != m
  std::vector<double> share_;    ///< factor of row m's repulsions; 0: node m is no anchor
  std::vector<double> pulled_;   ///< per panel: sum of targets times distances
  std::vector<char> anchor_;     ///< soft: node m has targets
};

} // namespace cape
