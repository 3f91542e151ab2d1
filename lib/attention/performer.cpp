// Linear attention in the form of the first Performers: see performer_attention_forward().
module;
#include "internal/arma.hpp"
#include "internal/message.hpp"
#include "internal/sizes.hpp"
#include "simd/vector_math.hpp"
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <new>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>
module cape.attention;
#include "attention/checks.hpp"

namespace cape {
namespace {

constexpr double floor_of_features = 1e-4;

// The call's tensors, and what is the same for all heads.
template <class T>
struct PerformerCall {
  PerformerCall(const AttentionInput<T>& input, std::int64_t features, const T* directions, Run& r)
      : in(input), run(r), root(std::sqrt(scale_of(input))),
        weights(arma::Mat<T>(const_cast<T*>(directions), static_cast<arma::uword>(in.head_dim),
                             static_cast<arma::uword>(features), false, true)
                    .t()),
        largest(find_largest()) {}

  // The tokens of a head, a column each.
  arma::Mat<T> columns(const Tensor<const T>& x, std::int64_t head) const {
    arma::Mat<T> out(static_cast<arma::uword>(x.head_dim), static_cast<arma::uword>(x.length));
    for (std::int64_t j = 0; j < x.length; ++j)
      std::copy_n(x.row(head / in.heads, j, head % in.heads), x.head_dim,
                  out.colptr(static_cast<arma::uword>(j)));
    run.poll();
    return out;
  }
  arma::Mat<T> scaled(const Tensor<const T>& x, std::int64_t head) const {
    return root * columns(x, head);
  }

  std::int64_t heads() const { return in.batch * in.heads; }

  template <class F>
  void for_all_heads(F body) const {
    run.parallel_for(heads(), [&](std::int64_t head) { body(head); });
  }

  // Where the largest product of a key and a direction is, the first if there are several.
  struct Largest {
    T product = -std::numeric_limits<T>::infinity();
    std::int64_t head = 0;
    arma::uword feature = 0, key = 0;
  };

  const AttentionInput<T>& in;
  Run& run;
  T root;
  arma::Mat<T> weights; // features x head_dim
  Largest largest;

private:
  Largest find_largest() const {
    std::vector<Largest> of_head(at(heads()));
    for_all_heads([&](std::int64_t head) {
      const arma::Mat<T> products = weights * scaled(k_of(in), head);
      const arma::uword place = products.index_max();
      of_head[at(head)] = {products(place), head, place % products.n_rows, place / products.n_rows};
    });
    return *std::ranges::max_element(of_head, {}, &Largest::product);
  }
};

// Features of the queries or keys of a head.
template <class T>
struct Features {
  arma::Mat<T> x;    // head_dim x tokens: sqrt(scale) q or k
  arma::Mat<T> f;    // features x tokens
  arma::urowvec top; // of queries: which of the products is largest
};

template <class T>
void finish(const PerformerCall<T>& call, Features<T>& to) {
  call.run.poll();
  to.f.each_row() -= arma::sum(arma::square(to.x), 0) / 2;
  to.f *= log2_e<T>;
  call.run.poll();
  simd::exp2(to.f.memptr(), to.f.memptr(), static_cast<std::int64_t>(to.f.n_elem));
  to.f += static_cast<T>(floor_of_features);
  call.run.poll();
}

template <class T>
Features<T> query_features(const PerformerCall<T>& call, std::int64_t head) {
  Features<T> out{call.scaled(q_of(call.in), head), {}, {}};
  out.f = call.weights * out.x;
  out.top = arma::index_max(out.f, 0);
  out.f.each_row() -= arma::Row<T>(arma::max(out.f, 0));
  finish(call, out);
  return out;
}

template <class T>
Features<T> key_features(const PerformerCall<T>& call, std::int64_t head) {
  Features<T> out{call.scaled(k_of(call.in), head), {}, {}};
  out.f = call.weights * out.x - call.largest.product;
  finish(call, out);
  return out;
}

// What the keys of a head give, and the outputs by it.
template <class T>
struct Sums {
  Sums(const Features<T>& keys, const arma::Mat<T>& values)
      : n(keys.f * values.t()), z(arma::sum(keys.f, 1)) {}

  arma::Mat<T> n; // features x head_dim
  arma::Col<T> z; // features
};

template <class T>
void put(const arma::Mat<T>& x, const Tensor<T>& to, std::int64_t head) {
  for (std::int64_t j = 0; j < to.length; ++j)
    std::copy_n(x.colptr(static_cast<arma::uword>(j)), to.head_dim,
                to.row(head / to.heads, j, head % to.heads));
}

// From the gradients of the exponents of features, that of q or k but for what comes through the
// largest product; its sums over the features are left in `sums`.
template <class T>
arma::Mat<T> gradient_of(const PerformerCall<T>& call, const Features<T>& features,
                         arma::Mat<T> d_f, bool queries, arma::Row<T>& sums) {
  d_f %= features.f - static_cast<T>(floor_of_features);
  sums = arma::sum(d_f, 0);
  if (queries)
    for (arma::uword j = 0; j < d_f.n_cols; ++j) d_f(features.top[j], j) -= sums[j];
  call.run.poll();
  arma::Mat<T> d_x = call.weights.t() * d_f;
  d_x -= features.x.each_row() % sums;
  return call.root * d_x;
}

template <class T>
void check_call(const AttentionInput<T>& in, std::int64_t features, const T* directions, Run& run) {
  if (has_angles(in))
    throw Error(Status::unsupported, "angles are given; turn q and k before performer attention");
  if (in.key_mask != nullptr)
    throw Error(Status::unsupported, "key_mask is given; performer attention has none");
  check_linear(in, features, directions, [&] {
    return sizeof(T) * 4 * static_cast<double>(run.threads()) * static_cast<double>(features) *
           (static_cast<double>(in.q_length) + static_cast<double>(in.k_length));
  });
}

} // namespace

template <class T>
void performer_attention_forward(const AttentionInput<T>& in, std::int64_t features,
                                 const T* directions, T* out, Run& run) {
  check_call(in, features, directions, run);
  const std::int64_t size = q_size(in);
  check_pointer(out, size, "out");
  if (size == 0) return;
  if (in.k_length == 0) {
    const Tensor<T> rows = outputs(in, out);
    for (std::int64_t i = 0; i < in.batch * in.q_length; ++i)
      std::fill_n(rows.data + i * rows.stride, in.heads * in.head_dim, T(0));
    return;
  }
  const PerformerCall<T> call(in, features, directions, run);
  call.for_all_heads([&](std::int64_t head) {
    const Sums<T> sums(key_features(call, head), call.columns(v_of(in), head));
    const Features<T> queries = query_features(call, head);
    arma::Mat<T> means = sums.n.t() * queries.f;
    means.each_row() /= sums.z.t() * queries.f;
    put(means, outputs(in, out), head);
  });
}

template <class T>
void performer_attention_backward(const AttentionInput<T>& in, std::int64_t features,
                                  const T* directions, const T* d_out,
                                  const AttentionGradient<T>& gradient, Run& run) {
  check_call(in, features, directions, run);
  check_gradient(in, gradient);
  const std::int64_t n_q = q_size(in), n_k = k_size(in);
  check_pointer(d_out, n_q, "d_out");
  checked_magnitude(outputs(in, d_out), "d_out");
  for (const auto& [to, size] :
       {std::pair(gradient.q, n_q), std::pair(gradient.k, n_k), std::pair(gradient.v, n_k)})
    if (to != nullptr) std::fill_n(to, size, T(0));
  if (n_q == 0 || n_k == 0) return;
  const PerformerCall<T> call(in, features, directions, run);
  std::vector<double> through_largest(at(call.heads()));
  call.for_all_heads([&](std::int64_t head) {
    const Features<T> keys_of_head = key_features(call, head);
    const arma::Mat<T> values = call.columns(v_of(in), head);
    const Sums<T> sums(keys_of_head, values);
    const Features<T> queries_of_head = query_features(call, head);
    const arma::Row<T> weights = sums.z.t() * queries_of_head.f;
    arma::Mat<T> means = sums.n.t() * queries_of_head.f;
    means.each_row() /= weights;
    arma::Mat<T> d_means = call.columns(outputs(in, d_out), head);
    d_means.each_row() /= weights;
    const arma::Row<T> d_weights = -arma::sum(d_means % means, 0);
    arma::Row<T> through;
    if (gradient.q != nullptr)
      put(gradient_of<T>(call, queries_of_head, sums.n * d_means + sums.z * d_weights, true,
                         through),
          queries(in, gradient.q), head);
    const arma::Mat<T> d_n = queries_of_head.f * d_means.t();
    if (gradient.v != nullptr) put<T>(d_n.t() * keys_of_head.f, keys(in, gradient.v), head);
    if (gradient.k == nullptr) return;
    arma::Mat<T> d_f = d_n * values;
    d_f.each_col() += arma::Col<T>(queries_of_head.f * d_weights.t());
    put(gradient_of<T>(call, keys_of_head, std::move(d_f), false, through), keys(in, gradient.k),
        head);
    for (const T sum : through) through_largest[at(head)] += static_cast<double>(sum);
  });
  if (gradient.k != nullptr) {
    double all = 0;
    for (const double sum : through_largest) all += sum;
    const auto& top = call.largest;
    T* to = keys(in, gradient.k)
                .row(top.head / in.heads, static_cast<std::int64_t>(top.key), top.head % in.heads);
    for (std::int64_t c = 0; c < in.head_dim; ++c)
      to[c] -=
          static_cast<T>(all) * call.root * call.weights(top.feature, static_cast<arma::uword>(c));
  }
  check_result(gradient.q, n_q, "gradient.q");
  check_result(gradient.k, n_k, "gradient.k");
  check_result(gradient.v, n_k, "gradient.v");
}

template void performer_attention_forward<double>(const AttentionInput<double>&, std::int64_t,
                                                  const double*, double*, Run&);
template void performer_attention_forward<float>(const AttentionInput<float>&, std::int64_t,
                                                 const float*, float*, Run&);
template void performer_attention_backward<double>(const AttentionInput<double>&, std::int64_t,
                                                   const double*, const double*,
                                                   const AttentionGradient<double>&, Run&);
template void performer_attention_backward<float>(const AttentionInput<float>&, std::int64_t,
                                                  const float*, const float*,
                                                  const AttentionGradient<float>&, Run&);

} // namespace cape
