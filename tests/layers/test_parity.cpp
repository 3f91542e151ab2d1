// The parts of a transformer against numbers of PyTorch.
#define BOOST_TEST_NO_MAIN
#define BOOST_TEST_MODULE layers_parity
#include <boost/test/unit_test.hpp>

#include <cmath>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>
import cape;

#include "parity.hpp"

using cape::Run;
using test::as;
using test::largest_difference;
namespace layers = cape::layers;
using layers::Activation;

using Numbers = std::tuple<float, double>;

BOOST_AUTO_TEST_CASE_TEMPLATE(numbers_of_pytorch, T, Numbers) {
  const auto ops = test::read_parity("ops/ops.f64.safetensors");
  const double most = sizeof(T) == 4 ? 1e-5 : 1e-12;
  Run run;
  const auto get = [&](const std::string& name) { return as<T>(ops.at(name)); };
  for (const std::string& c : std::vector<std::string>{"a", "b", "c"}) {
    const std::string p = "layernorm." + c + ".";
    std::vector<T> x = get(p + "x"), y(x.size()), d_x(x.size());
    const std::vector<T> gain = get(p + "weight"), bias = get(p + "bias");
    std::vector<T> d_gain(gain.size()), d_bias(bias.size());
    std::vector<layers::RowMoments<T>> moments(x.size() / gain.size());
    layers::layer_norm<T>(x, {}, gain, bias, 1e-5, y, moments, run);
    layers::layer_norm_backward<T>(x, gain, moments, get(p + "gout"), d_x, d_gain, d_bias, run);
    BOOST_TEST(largest_difference(y, ops.at(p + "y")) < most);
    BOOST_TEST(largest_difference(d_x, ops.at(p + "grad_x")) < most);
    BOOST_TEST(largest_difference(d_gain, ops.at(p + "grad_weight")) < most);
    BOOST_TEST(largest_difference(d_bias, ops.at(p + "grad_bias")) < most);
  }
  for (const auto& [a, name] : {std::pair{Activation::relu, "relu"},
                                {Activation::leaky_relu, "leaky_relu_0.01"},
                                {Activation::gelu, "gelu_erf"},
                                {Activation::gelu_tanh, "gelu_tanh"},
                                {Activation::sigmoid, "sigmoid"}}) {
    const std::vector<T> x = get("act.x"), ones(x.size(), 1);
    std::vector<T> y(x.size()), d_x(x.size());
    layers::activate<T>(a, x, y, run);
    layers::activate_backward<T>(a, x, ones, d_x, run);
    BOOST_TEST_CONTEXT(name) {
      BOOST_TEST(largest_difference(y, ops.at(std::string("act.") + name + ".y")) < most);
      BOOST_TEST(largest_difference(d_x, ops.at(std::string("act.") + name + ".dy")) < most);
    }
  }
  const std::vector<T> logits = get("ce.logits");
  std::vector<std::int32_t> label;
  for (const double l : ops.at("ce.labels")) label.push_back(static_cast<std::int32_t>(l));
  std::vector<T> slope(logits.size());
  const double loss = layers::cross_entropy<T>(logits, 5, label, 1, slope);
  BOOST_TEST(std::fabs(loss - ops.at("ce.mean.loss")[0]) < most);
  BOOST_TEST(largest_difference(slope, ops.at("ce.mean.grad")) < most);
  for (std::int32_t& l : label) l = l == 4 ? -1 : l;
  const double some = layers::cross_entropy<T>(logits, 5, label, 1, slope);
  BOOST_TEST(std::fabs(some - ops.at("ce.ignore4.loss")[0]) < most);
  BOOST_TEST(largest_difference(slope, ops.at("ce.ignore4.grad")) < most);
  std::vector<std::uint8_t> mask;
  for (const double m : ops.at("scgpt_nll.mask")) mask.push_back(m != 0);
  const std::vector<T> input = get("scgpt_mse.input");
  slope.resize(input.size());
  const double mse = layers::square_loss<T>(input, get("scgpt_nll.target"), mask, 1, slope);
  BOOST_TEST(std::fabs(mse - ops.at("scgpt_mse.loss")[0]) < most);
  BOOST_TEST(largest_difference(slope, ops.at("scgpt_mse.grad")) < most);
}

int main(int argc, char* argv[]) {
  if (test::data_missing("parity")) return 77;
  return boost::unit_test::unit_test_main([] { return true; }, argc, argv);
}
