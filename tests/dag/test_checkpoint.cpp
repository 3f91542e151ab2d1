// An interrupted fit goes on where it was and ends with the same bits.
#define BOOST_TEST_MODULE checkpoint
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>
import cape;
#include "errors.hpp"
#include "tables.hpp"

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
using test::chain;
using test::fails_with;

DagOptions quick(Sem sem) {
  DagOptions o;
  o.sem = sem;
  o.refine = Refine::never;
  o.epochs = 9;
  return o;
}

// Cancelled at that step; true if it was.
bool stops(const Matrix& x, const DagOptions& options, Checkpoint& checkpoint, std::int64_t step) {
  const auto before = [&](const cape::Progress& p) { return p.step < step; };
  Run run(4, 1, before, std::chrono::milliseconds(0));
  try {
    cape::learn_dag(x, options, run, {}, &checkpoint);
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
      const Matrix x = chain(300, columns, 1);
      const DagOptions options = quick(sem);
      Run run(4, 1);
      const Dag whole = cape::learn_dag(x, options, run);
      Checkpoint checkpoint;
      std::int64_t interrupted = 0;
      for (const std::int64_t step : {1, 150, 151, 333, 400, 700})
        interrupted += stops(x, options, checkpoint, step);
      Run rest(4, 2);
      BOOST_TEST(same(cape::learn_dag(x, options, rest, {}, &checkpoint), whole));
      BOOST_TEST(checkpoint.epoch == options.epochs);
      BOOST_TEST(interrupted >= 1);
      // And once more from the end: nothing is left to train.
      BOOST_TEST(same(cape::learn_dag(x, options, rest, {}, &checkpoint), whole));
    }
}

// Called off whenever `most` pieces of work were finished since the attempt began, whatever they
// are. Nothing that was finished is done again, so the attempts end.
BOOST_AUTO_TEST_CASE(a_refinement_goes_on_wherever_it_was_interrupted) {
  for (const Sem sem : {Sem::mlp, Sem::linear})
    for (const std::int64_t columns : {7, 104}) { // above 100 the order is not searched
      const Matrix x = chain(columns > 100 ? 60 : 200, columns, 2);
      DagOptions options = quick(sem);
      options.refine = Refine::always;
      options.refine_epochs = 2;
      options.epochs = 2;
      options.bags = 0;
      Run run(4, 1);
      Checkpoint all;
      const Dag whole = cape::learn_dag(x, options, run, {}, &all);
      const std::int64_t pieces = all.journal.size();
      BOOST_TEST(pieces >= 20);
      BOOST_TEST(same(cape::learn_dag(x, options, run), whole));
      for (const std::int64_t most : {columns > 100 ? 90 : 1, 140})
        for (const int threads : {1, 3}) {
          Checkpoint checkpoint;
          std::int64_t attempts = 0;
          for (bool done = false; !done; ++attempts) {
            const std::int64_t before = checkpoint.journal.size();
            const auto enough = [&](const cape::Progress&) {
              return checkpoint.journal.size() < before + most;
            };
            Run attempt(4, threads, enough, std::chrono::milliseconds(0));
            try {
              const Dag dag = cape::learn_dag(x, options, attempt, {}, &checkpoint);
              BOOST_TEST(same(dag, whole));
              done = true;
            } catch (const cape::Error& e) {
              BOOST_REQUIRE((e.code() == Status::cancelled));
              BOOST_REQUIRE(checkpoint.journal.size() >= before + most);
            }
          }
          BOOST_TEST(attempts <= pieces / most + 1);
          BOOST_TEST(checkpoint.journal.size() == pieces);
          BOOST_TEST(checkpoint.epoch == options.epochs);
        }
    }
}

BOOST_AUTO_TEST_CASE(what_is_finished_is_not_done_again) {
  const Matrix x = chain(200, 6, 2);
  DagOptions options = quick(Sem::mlp);
  options.refine = Refine::always;
  options.refine_epochs = 2;
  Run run(4, 1);
  Checkpoint checkpoint;
  const Dag whole = cape::learn_dag(x, options, run, {}, &checkpoint);
  // Another result of a regression is taken as it is: nobody computes it again.
  const auto entries = checkpoint.journal.first(checkpoint.journal.size());
  checkpoint.journal = {};
  for (const auto& e : entries) checkpoint.journal.add(e.key, e.value + 100);
  bool other = false;
  try {
    other = !same(cape::learn_dag(x, options, run, {}, &checkpoint), whole);
  } catch (const cape::Error& e) { // nor a place beyond the columns
    other = std::string(e.what()).find("checkpoint is damaged") != std::string::npos;
  }
  BOOST_TEST(other);
}

BOOST_AUTO_TEST_CASE(a_checkpoint_of_another_build_or_machine_is_refused) {
  const Matrix x = chain(100, 3, 4);
  const DagOptions options = quick(Sem::linear);
  Checkpoint checkpoint;
  Run run(4, 1);
  cape::learn_dag(x, options, run, {}, &checkpoint);
  const auto refuses = [&](const Checkpoint& c, const std::string& why) {
    Checkpoint copy = c;
    return fails_with(Status::invalid_argument, why,
                      [&] { cape::learn_dag(x, options, run, {}, &copy); });
  };
  Checkpoint other = checkpoint;
  ++other.build;
  BOOST_TEST(refuses(other, "by another build of CAPE"));
  other = checkpoint;
  ++other.kernels;
  BOOST_TEST(refuses(other, "with other instructions than those in use here (BLAS kernel"));
}

// What would hang the fit of candidates, or end in a result that is not finite.
BOOST_AUTO_TEST_CASE(a_checkpoint_with_values_that_are_not_finite_is_refused) {
  const Matrix x = chain(100, 6, 4);
  DagOptions options = quick(Sem::linear);
  for (const std::int64_t candidates : {-1, 2}) {
    options.candidates = candidates;
    Checkpoint checkpoint;
    Run run(4, 1);
    BOOST_TEST(stops(x, options, checkpoint, 400)); // an epoch has 120 steps
    BOOST_TEST(checkpoint.epoch == 3);
    for (const double value :
         {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()})
      for (std::size_t at = 0; at < checkpoint.values.size(); ++at) {
        Checkpoint damaged = checkpoint;
        damaged.values[at] = value;
        BOOST_TEST(fails_with(Status::invalid_argument, "it has values that are not finite",
                              [&] { cape::learn_dag(x, options, run, {}, &damaged); }));
      }
    BOOST_TEST(same(cape::learn_dag(x, options, run, {}, &checkpoint),
                    cape::learn_dag(x, options, run)));
  }
}

BOOST_AUTO_TEST_CASE(a_table_that_is_read_in_parts_goes_on_too) {
  const Matrix x = chain(200, 6, 5);
  const cape::RowSource source{x.rows(), x.cols(),
                               [&](std::span<const std::int64_t> numbers, double* out) {
                                 for (std::int64_t j = 0; j < x.cols(); ++j)
                                   for (const std::int64_t row : numbers) *out++ = x(row, j);
                               }};
  DagOptions options = quick(Sem::linear);
  options.refine = Refine::always;
  Run run(4, 1);
  const Dag whole = cape::learn_dag(x, options, run);
  Checkpoint checkpoint;
  std::int64_t attempts = 0;
  for (bool done = false; !done; ++attempts) { // an epoch or a few regressions at a time
    const std::int64_t epoch = checkpoint.epoch, before = checkpoint.journal.size();
    const auto enough = [&](const cape::Progress&) {
      return checkpoint.epoch == epoch && checkpoint.journal.size() < before + 9;
    };
    Run attempt(4, 1, enough, std::chrono::milliseconds(0));
    try {
      BOOST_TEST(same(cape::learn_dag(source, options, attempt, {}, &checkpoint), whole));
      done = true;
    } catch (const cape::Error& e) {
      BOOST_REQUIRE((e.code() == Status::cancelled));
    }
  }
  BOOST_TEST(attempts > options.epochs);
  // A checkpoint of a table in memory serves as well, and the other way round.
  BOOST_TEST(same(cape::learn_dag(x, options, run, {}, &checkpoint), whole));
}

BOOST_AUTO_TEST_CASE(a_journal_keeps_the_first_value_of_a_key) {
  cape::Journal journal;
  BOOST_TEST(!journal.find(7).has_value());
  journal.add(7, 1.5);
  journal.add(3, 2.5);
  journal.add(7, 9);
  BOOST_TEST(journal.size() == 2);
  BOOST_TEST(journal.find(7).value() == 1.5);
  const cape::Journal copy = journal;
  journal.add(4, 0);
  BOOST_TEST(copy.size() == 2);
  BOOST_TEST(copy.first(2)[1].key == 3);
}

BOOST_AUTO_TEST_CASE(the_whole_run_resumes_too) {
  const Matrix x = chain(200, 5, 3);
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
                        [&] { cape::fit(x, options, cancelled, {}, &checkpoint); }));
  BOOST_TEST(checkpoint.dag.epoch == options.dag.epochs);
  BOOST_TEST(checkpoint.embedding.epoch >= 4);
  Run rest(4, 1, [](const cape::Progress& p) { return p.stage == "embed" || p.step == 0; });
  const cape::Fit fit = cape::fit(x, options, rest, {}, &checkpoint);
  BOOST_TEST((fit.embedding.poincare == whole.embedding.poincare && fit.angles == whole.angles));
}

BOOST_AUTO_TEST_CASE(a_checkpoint_of_another_fit_is_refused) {
  const Matrix x = chain(100, 3, 4);
  const DagOptions options = quick(Sem::linear);
  Checkpoint checkpoint;
  Run run(4, 1);
  cape::learn_dag(x, options, run, {}, &checkpoint);
  const auto refuses = [&](const Matrix& table, const cape::Knowledge& known, DagOptions o,
                           std::uint64_t seed) {
    Run other(seed, 1);
    return fails_with(Status::invalid_argument, "checkpoint is that of a fit of another table",
                      [&] { cape::learn_dag(table, o, other, {known, {}}, &checkpoint); });
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
                        [&] { cape::learn_dag(x, options, run, {}, &checkpoint); }));
}
