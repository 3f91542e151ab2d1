// How the heads of a call share the threads.
#pragma once
#include "attention/tensors.hpp"

namespace cape {

// Forward, threads take whole heads if there are several for each of them; otherwise they share out
// the tiles of a head.
template <class T>
bool whole_heads(const AttentionInput<T>& in, std::int64_t threads) {
  return threads == 1 || in.batch * in.heads >= 4 * threads;
}

// What is summed over the rows of a head is summed in so many parts, so that there is work for
// several threads. Their number depends on the shape alone, and so does every sum.
template <class T>
std::int64_t parts_of_head(const AttentionInput<T>& in, std::int64_t length) {
  constexpr std::int64_t tasks = 8, least = 512;
  const std::int64_t heads = std::max(in.batch * in.heads, std::int64_t{1});
  return std::clamp(std::min(ceil_div(tasks, heads), length / least), std::int64_t{1}, tasks);
}

// body(b, h) for every head, where make() gives a body for a thread: one that keeps its buffers
// from head to head. Threads take some heads each, unless heads are cut in parts, which then share
// the threads.
template <class T, class F>
void for_heads(const AttentionInput<T>& in, Run& run, F make) {
  const std::int64_t heads = in.batch * in.heads, threads = run.threads();
  const bool in_parts = parts_of_head(in, std::max(in.q_length, in.k_length)) > 1;
  const std::int64_t tasks = in_parts || threads == 1 ? 1 : std::min(heads, 8 * threads);
  run.parallel_for(tasks, [&](std::int64_t task) {
    auto body = make();
    for (std::int64_t bh = heads * task / tasks; bh < heads * (task + 1) / tasks; ++bh)
      body(bh / in.heads, bh % in.heads);
  });
}

} // namespace cape
