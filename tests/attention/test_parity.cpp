// Attention with rotated queries and keys, and its gradients, against numbers of PyTorch.
#define BOOST_TEST_NO_MAIN
#define BOOST_TEST_MODULE attention_parity
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <numbers>
#include <string>
#include <tuple>
#include <vector>
import cape;

#include "parity.hpp"

using cape::Run;

namespace {

constexpr double c = std::numbers::pi / 4; // angles are c e

struct Case {
  std::string name; ///< of the outputs
  std::int64_t batch, heads, length, width;
};

// batch x heads x length x width, as stored, to batch x length x heads x width, or back.
template <class T>
std::vector<T> exchanged(const std::vector<T>& x, std::int64_t batch, std::int64_t first,
                         std::int64_t second, std::int64_t width) {
  std::vector<T> out;
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t j = 0; j < second; ++j)
      for (std::int64_t i = 0; i < first; ++i) {
        const auto from = x.begin() + ((b * first + i) * second + j) * width;
        out.insert(out.end(), from, from + width);
      }
  return out;
}

} // namespace

using Numbers = std::tuple<float, double>;

BOOST_AUTO_TEST_CASE_TEMPLATE(outputs_and_gradients_are_those_of_pytorch, T, Numbers) {
  const auto numbers = test::read_parity("rotary/attention.f64.safetensors");
  const double most = sizeof(T) == 4 ? 1e-5 : 1e-12;
  double worst_out = 0, worst_gradient = 0, worst_scores = 0;
  for (const Case& k : {Case{"a.", 2, 3, 7, 10},
                        {"a_mask.", 2, 3, 7, 10},
                        {"a_deadrow_expect0.", 2, 3, 7, 10},
                        {"b.", 1, 2, 65, 64},
                        {"b_mask.", 1, 2, 65, 64},
                        {"c.", 1, 1, 1, 2},
                        {"c_deadrow_expect0.", 1, 1, 1, 2}})
    BOOST_TEST_CONTEXT(k.name) {
      const std::string data = k.name.substr(0, 1) + ".";
      const auto tensor = [&](const std::string& name) {
        return exchanged(test::as<T>(numbers.at(data + name)), k.batch, k.heads, k.length, k.width);
      };
      const std::vector<T> q = tensor("q"), key = tensor("k"), v = tensor("v"),
                           d_out = tensor("gout");
      std::vector<double> e = numbers.at(data + "e");
      for (double& a : e) a *= c;
      const std::vector<T> angles(e.begin(), e.end());
      std::vector<std::uint8_t> mask;
      if (numbers.contains(k.name + "mask")) // there true is padding
        for (const double m : numbers.at(k.name + "mask")) mask.push_back(m == 0);
      const std::int64_t pairs = k.width / 2, of_cell = k.length * k.heads * k.width;
      std::vector<T> out(q.size()), d_q(q.size()), d_k(q.size()), d_v(q.size()),
          d_angles(angles.size()), d_k_angles(angles.size()),
          log_sum_exp(static_cast<std::size_t>(k.batch * k.heads * k.length)),
          scores(log_sum_exp.size() * static_cast<std::size_t>(k.length));
      Run run;
      for (std::int64_t b = 0; b < k.batch; ++b) { // angles are shared by a batch
        const std::int64_t first = b * of_cell, row = b * k.heads * k.length;
        cape::AttentionInput<T> in;
        in.heads = k.heads;
        in.q_length = in.k_length = k.length;
        in.head_dim = k.width;
        in.q = q.data() + first;
        in.k = key.data() + first;
        in.v = v.data() + first;
        in.q_angles = in.k_angles = angles.data() + b * k.length * pairs;
        if (!mask.empty()) in.key_mask = mask.data() + b * k.length;
        cape::attention_forward<T>(in, out.data() + first, log_sum_exp.data() + row, run);
        const cape::AttentionGradient<T> to{.q = d_q.data() + first,
                                            .k = d_k.data() + first,
                                            .v = d_v.data() + first,
                                            .q_angles = d_angles.data() + b * k.length * pairs,
                                            .k_angles = d_k_angles.data() + b * k.length * pairs};
        cape::attention_backward<T>(in, out.data() + first, log_sum_exp.data() + row,
                                    d_out.data() + first, to, run);
        cape::attention_scores<T>(in, scores.data() + row * k.length, run);
      }
      const auto difference = [&](const std::vector<T>& x, const std::string& name) {
        return test::largest_difference(exchanged(x, k.batch, k.length, k.heads, k.width),
                                        numbers.at(k.name + name));
      };
      worst_out = std::max(worst_out, difference(out, "out"));
      for (const auto& [x, name] : {std::pair{&d_q, "grad_q"}, {&d_k, "grad_k"}, {&d_v, "grad_v"}})
        worst_gradient = std::max(worst_gradient, difference(*x, name));
      for (std::size_t i = 0; i < d_angles.size(); ++i) // of e, by queries and keys
        d_angles[i] = static_cast<T>(c) * (d_angles[i] + d_k_angles[i]);
      worst_gradient = std::max(worst_gradient,
                                test::largest_difference(d_angles, numbers.at(k.name + "grad_e")));
      if (mask.empty() && numbers.contains(k.name + "scores"))
        worst_scores =
            std::max(worst_scores, test::largest_difference(scores, numbers.at(k.name + "scores")));
    }
  BOOST_TEST_MESSAGE((sizeof(T) == 4 ? "float" : "double")
                     << ": output " << worst_out << ", gradients " << worst_gradient << ", scores "
                     << worst_scores);
  BOOST_TEST(worst_out < most);
  BOOST_TEST(worst_scores < most);
  BOOST_TEST(worst_gradient < 10 * most);
}

BOOST_AUTO_TEST_CASE_TEMPLATE(performers_are_those_of_scbert, T, Numbers) {
  const auto numbers = test::read_parity("favor/favor.f64.safetensors");
  const double most = sizeof(T) == 4 ? 1e-5 : 1e-12;
  double worst_out = 0, worst_gradient = 0, worst_alone = 0;
  for (const Case& k : {Case{"a.", 2, 3, 9, 8}, {"b.", 1, 2, 33, 20}, {"c.", 1, 1, 1, 2}})
    BOOST_TEST_CONTEXT(k.name) {
      const auto tensor = [&](const std::string& name) {
        return exchanged(test::as<T>(numbers.at(k.name + name)), k.batch, k.heads, k.length,
                         k.width);
      };
      const std::vector<T> q = tensor("q"), key = tensor("k"), v = tensor("v"),
                           d_out = tensor("gout"),
                           directions = test::as<T>(numbers.at(k.name + "projection"));
      const std::int64_t features = std::ssize(directions) / k.width;
      std::vector<T> out(q.size()), d_q(q.size()), d_k(q.size()), d_v(q.size());
      cape::AttentionInput<T> in;
      in.batch = k.batch;
      in.heads = k.heads;
      in.q_length = in.k_length = k.length;
      in.head_dim = k.width;
      in.q = q.data();
      in.k = key.data();
      in.v = v.data();
      Run run(1, 2);
      cape::performer_attention_forward<T>(in, features, directions.data(), out.data(), run);
      cape::performer_attention_backward<T>(in, features, directions.data(), d_out.data(),
                                            {.q = d_q.data(),
                                             .k = d_k.data(),
                                             .v = d_v.data(),
                                             .q_angles = nullptr,
                                             .k_angles = nullptr},
                                            run);
      const auto difference = [&](const std::vector<T>& x, const std::string& name) {
        return test::largest_difference(exchanged(x, k.batch, k.length, k.heads, k.width),
                                        numbers.at(k.name + name));
      };
      worst_out = std::max(worst_out, difference(out, "scbert.out"));
      for (const auto& [x, name] : {std::pair{&d_q, "q"}, {&d_k, "k"}, {&d_v, "v"}})
        worst_gradient =
            std::max(worst_gradient, difference(*x, std::string("scbert.grad_") + name));
      // The later code of Performers takes the largest product of each head alone.
      in.q_stride = in.k_stride = in.v_stride = in.out_stride = k.heads * k.width;
      in.batch = in.heads = 1;
      for (std::int64_t b = 0; b < k.batch; ++b)
        for (std::int64_t h = 0; h < k.heads; ++h) {
          const std::int64_t first = (b * k.length * k.heads + h) * k.width;
          in.q = q.data() + first;
          in.k = key.data() + first;
          in.v = v.data() + first;
          cape::performer_attention_forward<T>(in, features, directions.data(), out.data() + first,
                                               run);
        }
      worst_alone = std::max(worst_alone, difference(out, "lucidrains.out"));
    }
  BOOST_TEST_MESSAGE((sizeof(T) == 4 ? "float" : "double")
                     << ": output " << worst_out << ", gradients " << worst_gradient << ", by head "
                     << worst_alone);
  BOOST_TEST(worst_out < most);
  BOOST_TEST(worst_alone < most);
  BOOST_TEST(worst_gradient < 10 * most);
}

int main(int argc, char* argv[]) {
  if (test::data_missing("parity")) return 77;
  return boost::unit_test::unit_test_main([] { return true; }, argc, argv);
}
