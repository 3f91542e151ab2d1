module;
#include "internal/arma.hpp"
#include "internal/message.hpp"
#include "internal/sizes.hpp"
#include <algorithm>
#include <cstdint>
#include <functional>
#include <new>
#include <span>
#include <typeinfo>
module cape.layers;
#include "layers/checks.hpp"
#include "layers/gemm.hpp"

namespace cape::layers {
namespace {

// A piece of a product between two polls: so many rows of the left factor, or columns of the right.
// BLAS packs the other factor for each piece, so that they are not small.
constexpr std::int64_t piece_rows = 256, piece_columns = 128;

} // namespace

template <class T>
void linear(std::span<const T> x, std::int64_t rows, std::span<const T> weight,
            std::span<const T> bias, std::span<T> y, Run& run) {
  const std::int64_t in = width_of(x.size(), rows, "x"), out = width_of(y.size(), rows, "y");
  if (rows == 0) return;
  check_length(weight.size(), in * out, "weight");
  if (!bias.empty()) check_length(bias.size(), out, "bias");
  run.parallel_for(ceil_div(rows, piece_rows), [&](std::int64_t piece) {
    const std::int64_t first = piece * piece_rows, n = std::min(piece_rows, rows - first);
    T* to = y.data() + first * out;
    if (!bias.empty())
      for (std::int64_t i = 0; i < n; ++i) std::copy_n(bias.data(), out, to + i * out);
    gemm<T>(false, true, n, out, in, x.data() + first * in, in, weight.data(), in,
            bias.empty() ? T(0) : T(1), to, out);
  });
}

template <class T>
void linear_backward(std::span<const T> x, std::int64_t rows, std::span<const T> weight,
                     std::span<const T> d_y, std::span<T> d_x, std::span<T> d_weight,
                     std::span<T> d_bias, Run& run, Into into) {
  const std::int64_t in = width_of(x.size(), rows, "x"), out = width_of(d_y.size(), rows, "d_y");
  if (rows == 0) return;
  check_length(weight.size(), in * out, "weight");
  if (!d_x.empty()) check_length(d_x.size(), rows * in, "d_x");
  if (!d_weight.empty()) check_length(d_weight.size(), in * out, "d_weight");
  if (!d_bias.empty()) check_length(d_bias.size(), out, "d_bias");
  if (!d_x.empty())
    run.parallel_for(ceil_div(rows, piece_rows), [&](std::int64_t piece) {
      const std::int64_t first = piece * piece_rows, n = std::min(piece_rows, rows - first);
      gemm<T>(false, false, n, in, out, d_y.data() + first * out, out, weight.data(), in,
              into == Into::added ? T(1) : T(0), d_x.data() + first * in, in);
    });
  if (d_weight.empty() && d_bias.empty()) return;
  run.parallel_for(ceil_div(out, piece_columns), [&](std::int64_t piece) {
    const std::int64_t first = piece * piece_columns, n = std::min(piece_columns, out - first);
    if (!d_weight.empty()) // in runs of rows, between which there is a poll
      for (std::int64_t row = 0; row < rows; row += 16 * piece_rows) {
        run.poll();
        gemm<T>(true, false, n, in, std::min(16 * piece_rows, rows - row),
                d_y.data() + row * out + first, out, x.data() + row * in, in, T(1),
                d_weight.data() + first * in, in);
      }
    if (!d_bias.empty())
      for (std::int64_t row = 0; row < rows; ++row)
        for (std::int64_t j = first; j < first + n; ++j) d_bias[at(j)] += d_y[at(row * out + j)];
  });
}

template void linear<float>(std::span<const float>, std::int64_t, std::span<const float>,
                            std::span<const float>, std::span<float>, Run&);
template void linear<double>(std::span<const double>, std::int64_t, std::span<const double>,
                             std::span<const double>, std::span<double>, Run&);
template void linear_backward<float>(std::span<const float>, std::int64_t, std::span<const float>,
                                     std::span<const float>, std::span<float>, std::span<float>,
                                     std::span<float>, Run&, Into);
template void linear_backward<double>(std::span<const double>, std::int64_t,
                                      std::span<const double>, std::span<const double>,
                                      std::span<double>, std::span<double>, std::span<double>, Run&,
                                      Into);

} // namespace cape::layers
