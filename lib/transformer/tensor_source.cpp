module;
#include "internal/message.hpp"
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <typeinfo>
#include <utility>
#include <variant>
#include <vector>
module cape.transformer;
#include "transformer/tensor_source.hpp"

namespace cape {
namespace {

std::string text_of(const std::vector<std::int64_t>& shape) {
  std::string sides;
  for (const std::int64_t side : shape)
    sides += (sides.empty() ? "" : ", ") +
             (side == any_side ? std::string("1 or more") : std::to_string(side));
  return "[" + sides + "]";
}

} // namespace

TensorSource::TensorSource(const Tensors& tensors, std::string_view wrong, Run& run)
    : wrong_(wrong), run_(run) {
  for (const Tensor& tensor : tensors.all)
    if (!by_name_.emplace(tensor.name, &tensor).second)
      refuse("there are two tensors \"", tensor.name, "\"");
}

bool TensorSource::has(std::string_view name) const { return by_name_.contains(name); }

std::pair<std::int64_t, std::int64_t> TensorSource::sides(std::string_view name) const {
  const Tensor& tensor = look(name);
  check_shape(tensor, {any_side, any_side});
  return {tensor.shape[0], tensor.shape[1]};
}

const Tensor& TensorSource::take(std::string_view name, const std::vector<std::int64_t>& shape) {
  const Tensor& tensor = look(name);
  check_shape(tensor, shape);
  double size = 1; // exact where it can be as many as there are values
  for (const std::int64_t side : tensor.shape) size *= static_cast<double>(side);
  if (static_cast<double>(tensor.values.size()) != size)
    refuse("tensor \"", name, "\" has ", tensor.values.size(), " values, but the shape ",
           text_of(tensor.shape));
  if (!all_finite(tensor.values, run_)) refuse("tensor \"", name, "\" has a value not finite");
  by_name_.erase(tensor.name);
  return tensor;
}

void TensorSource::check_empty(const std::function<bool(std::string_view)>& aside) const {
  for (const auto& [name, tensor] : by_name_)
    if (!aside || !aside(name)) refuse("tensor \"", name, "\" belongs to none");
}

const Tensor& TensorSource::look(std::string_view name) const {
  const auto found = by_name_.find(name);
  if (found == by_name_.end()) refuse("there is no tensor \"", name, "\"");
  return *found->second;
}

void TensorSource::check_shape(const Tensor& tensor, const std::vector<std::int64_t>& shape) const {
  const auto fits = [](std::int64_t side, std::int64_t expected) {
    return expected == any_side ? side >= 1 : side == expected;
  };
  if (!std::ranges::equal(tensor.shape, shape, fits))
    refuse("tensor \"", tensor.name, "\" has the shape ", text_of(tensor.shape), "; it must be ",
           text_of(shape));
}

bool all_finite(std::span<const float> values, Run& run) {
  constexpr std::size_t piece = std::size_t{1} << 20;
  for (std::size_t first = 0; first < values.size(); first += piece) {
    run.poll();
    const auto part = values.subspan(first, std::min(piece, values.size() - first));
    if (!std::ranges::all_of(part, [](float v) { return std::isfinite(v); })) return false;
  }
  return true;
}

} // namespace cape
