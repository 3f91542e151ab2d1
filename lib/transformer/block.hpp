// One block: attention and a feed-forward layer, with their norms.
#pragma once
#include "transformer/pair_bias.hpp"

namespace cape {

/// Of all layer norms, as PyTorch's.
inline constexpr double norm_epsilon = 1e-5;

/// The tokens of a batch as attention sees them.
template <class T>
struct Sequence {
  /// Neighbouring cells of the same length are attended to in one call.
  struct Group {
    std::int64_t first = 0, cells = 0, length = 0; ///< its first token
  };
  std::int64_t tokens = 0;
  std::vector<Group> groups;
  std::span<const std::int32_t> feature;
  layers::Turns<T> turns;           ///< by feature; no pairs: nothing is turned
  PairBias<T>* pair_bias = nullptr; ///< null: nothing is added to scores
};

/// Where dropout takes its numbers from; step -1: no dropout.
struct Dropout {
  double rate = 0;
  std::int64_t step = -1;

  template <class T>
  void operator()(std::span<T> x, std::int64_t site, Run& run) const {
    if (step >= 0 && rate > 0)
      layers::drop_out<T>(x, rate, "transformer.dropout",
                          static_cast<std::uint64_t>((step << 12) | site), run);
  }
};

/// What a block has computed: what the gradient needs, kept from call to call.
template <class T>
struct BlockState {
  std::vector<T> normed, q, k, v, attended, log_sum_exp, middle, middle_normed, before, after, out;
  std::vector<layers::RowMoments<T>> moments1, moments2;
};

/// The gradients of a block's rows, which all blocks share.
template <class T>
struct BlockSlopes {
  std::vector<T> rows; ///< that of the output, then that of the input
  std::vector<T> branch, hidden, attended, q, k, v;
};

template <class T>
class Block {
public:
  Block(const BackboneOptions& options, const BlockSlots& slots, std::int64_t number)
      : options_(options), slots_(slots), number_(number) {}

  /// state.out becomes the block of x, tokens x width.
  void forward(std::span<const T> parameters, const Sequence<T>& sequence, std::span<const T> x,
               const Dropout& dropout, BlockState<T>& state, Run& run) const;

  /// slopes.rows holds the gradient of the output and gets that of x, which is that of the forward
  /// call.
  /// d_angle: gets that of the angles by token and pair, summed over queries and keys; or empty.
  void backward(std::span<const T> parameters, const Sequence<T>& sequence, std::span<const T> x,
                const Dropout& dropout, const BlockState<T>& state, BlockSlopes<T>& slopes,
                std::span<T> gradient, std::span<T> d_angle, Run& run) const;

  /// body(what attention is called with, its first token) for a group of cells: once, or for each
  /// cell if scores know of pairs.
  void for_calls(const Sequence<T>& sequence, typename Sequence<T>::Group group,
                 const BlockState<T>& state,
                 const std::function<void(const AttentionInput<T>&, std::int64_t)>& body,
                 Run& run) const;

private:
  AttentionInput<T> input(const typename Sequence<T>::Group& group,
                          const BlockState<T>& state) const;
  void attend(std::span<const T> parameters, const Sequence<T>& sequence, BlockState<T>& state,
              Run& run) const;
  bool knows_positions() const { return number_ >= options_.context_blocks; }
  bool turns(const Sequence<T>& sequence) const {
    return knows_positions() && sequence.turns.pairs > 0;
  }
  PairBias<T>* bias_of(const Sequence<T>& sequence) const {
    return knows_positions() ? sequence.pair_bias : nullptr;
  }
  std::int64_t site(std::int64_t which) const { return 8 * (number_ + 1) + which; }

  const BackboneOptions& options_;
  const BlockSlots& slots_;
  std::int64_t number_;
};

} // namespace cape
