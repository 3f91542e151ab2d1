// An interrupted fit goes on where it was and ends with the same bits.
#define BOOST_TEST_MODULE checkpoint
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>
import cape;
#include "errors.hpp"

namespace {

using cape::Checkpoint;
using cape::Dag;
using cape::DagOptions;
using cape::Matrix;
using cape::Refine;
using cape::Rng;
using cape::Run;
using cape::Sem;
using cape::Status;
using test::fails_with;

Matrix noise(std::int64_t rows, std::int64_t cols, std::uint64_t seed) {
  Matrix x(rows, cols);
  Rng rng(seed);
  for (std::int64_t j = 0; j < cols; ++j)
    for (std::int64_t i = 0; i < rows; ++i) x(i, j) = (j > 0 ? x(i, j - 1) : 0) + rng.normal();
  return x;
}

DagOptions quick(Sem sem) {
  DagOptions o;
  o.sem = sem;
  o.refine = Refine::never;
  o.epochs = 9;
  return o;
}

// Cancelled once at that share of its polls; true if it was.
bool stops(const Matrix& x, const DagOptions& options, Checkpoint& checkpoint, std::int64_t step) {
  Run run(4, 1, [&](const cape::Progress& p) { return p.step < step; });
  try {
    cape::learn_dag(x, {}, {}, options, run, checkpoint);
  } catch (const cape::Error& e) {
    BOOST_TEST((e.code() == Status::cancelled));
    return true;
  }
  return false;
}

bool same(const Dag& a, const Dag& b) {
  bool equal = a.weights == b.weights && a.sign == b.sign && a.order == b.order && a.h == b.h &&
               a.history.size() == b.history.size() && a.statistic == b.statistic;
  for (std::size_t e = 0; equal && e < a.history.size(); ++e)
    equal = a.history[e].loss == b.history[e].loss && a.history[e].rho == b.history[e].rho &&
            a.history[e].alpha == b.history[e].alpha && a.history[e].h == b.history[e].h;
  return equal;
}

} // namespace

BOOST_AUTO_TEST_CASE(a_fit_that_went_on_is_the_fit_that_was_not_interrupted) {
  for (const Sem sem : {Sem::mlp, Sem::linear, Sem::paper, Sem::literal})
    for (const std::int64_t columns : {4, 70}) { // above 64, h is renewed every few steps only
      if (columns > 64 && sem == Sem::paper) continue;
      const Matrix x = noise(300, columns, 1);
      const DagOptions options = quick(sem);
      Run run(4, 1);
      const Dag whole = cape::learn_dag(x, options, run);
      Checkpoint checkpoint;
      std::int64_t interrupted = 0;
      for (const std::int64_t step : {1, 150, 151, 333, 400, 700})
        interrupted += stops(x, options, checkpoint, step);
      Run rest(4, 2);
      BOOST_TEST(same(cape::learn_dag(x, {}, {}, options, rest, checkpoint), whole));
      BOOST_TEST(checkpoint.epoch == options.epochs);
      BOOST_TEST(interrupted >= 1);
      // And once more from the end: nothing is left to train.
      BOOST_TEST(same(cape::learn_dag(x, {}, {}, options, rest, checkpoint), whole));
    }
}

BOOST_AUTO_TEST_CASE(an_interrupted_refinement_is_done_again_without_the_training) {
  const Matrix x = noise(200, 4, 2);
  DagOptions options = quick(Sem::mlp);
  options.refine = Refine::always;
  options.refine_epochs = 5;
  Run run(4, 1);
  const Dag whole = cape::learn_dag(x, options, run);
  Checkpoint checkpoint;
  Run cancelled(4, 1, [](const cape::Progress& p) { return p.stage != "dag.refine"; });
  BOOST_TEST(fails_with(Status::cancelled, "",
                        [&] { cape::learn_dag(x, {}, {}, options, cancelled, checkpoint); }));
  BOOST_TEST(checkpoint.epoch == options.epochs);
  BOOST_TEST(same(cape::learn_dag(x, {}, {}, options, run, checkpoint), whole));
}

BOOST_AUTO_TEST_CASE(the_whole_run_resumes_too) {
  const Matrix x = noise(200, 5, 3);
  cape::Options options;
  options.dag = quick(Sem::linear);
  options.embed.dims = 4;
  options.embed.epochs = 10;
  Run run(4, 1);
  const cape::Fit whole = cape::fit(x, options, run);
  cape::FitCheckpoint checkpoint;
  BOOST_TEST(stops(x, options.dag, checkpoint.dag, 200));
  // Then in the embedding, where Step I is not trained again.
  Run cancelled(4, 1, [](const cape::Progress& p) { return p.stage != "embed" || p.step < 4; });
  BOOST_TEST(fails_with(Status::cancelled, "",
                        [&] { cape::fit(x, {}, {}, options, cancelled, checkpoint); }));
  BOOST_TEST(checkpoint.dag.epoch == options.dag.epochs);
  BOOST_TEST(checkpoint.embedding.epoch >= 4);
  Run rest(4, 1, [](const cape::Progress& p) { return p.stage == "embed" || p.step == 0; });
  const cape::Fit fit = cape::fit(x, {}, {}, options, rest, checkpoint);
  BOOST_TEST((fit.embedding.poincare == whole.embedding.poincare && fit.angles == whole.angles));
}

BOOST_AUTO_TEST_CASE(a_checkpoint_of_another_fit_is_refused) {
  const Matrix x = noise(100, 3, 4);
  const DagOptions options = quick(Sem::linear);
  Checkpoint checkpoint;
  Run run(4, 1);
  cape::learn_dag(x, {}, {}, options, run, checkpoint);
  const auto refuses = [&](const Matrix& table, const cape::Knowledge& known, DagOptions o,
                           std::uint64_t seed) {
    Run other(seed, 1);
    return fails_with(Status::invalid_argument, "checkpoint is that of a fit of another table",
                      [&] { cape::learn_dag(table, known, {}, o, other, checkpoint); });
  };
  Matrix changed = x;
  changed(7, 1) += 1;
  DagOptions longer = options;
  longer.epochs = 10;
  cape::Knowledge known;
  known.roots = {0};
  BOOST_TEST(refuses(changed, {}, options, 4));
  BOOST_TEST(refuses(x, {}, longer, 4));
  BOOST_TEST(refuses(x, known, options, 4));
  BOOST_TEST(refuses(x, {}, options, 5));
  checkpoint.values.pop_back();
  BOOST_TEST(fails_with(Status::invalid_argument, "checkpoint is damaged",
                        [&] { cape::learn_dag(x, {}, {}, options, run, checkpoint); }));
}
