// Attention with rotary positions. Tensors come and go in the core's row-major
// form: the R array of D x L x batch has the memory of batch x L x D.
#include "glue.hpp"

using namespace capeomics;

namespace {

const double *or_null(const Rcpp::Nullable<Rcpp::NumericMatrix> &x) {
  return x.isNull() ? nullptr : REAL(x.get());
}

} // namespace

// shape: batch, heads, q_length, k_length, head_dim, angle_heads, bias_heads,
// and the number of random features or 0 for exact attention. Without a value:
// the scores, k_length x q_length x heads x batch.
// [[Rcpp::export(rng = false)]]
Rcpp::NumericVector
core_attend(const Rcpp::NumericVector &q, const Rcpp::NumericVector &k,
            const Rcpp::Nullable<Rcpp::NumericVector> &v,
            const Rcpp::Nullable<Rcpp::NumericMatrix> &q_angles,
            const Rcpp::Nullable<Rcpp::NumericMatrix> &k_angles,
            const Rcpp::Nullable<Rcpp::LogicalMatrix> &mask,
            const Rcpp::Nullable<Rcpp::NumericVector> &bias,
            const Rcpp::NumericVector &shape, double scale,
            const Rcpp::CharacterVector &settings) {
  const Options options(settings, R_NilValue);
  const auto size = [&](int i) { return static_cast<int64_t>(shape[i]); };
  cape_attention_shape s =
      CAPE_ATTENTION_SHAPE(size(0), size(1), size(2), size(3), size(4));
  s.angle_heads = size(5);
  s.bias_heads = size(6);
  s.scale = scale;
  if (bias.isNotNull())
    s.bias = REAL(bias.get());
  const int64_t features = size(7);
  std::vector<uint8_t> keep;
  if (mask.isNotNull()) {
    const Rcpp::LogicalMatrix m(mask.get());
    keep.assign(m.begin(), m.end());
  }
  const uint8_t *key_mask = mask.isNull() ? nullptr : keep.data();
  if (v.isNotNull()) {
    Rcpp::NumericVector out = allocate<REALSXP>(q.size());
    if (features > 0)
      check(cape_linear_attention(out.begin(), &s, features, 0, q.begin(),
                                  k.begin(), REAL(v.get()), or_null(q_angles),
                                  or_null(k_angles), key_mask, options.get()));
    else
      check(cape_attention(out.begin(), nullptr, &s, q.begin(), k.begin(),
                           REAL(v.get()), or_null(q_angles), or_null(k_angles),
                           key_mask, options.get()));
    return out;
  }
  Rcpp::NumericVector out = allocate<REALSXP>(s.batch * s.heads * s.q_length * s.k_length);
  check(cape_attention_scores(out.begin(), &s, q.begin(), k.begin(),
                              or_null(q_angles), or_null(k_angles), key_mask,
                              options.get()));
  return out;
}

// Bytes that the core allocates for exact attention of n tokens to each other.
// [[Rcpp::export(rng = false)]]
double core_attention_memory(double n, double heads, double head_dim,
                             double batch,
                             const Rcpp::CharacterVector &settings) {
  const Options options(settings, R_NilValue);
  cape_attention_shape s = CAPE_ATTENTION_SHAPE(
      static_cast<int64_t>(batch), static_cast<int64_t>(heads),
      static_cast<int64_t>(n), static_cast<int64_t>(n),
      static_cast<int64_t>(head_dim));
  double bytes = 0;
  check(cape_attention_workspace(&bytes, nullptr, &s, options.get()));
  return bytes;
}
