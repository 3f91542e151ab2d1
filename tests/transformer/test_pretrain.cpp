// Training: what can be learned is learned, and the same way whoever looks on.
#define BOOST_TEST_MODULE pretrain
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>
import cape;

#include "errors.hpp"
#include "occasions.hpp"

using cape::Backbone;
using cape::BackboneOptions;
using cape::Cells;
using cape::Checkpoint;
using cape::Matrix;
using cape::PositionKind;
using cape::PretrainOptions;
using cape::Run;
using cape::Status;

namespace {

constexpr std::int64_t features = 12;

// Three factors, four features each: x = f + noise. The best guess of a feature from the three
// others of its factor has variance noise^2 + noise^2 / (3 + noise^2).
constexpr double noise = 0.3;
Matrix factors(std::int64_t cells) {
  Matrix x(cells, features);
  cape::Rng rng(21, {1});
  for (std::int64_t i = 0; i < cells; ++i)
    for (std::int64_t f = 0; f < 3; ++f) {
      const double factor = rng.normal();
      for (std::int64_t j = 0; j < 4; ++j) x(i, 4 * f + j) = factor + noise * rng.normal();
    }
  return x;
}

std::vector<std::string> names() {
  std::vector<std::string> out;
  for (std::int64_t i = 0; i < features; ++i) out.push_back("f" + std::to_string(i));
  return out;
}

BackboneOptions small(PositionKind kind = PositionKind::trained) {
  BackboneOptions o;
  o.width = 32;
  o.heads = 4;
  o.feed_forward = 32;
  o.positions = kind;
  o.dropout = 0;
  return o;
}

PretrainOptions short_training(std::int64_t epochs) {
  PretrainOptions o;
  o.epochs = epochs;
  o.batch_cells = 16;
  o.hidden = 0.25;
  return o;
}

Backbone start(const BackboneOptions& o, const Matrix& positions = {}) {
  Run run(2);
  return cape::make_backbone(names(), positions, o, run);
}

bool same(const cape::Trained& a, const cape::Trained& b) {
  bool equal = a.backbone.parameters == b.backbone.parameters && a.best_epoch == b.best_epoch &&
               a.history.size() == b.history.size();
  for (std::size_t e = 0; equal && e < a.history.size(); ++e)
    equal = a.history[e].loss == b.history[e].loss &&
            a.history[e].validation == b.history[e].validation;
  return equal;
}

} // namespace

BOOST_AUTO_TEST_CASE(factors_are_learned) {
  const Matrix x = factors(600);
  Run run(1, 2);
  const auto fit =
      cape::pretrain(start(small()), cape::cells_of(x.view()), short_training(80), run);
  // Of a hidden quarter of the tokens one or more of the three others may be hidden as well.
  const double best = (noise * noise + noise * noise / (3 + noise * noise)) / (1 + noise * noise);
  BOOST_TEST_MESSAGE("relative loss " << fit.history.back().relative << ", best " << best);
  const double reached = fit.history[static_cast<std::size_t>(fit.best_epoch - 1)].relative;
  BOOST_TEST(reached < 0.3);
  BOOST_TEST(reached > best);

  // Of cells that it has not seen, hardly more.
  const cape::HiddenLoss unseen =
      cape::hidden_loss(fit.backbone, cape::cells_of(factors(900).view()), short_training(1), run);
  BOOST_TEST(unseen.relative < 1.2 * reached);
  BOOST_TEST(unseen.relative > best);

  // Nothing tells features apart: no better than a guess from all the values.
  const auto blind = cape::pretrain(start(small(PositionKind::none)), cape::cells_of(x.view()),
                                    short_training(20), run);
  BOOST_TEST(blind.history[static_cast<std::size_t>(blind.best_epoch - 1)].relative > 0.6);
}

BOOST_AUTO_TEST_CASE(same_bits_for_any_threads_and_after_any_interruption) {
  const Matrix x = factors(60);
  BackboneOptions o = small(PositionKind::rotary_trained);
  o.dropout = 0.1;
  o.learn_angle_factor = true;
  Matrix angles(features, 8);
  cape::Rng rng(3, {1});
  for (std::int64_t i = 0; i < angles.size(); ++i) angles.data()[i] = rng.normal();
  const Backbone b = start(o, angles);
  const PretrainOptions training = short_training(4);
  const Cells cells = cape::cells_of(x.view());
  Run one(5, 1), two(5, 2), other(6, 1);
  const auto expected = cape::pretrain(b, cells, training, one);
  BOOST_TEST(same(expected, cape::pretrain(b, cells, training, two)));
  BOOST_TEST(!same(expected, cape::pretrain(b, cells, training, other)));

  for (const std::int64_t stop : {1, 3, 5, 8, 13}) {
    Checkpoint checkpoint;
    std::int64_t calls = 0;
    Run cut(
        5, 1, [&](const cape::Progress&) { return ++calls < 40 * stop; },
        std::chrono::milliseconds(0));
    try {
      cape::pretrain(b, cells, training, cut, &checkpoint);
    } catch (const cape::Error& e) {
      BOOST_TEST((e.code() == Status::cancelled));
    }
    Run again(5, 2);
    BOOST_TEST(same(expected, cape::pretrain(b, cells, training, again, &checkpoint)));
    BOOST_TEST(checkpoint.epoch == 4);
    BOOST_TEST(test::fails_with(Status::invalid_argument, "seed",
                                [&] { cape::pretrain(b, cells, training, other, &checkpoint); }));
  }
}

// Cells whose first factor is above 0, and the sum of its features, of which every fifth is
// unknown.
cape::Targets targets_of(const Matrix& x, cape::HeadKind kind) {
  cape::Targets t{kind, {"low", "high"}, {}};
  if (kind == cape::HeadKind::numbers) t.names = {"sum"};
  for (std::int64_t i = 0; i < x.rows(); ++i) {
    const double sum = x(i, 0) + x(i, 1) + x(i, 2) + x(i, 3);
    t.values.push_back(i % 5 == 0                        ? std::nan("")
                       : kind == cape::HeadKind::numbers ? 100 + 10 * sum
                                                         : static_cast<double>(sum > 0));
  }
  return t;
}

BOOST_AUTO_TEST_CASE(what_is_known_of_cells_is_learned) {
  const Matrix x = factors(300), unseen = factors(400);
  const Cells cells = cape::cells_of(x.view());
  cape::FinetuneOptions o;
  o.epochs = 15;
  for (const std::int64_t blocks : {-1, 1, 0}) {
    o.blocks = blocks;
    const Backbone b = start(small());
    Run one(5, 1), two(5, 2);
    const auto classes = targets_of(x, cape::HeadKind::classes);
    const auto fit = cape::finetune(b, cells, classes, o, one);
    BOOST_TEST(same(fit, cape::finetune(b, cells, classes, o, two)));
    // What comes before the last blocks is as it was.
    for (const cape::Slot& slot : cape::layout(b.options, features, 0)) {
      const auto first = b.parameters.begin() + slot.first;
      const bool kept =
          std::equal(first, first + slot.size(), fit.backbone.parameters.begin() + slot.first);
      if (slot.name == "embedding" || slot.name == "blocks.0.attention.in.weight")
        BOOST_TEST(kept == (blocks >= 0));
      if (slot.name == "blocks.1.attention.in.weight") BOOST_TEST(kept == (blocks == 0));
    }
    const Matrix told = cape::tell(fit.backbone, cape::cells_of(unseen.view()), one);
    const auto truth = targets_of(unseen, cape::HeadKind::classes);
    double right = 0, known = 0;
    for (std::int64_t i = 300; i < 400; ++i) { // factors() gives the first 300 again
      const double label = truth.values[static_cast<std::size_t>(i)];
      BOOST_TEST(std::fabs(told(i, 0) + told(i, 1) - 1) < 1e-12);
      if (std::isnan(label)) continue;
      right += (told(i, 1) > 0.5) == (label == 1);
      ++known;
    }
    BOOST_TEST_MESSAGE("blocks " << blocks << ": " << right / known);
    BOOST_TEST(right / known > (blocks == 0 ? 0.6 : 0.8)); // half by chance
  }
  o.blocks = -1;
  Run run(5, 2);
  const auto fit =
      cape::finetune(start(small()), cells, targets_of(x, cape::HeadKind::numbers), o, run);
  const auto& best = fit.history[static_cast<std::size_t>(fit.best_epoch - 1)];
  BOOST_TEST(best.relative < 0.2);
  const Matrix told = cape::tell(fit.backbone, cape::cells_of(unseen.view()), run);
  double error = 0;
  for (std::int64_t i = 300; i < 400; ++i) {
    const double sum = unseen(i, 0) + unseen(i, 1) + unseen(i, 2) + unseen(i, 3);
    error += std::pow(told(i, 0) - 100 - 10 * sum, 2) / 100;
  }
  BOOST_TEST(error < 0.3 * 100 * (16 + 4 * noise * noise)); // the variance of 10 times the sum
  // To tensors and back, to the bit.
  const Backbone again = cape::from_tensors(cape::to_tensors(fit.backbone, run), run);
  BOOST_TEST((again.parameters == fit.backbone.parameters &&
              again.head.mean == fit.backbone.head.mean && again.head.sd == fit.backbone.head.sd &&
              again.head.names == fit.backbone.head.names));
}

BOOST_AUTO_TEST_CASE(the_cells_of_many_steps_are_read_at_once) {
  constexpr std::int64_t columns = 1 << 15; // 64 cells have 2^21 values
  const std::int64_t n = 150;
  std::vector<std::string> names;
  for (std::int64_t j = 0; j < columns; ++j) names.push_back(std::to_string(j));
  Run run(5, 1);
  const Backbone b = cape::make_backbone(names, {}, small(PositionKind::none), run);
  std::vector<std::int64_t> reads, seen(n);
  const Cells cells{n, columns, [&](std::span<const std::int64_t> numbers, double* out) {
                      reads.push_back(std::ssize(numbers));
                      for (const std::int64_t cell : numbers) {
                        ++seen[static_cast<std::size_t>(cell)];
                        for (std::int64_t j = 0; j < columns; ++j)
                          *out++ = static_cast<double>((cell * j) % 7);
                      }
                    }};
  PretrainOptions training = short_training(2);
  training.batch_cells = 10;
  training.length = 3;
  training.validation = 0;
  cape::pretrain(b, cells, training, run);
  // Once for what guesses are made of, a cell at a time being a batch there; then each epoch.
  const std::vector<std::int64_t> expected{64, 64, 22, 60, 60, 30, 60, 60, 30};
  BOOST_TEST(reads == expected, boost::test_tools::per_element());
  for (const std::int64_t times : seen) BOOST_TEST(times == 3);
}

BOOST_AUTO_TEST_CASE(fine_tuning_goes_on_where_it_was_cut) {
  const Matrix x = factors(60);
  const Cells cells = cape::cells_of(x.view());
  const auto targets = targets_of(x, cape::HeadKind::numbers);
  cape::FinetuneOptions o;
  o.epochs = 3;
  const Backbone b = start(small());
  Run one(5, 1);
  const auto expected = cape::finetune(b, cells, targets, o, one);
  Checkpoint checkpoint;
  std::int64_t calls = 0;
  Run cut(5, 1, [&](const cape::Progress&) { return ++calls < 300; }, std::chrono::milliseconds(0));
  BOOST_TEST(test::fails_with(Status::cancelled, "",
                              [&] { cape::finetune(b, cells, targets, o, cut, &checkpoint); }));
  BOOST_TEST(same(expected, cape::finetune(b, cells, targets, o, one, &checkpoint)));
}

BOOST_AUTO_TEST_CASE(targets_that_cannot_be_learned_are_refused) {
  const Matrix x = factors(20);
  const Cells cells = cape::cells_of(x.view());
  const Backbone b = start(small());
  Run run;
  const auto refused = [&](Status status, const std::string& part, auto change) {
    auto targets = targets_of(x, cape::HeadKind::classes);
    cape::FinetuneOptions o;
    change(targets, o);
    return test::fails_with(status, part, [&] { cape::finetune(b, cells, targets, o, run); });
  };
  BOOST_TEST(refused(Status::dim_mismatch, "targets have 19 values",
                     [](auto& t, auto&) { t.values.pop_back(); }));
  BOOST_TEST(refused(Status::invalid_argument, "target 3 (counted from 0) is 2",
                     [](auto& t, auto&) { t.values[3] = 2; }));
  BOOST_TEST(refused(Status::invalid_argument, "class \"none\" has no cell",
                     [](auto& t, auto&) { t.names.push_back("none"); }));
  BOOST_TEST(refused(Status::invalid_argument, "two classes are called \"low\"",
                     [](auto& t, auto&) { t.names[1] = "low"; }));
  BOOST_TEST(refused(Status::invalid_argument, "finetune.blocks is 3",
                     [](auto&, auto& o) { o.blocks = 3; }));
  BOOST_TEST(refused(Status::invalid_argument, "there are 1 cells", [](auto& t, auto&) {
    std::fill(t.values.begin() + 2, t.values.end(), std::nan(""));
  }));
  BOOST_TEST(refused(Status::invalid_argument, "is the same in all cells", [](auto& t, auto&) {
    t.kind = cape::HeadKind::numbers;
    t.names = {"constant"};
    std::ranges::fill(t.values, 7.0);
  }));
  BOOST_TEST(test::fails_with(Status::unsupported, "fine-tuned",
                              [&] { cape::tell(b, cells, run); }));
}

BOOST_AUTO_TEST_CASE(training_stops_when_it_is_told) {
  const Matrix x = factors(60);
  const auto seen = test::occasions(
      [&](Run& run) {
        cape::pretrain(start(small()), cape::cells_of(x.view()), short_training(50), run);
      },
      [](const cape::Progress& p) { return p.step >= 5; });
  BOOST_TEST(seen.count > 5);
  BOOST_TEST(seen.after_cancelling == 0);
}

BOOST_AUTO_TEST_CASE(sparse_and_dense_cells_are_the_same) {
  Matrix x = factors(40);
  for (std::int64_t i = 0; i < x.size(); i += 3) x.data()[i] = 0;
  cape::SparseMatrix sparse{{}, {}, {0}, x.rows(), x.cols(), cape::Layout::row_major};
  for (std::int64_t i = 0; i < x.rows(); ++i) {
    for (std::int64_t j = 0; j < x.cols(); ++j)
      if (x(i, j) != 0) {
        sparse.values.push_back(x(i, j));
        sparse.indices.push_back(static_cast<std::int32_t>(j));
      }
    sparse.offsets.push_back(std::ssize(sparse.values));
  }
  for (const bool zeros : {true, false}) {
    auto options = small();
    options.zeros = zeros;
    Run run(5);
    const Backbone b = start(options);
    BOOST_TEST(same(cape::pretrain(b, cape::cells_of(x.view()), short_training(2), run),
                    cape::pretrain(b, cape::cells_of(sparse.view()), short_training(2), run)));
  }
}

BOOST_AUTO_TEST_CASE(missing_values_are_no_tokens_and_cells_without_any_have_a_place) {
  Matrix x = factors(30);
  for (std::int64_t j = 0; j < features; ++j) x(7, j) = std::nan(""); // an empty cell
  for (std::int64_t i = 0; i < 30; ++i) x(i, 5) = std::nan("");       // a feature that nobody has
  const Cells cells = cape::cells_of(x.view());
  Run run;
  const auto fit = cape::pretrain(start(small()), cells, short_training(2), run);
  for (const auto pooling : {cape::Pooling::cls, cape::Pooling::mean, cape::Pooling::max}) {
    const Matrix rows = cape::embed_cells(fit.backbone, cells, pooling, run);
    BOOST_TEST(rows.rows() == 30);
    for (std::int64_t j = 0; j < rows.cols(); ++j) BOOST_TEST(std::isfinite(rows(7, j)));
  }
  const Matrix vectors = cape::embed_features(fit.backbone, cells, run);
  BOOST_TEST(std::isnan(vectors(5, 0)));
  BOOST_TEST(std::isfinite(vectors(4, 0)));
}

BOOST_AUTO_TEST_CASE(embeddings_are_means_of_rows) {
  const Matrix x = factors(9);
  const Backbone b = start(small());
  const Cells cells = cape::cells_of(x.view());
  Run run(1, 2);
  std::vector<std::int64_t> all{0, 1, 2, 3, 4, 5, 6, 7, 8};
  std::vector<double> values(9 * features);
  cells.read(all, values.data());
  const cape::Tokens tokens = cape::tokenize(values, features, b.options);
  const auto rows = cape::encode<float>(b, b.parameters, tokens, run).tokens;
  const auto row = [&](std::int64_t token, std::int64_t j) {
    return static_cast<double>(rows[static_cast<std::size_t>(token * 32 + j)]);
  };
  const Matrix cls = cape::embed_cells(b, cells, cape::Pooling::cls, run),
               mean = cape::embed_cells(b, cells, cape::Pooling::mean, run),
               most = cape::embed_cells(b, cells, cape::Pooling::max, run),
               vectors = cape::embed_features(b, cells, run);
  double worst = 0;
  for (std::int64_t c = 0; c < 9; ++c)
    for (std::int64_t j = 0; j < 32; ++j) {
      const std::int64_t first = c * (features + 1);
      double sum = 0, top = -std::numeric_limits<double>::infinity();
      for (std::int64_t i = 1; i <= features; ++i) {
        sum += row(first + i, j);
        top = std::max(top, row(first + i, j));
      }
      worst = std::max({worst, std::fabs(cls(c, j) - row(first, j)),
                        std::fabs(mean(c, j) - sum / features), std::fabs(most(c, j) - top)});
    }
  for (std::int64_t f = 0; f < features; ++f) {
    double sum = 0;
    for (std::int64_t c = 0; c < 9; ++c) sum += row(c * (features + 1) + 1 + f, 3);
    worst = std::max(worst, std::fabs(vectors(f, 3) - sum / 9));
  }
  BOOST_TEST(worst < 1e-5);
}

BOOST_AUTO_TEST_CASE(attention_without_anything_to_tell_tokens_apart_is_even) {
  Backbone b = start(small());
  for (const cape::Slot& slot : cape::layout(b.options, features, 0))
    if (slot.name.ends_with("attention.in.weight"))
      std::fill_n(b.parameters.begin() + slot.first, 2 * slot.size() / 3, 0.0f); // no scores
  Matrix x = factors(7);
  for (std::int64_t i = 0; i < 7; ++i) x(i, 4) = std::nan("");
  Run run(1, 2);
  for (const std::int64_t block : {-1, 0, 1}) {
    const Matrix map = cape::attention_map(b, cape::cells_of(x.view()), block, run);
    BOOST_TEST(map.rows() == features + 1);
    for (std::int64_t i = 0; i <= features; ++i)
      for (std::int64_t j = 0; j < features; ++j) // of 11 features and <cls>
        BOOST_TEST(std::fabs(map(i, j) - (i == 4 || j == 4 ? 0 : 1.0 / 12)) < 1e-6);
  }
  BOOST_TEST(test::fails_with(Status::invalid_argument, "block is 2", [&] {
    cape::attention_map(b, cape::cells_of(x.view()), 2, run);
  }));
}

BOOST_AUTO_TEST_CASE(what_cannot_be_trained_is_refused) {
  const Matrix x = factors(20);
  const Backbone b = start(small());
  Run run;
  const auto refused = [&](Status status, const std::string& part, auto change,
                           const Matrix& table) {
    PretrainOptions o = short_training(2);
    change(o);
    return test::fails_with(status, part,
                            [&] { cape::pretrain(b, cape::cells_of(table.view()), o, run); });
  };
  BOOST_TEST(
      refused(Status::invalid_argument, "pretrain.hidden is 1", [](auto& o) { o.hidden = 1; }, x));
  BOOST_TEST(refused(Status::invalid_argument, "there are 2 cells", [](auto&) {}, factors(2)));
  BOOST_TEST(
      refused(Status::dim_mismatch, "the cells have 3 features", [](auto&) {}, Matrix(20, 3)));
  Matrix infinite = x;
  infinite(3, 2) = std::numeric_limits<double>::infinity();
  BOOST_TEST(refused(Status::invalid_argument, "of feature 2", [](auto&) {}, infinite));
  Matrix nothing(20, features);
  for (std::int64_t i = 0; i < nothing.size(); ++i) nothing.data()[i] = std::nan("");
  BOOST_TEST(refused(Status::invalid_argument, "no value", [](auto&) {}, nothing));
}
