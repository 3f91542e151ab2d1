// The acyclicity measures that training can use.
#pragma once
#include "dag/causes.hpp"

namespace cape::sem {

/// How far a graph is from having no cycle: h(S) of the strengths S >= 0 of its edges, smooth, 0
/// without cycles and above with one. Writes dh/dS into gradient, which has the size of s, and
/// gives h; outside of the domain h is +inf, and the gradient is not written. Keeps its workspace.
using AcyclicityMeasure = std::function<double(const Matrix& s, Matrix& gradient, Run& run)>;

/// The measure of this form, computed in T where that is possible. Entry (c, j) of S belongs to the
/// edge causes(c, j) -> j, or c -> j if causes, which outlive the measure, are empty.
template <class T>
AcyclicityMeasure make_acyclicity(Constraint form, const Causes& causes);

// The measures, each in the file of its name.

/// tr exp(S) - M, and exp(S)^T. O(M^3).
template <class T>
AcyclicityMeasure make_exponential();
/// The same on the sparse pattern that causes are, which are not empty. Where an entry of S is 0,
/// or the edge lies on no cycle, the gradient is written as 0: the former's is multiplied by the
/// weight, the latter's is 0. O(K nonzeros) per term of the series for K nodes that a cycle joins.
template <class T>
AcyclicityMeasure make_sparse_exponential(const Causes& causes);
/// -log det(I - S), for a spectral radius below 1, and (I - S)^-T. O(M^3).
AcyclicityMeasure make_log_determinant();

} // namespace cape::sem
