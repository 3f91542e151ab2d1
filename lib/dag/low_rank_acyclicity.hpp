// The acyclicity measure of a graph of low rank.
#pragma once
#include "dag/acyclicity.hpp"

namespace cape::sem {

// h = tr exp(A o A) - M for A = UV'. With P and Q the products of pairs, A o A = PQ', which has the
// eigenvalues of Q'P and zeros beside: h is tr exp(Q'P) - R, dh/dP = Q exp(Q'P)' and dh/dQ =
// P exp(Q'P). Where there are no more rows than pairs, A itself is smaller, and h more exact.
class LowRankAcyclicity {
public:
  LowRankAcyclicity(std::int64_t features, std::int64_t rank);

  /// h.
  double operator()(const arma::mat& u, const arma::mat& v, Run& run);
  /// Adds multiplier times its gradients with respect to U and V, by dh/dP and dh/dQ of the last
  /// call of the above, whose factors may differ from these: the pull on a factor then still falls
  /// with the factor, as that on an edge weight does with the weight, and does not overshoot.
  void add_slopes(const arma::mat& u, const arma::mat& v, double multiplier, arma::mat& u_slope,
                  arma::mat& v_slope, Run& run) const;

private:
  double of_edges(const arma::mat& u, const arma::mat& v, Run& run);
  double of_pairs(const arma::mat& u, const arma::mat& v, Run& run);
  void scale_slope(const arma::mat& u, const arma::mat& v);

  std::int64_t size_;
  bool by_pairs_;
  AcyclicityMeasure measure_;
  Matrix strength_, slope_;     ///< A o A or Q'P, and exp of that, transposed
  arma::mat p_slope_, q_slope_; ///< dh/dP, dh/dQ
};

} // namespace cape::sem
