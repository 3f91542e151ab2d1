// Blocked attention with an online softmax (M. Milakov and N. Gimelshein, Online normalizer
// calculation for softmax, 2018; T. Dao et al., FlashAttention, 2022). The scores are taken in
// base 2: exp(s) = 2^(s log2(e)), with log2(e) in the queries.
module;
#include "internal/message.hpp"
#include "simd/attention.hpp"
#include "simd/vector_math.hpp"
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <type_traits>
#include <unistd.h>
#include <vector>
module cape.attention;
#include "attention/call.hpp"

namespace cape {
namespace {

constexpr double many_bytes = 16 << 20;

// The keys of one head that are not padding, R(phi) k, and their values.
template <class T>
struct PackedHead {
  std::vector<std::int64_t> rows;
  std::int64_t panels = 0;
  Buffer<T> k, v;
  Buffer<T> padding; // of the last panel; empty if there is none

  static double bytes(const Tiling<T>& tiling, std::int64_t head_dim, std::int64_t keys) {
    return static_cast<double>(round_up(keys, tiling.columns.panel)) *
               static_cast<double>(head_dim + tiling.width) * sizeof(T) +
           static_cast<double>(keys) * sizeof(std::int64_t);
  }
};

template <class T>
PackedHead<T> pack_head(const Call<T>& call, std::int64_t b, std::int64_t h, bool values) {
  const AttentionInput<T>& in = call.in;
  const simd::Columns columns = call.tiling.columns;
  PackedHead<T> head;
  head.rows = key_rows(in, b);
  const std::int64_t n = std::ssize(head.rows), padded = round_up(n, columns.panel);
  head.panels = padded / columns.panel;
  head.k = Buffer<T>(padded * in.head_dim);
  std::vector<T> row;
  const auto source = [&](std::int64_t j) { return head.rows[static_cast<std::size_t>(j)]; };
  pack_side_by_side(columns, n, in.head_dim,
                    [&](std::int64_t j) {
                      return call.turned(keys(in, in.k), call.turn_k, b, source(j), h, T(1), row);
                    },
                    head.k.data());
  if (values) {
    head.v = Buffer<T>(padded * call.tiling.width);
    pack_rows(columns, n, in.head_dim, padded,
              [&](std::int64_t j) { return keys(in, in.v).row(b, source(j), h); }, head.v.data());
  }
  if (n < padded) {
    head.padding = Buffer<T>(columns.panel);
    std::fill_n(head.padding.data() + columns.panel - (padded - n), padded - n,
                -std::numeric_limits<T>::infinity());
  }
  return head;
}

// Queries first .. first+n-1 of one head and what is known of them.
template <class T>
struct PackedQueries {
  PackedQueries(const Call<T>& call, std::int64_t batch, std::int64_t head, std::int64_t from,
                std::int64_t count, T factor)
      : b(batch), h(head), first(from), n(count), rows(round_up(count, simd::strip_rows)),
        q(rows * call.tiling.strip_width), weights(rows * call.tiling.block), top(rows),
        limit(rows), sum(rows * call.tiling.columns.vector), out(rows * call.tiling.width) {
    std::vector<T> row;
    pack_strips(call.tiling.columns, n, call.in.head_dim,
                [&](std::int64_t i) {
                  return call.turned(queries(call.in, call.in.q), call.turn_q, b, first + i, h,
                                     factor, row);
                },
                q.data());
    std::fill_n(limit.data(), rows, -std::numeric_limits<T>::infinity());
    tile = {.strips = rows / simd::strip_rows,
            .head_dim = call.in.head_dim,
            .width = call.tiling.width,
            .q = q.data(),
            .weights = weights.data(),
            .top = top.data(),
            .limit = limit.data(),
            .sum = sum.data(),
            .out = out.data()};
  }

  std::int64_t b, h, first, n, rows;
  Buffer<T> q, weights, top, limit, sum, out;
  simd::QueryTile<T> tile;
};

// body(block) for the blocks of keys of a head.
template <class T, class F>
void for_blocks(const Call<T>& call, const PackedHead<T>& head, F body) {
  const std::int64_t panel = call.tiling.columns.panel, most = call.tiling.block / panel;
  for (std::int64_t p = 0; p < head.panels; p += most) {
    call.run.poll();
    const std::int64_t panels = std::min(most, head.panels - p);
    body(simd::KeyBlock<T>{.k = head.k.data(),
                           .v = head.v.data(),
                           .keys = head.panels * panel,
                           .first = p * panel,
                           .panels = panels,
                           .padding = p + panels == head.panels ? head.padding.data() : nullptr,
                           .biased = call.in.bias != nullptr});
  }
}

// Where the weight of query i for key j of a block stands.
template <class T>
std::int64_t weight_at(const Call<T>& call, const simd::KeyBlock<T>& block, std::int64_t i,
                       std::int64_t j) {
  const std::int64_t panel = call.tiling.columns.panel, rows = simd::strip_rows;
  return ((i / rows * block.panels + j / panel) * rows + i % rows) * panel + j % panel;
}

template <class T>
void put_bias(const Call<T>& call, const PackedHead<T>& head, const simd::KeyBlock<T>& block,
              PackedQueries<T>& q) {
  const AttentionInput<T>& in = call.in;
  const std::int64_t keys = block.panels * call.tiling.columns.panel;
  const std::int64_t real = std::min(keys, std::ssize(head.rows) - block.first);
  for (std::int64_t i = 0; i < q.n; ++i) {
    const std::int64_t row = (in.bias_heads == 1 ? 0 : q.h) * in.q_length + q.first + i;
    for (std::int64_t j = 0; j < real; ++j)
      q.weights.data()[weight_at(call, block, i, j)] =
          log2_e<T> * in.bias[row * in.k_length +
                              head.rows[static_cast<std::size_t>(block.first + j)]];
    for (std::int64_t j = real; j < keys; ++j)
      q.weights.data()[weight_at(call, block, i, j)] = -std::numeric_limits<T>::infinity();
  }
}

// Weighted values become means; a row without keys stays 0.
template <class T>
void put_out(const Call<T>& call, const PackedQueries<T>& q, T* out, T* log_sum_exp) {
  const AttentionInput<T>& in = call.in;
  const std::int64_t lanes = call.tiling.columns.vector;
  for (std::int64_t i = 0; i < q.n; ++i) {
    const T* parts = q.sum.data() + i * lanes;
    const T sum = std::accumulate(parts, parts + lanes, T(0));
    const T inverse = sum > 0 ? 1 / sum : 0;
    T* to = queries(in, out).row(q.b, q.first + i, q.h);
    for (std::int64_t c = 0; c < in.head_dim; ++c)
      to[c] = q.out.data()[i * call.tiling.width + c] * inverse;
    if (log_sum_exp != nullptr)
      log_sum_exp[(q.b * in.heads + q.h) * in.q_length + q.first + i] =
          ln_2<T> * (q.top.data()[i] + std::log2(sum));
  }
}

template <class T>
std::int64_t heads_at_once(const AttentionInput<T>& in, const Tiling<T>& tiling, int threads) {
  const double bytes = PackedHead<T>::bytes(tiling, in.head_dim, std::max(in.k_length, std::int64_t{1}));
  const std::int64_t small = static_cast<std::int64_t>(many_bytes / bytes);
  return std::min(in.batch * in.heads, std::max(small, std::int64_t{threads}));
}

// Queries of a tile: fewer than fit if there would not be several tiles for each thread.
template <class T>
std::int64_t tile_rows(const Call<T>& call, std::int64_t heads) {
  const std::int64_t tasks = 4 * call.run.threads(), least = 8 * simd::strip_rows;
  const std::int64_t share = call.in.q_length * heads / tasks;
  const std::int64_t most = std::min(call.tiling.rows, std::max(share, least));
  const std::int64_t tiles = (call.in.q_length + most - 1) / most;
  return round_up((call.in.q_length + tiles - 1) / tiles, simd::strip_rows);
}

// Pack some heads at a time, as many as there are threads and more while they are small, and call
// body(packed head, b, h, first query, queries) for their tiles of queries.
template <class T, class F>
void for_query_tiles(const Call<T>& call, bool values, F body) {
  const AttentionInput<T>& in = call.in;
  const std::int64_t heads = in.batch * in.heads;
  const std::int64_t some = heads_at_once(in, call.tiling, call.run.threads());
  for (std::int64_t first = 0; first < heads; first += some) {
    const std::int64_t n = std::min(some, heads - first);
    std::vector<PackedHead<T>> packed(static_cast<std::size_t>(n));
    call.run.parallel_for(n, [&](std::int64_t i) {
      packed[static_cast<std::size_t>(i)] =
          pack_head(call, (first + i) / in.heads, (first + i) % in.heads, values);
    });
    const std::int64_t rows = tile_rows(call, n), tiles = (in.q_length + rows - 1) / rows;
    call.run.parallel_for(n * tiles, [&](std::int64_t task) {
      const std::int64_t i = task / tiles, query = task % tiles * rows;
      body(packed[static_cast<std::size_t>(i)], (first + i) / in.heads, (first + i) % in.heads,
           query, std::min(rows, in.q_length - query));
    });
  }
}

template <class T>
void add_bias(const AttentionInput<T>& in, T* scores, Run& run) {
  run.parallel_for(in.batch * in.heads * in.q_length, [&](std::int64_t row) {
    const std::int64_t h = in.bias_heads == 1 ? 0 : row / in.q_length % in.heads;
    const T* bias = in.bias + (h * in.q_length + row % in.q_length) * in.k_length;
    for (std::int64_t j = 0; j < in.k_length; ++j) scores[row * in.k_length + j] += bias[j];
  });
}

} // namespace

template <class T>
void attention_forward(const AttentionInput<T>& in, T* out, std::type_identity_t<T>* log_sum_exp,
                       Run& run) {
  check_shapes(in, true);
  const std::int64_t size = queries(in, in.q).size();
  check_pointer(out, size, "out");
  check_values(in);
  if (size == 0) return;
  const Call<T> call(in, run);
  for_query_tiles(call, true,
                  [&](const PackedHead<T>& head, std::int64_t b, std::int64_t h, std::int64_t first,
                      std::int64_t n) {
                    PackedQueries<T> q(call, b, h, first, n, log2_e<T> * scale_of(in));
                    for_blocks(call, head, [&](const simd::KeyBlock<T>& block) {
                      if (block.biased) put_bias(call, head, block, q);
                      simd::attend(q.tile, block);
                    });
                    put_out(call, q, out, log_sum_exp);
                  });
}

template <class T>
void attention_scores(const AttentionInput<T>& in, T* scores, Run& run) {
  check_shapes(in, false);
  const std::int64_t q_rows = checked_size(checked_size(in.batch, in.heads, "batch x heads"),
                                           in.q_length, "batch x heads x q_length");
  const std::int64_t size = checked_size(q_rows, in.k_length, "scores");
  check_pointer(scores, size, "scores");
  check_scored_values(in);
  if (size == 0) return;
  const Call<T> call(in, run);
  std::fill_n(scores, size, -std::numeric_limits<T>::infinity());
  for_query_tiles(
      call, false,
      [&](const PackedHead<T>& head, std::int64_t b, std::int64_t h, std::int64_t first,
          std::int64_t n) {
        PackedQueries<T> q(call, b, h, first, n, scale_of(in));
        for_blocks(call, head, [&](const simd::KeyBlock<T>& block) {
          simd::score(q.tile, block);
          const std::int64_t real = std::min(block.panels * call.tiling.columns.panel,
                                             std::ssize(head.rows) - block.first);
          for (std::int64_t i = 0; i < n; ++i) {
            T* row = scores + ((b * in.heads + h) * in.q_length + first + i) * in.k_length;
            for (std::int64_t j = 0; j < real; ++j)
              row[head.rows[static_cast<std::size_t>(block.first + j)]] =
                  q.weights.data()[weight_at(call, block, i, j)];
          }
        });
      });
  if (in.bias != nullptr) add_bias(in, scores, run);
}

template void attention_forward<double>(const AttentionInput<double>&, double*, double*, Run&);
template void attention_forward<float>(const AttentionInput<float>&, float*, float*, Run&);
template void attention_scores<double>(const AttentionInput<double>&, double*, Run&);
template void attention_scores<float>(const AttentionInput<float>&, float*, Run&);

} // namespace cape
