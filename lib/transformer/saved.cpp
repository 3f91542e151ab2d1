module;
#include "internal/message.hpp"
#include "internal/sizes.hpp"
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <new>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <variant>
#include <vector>
module cape.transformer;
#include "transformer/parameters.hpp"
#include "transformer/tensor_source.hpp"

namespace cape {
namespace {

using nlohmann::json;

constexpr std::string_view format_key = "cape.format", format = "backbone 1";
constexpr std::string_view version_key = "cape.version", features_key = "features",
                           option_keys = "model.", positions_name = "positions";
constexpr std::string_view head_kind = "head.kind", head_names = "head.names",
                           head_pooling = "head.pooling", head_layers = "head.hidden_layers",
                           head_mean = "head.mean", head_sd = "head.sd";
constexpr std::string_view kinds[] = {"none", "classes", "numbers"},
                           poolings[] = {"cls", "mean", "max", "cls_mean"};

constexpr std::string_view no_model = "these tensors are no model";

template <class... Parts>
[[noreturn]] void damaged(const Parts&... parts) {
  throw Error(Status::bad_format, message(no_model, ": ", parts...));
}

// ---------------------------------------------------------------------------------------- texts

const std::string& text_of(const Tensors& tensors, std::string_view key) {
  const std::string* text = tensors.find_metadata(key);
  if (text == nullptr) damaged("metadata have no \"", key, "\"");
  return *text;
}

BackboneOptions options_of(const Tensors& tensors) {
  BackboneOptions options;
  const OptionFields all = fields(options);
  for (const auto& [key, text] : tensors.metadata)
    if (key.starts_with(option_keys) &&
        std::ranges::find(all, key, &OptionField::name) == all.end())
      damaged("there is no option \"", key, "\"");
  for (const OptionField& field : all) set_option(field, text_of(tensors, field.name));
  return options;
}

// An array of texts, or of numbers.
template <class T>
std::vector<T> array_of(const Tensors& tensors, std::string_view key) {
  constexpr bool texts = std::is_same_v<T, std::string>;
  const std::string& text = text_of(tensors, key);
  const auto fail = [&] {
    damaged("\"", key, "\" is no JSON array of ", texts ? "texts" : "numbers");
  };
  // Not more than an array is ever built of what is read.
  const auto take = [&](int depth, json::parse_event_t event, json& value) {
    const bool fits = event == json::parse_event_t::array_start ? depth == 0
                      : event == json::parse_event_t::array_end ? true
                      : event == json::parse_event_t::value
                          ? depth == 1 && (texts ? value.is_string() : value.is_number())
                          : false;
    if (!fits) fail();
    return true;
  };
  try {
    return json::parse(text, take).template get<std::vector<T>>();
  } catch (const json::exception&) {
    fail();
  }
  return {};
}

// The number of a text among some.
std::int32_t choice_of(const Tensors& tensors, std::string_view key,
                       std::span<const std::string_view> names) {
  const auto found = std::ranges::find(names, text_of(tensors, key));
  if (found == names.end()) damaged("\"", key, "\" is \"", text_of(tensors, key), "\"");
  return static_cast<std::int32_t>(found - names.begin());
}

Head head_of(const Tensors& tensors) {
  Head head;
  if (tensors.find_metadata(head_kind) == nullptr) return head;
  head.kind = static_cast<HeadKind>(choice_of(tensors, head_kind, kinds));
  if (head.kind == HeadKind::none) damaged("\"", head_kind, "\" is \"none\"");
  head.names = array_of<std::string>(tensors, head_names);
  head.pooling = static_cast<Pooling>(choice_of(tensors, head_pooling, poolings));
  const std::string& layers = text_of(tensors, head_layers);
  const auto end =
      std::from_chars(layers.data(), layers.data() + layers.size(), head.hidden_layers);
  if (end.ec != std::errc() || end.ptr != layers.data() + layers.size())
    damaged("\"", head_layers, "\" is \"", layers, "\"");
  if (head.kind == HeadKind::classes) return head;
  head.mean = array_of<double>(tensors, head_mean);
  head.sd = array_of<double>(tensors, head_sd);
  return head;
}

void put_head(const Head& head, Tensors& tensors) {
  if (head.kind == HeadKind::none) return;
  const auto put = [&](std::string_view key, std::string text) {
    tensors.metadata.emplace_back(key, std::move(text));
  };
  put(head_kind, std::string(kinds[static_cast<std::size_t>(head.kind)]));
  put(head_names, json(head.names).dump());
  put(head_pooling, std::string(poolings[static_cast<std::size_t>(head.pooling)]));
  put(head_layers, std::to_string(head.hidden_layers));
  if (head.kind == HeadKind::classes) return;
  put(head_mean, json(head.mean).dump());
  put(head_sd, json(head.sd).dump());
}

} // namespace

bool is_utf8(const std::string& text) {
  try {
    json(text).dump();
    return true;
  } catch (const json::type_error&) {
    return false;
  }
}

Tensors to_tensors(const Backbone& backbone, Run& run) {
  const Slots slots = checked_slots(backbone);
  if (std::ssize(backbone.parameters) != slots.size)
    throw Error(Status::dim_mismatch, message("there are ", backbone.parameters.size(),
                                              " parameters; the model has ", slots.size));
  if (!all_finite(backbone.parameters, run))
    throw Error(Status::invalid_argument, "a parameter of the model is not finite");
  Tensors tensors;
  auto& metadata = tensors.metadata;
  metadata.emplace_back(format_key, format);
  metadata.emplace_back(version_key,
                        message(version_major, ".", version_minor, ".", version_patch));
  BackboneOptions options = backbone.options;
  for (const OptionField& field : fields(options))
    metadata.emplace_back(field.name, option_text(field));
  metadata.emplace_back(features_key, json(backbone.features).dump());
  put_head(backbone.head, tensors);
  check_memory(4.0 * static_cast<double>(slots.size + backbone.positions.size()),
               "the tensors of a model");
  for (const Slot& slot : slots.all) {
    run.poll();
    const auto values = part<const float>(backbone.parameters, slot);
    tensors.all.push_back({slot.name, {slot.rows, slot.columns}, {values.begin(), values.end()}});
  }
  if (const Matrix& m = backbone.positions; !m.empty()) {
    Tensor& tensor =
        tensors.all.emplace_back(std::string(positions_name), std::vector{m.rows(), m.cols()});
    for (std::int64_t i = 0; i < m.rows(); ++i)
      for (std::int64_t j = 0; j < m.cols(); ++j)
        tensor.values.push_back(static_cast<float>(m(i, j)));
  }
  return tensors;
}

Backbone from_tensors(const Tensors& tensors, Run& run) try {
  if (const std::string& found = text_of(tensors, format_key); found != format)
    damaged("its \"", format_key, "\" is \"", found, "\"; this version reads \"", format, "\"");
  Backbone backbone{
      options_of(tensors), array_of<std::string>(tensors, features_key), {}, {}, head_of(tensors)};
  TensorSource source(tensors, no_model, run);
  if (has_matrix(backbone.options.positions)) {
    const Tensor& from = source.take(positions_name, {std::ssize(backbone.features), any_side});
    Matrix m(from.shape[0], from.shape[1], run);
    for (std::int64_t i = 0; i < m.rows(); ++i)
      for (std::int64_t j = 0; j < m.cols(); ++j)
        m(i, j) = static_cast<double>(from.values[at(i * m.cols() + j)]);
    backbone.positions = std::move(m);
  }
  const Slots slots = checked_slots(backbone);
  std::vector<const Tensor*> parts;
  for (const Slot& slot : slots.all)
    parts.push_back(&source.take(slot.name, {slot.rows, slot.columns}));
  source.check_empty();
  check_memory(4.0 * static_cast<double>(slots.size),
               message("a model of ", slots.size, " parameters"));
  backbone.parameters.reserve(at(slots.size));
  for (const Tensor* from : parts) {
    run.poll();
    backbone.parameters.insert(backbone.parameters.end(), from->values.begin(), from->values.end());
  }
  return backbone;
} catch (const Error& e) {
  // What would be a wrong argument of make_backbone() is here wrong in the file.
  if (e.code() == Status::invalid_argument || e.code() == Status::dim_mismatch) damaged(e.what());
  throw;
}

} // namespace cape
