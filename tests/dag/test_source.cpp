// Learning from a table that is read in parts.
#define BOOST_TEST_MODULE source
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>
import cape;
#include "errors.hpp"
#include "row_source.hpp"
#include "tables.hpp"

namespace {

using cape::Dag;
using cape::DagOptions;
using cape::Matrix;
using cape::RowSource;
using cape::Run;
using cape::Status;
using test::fails_with;
using test::rows_of;
using test::simulated;

// largest: see rows_of().
void check_same(const Matrix& x, const DagOptions& options, const cape::Knowledge& knowledge = {},
                std::int64_t* largest = nullptr) {
  Run run(3), other(3, 2);
  const Dag whole = cape::learn_dag(x, options, run, {knowledge, {}});
  const Dag parts = cape::learn_dag(rows_of(x, largest), options, other, knowledge);
  BOOST_TEST((parts.weights == whole.weights && parts.sign == whole.sign));
  BOOST_TEST((parts.statistic == whole.statistic));
  BOOST_TEST((parts.graph == whole.graph && parts.order == whole.order));
  BOOST_TEST((parts.center == whole.center && parts.scale == whole.scale));
  BOOST_TEST((parts.constant == whole.constant && parts.collinear == whole.collinear));
  BOOST_TEST((parts.h == whole.h && parts.history.back().loss == whole.history.back().loss));
  BOOST_TEST((parts.warnings == whole.warnings && parts.refined == whole.refined));
}

DagOptions quick(std::int64_t epochs) {
  DagOptions o;
  o.epochs = epochs;
  return o;
}

} // namespace

BOOST_AUTO_TEST_CASE(gives_the_bits_of_the_table_in_memory) {
  Matrix x = simulated(300, 7, 1);
  for (std::int64_t i = 0; i < x.rows(); ++i) x(i, 2) = 4;        // without variance
  for (std::int64_t i = 0; i < x.rows(); ++i) x(i, 5) = -x(i, 4); // collinear
  for (const cape::Sem sem : {cape::Sem::mlp, cape::Sem::linear, cape::Sem::paper})
    for (const bool standardize : {false, true}) {
      DagOptions o = quick(5);
      o.sem = sem;
      o.standardize = standardize;
      check_same(x, o);
    }
  DagOptions o = quick(5);
  o.candidates = 3;
  o.refine = cape::Refine::never;
  cape::Knowledge knowledge;
  knowledge.required = {{0, 1, 0}};
  knowledge.forbidden = {{3, 4, 0}};
  check_same(x, o, knowledge);
}

// More rows than a block of 2^20 values, and than screening looks at; more columns than an order is
// searched for.
BOOST_AUTO_TEST_CASE(gives_the_same_bits_when_there_are_several_blocks) {
  const Matrix x = simulated(11000, 130, 2);
  DagOptions o = quick(1);
  o.candidates = 4;
  o.hidden = 2;
  o.refine_hidden = 2;
  o.refine_epochs = 2;
  std::int64_t largest = 0;
  check_same(x, o, {}, &largest);
  BOOST_TEST(largest <= std::max<std::int64_t>(1 << 20, 8192 * 130)); // of 1.4 million values
}

BOOST_AUTO_TEST_CASE(is_refused_by_name) {
  Run run;
  RowSource source{100, 5, {}};
  BOOST_TEST(fails_with(Status::invalid_argument, "source has no function",
                        [&] { cape::learn_dag(source, quick(1), run); }));
  source.rows = -1;
  BOOST_TEST(fails_with(Status::invalid_argument, "source",
                        [&] { cape::learn_dag(source, quick(1), run); }));
  Matrix x = simulated(100, 5, 3);
  x(71, 3) = std::numeric_limits<double>::quiet_NaN();
  DagOptions mask = quick(1);
  mask.missing = cape::Missing::mask;
  for (const DagOptions& o : {quick(1), mask})
    BOOST_TEST(fails_with(Status::invalid_argument, "row 71, column 3",
                          [&] { cape::learn_dag(rows_of(x), o, run); }));
  const RowSource wide{10, 2'000'000, [](std::span<const std::int64_t>, double*) {}};
  BOOST_TEST(fails_with(Status::out_of_memory, "2000000 features",
                        [&] { cape::learn_dag(wide, quick(1), run); }));
}

BOOST_AUTO_TEST_CASE(passes_on_what_the_callback_throws) {
  Run run;
  const RowSource source{100, 5, [](std::span<const std::int64_t>, double*) {
                           throw std::runtime_error("the disk is gone");
                         }};
  BOOST_CHECK_EXCEPTION(
      cape::learn_dag(source, quick(1), run), std::runtime_error,
      [](const std::runtime_error& e) { return std::string(e.what()) == "the disk is gone"; });
}
