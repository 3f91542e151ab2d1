// cape.theory: what the paper proves about its attention scores (sec. "Theoretical Properties"), as
// functions: the envelope between which scores lie, how it narrows with causal distance and
// generality, and what noise in the positions does. Which of the statements hold, and in which
// domain, is in docs/method.md, section 5. Angles and their standard deviations are in radians:
// noise of standard deviation s in the ball is scale * s here.
module;
#include <cstdint>
#include <numbers>
#include <span>
#include <vector>
export module cape.theory;
import cape.core;

export namespace cape {

/// alpha_t and beta_t of a query and a key (paper, after eq_A_cos_sin): the score is
/// sum_t alpha_t cos(x_t) + beta_t sin(x_t), x = phi_n - phi_m.
struct ScoreTerms {
  std::vector<double> alpha, beta;
};
/// q and k of the same even length D, D/2 terms. Error(dim_mismatch) for other lengths or D = 0,
/// Error(invalid_argument) for what is not finite. O(D).
ScoreTerms score_terms(std::span<const double> q, std::span<const double> k);

/// A+ as a function of the length x of phi_m - phi_n: amplitude cos(x / pairs) + offset; A- = -A+
/// (paper, eq_upperA, eq_lowerA). amplitude = d max |alpha_t|, offset = sum |beta_t|, pairs = d.
struct ScoreEnvelope {
  double amplitude = 0;
  double offset = 0;
  std::int64_t pairs = 0;
};
ScoreEnvelope score_envelope(std::span<const double> q, std::span<const double> k);

/// The score q' R(phi_n - phi_m) k of one pair (paper, eq attention). q, k of length D, angles D/2,
/// else Error(dim_mismatch); Error(invalid_argument) for what is not finite, the result too. O(D).
double rotary_score(std::span<const double> q, std::span<const double> k,
                    std::span<const double> phi_m, std::span<const double> phi_n);

/// A+ and A- = -A+ (paper, eq_upperA, eq_lowerA).
struct ScoreBounds {
  double upper;
  double lower;
};
/// The bounds of rotary_score() of the same arguments, between which it lies when no angle is
/// beyond pi/4 in magnitude (for larger angles the paper proves nothing). Errors as above. O(D).
ScoreBounds rotary_bounds(std::span<const double> q, std::span<const double> k,
                          std::span<const double> phi_m, std::span<const double> phi_n);

/// Two points of the Poincare ball, as far as A+ depends on them.
struct BallPair {
  double distance = 0; ///< d_p of the two
  double norm_m = 0;   ///< |e_m| = 1 - psi_m
  double norm_n = 0;
};
/// |e_m - e_n| of such a pair (paper, eq_inverse). Error(invalid_argument) unless both norms are in
/// [0, 1) and the distance is one that points of these norms can have: within |r_m - r_n| and
/// r_m + r_n, r = 2 atanh |e|. The functions below check their pair alike. O(1), as are they.
double ball_gap(const BallPair& pair);

/// A+ at a pair. scale, the angle of a ball coordinate of 1, must be in (0, pi/4]: beyond, the
/// paper proves nothing.
double envelope_at(const ScoreEnvelope& envelope, const BallPair& pair,
                   double scale = std::numbers::pi / 4);
/// dA+ / d d_p at fixed norms (paper, eq_partialA; prop_distance): never positive.
double envelope_slope_distance(const ScoreEnvelope& envelope, const BallPair& pair,
                               double scale = std::numbers::pi / 4);
/// dA+ / d psi_m at fixed d_p and |e_n| (paper, after eq_d_e; prop_specificity): never positive.
double envelope_slope_generality(const ScoreEnvelope& envelope, const BallPair& pair,
                                 double scale = std::numbers::pi / 4);
/// a: the limit of A+ at a fixed distance >= 0 as psi_m -> 1, which takes |e_n| to tanh(d_p / 2)
/// (paper, remark_specificity and the corollary of prop_specificity).
double envelope_limit(const ScoreEnvelope& envelope, double distance,
                      double scale = std::numbers::pi / 4);

/// The mean over positions of the same score for two views of one feature less that of two
/// different ones (paper, eq_ED; prop_distinguish), exactly: with C = Cov(q, k), D x D, and
/// x = phi_n - phi_m, sum_t (C_11 + C_22) cos x_t + (C_21 - C_12) sin x_t over the 2 x 2 blocks of
/// C on the diagonal. The paper leaves the sines out, without which the sign is not certain.
/// Error(dim_mismatch) if sizes do not fit, Error(invalid_argument) for what is not finite. O(D).
double expected_margin(const MatrixView& covariance, std::span<const double> phi_m,
                       std::span<const double> phi_n);

/// E[A'] under Gaussian noise of the angles with mean zero (or any mean that both share) and
/// standard deviations sd_m, sd_n >= 0, one per pair (paper, eq_EnoiseA; prop_unbias).
/// Errors as score_terms(). O(D).
double expected_score(std::span<const double> q, std::span<const double> k,
                      std::span<const double> phi_m, std::span<const double> phi_n,
                      std::span<const double> sd_m, std::span<const double> sd_n);
/// Acc = exp(-(sd_m^2 + sd_n^2) / 2), the factor between E[A'] and A (paper, eq_Acc).
double approximation_accuracy(double sd_m, double sd_n);

/// xi_N (paper, "average attention bias"; prop_asymptotic): the mean over N pairs of noise, of
/// standard deviation sd >= 0, of the disturbed score less the true one. q and k have one row, or N
/// (a row for every observation). Draws from the stream of rng. O(N D).
double average_bias(const MatrixView& q, const MatrixView& k, std::span<const double> phi_m,
                    std::span<const double> phi_n, double sd, std::int64_t n, Rng& rng);
/// S: the mean of (|q| |k|)^2 over the rows of q and k.
double mean_square_product(const MatrixView& q, const MatrixView& k);
/// 2 exp(-epsilon^2 N / (8 S)), at most 1: the probability that xi_N is epsilon or more from its
/// mean (paper, eq_xiHoeffding). epsilon >= 0, n >= 1, second_moment >= 0, else
/// Error(invalid_argument).
double hoeffding_bound(double epsilon, std::int64_t n, double second_moment);

} // namespace cape
