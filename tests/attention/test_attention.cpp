#define BOOST_TEST_MODULE attention
#define BOOST_TEST_NO_MAIN
#include <boost/test/unit_test.hpp>
#include "simd/vector_math.hpp"
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <string>
#include <vector>
import cape;
#include "attention/differences.hpp"
#include "attention/tensors.hpp"
#include "errors.hpp"

namespace {

using cape::AttentionInput;
using cape::Status;
using test::at;
using test::check_slopes;
using test::converted;
using test::distance;
using test::error_of;
using test::has;
using test::random_values;
using test::weighted_sum;
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();

// With the bias, which linear attention does not have.
template <class T>
struct Problem : test::Tensors<T> {
  std::int64_t bias_heads = 1;
  std::vector<T> bias = {};

  AttentionInput<T> input() const {
    AttentionInput<T> all = test::Tensors<T>::input();
    all.bias = bias.empty() ? nullptr : bias.data();
    all.bias_heads = bias_heads;
    return all;
  }
};

Problem<float> to_float(const Problem<double>& p) {
  return {test::to_float(p), p.bias_heads, converted<float>(p.bias)};
}

enum class Angles { none, shared, per_head };

Problem<double> random_problem(cape::Rng& rng, std::int64_t batch, std::int64_t heads,
                               std::int64_t q_length, std::int64_t k_length, std::int64_t head_dim,
                               Angles angles, double reach = 2) {
  Problem<double> p{{batch, heads, q_length, k_length, head_dim, 1}};
  p.q = random_values(rng, batch * q_length * p.width(), reach);
  p.k = random_values(rng, batch * k_length * p.width(), reach);
  p.v = random_values(rng, batch * k_length * p.width(), reach);
  if (angles == Angles::none) return p;
  p.angle_heads = angles == Angles::shared ? 1 : heads;
  p.q_angles = random_values(rng, q_length * p.angle_heads * head_dim / 2, 3);
  p.k_angles = random_values(rng, k_length * p.angle_heads * head_dim / 2, 3);
  return p;
}

struct Result {
  std::vector<double> out, log_sum_exp, scores;
};

// The definition, written out: rotate, score, softmax over all keys at once, weighted mean. Sums
// are in long double, so that the reference is at least as exact as what it is compared with.
Result reference(const Problem<double>& p) {
  Result r{std::vector<double>(p.q.size(), 0.0),
           std::vector<double>(at(p.batch * p.heads * p.q_length), -infinity),
           std::vector<double>(at(p.batch * p.heads * p.q_length * p.k_length), -infinity)};
  const auto element = [&](const std::vector<double>& x, std::int64_t length, std::int64_t b,
                           std::int64_t i, std::int64_t h, std::int64_t c) {
    return x[at((b * length + i) * p.width() + h * p.head_dim + c)];
  };
  // A copy of queries or keys, turned.
  const auto turned = [&](const std::vector<double>& x, const std::vector<double>& angles,
                          std::int64_t length) {
    std::vector<long double> y(x.begin(), x.end());
    const std::int64_t pairs = p.head_dim / 2;
    for (std::int64_t row = 0; row < p.batch * length && !angles.empty(); ++row)
      for (std::int64_t h = 0; h < p.heads; ++h)
        for (std::int64_t t = 0; t < pairs; ++t) {
          const std::int64_t angle_head = p.angle_heads == 1 ? 0 : h;
          const long double phi =
              angles[at((row % length * p.angle_heads + angle_head) * pairs + t)];
          const std::int64_t c = row * p.width() + h * p.head_dim + 2 * t;
          y[at(c)] = std::cos(phi) * x[at(c)] - std::sin(phi) * x[at(c + 1)];
          y[at(c + 1)] = std::sin(phi) * x[at(c)] + std::cos(phi) * x[at(c + 1)];
        }
    return y;
  };
  const std::vector<long double> q = turned(p.q, p.q_angles, p.q_length);
  const std::vector<long double> k = turned(p.k, p.k_angles, p.k_length);
  for (std::int64_t b = 0; b < p.batch; ++b)
    for (std::int64_t h = 0; h < p.heads; ++h)
      for (std::int64_t i = 0; i < p.q_length; ++i) {
        const std::int64_t row = (b * p.heads + h) * p.q_length + i;
        double top = -infinity;
        for (std::int64_t j = 0; j < p.k_length; ++j) {
          if (!p.mask.empty() && p.mask[at(b * p.k_length + j)] == 0) continue;
          long double dot = 0;
          const long double* q_row = &q[at((b * p.q_length + i) * p.width() + h * p.head_dim)];
          const long double* k_row = &k[at((b * p.k_length + j) * p.width() + h * p.head_dim)];
          for (std::int64_t c = 0; c < p.head_dim; ++c) dot += q_row[c] * k_row[c];
          double score = static_cast<double>(dot) / std::sqrt(static_cast<double>(p.head_dim));
          if (!p.bias.empty())
            score += p.bias[at(((p.bias_heads == 1 ? 0 : h) * p.q_length + i) * p.k_length + j)];
          r.scores[at(row * p.k_length + j)] = score;
          top = std::max(top, score);
        }
        if (top == -infinity) continue;
        long double sum = 0;
        std::vector<long double> mean(at(p.head_dim), 0);
        for (std::int64_t j = 0; j < p.k_length; ++j) {
          const long double weight =
              std::exp(static_cast<long double>(r.scores[at(row * p.k_length + j)]) - top);
          if (weight == 0) continue;
          sum += weight;
          for (std::int64_t c = 0; c < p.head_dim; ++c)
            mean[at(c)] += weight * element(p.v, p.k_length, b, j, h, c);
        }
        for (std::int64_t c = 0; c < p.head_dim; ++c)
          r.out[at((b * p.q_length + i) * p.width() + h * p.head_dim + c)] =
              static_cast<double>(mean[at(c)] / sum);
        r.log_sum_exp[at(row)] = static_cast<double>(top + std::log(sum));
      }
  return r;
}

template <class T>
struct Forward {
  std::vector<T> out, log_sum_exp;
};
template <class T>
Forward<T> forward(const Problem<T>& p, int threads = 1) {
  cape::Run run(1, threads);
  Forward<T> f{std::vector<T>(p.q.size(), T(-99)),
               std::vector<T>(at(p.batch * p.heads * p.q_length), T(-99))};
  cape::attention_forward(p.input(), f.out.data(), f.log_sum_exp.data(), run);
  return f;
}

template <class T>
struct Gradient {
  std::vector<T> q, k, v, q_angles, k_angles, bias;
};
template <class T>
Gradient<T> backward(const Problem<T>& p, const std::vector<T>& d_out, int threads = 1) {
  cape::Run run(1, threads);
  const Forward<T> f = forward(p, threads);
  const auto like = [](const std::vector<T>& x) { return std::vector<T>(x.size(), T(-99)); };
  Gradient<T> g{like(p.q), like(p.k), like(p.v), like(p.q_angles), like(p.k_angles), like(p.bias)};
  const auto pointer = [](std::vector<T>& x) { return x.empty() ? nullptr : x.data(); };
  cape::attention_backward(p.input(), f.out.data(), f.log_sum_exp.data(), d_out.data(),
                           {pointer(g.q), pointer(g.k), pointer(g.v), pointer(g.q_angles),
                            pointer(g.k_angles), pointer(g.bias)},
                           run);
  return g;
}

// Random, with a third of the pairs shut out, and all keys for the first query.
void add_bias(Problem<double>& p, cape::Rng& rng, std::int64_t heads) {
  p.bias_heads = heads;
  p.bias = random_values(rng, heads * p.q_length * p.k_length, 3);
  for (std::size_t i = 0; i < p.bias.size(); ++i)
    if (i < at(p.k_length) || rng.uniform() < 0.3) p.bias[i] = -infinity;
}

// The largest error that is allowed, on every target: 4 units of rounding, as large as they are
// next to the largest score (whose rounding goes through the exponential) and value.
template <class T>
double tolerance(const Problem<double>& p, const Result& expected) {
  double score = 0, value = 1;
  for (const double s : expected.scores)
    if (s > -infinity) score = std::max(score, std::fabs(s));
  for (const double v : p.v) value = std::max(value, std::fabs(v));
  return 4 * static_cast<double>(std::numeric_limits<T>::epsilon()) * (4 + score) * value;
}

void check_against_reference(const Problem<double>& p) {
  const Result expected = reference(p);
  const double tiny = tolerance<double>(p, expected), small = tolerance<float>(p, expected);
  const Forward<double> f = forward(p);
  const Forward<float> single = forward(to_float(p));
  cape::Run run;
  std::vector<double> scores(expected.scores.size());
  cape::attention_scores(p.input(), scores.data(), run);
  BOOST_TEST_CONTEXT("batch " << p.batch << " heads " << p.heads << " q_length " << p.q_length
                              << " k_length " << p.k_length << " head_dim " << p.head_dim) {
    BOOST_TEST(distance(f.out, expected.out) < tiny);
    BOOST_TEST(distance(f.log_sum_exp, expected.log_sum_exp) < tiny);
    BOOST_TEST(distance(scores, expected.scores) < tiny);
    BOOST_TEST(distance(single.out, expected.out) < small);
    BOOST_TEST(distance(single.log_sum_exp, expected.log_sum_exp) < small);
  }
}

constexpr std::int64_t sizes[] = {1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11,
                                  12, 13, 14, 15, 16, 17, 31, 33, 63, 64, 65};

} // namespace

BOOST_AUTO_TEST_CASE(small_attention_by_hand) {
  // One query, two keys, head_dim 2, scale 1/sqrt(2): scores 0 and log(3), weights 1/4 and 3/4.
  const double s = std::sqrt(2.0) * std::log(3.0);
  const Problem<double> p{{1, 1, 1, 2, 2, 1, {1, 0}, {0, 5, s, 0}, {4, 0, 0, 8}}};
  const Forward<double> f = forward(p);
  BOOST_TEST(distance(f.out, {1, 6}) < 1e-14);
  BOOST_TEST(distance(f.log_sum_exp, {std::log(4.0)}) < 1e-14);
}

BOOST_AUTO_TEST_CASE(rotation_turns_interleaved_pairs) {
  // cases.md C1: the scores of q turned by (pi/6, pi/3) with the unit vectors at angle 0 are the
  // elements of the turned q, here divided by sqrt(4).
  const double pi = std::acos(-1.0);
  Problem<double> p{{1, 1, 1, 4, 4, 1}};
  p.q = {1, 2, 3, 4};
  p.k = {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1};
  p.v = p.k;
  p.q_angles = {pi / 6, pi / 3};
  p.k_angles = std::vector<double>(8, 0.0);
  cape::Run run;
  std::vector<double> scores(4);
  cape::attention_scores(p.input(), scores.data(), run);
  for (double& score : scores) score *= 2;
  BOOST_TEST(distance(scores, {-0.1339746, 2.2320508, -1.9641016, 4.5980762}) < 1e-7);
}

BOOST_AUTO_TEST_CASE(any_shape_agrees_with_the_definition) {
  cape::Rng rng(21);
  std::vector<std::int64_t> dims;
  for (std::int64_t d = 2; d <= 66; d += 2) dims.push_back(d);
  dims.push_back(128);
  for (const std::int64_t d : dims)
    for (const std::int64_t q : sizes)
      for (const std::int64_t k : sizes)
        check_against_reference(random_problem(rng, 1, 1, q, k, d, Angles::shared));
  for (int trial = 0; trial < 150; ++trial) {
    const auto size = [&] { return sizes[at(rng.integer(std::size(sizes)))]; };
    const std::int64_t d = size(), batch = 1 + rng.integer(3), heads = 1 + rng.integer(3);
    const auto angles = d % 2 != 0 ? Angles::none : static_cast<Angles>(rng.integer(3));
    check_against_reference(random_problem(rng, batch, heads, size(), size(), d, angles));
  }
}

BOOST_AUTO_TEST_CASE(denormal_inputs_are_as_good_as_zeros) {
  cape::Rng rng(45);
  Problem<double> p = random_problem(rng, 1, 1, 5, 70, 4, Angles::shared);
  Problem<double> zero = p;
  for (std::size_t i = 0; i < p.q.size(); ++i)
    p.q[i] = (i % 2 == 0 ? 1 : -1) * 1e-310, zero.q[i] = 0;
  BOOST_TEST(distance(forward(p).out, forward(zero).out) < 1e-15);
  Problem<float> single = to_float(zero);
  for (float& x : single.q) x = 1e-40f;
  for (float& x : single.v) x = 1e-40f;
  for (const float x : forward(single).out) BOOST_TEST(std::fabs(x) <= 2e-40f);
}

BOOST_AUTO_TEST_CASE(collinear_queries_and_keys_attend_less_the_further_they_are_apart) {
  // The paper's corollary of attenuation: for k = a q with a > 0 and angles up to pi/4 the score
  // falls along a ray of differences.
  cape::Rng rng(46);
  cape::Run run;
  for (int draw = 0; draw < 200; ++draw) {
    const std::int64_t d = 2 * (1 + rng.integer(8)), steps = 12;
    Problem<double> p = random_problem(rng, 1, 1, 1, steps, d, Angles::none);
    const double factor = rng.uniform(0.1, 3);
    const std::vector<double> ray = random_values(rng, d / 2, std::acos(-1.0) / 4);
    for (const double x : ray) p.q_angles.push_back(x);
    for (std::int64_t j = 0; j < steps; ++j) {
      const double at_step = 1 - 2 * static_cast<double>(j) / static_cast<double>(steps - 1);
      for (const double x : ray) p.k_angles.push_back(at_step * x);
      for (std::int64_t c = 0; c < d; ++c) p.k[at(j * d + c)] = factor * p.q[at(c)];
    }
    std::vector<double> scores(at(steps));
    cape::attention_scores(p.input(), scores.data(), run);
    for (std::size_t j = 1; j < scores.size(); ++j) BOOST_TEST(scores[j] < scores[j - 1]);
  }
}

BOOST_AUTO_TEST_CASE(lengths_beyond_one_tile_agree_with_the_definition) {
  cape::Rng rng(22);
  for (const std::int64_t q : {255, 256, 257, 520})
    for (const std::int64_t k : {255, 256, 257, 520})
      check_against_reference(random_problem(rng, 1, 2, q, k, 4, Angles::per_head));
}

BOOST_AUTO_TEST_CASE(empty_sides_are_defined) {
  cape::Rng rng(23);
  BOOST_TEST(forward(random_problem(rng, 1, 2, 0, 5, 4, Angles::none)).out.empty());
  BOOST_TEST(forward(random_problem(rng, 0, 2, 3, 5, 4, Angles::none)).out.empty());
  const Problem<double> no_keys = random_problem(rng, 2, 2, 3, 0, 4, Angles::none);
  const Forward<double> f = forward(no_keys);
  BOOST_TEST(std::ranges::count(f.out, 0.0) == std::ssize(no_keys.q));
  BOOST_TEST(std::ranges::count(f.log_sum_exp, -infinity) == 2 * 2 * 3);
  const Gradient<double> g = backward(no_keys, no_keys.q);
  BOOST_TEST(std::ranges::count(g.q, 0.0) == std::ssize(no_keys.q));
  cape::Run run;
  BOOST_CHECK_NO_THROW(cape::attention_forward(AttentionInput<double>{.head_dim = 3},
                                               static_cast<double*>(nullptr), nullptr, run));
}

BOOST_AUTO_TEST_CASE(padded_keys_have_no_influence_whatever_they_hold) {
  cape::Rng rng(24);
  for (const double junk : {nan_value, infinity, -infinity, 1e300}) {
    Problem<double> p = random_problem(rng, 2, 2, 9, 300, 6, Angles::shared);
    p.mask.assign(2 * 300, 1);
    for (std::int64_t j = 0; j < 600; ++j) p.mask[at(j)] = rng.uniform() < 0.6;
    const Result expected = reference(p);
    const std::vector<double> d_out = random_values(rng, std::ssize(p.q), 1);
    const Gradient<double> clean = backward(p, d_out);
    for (std::int64_t j = 0; j < 600; ++j)
      if (p.mask[at(j)] == 0)
        for (std::int64_t c = 0; c < p.width(); ++c)
          p.k[at(j * p.width() + c)] = p.v[at(j * p.width() + c)] = junk;
    const Forward<double> f = forward(p);
    BOOST_TEST(distance(f.out, expected.out) < 1e-12);
    BOOST_TEST(distance(f.log_sum_exp, expected.log_sum_exp) < 1e-12);
    const Gradient<double> g = backward(p, d_out);
    BOOST_TEST((g.q == clean.q && g.k == clean.k && g.v == clean.v));
    BOOST_TEST((g.q_angles == clean.q_angles && g.k_angles == clean.k_angles));
    for (std::int64_t j = 0; j < 600; ++j)
      if (p.mask[at(j)] == 0) BOOST_TEST(g.k[at(j * p.width())] == 0.0);
  }
}

BOOST_AUTO_TEST_CASE(a_bias_is_added_to_the_scaled_scores) {
  cape::Rng rng(40);
  for (const std::int64_t k : {1, 5, 64, 65, 200, 300})
    for (const std::int64_t heads : {1, 2}) {
      Problem<double> p = random_problem(rng, 2, 2, 7, k, 6, Angles::shared);
      add_bias(p, rng, heads);
      check_against_reference(p);
      for (std::int64_t j = 0; j < 2 * k; ++j) p.mask.push_back(rng.uniform() < 0.7);
      check_against_reference(p);
    }
}

BOOST_AUTO_TEST_CASE(pairs_that_the_bias_shuts_out_have_no_gradient) {
  cape::Rng rng(41);
  Problem<double> p = random_problem(rng, 1, 1, 3, 4, 2, Angles::shared);
  p.bias = std::vector<double>(12, 0.5);
  for (std::size_t i = 0; i < 3; ++i) p.bias[i * 4 + 2] = -infinity; // key 2, for every query
  const Gradient<double> g = backward(p, random_values(rng, 6, 1));
  BOOST_TEST((g.k[4] == 0 && g.k[5] == 0 && g.v[4] == 0 && g.v[5] == 0 && g.k_angles[2] == 0));
  BOOST_TEST((g.k[0] != 0 && g.v[0] != 0));
}

BOOST_AUTO_TEST_CASE(a_bias_that_is_not_a_number_or_infinite_is_refused) {
  cape::Rng rng(42);
  Problem<double> p = random_problem(rng, 1, 2, 3, 4, 2, Angles::none);
  for (const double bad : {nan_value, infinity, 1e308}) {
    p.bias = std::vector<double>(12, 0);
    p.bias[5] = bad;
    BOOST_TEST(has(error_of(Status::invalid_argument, [&] { forward(p); }), {"bias has"}));
  }
  p.bias = std::vector<double>(36, 0);
  p.bias_heads = 3;
  BOOST_TEST(has(error_of(Status::dim_mismatch, [&] { forward(p); }), {"bias_heads is 3", "2"}));
}

BOOST_AUTO_TEST_CASE(scores_that_rise_from_block_to_block_are_weighted_right) {
  // The largest score so far is beaten by far again and again, so that sums must shrink.
  Problem<double> p{{1, 1, 3, 700, 2, 1, {1, 0, -1, 0, 0.01, 0}}};
  for (int j = 0; j < 700; ++j) {
    p.k.insert(p.k.end(), {0.3 * j, 0});
    p.v.insert(p.v.end(), {std::sin(j), 1});
  }
  check_against_reference(p);
}

BOOST_AUTO_TEST_CASE(a_row_without_keys_gives_zeros) {
  // cases.md C2, for a whole element of the batch: its keys are all padding, the others' are not.
  cape::Rng rng(25);
  Problem<double> p = random_problem(rng, 3, 1, 4, 4, 2, Angles::shared);
  p.mask = {1, 1, 1, 1, 0, 0, 0, 0, 1, 0, 1, 0};
  const Forward<double> f = forward(p);
  const Forward<float> single = forward(to_float(p));
  BOOST_TEST(distance(f.out, reference(p).out) < 1e-13);
  const Gradient<double> g = backward(p, p.q);
  const Gradient<float> g_single = backward(to_float(p), to_float(p).q);
  for (std::size_t i = 8; i < 16; ++i) {
    BOOST_TEST(f.out[i] == 0.0);
    BOOST_TEST(single.out[i] == 0.0f);
    for (const double x : {g.q[i], g.k[i], g.v[i]}) BOOST_TEST(x == 0.0);
    for (const float x : {g_single.q[i], g_single.k[i], g_single.v[i]}) BOOST_TEST(x == 0.0f);
  }
  for (std::size_t i = 4; i < 8; ++i) BOOST_TEST(f.log_sum_exp[i] == -infinity);
}

BOOST_AUTO_TEST_CASE(huge_scores_are_stable) {
  // Scores of +-1e4 around a winner: the softmax is the value of the largest score.
  Problem<double> p{{1, 1, 2, 600, 2, 1}};
  p.q = {1, 0, -1, 0};
  for (int j = 0; j < 600; ++j) {
    p.k.insert(p.k.end(), {std::sqrt(2.0) * (j == 300 ? 1e4 : j == 17 ? -1e4 : 10.0 * (j % 7)), 0});
    p.v.insert(p.v.end(), {static_cast<double>(j), 1});
  }
  BOOST_TEST(distance(forward(p).out, {300, 1, 17, 1}) < 1e-10);
  BOOST_TEST(distance(forward(to_float(p)).out, {300, 1, 17, 1}) < 1e-4);
  const Gradient<double> g = backward(p, {1, 1, 1, 1});
  BOOST_TEST(distance(g.q, {0, 0, 0, 0}) < 1e-10);
  cape::Rng rng(26);
  const Problem<double> wild = random_problem(rng, 1, 2, 33, 300, 8, Angles::shared, 100);
  BOOST_TEST(distance(forward(wild).out, reference(wild).out) < 1e-8);
}

BOOST_AUTO_TEST_CASE(gradients_agree_with_central_differences) {
  cape::Rng rng(27);
  struct Shape {
    std::int64_t batch, heads, q, k, d;
    Angles angles;
    bool masked;
    std::int64_t bias_heads = 0;
  };
  for (const Shape s :
       {Shape{1, 1, 1, 1, 2, Angles::shared, false}, Shape{1, 1, 3, 5, 3, Angles::none, false},
        Shape{2, 2, 4, 5, 4, Angles::shared, true}, Shape{1, 2, 5, 67, 4, Angles::shared, true},
        Shape{2, 2, 4, 5, 4, Angles::shared, true, 2},
        Shape{1, 2, 70, 9, 2, Angles::none, false, 1}, Shape{2, 3, 3, 4, 2, Angles::per_head, true},
        Shape{2, 3, 3, 67, 2, Angles::none, true, 1}, Shape{1, 1, 258, 3, 2, Angles::shared, false},
        Shape{1, 1, 2, 258, 2, Angles::shared, true}}) {
    Problem<double> p = random_problem(rng, s.batch, s.heads, s.q, s.k, s.d, s.angles);
    if (s.masked)
      for (std::int64_t j = 0; j < s.batch * s.k; ++j) p.mask.push_back(rng.uniform() < 0.7);
    if (s.bias_heads > 0) add_bias(p, rng, s.bias_heads);
    const std::vector<double> d_out = random_values(rng, std::ssize(p.q), 1);
    const auto loss = [&] { return weighted_sum(d_out, forward(p).out); };
    const Gradient<double> g = backward(p, d_out);
    const auto compare = [&](std::vector<double>& x, const std::vector<double>& analytic,
                             const char* name) { check_slopes(x, analytic, name, s.k, loss); };
    compare(p.q, g.q, "q");
    compare(p.k, g.k, "k");
    compare(p.v, g.v, "v");
    compare(p.q_angles, g.q_angles, "q_angles");
    compare(p.k_angles, g.k_angles, "k_angles");
    compare(p.bias, g.bias, "bias");
  }
}

BOOST_AUTO_TEST_CASE(gradients_in_float_agree_with_double) {
  cape::Rng rng(28);
  Problem<double> p = random_problem(rng, 2, 2, 270, 300, 16, Angles::per_head, 1);
  add_bias(p, rng, 2);
  const std::vector<double> d_out = random_values(rng, std::ssize(p.q), 1);
  const Gradient<double> g = backward(p, d_out);
  const Gradient<float> f = backward(to_float(p), converted<float>(d_out));
  BOOST_TEST(distance(f.q, g.q) < 1e-5);
  BOOST_TEST(distance(f.k, g.k) < 1e-5);
  BOOST_TEST(distance(f.v, g.v) < 1e-5);
  BOOST_TEST(distance(f.q_angles, g.q_angles) < 1e-5);
  BOOST_TEST(distance(f.k_angles, g.k_angles) < 1e-5);
  BOOST_TEST(distance(f.bias, g.bias) < 1e-5);
}

BOOST_AUTO_TEST_CASE(weights_of_huge_scores_sum_to_one_in_the_gradient_too) {
  // The weights of a query sum to 1, so that d_v, summed over keys, is d_out, summed over queries.
  // The scores of a query are nearly alike and large: float rounds their log_sum_exp by up to 2.
  cape::Rng rng(41);
  for (const double size : {1.0, 1e3, 1e5, 1e6, 1e7, 4e7}) {
    Problem<double> p = random_problem(rng, 1, 1, 20, 40, 4, Angles::none);
    for (double& x : p.q) x = size * (1 + 0.1 * x);
    for (double& x : p.k) x = 1;
    const std::vector<double> d_out = random_values(rng, std::ssize(p.q), 1);
    const Gradient<float> g = backward(to_float(p), converted<float>(d_out));
    for (std::size_t c = 0; c < 4; ++c) {
      double keys = 0, queries = 0;
      for (std::size_t j = 0; j < 40; ++j) keys += static_cast<double>(g.v[4 * j + c]);
      for (std::size_t i = 0; i < 20; ++i) queries += d_out[4 * i + c];
      BOOST_TEST_CONTEXT("scores of " << size) BOOST_TEST(std::fabs(keys - queries) < 1e-3);
    }
  }
}

// With one query the weights are d_v over d_out, and the bias's gradient is P_j (s_j - out .
// d_out), s_j = d_out . v_j.
BOOST_AUTO_TEST_CASE(the_gradient_of_the_bias_has_the_weights_that_sum_to_one) {
  cape::Rng rng(43);
  for (const double size : {1.0, 1e5, 1e6, 1e7}) {
    Problem<double> p = random_problem(rng, 1, 1, 1, 40, 4, Angles::none);
    for (double& x : p.q) x = size * (1 + 0.1 * x);
    for (double& x : p.k) x = 1;
    p.bias = random_values(rng, 40, 1);
    const std::vector<double> d_out = random_values(rng, 4, 1);
    const Forward<float> f = forward(to_float(p));
    const Gradient<float> g = backward(to_float(p), converted<float>(d_out));
    const double mean = weighted_sum(d_out, converted<double>(f.out));
    for (std::size_t j = 0; j < 40; ++j) {
      const double weight = static_cast<double>(g.v[4 * j]) / d_out[0];
      double slope = 0;
      for (std::size_t c = 0; c < 4; ++c) slope += d_out[c] * p.v[4 * j + c];
      BOOST_TEST_CONTEXT("scores of " << size)
      BOOST_TEST(std::fabs(static_cast<double>(g.bias[j]) - weight * (slope - mean)) < 1e-6);
    }
  }
}

// Whether the weights can be had again then depends on the order of the sums, which differs between
// instruction sets: they are right, or the call says what it lacks.
BOOST_AUTO_TEST_CASE(a_log_sum_exp_that_its_type_cannot_resolve_is_refused_or_does_no_harm) {
  cape::Rng rng(42);
  Problem<double> p = random_problem(rng, 1, 1, 3, 500, 4, Angles::none);
  for (double& x : p.q) x = 1e30;
  for (double& x : p.k) x = 1 + 1e-6 * x;
  Gradient<float> g;
  const std::string text = error_of(Status::invalid_argument,
                                    [&] { g = backward(to_float(p), std::vector<float>(12, 1)); });
  if (!text.empty()) {
    BOOST_TEST(has(text, {"log_sum_exp"}));
    return;
  }
  for (std::size_t c = 0; c < 4; ++c) {
    double keys = 0;
    for (std::size_t j = 0; j < 500; ++j) keys += static_cast<double>(g.v[4 * j + c]);
    BOOST_TEST(std::fabs(keys - 3) < 1e-3); // as many as there are queries
  }
}

BOOST_AUTO_TEST_CASE(sizes_up_to_the_largest_integer_give_a_workspace_or_an_error) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  std::vector<std::int64_t> wild{0, 1, 64, std::int64_t{1} << 31, std::int64_t{1} << 40};
  for (std::int64_t less = 0; less < 200; ++less) wild.push_back(most - less);
  for (int shift = 50; shift < 63; ++shift) wild.push_back(std::int64_t{1} << shift);
  const auto look = [](const auto& in) {
    for (const int threads : {1, 64}) {
      try {
        const cape::AttentionWorkspace bytes = cape::attention_workspace(in, threads);
        // Not less than a head's k if there is a head, and no more than all that there is.
        const double k =
            in.batch == 0 ? 0 : static_cast<double>(in.k_length) * static_cast<double>(in.head_dim);
        if (!(bytes.forward >= k && bytes.backward >= k && bytes.backward < 1e60)) return false;
      } catch (const cape::Error& e) {
        if (e.code() != Status::invalid_argument) return false;
      }
    }
    return true;
  };
  for (const std::int64_t size : wild)
    for (const std::int64_t other : {std::int64_t{0}, std::int64_t{1}, std::int64_t{4}, size}) {
      using Double = AttentionInput<double>;
      using Float = AttentionInput<float>;
      BOOST_TEST_CONTEXT(size << " and " << other) {
        const std::int64_t heads = std::max(other, std::int64_t{1});
        BOOST_TEST(look(
            Double{.batch = size, .heads = heads, .q_length = 4, .k_length = 4, .head_dim = 4}));
        BOOST_TEST(look(Float{.batch = other,
                              .heads = std::max(size, heads),
                              .q_length = 4,
                              .k_length = 4,
                              .head_dim = 4}));
        BOOST_TEST(look(
            Double{.batch = 1, .heads = 1, .q_length = size, .k_length = other, .head_dim = 3}));
        BOOST_TEST(look(
            Float{.batch = 1, .heads = 1, .q_length = other, .k_length = size, .head_dim = 3}));
        BOOST_TEST(look(
            Double{.batch = other, .heads = 1, .q_length = 4, .k_length = 4, .head_dim = size}));
        BOOST_TEST(
            look(Float{.batch = 1, .heads = 1, .q_length = 4, .k_length = 4, .head_dim = size}));
      }
    }
}

BOOST_AUTO_TEST_CASE(gradients_not_asked_for_do_not_change_the_others) {
  cape::Rng rng(29);
  const Problem<double> p = random_problem(rng, 1, 2, 5, 6, 4, Angles::shared);
  const std::vector<double> d_out = random_values(rng, std::ssize(p.q), 1);
  const Gradient<double> all = backward(p, d_out);
  const Forward<double> f = forward(p);
  cape::Run run;
  std::vector<double> q(p.q.size()), k(p.k.size()), v(p.v.size());
  const auto only = [&](const cape::AttentionGradient<double>& g) {
    cape::attention_backward(p.input(), f.out.data(), f.log_sum_exp.data(), d_out.data(), g, run);
  };
  only({.q = q.data()});
  only({.k = k.data()});
  only({.v = v.data()});
  BOOST_TEST((q == all.q && k == all.k && v == all.v));
}

BOOST_AUTO_TEST_CASE(permuting_features_with_their_positions_permutes_the_output) {
  cape::Rng rng(30);
  const std::int64_t n = 300, d = 8;
  const Problem<double> p = random_problem(rng, 1, 1, n, n, d, Angles::shared);
  const std::vector<std::int64_t> order = rng.permutation(n);
  const auto permuted = [&](const std::vector<double>& x, std::int64_t width) {
    std::vector<double> y(x.size());
    for (std::int64_t i = 0; i < n; ++i)
      std::copy_n(x.begin() + order[at(i)] * width, width, y.begin() + i * width);
    return y;
  };
  Problem<double> turned = p;
  turned.q = permuted(p.q, d);
  turned.k = permuted(p.k, d);
  turned.v = permuted(p.v, d);
  turned.q_angles = permuted(p.q_angles, d / 2);
  turned.k_angles = permuted(p.k_angles, d / 2);
  BOOST_TEST(distance(forward(turned).out, permuted(forward(p).out, d)) < 1e-13);
}

BOOST_AUTO_TEST_CASE(a_common_shift_of_all_angles_changes_nothing) {
  cape::Rng rng(31);
  Problem<double> p = random_problem(rng, 1, 2, 40, 50, 6, Angles::shared);
  const Forward<double> before = forward(p);
  const std::vector<double> shift = random_values(rng, 3, 2);
  for (std::size_t i = 0; i < p.q_angles.size(); ++i) p.q_angles[i] += shift[i % 3];
  for (std::size_t i = 0; i < p.k_angles.size(); ++i) p.k_angles[i] += shift[i % 3];
  BOOST_TEST(distance(forward(p).out, before.out) < 1e-13);
  // ... and the gradients of the angles sum to 0 for each pair.
  const Gradient<double> g = backward(p, random_values(rng, std::ssize(p.q), 1));
  for (std::size_t t = 0; t < 3; ++t) {
    double sum = 0;
    for (std::size_t i = t; i < g.q_angles.size(); i += 3) sum += g.q_angles[i];
    for (std::size_t i = t; i < g.k_angles.size(); i += 3) sum += g.k_angles[i];
    BOOST_TEST(std::fabs(sum) < 1e-12);
  }
}

BOOST_AUTO_TEST_CASE(angles_of_the_rotary_stage_give_its_score) {
  cape::Rng rng(32);
  const Problem<double> p = random_problem(rng, 1, 1, 3, 4, 6, Angles::shared);
  cape::Run run;
  std::vector<double> scores(12);
  cape::attention_scores(p.input(), scores.data(), run);
  for (std::size_t m = 0; m < 3; ++m)
    for (std::size_t n = 0; n < 4; ++n)
      BOOST_TEST(std::fabs(scores[m * 4 + n] * std::sqrt(6.0) -
                           cape::rotary_score({&p.q[m * 6], 6}, {&p.k[n * 6], 6},
                                              {&p.q_angles[m * 3], 3}, {&p.k_angles[n * 3], 3})) <
                 1e-13);
}

BOOST_AUTO_TEST_CASE(tensors_may_have_gaps) {
  // Queries, keys and values of a token side by side, as one projection gives them.
  cape::Rng rng(44);
  Problem<double> p = random_problem(rng, 2, 2, 9, 9, 4, Angles::shared);
  const std::int64_t width = p.width(), rows = 2 * 9, stride = 3 * width + 1;
  std::vector<double> joint(at(rows * stride), nan_value), out(at(rows * (width + 3)), -7);
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t c = 0; c < width; ++c) {
      joint[at(i * stride + c)] = p.q[at(i * width + c)];
      joint[at(i * stride + width + c)] = p.k[at(i * width + c)];
      joint[at(i * stride + 2 * width + c)] = p.v[at(i * width + c)];
    }
  AttentionInput<double> in = p.input();
  in.q = joint.data();
  in.k = joint.data() + width;
  in.v = joint.data() + 2 * width;
  in.q_stride = in.k_stride = in.v_stride = stride;
  in.out_stride = width + 3;
  cape::Run run;
  std::vector<double> sums(2 * 2 * 9), scores(2 * 2 * 9 * 9), dense_scores(scores.size());
  cape::attention_forward(in, out.data(), sums.data(), run);
  const Forward<double> f = forward(p);
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t c = 0; c < width; ++c)
      BOOST_TEST(out[at(i * (width + 3) + c)] == f.out[at(i * width + c)]);
    BOOST_TEST(out[at(i * (width + 3) + width)] == -7.0);
  }
  cape::attention_scores(in, scores.data(), run);
  cape::attention_scores(p.input(), dense_scores.data(), run);
  BOOST_TEST((scores == dense_scores));
  std::vector<double> d_out(out.size(), nan_value), dense(p.q.size());
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t c = 0; c < width; ++c)
      d_out[at(i * (width + 3) + c)] = dense[at(i * width + c)] = rng.uniform(-1, 1);
  const Gradient<double> g = backward(p, dense);
  std::vector<double> d_q(p.q.size()), d_k(p.k.size()), d_v(p.v.size());
  cape::attention_backward(in, out.data(), sums.data(), d_out.data(),
                           {.q = d_q.data(), .k = d_k.data(), .v = d_v.data()}, run);
  BOOST_TEST((d_q == g.q && d_k == g.k && d_v == g.v));
  in.k_stride = width - 1;
  BOOST_TEST(has(
      error_of(Status::invalid_argument, [&] { cape::attention_scores(in, scores.data(), run); }),
      {"k_stride is 7", "8"}));
}

BOOST_AUTO_TEST_CASE(a_given_scale_replaces_the_default) {
  cape::Rng rng(33);
  const Problem<double> p = random_problem(rng, 1, 1, 3, 4, 6, Angles::none);
  cape::Run run;
  std::vector<double> with_default(12), with_two(12);
  cape::attention_scores(p.input(), with_default.data(), run);
  AttentionInput<double> in = p.input();
  in.scale = 2;
  cape::attention_scores(in, with_two.data(), run);
  for (double& score : with_default) score *= 2 * std::sqrt(6.0);
  BOOST_TEST(distance(with_two, with_default) < 1e-13);
}

BOOST_AUTO_TEST_CASE(the_number_of_threads_does_not_change_a_bit) {
  cape::Rng rng(34);
  Problem<double> p = random_problem(rng, 3, 2, 300, 300, 16, Angles::shared);
  for (std::int64_t j = 0; j < 900; ++j) p.mask.push_back(rng.uniform() < 0.8);
  const std::vector<double> d_out = random_values(rng, std::ssize(p.q), 1);
  const Forward<double> one = forward(p, 1), two = forward(p, 2);
  BOOST_TEST((one.out == two.out && one.log_sum_exp == two.log_sum_exp));
  const Gradient<double> g1 = backward(p, d_out, 1), g2 = backward(p, d_out, 2);
  BOOST_TEST((g1.q == g2.q && g1.k == g2.k && g1.v == g2.v));
  BOOST_TEST((g1.q_angles == g2.q_angles && g1.k_angles == g2.k_angles));
  for (const std::int64_t heads : {1, 2}) {
    add_bias(p, rng, heads);
    BOOST_TEST((backward(p, d_out, 1).bias == backward(p, d_out, 2).bias));
  }
  const Problem<float> single = to_float(p);
  BOOST_TEST((forward(single, 1).out == forward(single, 2).out));
  // One head, whose keys are cut in parts.
  const Problem<float> one_head =
      to_float(random_problem(rng, 1, 1, 1100, 1300, 10, Angles::shared));
  BOOST_TEST((forward(one_head, 1).out == forward(one_head, 2).out));
  const Gradient<float> f1 = backward(one_head, one_head.q, 1);
  const Gradient<float> f2 = backward(one_head, one_head.q, 2);
  BOOST_TEST((f1.q == f2.q && f1.k == f2.k && f1.v == f2.v && f1.q_angles == f2.q_angles));
}

BOOST_AUTO_TEST_CASE(gradients_of_a_long_head_agree_with_those_of_its_keys_in_another_order) {
  // Keys are cut in parts by their number; any order of them has the same gradients.
  cape::Rng rng(43);
  const std::int64_t keys = 1700, d = 6;
  const Problem<double> p = random_problem(rng, 1, 1, 20, keys, d, Angles::none);
  const std::vector<std::int64_t> order = rng.permutation(keys);
  Problem<double> other = p;
  for (std::int64_t j = 0; j < keys; ++j)
    for (std::int64_t c = 0; c < d; ++c) {
      other.k[at(j * d + c)] = p.k[at(order[at(j)] * d + c)];
      other.v[at(j * d + c)] = p.v[at(order[at(j)] * d + c)];
    }
  const std::vector<double> d_out = random_values(rng, std::ssize(p.q), 1);
  const Gradient<double> g = backward(p, d_out), h = backward(other, d_out);
  BOOST_TEST(distance(h.q, g.q) < 1e-13);
  double worst = 0;
  for (std::int64_t j = 0; j < keys; ++j)
    for (std::int64_t c = 0; c < d; ++c)
      worst = std::max({worst, std::fabs(h.k[at(j * d + c)] - g.k[at(order[at(j)] * d + c)]),
                        std::fabs(h.v[at(j * d + c)] - g.v[at(order[at(j)] * d + c)])});
  BOOST_TEST(worst < 1e-13);
}

BOOST_AUTO_TEST_CASE(odd_head_dim_with_angles_is_refused_with_the_numbers) {
  cape::Rng rng(35);
  Problem<double> p = random_problem(rng, 1, 1, 2, 2, 7, Angles::none);
  p.q_angles = p.k_angles = std::vector<double>(6);
  BOOST_TEST(has(error_of(Status::dim_mismatch, [&] { forward(p); }), {"head_dim is 7", "8"}));
}

BOOST_AUTO_TEST_CASE(bad_arguments_are_named) {
  cape::Rng rng(36);
  const Problem<double> p = random_problem(rng, 1, 2, 3, 4, 4, Angles::shared);
  std::vector<double> out(p.q.size());
  cape::Run run;
  const auto refusal = [&](Status status, auto change) {
    AttentionInput<double> in = p.input();
    change(in);
    return error_of(status, [&] { cape::attention_forward(in, out.data(), nullptr, run); });
  };
  using In = AttentionInput<double>;
  const Status invalid = Status::invalid_argument;
  BOOST_TEST(has(refusal(invalid, [](In& in) { in.q = nullptr; }), {"q is null", "24"}));
  BOOST_TEST(has(refusal(invalid, [](In& in) { in.k = nullptr; }), {"k is null", "32"}));
  BOOST_TEST(has(refusal(invalid, [](In& in) { in.v = nullptr; }), {"v is null", "32"}));
  BOOST_TEST(has(refusal(invalid, [](In& in) { in.q_angles = nullptr; }), {"q_angles is null"}));
  BOOST_TEST(has(refusal(invalid, [](In& in) { in.k_angles = nullptr; }), {"k_angles is null"}));
  BOOST_TEST(has(refusal(invalid, [](In& in) { in.batch = -1; }), {"batch is -1"}));
  BOOST_TEST(has(refusal(invalid, [](In& in) { in.heads = 0; }), {"heads is 0"}));
  BOOST_TEST(has(refusal(invalid, [](In& in) { in.q_length = -5; }), {"q_length is -5"}));
  BOOST_TEST(has(refusal(invalid, [](In& in) { in.k_length = -5; }), {"k_length is -5"}));
  BOOST_TEST(has(refusal(invalid, [](In& in) { in.head_dim = 0; }), {"head_dim is 0"}));
  BOOST_TEST(has(refusal(invalid, [](In& in) { in.scale = infinity; }), {"scale"}));
  BOOST_TEST(has(refusal(invalid, [](In& in) { in.q_length = std::int64_t{1} << 58; }), {"2^57"}));
  BOOST_TEST(has(refusal(invalid, [](In& in) { in.batch = std::int64_t{1} << 62; }), {"2^57"}));
  BOOST_TEST(has(refusal(Status::dim_mismatch, [](In& in) { in.angle_heads = 3; }), {"3", "2"}));
  double* const none = nullptr;
  const auto without_out = [&] { cape::attention_forward(p.input(), none, none, run); };
  BOOST_TEST(has(error_of(invalid, without_out), {"out is null"}));
  const auto without_scores = [&] { cape::attention_scores(p.input(), none, run); };
  BOOST_TEST(has(error_of(invalid, without_scores), {"scores is null"}));
}

BOOST_AUTO_TEST_CASE(values_that_are_not_finite_or_would_overflow_are_refused) {
  cape::Rng rng(37);
  const Problem<double> p = random_problem(rng, 1, 1, 3, 4, 4, Angles::shared);
  const auto refusal = [&](auto member, double value) {
    Problem<double> bad = p;
    (bad.*member)[1] = value;
    return error_of(Status::invalid_argument, [&] { forward(bad); });
  };
  for (const double bad : {nan_value, infinity, -infinity}) {
    BOOST_TEST(has(refusal(&Problem<double>::q, bad), {"q has", "not finite"}));
    BOOST_TEST(has(refusal(&Problem<double>::k, bad), {"k has", "not finite"}));
    BOOST_TEST(has(refusal(&Problem<double>::v, bad), {"v has", "not finite"}));
    BOOST_TEST(has(refusal(&Problem<double>::q_angles, bad), {"q_angles has", "not finite"}));
    BOOST_TEST(has(refusal(&Problem<double>::k_angles, bad), {"k_angles has", "not finite"}));
  }
  BOOST_TEST(has(refusal(&Problem<double>::q, 1e308), {"q", "too large"}));
  BOOST_TEST(has(refusal(&Problem<double>::v, 1e308), {"v", "too large"}));
}

BOOST_AUTO_TEST_CASE(bad_gradient_requests_are_named) {
  cape::Rng rng(38);
  const Problem<double> p = random_problem(rng, 1, 1, 3, 4, 4, Angles::shared);
  const Forward<double> f = forward(p);
  std::vector<double> x(100);
  cape::Run run;
  const auto refusal = [&](const Problem<double>& problem, const double* sums,
                           const cape::AttentionGradient<double>& g) {
    return error_of(Status::invalid_argument, [&] {
      cape::attention_backward(problem.input(), f.out.data(), sums, p.q.data(), g, run);
    });
  };
  const double* sums = f.log_sum_exp.data();
  BOOST_TEST(has(refusal(p, sums, {.q_angles = x.data()}), {"gradient.q"}));
  BOOST_TEST(has(refusal(p, sums, {.k_angles = x.data()}), {"gradient.k"}));
  BOOST_TEST(has(refusal(p, nullptr, {.q = x.data()}), {"log_sum_exp is null"}));
  Problem<double> plain = p;
  plain.q_angles = plain.k_angles = {};
  BOOST_TEST(has(refusal(plain, sums, {.q = x.data(), .q_angles = x.data()}), {"no angles"}));
  BOOST_TEST(has(refusal(p, sums, {.bias = x.data()}), {"gradient of the bias", "none"}));
  const std::vector<double> wrong(3, -1e6);
  BOOST_TEST(
      has(refusal(p, wrong.data(), {.v = x.data()}), {"query 0 (counted from 0)", "log_sum_exp"}));
  const std::vector<double> none(3, nan_value);
  BOOST_TEST(has(refusal(p, none.data(), {.v = x.data()}), {"log_sum_exp has", "not finite"}));
}

BOOST_AUTO_TEST_CASE(a_long_call_can_be_cancelled) {
  cape::Rng rng(39);
  const Problem<double> p = random_problem(rng, 1, 1, 300, 3000, 16, Angles::shared);
  int calls = 0;
  cape::Run run(1, 1, [&](const cape::Progress&) { return ++calls < 1; });
  std::vector<double> out(p.q.size());
  const auto call = [&] { cape::attention_forward(p.input(), out.data(), nullptr, run); };
  BOOST_TEST(has(error_of(Status::cancelled, call), {"cancelled"}));
}

int main(int argc, char** argv) {
  const char* forced = std::getenv("CAPE_SIMD_TARGET");
  if (forced != nullptr && std::strcmp(forced, cape::simd::target()) != 0) {
    std::printf("this build or CPU has no target %s\n", forced);
    return 77;
  }
  return boost::unit_test::unit_test_main([] { return true; }, argc, argv);
}
