#define BOOST_TEST_MODULE linear_attention
#include <boost/test/unit_test.hpp>
#include <algorithm>
#include <cmath>
#include <cstdint>
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

constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();

template <class T>
struct Problem : test::Tensors<T> {
  std::int64_t features;
  std::vector<T> directions;
};

struct Shape {
  std::int64_t batch, heads, q, k, d, features;
  std::int64_t angle_heads; // 0: no angles
};

Problem<double> random_problem(cape::Rng& rng, const Shape& s, double reach = 1) {
  cape::Run run(rng.bits());
  return {{s.batch,
           s.heads,
           s.q,
           s.k,
           s.d,
           std::max(s.angle_heads, std::int64_t{1}),
           random_values(rng, s.batch * s.q * s.heads * s.d, reach),
           random_values(rng, s.batch * s.k * s.heads * s.d, reach),
           random_values(rng, s.batch * s.k * s.heads * s.d, 1),
           random_values(rng, s.q * s.angle_heads * s.d / 2, 0.8),
           random_values(rng, s.k * s.angle_heads * s.d / 2, 0.8)},
          s.features,
          cape::attention_directions<double>(s.features, s.d, 0, run)};
}

Problem<float> to_float(const Problem<double>& p) {
  return {test::to_float(p), p.features, converted<float>(p.directions)};
}

// With values that a float holds, so that float and double have the same problem.
Problem<double> rounded(Problem<double> p) {
  for (std::vector<double>* x : {&p.q, &p.k, &p.v, &p.q_angles, &p.k_angles, &p.directions})
    for (double& value : *x) value = static_cast<double>(static_cast<float>(value));
  return p;
}

// The definition, a pair at a time.
std::vector<double> reference(const Problem<double>& p) {
  std::vector<double> out(p.q.size(), 0.0);
  const long double root = std::pow(static_cast<long double>(p.head_dim), -0.25L);
  const auto features = [&](const double* x) {
    std::vector<long double> f(at(p.features));
    for (std::int64_t t = 0; t < p.features; ++t) {
      long double exponent = 0;
      for (std::int64_t c = 0; c < p.head_dim; ++c) {
        const long double y = x[c] * root;
        exponent += p.directions[at(t * p.head_dim + c)] * y - y * y / 2;
      }
      f[at(t)] = std::exp(exponent) / std::sqrt(static_cast<long double>(p.features));
    }
    return f;
  };
  const auto turned = [&](std::vector<long double> f, const std::vector<double>& angles,
                          std::int64_t i, std::int64_t h) {
    const std::int64_t pairs = p.head_dim / 2;
    for (std::int64_t t = 0; t < p.features / 2 && !angles.empty(); ++t) {
      const long double phi =
          angles[at((i * p.angle_heads + (p.angle_heads == 1 ? 0 : h)) * pairs + t % pairs)];
      const long double a = f[at(2 * t)], b = f[at(2 * t + 1)];
      f[at(2 * t)] = std::cos(phi) * a - std::sin(phi) * b;
      f[at(2 * t + 1)] = std::sin(phi) * a + std::cos(phi) * b;
    }
    return f;
  };
  const auto dot = [](const std::vector<long double>& a, const std::vector<long double>& b) {
    long double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    return sum;
  };
  for (std::int64_t b = 0; b < p.batch; ++b)
    for (std::int64_t h = 0; h < p.heads; ++h) {
      std::vector<std::vector<long double>> g, w; // of the keys, and turned
      std::vector<const double*> values;
      for (std::int64_t j = 0; j < p.k_length; ++j) {
        if (!p.mask.empty() && p.mask[at(b * p.k_length + j)] == 0) continue;
        const std::int64_t k_at = (b * p.k_length + j) * p.width() + h * p.head_dim;
        g.push_back(features(&p.k[at(k_at)]));
        w.push_back(turned(g.back(), p.k_angles, j, h));
        values.push_back(&p.v[at(k_at)]);
      }
      for (std::int64_t i = 0; i < p.q_length; ++i) {
        const std::int64_t q_at = (b * p.q_length + i) * p.width() + h * p.head_dim;
        const auto f = features(&p.q[at(q_at)]), u = turned(f, p.q_angles, i, h);
        std::vector<long double> mean(at(p.head_dim), 0);
        long double weights = 0;
        for (std::size_t j = 0; j < g.size(); ++j) {
          weights += dot(f, g[j]);
          const long double weight = dot(u, w[j]);
          for (std::size_t c = 0; c < mean.size(); ++c) mean[c] += weight * values[j][c];
        }
        if (weights > 0)
          for (std::size_t c = 0; c < mean.size(); ++c)
            out[at(q_at) + c] = static_cast<double>(mean[c] / weights);
      }
    }
  return out;
}

template <class T>
std::vector<T> forward(const Problem<T>& p, int threads = 1) {
  cape::Run run(1, threads);
  std::vector<T> out(p.q.size(), T(-99));
  cape::linear_attention_forward(p.input(), p.features, p.directions.data(), out.data(), run);
  return out;
}

struct Gradient {
  std::vector<double> q, k, v, q_angles, k_angles;
};
Gradient backward(const Problem<double>& p, const std::vector<double>& d_out, int threads = 1) {
  cape::Run run(1, threads);
  const auto like = [](const std::vector<double>& x) { return std::vector<double>(x.size(), -99); };
  Gradient g{like(p.q), like(p.k), like(p.v), like(p.q_angles), like(p.k_angles)};
  const auto pointer = [](std::vector<double>& x) { return x.empty() ? nullptr : x.data(); };
  cape::linear_attention_backward(
      p.input(), p.features, p.directions.data(), d_out.data(),
      {pointer(g.q), pointer(g.k), pointer(g.v), pointer(g.q_angles), pointer(g.k_angles)}, run);
  return g;
}

} // namespace

BOOST_AUTO_TEST_CASE(directions_are_orthogonal_in_blocks_with_lengths_of_gaussian_vectors) {
  cape::Run run(3);
  const std::int64_t d = 16, r = 40;
  const std::vector<double> w = cape::attention_directions<double>(r, d, 0, run);
  const auto dot = [&](std::int64_t i, std::int64_t j) {
    double sum = 0;
    for (std::int64_t c = 0; c < d; ++c) sum += w[at(i * d + c)] * w[at(j * d + c)];
    return sum;
  };
  for (std::int64_t i = 0; i < r; ++i)
    for (std::int64_t j = 0; j < i; ++j)
      if (i / d == j / d) BOOST_TEST(std::fabs(dot(i, j)) < 1e-12);
  // The squared length is chi-square of d: mean d, variance 2d.
  const std::int64_t many = 4000;
  const std::vector<double> x = cape::attention_directions<double>(many, d, 0, run);
  double squares = 0;
  for (const double value : x) squares += value * value;
  BOOST_TEST(std::fabs(squares / many - d) < 5 * std::sqrt(2.0 * d / many));
}

BOOST_AUTO_TEST_CASE(directions_depend_on_the_seed_and_the_draw_alone) {
  cape::Run run(3), same(3, 2), other(4);
  const auto draw = [](cape::Run& r, std::uint64_t number) {
    return cape::attention_directions<float>(20, 8, number, r);
  };
  BOOST_TEST((draw(run, 0) == draw(run, 0) && draw(run, 0) == draw(same, 0)));
  BOOST_TEST((draw(run, 0) != draw(run, 1) && draw(run, 0) != draw(other, 0)));
}

BOOST_AUTO_TEST_CASE(features_estimate_the_exponential_without_bias) {
  // E f(q).f(k) = exp(q.k), over 4000 draws of 8 features.
  cape::Rng rng(61);
  const std::int64_t d = 4, r = 8;
  const std::vector<double> q = random_values(rng, d, 0.8), k = random_values(rng, d, 0.8);
  double qk = 0, squares = 0;
  for (std::size_t c = 0; c < q.size(); ++c) {
    qk += q[c] * k[c];
    squares += (q[c] * q[c] + k[c] * k[c]) / 2;
  }
  cape::Run run(5);
  double mean = 0, square = 0;
  const int draws = 4000;
  for (int draw = 0; draw < draws; ++draw) {
    const auto w = cape::attention_directions<double>(r, d, static_cast<std::uint64_t>(draw), run);
    double estimate = 0;
    for (std::int64_t t = 0; t < r; ++t) {
      double exponent = -squares;
      for (std::int64_t c = 0; c < d; ++c) exponent += w[at(t * d + c)] * (q[at(c)] + k[at(c)]);
      estimate += std::exp(exponent) / r;
    }
    mean += estimate / draws;
    square += estimate * estimate / draws;
  }
  BOOST_TEST(std::fabs(mean - std::exp(qk)) < 5 * std::sqrt((square - mean * mean) / draws));
}

BOOST_AUTO_TEST_CASE(any_shape_agrees_with_the_definition) {
  cape::Rng rng(62);
  for (const Shape& s : {Shape{1, 1, 1, 1, 1, 1, 0}, Shape{1, 1, 3, 5, 3, 7, 0},
                         Shape{2, 2, 4, 5, 4, 6, 1}, Shape{1, 3, 130, 140, 6, 16, 3},
                         Shape{1, 1, 129, 700, 2, 10, 1}, Shape{2, 1, 600, 1100, 8, 12, 1}}) {
    Problem<double> p = random_problem(rng, s);
    BOOST_TEST(distance(forward(p), reference(p)) < 1e-12);
    for (std::int64_t j = 0; j < s.batch * s.k; ++j) p.mask.push_back(rng.uniform() < 0.7);
    BOOST_TEST(distance(forward(p), reference(p)) < 1e-12);
    BOOST_TEST(distance(forward(to_float(p)), reference(p)) < 1e-4);
  }
}

BOOST_AUTO_TEST_CASE(the_error_against_exact_attention_falls_as_the_root_of_the_features) {
  cape::Rng rng(63);
  const Shape s{1, 1, 40, 60, 8, 1, 0};
  Problem<double> p = random_problem(rng, s);
  cape::Run run(7);
  std::vector<double> exact(p.q.size());
  cape::attention_forward(p.input(), exact.data(), nullptr, run);
  const auto error = [&](std::int64_t features) {
    double sum = 0;
    const int draws = 100;
    for (int draw = 0; draw < draws; ++draw) {
      p.features = features;
      p.directions =
          cape::attention_directions<double>(features, s.d, static_cast<std::uint64_t>(draw), run);
      const std::vector<double> out = forward(p);
      for (std::size_t i = 0; i < out.size(); ++i) sum += std::pow(out[i] - exact[i], 2);
    }
    return std::sqrt(sum / (draws * static_cast<double>(exact.size())));
  };
  const double few = error(256), many = error(256 * 16);
  BOOST_TEST(few / many > 3);
  BOOST_TEST(few / many < 5.3);
  BOOST_TEST(many < 0.03);
}

BOOST_AUTO_TEST_CASE(with_positions_it_tends_to_attention_weighted_by_the_mean_cosine) {
  cape::Rng rng(64);
  const Shape s{1, 1, 10, 30, 8, 4096, 1};
  const Problem<double> p = random_problem(rng, s);
  std::vector<double> expected(p.q.size(), 0.0);
  for (std::int64_t i = 0; i < s.q; ++i) {
    double weights = 0;
    for (std::int64_t j = 0; j < s.k; ++j) {
      double score = 0, cosine = 0;
      for (std::int64_t c = 0; c < s.d; ++c) score += p.q[at(i * s.d + c)] * p.k[at(j * s.d + c)];
      for (std::int64_t t = 0; t < s.d / 2; ++t)
        cosine += std::cos(p.q_angles[at(i * s.d / 2 + t)] - p.k_angles[at(j * s.d / 2 + t)]);
      const double weight = std::exp(score / std::sqrt(static_cast<double>(s.d)));
      weights += weight;
      for (std::int64_t c = 0; c < s.d; ++c)
        expected[at(i * s.d + c)] +=
            weight * cosine / (static_cast<double>(s.d) / 2) * p.v[at(j * s.d + c)];
    }
    for (std::int64_t c = 0; c < s.d; ++c) expected[at(i * s.d + c)] /= weights;
  }
  BOOST_TEST(distance(forward(p), expected) < 0.05);
}

BOOST_AUTO_TEST_CASE(gradients_agree_with_central_differences) {
  cape::Rng rng(65);
  for (const Shape& s :
       {Shape{1, 1, 1, 1, 2, 2, 1}, Shape{1, 1, 3, 5, 3, 7, 0}, Shape{2, 2, 3, 4, 4, 6, 1},
        Shape{2, 2, 3, 4, 4, 10, 2}, Shape{1, 1, 131, 3, 2, 4, 1}, Shape{1, 1, 2, 131, 2, 4, 1}}) {
    Problem<double> p = random_problem(rng, s);
    for (std::int64_t j = 0; j < s.batch * s.k; ++j)
      p.mask.push_back(j == 0 || rng.uniform() < 0.7);
    const std::vector<double> d_out = random_values(rng, std::ssize(p.q), 1);
    const auto loss = [&] { return weighted_sum(d_out, forward(p)); };
    const Gradient g = backward(p, d_out);
    const auto compare = [&](std::vector<double>& x, const std::vector<double>& analytic,
                             const char* name) { check_slopes(x, analytic, name, s.k, loss); };
    compare(p.q, g.q, "q");
    compare(p.k, g.k, "k");
    compare(p.v, g.v, "v");
    compare(p.q_angles, g.q_angles, "q_angles");
    compare(p.k_angles, g.k_angles, "k_angles");
  }
}

BOOST_AUTO_TEST_CASE(the_number_of_threads_does_not_change_a_bit) {
  cape::Rng rng(66);
  for (const Shape& s : {Shape{1, 1, 1200, 1500, 8, 16, 1}, Shape{3, 4, 30, 40, 8, 16, 4}}) {
    const Problem<double> p = random_problem(rng, s);
    BOOST_TEST((forward(p, 1) == forward(p, 2)));
    const Gradient one = backward(p, p.q, 1), two = backward(p, p.q, 2);
    BOOST_TEST((one.q == two.q && one.k == two.k && one.v == two.v));
    BOOST_TEST((one.q_angles == two.q_angles && one.k_angles == two.k_angles));
  }
}

BOOST_AUTO_TEST_CASE(padded_keys_have_no_influence_and_rows_without_keys_give_zeros) {
  cape::Rng rng(67);
  Problem<double> p = random_problem(rng, {2, 2, 5, 6, 4, 8, 1});
  p.mask = {1, 0, 1, 1, 0, 1, 0, 0, 0, 0, 0, 0};
  const std::vector<double> clean = forward(p);
  const Gradient g = backward(p, p.q);
  for (std::int64_t j = 0; j < 12; ++j)
    if (p.mask[at(j)] == 0)
      for (std::int64_t c = 0; c < p.width(); ++c)
        p.k[at(j * p.width() + c)] = p.v[at(j * p.width() + c)] = nan_value;
  BOOST_TEST((forward(p) == clean));
  const Gradient again = backward(p, p.q);
  BOOST_TEST((again.q == g.q && again.k == g.k && again.v == g.v && again.k_angles == g.k_angles));
  for (std::size_t i = clean.size() / 2; i < clean.size(); ++i) {
    BOOST_TEST(clean[i] == 0.0);
    BOOST_TEST(g.q[i] == 0.0);
  }
  BOOST_TEST(forward(random_problem(rng, {1, 1, 0, 3, 2, 2, 0})).empty());
}

BOOST_AUTO_TEST_CASE(features_that_underflow_in_float_are_weighted_right) {
  // Exponents of some thousand; in long double, as the reference has them, nothing underflows.
  // Without angles the outputs are weighted means.
  cape::Rng rng(68);
  for (const std::int64_t features : {1, 7, 16, 64})
    for (const double reach : {10.0, 30.0, 60.0}) {
      const Problem<double> p = rounded(random_problem(rng, {1, 2, 50, 60, 8, features, 0}, reach));
      const std::vector<double> expected = reference(p);
      BOOST_TEST(distance(forward(p), expected) < 1e-9);
      BOOST_TEST(distance(forward(to_float(p)), expected) < 1e-2);
    }
}

BOOST_AUTO_TEST_CASE(large_inputs_with_angles_give_finite_outputs_or_are_refused) {
  // Turned features can be negative, so that outputs have no bound.
  cape::Rng rng(70);
  for (const double reach : {5.0, 30.0, 100.0, 1e4}) {
    const Problem<double> p = random_problem(rng, {1, 1, 50, 60, 8, 32, 1}, reach);
    const auto all_finite = [](const auto&... x) {
      return (std::ranges::all_of(x, [](auto y) { return std::isfinite(y); }) && ...);
    };
    const auto finite_or_refused = [&](auto call) {
      try {
        return call();
      } catch (const cape::Error& e) {
        return e.code() == Status::invalid_argument && has(e.what(), {"overflow"});
      }
    };
    BOOST_TEST(finite_or_refused([&] { return all_finite(forward(p)); }));
    BOOST_TEST(finite_or_refused([&] { return all_finite(forward(to_float(p))); }));
    BOOST_TEST(finite_or_refused([&] {
      const Gradient g = backward(p, p.v);
      return all_finite(g.q, g.k, g.v, g.q_angles, g.k_angles);
    }));
  }
}

BOOST_AUTO_TEST_CASE(gradients_of_large_inputs_agree_with_central_differences) {
  cape::Rng rng(71);
  for (const std::int64_t features : {2, 5}) {
    Problem<double> p = random_problem(rng, {1, 2, 4, 6, 3, features, 0}, 8);
    p.v = random_values(rng, std::ssize(p.k), 0.1);
    const std::vector<double> d_out = random_values(rng, std::ssize(p.q), 0.1);
    const auto loss = [&] { return weighted_sum(d_out, forward(p)); };
    const Gradient g = backward(p, d_out);
    check_slopes(p.q, g.q, "q", 6, loss);
    check_slopes(p.k, g.k, "k", 6, loss);
    check_slopes(p.v, g.v, "v", 6, loss);
  }
}

BOOST_AUTO_TEST_CASE(sizes_beyond_memory_are_refused_before_any_work) {
  cape::Run run;
  const std::int64_t huge = std::int64_t{1} << 56;
  BOOST_TEST(has(
      error_of(Status::out_of_memory, [&] { cape::attention_directions<float>(huge, 1, 0, run); }),
      {"directions"}));
  BOOST_TEST(has(error_of(Status::invalid_argument,
                          [&] { cape::attention_directions<float>(huge, huge, 0, run); }),
                 {"features x head_dim"}));
}

BOOST_AUTO_TEST_CASE(bad_arguments_are_named) {
  cape::Rng rng(69);
  const Problem<double> p = random_problem(rng, {1, 1, 3, 4, 4, 6, 1});
  std::vector<double> out(p.q.size());
  cape::Run run;
  const auto refusal = [&](Status status, std::int64_t features, const double* directions,
                           auto change) {
    AttentionInput<double> in = p.input();
    change(in);
    return error_of(
        status, [&] { cape::linear_attention_forward(in, features, directions, out.data(), run); });
  };
  using In = AttentionInput<double>;
  const auto same = [](In&) {};
  const double* w = p.directions.data();
  const Status invalid = Status::invalid_argument;
  BOOST_TEST(has(refusal(invalid, 0, w, same), {"features is 0"}));
  BOOST_TEST(has(refusal(Status::dim_mismatch, 5, w, same), {"features is 5", "even"}));
  BOOST_TEST(has(refusal(invalid, 6, nullptr, same), {"directions is null", "24"}));
  BOOST_TEST(has(refusal(invalid, 6, w, [](In& in) { in.scale = -1; }), {"scale is -1"}));
  BOOST_TEST(has(refusal(invalid, 6, w, [](In& in) { in.q = nullptr; }), {"q is null"}));
  BOOST_TEST(has(refusal(Status::unsupported, 6, w, [](In& in) { in.bias = in.q; }), {"bias"}));
  BOOST_TEST(has(error_of(invalid, [&] { cape::attention_directions<double>(0, 4, 0, run); }),
                 {"features is 0"}));
  BOOST_TEST(has(error_of(invalid, [&] { cape::attention_directions<double>(4, 0, 0, run); }),
                 {"head_dim is 0"}));
  Problem<double> bad = p;
  bad.directions[3] = nan_value;
  BOOST_TEST(has(error_of(invalid, [&] { forward(bad); }), {"directions has", "not finite"}));
}
