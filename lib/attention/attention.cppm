// cape.attention: exact multi-head attention with rotary positions,
// O = softmax(R(phi) Q (R(phi) K)' * scale + mask) V, forward and backward, in double and float.
module;
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>
export module cape.attention;
import cape.core;

export namespace cape {

/// The tensors of one call, all row-major. A tensor of queries is batch x q_length x
/// heads*head_dim: element (b, i, h, c) at [(b*q_length + i) * q_stride + h*head_dim + c]; keys,
/// values and the output likewise.
template <class T>
struct AttentionInput {
  std::int64_t batch = 1;
  std::int64_t heads = 1;
  std::int64_t q_length = 0;
  std::int64_t k_length = 0;
  std::int64_t head_dim = 0; ///< even when there are angles
  const T* q = nullptr;
  const T* k = nullptr;
  const T* v = nullptr;
  /// Angles of the queries and keys, or null for plain attention (both or neither). Shared by the
  /// batch. angle_heads = 1: length x head_dim/2, the same for every head; angle_heads = heads:
  /// length x heads*head_dim/2, head h takes its own head_dim/2 columns.
  const T* q_angles = nullptr;
  const T* k_angles = nullptr;
  std::int64_t angle_heads = 1;
  /// batch x k_length, 0 = this key is padding; null: no key is. A row whose keys are all padding
  /// gives 0 and gradient 0; what a padded key or value holds (NaN too) has no influence.
  const std::uint8_t* key_mask = nullptr;
  T scale = std::numeric_limits<T>::quiet_NaN(); ///< NaN: 1/sqrt(head_dim)
  /// Added to the scaled scores, or null: bias_heads x q_length x k_length, shared by the batch;
  /// bias_heads is 1 (shared by the heads too) or heads. Minus infinity: this query does not see
  /// this key.
  const T* bias = nullptr;
  std::int64_t bias_heads = 1;
  /// Elements from one row of a tensor (a token with all its heads) to the next, at least
  /// heads*head_dim; 0: no gaps. out_stride is that of the output and of its gradient. Other
  /// gradients have no gaps.
  std::int64_t q_stride = 0, k_stride = 0, v_stride = 0, out_stride = 0;
};

/// Where gradients go, each of its tensor's shape; what was there is overwritten. A null one is not
/// computed. The gradients of angles need those of q and k.
template <class T>
struct AttentionGradient {
  T* q = nullptr;
  T* k = nullptr;
  T* v = nullptr;
  T* q_angles = nullptr;
  T* k_angles = nullptr;
  /// Summed over the batch, and over the heads that share the bias, in a fixed order; only heads
  /// that do not share it are computed in parallel.
  T* bias = nullptr;
};

/// Bytes that the calls below allocate beyond their arguments, with angles, at most.
struct AttentionWorkspace {
  double forward = 0;  ///< attention_forward() and attention_scores()
  double backward = 0; ///< attention_backward()
};
/// From the sizes alone: pointers are not looked at. invalid_argument for a size out of range.
/// O(1).
template <class T>
AttentionWorkspace attention_workspace(const AttentionInput<T>& in, int threads);

// The next three functions: the same bits for any number of threads; memory for a rotated copy of
// the keys and values and for tiles of scores, never for q_length x k_length of them. Errors:
// invalid_argument for a null pointer, a size out of range, or a value (outside padding) that is
// not finite or so large that a score could overflow; dim_mismatch for an odd head_dim with angles
// or another angle_heads or bias_heads than 1 and heads; out_of_memory, before anything is
// allocated, if their workspace is more than the machine has. O(batch heads q_length k_length
// head_dim).

/// out: batch x q_length x heads*head_dim (paper, eq_inject to eq attention, over the softmax of
/// scaled scores). log_sum_exp of the scaled scores: batch x heads x q_length, or null; -inf for a
/// row without keys.
template <class T>
void attention_forward(const AttentionInput<T>& in, T* out, std::type_identity_t<T>* log_sum_exp,
                       Run& run);

/// Gradients of sum(d_out * out). out and log_sum_exp are those of attention_forward for the same
/// input, else Error(invalid_argument); the same if a gradient overflows. Parallel over batch and
/// heads.
template <class T>
void attention_backward(const AttentionInput<T>& in, const T* out, const T* log_sum_exp,
                        const T* d_out, const AttentionGradient<T>& gradient, Run& run);

/// The scaled scores without softmax: batch x heads x q_length x k_length; padded keys get -inf.
/// v is not read.
template <class T>
void attention_scores(const AttentionInput<T>& in, T* scores, Run& run);

/// Directions for linear_attention_forward(): features x head_dim, row-major. Orthogonal in blocks
/// of head_dim rows, their lengths those of Gaussian vectors (K. Choromanski et al., Rethinking
/// attention with Performers, 2021: FAVOR+). The same for the same seed and draw. features and
/// head_dim at least 1, else Error(invalid_argument). O(features head_dim^2).
template <class T>
std::vector<T> attention_directions(std::int64_t features, std::int64_t head_dim,
                                    std::uint64_t draw, Run& run);

/// Attention in time and memory that are linear in the lengths, with positive features
/// f(x)_t = exp(w_t.x - |x|^2/2) / sqrt(features) of x = sqrt(scale) q and sqrt(scale) k, w_t the
/// directions, so that f(q).f(k) is exp(scale q.k) on average:
///   out_m = sum_n (R_m f(q_m)).(R_n f(k_n)) v_n / sum_n f(q_m).f(k_n)
/// (J. Su et al., RoFormer, 2021, eq. 19: positions turn the features, and only in the numerator).
/// Pair t of features is turned by angle t modulo head_dim/2. With growing features out tends to
///   sum_n exp(s_mn) c_mn v_n / sum_n exp(s_mn),
/// s_mn the scaled score without positions and c_mn the mean of cos(phi_mt - phi_nt) over t:
/// without angles to attention_forward(). Errors as there, and invalid_argument for a scale that is
/// not positive, features below 1, or odd with angles; unsupported for a bias. O(batch heads
/// (q_length + k_length) features head_dim).
template <class T>
void linear_attention_forward(const AttentionInput<T>& in, std::int64_t features,
                              const T* directions, T* out, Run& run);

/// Gradients of sum(d_out * out) for fixed directions. Errors as linear_attention_forward() and
/// attention_backward().
template <class T>
void linear_attention_backward(const AttentionInput<T>& in, std::int64_t features,
                               const T* directions, const T* d_out,
                               const AttentionGradient<T>& gradient, Run& run);

/// Linear attention as the first code of Performers and scBERT have it, for their models. With x as
/// above features are f(x)_t = exp(w_t.x - |x|^2/2 - largest) + 1e-4, where `largest` is the
/// largest w_t.x of a query, and of keys that of ALL keys, heads and batch elements of the call:
/// through it and the 1e-4 every row depends on the rest of the batch. Other programs may differ in
/// that; where a model is new, linear_attention_forward() is right. Errors as there; unsupported
/// for angles (turn q and k before) and key_mask too. Memory for 4 (q_length + k_length) features
/// by thread.
template <class T>
void performer_attention_forward(const AttentionInput<T>& in, std::int64_t features,
                                 const T* directions, T* out, Run& run);

/// Gradients of sum(d_out * out) for fixed directions, also through `largest`.
template <class T>
void performer_attention_backward(const AttentionInput<T>& in, std::int64_t features,
                                  const T* directions, const T* d_out,
                                  const AttentionGradient<T>& gradient, Run& run);

extern template void attention_forward<double>(const AttentionInput<double>&, double*, double*,
                                               Run&);
extern template void attention_forward<float>(const AttentionInput<float>&, float*, float*, Run&);
extern template void attention_backward<double>(const AttentionInput<double>&, const double*,
                                                const double*, const double*,
                                                const AttentionGradient<double>&, Run&);
extern template void attention_backward<float>(const AttentionInput<float>&, const float*,
                                               const float*, const float*,
                                               const AttentionGradient<float>&, Run&);
extern template void attention_scores<double>(const AttentionInput<double>&, double*, Run&);
extern template void attention_scores<float>(const AttentionInput<float>&, float*, Run&);
extern template AttentionWorkspace attention_workspace<double>(const AttentionInput<double>&, int);
extern template AttentionWorkspace attention_workspace<float>(const AttentionInput<float>&, int);
extern template std::vector<double> attention_directions<double>(std::int64_t, std::int64_t,
                                                                 std::uint64_t, Run&);
extern template std::vector<float> attention_directions<float>(std::int64_t, std::int64_t,
                                                               std::uint64_t, Run&);
extern template void linear_attention_forward<double>(const AttentionInput<double>&, std::int64_t,
                                                      const double*, double*, Run&);
extern template void linear_attention_forward<float>(const AttentionInput<float>&, std::int64_t,
                                                     const float*, float*, Run&);
extern template void linear_attention_backward<double>(const AttentionInput<double>&, std::int64_t,
                                                       const double*, const double*,
                                                       const AttentionGradient<double>&, Run&);
extern template void linear_attention_backward<float>(const AttentionInput<float>&, std::int64_t,
                                                      const float*, const float*,
                                                      const AttentionGradient<float>&, Run&);

extern template void performer_attention_forward<double>(const AttentionInput<double>&,
                                                         std::int64_t, const double*, double*,
                                                         Run&);
extern template void performer_attention_forward<float>(const AttentionInput<float>&, std::int64_t,
                                                        const float*, float*, Run&);
extern template void performer_attention_backward<double>(const AttentionInput<double>&,
                                                          std::int64_t, const double*,
                                                          const double*,
                                                          const AttentionGradient<double>&, Run&);
extern template void performer_attention_backward<float>(const AttentionInput<float>&, std::int64_t,
                                                         const float*, const float*,
                                                         const AttentionGradient<float>&, Run&);

} // namespace cape
