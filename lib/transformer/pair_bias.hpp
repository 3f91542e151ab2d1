// What is added to the scores of two tokens: by how far their features are apart.
#pragma once
#include "transformer/parameters.hpp"

namespace cape {

/// Of a model whose positions are relative or distances. A cell at a time: heads x length x length.
///
/// distance: - exp(f) d(m, n), where f is trained for each head and block.
///
/// relative (Transformer-XL in the paper's form): with q_m = W_q x_m, r the trained projection of
/// the sines and cosines of an offset in the order of features, u and v trained vectors,
///   (q_m + W_q u) . k_n + (q_m + W_q v) . r_(m-n),
/// so that queries are shifted too.
template <class T>
class PairBias {
public:
  PairBias(const Backbone& backbone, const Slots& slots);

  /// To be called before a batch: what depends on parameters alone.
  void begin(std::span<const T> parameters, Run& run);

  /// Gives attention its bias, and its shifted queries, of the tokens of one cell. They are kept
  /// until the next call.
  void put(std::int64_t block, std::span<const std::int32_t> feature, AttentionInput<T>& in,
           Run& run);

  /// Where attention puts the gradient of that bias.
  T* gradient_of(const AttentionInput<T>& in);
  /// What follows from it: d_q, the gradient of the queries that attention was given, becomes that
  /// of the queries before they were shifted.
  void backward(std::int64_t block, std::span<const std::int32_t> feature, T* d_q,
                std::span<T> gradient, Run& run);
  /// To be called when all cells of a block have had their backward(): adds what is summed over
  /// them.
  void finish(std::int64_t block, std::span<const T> parameters, std::span<T> gradient, Run& run);

private:
  // What a block's relative positions are made of.
  struct Relative {
    std::vector<T> keys;              ///< r: heads x offsets x head width
    std::vector<T> content, position; ///< W_q u and W_q v
  };

  void measure(Run& run);
  void put_distances(std::int64_t block, std::span<const std::int32_t> feature, Run& run);
  void put_relative(std::int64_t block, std::span<const std::int32_t> feature,
                    AttentionInput<T>& in, Run& run);
  void relative_backward(std::int64_t block, std::span<const std::int32_t> feature, T* d_q,
                         Run& run);
  std::vector<T> position_queries(std::int64_t block, std::int64_t head, std::int64_t length) const;

  /// The column of an offset between two tokens.
  std::int64_t offset(std::int32_t query, std::int32_t key) const {
    return query - key + features_;
  }

  const Backbone& backbone_;
  const BackboneOptions& options_;
  const Slots& slots_;
  std::int64_t features_, offsets_; ///< <cls> has its place before the first feature
  std::vector<T> distances_;        ///< between the origin and all features
  std::vector<double> factor_;      ///< blocks x heads
  std::vector<T> waves_;            ///< offsets x width
  std::vector<Relative> relative_;
  Relative slope_; ///< of the block in work

  // Of the last cell.
  std::vector<T> bias_, d_bias_, shifted_;
  const T* q_ = nullptr;
};

} // namespace cape
