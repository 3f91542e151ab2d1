// Models with one weight or more for every edge.
#pragma once
#include "dag/model.hpp"

namespace cape::sem {

/// A model whose parameters start with the edge weights W: channel k of the edge from input c of
/// effect j is entry (j * channels + k) * inputs + c, so that the weights of one effect are
/// adjacent columns of an inputs x (features * channels) matrix. Input c of effect j is column
/// causes(c, j), or column c if all columns are inputs; self weights are then 0 and so is their
/// gradient. The strength of an edge is S[c,j] = sum_k W[c,j,k]^2, which is what the constraint
/// sees.
template <class T>
class EdgeWeightModel : public Model<T> {
public:
  using Model<T>::Model, Model<T>::shape;
  std::int64_t edge_parameters() const noexcept {
    return shape().inputs * shape().features * shape().channels;
  }
  void set_edge(std::int64_t c, std::int64_t j, double weight, T* parameters) const override {
    parameters[j * shape().inputs + c] = static_cast<T>(weight);
  }
  std::unique_ptr<EdgeTerms<T>> edge_terms(Constraint form) const final;
  LearnedEdges edges(const Table& table, const T* parameters, Run& run) final;
  /// Into sign (inputs x features): -1, 0 or 1, how the effect moves with the cause over the rows.
  virtual void edge_signs(const Table& table, const T* parameters, Matrix& sign, Run& run) = 0;
};

} // namespace cape::sem
