// Models as tensors: the same to the bit, and what is refused.
#define BOOST_TEST_MODULE saved
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>
import cape;

#include "errors.hpp"

using cape::Backbone;
using cape::BackboneOptions;
using cape::Matrix;
using cape::PositionKind;
using cape::Run;
using cape::Status;
using cape::Tensors;

namespace {

const std::vector<std::string> names = {"SOX9", "", "a,\"b\"\n\\", "\u03b2-catenin", "\u2028"};

BackboneOptions tiny() {
  BackboneOptions o;
  o.width = 8;
  o.heads = 2;
  o.feed_forward = 6;
  o.bins = 4;
  o.random_features = 3;
  return o;
}

Backbone model(const BackboneOptions& o) {
  const bool any = o.positions != PositionKind::none && o.positions != PositionKind::trained;
  const std::int64_t columns = !any                                     ? 0
                               : o.positions == PositionKind::fixed     ? o.width
                               : o.positions == PositionKind::projected ? 3
                                                                        : o.width / 2;
  Matrix positions;
  if (any) {
    positions = Matrix(std::ssize(names), columns);
    cape::Rng rng(5, {1});
    for (std::int64_t i = 0; i < positions.size(); ++i) positions.data()[i] = rng.normal();
  }
  Run run(3);
  return cape::make_backbone(names, positions, o, run);
}

std::vector<BackboneOptions> variants() {
  std::vector<BackboneOptions> all;
  for (const PositionKind kind :
       {PositionKind::none, PositionKind::trained, PositionKind::fixed, PositionKind::projected,
        PositionKind::rotary, PositionKind::rotary_trained}) {
    all.push_back(tiny());
    all.back().positions = kind;
  }
  BackboneOptions o = tiny();
  o.attention = cape::AttentionKind::linear;
  o.norm_order = cape::NormOrder::stream;
  o.values = cape::Values::fixed_bins;
  o.value_embedding = cape::ValueEmbedding::table;
  o.loss = cape::ValueLoss::cross_entropy;
  o.learn_angle_factor = true;
  o.largest_angle = 0.1 + 0.2; // no short decimal number
  o.dropout = 1.0 / 3;
  o.embedding_norm = true;
  all.push_back(o);
  return all;
}

std::vector<std::string> texts(BackboneOptions o) {
  std::vector<std::string> all;
  for (const auto& field : cape::fields(o)) all.push_back(cape::option_text(field));
  return all;
}

bool same(const Matrix& a, const Matrix& b) {
  return a.rows() == b.rows() && a.cols() == b.cols() &&
         std::equal(a.data(), a.data() + a.size(), b.data());
}

cape::Tensor& tensor(Tensors& tensors, const std::string& name) {
  return *std::ranges::find(tensors.all, name, &cape::Tensor::name);
}

std::string& text(Tensors& tensors, const std::string& key) {
  return std::ranges::find(tensors.metadata, key, &std::pair<std::string, std::string>::first)
      ->second;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_model_comes_back_from_a_file_to_the_bit) {
  for (const BackboneOptions& o : variants()) {
    Run run;
    const Backbone b = model(o);
    const auto file = cape::write_safetensors(cape::to_tensors(b, run), run);
    const Backbone back = cape::from_tensors(cape::read_safetensors(file, run), run);
    BOOST_TEST(texts(back.options) == texts(o), boost::test_tools::per_element());
    BOOST_TEST((back.options.largest_angle == o.largest_angle));
    BOOST_TEST((back.options.dropout == o.dropout));
    BOOST_TEST((back.features == names));
    BOOST_TEST(same(back.positions, b.positions));
    BOOST_TEST((back.parameters == b.parameters));
    BOOST_TEST((cape::write_safetensors(cape::to_tensors(back, run), run) == file));
    const cape::Tokens tokens{
        {0, 4, 6}, {-1, 0, 3, 4, -1, 2}, {0, 1, 2, 3, 0, 1}, {0, 0, 1, 0, 0, 0}};
    const auto before = cape::encode<float>(b, b.parameters, tokens, run),
               after = cape::encode<float>(back, back.parameters, tokens, run);
    BOOST_TEST((after.tokens == before.tokens));
    BOOST_TEST((after.predictions == before.predictions));
  }
}

BOOST_AUTO_TEST_CASE(every_option_and_every_tensor_is_there_by_its_name) {
  Run run;
  BackboneOptions o = tiny();
  const Backbone b = model(o);
  const Tensors t = cape::to_tensors(b, run);
  for (const auto& field : cape::fields(o)) {
    const std::string* found = t.find_metadata(field.name);
    BOOST_TEST_REQUIRE(found != nullptr);
    BOOST_TEST(*found == cape::option_text(field));
  }
  BOOST_TEST(*t.find_metadata("cape.version") == "0.1.0");
  BOOST_TEST(*t.find_metadata("features") == R"(["SOX9","","a,\"b\"\n\\","β-catenin",")"
                                             "\u2028"
                                             R"("])");
  const auto layout = cape::layout(o, std::ssize(names), b.positions.cols());
  BOOST_TEST(t.all.size() == layout.size() + 1);
  for (const auto& slot : layout) {
    const cape::Tensor* found = t.find(slot.name);
    BOOST_TEST_REQUIRE(found != nullptr);
    BOOST_TEST((found->shape == std::vector{slot.rows, slot.columns}));
    BOOST_TEST(
        std::equal(found->values.begin(), found->values.end(), b.parameters.begin() + slot.first));
  }
}

BOOST_AUTO_TEST_CASE(positions_are_floats_from_the_start) {
  Run run;
  Matrix positions(2, 4);
  positions(0, 0) = 0.1;
  const Backbone b = cape::make_backbone({"a", "b"}, positions, tiny(), run);
  BOOST_TEST((b.positions(0, 0) == static_cast<double>(0.1f)));
  positions(1, 1) = 1e39;
  BOOST_TEST(test::fails_with(Status::invalid_argument, "positions",
                              [&] { cape::make_backbone({"a", "b"}, positions, tiny(), run); }));
}

BOOST_AUTO_TEST_CASE(what_is_no_model_is_refused_by_name) {
  Run run;
  const Tensors whole = cape::to_tensors(model(tiny()), run);
  const auto refused = [&](const std::string& part, const std::function<void(Tensors&)>& change) {
    Tensors t = whole;
    change(t);
    BOOST_TEST_CONTEXT(part)
    BOOST_TEST(test::fails_with(Status::bad_format, part, [&] { cape::from_tensors(t, run); }));
  };
  refused("metadata have no \"cape.format\"", [](Tensors& t) { t = {}; });
  refused(R"("cape.format" is "backbone 2"; this version reads "backbone 1")",
          [](Tensors& t) { text(t, "cape.format") = "backbone 2"; });
  for (const auto& [key, value] : whole.metadata)
    if (key != "cape.version")
      refused("metadata have no \"" + key + "\"", [&](Tensors& t) {
        std::erase_if(t.metadata, [&](const auto& entry) { return entry.first == key; });
      });
  refused("model.width is \"8.5\"; it must be an integer in [2, 16384]",
          [](Tensors& t) { text(t, "model.width") = "8.5"; });
  refused("model.width is 99999; it must lie in",
          [](Tensors& t) { text(t, "model.width") = "99999"; });
  refused("model.width is 8 and model.heads 3", [](Tensors& t) { text(t, "model.heads") = "3"; });
  refused("model.positions is \"sorted\"; it must be one of",
          [](Tensors& t) { text(t, "model.positions") = "sorted"; });
  refused("model.dropout is nan", [](Tensors& t) { text(t, "model.dropout") = "nan"; });
  refused("there is no option \"model.depth\"",
          [](Tensors& t) { t.metadata.emplace_back("model.depth", "3"); });
  refused("there is no option \"model.\xff\"", // a name that is no text is shown as it is
          [](Tensors& t) { t.metadata.emplace_back("model.\xff", "3"); });
  for (const char* features : {"", "[", "{}", "\"a\"", "[1]", "[[]]", "[null]", "[\"a\"] 1",
                               "[\"\\ud800\"]", "[\"\xff\"]"})
    refused("\"features\" is no JSON array of texts",
            [&](Tensors& t) { text(t, "features") = features; });
  refused("two features are called \"a\"",
          [](Tensors& t) { text(t, "features") = R"(["a","a","b","c","d"])"; });
  refused("tensor \"positions\" has the shape [5, 4]; it must be [1, 1 or more]",
          [](Tensors& t) { text(t, "features") = R"(["a"])"; });
  refused("there must be a row for each of the 0 features", [](Tensors& t) {
    text(t, "features") = "[]";
    tensor(t, "positions") = {"positions", {0, 4}, {}};
  });
  for (const auto& [name, shape, values] : whole.all) {
    const std::string quoted = "tensor \"" + name + "\"";
    refused("there is no " + quoted, [&](Tensors& t) {
      std::erase_if(t.all, [&](const cape::Tensor& one) { return one.name == name; });
    });
    refused(quoted + " has the shape [", [&](Tensors& t) { tensor(t, name).shape.push_back(1); });
    refused(quoted + " has " + std::to_string(values.size() - 1) + " values",
            [&](Tensors& t) { tensor(t, name).values.pop_back(); });
    for (const float wrong : {std::nanf(""), std::numeric_limits<float>::infinity()})
      refused(quoted + " has a value not finite",
              [&](Tensors& t) { tensor(t, name).values.back() = wrong; });
  }
  refused("tensor \"more\" belongs to none",
          [](Tensors& t) { t.all.push_back({"more", {1, 1}, {0}}); });
  refused("there are two tensors \"norm.gain\"",
          [](Tensors& t) { t.all.push_back(tensor(t, "norm.gain")); });
  refused("tensor \"positions\" belongs to none",
          [](Tensors& t) { text(t, "model.positions") = "trained"; });
  refused("there are 3 angles of a feature for 2 heads", [](Tensors& t) {
    tensor(t, "positions") = {"positions", {5, 3}, std::vector(15, 1.0f)};
  });
  Tensors other = whole; // what others add is left alone
  other.metadata.emplace_back("note", "of paul15");
  BOOST_TEST((cape::from_tensors(other, run).parameters == model(tiny()).parameters));
}

BOOST_AUTO_TEST_CASE(what_cannot_come_back_is_not_saved) {
  Run run;
  Backbone b = model(tiny());
  b.parameters.back() = std::nanf("");
  BOOST_TEST(test::fails_with(Status::invalid_argument, "a parameter of the model is not finite",
                              [&] { cape::to_tensors(b, run); }));
  b.parameters.pop_back();
  BOOST_TEST(test::fails_with(Status::dim_mismatch, "parameters; the model has",
                              [&] { cape::to_tensors(b, run); }));
  BOOST_TEST(test::fails_with(
      Status::invalid_argument, "the name of feature 1 (counted from 0) is not UTF-8",
      [&] { cape::make_backbone({"a", "\xe4"}, Matrix(2, 4), tiny(), run); }));
}
