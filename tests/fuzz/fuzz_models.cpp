// Models from tensors, by the C++ interface: those of our files, and states of scGPT and scBERT,
// with a part changed. They are refused for a reason that is said, or make a model that computes,
// and that a file brings back to the bit.
#include "fuzz.hpp"

#include <cstddef>
#include <initializer_list>
#include <variant>
import cape;

using cape::Backbone;
using cape::BackboneOptions;
using cape::Run;
using cape::Status;
using cape::Tensor;
using cape::Tensors;
using fuzz::Input;
using fuzz::must;

namespace {

std::vector<std::byte> file_of(const Backbone& model) {
  Run run;
  return cape::write_safetensors(cape::to_tensors(model, run), run);
}

// A model that was made of tensors computes, unless its numbers are too large.
void use(const Backbone& model) {
  Run run;
  const auto file = file_of(model);
  const Backbone back = cape::from_tensors(cape::read_safetensors(file, run), run);
  must(file_of(back) == file, "another file at the second time");
  const auto last = static_cast<std::int32_t>(model.features.size()) - 1;
  const cape::Tokens tokens{{0, 3, 4}, {-1, 0, last, -1}, {0, 1, 0, 0}, {0, 0, 1, 0}};
  try {
    const auto a = cape::encode<float>(model, model.parameters, tokens, run),
               b = cape::encode<float>(back, back.parameters, tokens, run);
    must(a.tokens == b.tokens && a.predictions == b.predictions && a.by_cell == b.by_cell,
         "another result of the same model");
    for (const float v : a.tokens) must(std::isfinite(v), "a row that is not finite");
  } catch (const cape::Error& error) {
    must(error.code() == Status::invalid_argument, "another error than of the numbers");
  }
}

// Make a model, or be told why not: by one of these.
template <class F>
void try_to(F make, std::initializer_list<Status> expected) {
  try {
    use(make());
  } catch (const cape::Error& error) {
    must(std::ranges::find(expected, error.code()) != expected.end(), error.what());
    must(std::strlen(error.what()) > 20, "an error without a text");
  }
}

// ----------------------------------------------------------------------------------------- models

std::string text(Input& in) {
  static constexpr const char* pieces[] = {"a", "", "\"", "\\", "\n", "\u03b2", "[1]", "<cls>"};
  return in.one_in(8) ? in.text(6) : in.one_of(pieces);
}

std::vector<std::string> names(Input& in, std::int64_t n) {
  std::vector<std::string> out;
  for (std::int64_t i = 0; i < n; ++i)
    out.push_back(in.one_in(8) ? text(in) : "g" + std::to_string(i));
  return out;
}

BackboneOptions options(Input& in) {
  BackboneOptions o;
  o.heads = in.in(1, 2);
  o.width = 2 * o.heads * in.in(1, 2);
  if (in.one_in(4)) o.head_width = in.in(1, 4);
  o.blocks = in.in(1, 2);
  o.feed_forward = in.in(1, 4);
  o.random_features = in.in(1, 4);
  o.bins = in.in(2, 4);
  o.decoder_layers = in.in(0, 2);
  for (const cape::OptionField& field : cape::fields(o))
    if (const auto* choice = std::get_if<cape::Choice>(&field.value))
      choice->set(static_cast<std::int32_t>(in.in(0, std::ssize(choice->names) - 1)));
    else if (auto* const* flag = std::get_if<bool*>(&field.value))
      **flag = in.flip();
    else if (auto* const* number = std::get_if<double*>(&field.value))
      if (in.one_in(4)) **number = in.mostly_ordinary();
  return o;
}

Tensors of_model(Input& in) {
  const BackboneOptions o = options(in);
  const std::int64_t m = in.in(1, 3);
  cape::Matrix positions;
  using cape::PositionKind;
  if (o.positions != PositionKind::none && o.positions != PositionKind::trained) {
    positions = cape::Matrix(m, o.positions == PositionKind::fixed ? o.width : o.heads);
    for (std::int64_t i = 0; i < positions.size(); ++i) positions.data()[i] = in.ordinary();
  }
  Run run;
  return cape::to_tensors(cape::make_backbone(names(in, m), positions, o, run), run);
}

// ------------------------------------------------------------------------- states of public code

struct State {
  Tensors tensors;
  std::vector<std::string> names; ///< of rows of an embedding
  BackboneOptions options;

  void add(Input& in, const std::string& name, std::vector<std::int64_t> shape) {
    std::int64_t n = 1;
    for (const std::int64_t side : shape) n *= side;
    Tensor tensor{name, std::move(shape), {}};
    for (; n > 0; --n) tensor.values.push_back(static_cast<float>(in.ordinary()));
    tensors.all.push_back(std::move(tensor));
  }
  void linear(Input& in, const std::string& name, std::int64_t out, std::int64_t from) {
    add(in, name + ".weight", {out, from});
    add(in, name + ".bias", {out});
  }
  void norm(Input& in, const std::string& name, std::int64_t d) {
    add(in, name + ".weight", {d});
    add(in, name + ".bias", {d});
  }
};

State of_scgpt(Input& in) {
  State s;
  const std::int64_t d = 4, m = in.in(3, 5), inner = in.in(1, 3);
  s.add(in, "encoder.embedding.weight", {m, d});
  s.norm(in, "encoder.enc_norm", d);
  if (in.flip()) {
    s.add(in, "value_encoder.embedding.weight", {in.in(1, 6), d});
    s.norm(in, "value_encoder.enc_norm", d);
  } else {
    s.linear(in, "value_encoder.linear1", d, 1);
    s.linear(in, "value_encoder.linear2", d, d);
    s.norm(in, "value_encoder.norm", d);
  }
  const bool flash = in.flip();
  for (std::int64_t b = in.in(0, 2); b > 0; --b) {
    const std::string name = "transformer_encoder.layers." + std::to_string(b - 1) + ".";
    s.add(in, name + (flash ? "self_attn.Wqkv.weight" : "self_attn.in_proj_weight"), {3 * d, d});
    s.add(in, name + (flash ? "self_attn.Wqkv.bias" : "self_attn.in_proj_bias"), {3 * d});
    s.linear(in, name + "self_attn.out_proj", d, d);
    s.linear(in, name + "linear1", inner, d);
    s.linear(in, name + "linear2", d, inner);
    s.norm(in, name + "norm1", d);
    s.norm(in, name + "norm2", d);
  }
  s.linear(in, "decoder.fc.0", d, d);
  s.linear(in, "decoder.fc.2", d, d);
  s.linear(in, "decoder.fc.4", 1, d);
  if (in.flip()) {
    s.linear(in, "mvc_decoder.gene2query", d, d);
    s.add(in, "mvc_decoder.W.weight", {d, d});
  }
  s.names = names(in, m);
  if (!in.one_in(8)) s.names[0] = "<cls>";
  if (in.flip()) s.names[1] = "<pad>";
  s.options.heads = in.in(1, 2);
  return s;
}

State of_scbert(Input& in) {
  State s;
  const std::int64_t d = 4, m = in.in(1, 3), inner = in.in(1, 3), heads = in.in(1, 2),
                     width = in.in(1, 3), classes = in.in(2, 5), features = in.in(1, 3);
  s.add(in, "pos_emb.emb.weight", {m + 1, d});
  s.add(in, "token_emb.weight", {classes, d});
  for (std::int64_t b = in.in(0, 2); b > 0; --b) {
    const std::string name = "performer.net.layers." + std::to_string(b - 1) + ".";
    s.norm(in, name + "0.norm", d);
    for (const char* which : {"to_q", "to_k", "to_v"})
      s.add(in, name + "0.fn." + which + ".weight", {heads * width, d});
    s.add(in, name + "0.fn.fast_attention.projection_matrix", {features, width});
    s.linear(in, name + "0.fn.to_out", d, heads * width);
    s.norm(in, name + "1.norm", d);
    s.linear(in, name + "1.fn.fn.w1", inner, d);
    s.linear(in, name + "1.fn.fn.w2", d, inner);
  }
  s.norm(in, "norm", d);
  s.linear(in, "to_out", classes, d);
  s.names = names(in, m);
  s.options.heads = heads;
  s.options.positions = in.flip() ? cape::PositionKind::fixed : cape::PositionKind::trained;
  return s;
}

// ---------------------------------------------------------------------------------------- changes

void change(Input& in, Tensor& tensor) {
  switch (in.in(0, 4)) {
  case 0: tensor.name = text(in); break;
  case 1: tensor.shape.push_back(in.one_in(4) ? in.integer() : 1); break;
  case 2:
    if (!tensor.shape.empty())
      tensor.shape[static_cast<std::size_t>(in.in(0, std::ssize(tensor.shape) - 1))] = in.integer();
    break;
  case 3:
    if (tensor.values.empty() || in.flip())
      tensor.values.push_back(0);
    else
      tensor.values.pop_back();
    break;
  default:
    if (!tensor.values.empty())
      tensor.values[static_cast<std::size_t>(in.in(0, std::ssize(tensor.values) - 1))] =
          static_cast<float>(in.number());
  }
}

void change(Input& in, Tensors& tensors) {
  static constexpr const char* texts[] = {
      "",      "0",      "1",    "2",     "-1", "1e9",    "nan",    "0.5",       "true",
      "exact", "linear", "none", "fixed", "[]", "[\"\"]", "[null]", "[[\"a\"]]", "[\"a\""};
  const auto place = [&](const auto& list) {
    return static_cast<std::size_t>(in.in(0, std::ssize(list) - 1));
  };
  for (std::int64_t i = in.in(0, 3); i > 0; --i) {
    auto& [all, metadata] = tensors;
    switch (in.in(0, 5)) {
    case 0:
      if (!all.empty()) all.erase(all.begin() + static_cast<std::ptrdiff_t>(place(all)));
      break;
    case 1:
      if (!all.empty()) all.push_back(all[place(all)]);
      break;
    case 2:
      if (!metadata.empty())
        metadata[place(metadata)].second = in.one_in(8) ? in.text(6) : in.one_of(texts);
      break;
    case 3:
      if (!metadata.empty()) metadata[place(metadata)].first = text(in);
      break;
    default:
      if (!all.empty()) change(in, all[place(all)]);
    }
  }
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input in(data, size);
  Run run;
  const std::int64_t kind = in.in(0, 3);
  if (kind < 2) {
    State s = kind == 0 ? of_scgpt(in) : of_scbert(in);
    change(in, s.tensors);
    const auto load = kind == 0 ? cape::load_scgpt : cape::load_scbert;
    try_to(
        [&] { return load(s.tensors, s.names, s.options, run); },
        {Status::bad_format, Status::invalid_argument, Status::dim_mismatch, Status::unsupported});
    return 0;
  }
  Tensors tensors;
  try {
    tensors = of_model(in);
  } catch (const cape::Error& error) {
    must(error.code() == Status::invalid_argument || error.code() == Status::dim_mismatch,
         error.what());
    return 0;
  }
  change(in, tensors);
  try_to([&] { return cape::from_tensors(tensors, run); }, {Status::bad_format});
  return 0;
}
