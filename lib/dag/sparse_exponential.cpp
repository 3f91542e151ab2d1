// The acyclicity measure tr exp(S) - M on a sparse pattern. Every strongly connected component is
// taken by itself, in blocks of rows of exp(S), by the Taylor series, which needs no M x M matrix
// and O(K) memory per thread for K nodes. Rows are summed in T, or in double where entries leave
// the range of float; h is summed in double. All terms are >= 0, so that relative errors are those
// of T's rounding.
module;
#include "dag/kernels/sparse_term.hpp"
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <new>
#include <numeric>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <variant>
#include <vector>
module cape.dag;
#include "dag/acyclicity.hpp"

namespace cape::sem {
namespace {

constexpr double negligible = 0x1p-53; // a term's largest entry against that of the sum

// Of an entry of S and of a sum, so that the next term is finite.
template <class T>
constexpr T limit = 1e150; // h is at its cap long before
template <>
constexpr float limit<float> = 1e15f;

// A strongly connected component of the non-zero pattern, with more than one node. Walks from a
// node back to itself, and from an effect back to its cause, do not leave it.
template <class T>
struct Component {
  std::vector<std::int64_t> nodes;
  std::vector<std::int64_t> offsets{0}; ///< of the edges into every node
  std::vector<std::int32_t> from;       ///< their causes, by place in `nodes`
  std::vector<std::int64_t> input;      ///< which input of the effect the cause is
  std::vector<T> strength;

  double exponential_rows(std::int64_t first, Matrix& gradient, Run& run) const;
};

template <class T>
std::vector<Component<T>> components_of(const Matrix& s, const Causes& causes) {
  const std::int64_t m = s.cols();
  std::vector<Edge> edges;
  for (std::int64_t j = 0; j < m; ++j)
    for (std::int64_t c = 0; c < s.rows(); ++c)
      if (s(c, j) != 0) edges.push_back({causes(c, j), j, 1});
  const std::vector<std::int64_t> number = strong_components(Digraph(m, std::move(edges)));
  std::vector<Component<T>> all(number.size());
  std::vector<std::int32_t> place(number.size());
  for (std::int64_t j = 0; j < m; ++j) {
    std::vector<std::int64_t>& nodes =
        all[static_cast<std::size_t>(number[static_cast<std::size_t>(j)])].nodes;
    place[static_cast<std::size_t>(j)] = static_cast<std::int32_t>(nodes.size());
    nodes.push_back(j);
  }
  std::erase_if(all, [](const Component<T>& c) { return c.nodes.size() < 2; });
  for (Component<T>& component : all)
    for (const std::int64_t j : component.nodes) {
      for (std::int64_t c = 0; c < s.rows(); ++c) {
        const auto i = static_cast<std::size_t>(causes(c, j));
        if (s(c, j) == 0 || number[i] != number[static_cast<std::size_t>(j)]) continue;
        component.from.push_back(place[i]);
        component.input.push_back(c);
        // What is beyond the limit shows in the first term.
        component.strength.push_back(static_cast<T>(std::min<double>(s(c, j), 2 * limit<T>)));
      }
      component.offsets.push_back(std::ssize(component.from));
    }
  return all;
}

// Some rows of exp(S) - I: their part of the trace, or infinity if an entry is above the limit; and
// where they are entries of the gradient.
template <class T>
double Component<T>::exponential_rows(std::int64_t first, Matrix& gradient, Run& run) const {
  const std::int64_t n = std::ssize(nodes), count = std::min(simd::block_rows<T>, n - first);
  const simd::SparseColumns<T> columns{offsets.data(), from.data(), strength.data(), n};
  // Column i holds what walks from the rows bring to node i.
  std::vector<simd::BlockColumn<T>> term(nodes.size()), next(nodes.size()), sum(nodes.size());
  for (std::int64_t b = 0; b < count; ++b) term[static_cast<std::size_t>(first + b)].value[b] = 1;
  T largest_sum = 0;
  for (int k = 1;; ++k) {
    const T largest = simd::sparse_term(columns, 1 / static_cast<T>(k), term.data(), next.data(),
                                        sum.data(), largest_sum);
    term.swap(next);
    run.poll();
    if (largest_sum > limit<T>) return std::numeric_limits<double>::infinity();
    // Also where both are NaN, which the caller finds in h.
    if (!(static_cast<double>(largest) > negligible * static_cast<double>(largest_sum))) break;
  }
  double trace = 0;
  for (std::int64_t b = 0; b < count; ++b) {
    const auto j = static_cast<std::size_t>(first + b);
    trace += static_cast<double>(sum[j].value[b]);
    for (auto e = static_cast<std::size_t>(offsets[j]);
         e < static_cast<std::size_t>(offsets[j + 1]); ++e)
      gradient(input[e], nodes[j]) = sum[static_cast<std::size_t>(from[e])].value[b];
  }
  return trace;
}

// All rows: h, or infinity.
template <class T>
double sum_of_walks(const Matrix& s, const Causes& causes, Matrix& gradient, Run& run) {
  const std::vector<Component<T>> components = components_of<T>(s, causes);
  struct Task {
    const Component<T>* component;
    std::int64_t first; ///< row, of as many as a block has
  };
  std::vector<Task> tasks;
  for (const Component<T>& c : components)
    for (std::int64_t first = 0; first < std::ssize(c.nodes); first += simd::block_rows<T>)
      tasks.push_back({&c, first});

  std::fill_n(gradient.data(), gradient.size(), 0.0);
  std::vector<double> trace(tasks.size());
  run.parallel_for(std::ssize(tasks), [&](std::int64_t t) {
    const auto [component, first] = tasks[static_cast<std::size_t>(t)];
    trace[static_cast<std::size_t>(t)] = component->exponential_rows(first, gradient, run);
  });
  return std::accumulate(trace.begin(), trace.end(), 0.0);
}

} // namespace

// At most the largest finite number.
template <class T>
AcyclicityMeasure make_sparse_exponential(const Causes& causes) {
  return [&causes](const Matrix& s, Matrix& gradient, Run& run) {
    double h = sum_of_walks<T>(s, causes, gradient, run);
    if constexpr (std::is_same_v<T, float>)
      if (std::isinf(h)) h = sum_of_walks<double>(s, causes, gradient, run);
    return std::min(h, std::numeric_limits<double>::max());
  };
}

template AcyclicityMeasure make_sparse_exponential<float>(const Causes&);
template AcyclicityMeasure make_sparse_exponential<double>(const Causes&);

} // namespace cape::sem
