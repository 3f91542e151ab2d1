module;
#include "internal/message.hpp"
#include "internal/sizes.hpp"
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <new>
#include <span>
#include <typeinfo>
module cape.layers;
#include "layers/checks.hpp"

namespace cape::layers {

template <class T>
double square_loss(std::span<const T> prediction, std::span<const T> target,
                   std::span<const std::uint8_t> counts, double weight, std::span<T> d_prediction) {
  check_length(target.size(), std::ssize(prediction), "target");
  check_length(counts.size(), std::ssize(prediction), "counts");
  if (!d_prediction.empty())
    check_length(d_prediction.size(), std::ssize(prediction), "d_prediction");
  const auto n = static_cast<double>(std::ranges::count_if(counts, [](auto c) { return c != 0; }));
  double sum = 0;
  for (std::size_t i = 0; i < prediction.size(); ++i) {
    const double rest =
        counts[i] != 0 ? static_cast<double>(prediction[i]) - static_cast<double>(target[i]) : 0;
    sum += rest * rest;
    if (!d_prediction.empty())
      d_prediction[i] = counts[i] != 0 ? static_cast<T>(2 * weight * rest / n) : T(0);
  }
  return n > 0 ? sum / n : 0;
}

template <class T>
double cross_entropy(std::span<const T> logits, std::int64_t classes,
                     std::span<const std::int32_t> label, double weight, std::span<T> d_logits,
                     std::span<const double> class_weight) {
  if (!class_weight.empty()) check_length(class_weight.size(), classes, "class_weight");
  check_length(logits.size(), std::ssize(label) * classes, "logits");
  if (!d_logits.empty()) check_length(d_logits.size(), std::ssize(logits), "d_logits");
  for (const std::int32_t l : label)
    if (l >= classes)
      throw Error(Status::invalid_argument,
                  message("a label is ", l, "; there are ", classes, " classes, from 0"));
  const auto counts = [&](std::int32_t l) {
    return l < 0 ? 0.0 : class_weight.empty() ? 1.0 : class_weight[at(l)];
  };
  double n = 0, sum = 0;
  for (const std::int32_t l : label) n += counts(l);
  for (std::int64_t i = 0; i < std::ssize(label); ++i) {
    const std::int32_t l = label[at(i)];
    const std::span<const T> row = logits.subspan(at(i * classes), at(classes));
    if (l < 0) {
      if (!d_logits.empty())
        std::ranges::fill(d_logits.subspan(at(i * classes), at(classes)), T(0));
      continue;
    }
    const auto top = static_cast<double>(*std::ranges::max_element(row));
    double total = 0;
    for (const T v : row) total += std::exp(static_cast<double>(v) - top);
    sum += counts(l) * (top + std::log(total) - static_cast<double>(row[at(l)]));
    if (!d_logits.empty())
      for (std::int64_t c = 0; c < classes; ++c) {
        const double p = std::exp(static_cast<double>(row[at(c)]) - top) / total;
        d_logits[at(i * classes + c)] =
            static_cast<T>(weight * counts(l) * (p - (c == l ? 1 : 0)) / n);
      }
  }
  return n > 0 ? sum / n : 0;
}

template double square_loss<float>(std::span<const float>, std::span<const float>,
                                   std::span<const std::uint8_t>, double, std::span<float>);
template double square_loss<double>(std::span<const double>, std::span<const double>,
                                    std::span<const std::uint8_t>, double, std::span<double>);
template double cross_entropy<float>(std::span<const float>, std::int64_t,
                                     std::span<const std::int32_t>, double, std::span<float>,
                                     std::span<const double>);
template double cross_entropy<double>(std::span<const double>, std::int64_t,
                                      std::span<const std::int32_t>, double, std::span<double>,
                                      std::span<const double>);

} // namespace cape::layers
