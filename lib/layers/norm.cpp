module;
#include "internal/message.hpp"
#include "internal/sizes.hpp"
#include "layers/kernels/norm.hpp"
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

constexpr std::int64_t block_rows = 64; // that sums over rows are taken by

} // namespace

template <class T>
void layer_norm(std::span<T> x, std::span<const T> residual, std::span<const T> gain,
                std::span<const T> bias, double epsilon, std::span<T> y,
                std::span<RowMoments<T>> moments, Run& run) {
  const std::int64_t rows = std::ssize(moments), width = width_of(x.size(), rows, "x");
  if (!residual.empty()) check_length(residual.size(), rows * width, "residual");
  check_length(y.size(), rows * width, "y");
  if (rows == 0) return;
  check_length(gain.size(), width, "gain");
  check_length(bias.size(), width, "bias");
  run.parallel_for(ceil_div(rows, block_rows), [&](std::int64_t block) {
    for (std::int64_t i = block * block_rows; i < std::min(rows, (block + 1) * block_rows); ++i) {
      RowMoments<T>& m = moments[at(i)];
      simd::norm_row(x.data() + i * width, residual.empty() ? nullptr : residual.data() + i * width,
                     gain.data(), bias.data(), width, epsilon, y.data() + i * width, &m.mean,
                     &m.inverse_sd);
    }
  });
}

template <class T>
void layer_norm_backward(std::span<const T> x, std::span<const T> gain,
                         std::span<const RowMoments<T>> moments, std::span<const T> d_y,
                         std::span<T> d_x, std::span<T> d_gain, std::span<T> d_bias, Run& run,
                         Into into) {
  const std::int64_t rows = std::ssize(moments), width = width_of(x.size(), rows, "x");
  check_length(d_y.size(), rows * width, "d_y");
  check_length(d_x.size(), rows * width, "d_x");
  if (rows == 0) return;
  check_length(gain.size(), width, "gain");
  if (!d_gain.empty()) check_length(d_gain.size(), width, "d_gain");
  if (!d_bias.empty()) check_length(d_bias.size(), width, "d_bias");
  const std::int64_t blocks = ceil_div(rows, block_rows);
  std::vector<T> sums(at(blocks * 2 * width)); // of d_gain and d_bias, by block
  run.parallel_for(blocks, [&](std::int64_t block) {
    T* sum = sums.data() + block * 2 * width;
    for (std::int64_t i = block * block_rows; i < std::min(rows, (block + 1) * block_rows); ++i)
      simd::norm_row_backward(x.data() + i * width, moments[at(i)].mean, moments[at(i)].inverse_sd,
                              gain.data(), d_y.data() + i * width, width, into == Into::added,
                              d_x.data() + i * width, sum, sum + width);
  });
  for (std::int64_t block = 0; block < blocks; ++block) {
    const T* sum = sums.data() + block * 2 * width;
    if (!d_gain.empty())
      for (std::int64_t j = 0; j < width; ++j) d_gain[at(j)] += sum[j];
    if (!d_bias.empty())
      for (std::int64_t j = 0; j < width; ++j) d_bias[at(j)] += sum[width + j];
  }
}

template void layer_norm<float>(std::span<float>, std::span<const float>, std::span<const float>,
                                std::span<const float>, double, std::span<float>,
                                std::span<RowMoments<float>>, Run&);
template void layer_norm<double>(std::span<double>, std::span<const double>,
                                 std::span<const double>, std::span<const double>, double,
                                 std::span<double>, std::span<RowMoments<double>>, Run&);
template void layer_norm_backward<float>(std::span<const float>, std::span<const float>,
                                         std::span<const RowMoments<float>>, std::span<const float>,
                                         std::span<float>, std::span<float>, std::span<float>, Run&,
                                         Into);
template void layer_norm_backward<double>(std::span<const double>, std::span<const double>,
                                          std::span<const RowMoments<double>>,
                                          std::span<const double>, std::span<double>,
                                          std::span<double>, std::span<double>, Run&, Into);

} // namespace cape::layers
