// What trainings and passes are said to need, against the peak of a process.
#define BOOST_TEST_MODULE transformer_memory
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <functional>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>
import cape;

#include "peak.hpp"

namespace {

#ifdef CAPE_SANITIZED
constexpr bool sanitized = true; // which has memory of its own
#else
constexpr bool sanitized = false;
#endif

cape::Matrix values(std::int64_t cells, std::int64_t features) {
  cape::Matrix x(cells, features);
  cape::Rng rng(1, {1});
  for (std::int64_t i = 0; i < x.size(); ++i) x.data()[i] = rng.exponential();
  return x;
}

cape::Backbone model(const cape::BackboneOptions& o, std::int64_t features) {
  std::vector<std::string> names;
  for (std::int64_t i = 0; i < features; ++i) names.push_back("g" + std::to_string(i));
  cape::Matrix positions(features, o.positions == cape::PositionKind::relative ? 0 : 2 * o.heads);
  cape::Rng rng(2, {2});
  for (std::int64_t i = 0; i < positions.size(); ++i) positions.data()[i] = rng.uniform(-0.2, 0.2);
  cape::Run run;
  return cape::make_backbone(std::move(names), std::move(positions), o, run);
}

// Twice: what a step leaves behind meets the next.
cape::PretrainOptions training(std::int64_t batch_cells, std::int64_t length) {
  cape::PretrainOptions o;
  o.epochs = 2, o.batch_cells = batch_cells, o.length = length;
  return o;
}

double pretrain_peak(const cape::BackboneOptions& o, std::int64_t features, std::int64_t cells,
                     const cape::PretrainOptions& of_training, int threads) {
  return test::peak_of(
      [&] {
        return [=, x = values(cells, features), start = model(o, features)](cape::Run& run) {
          cape::pretrain(start, cape::cells_of(x.view()), of_training, run);
        };
      },
      threads);
}

double encode_peak(const cape::BackboneOptions& o, std::int64_t features, std::int64_t cells,
                   int threads) {
  return test::peak_of(
      [&] {
        return [=, x = values(cells, features), start = model(o, features)](cape::Run& run) {
          cape::embed_cells(start, cape::cells_of(x.view()), cape::Pooling::cls, run);
        };
      },
      threads);
}

void check(double measured, double said) {
  BOOST_TEST_REQUIRE(measured > 5e7); // what a process takes beside is much less than 15 %
  BOOST_TEST_MESSAGE("measured " << measured / 1e6 << " MB, said " << said / 1e6 << " MB");
  BOOST_TEST(said > 0.85 * measured);
  BOOST_TEST(said < 1.15 * measured);
}

boost::test_tools::assertion_result plain(boost::unit_test::test_unit_id) { return !sanitized; }

} // namespace

BOOST_AUTO_TEST_SUITE(memory, *boost::unit_test::precondition(plain))

BOOST_AUTO_TEST_CASE(of_training_with_exact_attention) {
  const cape::BackboneOptions o = cape::backbone_preset("small");
  for (const int threads : {1, 2}) {
    const cape::PretrainOptions t = training(16, 512);
    check(pretrain_peak(o, 500, 40, t, threads), cape::pretrain_memory(model(o, 500), t, threads));
  }
}

BOOST_AUTO_TEST_CASE(of_training_that_predicts_by_cell_and_norms_embeddings) {
  cape::BackboneOptions o = cape::backbone_preset("scgpt");
  o.values = cape::Values::continuous;
  o.width = 128, o.feed_forward = 128, o.blocks = 3;
  cape::PretrainOptions t = training(4, 1024);
  t.cell_weight = 1, t.validation = 0;
  check(pretrain_peak(o, 1023, 4, t, 2), cape::pretrain_memory(model(o, 1023), t, 2));
}

BOOST_AUTO_TEST_CASE(of_training_with_linear_attention) {
  for (const cape::AttentionKind kind :
       {cape::AttentionKind::linear, cape::AttentionKind::performer}) {
    cape::BackboneOptions o = cape::backbone_preset("scbert");
    o.attention = kind, o.blocks = 2;
    cape::PretrainOptions t = training(1, 3000);
    t.validation = 0;
    check(pretrain_peak(o, 3000, 2, t, 2), cape::pretrain_memory(model(o, 3000), t, 2));
  }
}

BOOST_AUTO_TEST_CASE(of_training_whose_scores_know_of_pairs) {
  for (const cape::PositionKind kind :
       {cape::PositionKind::relative, cape::PositionKind::distance}) {
    cape::BackboneOptions o = cape::backbone_preset("small");
    o.positions = kind;
    cape::PretrainOptions t = training(2, 1200);
    t.validation = 0;
    check(pretrain_peak(o, 1200, 2, t, 2), cape::pretrain_memory(model(o, 1200), t, 2));
  }
}

BOOST_AUTO_TEST_CASE(of_fine_tuning) {
  const cape::BackboneOptions o = cape::backbone_preset("small");
  for (const std::int64_t blocks : {-1, 0}) {
    cape::FinetuneOptions t;
    t.epochs = 2, t.batch_cells = 32, t.length = 1000, t.blocks = blocks;
    constexpr std::int64_t cells = 80, features = 1000;
    cape::Targets targets{cape::HeadKind::classes, {"a", "b"}, {}};
    for (std::int64_t c = 0; c < cells; ++c) targets.values.push_back(static_cast<double>(c % 2));
    const double measured = test::peak_of(
        [&] {
          return [=, x = values(cells, features), start = model(o, features)](cape::Run& run) {
            cape::finetune(start, cape::cells_of(x.view()), targets, t, run);
          };
        },
        2);
    check(measured, cape::finetune_memory(model(o, features), t, 2));
  }
}

BOOST_AUTO_TEST_CASE(of_encoding) {
  const cape::BackboneOptions o = cape::backbone_preset("small");
  for (const int threads : {1, 2})
    check(encode_peak(o, 20000, 1, threads), cape::encode_memory(model(o, 20000), threads));
}

BOOST_AUTO_TEST_CASE(is_linear_in_the_tokens_of_a_cell) {
  const cape::BackboneOptions o = cape::backbone_preset("scgpt");
  const auto said = [&](std::int64_t length) {
    return cape::pretrain_memory(model(o, 20000), training(1, length), 1);
  };
  const double first = said(10000) - said(5000), second = said(20000) - said(15000);
  BOOST_TEST(second > 0.99 * first);
  BOOST_TEST(second < 1.01 * first);
}

BOOST_AUTO_TEST_SUITE_END()
