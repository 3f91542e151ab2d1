// What a call allocates, counted as it is allocated in forward.cpp and backward.cpp.
module;
#include "attention/kernels/attention.hpp"
#include "internal/message.hpp"
#include "internal/sizes.hpp"
#include "simd/aligned.hpp"
#include "simd/vector_math.hpp"
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>
module cape.attention;
#include "attention/checks.hpp"
#include "attention/exact.hpp"

namespace cape {

template <class T>
AttentionWorkspace attention_workspace(const AttentionInput<T>& in, int threads) {
  check_sizes(in);
  check_at_least(in.angle_heads, 1, "angle_heads");
  check_at_least(threads, 1, "threads");
  const Tiling<T> tiling(in.head_dim);
  // In double, so that no size overflows.
  const auto d = static_cast<double>(in.head_dim), width = static_cast<double>(tiling.width);
  const auto strip_width = static_cast<double>(tiling.strip_width);
  const auto block = static_cast<double>(tiling.block);
  const auto panel = static_cast<double>(tiling.columns.panel);
  const double queries = static_cast<double>(in.q_length) + panel;
  const double keys = static_cast<double>(in.k_length) + panel;
  const double heads = static_cast<double>(in.batch) * static_cast<double>(in.heads);
  const double at_once = std::min(heads, static_cast<double>(threads));

  const double turns = heads > static_cast<double>(in.angle_heads)
                           ? (queries + keys) * static_cast<double>(in.angle_heads) * d
                           : 0;
  const double numbers = keys * sizeof(std::int64_t) / sizeof(T); // of the keys that are real
  const double head = keys * (d + width) + panel * (d + 1) + numbers;
  const double tile =
      static_cast<double>(tile_rows(in, tiling, threads)) *
      (strip_width + block + width + 2 + static_cast<double>(tiling.columns.vector));
  const double forward = whole_heads(in, threads) ? at_once * (head + tile) : head + threads * tile;

  const auto parts = static_cast<double>(parts_of_head(in, in.k_length));
  const double head_back = queries * (2 * d + 2 * width + 3 + parts * (width + 1)) +
                           keys * (2 * strip_width + 3 * width + 1) + numbers + panel * d +
                           parts * 2 * static_cast<double>(tiling.keys) * block;
  const double backward = (parts > 1 ? 1 : at_once) * head_back;
  return {(turns + forward) * sizeof(T), (turns + backward) * sizeof(T)};
}

template AttentionWorkspace attention_workspace<double>(const AttentionInput<double>&, int);
template AttentionWorkspace attention_workspace<float>(const AttentionInput<float>&, int);

} // namespace cape
