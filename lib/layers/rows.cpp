module;
#include "attention/kernels/attention.hpp"
#include "internal/message.hpp"
#include "internal/sizes.hpp"
#include <algorithm>
#include <cstdint>
#include <functional>
#include <new>
#include <span>
#include <typeinfo>
#include <vector>
module cape.layers;
#include "layers/checks.hpp"

namespace cape::layers {
namespace {

constexpr std::int64_t block_rows = 64;

// body(i) for the rows, some at a time on a thread.
template <class F>
void for_rows(std::int64_t rows, Run& run, F body) {
  run.parallel_for(ceil_div(rows, block_rows), [&](std::int64_t block) {
    for (std::int64_t i = block * block_rows; i < std::min(rows, (block + 1) * block_rows); ++i)
      body(i);
  });
}

// The rows of a table that an index may name.
std::int64_t check_index(std::span<const std::int32_t> index, std::size_t table,
                         std::int64_t width) {
  const std::int64_t rows = width > 0 ? static_cast<std::int64_t>(table) / width : 0;
  check_length(table, rows * width, "table");
  const auto wrong = std::ranges::find_if(index, [&](auto i) { return i < -1 || i >= rows; });
  if (wrong != index.end())
    throw Error(Status::invalid_argument,
                message("index ", wrong - index.begin(), " is ", *wrong,
                        "; it must be -1 or one of the ", rows, " rows of the table"));
  return rows;
}

} // namespace

template <class T>
void add_rows(std::span<const T> table, std::int64_t width, std::span<const std::int32_t> index,
              std::span<T> y, Run& run) {
  check_index(index, table.size(), width);
  check_length(y.size(), std::ssize(index) * width, "y");
  for_rows(std::ssize(index), run, [&](std::int64_t i) {
    const std::int64_t row = index[at(i)];
    if (row < 0) return;
    const T* from = table.data() + row * width;
    T* to = y.data() + i * width;
    for (std::int64_t j = 0; j < width; ++j) to[j] += from[j];
  });
}

template <class T>
void add_rows_backward(std::span<const T> d_y, std::int64_t width,
                       std::span<const std::int32_t> index, std::span<T> d_table, Run& run) {
  const std::int64_t rows = check_index(index, d_table.size(), width);
  check_length(d_y.size(), std::ssize(index) * width, "d_y");
  // Where each row of the table stands in the index, in its order.
  std::vector<std::int64_t> first(at(rows + 1));
  for (const std::int32_t row : index)
    if (row >= 0) ++first[at(row + 1)];
  for (std::int64_t row = 0; row < rows; ++row) first[at(row + 1)] += first[at(row)];
  std::vector<std::int64_t> place(at(first.back())), next = first;
  for (std::int64_t i = 0; i < std::ssize(index); ++i)
    if (index[at(i)] >= 0) place[at(next[at(index[at(i)])]++)] = i;
  for_rows(rows, run, [&](std::int64_t row) {
    T* to = d_table.data() + row * width;
    for (std::int64_t p = first[at(row)]; p < first[at(row + 1)]; ++p) {
      const T* from = d_y.data() + place[at(p)] * width;
      for (std::int64_t j = 0; j < width; ++j) to[j] += from[j];
    }
  });
}

template <class T>
void turn_rows(std::span<T> x, std::span<const std::int32_t> index, const Turns<T>& turns,
               bool backward, Run& run) {
  const std::int64_t pairs = turns.pairs;
  check_index(index, turns.cosine.size(), pairs);
  check_length(turns.sine.size(), std::ssize(turns.cosine), "turns.sine");
  check_length(x.size(), std::ssize(index) * 2 * pairs, "x");
  for_rows(std::ssize(index), run, [&](std::int64_t i) {
    const std::int64_t row = index[at(i)];
    if (row < 0) return;
    T* pair = x.data() + i * 2 * pairs;
    simd::turn(pair, turns.cosine.data() + row * pairs, turns.sine.data() + row * pairs, T(1),
               backward ? T(-1) : T(1), pairs, pair);
  });
}

template <class T>
void turn_rows_angle_backward(std::span<const T> y, std::span<const T> d_y, std::span<T> d_angle,
                              Run& run) {
  const std::int64_t pairs = std::ssize(d_angle);
  check_length(y.size(), 2 * pairs, "y");
  check_length(d_y.size(), 2 * pairs, "d_y");
  for_rows(pairs, run, [&](std::int64_t t) {
    d_angle[at(t)] = y[at(2 * t)] * d_y[at(2 * t + 1)] - y[at(2 * t + 1)] * d_y[at(2 * t)];
  });
}

template <class T>
void drop_out(std::span<T> x, double rate, std::string_view purpose, std::uint64_t number,
              Run& run) {
  if (!(rate >= 0 && rate < 1))
    throw Error(Status::invalid_argument, message("rate is ", rate, "; it must lie in [0, 1)"));
  const auto dropped = static_cast<std::uint64_t>(rate * 65536 + 0.5); // of 65536
  if (dropped == 0) return;
  if (dropped == 65536)
    throw Error(Status::invalid_argument, message("rate is ", rate, ", which is 1 when rounded"));
  const T factor = T(65536) / static_cast<T>(65536 - dropped);
  constexpr std::int64_t block = 1 << 12;
  const std::uint64_t stream = hash(purpose);
  run.parallel_for(ceil_div(std::ssize(x), block), [&](std::int64_t b) {
    Rng rng(run.seed(), {stream, number, static_cast<std::uint64_t>(b)});
    std::uint64_t bits = 0;
    for (std::int64_t i = b * block; i < std::min(std::ssize(x), (b + 1) * block); ++i) {
      if (i % 4 == 0) bits = rng.bits();
      x[at(i)] = (bits & 0xffff) < dropped ? T(0) : factor * x[at(i)];
      bits >>= 16;
    }
  });
}

template void add_rows<float>(std::span<const float>, std::int64_t, std::span<const std::int32_t>,
                              std::span<float>, Run&);
template void add_rows<double>(std::span<const double>, std::int64_t, std::span<const std::int32_t>,
                               std::span<double>, Run&);
template void add_rows_backward<float>(std::span<const float>, std::int64_t,
                                       std::span<const std::int32_t>, std::span<float>, Run&);
template void add_rows_backward<double>(std::span<const double>, std::int64_t,
                                        std::span<const std::int32_t>, std::span<double>, Run&);
template void turn_rows<float>(std::span<float>, std::span<const std::int32_t>, const Turns<float>&,
                               bool, Run&);
template void turn_rows<double>(std::span<double>, std::span<const std::int32_t>,
                                const Turns<double>&, bool, Run&);
template void turn_rows_angle_backward<float>(std::span<const float>, std::span<const float>,
                                              std::span<float>, Run&);
template void turn_rows_angle_backward<double>(std::span<const double>, std::span<const double>,
                                               std::span<double>, Run&);
template void drop_out<float>(std::span<float>, double, std::string_view, std::uint64_t, Run&);
template void drop_out<double>(std::span<double>, double, std::string_view, std::uint64_t, Run&);

} // namespace cape::layers
