// What the forward and the backward pass of exact attention share.
#pragma once
#include "attention/heads.hpp"
#include "attention/rotation.hpp"
#include "attention/tiling.hpp"

namespace cape {

// What the heads of one call share.
template <class T>
struct Call {
  Call(const AttentionInput<T>& input, Run& r)
      : in(input), run(r), tiling(input.head_dim), turn_q(input, input.q_angles, input.q_length, r),
        turn_k(input, input.k_angles, input.k_length, r) {}

  const AttentionInput<T>& in;
  Run& run;
  Tiling<T> tiling;
  Rotation<T> turn_q, turn_k;
};

// Queries of a tile forward: all tiles are about as large, and if threads share them out, there are
// several for each.
template <class T>
std::int64_t tile_rows(const AttentionInput<T>& in, const Tiling<T>& tiling, std::int64_t threads) {
  const std::int64_t length = std::max(in.q_length, std::int64_t{1}), least = 8 * simd::strip_rows;
  const std::int64_t share = whole_heads(in, threads) ? length : length / (4 * threads);
  const std::int64_t most = std::min(tiling.rows, std::max(share, least));
  return round_up(ceil_div(length, ceil_div(length, most)), simd::strip_rows);
}

} // namespace cape
