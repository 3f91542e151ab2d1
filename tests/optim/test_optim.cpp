// The steps, rates and orders that training is made of, against the published formulas in long
// double.
#define BOOST_TEST_MODULE optim
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <numbers>
#include <numeric>
#include <span>
#include <tuple>
#include <utility>
#include <vector>
import cape;

#include "errors.hpp"
#include "occasions.hpp"

using cape::Run;
using cape::Status;
namespace optim = cape::optim;

namespace {

using Numbers = std::tuple<float, double>;

template <class T>
std::vector<T> numbers(std::int64_t n, std::uint64_t key) {
  cape::Rng rng(7, {key});
  std::vector<T> out(static_cast<std::size_t>(n));
  for (T& x : out) x = static_cast<T>(rng.normal());
  return out;
}

// Algorithm 2 of Loshchilov and Hutter with a constant schedule (Algorithm 1 of Kingma and Ba where
// decay is 0), and the proximal step of l1 |p|.
struct Reference {
  long double beta1, beta2, epsilon, rate, l1, decay;
  long double p, m = 0, v = 0;
  int t = 0;
  void step(long double g) {
    ++t;
    m = beta1 * m + (1 - beta1) * g;
    v = beta2 * v + (1 - beta2) * g * g;
    const long double m_hat = m / (1 - std::pow(beta1, static_cast<long double>(t)));
    const long double v_hat = v / (1 - std::pow(beta2, static_cast<long double>(t)));
    const long double metric = std::sqrt(v_hat) + epsilon;
    const long double moved = p - rate * m_hat / metric - rate * decay * p;
    p = std::copysign(std::max(std::fabs(moved) - rate * l1 / metric, 0.0L), moved);
  }
};

template <class T>
long double worst_error(const optim::AdamOptions& options, const optim::Shrinking& shrinking) {
  constexpr std::int64_t n = 37; // no multiple of any vector's length
  constexpr double rate = 0.01;
  Run run;
  optim::Adam<T> adam(n, options);
  std::vector<T> p = numbers<T>(n, 1);
  std::vector<Reference> right;
  for (const T x : p)
    right.push_back(
        {options.beta1, options.beta2, options.epsilon, rate, shrinking.l1, shrinking.decay, x});
  long double worst = 0;
  for (std::uint64_t t = 1; t <= 50; ++t) {
    const std::vector<T> g = numbers<T>(n, 100 + t);
    adam.step(p, std::span(g), rate, run, shrinking);
    for (std::size_t i = 0; i < p.size(); ++i) {
      right[i].step(g[i]);
      worst = std::max(worst, std::fabs(p[i] - right[i].p));
    }
  }
  return worst;
}

// All of one pass, from the beginning on.
template <class Batches>
std::vector<std::int64_t> read(Batches& batches, std::int64_t count) {
  std::vector<std::int64_t> out;
  while (std::ssize(out) < count) {
    const std::span<const std::int64_t> batch = batches.next();
    out.insert(out.end(), batch.begin(), batch.end());
  }
  return out;
}

bool is_permutation(std::span<const std::int64_t> rows) {
  std::vector<std::int64_t> sorted(rows.begin(), rows.end()), all(rows.size());
  std::ranges::sort(sorted);
  std::iota(all.begin(), all.end(), 0);
  return sorted == all;
}

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

} // namespace

BOOST_AUTO_TEST_SUITE(adam)

BOOST_AUTO_TEST_CASE(steps_are_those_of_the_published_algorithms) {
  for (const optim::AdamOptions& options :
       {optim::AdamOptions{}, optim::AdamOptions{0.9, 0.99, 1e-6}, optim::AdamOptions{0, 0, 1}})
    for (const optim::Shrinking& shrinking :
         {optim::Shrinking{}, optim::Shrinking{.l1 = 0.3}, optim::Shrinking{.decay = 0.1},
          optim::Shrinking{.l1 = 0.02, .decay = 0.5}}) {
      BOOST_TEST(worst_error<double>(options, shrinking) < 1e-14);
      BOOST_TEST(worst_error<float>(options, shrinking) < 5e-6);
    }
}

BOOST_AUTO_TEST_CASE(the_first_step_is_the_rate_long_whatever_the_gradient) {
  Run run;
  optim::Adam<double> adam(3);
  std::vector<double> p{1, 1, 1};
  const std::vector<double> g{1e-3, -1, 1e9};
  adam.step(p, std::span(g), 0.25, run);
  BOOST_TEST(p[0] == 0.75, boost::test_tools::tolerance(1e-5)); // epsilon is 1e-5 of |g|
  BOOST_TEST(p[1] == 1.25, boost::test_tools::tolerance(1e-7));
  BOOST_TEST(p[2] == 0.75, boost::test_tools::tolerance(1e-15));
}

// The gradient's size does not touch the decay, unlike that of a ridge in the loss.
BOOST_AUTO_TEST_CASE(decay_is_decoupled_from_the_gradient) {
  Run run;
  optim::Adam<double> adam(2);
  std::vector<double> p{4, -4};
  const std::vector<double> g{0, 0};
  for (int t = 0; t < 100; ++t) adam.step(p, std::span(g), 0.1, run, {.decay = 0.05});
  BOOST_TEST(p[0] == 4 * std::pow(1 - 0.1 * 0.05, 100), boost::test_tools::tolerance(1e-13));
  BOOST_TEST(p[1] == -p[0]);
}

// A rate times decay below half a float's epsilon still moves what is large enough to show it.
BOOST_AUTO_TEST_CASE(small_decay_is_not_rounded_away_beside_a_step) {
  Run run;
  optim::Adam<float> adam(1);
  std::vector<float> p{1};
  const std::vector<float> g{-1};
  double right = 1;
  for (int t = 0; t < 1000; ++t) {
    adam.step(p, std::span(g), 1e-4, run, {.decay = 1e-3});
    right += 1e-4 - 1e-7 * right;
  }
  BOOST_TEST(p[0] == right, boost::test_tools::tolerance(1e-5));
  BOOST_TEST(std::fabs(p[0] - 1.1) > 5e-5); // what it is without decay
}

BOOST_AUTO_TEST_CASE(the_l1_term_makes_parameters_exactly_zero) {
  Run run;
  optim::Adam<double> adam(2);
  std::vector<double> p{1e-3, 1};
  const std::vector<double> g{0.1, 0.1};
  adam.step(p, std::span(g), 0.01, run, {.l1 = 0.2});
  BOOST_TEST(p[0] == 0); // threshold: 0.01 * 0.2 / 0.1
  BOOST_TEST(p[1] == 1 - 0.01 - 0.02, boost::test_tools::tolerance(1e-6));
}

BOOST_AUTO_TEST_CASE_TEMPLATE(pieces_and_threads_change_no_bit, T, Numbers) {
  constexpr std::int64_t n = 200001;
  const optim::Shrinking shrinking{.l1 = 0.01, .decay = 0.1};
  const std::vector<T> start = numbers<T>(n, 1), g = numbers<T>(n, 2);
  Run one(1, 1), four(1, 4);
  std::vector<T> whole = start, parallel = start, pieces = start;
  optim::Adam<T> a(n), b(n), c(n);
  for (int t = 0; t < 3; ++t) {
    a.step(whole, std::span(g), 0.01, one, shrinking);
    b.step(parallel, std::span(g), 0.01, four, shrinking);
    c.begin(0.01);
    for (std::int64_t first = 0; first < n; first += 4099) {
      const auto at = static_cast<std::size_t>(first),
                 size = static_cast<std::size_t>(std::min<std::int64_t>(4099, n - first));
      c.move(first, std::span(pieces).subspan(at, size), std::span(g).subspan(at, size), shrinking);
    }
  }
  BOOST_TEST((whole == parallel));
  BOOST_TEST((whole == pieces));
}

// Each parameter alone with its own l1 takes the same step; an infinite factor ends at 0.
BOOST_AUTO_TEST_CASE_TEMPLATE(factors_of_l1_are_those_of_their_parameters, T, Numbers) {
  Run run;
  constexpr std::int64_t n = 37; // no multiple of any vector's length
  std::vector<T> p = numbers<T>(n, 1), g = numbers<T>(n, 2), factor(n);
  for (std::size_t i = 0; i < n; ++i) factor[i] = static_cast<T>(i % 5) / 2;
  factor[3] = factor[36] = std::numeric_limits<T>::infinity();
  optim::Adam<T> together(n);
  std::vector<T> expected = p;
  for (std::size_t i = 0; i < n; ++i) {
    if (std::isinf(factor[i])) {
      expected[i] = 0;
      continue;
    }
    optim::Adam<T> alone(1);
    alone.step(std::span(expected).subspan(i, 1), std::span<const T>(g).subspan(i, 1), 0.5, run,
               {.l1 = 0.25 * static_cast<double>(factor[i])});
  }
  together.begin(0.5);
  together.move(0, p, g, {.l1 = 0.25}, factor);
  BOOST_TEST(p == expected, boost::test_tools::per_element());
  factor.pop_back();
  BOOST_CHECK_THROW(together.move(0, p, g, {.l1 = 0.25}, factor), cape::Error);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(a_restored_state_goes_on_to_the_bit, T, Numbers) {
  Run run;
  std::vector<T> p = numbers<T>(50, 1);
  const std::vector<T> g = numbers<T>(50, 2);
  optim::Adam<T> adam(50), later(50);
  for (int t = 0; t < 5; ++t) adam.step(p, std::span(g), 0.01, run);
  std::vector<double> state{42};
  adam.save(state, run);
  BOOST_TEST(std::ssize(state) == 1 + adam.size_of_state());
  state.push_back(43);
  std::vector<T> q = p;
  const std::span<const double> rest =
      later.restore(std::span<const double>(state).subspan(1), run);
  BOOST_TEST((rest.size() == 1 && rest[0] == 43));
  for (int t = 0; t < 5; ++t) {
    adam.step(p, std::span(g), 0.01, run);
    later.step(q, std::span(g), 0.01, run);
  }
  BOOST_TEST((p == q));
}

BOOST_AUTO_TEST_CASE(memory_is_taken_saved_and_restored_with_polls) {
  constexpr std::int64_t size = 5 << 20;
  const auto count = [](const std::function<void(Run&)>& work) {
    return test::occasions(work, [](const cape::Progress&) { return false; }).count;
  };
  std::vector<double> state;
  BOOST_TEST(count([](Run& run) { optim::Adam<float>(size, {}, run); }) >= 5); // 8 MB each
  optim::Adam<float> adam(size);
  BOOST_TEST(count([&](Run& run) { adam.save(state, run); }) >= 10);
  BOOST_TEST(count([&](Run& run) { adam.restore(state, run); }) >= 5);
}

BOOST_AUTO_TEST_CASE(a_damaged_state_is_refused_and_changes_nothing) {
  Run run;
  optim::Adam<float> adam(2);
  std::vector<double> before, after;
  adam.save(before, run);
  for (const std::vector<double>& state : {std::vector<double>{1, 1, 0, 0, 0},
                                           {1.5, 1, 0, 0, 0, 0},
                                           {1, not_a_number, 0, 0, 0, 0},
                                           {1, 1, 0, 0, -1, 0},
                                           {1, 1, 0, 0, 0, not_a_number}})
    BOOST_TEST(test::fails_with(Status::invalid_argument, "checkpoint is damaged",
                                [&] { adam.restore(state, run); }));
  adam.save(after, run);
  BOOST_TEST(before == after);
}

BOOST_AUTO_TEST_CASE(moments_that_left_the_range_are_seen) {
  Run run;
  optim::Adam<float> adam(1);
  std::vector<float> p{0};
  const std::vector<float> g{1e30f};
  BOOST_TEST(adam.finite());
  adam.step(p, std::span(g), 0.1, run);
  BOOST_TEST(!adam.finite());
}

BOOST_AUTO_TEST_CASE(bad_arguments_are_refused) {
  const auto refuses = [](const optim::AdamOptions& options, const char* name) {
    return test::fails_with(Status::invalid_argument, name,
                            [&] { optim::Adam<float>(1, options); }) &&
           test::fails_with(Status::invalid_argument, name,
                            [&] { optim::GroupAdam(1, 1, options); });
  };
  for (const double beta : {-0.1, 1.0, not_a_number}) {
    BOOST_TEST(refuses({.beta1 = beta}, "beta1 is "));
    BOOST_TEST(refuses({.beta2 = beta}, "beta2 is "));
  }
  for (const double epsilon : {0.0, -1.0, not_a_number, infinity})
    BOOST_TEST(refuses({.epsilon = epsilon}, "epsilon is "));
  BOOST_TEST(test::fails_with(Status::invalid_argument, [] { optim::Adam<float>(-1); }));
  BOOST_TEST(test::fails_with(Status::invalid_argument, [] { optim::GroupAdam(2, -1, {}); }));

  Run run;
  optim::Adam<double> adam(3);
  std::vector<double> p(3), g(3), two(2);
  for (const double bad : {-1.0, not_a_number, infinity}) {
    BOOST_TEST(test::fails_with(Status::invalid_argument, "rate is ",
                                [&] { adam.step(p, std::span<const double>(g), bad, run); }));
    BOOST_TEST(test::fails_with(Status::invalid_argument, "l1 is ", [&] {
      adam.step(p, std::span<const double>(g), 1, run, {.l1 = bad});
    }));
    BOOST_TEST(test::fails_with(Status::invalid_argument, "decay is ", [&] {
      adam.step(p, std::span<const double>(g), 1, run, {.decay = bad});
    }));
  }
  BOOST_TEST(test::fails_with(Status::dim_mismatch, "it must be 3 of each",
                              [&] { adam.step(p, std::span<const double>(two), 1, run); }));
  BOOST_TEST(test::fails_with(Status::dim_mismatch,
                              [&] { adam.step(two, std::span<const double>(two), 1, run); }));
  adam.begin(1);
  for (const std::int64_t first : {-1, 2, 4})
    BOOST_TEST(test::fails_with(Status::dim_mismatch, "there are 3 parameters", [&] {
      adam.move(first, std::span(two), std::span<const double>(two));
    }));
}

BOOST_AUTO_TEST_CASE(groups_share_one_second_moment) {
  constexpr long double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-10;
  optim::GroupAdam adam(3, 2, {.epsilon = 1e-10});
  std::vector<long double> m(3);
  long double v = 0;
  for (std::int64_t t = 1; t <= 30; ++t) {
    const std::vector<double> g = numbers<double>(3, static_cast<std::uint64_t>(t));
    const double length = std::sqrt(std::inner_product(g.begin(), g.end(), g.begin(), 0.0));
    const double divisor = adam.update(1, g, length, t);
    v = beta2 * v + (1 - beta2) * length * length;
    const long double steps = t;
    BOOST_TEST(divisor ==
                   static_cast<double>((1 - std::pow(beta1, steps)) *
                                       (std::sqrt(v / (1 - std::pow(beta2, steps))) + epsilon)),
               boost::test_tools::tolerance(1e-13));
    for (std::size_t k = 0; k < 3; ++k) {
      m[k] = beta1 * m[k] + (1 - beta1) * g[k];
      BOOST_TEST(adam.mean(1)[k] == static_cast<double>(m[k]), boost::test_tools::tolerance(1e-13));
    }
  }
  for (const double untouched : adam.mean(0)) BOOST_TEST(untouched == 0);
  BOOST_TEST(adam.state().size() == 2);
  BOOST_TEST(adam.state()[0].size() == 6);
  BOOST_TEST(adam.state()[1].size() == 2);
}

// A group of one coordinate is Adam.
BOOST_AUTO_TEST_CASE(a_group_of_one_moves_as_adam_does) {
  Run run;
  optim::Adam<double> adam(1);
  optim::GroupAdam group(1, 1, {});
  std::vector<double> p{0.5};
  double q = 0.5;
  for (std::int64_t t = 1; t <= 40; ++t) {
    const std::vector<double> g = numbers<double>(1, static_cast<std::uint64_t>(t));
    adam.step(p, std::span(g), 0.01, run);
    const double divisor = group.update(0, g, std::fabs(g[0]), t);
    q -= 0.01 / divisor * group.mean(0)[0];
    BOOST_TEST(p[0] == q, boost::test_tools::tolerance(1e-12));
  }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(clipping)

BOOST_AUTO_TEST_CASE(a_long_gradient_keeps_its_direction) {
  Run run;
  std::vector<double> g{3, 0, -4};
  BOOST_TEST(optim::clip_norm(std::span(g), 1.0, run) == 5);
  BOOST_TEST(g[0] == 0.6, boost::test_tools::tolerance(1e-15));
  BOOST_TEST(g[1] == 0);
  BOOST_TEST(g[2] == -0.8, boost::test_tools::tolerance(1e-15));
}

BOOST_AUTO_TEST_CASE(a_short_one_is_left_to_the_bit) {
  Run run;
  const std::vector<float> before = numbers<float>(100, 3);
  std::vector<float> g = before;
  const double norm = optim::clip_norm(std::span(g), 1e6, run);
  BOOST_TEST((g == before));
  BOOST_TEST(optim::clip_norm(std::span(g), norm, run) == norm);
  BOOST_TEST((g == before));
  BOOST_TEST(optim::clip_norm(std::span<float>(), 1.0, run) == 0);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(the_norm_is_that_of_long_double_on_any_threads, T, Numbers) {
  Run one(1, 1), four(1, 4);
  const std::vector<T> start = numbers<T>(300007, 4);
  long double sum = 0;
  for (const T x : start) sum += static_cast<long double>(x) * x;
  std::vector<T> a = start, b = start;
  const double norm = optim::clip_norm(std::span(a), 2.0, one);
  BOOST_TEST(norm == static_cast<double>(std::sqrt(sum)), boost::test_tools::tolerance(1e-13));
  BOOST_TEST(optim::clip_norm(std::span(b), 2.0, four) == norm);
  BOOST_TEST((a == b));
  BOOST_TEST(optim::clip_norm(std::span(a), 1e9, one) == 2.0, boost::test_tools::tolerance(1e-6));
}

BOOST_AUTO_TEST_CASE(what_is_not_finite_is_told_and_left) {
  Run run;
  for (const double bad : {not_a_number, infinity, 1e200}) {
    std::vector<double> g{1, bad};
    BOOST_TEST(!std::isfinite(optim::clip_norm(std::span(g), 1.0, run)));
    BOOST_TEST(g[0] == 1);
    BOOST_TEST((std::isnan(bad) ? std::isnan(g[1]) : g[1] == bad));
  }
}

BOOST_AUTO_TEST_CASE(values_are_clipped_one_by_one) {
  Run run;
  std::vector<float> g{
      -3, -1, -0.5, 0, 1, 2, static_cast<float>(infinity), static_cast<float>(not_a_number)};
  optim::clip_value(std::span(g), 1.0, run);
  const std::vector<float> right{-1, -1, -0.5, 0, 1, 1, 1};
  BOOST_TEST(std::vector<float>(g.begin(), g.end() - 1) == right, boost::test_tools::per_element());
  BOOST_TEST(std::isnan(g.back()));
}

BOOST_AUTO_TEST_CASE(bad_limits_are_refused) {
  Run run;
  std::vector<float> g{1};
  for (const double bad : {0.0, -1.0, not_a_number, infinity}) {
    BOOST_TEST(test::fails_with(Status::invalid_argument, "largest is ",
                                [&] { optim::clip_norm(std::span(g), bad, run); }));
    BOOST_TEST(test::fails_with(Status::invalid_argument, "largest is ",
                                [&] { optim::clip_value(std::span(g), bad, run); }));
  }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(schedules)

BOOST_AUTO_TEST_CASE(a_cosine_falls_from_one_to_the_last) {
  const optim::CosineSchedule rate(100, 0.1);
  BOOST_TEST(rate(0) == 1);
  BOOST_TEST(rate(50) == 0.55, boost::test_tools::tolerance(1e-15));
  BOOST_TEST(rate(25) == 0.1 + 0.45 * (1 + std::numbers::sqrt2 / 2),
             boost::test_tools::tolerance(1e-15));
  BOOST_TEST(rate(100) == 0.1, boost::test_tools::tolerance(1e-15));
  BOOST_TEST(rate(1000) == rate(100));
  for (std::int64_t step = 0; step < 100; ++step) BOOST_TEST(rate(step + 1) < rate(step));
}

BOOST_AUTO_TEST_CASE(warm_up_rises_on_a_line_and_the_cosine_begins_after_it) {
  const optim::CosineSchedule rate(110, 0, 10), plain(100, 0);
  for (std::int64_t step = 0; step < 10; ++step)
    BOOST_TEST(rate(step) == static_cast<double>(step + 1) / 10);
  for (std::int64_t step = 0; step <= 100; ++step) BOOST_TEST(rate(10 + step) == plain(step));
}

BOOST_AUTO_TEST_CASE(steps_multiply_by_their_factor) {
  const optim::StepSchedule rate(5, 0.5, 2);
  BOOST_TEST(rate(0) == 0.5);
  BOOST_TEST(rate(1) == 1);
  BOOST_TEST(rate(2) == 1);
  BOOST_TEST(rate(6) == 1);
  BOOST_TEST(rate(7) == 0.5);
  BOOST_TEST(rate(16) == 0.25);
  BOOST_TEST(rate(17) == 0.125);
  BOOST_TEST(optim::StepSchedule(1, 1)(1000000) == 1);
}

BOOST_AUTO_TEST_CASE(bad_schedules_are_refused) {
  const auto refuses = [](const char* name, const std::function<void()>& call) {
    return test::fails_with(Status::invalid_argument, name, call);
  };
  BOOST_TEST(refuses("steps is 0", [] { optim::CosineSchedule(0, 0); }));
  BOOST_TEST(refuses("above warm_up, 10", [] { optim::CosineSchedule(10, 0, 10); }));
  BOOST_TEST(refuses("warm_up is -1", [] { optim::CosineSchedule(10, 0, -1); }));
  for (const double last : {-0.1, 1.1, not_a_number})
    BOOST_TEST(refuses("last is ", [&] { optim::CosineSchedule(10, last); }));
  BOOST_TEST(refuses("interval is 0", [] { optim::StepSchedule(0, 0.5); }));
  for (const double factor : {0.0, -1.0, 1.1, not_a_number})
    BOOST_TEST(refuses("factor is ", [&] { optim::StepSchedule(1, factor); }));
  BOOST_TEST(refuses("warm_up is -1", [] { optim::StepSchedule(1, 0.5, -1); }));
  BOOST_TEST(refuses("step is -1", [] { optim::CosineSchedule(10, 0)(-1); }));
  BOOST_TEST(refuses("step is -1", [] { optim::StepSchedule(10, 1)(-1); }));
}

BOOST_AUTO_TEST_CASE(a_plateau_is_a_window_that_falls_by_little_of_the_whole_fall) {
  optim::Plateau plateau(2, 0.1);
  // Windows: (10 6), (4 2), (2 2), (2 1.9): means 8, 3, 2, 1.95; falls so far 2, 7, 8, 8.05.
  const std::vector<double> losses{10, 6, 4, 2, 2, 2, 2, 1.9};
  for (std::size_t i = 0; i < losses.size(); ++i)
    BOOST_TEST(plateau.reached(losses[i]) == (i == 7)); // 0.05 < 0.805, and 1 >= 0.8 before
}

BOOST_AUTO_TEST_CASE(a_rise_is_a_plateau_and_tolerance_zero_is_none) {
  optim::Plateau rising(1, 0.5), never(1, 0);
  BOOST_TEST(!rising.reached(1));
  BOOST_TEST(rising.reached(2));
  for (int i = 0; i < 100; ++i) BOOST_TEST(!never.reached(1));
}

BOOST_AUTO_TEST_CASE(burning_in_counts_for_the_whole_fall_alone) {
  optim::Plateau plateau(2, 0.1, 3);
  const std::vector<double> losses{100, 100, 100, 60, 60, 52, 52, 51, 51};
  std::vector<bool> reached;
  for (const double loss : losses) reached.push_back(plateau.reached(loss));
  // Windows (60 60), (52 52), (51 51): 8 of the 48 from 100 is more than a tenth, 1 of 49 is not.
  BOOST_TEST(reached == (std::vector<bool>{0, 0, 0, 0, 0, 0, 0, 0, 1}),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(bad_plateaus_are_refused) {
  BOOST_TEST(test::fails_with(Status::invalid_argument, "window", [] { optim::Plateau(0, 0.1); }));
  BOOST_TEST(
      test::fails_with(Status::invalid_argument, "burn_in", [] { optim::Plateau(1, 0, -1); }));
  for (const double tolerance : {-0.1, 1.1, not_a_number})
    BOOST_TEST(test::fails_with(Status::invalid_argument, "tolerance",
                                [&] { optim::Plateau(1, tolerance); }));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(minibatches)

BOOST_AUTO_TEST_CASE(every_pass_is_a_permutation_of_its_own) {
  for (const std::int64_t batch : {1, 3, 7, 10, 23}) {
    optim::Minibatches batches(10, batch, 1, "test");
    const std::vector<std::int64_t> rows = read(batches, 40);
    const auto pass = [&](std::size_t k) { return std::span(rows).subspan(10 * k, 10); };
    for (std::size_t k = 0; k < 4; ++k) BOOST_TEST(is_permutation(pass(k)));
    BOOST_TEST(!std::ranges::equal(pass(0), pass(1)));
    BOOST_TEST(!std::ranges::equal(pass(1), pass(2)));
  }
}

BOOST_AUTO_TEST_CASE(the_order_does_not_depend_on_the_size_of_a_batch) {
  optim::Minibatches ones(17, 1, 5, "test"), fours(17, 4, 5, "test");
  BOOST_TEST(read(ones, 68) == read(fours, 68), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(seed_and_purpose_decide) {
  const auto rows = [](std::uint64_t seed, const char* purpose) {
    optim::Minibatches batches(50, 50, seed, purpose);
    return read(batches, 50);
  };
  BOOST_TEST((rows(1, "a") == rows(1, "a")));
  BOOST_TEST((rows(1, "a") != rows(2, "a")));
  BOOST_TEST((rows(1, "a") != rows(1, "b")));
}

BOOST_AUTO_TEST_CASE(skipping_is_reading) {
  for (const std::int64_t skipped : {0, 1, 5, 10, 33}) {
    optim::Minibatches read_all(10, 4, 1, "test"), skips(10, 4, 1, "test");
    for (std::int64_t i = 0; i < skipped; ++i) read_all.next();
    skips.skip(skipped);
    BOOST_TEST(read(read_all, 40) == read(skips, 40), boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(strides_go_round_in_permutations_too) {
  for (const std::int64_t rows : {1, 2, 6, 30, 97, 210})
    for (const std::int64_t batch : {1, 7, 64}) {
      optim::StridedMinibatches batches(rows, batch, cape::Rng(3)), same(rows, 1, cape::Rng(3));
      const std::vector<std::int64_t> read_rows = read(batches, 5 * rows);
      std::vector<std::int64_t> by_one = read(same, std::ssize(read_rows));
      BOOST_TEST(read_rows == by_one, boost::test_tools::per_element());
      for (std::int64_t k = 0; k < 5; ++k)
        BOOST_TEST(is_permutation(std::span(read_rows).subspan(static_cast<std::size_t>(k * rows),
                                                               static_cast<std::size_t>(rows))));
    }
}

BOOST_AUTO_TEST_CASE(bad_sizes_are_refused) {
  for (const auto& [rows, batch] : {std::pair<std::int64_t, std::int64_t>{0, 1}, {1, 0}, {-1, 1}}) {
    BOOST_TEST(test::fails_with(Status::invalid_argument, "both must be at least 1",
                                [&] { optim::Minibatches(rows, batch, 1, "test"); }));
    BOOST_TEST(test::fails_with(Status::invalid_argument, "both must be at least 1",
                                [&] { optim::StridedMinibatches(rows, batch, cape::Rng(1)); }));
  }
  optim::Minibatches batches(10, 3, 1, "test");
  BOOST_TEST(
      test::fails_with(Status::invalid_argument, "batches is -1", [&] { batches.skip(-1); }));
}

BOOST_AUTO_TEST_SUITE_END()
