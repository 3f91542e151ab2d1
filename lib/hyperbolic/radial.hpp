// The terms of the objective in the radii. Points are columns.
#pragma once

namespace cape {

/// The terms in the radii: ranking along edges and levels (soft objective), and the PageRank term.
class RadialTerms {
public:
  RadialTerms(const Digraph& graph, const EmbedOptions& options, Run& run);
  /// Adds to terms.ranking and .generality, and to the gradient, if not null.
  void operator()(const Matrix& points, EmbedEpoch& terms, Matrix* gradient, Run& run) const;

private:
  EmbedOptions options_;
  std::vector<Edge> edges_;
  std::vector<double> pagerank_;
  double margin_ = 0, temperature_ = 0; ///< of the ranking
  std::vector<double> levels_;          ///< what radii less their mean are drawn to
};

} // namespace cape
