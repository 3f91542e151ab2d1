module;
#include "internal/message.hpp"
#include "internal/sizes.hpp"
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <typeinfo>
#include <variant>
#include <vector>
module cape.transformer;
import cape.attention;
#include "transformer/cell_head.hpp"

namespace cape {
namespace {

// Numbers of its dropout, behind those of all blocks.
constexpr std::int64_t site_of_head = 4000;

} // namespace

template <class T>
std::span<const T> CellVectors<T>::operator()(std::span<const T> rows, const Tokens& t) {
  const std::int64_t cells = t.cells(), of_rows = std::ssize(rows) / t.size();
  out_.assign(at(cells * width(of_rows)), T(0));
  largest_.assign(pooling_ == Pooling::max ? out_.size() : 0, -1);
  for (std::int64_t c = 0; c < cells; ++c) {
    const std::int64_t cls = t.start[at(c)], end = t.start[at(c + 1)];
    T* to = out_.data() + c * width(of_rows);
    if (pooling_ == Pooling::cls || pooling_ == Pooling::cls_mean) {
      to = std::copy_n(rows.data() + cls * of_rows, of_rows, to);
      if (pooling_ == Pooling::cls) continue;
    }
    for (std::int64_t i = cls + 1; i < end; ++i)
      for (std::int64_t j = 0; j < of_rows; ++j) {
        const T value = rows[at(i * of_rows + j)];
        if (pooling_ != Pooling::max)
          to[j] += value / static_cast<T>(end - cls - 1);
        else if (i == cls + 1 || value > to[j]) {
          to[j] = value;
          largest_[at(c * of_rows + j)] = i;
        }
      }
  }
  return out_;
}

template <class T>
void CellVectors<T>::backward(std::span<const T> d, const Tokens& t, std::span<T> d_rows) const {
  const std::int64_t of_rows = std::ssize(d_rows) / t.size();
  for (std::int64_t c = 0; c < t.cells(); ++c) {
    const std::int64_t cls = t.start[at(c)], end = t.start[at(c + 1)];
    const T* from = d.data() + c * width(of_rows);
    if (pooling_ == Pooling::cls || pooling_ == Pooling::cls_mean) {
      for (std::int64_t j = 0; j < of_rows; ++j) d_rows[at(cls * of_rows + j)] += from[j];
      if (pooling_ == Pooling::cls) continue;
      from += of_rows;
    }
    if (pooling_ == Pooling::max) {
      for (std::int64_t j = 0; j < of_rows; ++j)
        if (const std::int64_t i = largest_[at(c * of_rows + j)]; i >= 0)
          d_rows[at(i * of_rows + j)] += from[j];
      continue;
    }
    for (std::int64_t i = cls + 1; i < end; ++i)
      for (std::int64_t j = 0; j < of_rows; ++j)
        d_rows[at(i * of_rows + j)] += from[j] / static_cast<T>(end - cls - 1);
  }
}

template <class T>
std::span<const T> CellHead<T>::forward(std::span<const T> p, std::span<const T> rows,
                                        const Tokens& tokens, std::int64_t step, Run& run) {
  dropout_ = {dropout_rate_, step};
  const std::size_t layers = slots_.head_weight.size();
  in_.resize(layers);
  out_.resize(layers);
  const std::span<const T> vectors = vectors_(rows, tokens);
  in_[0].assign(vectors.begin(), vectors.end());
  for (std::size_t l = 0; l < layers; ++l) {
    dropout_(std::span<T>(in_[l]), site_of_head + static_cast<std::int64_t>(l), run);
    out_[l].resize(at(tokens.cells() * slots_.head_weight[l].rows));
    layers::linear<T>(in_[l], tokens.cells(), part(p, slots_.head_weight[l]),
                      part(p, slots_.head_bias[l]), out_[l], run);
    if (l + 1 == layers) break;
    in_[l + 1].resize(out_[l].size());
    layers::activate<T>(layers::Activation::relu, out_[l], in_[l + 1], run);
  }
  return out_.back();
}

template <class T>
void CellHead<T>::backward(std::span<const T> p, std::span<const T> d_out, const Tokens& tokens,
                           std::span<T> d_rows, std::span<T> gradient, Run& run) {
  std::vector<T> d(d_out.begin(), d_out.end()), d_in;
  for (std::size_t l = slots_.head_weight.size(); l-- > 0;) {
    d_in.resize(in_[l].size());
    layers::linear_backward<T>(in_[l], tokens.cells(), part(p, slots_.head_weight[l]), d, d_in,
                               part(gradient, slots_.head_weight[l]),
                               part(gradient, slots_.head_bias[l]), run);
    dropout_(std::span<T>(d_in), site_of_head + static_cast<std::int64_t>(l), run);
    if (l > 0) layers::activate_backward<T>(layers::Activation::relu, out_[l - 1], d_in, d_in, run);
    d.swap(d_in);
  }
  if (!d_rows.empty()) vectors_.backward(d, tokens, d_rows);
}

template class CellVectors<float>;
template class CellVectors<double>;
template class CellHead<float>;
template class CellHead<double>;

} // namespace cape
