module;
#include "internal/message.hpp"
#include "internal/sizes.hpp"
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <typeinfo>
#include <variant>
#include <vector>
module cape.transformer;
import cape.attention;
#include "transformer/objective.hpp"

namespace cape {
std::int64_t hidden_tokens(const Tokens& tokens) {
  return std::ranges::count_if(tokens.hidden, [](auto h) { return h != 0; });
}

template <class T>
double Objective<T>::operator()(std::span<const T> p, const Tokens& tokens,
                                std::span<const float> target, double cell_weight,
                                std::int64_t step, std::span<T> gradient, Run& run) {
  rows_.clear();
  target_.clear();
  label_.clear();
  for (std::int64_t i = 0; i < tokens.size(); ++i)
    if (tokens.hidden[at(i)] != 0) {
      rows_.push_back(static_cast<std::int32_t>(i));
      target_.push_back(static_cast<T>(target[at(i)]));
      label_.push_back(static_cast<std::int32_t>(target[at(i)]));
    }
  const std::vector<std::uint8_t> all(rows_.size(), 1);
  const bool slopes = !gradient.empty();
  network_.forward(p, tokens, step, slopes, run);
  const std::span<const T> predicted = network_.predict(p, rows_, run);
  d_predicted_.resize(slopes ? predicted.size() : 0);
  const bool square = backbone_.options.loss == ValueLoss::square;
  double loss =
      square ? layers::square_loss<T>(predicted, target_, all, 1, d_predicted_)
             : layers::cross_entropy<T>(predicted, backbone_.options.bins, label_, 1, d_predicted_);
  d_by_cell_.clear();
  if (square && cell_weight > 0) {
    const std::span<const T> by_cell = network_.predict_by_cell(p, rows_, run);
    d_by_cell_.resize(slopes ? by_cell.size() : 0);
    loss += cell_weight * layers::square_loss<T>(by_cell, target_, all, cell_weight, d_by_cell_);
  }
  if (slopes) {
    std::ranges::fill(gradient, T(0));
    network_.backward(p, d_predicted_, d_by_cell_, gradient, run);
  }
  return loss;
}

template class Objective<float>;
template class Objective<double>;

template <class T>
Encoded<T> encode(const Backbone& backbone, std::span<const T> parameters, const Tokens& tokens,
                  Run& run) {
  check_tokens(tokens, backbone);
  Network<T> network(backbone);
  check_parameters(parameters.size(), network.slots());
  const std::span<const T> rows = network.forward(parameters, tokens, -1, false, run);
  Encoded<T> out{{rows.begin(), rows.end()}, {}, {}};
  std::vector<std::int32_t> all(at(tokens.size()));
  std::iota(all.begin(), all.end(), 0);
  const std::span<const T> predicted = network.predict(parameters, all, run);
  out.predictions.assign(predicted.begin(), predicted.end());
  if (backbone.options.loss == ValueLoss::square) {
    const std::span<const T> by_cell = network.predict_by_cell(parameters, all, run);
    out.by_cell.assign(by_cell.begin(), by_cell.end());
  }
  const auto is_finite = [](T v) { return std::isfinite(v); };
  if (!std::ranges::all_of(out.tokens, is_finite) ||
      !std::ranges::all_of(out.predictions, is_finite) ||
      !std::ranges::all_of(out.by_cell, is_finite))
    throw Error(Status::invalid_argument,
                "the model's rows are not finite: its parameters or the values are too large");
  return out;
}

template <class T>
double pretrain_loss(const Backbone& backbone, std::span<const T> parameters, const Tokens& tokens,
                     std::span<const float> target, double cell_weight, std::int64_t step,
                     std::span<T> gradient, Run& run) {
  check_tokens(tokens, backbone);
  Objective<T> objective(backbone);
  check_parameters(parameters.size(), objective.slots());
  if (!gradient.empty()) check_parameters(gradient.size(), objective.slots());
  if (std::ssize(target) != tokens.size())
    throw Error(Status::dim_mismatch,
                message("there are ", target.size(), " targets of ", tokens.size(), " tokens"));
  if (!(cell_weight >= 0 && std::isfinite(cell_weight)))
    throw Error(Status::invalid_argument,
                message("cell_weight is ", cell_weight, "; it must lie in [0, inf)"));
  return objective(parameters, tokens, target, cell_weight, step, gradient, run);
}

template Encoded<float> encode<float>(const Backbone&, std::span<const float>, const Tokens&, Run&);
template Encoded<double> encode<double>(const Backbone&, std::span<const double>, const Tokens&,
                                        Run&);
template double pretrain_loss<float>(const Backbone&, std::span<const float>, const Tokens&,
                                     std::span<const float>, double, std::int64_t, std::span<float>,
                                     Run&);
template double pretrain_loss<double>(const Backbone&, std::span<const double>, const Tokens&,
                                      std::span<const float>, double, std::int64_t,
                                      std::span<double>, Run&);

} // namespace cape
