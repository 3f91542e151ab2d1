#define BOOST_TEST_MODULE core
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <limits>
#include <new>
#include <numeric>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <variant>
#include <vector>
import cape;

using cape::Layout;
using cape::Matrix;
using cape::MatrixView;
using cape::Progress;
using cape::Run;
using cape::SparseView;
using cape::Status;

namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

// Is it an error of this code whose message holds all these words?
auto says(Status code, std::vector<std::string> words) {
  return [=](const cape::Error& e) {
    const std::string what = e.what();
    for (const std::string& word : words)
      if (what.find(word) == what.npos) {
        BOOST_TEST_MESSAGE("'" << what << "' lacks '" << word << "'");
        return false;
      }
    return e.code() == code;
  };
}

} // namespace

BOOST_AUTO_TEST_SUITE(build)

BOOST_AUTO_TEST_CASE(blas_kernel_is_the_best_of_the_cpu_or_the_users_choice) {
  const cape::BlasInfo info = cape::blas_info();
  BOOST_TEST_MESSAGE(cape::build_info());
  BOOST_TEST((info.chosen_by_user || info.kernel == info.cpu_best));
}

BOOST_AUTO_TEST_CASE(build_is_described) {
  BOOST_TEST(!cape::build_id().empty());
  BOOST_TEST(cape::build_info().find(cape::blas_info().kernel) != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(errors)

BOOST_AUTO_TEST_CASE(status_codes_have_their_pinned_names) {
  const std::vector<std::string_view> names{
      "ok",        "internal", "invalid_argument", "dim_mismatch", "out_of_memory", "not_converged",
      "cancelled", "io",       "bad_format",       "unsupported",  "bad_state"};
  for (std::size_t i = 0; i < names.size(); ++i)
    BOOST_TEST(cape::status_name(static_cast<Status>(i)) == names[i]);
  BOOST_TEST(cape::status_name(static_cast<Status>(99)) == "unknown");
  BOOST_TEST(cape::status_name(static_cast<Status>(-1)) == "unknown");
}

BOOST_AUTO_TEST_CASE(sizes_are_checked_before_anything_is_allocated) {
  BOOST_TEST(cape::checked_size(3'000'000'000, 2, "x") == 6'000'000'000);
  BOOST_TEST(cape::checked_size(0, 1LL << 62, "x") == 0);
  BOOST_TEST(cape::checked_size(1LL << 62, 0, "x") == 0);
  const auto refused = says(Status::invalid_argument, {"counts", "3000000000 x 3000000000"});
  BOOST_CHECK_EXCEPTION(cape::checked_size(3'000'000'000, 3'000'000'000, "counts"), cape::Error,
                        refused);
  BOOST_CHECK_EXCEPTION(Matrix(3'000'000'000, 3'000'000'000), cape::Error,
                        says(Status::invalid_argument, {"matrix"}));
  for (const auto& [rows, cols] : {std::pair{-1LL, 2LL}, {2LL, -1LL}, {1LL << 62, 1LL << 62}})
    BOOST_CHECK_EXCEPTION(cape::checked_size(rows, cols, "x"), cape::Error,
                          says(Status::invalid_argument, {"x is"}));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(matrices)

BOOST_AUTO_TEST_CASE(matrix_starts_as_zeros_and_is_column_major) {
  Matrix m(2, 3);
  for (std::int64_t i = 0; i < m.size(); ++i) BOOST_TEST(m.data()[i] == 0.0);
  m(1, 2) = 5;
  BOOST_TEST(m.data()[5] == 5.0);
  BOOST_TEST(m.column(2)[1] == 5.0);
  BOOST_TEST(m.view()(1, 2) == 5.0);
}

BOOST_AUTO_TEST_CASE(copies_respect_layout_and_leading_dimension) {
  const std::vector<double> v{1, 2, 3, -1, 4, 5, 6, -1}; // a gap after three
  const Matrix by_row = cape::to_matrix({v.data(), 2, 3, 4, Layout::row_major});
  const Matrix by_column = cape::to_matrix({v.data(), 3, 2, 4, Layout::col_major});
  for (std::int64_t i = 0; i < 2; ++i)
    for (std::int64_t j = 0; j < 3; ++j) {
      BOOST_TEST(by_row(i, j) == double(3 * i + j + 1));
      BOOST_TEST(by_column(j, i) == by_row(i, j));
    }
}

BOOST_AUTO_TEST_CASE(good_views_pass) {
  const std::vector<double> v(12);
  cape::check_view(MatrixView{v.data(), 3, 4, 3}, "x");
  cape::check_view(MatrixView{v.data(), 3, 2, 4, Layout::row_major}, "x");
  cape::check_view(MatrixView{nullptr, 0, 4, 0}, "x");
  cape::check_view(MatrixView{nullptr, 4, 0, 0}, "x");
  const std::vector<float> f(6);
  cape::check_view(cape::BasicMatrixView<float>{f.data(), 2, 3, 2}, "x");
}

BOOST_AUTO_TEST_CASE(bad_views_are_refused_by_name) {
  const std::vector<double> v(12);
  BOOST_CHECK_EXCEPTION(cape::check_view(MatrixView{nullptr, 3, 4, 3}, "counts"), cape::Error,
                        says(Status::invalid_argument, {"counts", "null", "3 x 4"}));
  BOOST_CHECK_EXCEPTION(cape::check_view(MatrixView{v.data(), -3, 4, 3}, "counts"), cape::Error,
                        says(Status::invalid_argument, {"counts", "-3 x 4"}));
  BOOST_CHECK_EXCEPTION(cape::check_view(MatrixView{v.data(), 3, 4, 2}, "counts"), cape::Error,
                        says(Status::dim_mismatch, {"counts", "ld is 2", "column", "3"}));
  BOOST_CHECK_EXCEPTION(
      cape::check_view(MatrixView{v.data(), 3, 4, 3, Layout::row_major}, "counts"), cape::Error,
      says(Status::dim_mismatch, {"counts", "ld is 3", "row", "4"}));
  BOOST_CHECK_EXCEPTION(cape::check_view(MatrixView{v.data(), 3, 4, 4, Layout(7)}, "counts"),
                        cape::Error, says(Status::invalid_argument, {"counts", "layout", "7"}));
  BOOST_CHECK_EXCEPTION(
      cape::check_view(MatrixView{v.data(), 3, 3'000'000'000, 3'000'000'000}, "counts"),
      cape::Error, says(Status::invalid_argument, {"counts"})); // the extent overflows
  const std::vector<float> f(6);
  BOOST_CHECK_EXCEPTION(cape::check_view(cape::BasicMatrixView<float>{f.data(), 3, 2, 2}, "x"),
                        cape::Error, says(Status::dim_mismatch, {"x"}));
}

BOOST_AUTO_TEST_CASE(first_value_that_is_not_finite_is_placed_and_all_are_counted) {
  Matrix m(3, 2);
  cape::check_finite(m, "x");
  m(2, 0) = -infinity;
  m(0, 1) = not_a_number;
  BOOST_CHECK_EXCEPTION(
      cape::check_finite(m, "x"), cape::Error,
      says(Status::invalid_argument, {"x has 2", "-Inf", "row 2, column 0", "counted from 0"}));
  m(2, 0) = 0;
  BOOST_CHECK_EXCEPTION(cape::check_finite(m, "x"), cape::Error,
                        says(Status::invalid_argument, {"x has 1", "NaN", "row 0, column 1"}));
}

BOOST_AUTO_TEST_CASE(sparse_matrices_hold_what_is_not_zero) {
  Matrix m(3, 2);
  m(0, 0) = 1;
  m(2, 0) = -2;
  m(1, 1) = 3;
  const cape::SparseMatrix by_column = to_sparse(m);
  BOOST_TEST((by_column.values == std::vector<double>{1, -2, 3}));
  BOOST_TEST((by_column.indices == std::vector<std::int32_t>{0, 2, 1}));
  BOOST_TEST((by_column.offsets == std::vector<std::int64_t>{0, 2, 3}));
  const double rows[] = {1, 0, 0, 3, -2, 0};
  const cape::SparseMatrix by_row = cape::to_sparse({rows, 3, 2, 2, Layout::row_major});
  BOOST_TEST((by_row.values == std::vector<double>{1, 3, -2}));
  BOOST_TEST((by_row.indices == std::vector<std::int32_t>{0, 1, 0}));
  for (const cape::SparseMatrix& sparse : {by_column, by_row}) {
    check_view(sparse, "m");
    BOOST_TEST((to_matrix(sparse) == m));
    for (std::int64_t j = 0; j < 2; ++j)
      for (std::int64_t i = 0; i < 3; ++i) BOOST_TEST(sparse(i, j) == m(i, j));
  }
  BOOST_TEST(cape::SparseMatrix().empty());
  BOOST_TEST((to_matrix(to_sparse(Matrix(4, 0))) == Matrix(4, 0)));
}

BOOST_AUTO_TEST_CASE(sparse_matrices_are_refused_with_the_place_of_what_is_wrong) {
  cape::SparseMatrix huge;
  huge.rows = huge.cols = std::int64_t{1} << 30;
  BOOST_CHECK_EXCEPTION(to_matrix(huge), cape::Error,
                        says(Status::out_of_memory, {"dense matrix", "1073741824"}));
  Matrix m(3, 2);
  m(2, 1) = not_a_number;
  BOOST_CHECK_EXCEPTION(
      check_finite(to_sparse(m), "w"), cape::Error,
      says(Status::invalid_argument, {"w has 1", "NaN", "row 2, column 1", "counted from 0"}));
}

BOOST_AUTO_TEST_CASE(sparse_views_are_checked_throughout) {
  // Two columns of three rows: (0: 1, 2: 2) and (1: 3).
  const std::vector<double> values{1, 2, 3};
  const std::vector<std::int32_t> indices{0, 2, 1};
  const std::vector<std::int64_t> offsets{0, 2, 3};
  const SparseView good{values.data(), indices.data(), offsets.data(), 3, 2};
  cape::check_view(good, "x");
  cape::check_view(SparseView{}, "x");
  BOOST_TEST(good.nonzeros() == 3);

  const auto refused = [&](const SparseView& view, const std::string& word) {
    BOOST_CHECK_EXCEPTION(cape::check_view(view, "x"), cape::Error,
                          says(Status::invalid_argument, {"x", word}));
  };
  const auto with_offsets = [&](const std::vector<std::int64_t>& o) {
    refused({values.data(), indices.data(), o.data(), 3, 2}, "offsets");
  };
  with_offsets({1, 2, 3});  // does not start at 0
  with_offsets({0, 3, 2});  // falls
  with_offsets({0, 4, 4});  // more than the rows
  with_offsets({0, -1, 3}); // negative
  const auto with_indices = [&](const std::vector<std::int32_t>& i) {
    refused({values.data(), i.data(), offsets.data(), 3, 2}, "indices");
  };
  with_indices({0, 3, 1});  // outside
  with_indices({-1, 2, 1}); // negative
  with_indices({2, 0, 1});  // falls
  with_indices({2, 2, 1});  // twice
  refused({values.data(), indices.data(), nullptr, 3, 2}, "offsets");
  refused({nullptr, indices.data(), offsets.data(), 3, 2}, "null");
  refused({values.data(), nullptr, offsets.data(), 3, 2}, "null");
  refused({values.data(), indices.data(), offsets.data(), -3, 2}, "-3");
  refused({values.data(), indices.data(), offsets.data(), 3, 2, Layout(5)}, "layout");
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(options)

enum class Fruit : std::int32_t { apple, pear };
struct Basket {
  double share = 0.5;
  double rate = not_a_number; // automatic
  std::int64_t count = 3;
  std::int64_t threads = -1; // automatic
  bool ripe = true;
  Fruit fruit = Fruit::pear;
};
cape::OptionFields fields(Basket& b) {
  cape::OptionFields f(6);
  f[0].value = &b.share;
  f[0].min = 0;
  f[0].max = 1;
  f[0].open_max = true;
  f[1].value = &b.rate;
  f[1].min = 0;
  f[1].open_min = f[1].automatic = true;
  f[2].value = &b.count;
  f[2].min = 1;
  f[2].max = 10;
  f[3].value = &b.threads;
  f[3].min = 1;
  f[3].automatic = true;
  f[4].value = &b.ripe;
  f[5].value = cape::choice(b.fruit, {"apple", "pear"});
  const std::string_view names[] = {"basket.share",   "basket.rate", "basket.count",
                                    "basket.threads", "basket.ripe", "basket.fruit"};
  for (std::size_t i = 0; i < 6; ++i) f[i].name = names[i];
  return f;
}

BOOST_AUTO_TEST_CASE(defaults_and_ends_of_closed_ranges_pass) {
  Basket b;
  cape::check_options(fields(b));
  b.share = 0;
  b.count = 10;
  b.rate = 1e-300;
  b.threads = 1;
  cape::check_options(fields(b));
}

BOOST_AUTO_TEST_CASE(values_out_of_range_are_named_with_the_range) {
  const auto refused = [](auto change, std::vector<std::string> words) {
    Basket b;
    change(b);
    BOOST_CHECK_EXCEPTION(cape::check_options(fields(b)), cape::Error,
                          says(Status::invalid_argument, words));
  };
  refused([](Basket& b) { b.share = 1; }, {"basket.share", "is 1", "[0, 1)"});
  refused([](Basket& b) { b.share = -0.25; }, {"basket.share", "-0.25"});
  refused([](Basket& b) { b.share = not_a_number; }, {"basket.share"}); // not automatic
  refused([](Basket& b) { b.rate = 0; }, {"basket.rate", "(0, inf)", "NaN"});
  refused([](Basket& b) { b.rate = infinity; }, {"basket.rate"});
  refused([](Basket& b) { b.count = 0; }, {"basket.count", "is 0", "[1, 10]"});
  refused([](Basket& b) { b.count = -1; }, {"basket.count", "-1"}); // not automatic
  refused([](Basket& b) { b.threads = -2; }, {"basket.threads", "-1 for the automatic"});
  refused([](Basket& b) { b.fruit = Fruit(2); }, {"basket.fruit", "2", "\"apple\", \"pear\""});
}

BOOST_AUTO_TEST_CASE(options_are_described) {
  Basket b;
  const auto f = fields(b);
  const std::vector<std::string_view> types{"double",  "double",  "integer",
                                            "integer", "logical", "choice"};
  for (std::size_t i = 0; i < f.size(); ++i) BOOST_TEST(cape::option_type(f[i]) == types[i]);
  BOOST_TEST(cape::option_range(f[0]) == "[0, 1)");
  BOOST_TEST(cape::option_range(f[2]) == "[1, 10]");
  BOOST_TEST(cape::option_range(f[4]) == "true or false");
}

BOOST_AUTO_TEST_CASE(fields_are_bound_to_their_struct) {
  Basket b;
  const auto f = fields(b);
  std::get<cape::Choice>(f[5].value).set(0);
  BOOST_TEST((b.fruit == Fruit::apple));
  b.fruit = Fruit::pear;
  BOOST_TEST(std::get<cape::Choice>(f[5].value).get() == 1);
}

// The registry of every stage: names are unique, documented and traceable; defaults are in range.
BOOST_AUTO_TEST_CASE(simulation_options_are_documented) {
  cape::GraphOptions graph;
  cape::DataOptions data;
  std::set<std::string_view> names;
  for (const auto& list : {cape::fields(graph), cape::fields(data)}) {
    cape::check_options(list);
    for (const auto& field : list) {
      BOOST_TEST(names.insert(field.name).second);
      BOOST_TEST(!field.doc.empty());
      BOOST_TEST(!field.source.empty());
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(runs)

BOOST_AUTO_TEST_CASE(threads_below_one_are_refused) {
  BOOST_CHECK_EXCEPTION(Run(1, 0), cape::Error, says(Status::invalid_argument, {"threads is 0"}));
  BOOST_TEST(Run(5, 3).threads() == 3);
  BOOST_TEST(Run(5, 3).seed() == 5u);
}

BOOST_AUTO_TEST_CASE(progress_comes_at_a_new_stage_and_at_the_last_step_and_not_at_every_step) {
  std::vector<Progress> seen;
  Run run(1, 1, [&](const Progress& p) {
    seen.push_back(p);
    return true;
  });
  for (std::int64_t step = 1; step <= 10000; ++step)
    run.report({.stage = "a", .step = step, .total = 10000, .loss = double(step)});
  run.report({.stage = "b", .step = 1, .total = 9});
  BOOST_REQUIRE(seen.size() >= 3u);
  BOOST_TEST(seen.size() < 1000u);
  BOOST_TEST(seen.front().step == 1);
  BOOST_TEST(seen[seen.size() - 2].step == 10000);
  BOOST_TEST(seen[seen.size() - 2].loss == 10000.0);
  BOOST_TEST(seen.back().stage == "b");
  BOOST_TEST(std::isnan(seen.back().loss));
}

BOOST_AUTO_TEST_CASE(polling_repeats_the_last_report_after_a_while) {
  std::vector<std::int64_t> steps;
  Run run(1, 1, [&](const Progress& p) {
    steps.push_back(p.step);
    return true;
  });
  run.report({.stage = "a", .step = 4, .total = 9});
  const std::size_t before = steps.size();
  run.poll(); // too early
  BOOST_TEST(steps.size() == before);
  std::this_thread::sleep_for(std::chrono::milliseconds(60));
  run.poll();
  BOOST_TEST(steps.size() == before + 1);
  BOOST_TEST(steps.back() == 4);
}

BOOST_AUTO_TEST_CASE(a_cancelled_run_stays_cancelled) {
  const auto cancelled = says(Status::cancelled, {"cancelled"});
  Run run(1, 1, [](const Progress& p) { return p.step < 2; });
  run.report({.stage = "a", .step = 1, .total = 2});
  BOOST_CHECK_EXCEPTION(run.report({.stage = "a", .step = 2, .total = 2}), cape::Error, cancelled);
  BOOST_CHECK_EXCEPTION(run.report({.stage = "b", .step = 0}), cape::Error, cancelled);
  BOOST_CHECK_EXCEPTION(run.poll(), cape::Error, cancelled);
  BOOST_CHECK_EXCEPTION(run.parallel_for(3, [](std::int64_t) {}), cape::Error, cancelled);
}

BOOST_AUTO_TEST_CASE(progress_is_called_on_the_owners_thread_alone) {
  const auto owner = std::this_thread::get_id();
  std::atomic<int> elsewhere{0}, calls{0};
  Run run(1, 4, [&](const Progress&) {
    ++calls;
    elsewhere += std::this_thread::get_id() != owner;
    return true;
  });
  run.parallel_for(200, [&](std::int64_t i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    run.report({.stage = "a", .step = i});
  });
  BOOST_TEST(calls > 0);
  BOOST_TEST(elsewhere == 0);
}

// Bodies that never end by themselves.
BOOST_AUTO_TEST_CASE(an_endless_loop_is_cancelled) {
  for (const int threads : {1, 4}) {
    int calls = 0;
    Run run(1, threads, [&](const Progress&) { return ++calls < 5; });
    BOOST_CHECK_EXCEPTION(run.parallel_for(8,
                                           [&](std::int64_t) {
                                             for (;;) run.poll();
                                           }),
                          cape::Error, says(Status::cancelled, {}));
    BOOST_TEST(calls == 5);
  }
}

// A callback that takes longer than the interval is due again when that has passed since it
// returned: it does not stand in for the work.
BOOST_AUTO_TEST_CASE(a_slow_callback_leaves_time_for_the_work) {
  int calls = 0;
  Run run(1, 1, [&](const Progress&) {
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
    return ++calls < 100;
  });
  for (int i = 0; i < 1000; ++i) run.poll();
  BOOST_TEST(calls <= 3);
}

BOOST_AUTO_TEST_CASE(an_interval_of_zero_calls_back_at_every_occasion) {
  int calls = 0;
  Run run(
      1, 1,
      [&](const Progress&) {
        ++calls;
        return true;
      },
      std::chrono::milliseconds(0));
  for (int i = 0; i < 1000; ++i) run.poll();
  BOOST_TEST(calls == 1000);
}

BOOST_AUTO_TEST_CASE(every_index_is_run_once_on_any_number_of_threads) {
  for (const int threads : {1, 2, 8}) {
    Run run(1, threads);
    std::vector<int> visits(1000, 0);
    run.parallel_for(1000, [&](std::int64_t i) { ++visits[std::size_t(i)]; });
    BOOST_TEST(std::accumulate(visits.begin(), visits.end(), 0) == 1000);
    BOOST_TEST(*std::max_element(visits.begin(), visits.end()) == 1);
    run.parallel_for(0, [](std::int64_t) { BOOST_ERROR("there is nothing to run"); });
  }
}

BOOST_AUTO_TEST_CASE(random_numbers_do_not_depend_on_threads) {
  const auto simulate = [](int threads) {
    Run run(9, threads);
    std::vector<double> sums(64);
    run.parallel_for(64, [&](std::int64_t i) {
      cape::Rng rng(run.seed(), {cape::hash("test"), std::uint64_t(i)});
      for (int k = 0; k < 100; ++k) sums[std::size_t(i)] += rng.normal();
    });
    return sums;
  };
  BOOST_TEST((simulate(1) == simulate(2)));
  BOOST_TEST((simulate(1) == simulate(8)));
}

BOOST_AUTO_TEST_CASE(exceptions_of_a_body_reach_the_caller) {
  for (const int threads : {1, 2, 8}) {
    Run run(1, threads);
    BOOST_CHECK_EXCEPTION(run.parallel_for(100,
                                           [](std::int64_t i) {
                                             if (i == 37) throw cape::Error(Status::io, "body 37");
                                           }),
                          cape::Error, says(Status::io, {"body 37"}));
    BOOST_CHECK_THROW(run.parallel_for(4, [](std::int64_t) { throw std::bad_alloc(); }),
                      std::bad_alloc);
    run.parallel_for(2, [](std::int64_t) {}); // still good for use
  }
}

BOOST_AUTO_TEST_CASE(loops_leave_no_memory_behind) {
  const auto resident = [] {
    std::ifstream statm("/proc/self/statm");
    std::int64_t all = 0, in_memory = 0;
    statm >> all >> in_memory;
    return in_memory; // pages
  };
  if (resident() == 0) return;
  Run run(1, 2);
  std::atomic<std::int64_t> sum = 0;
  const auto loops = [&](int n) {
    for (int i = 0; i < n; ++i) run.parallel_for(4, [&](std::int64_t k) { sum += k; });
  };
  loops(2000); // threads and their pools
  const std::int64_t before = resident();
  loops(60000);
  BOOST_TEST(resident() - before <
             500); // 2 MB; a scheduler's arena for every loop took 10 times that
  BOOST_TEST(sum == 62000 * 6);
}

BOOST_AUTO_TEST_CASE(parallel_loops_nest) {
  Run run(1, 4);
  std::vector<double> sums(6, 0.0);
  run.parallel_for(6, [&](std::int64_t i) {
    std::vector<double> parts(10);
    run.parallel_for(10, [&](std::int64_t k) { parts[std::size_t(k)] = double(i * k); });
    for (const double p : parts) sums[std::size_t(i)] += p;
  });
  for (std::size_t i = 0; i < 6; ++i) BOOST_TEST(sums[i] == 45.0 * double(i));
}

BOOST_AUTO_TEST_SUITE_END()
