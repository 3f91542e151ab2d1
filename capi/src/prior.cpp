// What is known before Step I.
#include <cmath>
#include <cstddef>
#include <string_view>
#include <vector>

#include "handle.hpp"

using namespace cape::capi;

namespace {

// The n values of an array of the caller.
template <class T>
std::vector<T> values(const T* data, int64_t n, std::string_view name) {
  const auto size = static_cast<std::size_t>(cape::checked_size(n, 1, "n"));
  if (size == 0) return {};
  const T* first = &required(data, name);
  return std::vector<T>(first, first + size);
}

void append(std::vector<cape::Edge>& edges, const int64_t* from, const int64_t* to, int64_t n) {
  const std::vector<int64_t> causes = values(from, n, "from"), effects = values(to, n, "to");
  for (std::size_t e = 0; e < causes.size(); ++e) edges.push_back({causes[e], effects[e], 1});
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
  return guard([&] { append(object(prior, "prior").knowledge.required, from, to, n); });
}

cape_status cape_prior_forbid(cape_prior* prior, const int64_t* from, const int64_t* to,
                              int64_t n) {
  return guard([&] { append(object(prior, "prior").knowledge.forbidden, from, to, n); });
}

cape_status cape_prior_tiers(cape_prior* prior, const int64_t* tier, int64_t n) {
  return guard([&] { object(prior, "prior").knowledge.tier = values(tier, n, "tier"); });
}

cape_status cape_prior_roots(cape_prior* prior, const int64_t* column, int64_t n) {
  return guard([&] { object(prior, "prior").knowledge.roots = values(column, n, "column"); });
}

cape_status cape_prior_leaves(cape_prior* prior, const int64_t* column, int64_t n) {
  return guard([&] { object(prior, "prior").knowledge.leaves = values(column, n, "column"); });
}

cape_status cape_prior_regulators(cape_prior* prior, const int64_t* column, int64_t n) {
  return guard([&] { object(prior, "prior").knowledge.regulators = values(column, n, "column"); });
}

cape_status cape_prior_penalty(cape_prior* prior, const cape_matrix_view* factor) {
  return guard([&] {
    cape_prior& p = object(prior, "prior");
    p.knowledge.penalty = to_matrix(view_of(factor, "factor"));
  });
}

cape_status cape_prior_start(cape_prior* prior, const int64_t* from, const int64_t* to,
                             const double* weight, int64_t n) {
  return guard([&] {
    cape_prior& p = object(prior, "prior");
    const std::vector<double> weights = values(weight, n, "weight");
    std::vector<cape::Edge> edges;
    append(edges, from, to, n);
    for (std::size_t e = 0; e < edges.size(); ++e) edges[e].weight = weights[e];
    p.knowledge.start.insert(p.knowledge.start.end(), edges.begin(), edges.end());
  });
}

cape_status cape_prior_row_weights(cape_prior* prior, const double* weight, int64_t n) {
  return guard([&] { object(prior, "prior").design.weight = values(weight, n, "weight"); });
}

cape_status cape_prior_batches(cape_prior* prior, const int64_t* batch, int64_t n) {
  return guard([&] { object(prior, "prior").design.batch = values(batch, n, "batch"); });
}

cape_status cape_prior_perturb(cape_prior* prior, const int64_t* row, const int64_t* column,
                               int64_t n) {
  return guard([&] {
    cape_prior& p = object(prior, "prior");
    const std::vector<int64_t> rows = values(row, n, "row"), columns = values(column, n, "column");
    for (std::size_t i = 0; i < rows.size(); ++i)
      p.design.perturbed.push_back({rows[i], columns[i]});
  });
}
