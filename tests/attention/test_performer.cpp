// Linear attention in the form of the first Performers, against its definition in plain loops.
#define BOOST_TEST_MODULE performer
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>
import cape;

#include "errors.hpp"

using cape::AttentionInput;
using cape::Run;
using cape::Status;

namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

struct Problem {
  std::int64_t batch = 2, heads = 3, q_length = 5, k_length = 7, width = 4, features = 6;
  std::vector<double> q = values(1, batch* q_length), k = values(2, batch* k_length),
                      v = values(3, batch* k_length), d_out = values(4, batch* q_length),
                      directions = values(5, 2); // 24 of them

  std::vector<double> values(std::uint64_t key, std::int64_t rows) const {
    std::vector<double> x(at(rows * heads * width));
    cape::Rng rng(31, {key});
    for (double& value : x) value = rng.normal();
    return x;
  }
  AttentionInput<double> input() const {
    AttentionInput<double> in;
    in.batch = batch;
    in.heads = heads;
    in.q_length = q_length;
    in.k_length = k_length;
    in.head_dim = width;
    in.q = q.data();
    in.k = k.data();
    in.v = v.data();
    return in;
  }
  std::vector<double> forward(Run& run) const {
    std::vector<double> out(q.size());
    cape::performer_attention_forward<double>(input(), features, directions.data(), out.data(),
                                              run);
    return out;
  }
};

// w_t.x of a token of a head, x being scaled.
double product(const Problem& p, const std::vector<double>& x, std::int64_t row, std::int64_t h,
               std::int64_t t) {
  double sum = 0;
  for (std::int64_t c = 0; c < p.width; ++c)
    sum += p.directions[at(t * p.width + c)] * x[at((row * p.heads + h) * p.width + c)];
  return sum / std::pow(static_cast<double>(p.width), 0.25);
}

std::vector<double> features(const Problem& p, const std::vector<double>& x, std::int64_t row,
                             std::int64_t h, double largest) {
  double square = 0;
  for (std::int64_t c = 0; c < p.width; ++c)
    square += std::pow(x[at((row * p.heads + h) * p.width + c)], 2);
  square /= std::sqrt(static_cast<double>(p.width));
  std::vector<double> f;
  for (std::int64_t t = 0; t < p.features; ++t)
    f.push_back(std::exp(product(p, x, row, h, t) - square / 2 - largest) + 1e-4);
  return f;
}

std::vector<double> by_definition(const Problem& p) {
  constexpr double none = -std::numeric_limits<double>::infinity();
  double largest_key = none;
  for (std::int64_t row = 0; row < p.batch * p.k_length; ++row)
    for (std::int64_t h = 0; h < p.heads; ++h)
      for (std::int64_t t = 0; t < p.features; ++t)
        largest_key = std::max(largest_key, product(p, p.k, row, h, t));
  std::vector<double> out(p.q.size());
  for (std::int64_t row = 0; row < p.batch * p.q_length; ++row)
    for (std::int64_t h = 0; h < p.heads; ++h) {
      double largest = none, weights = 0;
      for (std::int64_t t = 0; t < p.features; ++t)
        largest = std::max(largest, product(p, p.q, row, h, t));
      const std::vector<double> of_query = features(p, p.q, row, h, largest);
      double* to = out.data() + (row * p.heads + h) * p.width;
      for (std::int64_t j = 0; j < p.k_length; ++j) {
        const std::int64_t key = row / p.q_length * p.k_length + j;
        const std::vector<double> of_key = features(p, p.k, key, h, largest_key);
        double weight = 0;
        for (std::size_t t = 0; t < of_key.size(); ++t) weight += of_query[t] * of_key[t];
        weights += weight;
        for (std::int64_t c = 0; c < p.width; ++c)
          to[c] += weight * p.v[at((key * p.heads + h) * p.width + c)];
      }
      for (std::int64_t c = 0; c < p.width; ++c) to[c] /= weights;
    }
  return out;
}

} // namespace

BOOST_AUTO_TEST_CASE(outputs_are_those_of_the_definition) {
  const Problem p;
  Run run;
  const std::vector<double> out = p.forward(run), expected = by_definition(p);
  for (std::size_t i = 0; i < out.size(); ++i) BOOST_TEST(std::fabs(out[i] - expected[i]) < 1e-13);
}

BOOST_AUTO_TEST_CASE(gradients_are_those_of_the_outputs) {
  Problem p;
  Run run(1, 2);
  std::vector<double> d_q(p.q.size()), d_k(p.k.size()), d_v(p.v.size());
  cape::performer_attention_backward<double>(
      p.input(), p.features, p.directions.data(), p.d_out.data(),
      {.q = d_q.data(), .k = d_k.data(), .v = d_v.data(), .q_angles = nullptr, .k_angles = nullptr},
      run);
  const auto loss = [&] {
    const std::vector<double> out = p.forward(run);
    double sum = 0;
    for (std::size_t i = 0; i < out.size(); ++i) sum += out[i] * p.d_out[i];
    return sum;
  };
  const auto check = [&](std::vector<double>& x, const std::vector<double>& gradient) {
    for (std::size_t i = 0; i < x.size(); ++i) {
      constexpr double h = 1e-6;
      const double before = x[i];
      x[i] = before + h;
      const double above = loss();
      x[i] = before - h;
      const double below = loss();
      x[i] = before;
      BOOST_TEST(std::fabs((above - below) / (2 * h) - gradient[i]) < 1e-8);
    }
  };
  check(p.q, d_q);
  check(p.k, d_k); // the largest product's too
  check(p.v, d_v);
}

BOOST_AUTO_TEST_CASE(any_number_of_threads_gives_the_same_bits) {
  const Problem p;
  Run one(1, 1), two(1, 2), five(1, 5);
  BOOST_TEST((p.forward(one) == p.forward(two)));
  BOOST_TEST((p.forward(one) == p.forward(five)));
}

BOOST_AUTO_TEST_CASE(a_batch_element_depends_on_the_others_by_their_largest_key) {
  Problem p;
  Run run;
  const std::vector<double> before = p.forward(run);
  for (std::size_t i = p.k.size() / 2; i < p.k.size(); ++i) p.k[i] *= 4; // of the second
  const std::vector<double> after = p.forward(run);
  double change = 0;
  for (std::size_t i = 0; i < before.size() / 2; ++i)
    change = std::max(change, std::fabs(after[i] - before[i]));
  BOOST_TEST(change > 1e-3);
}

BOOST_AUTO_TEST_CASE(rows_without_keys_are_0) {
  Problem p;
  p.k_length = 0;
  Run run;
  for (const double value : p.forward(run)) BOOST_TEST(value == 0);
}

BOOST_AUTO_TEST_CASE(what_it_cannot_do_is_refused) {
  Problem p;
  Run run;
  const auto refused = [&](Status status, const std::string& part, auto change) {
    AttentionInput<double> in = p.input();
    change(in);
    std::vector<double> out(p.q.size());
    return test::fails_with(status, part, [&] {
      cape::performer_attention_forward<double>(in, p.features, p.directions.data(), out.data(),
                                                run);
    });
  };
  const std::vector<std::uint8_t> mask(p.k.size(), 1);
  BOOST_TEST(refused(Status::unsupported, "turn q and k before",
                     [&](auto& in) { in.q_angles = in.k_angles = p.q.data(); }));
  BOOST_TEST(
      refused(Status::unsupported, "key_mask", [&](auto& in) { in.key_mask = mask.data(); }));
  BOOST_TEST(refused(Status::unsupported, "bias", [&](auto& in) { in.bias = p.q.data(); }));
  BOOST_TEST(refused(Status::invalid_argument, "scale", [](auto& in) { in.scale = -1; }));
  BOOST_TEST(refused(Status::invalid_argument, "v is null", [](auto& in) { in.v = nullptr; }));
  p.k[3] = std::nan("");
  BOOST_TEST(refused(Status::invalid_argument, "k has a value that is not finite", [](auto&) {}));
}
