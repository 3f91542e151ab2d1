// The objective of Step I (paper, eq_lossdag).
#pragma once
#include "dag/model.hpp"

namespace cape::sem {

/// The value of the objective.
struct Loss {
  double total = 0;
  Score score;
  double h = 0;
};

/// The objective, with what a step needs allocated once.
template <class T>
class Objective {
public:
  Objective(Model<T>& model, Constraint form) : model_(model), terms_(model.edge_terms(form)) {}
  /// h of the parameters. It and its gradient hold for the calls below until this is called again.
  double constraint(const T* parameters, Run& run) {
    return h_ = terms_->constraint(parameters, run);
  }
  /// The whole loss, and the gradient of its smooth part: of all terms but the L1 term.
  Loss operator()(const Batch<T>& batch, const T* parameters, const Penalty<T>& penalty,
                  T* gradient, Run& run);
  /// How the L1 term takes the parameters, without the penalty's factors.
  Shrinkage shrinkage(const T* parameters) const { return terms_->shrinkage(parameters); }

private:
  Model<T>& model_;
  std::unique_ptr<EdgeTerms<T>> terms_;
  double h_ = 0;
};

} // namespace cape::sem
