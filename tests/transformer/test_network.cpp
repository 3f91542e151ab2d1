// The whole model: gradients against central differences in double, and what must not matter.
#define BOOST_TEST_MODULE network
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>
import cape;

#include "errors.hpp"

using cape::Backbone;
using cape::BackboneOptions;
using cape::Matrix;
using cape::NormOrder;
using cape::PositionKind;
using cape::Run;
using cape::Status;
using cape::Tokens;

namespace {

constexpr std::int64_t features = 5;

std::vector<std::string> names(std::int64_t n = features) {
  std::vector<std::string> out;
  for (std::int64_t i = 0; i < n; ++i) out.push_back("g" + std::to_string(i));
  return out;
}

BackboneOptions tiny() {
  BackboneOptions o;
  o.width = 8;
  o.heads = 2;
  o.blocks = 2;
  o.feed_forward = 20; // few units might all be at rest
  o.bins = 4;
  o.random_features = 6;
  o.dropout = 0;
  return o;
}

std::int64_t columns_of(const BackboneOptions& o) {
  switch (o.positions) {
  case PositionKind::none:
  case PositionKind::trained:
  case PositionKind::relative:
  case PositionKind::relative_trained: return 0;
  case PositionKind::fixed: return o.width;
  case PositionKind::projected:
  case PositionKind::distance:
  case PositionKind::distance_trained: return 3;
  default: return o.head_width > 0 ? o.heads * o.head_width / 2 : o.width / 2;
  }
}

bool is_distance(PositionKind kind) {
  return kind == PositionKind::distance || kind == PositionKind::distance_trained;
}

Matrix normal(std::int64_t rows, std::int64_t columns, std::uint64_t key) {
  Matrix m(rows, columns);
  cape::Rng rng(5, {key});
  for (std::int64_t i = 0; i < m.size(); ++i) m.data()[i] = rng.normal();
  return m;
}

// Parameters away from their start, where some gradients are 0.
Backbone model(const BackboneOptions& o, std::int64_t n = features) {
  Run run(3);
  const std::int64_t columns = columns_of(o);
  Matrix positions = columns > 0 ? normal(n, columns, 1) : Matrix();
  if (is_distance(o.positions)) // into the ball
    for (std::int64_t i = 0; i < positions.size(); ++i)
      positions.data()[i] = 0.55 * std::tanh(positions.data()[i]);
  Backbone b = cape::make_backbone(names(n), std::move(positions), o, run);
  cape::Rng rng(4, {2});
  for (const cape::Slot& slot : cape::layout(o, n, columns))
    for (std::int64_t i = slot.first; i < slot.first + slot.size(); ++i) {
      float& p = b.parameters[static_cast<std::size_t>(i)];
      p += static_cast<float>(0.2 * rng.normal());
    }
  return b;
}

// Three cells: two of the same length, and one that is longer.
Tokens tokens(const BackboneOptions& o) {
  Tokens t;
  t.start = {0, 4, 8, 14};
  t.feature = {-1, 0, 1, 2, -1, 4, 3, 1, -1, 2, 0, 1, 4, 3};
  cape::Rng rng(6, {3});
  for (const std::int32_t f : t.feature) {
    const bool bins = o.values != cape::Values::continuous;
    t.value.push_back(f < 0 ? 0 : static_cast<float>(bins ? rng.integer(o.bins) : rng.normal()));
    t.hidden.push_back(f >= 0 && rng.uniform() < 0.4);
  }
  t.hidden[1] = t.hidden[6] = t.hidden[9] = 1;
  return t;
}

std::vector<float> targets(const Tokens& t, const BackboneOptions& o) {
  cape::Rng rng(7, {4});
  std::vector<float> out;
  for (std::int64_t i = 0; i < t.size(); ++i)
    out.push_back(static_cast<float>(o.values != cape::Values::continuous ? rng.integer(o.bins)
                                                                          : rng.normal()));
  return out;
}

std::vector<double> as_double(const std::vector<float>& x) { return {x.begin(), x.end()}; }

std::vector<std::pair<std::string, BackboneOptions>> variants() {
  std::vector<std::pair<std::string, BackboneOptions>> all;
  const auto add = [&](const std::string& name, auto change) {
    BackboneOptions o = tiny();
    change(o);
    all.emplace_back(name, o);
  };
  add("default", [](auto&) {});
  for (const NormOrder order : {NormOrder::post, NormOrder::pre, NormOrder::stream})
    add("norm_order " + std::to_string(static_cast<int>(order)), [&](auto& o) {
      o.norm_order = order;
      o.embedding_norm = true;
      o.decoder_layers = 2;
    });
  for (const PositionKind kind :
       {PositionKind::none, PositionKind::trained, PositionKind::fixed, PositionKind::projected,
        PositionKind::rotary, PositionKind::relative, PositionKind::relative_trained,
        PositionKind::distance, PositionKind::distance_trained})
    add("positions " + std::to_string(static_cast<int>(kind)),
        [&](auto& o) { o.positions = kind; });
  for (const PositionKind kind :
       {PositionKind::rotary_trained, PositionKind::relative, PositionKind::distance})
    add("context blocks " + std::to_string(static_cast<int>(kind)), [&](auto& o) {
      o.positions = kind;
      o.context_blocks = 1;
      o.learn_angle_factor = true;
    });
  add("learned factor", [](auto& o) { o.learn_angle_factor = true; });
  add("literal angles", [](auto& o) { o.angle_scale = cape::AngleScale::literal; });
  add("linear attention", [](auto& o) {
    o.attention = cape::AttentionKind::linear;
    o.attention_bias = false;
  });
  add("performers of another width", [](auto& o) {
    o.attention = cape::AttentionKind::performer;
    o.head_width = 6;
  });
  add("bins, table, classes", [](auto& o) {
    o.values = cape::Values::fixed_bins;
    o.value_embedding = cape::ValueEmbedding::table;
    o.loss = cape::ValueLoss::cross_entropy;
    o.activation = cape::layers::Activation::gelu;
    o.decoder_layers = 0;
  });
  add("dropout", [](auto& o) { o.dropout = 0.3; });
  return all;
}

} // namespace

// The slope of loss({}) in an element of p, by central differences.
template <class Loss>
double slope_of(const Loss& loss, std::vector<double>& p, std::size_t at) {
  constexpr double h = 1e-6;
  const double before = p[at];
  p[at] = before + h;
  const double above = loss({});
  p[at] = before - h;
  const double below = loss({});
  p[at] = before;
  return (above - below) / (2 * h);
}

BOOST_AUTO_TEST_CASE(gradients_are_those_of_the_loss) {
  for (const auto& [name, o] : variants()) BOOST_TEST_CONTEXT(name) {
      const Backbone b = model(o);
      const Tokens t = tokens(o);
      const std::vector<float> target = targets(t, o);
      const double cell_weight = o.loss == cape::ValueLoss::square ? 0.7 : 0;
      const std::int64_t step = o.dropout > 0 ? 3 : -1;
      Run run(1, 2);
      std::vector<double> p = as_double(b.parameters), gradient(p.size());
      const auto loss = [&](std::span<double> slopes) {
        return cape::pretrain_loss<double>(b, p, t, target, cell_weight, step, slopes, run);
      };
      loss(gradient);
      for (const cape::Slot& slot : cape::layout(o, features, columns_of(o))) {
        if (slot.name.ends_with("directions")) continue; // these are drawn, not trained
        double worst = 0, largest = 0;
        for (std::int64_t i = slot.first; i < slot.first + slot.size(); ++i) {
          const auto at = static_cast<std::size_t>(i);
          const double slope = slope_of(loss, p, at);
          worst = std::max(worst, std::fabs(slope - gradient[at]) / (1 + std::fabs(slope)));
          largest = std::max(largest, std::fabs(slope));
        }
        BOOST_TEST_CONTEXT(slot.name) {
          BOOST_TEST(worst < 1e-7);
          // What has no influence would be no parameter; but <cls> asks by what features are, which
          // some kinds of positions do not say.
          if (slot.name != "cell.query.weight" || o.positions == PositionKind::trained)
            BOOST_TEST(largest > 1e-6);
        }
      }
      const std::vector<float> single(b.parameters);
      std::vector<float> float_gradient(single.size());
      const double rounded =
          cape::pretrain_loss<float>(b, single, t, target, cell_weight, step, float_gradient, run);
      BOOST_TEST(std::fabs(rounded - loss({})) < 1e-5);
      double off = 0;
      for (std::size_t i = 0; i < gradient.size(); ++i)
        off = std::max(off, std::fabs(gradient[i] - static_cast<double>(float_gradient[i])));
      BOOST_TEST(off < 1e-4);
    }
}

// A model with a head, away from its start.
Backbone with_head(BackboneOptions o, cape::Head head) {
  Backbone b = model(o);
  b.head = std::move(head);
  cape::Rng rng(8, {5});
  for (const cape::Slot& slot : cape::layout(b))
    if (slot.name.starts_with("head."))
      for (std::int64_t i = 0; i < slot.size(); ++i)
        b.parameters.push_back(static_cast<float>(0.5 * rng.normal()));
  return b;
}

BOOST_AUTO_TEST_CASE(gradients_of_heads_are_those_of_the_loss) {
  using cape::HeadKind, cape::Pooling;
  const double unknown = std::nan("");
  struct Case {
    cape::Head head;
    std::vector<double> target, class_weight;
    std::int64_t first_block;
    NormOrder order;
    double dropout;
  };
  const std::vector<std::string> three = {"a", "b", "c"}, two = {"age", "weight"};
  const cape::Head numbers{HeadKind::numbers, two, Pooling::mean, 0, {40, 70}, {12, 9}};
  for (const Case& k :
       {Case{{HeadKind::classes, three, Pooling::cls_mean, 1, {}, {}},
             {2, unknown, 0},
             {1, 5, .3},
             0,
             NormOrder::pre,
             0},
        Case{{HeadKind::classes, three, Pooling::max, 2, {}, {}},
             {1, 1, 0},
             {},
             1,
             NormOrder::post,
             0},
        Case{{HeadKind::classes, three, Pooling::cls, 1, {}, {}},
             {1, 1, 0},
             {},
             2,
             NormOrder::pre,
             .3},
        Case{numbers, {30, 60, unknown, 80, 55, unknown}, {}, 0, NormOrder::stream, .2}}) {
    BackboneOptions o = tiny();
    o.norm_order = k.order;
    o.dropout = k.dropout;
    const Backbone b = with_head(o, k.head);
    const Tokens t = tokens(o);
    Run run(1, 2);
    std::vector<double> p = as_double(b.parameters), gradient(p.size());
    const auto loss = [&](std::span<double> slopes) {
      return cape::finetune_loss<double>(b, p, t, k.target, k.class_weight, k.first_block,
                                         k.dropout > 0 ? 3 : -1, slopes, run);
    };
    loss(gradient);
    for (const cape::Slot& slot : cape::layout(b)) {
      const bool of_late_block =
          slot.name.starts_with("blocks.") && slot.name[7] - '0' >= k.first_block;
      const bool moves = slot.name.starts_with("head.") || k.first_block == 0 || of_late_block ||
                         (slot.name.starts_with("norm.") && k.first_block < o.blocks);
      double worst = 0;
      for (std::int64_t i = slot.first; i < slot.first + slot.size(); ++i) {
        const auto at = static_cast<std::size_t>(i);
        const double slope = moves ? slope_of(loss, p, at) : 0;
        worst = std::max(worst, std::fabs(slope - gradient[at]) / (1 + std::fabs(slope)));
      }
      BOOST_TEST_CONTEXT(slot.name << ", first block " << k.first_block) BOOST_TEST(worst < 1e-7);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_cell_does_not_depend_on_the_others_or_on_the_order_of_its_tokens) {
  for (const auto& [name, o] : variants()) BOOST_TEST_CONTEXT(name) {
      if (o.attention == cape::AttentionKind::performer) continue; // there it does
      const Backbone b = model(o);
      const Tokens t = tokens(o);
      Run run;
      const std::vector<double> p = as_double(b.parameters);
      const cape::Encoded<double> all = cape::encode<double>(b, p, t, run);
      const std::int64_t first = t.start[2], n = t.start[3] - first;
      Tokens alone;
      alone.start = {0, n};
      for (std::int64_t i = 0; i < n; ++i) { // <cls>, and the others backwards
        const auto from = static_cast<std::size_t>(first + (i == 0 ? 0 : n - i));
        alone.feature.push_back(t.feature[from]);
        alone.value.push_back(t.value[from]);
        alone.hidden.push_back(t.hidden[from]);
      }
      const cape::Encoded<double> one = cape::encode<double>(b, p, alone, run);
      double worst = 0;
      for (std::int64_t i = 0; i < n; ++i)
        for (std::int64_t j = 0; j < o.width; ++j) {
          const std::int64_t from = first + (i == 0 ? 0 : n - i);
          worst =
              std::max(worst, std::fabs(all.tokens[static_cast<std::size_t>(from * o.width + j)] -
                                        one.tokens[static_cast<std::size_t>(i * o.width + j)]));
        }
      BOOST_TEST(worst < 1e-12);
    }
}

BOOST_AUTO_TEST_CASE(features_without_anything_of_their_own_are_alike) {
  BackboneOptions o = tiny();
  o.positions = PositionKind::none;
  const Backbone b = model(o);
  Tokens t = tokens(o);
  Run run;
  const auto before = cape::encode<float>(b, b.parameters, t, run);
  for (std::int32_t& f : t.feature) f = f < 0 ? f : (f + 1) % static_cast<std::int32_t>(features);
  BOOST_TEST((cape::encode<float>(b, b.parameters, t, run).tokens == before.tokens));
  const Backbone turned = model(tiny());
  const auto rows = cape::encode<float>(turned, turned.parameters, t, run).tokens;
  for (std::int32_t& f : t.feature) f = f < 0 ? f : (f + 1) % static_cast<std::int32_t>(features);
  BOOST_TEST((cape::encode<float>(turned, turned.parameters, t, run).tokens != rows));
}

BOOST_AUTO_TEST_CASE(one_angle_for_all_features_is_none_but_for_cls) {
  // Attention sees differences of angles (paper, sec_position): turned by the same angle, tokens
  // attend to each other as if they were not turned. <cls> is not turned, so it must be left out.
  BackboneOptions o = tiny();
  o.positions = PositionKind::rotary;
  o.angle_scale = cape::AngleScale::literal;
  Backbone b = model(o);
  for (std::int64_t i = 0; i < features; ++i)
    for (std::int64_t j = 0; j < b.positions.cols(); ++j) b.positions(i, j) = 0.3;
  Backbone plain = b;
  plain.positions = Matrix(features, b.positions.cols());
  const Tokens t = tokens(o);
  Run run;
  const std::vector<double> p = as_double(b.parameters);
  const auto turned = cape::encode<double>(b, p, t, run),
             straight = cape::encode<double>(plain, p, t, run);
  double worst = 0;
  for (std::size_t i = 0; i < turned.tokens.size(); ++i)
    worst = std::max(worst, std::fabs(turned.tokens[i] - straight.tokens[i]));
  BOOST_TEST(worst > 1e-6); // <cls> tells them apart
}

BOOST_AUTO_TEST_CASE(a_model_of_context_blocks_alone_has_no_use_for_angles) {
  BackboneOptions o = tiny();
  o.positions = PositionKind::rotary;
  o.context_blocks = 2;
  const Backbone b = model(o);
  o.positions = PositionKind::none;
  const Backbone plain = model(o);
  const Tokens t = tokens(o);
  Run run;
  BOOST_TEST((b.parameters == plain.parameters));
  BOOST_TEST((cape::encode<float>(b, b.parameters, t, run).tokens ==
              cape::encode<float>(plain, plain.parameters, t, run).tokens));
}

BOOST_AUTO_TEST_CASE(weights_fall_with_the_distance_of_features) {
  // Points on a diameter are as far apart as their radii 2 artanh(e); all products are 0.
  BackboneOptions o = tiny();
  o.positions = PositionKind::distance;
  const std::vector<double> radius = {-1.5, 0.2, 0, 2, -0.7};
  Matrix points(features, 1);
  for (std::int64_t i = 0; i < features; ++i)
    points(i, 0) = std::tanh(radius[static_cast<std::size_t>(i)] / 2);
  Run run;
  Backbone b = cape::make_backbone(names(), points, o, run);
  for (const cape::Slot& slot : cape::layout(o, features, 1))
    if (slot.name.ends_with("attention.in.weight"))
      std::fill_n(b.parameters.begin() + slot.first, slot.size(), 0.0f);
  Matrix cell(1, features);
  for (std::int64_t i = 0; i < features; ++i) cell(0, i) = 1;
  const Matrix map = cape::attention_map(b, cape::cells_of(cell.view()), 0, run);
  for (std::int64_t m = 0; m <= features; ++m)
    for (std::int64_t n = 0; n < features; ++n) {
      double expected = 0;
      const auto at = [&](std::int64_t i) {
        return i == features ? 0.0 : radius[static_cast<std::size_t>(i)];
      };
      for (const double factor : {1.0 / 16, 1.0 / 256}) { // 2^-(8 h / 2)
        double sum = 0;
        for (std::int64_t k = 0; k <= features; ++k)
          sum += std::exp(-factor * std::fabs(at(m) - at(k)));
        expected += std::exp(-factor * std::fabs(at(m) - at(n))) / sum / 2;
      }
      BOOST_TEST(std::fabs(map(m, n) - expected) < 1e-6);
    }
}

BOOST_AUTO_TEST_CASE(any_number_of_threads_gives_the_same_bits) {
  for (const PositionKind kind :
       {PositionKind::rotary_trained, PositionKind::relative, PositionKind::distance}) {
    BackboneOptions o = tiny();
    o.positions = kind;
    o.dropout = 0.2;
    o.learn_angle_factor = kind == PositionKind::rotary_trained;
    constexpr std::int64_t many = 300;
    const Backbone b = model(o, many);
    Tokens t;
    cape::Rng rng(9, {1});
    for (int c = 0; c < 8; ++c) {
      t.start.push_back(t.size());
      for (std::int32_t f = -1; f < static_cast<std::int32_t>(many) - 40 * c; ++f) {
        t.feature.push_back(f);
        t.value.push_back(static_cast<float>(rng.normal()));
        t.hidden.push_back(f >= 0 && f % 3 == 0);
      }
    }
    t.start.push_back(t.size());
    const std::vector<float> target(t.value);
    const auto gradient = [&](int threads) {
      Run run(1, threads);
      std::vector<float> g(b.parameters.size());
      cape::pretrain_loss<float>(b, b.parameters, t, target, 1, 5, g, run);
      return g;
    };
    BOOST_TEST((gradient(1) == gradient(2)));
    BOOST_TEST((gradient(1) == gradient(5)));
  }
}

BOOST_AUTO_TEST_CASE(what_does_not_fit_is_refused) {
  Run run;
  const auto refused = [&](Status status, const std::string& part, auto change, Matrix positions) {
    BackboneOptions o = tiny();
    change(o);
    return test::fails_with(status, part,
                            [&] { cape::make_backbone(names(), std::move(positions), o, run); });
  };
  BOOST_TEST(refused(
      Status::invalid_argument, "model.width is 9 and model.heads 2", [](auto& o) { o.width = 9; },
      normal(5, 4, 1)));
  BOOST_TEST(refused(
      Status::dim_mismatch, "a head is 3 wide", [](auto& o) { o.width = 6; }, normal(5, 4, 1)));
  BOOST_TEST(refused(
      Status::dim_mismatch, "there are 6 angles of a feature for 2 heads of 2 pairs", [](auto&) {},
      normal(5, 6, 1)));
  BOOST_TEST(refused(Status::dim_mismatch, "positions are 4 x 4", [](auto&) {}, normal(4, 4, 1)));
  BOOST_TEST(refused(
      Status::dim_mismatch, "takes none", [](auto& o) { o.positions = PositionKind::trained; },
      normal(5, 4, 1)));
  BOOST_TEST(refused(
      Status::dim_mismatch, "fixed ones must have those of the model, 8",
      [](auto& o) { o.positions = PositionKind::fixed; }, normal(5, 4, 1)));
  BOOST_TEST(refused(
      Status::invalid_argument, "model.value_embedding is table",
      [](auto& o) { o.value_embedding = cape::ValueEmbedding::table; }, normal(5, 4, 1)));
  BOOST_TEST(refused(
      Status::dim_mismatch, "takes none", [](auto& o) { o.positions = PositionKind::relative; },
      normal(5, 4, 1)));
  BOOST_TEST(refused(
      Status::unsupported, "model.attention exact",
      [](auto& o) {
        o.positions = PositionKind::distance;
        o.attention = cape::AttentionKind::linear;
      },
      Matrix(5, 4)));
  BOOST_TEST(refused(
      Status::invalid_argument, "model.context_blocks is 3; there are 2",
      [](auto& o) { o.context_blocks = 3; }, normal(5, 4, 1)));
  Matrix outside(5, 4);
  outside(3, 2) = 1 - 1e-9; // 1 in float
  BOOST_TEST(refused(
      Status::invalid_argument, "row 3 of positions (counted from 0) has length 1",
      [](auto& o) { o.positions = PositionKind::distance; }, outside));
  Matrix nan = normal(5, 4, 1);
  nan(2, 1) = std::nan("");
  BOOST_TEST(refused(Status::invalid_argument, "positions", [](auto&) {}, nan));
  BOOST_TEST(test::fails_with(Status::invalid_argument, "two features are called \"a\"", [&] {
    cape::make_backbone({"a", "b", "a"}, normal(3, 4, 1), tiny(), run);
  }));
  BOOST_TEST(test::fails_with(Status::invalid_argument, "preset is \"gpt\"",
                              [] { cape::backbone_preset("gpt"); }));

  const Backbone b = model(tiny());
  const auto bad = [&](const std::string& part, auto change) {
    Tokens t = tokens(tiny());
    change(t);
    return test::fails_with(Status::invalid_argument, part,
                            [&] { cape::encode<float>(b, b.parameters, t, run); });
  };
  BOOST_TEST(bad("token 2 is of feature 5", [](Tokens& t) { t.feature[2] = 5; }));
  BOOST_TEST(bad("token 3 has the value nan", [](Tokens& t) { t.value[3] = std::nanf(""); }));
  BOOST_TEST(bad("tokens.start", [](Tokens& t) { t.start[1] = 9; }));
  BOOST_TEST(bad("the first token of cell 1", [](Tokens& t) { t.feature[4] = 2; }));
  BOOST_TEST(bad("there must be one each", [](Tokens& t) { t.value.pop_back(); }));
  Backbone huge = b;
  std::ranges::fill(huge.parameters, 1e30f);
  BOOST_CHECK_THROW(cape::encode<float>(huge, huge.parameters, tokens(tiny()), run), cape::Error);
}
