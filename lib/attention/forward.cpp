// Blocked attention with an online softmax (M. Milakov and N. Gimelshein, Online normalizer
// calculation for softmax, 2018; T. Dao et al., FlashAttention, 2022). The scores are taken in
// base 2: exp(s) = 2^(s log2(e)), with log2(e) in the queries.
module;
#include "attention/kernels/attention.hpp"
#include "internal/message.hpp"
#include "internal/sizes.hpp"
#include "simd/aligned.hpp"
#include "simd/vector_math.hpp"
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <unistd.h>
#include <utility>
#include <vector>
module cape.attention;
#include "attention/checks.hpp"
#include "attention/exact.hpp"

namespace cape {
namespace {

// The keys of a head that are not padding, R(phi) k, and their values.
template <class T>
class PackedHead {
public:
  PackedHead(const Call<T>& call, bool values)
      : k(most(call) * call.in.head_dim), v(values ? most(call) * call.tiling.width : 0),
        padding(call.tiling.columns.panel), call_(call), values_(values),
        turned_(call.tiling.columns.panel * call.in.head_dim) {}

  void load(std::int64_t batch, std::int64_t head);

  std::int64_t b = 0, h = 0;
  std::vector<std::int64_t> rows; // their numbers
  std::int64_t padded = 0;        // how many they are, up to a panel
  simd::Aligned<T> k, v;
  simd::Aligned<T> padding; // of the last panel

private:
  static std::int64_t most(const Call<T>& call) {
    return round_up(call.in.k_length, call.tiling.columns.panel);
  }

  const Call<T>& call_;
  bool values_;
  simd::Aligned<T> turned_;
};

template <class T>
void PackedHead<T>::load(std::int64_t batch, std::int64_t head) {
  const AttentionInput<T>& in = call_.in;
  const simd::Columns columns = call_.tiling.columns;
  b = batch, h = head;
  rows = key_rows(in, b);
  const std::int64_t n = std::ssize(rows), head_dim = in.head_dim;
  padded = round_up(n, columns.panel);
  if (n < padded) k.fill(0);
  if (values_ && (n < padded || head_dim < call_.tiling.width)) v.fill(0);
  for (std::int64_t first = 0; first < n; first += columns.panel) {
    const std::int64_t some = std::min(columns.panel, n - first);
    for (std::int64_t j = 0; j < some; ++j) {
      const std::int64_t row = rows[static_cast<std::size_t>(first + j)];
      prefetch(k_of(in), b, row + rows_ahead, h);
      call_.turn_k.turn(row, h, T(1), T(1), k_of(in).row(b, row, h), turned_.data() + j * head_dim);
      if (!values_) continue;
      prefetch(v_of(in), b, row + rows_ahead, h);
      pack_row(columns, first + j, padded, v_of(in).row(b, row, h), head_dim, v.data());
    }
    simd::transpose(turned_.data(), head_dim, some, head_dim, k.data() + first * head_dim,
                    columns.panel);
  }
  padding.fill(0);
  std::fill_n(padding.data() + columns.panel - (padded - n), padded - n,
              -std::numeric_limits<T>::infinity());
}

// Some queries of a head and what is known of them.
template <class T>
class Queries {
public:
  Queries(const Call<T>& call, std::int64_t most)
      : call_(call), rows_(round_up(most, simd::strip_rows)), turned_(call.in.head_dim),
        q_(rows_ * call.tiling.strip_width), weights_(rows_ * call.tiling.block), top_(rows_),
        limit_(rows_), sum_(rows_ * call.tiling.columns.vector), out_(rows_ * call.tiling.width) {}

  // Queries from .. from+count-1 of a head, times factor.
  void load(std::int64_t batch, std::int64_t head, std::int64_t from, std::int64_t count,
            T factor) {
    const AttentionInput<T>& in = call_.in;
    b = batch, h = head, first = from, n = count;
    if (n < rows_) q_.fill(0);
    for (std::int64_t i = 0; i < n; ++i) {
      prefetch(q_of(in), b, first + i + rows_ahead, h);
      call_.turn_q.turn(first + i, h, T(1), factor, q_of(in).row(b, first + i, h), turned_.data());
      pack_strip_row(call_.tiling.columns, i, turned_.data(), in.head_dim, q_.data());
    }
    top_.fill(0);
    limit_.fill(-std::numeric_limits<T>::infinity());
    sum_.fill(0);
    out_.fill(0);
  }

  simd::QueryTile<T> tile() {
    return {.strips = ceil_div(n, simd::strip_rows),
            .head_dim = call_.in.head_dim,
            .width = call_.tiling.width,
            .q = q_.data(),
            .weights = weights_.data(),
            .top = top_.data(),
            .limit = limit_.data(),
            .sum = sum_.data(),
            .out = out_.data()};
  }

  std::int64_t b = 0, h = 0, first = 0, n = 0;

private:
  const Call<T>& call_;
  std::int64_t rows_;
  simd::Aligned<T> turned_, q_, weights_, top_, limit_, sum_, out_;
};

// body(block) for the blocks of keys of a head.
template <class T, class F>
void for_blocks(const Call<T>& call, const PackedHead<T>& head, F body) {
  const std::int64_t panel = call.tiling.columns.panel;
  for (std::int64_t first = 0; first < head.padded; first += call.tiling.block) {
    call.run.poll();
    const std::int64_t keys = std::min(call.tiling.block, head.padded - first);
    const bool last = first + keys == head.padded;
    body(simd::KeyBlock<T>{.k = head.k.data(),
                           .v = head.v.data(),
                           .keys = head.padded,
                           .first = first,
                           .panels = keys / panel,
                           .padding = last ? head.padding.data() : nullptr,
                           .biased = call.in.bias != nullptr});
  }
}

// Where the weight of query i for key j of a block stands.
template <class T>
T& weight_at(const Call<T>& call, const simd::QueryTile<T>& tile, const simd::KeyBlock<T>& block,
             std::int64_t i, std::int64_t j) {
  const std::int64_t panel = call.tiling.columns.panel, rows = simd::strip_rows;
  return tile
      .weights[((i / rows * block.panels + j / panel) * rows + i % rows) * panel + j % panel];
}

template <class T>
void put_bias(const Call<T>& call, const PackedHead<T>& head, const simd::KeyBlock<T>& block,
              Queries<T>& q) {
  const std::int64_t panel = call.tiling.columns.panel;
  const std::int64_t real = std::ssize(head.rows) - block.first;
  for (std::int64_t i = 0; i < q.n; ++i) {
    const T* bias = bias_row(call.in, call.in.bias, q.h, q.first + i);
    for (std::int64_t first = 0; first < block.panels * panel; first += panel) {
      T* to = &weight_at(call, q.tile(), block, i, first);
      const std::int64_t some = std::clamp(real - first, std::int64_t{0}, panel);
      const std::int64_t* key = head.rows.data() + block.first + first;
      for (std::int64_t j = 0; j < some; ++j) to[j] = log2_e<T> * bias[key[j]];
      std::fill(to + some, to + panel, -std::numeric_limits<T>::infinity());
    }
  }
}

template <class T>
void put_out(const Call<T>& call, Queries<T>& q, T* out, T* log_sum_exp) {
  const AttentionInput<T>& in = call.in;
  const simd::QueryTile<T> tile = q.tile();
  for (std::int64_t i = 0; i < q.n; ++i) {
    std::copy_n(tile.out + i * tile.width, in.head_dim,
                outputs(in, out).row(q.b, q.first + i, q.h));
    if (log_sum_exp != nullptr)
      log_sum_exp[(q.b * in.heads + q.h) * in.q_length + q.first + i] =
          ln_2<T> * (tile.top[i] + std::log2(tile.sum[i * call.tiling.columns.vector]));
  }
}

// body(packed head, queries to load, number of the first, their number) for the tiles of queries of
// every head. Threads take some heads each if there are several for each of them; otherwise they
// share out the tiles of a head.
template <class T, class F>
void for_query_tiles(const Call<T>& call, bool values, F body) {
  const AttentionInput<T>& in = call.in;
  const std::int64_t heads = in.batch * in.heads, threads = call.run.threads();
  const std::int64_t rows = tile_rows(in, call.tiling, threads);
  if (whole_heads(in, threads)) {
    const std::int64_t tasks = threads == 1 ? 1 : std::min(heads, 8 * threads);
    call.run.parallel_for(tasks, [&](std::int64_t task) {
      PackedHead<T> head(call, values);
      Queries<T> q(call, rows);
      for (std::int64_t bh = heads * task / tasks; bh < heads * (task + 1) / tasks; ++bh) {
        head.load(bh / in.heads, bh % in.heads);
        for (std::int64_t first = 0; first < in.q_length; first += rows)
          body(head, q, first, std::min(rows, in.q_length - first));
      }
    });
    return;
  }
  PackedHead<T> head(call, values);
  for (std::int64_t bh = 0; bh < heads; ++bh) {
    head.load(bh / in.heads, bh % in.heads);
    call.run.parallel_for(ceil_div(in.q_length, rows), [&](std::int64_t tile) {
      Queries<T> q(call, rows);
      body(head, q, tile * rows, std::min(rows, in.q_length - tile * rows));
    });
  }
}

template <class T>
void add_bias(const AttentionInput<T>& in, T* scores, Run& run) {
  run.parallel_for(in.batch * in.heads * in.q_length, [&](std::int64_t row) {
    const T* bias = bias_row(in, in.bias, row / in.q_length % in.heads, row % in.q_length);
    for (std::int64_t j = 0; j < in.k_length; ++j) scores[row * in.k_length + j] += bias[j];
  });
}

} // namespace

template <class T>
void attention_forward(const AttentionInput<T>& in, T* out, std::type_identity_t<T>* log_sum_exp,
                       Run& run) {
  check_shapes(in, true);
  const std::int64_t size = q_size(in);
  check_pointer(out, size, "out");
  check_workspace(in, attention_workspace(in, run.threads()).forward);
  check_values(in);
  if (size == 0) return;
  const Call<T> call(in, run);
  const T factor = log2_e<T> * scale_of(in);
  for_query_tiles(
      call, true,
      [&](const PackedHead<T>& head, Queries<T>& q, std::int64_t first, std::int64_t n) {
        q.load(head.b, head.h, first, n, factor);
        for_blocks(call, head, [&](const simd::KeyBlock<T>& block) {
          if (block.biased) put_bias(call, head, block, q);
          simd::attend(q.tile(), block);
        });
        simd::finish(q.tile());
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
  check_workspace(in, attention_workspace(in, run.threads()).forward);
  check_scored_values(in);
  if (size == 0) return;
  const Call<T> call(in, run);
  std::fill_n(scores, size, -std::numeric_limits<T>::infinity());
  for_query_tiles(
      call, false,
      [&](const PackedHead<T>& head, Queries<T>& q, std::int64_t first, std::int64_t n) {
        q.load(head.b, head.h, first, n, scale_of(in));
        T* rows = scores + ((head.b * in.heads + head.h) * in.q_length + first) * in.k_length;
        for_blocks(call, head, [&](const simd::KeyBlock<T>& block) {
          simd::score(q.tile(), block);
          const std::int64_t real = std::min(block.panels * call.tiling.columns.panel,
                                             std::ssize(head.rows) - block.first);
          for (std::int64_t i = 0; i < n; ++i)
            for (std::int64_t j = 0; j < real; ++j)
              rows[i * in.k_length + head.rows[static_cast<std::size_t>(block.first + j)]] =
                  weight_at(call, q.tile(), block, i, j);
        });
      });
  if (in.bias != nullptr) add_bias(in, scores, run);
}

template void attention_forward<double>(const AttentionInput<double>&, double*, double*, Run&);
template void attention_forward<float>(const AttentionInput<float>&, float*, float*, Run&);
template void attention_scores<double>(const AttentionInput<double>&, double*, Run&);
template void attention_scores<float>(const AttentionInput<float>&, float*, Run&);

} // namespace cape
