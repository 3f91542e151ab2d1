// Attention with rotary positions. Tensors come and go in the core's row-major form: the R array of
// D x L x batch has the memory of batch x L x D.
#include "glue.hpp"

using namespace capeomics;

namespace {

const double *or_null(const Rcpp::Nullable<Rcpp::NumericMatrix> &x) {
  return x.isNull() ? nullptr : REAL(x.get());
}

} // namespace

// shape: batch, heads, q_length, k_length, head_dim, angle_heads. Without a value: the scores,
// k_length x q_length x heads x batch.
// [[Rcpp::export(rng = false)]]
Rcpp::NumericVector core_attend(const Rcpp::NumericVector &q, const Rcpp::NumericVector &k,
                                const Rcpp::Nullable<Rcpp::NumericVector> &v,
                                const Rcpp::Nullable<Rcpp::NumericMatrix> &q_angles,
                                const Rcpp::Nullable<Rcpp::NumericMatrix> &k_angles,
                                const Rcpp::Nullable<Rcpp::LogicalMatrix> &mask,
                                const Rcpp::NumericVector &shape, double scale,
                                const Rcpp::CharacterVector &settings) {
  const Options options(settings, R_NilValue);
  cape_attention_shape s{sizeof s,
                         static_cast<int64_t>(shape[0]),
                         static_cast<int64_t>(shape[1]),
                         static_cast<int64_t>(shape[2]),
                         static_cast<int64_t>(shape[3]),
                         static_cast<int64_t>(shape[4]),
                         static_cast<int64_t>(shape[5]),
                         scale};
  std::vector<uint8_t> keep;
  if (mask.isNotNull()) {
    const Rcpp::LogicalMatrix m(mask.get());
    keep.assign(m.begin(), m.end());
  }
  const uint8_t *key_mask = mask.isNull() ? nullptr : keep.data();
  if (v.isNotNull()) {
    Rcpp::NumericVector out(q.size());
    check(cape_attention(out.begin(), nullptr, &s, q.begin(), k.begin(), REAL(v.get()),
                         or_null(q_angles), or_null(k_angles), key_mask, options.get()));
    return out;
  }
  Rcpp::NumericVector out(
      static_cast<R_xlen_t>(s.batch * s.heads * s.q_length * s.k_length));
  check(cape_attention_scores(out.begin(), &s, q.begin(), k.begin(), or_null(q_angles),
                              or_null(k_angles), key_mask, options.get()));
  return out;
}
