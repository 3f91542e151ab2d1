// What is known before Step I.
#include <cstddef>
#include <vector>

#include "handle.hpp"

using namespace cape::capi;

namespace {

template <class T>
void append(std::vector<T>& to, const std::vector<T>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

std::vector<cape::Perturbation> perturbations_of(const int64_t* row, const int64_t* feature,
                                                 int64_t n) {
  const auto rows = values(row, n, "row"), columns = values(feature, n, "feature");
  std::vector<cape::Perturbation> out;
  for (std::size_t i = 0; i < rows.size(); ++i) out.push_back({rows[i], columns[i]});
  return out;
}

} // namespace

cape_status cape_prior_new(cape_prior** out) {
  clear(out);
  return guard([&] {
    required(out, "out");
    *out = new cape_prior;
  });
}

void cape_prior_free(cape_prior* prior) { release(prior); }

cape_status cape_prior_require(cape_prior* prior, const int64_t* from, const int64_t* to,
                               int64_t n) {
  return guard([&] { append(object(prior, "prior").knowledge.required, edges_of(from, to, n)); });
}

cape_status cape_prior_forbid(cape_prior* prior, const int64_t* from, const int64_t* to,
                              int64_t n) {
  return guard([&] { append(object(prior, "prior").knowledge.forbidden, edges_of(from, to, n)); });
}

cape_status cape_prior_tiers(cape_prior* prior, const int64_t* tier, int64_t n) {
  return guard([&] { object(prior, "prior").knowledge.tier = copied_values(tier, n, "tier"); });
}

cape_status cape_prior_roots(cape_prior* prior, const int64_t* feature, int64_t n) {
  return guard(
      [&] { object(prior, "prior").knowledge.roots = copied_values(feature, n, "feature"); });
}

cape_status cape_prior_leaves(cape_prior* prior, const int64_t* feature, int64_t n) {
  return guard(
      [&] { object(prior, "prior").knowledge.leaves = copied_values(feature, n, "feature"); });
}

cape_status cape_prior_regulators(cape_prior* prior, const int64_t* feature, int64_t n) {
  return guard(
      [&] { object(prior, "prior").knowledge.regulators = copied_values(feature, n, "feature"); });
}

cape_status cape_prior_penalty(cape_prior* prior, const cape_matrix_view* factor) {
  return guard([&] {
    cape_prior& p = object(prior, "prior");
    p.knowledge.penalty = to_matrix(view_of(factor, "factor"));
  });
}

cape_status cape_prior_start(cape_prior* prior, const int64_t* from, const int64_t* to,
                             const double* weight, int64_t n) {
  return guard(
      [&] { append(object(prior, "prior").knowledge.start, edges_of(from, to, weight, n)); });
}

cape_status cape_prior_row_weights(cape_prior* prior, const double* weight, int64_t n) {
  return guard([&] { object(prior, "prior").design.weight = copied_values(weight, n, "weight"); });
}

cape_status cape_prior_batches(cape_prior* prior, const int64_t* batch, int64_t n) {
  return guard([&] { object(prior, "prior").design.batch = copied_values(batch, n, "batch"); });
}

cape_status cape_prior_covariates(cape_prior* prior, const cape_matrix_view* values) {
  return guard([&] {
    cape_prior& p = object(prior, "prior");
    p.design.covariates = to_matrix(view_of(values, "values"));
  });
}

cape_status cape_prior_perturb(cape_prior* prior, const int64_t* row, const int64_t* feature,
                               int64_t n) {
  return guard(
      [&] { append(object(prior, "prior").design.perturbed, perturbations_of(row, feature, n)); });
}

cape_status cape_prior_target(cape_prior* prior, const int64_t* row, const int64_t* feature,
                              int64_t n) {
  return guard(
      [&] { append(object(prior, "prior").design.targeted, perturbations_of(row, feature, n)); });
}
