// Models of public code: what they compute with weights of their own (data/parity).
#define BOOST_TEST_NO_MAIN
#define BOOST_TEST_MODULE transformer_parity
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <numbers>
#include <numeric>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>
import cape;

#include "errors.hpp"
#include "parity.hpp"
#include "transformer/twins.hpp"

using cape::Backbone;
using cape::BackboneOptions;
using cape::NormOrder;
using cape::PositionKind;
using cape::Run;
using cape::Status;
using cape::Tensors;
using cape::Tokens;
using test::ScgptInput;

namespace {

using Values = std::map<std::string, std::vector<double>>;

Tensors read_tensors(const std::string& file) {
  const std::string bytes = test::read_parity_bytes(file);
  Run run;
  return cape::read_safetensors(std::as_bytes(std::span(bytes)), run);
}

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

// ---------------------------------------------------------------------------------------- scGPT

struct Case {
  std::string name, weights;
  bool stream = false;
  double tolerance = 1e-12; ///< of double
};

std::vector<Case> cases() {
  return {{"scgpt_torch_post", "scgpt_torch_post"},
          {"scgpt_torch_category", "scgpt_torch_category"},
          {"scgpt_flash_post", "scgpt_flash_post"},
          {"scgpt_flash_pre", "scgpt_flash_post", true},
          {"scgpt_flash_rankrope", "scgpt_flash_post", false, 1e-6}, // its angles were floats
          {"scgpt_cape_rotary", "scgpt_flash_post"}};
}

std::vector<std::string> vocabulary() {
  std::vector<std::string> names = {"<pad>", "<cls>", "<eoc>"};
  while (names.size() < 40) names.push_back("g" + std::to_string(names.size()));
  return names;
}

BackboneOptions options_of(const Case& c) {
  BackboneOptions o = cape::backbone_preset("scgpt");
  o.heads = 4;
  o.norm_order = c.stream ? NormOrder::stream : NormOrder::post;
  return o;
}

ScgptInput input_of(const Case& c) {
  const Values in = test::read_parity(c.name + "/inputs.safetensors");
  ScgptInput input{.gene = in.at("in.gene_ids"),
                   .value = in.at("in.values"),
                   .padding = in.at("in.key_padding_mask"),
                   .masked = in.at("in.mask_positions"),
                   .target = in.at("in.target_values"),
                   .angle = {}};
  if (c.name == "scgpt_flash_rankrope")
    for (const double position : in.at("in.external_positions"))
      for (int t = 0; t < 4; ++t) input.angle.push_back(position * std::pow(1e4, -t / 4.0));
  if (c.name == "scgpt_cape_rotary") {
    input.zero_genes = true;
    input.angle = test::read_parity(c.name + "/inputs_e.safetensors").at("in.e");
    for (double& angle : input.angle) angle *= std::numbers::pi / 4;
  }
  return input;
}

// Our model of some cells, which see the same angles: all without angles, else one of them.
struct Part {
  Backbone backbone;
  Tokens tokens;
  std::vector<float> target;
  std::vector<std::size_t> from; ///< its token there
};

std::vector<Part> parts_of(const Case& c, const ScgptInput& in, const Tensors& state) {
  Run run;
  std::vector<Part> parts;
  for (std::size_t cell = 0; cell < in.cells; ++cell) {
    if (parts.empty() || !in.angle.empty()) {
      Part& p = parts.emplace_back();
      Backbone& b = p.backbone;
      b = cape::load_scgpt(state, vocabulary(), options_of(c), run);
      if (!in.angle.empty()) {
        b.options.positions = PositionKind::rotary_trained;
        b.options.angle_scale = cape::AngleScale::literal;
        b.positions = cape::Matrix(std::ssize(b.features), 16);
      }
      if (in.zero_genes) // the norm after it becomes one that gives 0
        for (const auto& slot : cape::layout(b.options, std::ssize(b.features), 16))
          if (slot.name.starts_with("embedding.norm"))
            std::fill_n(b.parameters.begin() + slot.first, slot.size(), 0.0f);
    }
    Part& p = parts.back();
    const std::size_t first = cell * in.length;
    p.tokens.start.push_back(p.tokens.size());
    for (std::size_t i = first; i < first + in.length && in.padding[i] == 0; ++i) {
      const auto gene = static_cast<std::int32_t>(in.gene[i]);
      const bool hidden = in.masked[i] != 0;
      p.tokens.feature.push_back(gene == 1 ? -1 : gene - 3);
      p.tokens.value.push_back(hidden ? 0 : static_cast<float>(in.value[i]));
      p.tokens.hidden.push_back(hidden);
      p.target.push_back(static_cast<float>(in.target[i]));
      p.from.push_back(i);
      for (std::size_t j = 0; j < 16 && !in.angle.empty() && gene != 1; ++j) // from that of <cls>
        p.backbone.positions(gene - 3, static_cast<std::int64_t>(j)) =
            in.angle[i * 4 + j % 4] - in.angle[first * 4 + j % 4];
    }
  }
  for (Part& p : parts) p.tokens.start.push_back(p.tokens.size());
  return parts;
}

// Rows of `width` numbers of the tokens that a part has.
std::vector<double> rows_of(const std::vector<double>& all, const Part& p, std::size_t width) {
  std::vector<double> rows;
  for (const std::size_t i : p.from)
    rows.insert(rows.end(), all.begin() + std::ptrdiff_t(i * width),
                all.begin() + std::ptrdiff_t((i + 1) * width));
  return rows;
}

template <class T>
std::vector<T> parameters_as(const Backbone& b) {
  return {b.parameters.begin(), b.parameters.end()};
}

template <class T>
void check_forward(const Case& c, double most) {
  const ScgptInput in = input_of(c);
  const Values expected = test::read_parity(c.name + "/io.f64.safetensors");
  const Tensors state = read_tensors(c.weights + "/weights.safetensors");
  Run run;
  double worst_rows = 0, worst_mlm = 0, worst_mvc = 0, worst_cell = 0, worst_first = 0;
  const auto raise = [](double& worst, double difference) {
    worst = difference <= worst ? worst : difference;
  };
  for (const Part& p : parts_of(c, in, state)) {
    const auto out = cape::encode<T>(p.backbone, parameters_as<T>(p.backbone), p.tokens, run);
    const auto difference = [&](const std::vector<T>& x, const std::string& name, std::size_t d) {
      return test::largest_difference(x, rows_of(expected.at(name), p, d));
    };
    raise(worst_rows, difference(out.tokens, "inter.layer1.out", 32));
    raise(worst_mlm, difference(out.predictions, "out.mlm_output", 1));
    if (expected.contains("out.mvc_output"))
      raise(worst_mvc, difference(out.by_cell, "out.mvc_output", 1));
    for (const std::int64_t first : p.tokens.start)
      if (first < p.tokens.size())
        for (std::size_t j = 0; j < 32; ++j)
          raise(worst_cell,
                std::fabs(static_cast<double>(out.tokens[at(first) * 32 + j]) -
                          expected.at("out.cell_emb")[p.from[at(first)] / in.length * 32 + j]));
  }
  Tensors first_block = state; // the model without its second one
  std::erase_if(first_block.all,
                [](const auto& t) { return t.name.starts_with("transformer_encoder.layers.1."); });
  for (const Part& p : parts_of(c, in, first_block))
    raise(worst_first,
          test::largest_difference(
              cape::encode<T>(p.backbone, parameters_as<T>(p.backbone), p.tokens, run).tokens,
              rows_of(expected.at("inter.layer0.out"), p, 32)));
  BOOST_TEST_MESSAGE(c.name << (sizeof(T) == 4 ? " float" : " double") << ": block 0 "
                            << worst_first << ", block 1 " << worst_rows << ", values " << worst_mlm
                            << ", by cell " << worst_mvc << ", cells " << worst_cell);
  for (const double worst : {worst_first, worst_rows, worst_mlm, worst_mvc, worst_cell})
    BOOST_TEST(worst <= most);
}

test::Scgpt twin_of(const Case& c) {
  test::Scgpt twin;
  twin.heads = 4;
  twin.stream = c.stream;
  for (const auto& [name, values] : test::read_parity(c.weights + "/weights.safetensors"))
    twin.state[name] = {values.begin(), values.end()};
  return twin;
}

bool has_mvc(const Case& c) { return c.name != "scgpt_cape_rotary"; }

// The loss whose gradients are stored: the sum over the outputs of the mean of their squares.
test::Complex mean_squares(const test::ScgptOutput& out, bool mvc) {
  test::Complex loss = 0;
  for (const auto* numbers :
       {&out.mlm, &out.mlm_zero, &out.cell, &out.classes, &out.mvc, &out.mvc_zero})
    if (mvc || (numbers != &out.mvc && numbers != &out.mvc_zero))
      for (const test::Complex& v : *numbers) loss += v * v / double(numbers->size());
  return loss;
}

// That of training, which is also ours: of the masked values, and of what cells predict of them.
test::Complex masked_squares(const test::ScgptOutput& out, const ScgptInput& in, bool mvc) {
  test::Complex loss = 0;
  double n = 0;
  for (std::size_t i = 0; i < in.masked.size(); ++i)
    if (in.masked[i] != 0) {
      const test::Complex by_token = out.mlm[i] - in.target[i], by_cell = out.mvc[i] - in.target[i];
      loss += by_token * by_token + (mvc ? by_cell * by_cell : 0);
      ++n;
    }
  return loss / n;
}

// Ours of all parts, and the gradient of each.
template <class T>
double loss_of(const std::vector<Part>& parts, bool mvc, std::vector<std::vector<T>>& gradients) {
  Run run;
  double loss = 0, n = 0;
  for (const Part& p : parts) n += static_cast<double>(std::ranges::count(p.tokens.hidden, 1));
  for (const Part& p : parts) {
    const double share = static_cast<double>(std::ranges::count(p.tokens.hidden, 1)) / n;
    std::vector<T>& gradient = gradients.emplace_back(p.backbone.parameters.size());
    loss += share * cape::pretrain_loss<T>(p.backbone, parameters_as<T>(p.backbone), p.tokens,
                                           p.target, mvc ? 1 : 0, -1, gradient, run);
    for (T& g : gradient) g *= static_cast<T>(share);
  }
  return loss;
}

double norm(const std::vector<double>& x) {
  return std::sqrt(std::inner_product(x.begin(), x.end(), x.begin(), 0.0));
}

// ----------------------------------------------------------------------------------------- scBERT

constexpr const char* scbert_weights = "scbert_performer/weights.safetensors";
constexpr std::int64_t scbert_length = 31; // 30 features, and the token at the end

const std::vector<std::string> scbert_cases = {"scbert_performer", "scbert_performer_mask",
                                               "scbert_performer_rankrope", "scbert_cape_rotary"};

double scbert_tolerance(const std::string& name) { // angles of ranks were floats
  return name == "scbert_performer_rankrope" ? 1e-6 : 1e-12;
}

test::ScbertInput scbert_input(const std::string& name) {
  const Values in = test::read_parity(name + "/inputs.safetensors");
  test::ScbertInput input{.token = in.at("in.tokens"), .keep = {}, .angle = {}};
  if (in.contains("in.mask")) input.keep = in.at("in.mask");
  if (name == "scbert_performer_rankrope")
    for (const double position : in.at("in.external_positions"))
      for (int t = 0; t < 4; ++t) input.angle.push_back(position * std::pow(1e4, -t / 4.0));
  if (name == "scbert_cape_rotary") {
    input.angle = in.at("in.e");
    for (double& angle : input.angle) angle *= std::numbers::pi / 4;
  }
  return input;
}

test::Scbert scbert_twin(const std::string& name) {
  test::Scbert twin;
  twin.heads = 3;
  for (const auto& [tensor, values] : test::read_parity(scbert_weights))
    twin.state[tensor] = {values.begin(), values.end()};
  if (name == "scbert_cape_rotary")
    std::ranges::fill(twin.state.at("pos_emb.emb.weight"), test::Complex(0));
  return twin;
}

test::Complex scbert_mean_squares(const test::ScbertOutput& out) {
  test::Complex loss = 0;
  for (const test::Complex& v : out.logits) loss += v * v / double(out.logits.size());
  const std::size_t d = 24, length = scbert_length, cells = out.rows.size() / d / length;
  for (std::size_t c = 0; c < cells; ++c)
    for (std::size_t j = 0; j < d; ++j) {
      test::Complex mean = 0;
      for (std::size_t i = 0; i < length; ++i)
        mean += out.rows[(c * length + i) * d + j] / double(length);
      loss += mean * mean / double(cells * d);
    }
  return loss;
}

// Cross entropy of hidden tokens, all of bin 3, over the first classes.
test::Complex scbert_cross_entropy(const test::ScbertOutput& out, const test::ScbertInput& in,
                                   std::size_t classes) {
  test::Complex loss = 0;
  double n = 0;
  for (std::size_t i = 0; i < in.token.size(); ++i)
    if (in.token[i] == 6) {
      test::Complex sum = 0;
      for (std::size_t c = 0; c < classes; ++c) sum += std::exp(out.logits[i * 7 + c]);
      loss += std::log(sum) - out.logits[i * 7 + 3];
      ++n;
    }
  return loss / n;
}

std::vector<std::string> scbert_features() {
  std::vector<std::string> names;
  while (std::ssize(names) + 1 < scbert_length) names.push_back("g" + std::to_string(names.size()));
  return names;
}

BackboneOptions scbert_options(PositionKind positions) {
  BackboneOptions o = cape::backbone_preset("scbert");
  o.heads = 3;
  o.positions = positions;
  return o;
}

// The cells with the token at the end in the place of <cls>; from: where each token is there.
Tokens scbert_tokens(const test::ScbertInput& in, std::vector<std::size_t>& from) {
  Tokens tokens;
  const auto n = static_cast<std::int64_t>(in.token.size());
  for (std::int64_t first = 0; first < n; first += scbert_length) {
    tokens.start.push_back(tokens.size());
    for (std::int64_t i = 0; i < scbert_length; ++i) {
      const std::int64_t place = (i + scbert_length - 1) % scbert_length;
      const double token = in.token[at(first + place)];
      tokens.feature.push_back(static_cast<std::int32_t>(i - 1));
      tokens.hidden.push_back(token == 6);
      tokens.value.push_back(token == 6 ? 0 : static_cast<float>(token));
      from.push_back(at(first + place));
    }
  }
  tokens.start.push_back(tokens.size());
  return tokens;
}

} // namespace

BOOST_AUTO_TEST_CASE(scgpt_computes_the_same) {
  for (const Case& c : cases()) BOOST_TEST_CONTEXT(c.name) {
      check_forward<double>(c, c.tolerance);
      check_forward<float>(c, 1e-5);
    }
}

// Stored gradients are those of a loss to which padding and heads of other tasks contribute. The
// twin has them, and must have these gradients; then ours must be the twin's where we have the
// loss.
BOOST_AUTO_TEST_CASE(scgpt_has_the_same_gradients) {
  constexpr double h = 1e-100;
  for (const Case& c : cases()) BOOST_TEST_CONTEXT(c.name) {
      const ScgptInput in = input_of(c);
      const Values expected = test::read_parity(c.name + "/io.f64.safetensors"),
                   stored = test::read_parity(c.name + "/grads.f64.safetensors");
      const Tensors state = read_tensors(c.weights + "/weights.safetensors");
      const bool mvc = has_mvc(c);
      test::Scgpt twin = twin_of(c);
      const test::ScgptOutput out = twin(in);
      BOOST_TEST(std::fabs(mean_squares(out, mvc).real() - expected.at("out.loss_meansq")[0]) <
                 c.tolerance * 10);
      const double loss = expected.at("train.masked_mse_gep")[0] +
                          (mvc ? expected.at("train.masked_mse_gepc")[0] : 0);
      BOOST_TEST(std::fabs(masked_squares(out, in, mvc).real() - loss) < c.tolerance * 1000);
      const std::vector<Part> parts = parts_of(c, in, state);
      std::vector<std::vector<double>> gradients;
      std::vector<std::vector<float>> float_gradients;
      BOOST_TEST(std::fabs(loss_of(parts, mvc, gradients) - loss) < c.tolerance * 1000);
      BOOST_TEST(std::fabs(loss_of(parts, mvc, float_gradients) - loss) < 1e-5 * loss);

      double worst_twin = 0, worst = 0, worst_float = 0;
      for (std::size_t t = 0; t < state.all.size(); ++t) {
        const std::string& name = state.all[t].name;
        if (in.zero_genes && name.starts_with("encoder.")) continue;
        // A direction in which one tensor alone changes, there and among our parameters, which are
        // linear in the state.
        Tensors direction = state;
        for (auto& tensor : direction.all) std::ranges::fill(tensor.values, 0.0f);
        cape::Rng rng(21, {t});
        for (float& v : direction.all[t].values) v = static_cast<float>(rng.normal());
        // PyTorch gives rows of padding no gradient.
        if (name == "encoder.embedding.weight")
          std::fill_n(direction.all[t].values.begin(), 32, 0.0f);
        if (name == "value_encoder.embedding.weight")
          std::fill_n(direction.all[t].values.begin() + 11 * 32, 32, 0.0f);
        const std::vector<float>& d = direction.all[t].values;
        const test::Numbers before = twin.state.at(name);
        for (std::size_t i = 0; i < d.size(); ++i)
          twin.state.at(name)[i] += test::Complex(0, h * static_cast<double>(d[i]));
        const test::ScgptOutput moved = twin(in);
        twin.state.at(name) = before;
        const std::vector<double>& g = stored.at(name);
        const double size = norm(g) + 1e-6;
        worst_twin =
            std::max(worst_twin, std::fabs(mean_squares(moved, mvc).imag() / h -
                                           std::inner_product(g.begin(), g.end(), d.begin(), 0.0)) /
                                     size);
        const std::vector<Part> along = parts_of(c, in, direction);
        double ours = 0, ours_float = 0, length = 0;
        for (std::size_t p = 0; p < parts.size(); ++p)
          for (std::size_t i = 0; i < gradients[p].size(); ++i) {
            const auto step = static_cast<double>(along[p].backbone.parameters[i]);
            ours += gradients[p][i] * step;
            ours_float += static_cast<double>(float_gradients[p][i]) * step;
            length += std::fabs(gradients[p][i] * step);
          }
        const double theirs = masked_squares(moved, in, mvc).imag() / h;
        worst = std::max(worst, std::fabs(ours - theirs) / (length + 1e-6));
        worst_float = std::max(worst_float, std::fabs(ours_float - theirs) / (length + 1e-6));
      }
      BOOST_TEST_MESSAGE(c.name << ": twin " << worst_twin << ", double " << worst << ", float "
                                << worst_float);
      BOOST_TEST(worst_twin < c.tolerance * 100);
      BOOST_TEST(worst < 1e-10);
      BOOST_TEST(worst_float < 1e-4);
    }
}

BOOST_AUTO_TEST_CASE(what_is_no_state_of_scgpt_is_refused_by_name) {
  Run run;
  const Case c = cases()[0];
  const Tensors whole = read_tensors("scgpt_torch_post/weights.safetensors");
  const auto refused = [&](Status status, const std::string& part, auto change) {
    Tensors state = whole;
    std::vector<std::string> names = vocabulary();
    BackboneOptions o = options_of(c);
    change(state, names, o);
    BOOST_TEST_CONTEXT(part)
    BOOST_TEST(test::fails_with(status, part, [&] { cape::load_scgpt(state, names, o, run); }));
  };
  for (const auto& tensor : whole.all) {
    const std::string& name = tensor.name;
    const bool aside = name.starts_with("cls_decoder.") || name.find("zero_logit") != name.npos;
    if (name.starts_with("mvc_decoder.") || name.starts_with("value_encoder.linear1.w") || aside)
      continue; // others' or optional, or what tells the kinds of values apart
    const bool tells_blocks = name.ends_with("layers.1.linear1.weight");
    refused(Status::bad_format,
            tells_blocks ? "tensor \"transformer_encoder.layers.1." : "there is no tensor \"",
            [&](Tensors& state, auto&, auto&) {
              std::erase_if(state.all, [&](const auto& t) { return t.name == name; });
            });
    refused(Status::bad_format, "tensor \"" + name + "\" has", [&](Tensors& state, auto&, auto&) {
      std::ranges::find(state.all, name, &cape::Tensor::name)->values.back() = std::nanf("");
    });
  }
  refused(Status::bad_format, "no state of scGPT: there is no tensor \"encoder.embedding.weight\"",
          [](Tensors& state, auto&, auto&) { state = {}; });
  refused(Status::bad_format, "has the shape [40, 32]; it must be [39, 32]",
          [](auto&, auto& names, auto&) { names.pop_back(); });
  refused(
      Status::bad_format, "tensor \"pos_encoder.weight\" belongs to none",
      [](Tensors& state, auto&, auto&) { state.all.push_back({"pos_encoder.weight", {1}, {0}}); });
  refused(Status::bad_format, "\"value_encoder.embedding.weight\" has 3 rows",
          [](Tensors& state, auto&, auto&) {
            state.all.push_back(
                {"value_encoder.embedding.weight", {3, 32}, std::vector<float>(96)});
          });
  refused(Status::invalid_argument, "the vocabulary has no \"<cls>\"",
          [](auto&, auto& names, auto&) { names[1] = "cls"; });
  refused(Status::invalid_argument, "two features are called \"g7\"",
          [](auto&, auto& names, auto&) { names[8] = "g7"; });
  refused(Status::invalid_argument, "model.width is 32 and model.heads 5",
          [](auto&, auto&, auto& o) { o.heads = 5; });
  BOOST_TEST(test::fails_with(Status::unsupported, "embeddings of batches", [&] {
    cape::load_scgpt(read_tensors("scgpt_torch_batch/weights.safetensors"), vocabulary(),
                     options_of(c), run);
  }));
}

BOOST_AUTO_TEST_CASE(a_state_without_the_part_of_cells_starts_it_anew) {
  Run run;
  const Case c = cases()[0];
  Tensors state = read_tensors("scgpt_torch_post/weights.safetensors");
  const Backbone whole = cape::load_scgpt(state, vocabulary(), options_of(c), run);
  std::erase_if(state.all, [](const auto& t) { return t.name.starts_with("mvc_decoder."); });
  const Backbone without = cape::load_scgpt(state, vocabulary(), options_of(c), run);
  for (const auto& slot : cape::layout(whole.options, std::ssize(whole.features), 0)) {
    const auto first = whole.parameters.begin() + slot.first;
    const bool same =
        std::equal(first, first + slot.size(), without.parameters.begin() + slot.first);
    BOOST_TEST(same == !slot.name.starts_with("cell."));
  }
}

using Numbers = std::tuple<float, double>;

BOOST_AUTO_TEST_CASE_TEMPLATE(scbert_computes_the_same, T, Numbers) {
  const test::ScbertInput in = scbert_input("scbert_performer");
  const Values expected = test::read_parity("scbert_performer/io.f64.safetensors");
  std::vector<std::size_t> from;
  const Tokens tokens = scbert_tokens(in, from);
  Run run;
  for (const PositionKind positions : {PositionKind::fixed, PositionKind::trained}) {
    const Backbone b = cape::load_scbert(read_tensors(scbert_weights), scbert_features(),
                                         scbert_options(positions), run);
    const auto out = cape::encode<T>(b, parameters_as<T>(b), tokens, run);
    double worst_rows = 0, worst_logits = 0;
    for (std::size_t i = 0; i < from.size(); ++i) {
      for (std::size_t j = 0; j < 24; ++j)
        worst_rows =
            std::max(worst_rows, std::fabs(static_cast<double>(out.tokens[i * 24 + j]) -
                                           expected.at("out.encodings")[from[i] * 24 + j]));
      for (std::size_t c = 0; c < 6; ++c)
        worst_logits =
            std::max(worst_logits, std::fabs(static_cast<double>(out.predictions[i * 6 + c]) -
                                             expected.at("out.logits")[from[i] * 7 + c]));
    }
    BOOST_TEST_MESSAGE("scbert_performer " << (sizeof(T) == 4 ? "float" : "double") << ": rows "
                                           << worst_rows << ", logits " << worst_logits);
    BOOST_TEST(worst_rows <= (sizeof(T) == 4 ? 1e-5 : 1e-12));
    BOOST_TEST(worst_logits <= (sizeof(T) == 4 ? 1e-5 : 1e-12));
  }
}

BOOST_AUTO_TEST_CASE(scbert_has_the_same_gradients) {
  constexpr double h = 1e-100;
  Run run;
  const Tensors state = read_tensors(scbert_weights);
  for (const std::string& name : scbert_cases) BOOST_TEST_CONTEXT(name) {
      const double tolerance = scbert_tolerance(name);
      const test::ScbertInput in = scbert_input(name);
      const Values expected = test::read_parity(name + "/io.f64.safetensors"),
                   stored = test::read_parity(name + "/grads.f64.safetensors");
      test::Scbert twin = scbert_twin(name);
      const test::ScbertOutput out = twin(in);
      BOOST_TEST(std::fabs(scbert_mean_squares(out).real() - expected.at("out.loss_meansq")[0]) <
                 10 * tolerance);
      BOOST_TEST(std::fabs(scbert_cross_entropy(out, in, 7).real() -
                           expected.at("train.ce_ignore6")[0]) < 10 * tolerance);
      std::vector<std::size_t> from;
      const Tokens tokens = scbert_tokens(in, from);
      const Backbone b =
          cape::load_scbert(state, scbert_features(), scbert_options(PositionKind::fixed), run);
      const bool ours_has_it = name == "scbert_performer";
      std::vector<double> gradient(b.parameters.size());
      std::vector<float> float_gradient(b.parameters.size());
      const std::vector<float> target(at(tokens.size()), 3.0f);
      const double loss = cape::pretrain_loss<double>(b, parameters_as<double>(b), tokens, target,
                                                      0, -1, gradient, run);
      cape::pretrain_loss<float>(b, b.parameters, tokens, target, 0, -1, float_gradient, run);
      if (ours_has_it)
        BOOST_TEST(std::fabs(loss - scbert_cross_entropy(out, in, 6).real()) < 1e-12);
      double worst_twin = 0, worst = 0, worst_float = 0;
      for (std::size_t t = 0; t < state.all.size(); ++t) {
        const std::string& tensor = state.all[t].name;
        if (!stored.contains(tensor)) continue; // not trained there
        Tensors direction = state;
        for (auto& one : direction.all) std::ranges::fill(one.values, 0.0f);
        cape::Rng rng(22, {t});
        for (float& v : direction.all[t].values) v = static_cast<float>(rng.normal());
        const std::vector<float>& d = direction.all[t].values;
        const test::Numbers before = twin.state.at(tensor);
        for (std::size_t i = 0; i < d.size(); ++i)
          twin.state.at(tensor)[i] += test::Complex(0, h * static_cast<double>(d[i]));
        const test::ScbertOutput moved = twin(in);
        twin.state.at(tensor) = before;
        const std::vector<double>& g = stored.at(tensor);
        worst_twin =
            std::max(worst_twin, std::fabs(scbert_mean_squares(moved).imag() / h -
                                           std::inner_product(g.begin(), g.end(), d.begin(), 0.0)) /
                                     (norm(g) + 1e-6));
        if (!ours_has_it) continue;
        const Backbone along = cape::load_scbert(direction, scbert_features(),
                                                 scbert_options(PositionKind::fixed), run);
        double ours = 0, ours_float = 0, length = 0;
        for (std::size_t i = 0; i < gradient.size(); ++i) {
          const auto step = static_cast<double>(along.parameters[i]);
          ours += gradient[i] * step;
          ours_float += static_cast<double>(float_gradient[i]) * step;
          length += std::fabs(gradient[i] * step);
        }
        const double theirs = scbert_cross_entropy(moved, in, 6).imag() / h;
        worst = std::max(worst, std::fabs(ours - theirs) / (length + 1e-6));
        worst_float = std::max(worst_float, std::fabs(ours_float - theirs) / (length + 1e-6));
      }
      BOOST_TEST_MESSAGE(name << ": twin " << worst_twin << ", double " << worst << ", float "
                              << worst_float);
      BOOST_TEST(worst_twin < 100 * tolerance);
      BOOST_TEST(worst < 1e-10);
      BOOST_TEST(worst_float < 1e-4);
    }
}

// There the token at the end is turned too and each cell has angles of its own, which our model has
// not; so the attention of each block alone, from the rows that it is given.
BOOST_AUTO_TEST_CASE_TEMPLATE(scbert_attends_the_same_with_turned_and_without_masked, T, Numbers) {
  Run run;
  const Values weights = test::read_parity(scbert_weights);
  for (const std::string& name : scbert_cases) BOOST_TEST_CONTEXT(name) {
      const test::ScbertInput in = scbert_input(name);
      const Values expected = test::read_parity(name + "/io.f64.safetensors");
      double worst = 0;
      std::vector<double> rows = expected.at("inter.input_emb");
      for (const std::string block : {"0", "1"}) {
        const std::string state = "performer.net.layers." + block + ".0.",
                          inter = "inter.layer" + block + ".";
        const auto get = [&](const std::string& tensor) {
          return test::as<T>(weights.at(state + tensor));
        };
        const std::int64_t n = std::ssize(in.token), d = 24;
        std::vector<T> x(rows.begin(), rows.end()), q(x.size()), k(x.size()), v(x.size()),
            attended(x.size()), out(x.size());
        std::vector<cape::layers::RowMoments<T>> moments(at(n));
        cape::layers::layer_norm<T>(x, {}, get("norm.weight"), get("norm.bias"), 1e-5, x, moments,
                                    run);
        cape::layers::linear<T>(x, n, get("fn.to_q.weight"), {}, q, run);
        cape::layers::linear<T>(x, n, get("fn.to_k.weight"), {}, k, run);
        cape::layers::linear<T>(x, n, get("fn.to_v.weight"), {}, v, run);
        if (!in.angle.empty()) {
          std::vector<std::int32_t> index(at(n));
          std::iota(index.begin(), index.end(), 0);
          std::vector<T> cosine, sine;
          for (std::int64_t i = 0; i < n; ++i)
            for (std::int64_t j = 0; j < d / 2; ++j) {
              const double angle = in.angle[at(i * 4 + j % 4)];
              cosine.push_back(static_cast<T>(std::cos(angle)));
              sine.push_back(static_cast<T>(std::sin(angle)));
            }
          for (std::vector<T>* turned : {&q, &k})
            cape::layers::turn_rows<T>(*turned, index, {d / 2, cosine, sine}, false, run);
        }
        for (std::size_t i = 0; i < v.size(); ++i)
          if (!in.keep.empty() && in.keep[i / 24] == 0) v[i] = 0; // its mask does this alone
        cape::AttentionInput<T> input;
        input.batch = n / scbert_length;
        input.heads = 3;
        input.q_length = input.k_length = scbert_length;
        input.head_dim = 8;
        input.q = q.data();
        input.k = k.data();
        input.v = v.data();
        cape::performer_attention_forward<T>(
            input, 16, get("fn.fast_attention.projection_matrix").data(), attended.data(), run);
        cape::layers::linear<T>(attended, n, get("fn.to_out.weight"), get("fn.to_out.bias"), out,
                                run);
        worst = std::max(worst, test::largest_difference(out, expected.at(inter + "attn_out")));
        for (std::size_t i = 0; i < rows.size(); ++i) // what the next block is given
          rows[i] += expected.at(inter + "attn_out")[i] + expected.at(inter + "ff_out")[i];
      }
      BOOST_TEST_MESSAGE(name << (sizeof(T) == 4 ? " float" : " double") << ": attention "
                              << worst);
      BOOST_TEST(worst <= (sizeof(T) == 4 ? 1e-5 : scbert_tolerance(name)));
    }
}

BOOST_AUTO_TEST_CASE(what_is_no_state_of_scbert_is_refused_by_name) {
  Run run;
  const Tensors whole = read_tensors(scbert_weights);
  const auto refused = [&](Status status, const std::string& part, auto change) {
    Tensors state = whole;
    std::vector<std::string> names = scbert_features();
    BackboneOptions o = scbert_options(PositionKind::fixed);
    change(state, names, o);
    BOOST_TEST_CONTEXT(part)
    BOOST_TEST(test::fails_with(status, part, [&] { cape::load_scbert(state, names, o, run); }));
  };
  for (const auto& tensor : whole.all) {
    const std::string& name = tensor.name;
    if (name.ends_with("calls_since_last_redraw")) continue;
    const bool tells_blocks = name.ends_with("layers.1.0.fn.to_q.weight");
    refused(Status::bad_format,
            tells_blocks ? "tensor \"performer.net.layers.1." : "there is no tensor \"",
            [&](Tensors& state, auto&, auto&) {
              std::erase_if(state.all, [&](const auto& t) { return t.name == name; });
            });
    refused(Status::bad_format, "tensor \"" + name + "\" has", [&](Tensors& state, auto&, auto&) {
      std::ranges::find(state.all, name, &cape::Tensor::name)->values.back() = std::nanf("");
    });
  }
  refused(Status::bad_format, "has the shape [31, 24]; it must be [30, 1 or more]",
          [](auto&, auto& names, auto&) { names.pop_back(); });
  refused(
      Status::bad_format, "tensor \"to_out.conv1.weight\" belongs to none",
      [](Tensors& state, auto&, auto&) { state.all.push_back({"to_out.conv1.weight", {1}, {0}}); });
  refused(Status::invalid_argument, "are 24 wide together and model.heads is 5",
          [](auto&, auto&, auto& o) { o.heads = 5; });
  refused(Status::invalid_argument, "must be fixed or trained",
          [](auto&, auto&, auto& o) { o.positions = PositionKind::rotary; });
}

int main(int argc, char* argv[]) {
  if (test::data_missing("parity")) return 77;
  return boost::unit_test::unit_test_main([] { return true; }, argc, argv);
}

// ------------------------------------------------------------------------------- Transformer-XL

// A block behind which only layer norms stand, whose tokens are the fixture's rows.
BOOST_AUTO_TEST_CASE(relative_positions_are_those_of_transformer_xl) {
  const Values in = test::read_parity("relative_txl/relative.f64.safetensors");
  struct Shape {
    std::string name;
    std::int64_t cells, length, width, heads;
  };
  for (const Shape& k : {Shape{"paper_a.", 2, 6, 12, 3}, Shape{"paper_b.", 1, 17, 16, 4}})
    for (std::int64_t cell = 0; cell < k.cells; ++cell) {
      BackboneOptions o;
      o.width = k.width;
      o.heads = k.heads;
      o.blocks = 1;
      o.feed_forward = 1;
      o.norm_order = NormOrder::post;
      o.attention_bias = false;
      o.positions = PositionKind::relative_trained;
      std::vector<std::string> names;
      Tokens tokens{{0, k.length}, {-1}, {}, {}};
      for (std::int32_t i = 0; i + 1 < k.length; ++i) {
        names.push_back(std::to_string(i));
        tokens.feature.push_back(i);
      }
      tokens.value.resize(at(k.length));
      tokens.hidden.resize(at(k.length));
      Run run;
      const Backbone model = cape::make_backbone(names, {}, o, run);
      const auto cell_of = [&](const std::string& name) {
        const std::vector<double>& all = in.at(k.name + name);
        const auto size = static_cast<std::ptrdiff_t>(k.length * k.width);
        return std::vector<double>(all.begin() + cell * size, all.begin() + (cell + 1) * size);
      };
      std::vector<double> p(model.parameters.size());
      for (const cape::Slot& slot : cape::layout(o, k.length - 1, 0)) {
        std::vector<double> values;
        const auto put = [&](const char* name) {
          const std::vector<double>& more = in.at(k.name + name);
          values.insert(values.end(), more.begin(), more.end());
        };
        if (slot.name == "embedding")
          values = cell_of("x");
        else if (slot.name.ends_with("gain"))
          values.assign(at(slot.size()), 1);
        else if (slot.name == "blocks.0.attention.in.weight")
          put("Wq"), put("Wk"), put("Wv");
        else if (slot.name == "blocks.0.attention.relative.weight")
          put("Wr_hat_k");
        else if (slot.name == "blocks.0.attention.out.weight")
          put("Wo");
        else if (slot.name == "positions.content")
          put("u");
        else if (slot.name == "positions.position")
          put("v");
        else
          continue;
        BOOST_TEST_REQUIRE(std::ssize(values) == slot.size());
        std::ranges::copy(values, p.begin() + slot.first);
      }
      std::vector<double> expected = cell_of("x");
      const std::vector<double> out = cell_of("out");
      std::ranges::transform(expected, out, expected.begin(), std::plus<>());
      for (int norms = 0; norms < 2; ++norms)
        for (std::int64_t i = 0; i < k.length; ++i) {
          const std::span<double> row = std::span(expected).subspan(at(i * k.width), at(k.width));
          double mean = 0, square = 0;
          for (const double v : row) mean += v / static_cast<double>(k.width);
          for (double& v : row) {
            v -= mean;
            square += v * v / static_cast<double>(k.width);
          }
          for (double& v : row) v /= std::sqrt(square + 1e-5);
        }
      const std::vector<double> tokens_out = cape::encode<double>(model, p, tokens, run).tokens;
      double worst = 0;
      for (std::size_t i = 0; i < expected.size(); ++i)
        worst = std::max(worst, std::fabs(tokens_out[i] - expected[i]));
      BOOST_TEST_CONTEXT(k.name << cell) BOOST_TEST(worst < 1e-12);
    }
}
