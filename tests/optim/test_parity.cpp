// Adam, clipping and schedules against numbers of PyTorch.
#define BOOST_TEST_NO_MAIN
#define BOOST_TEST_MODULE optim_parity
#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <vector>
import cape;

#include "parity.hpp"

using cape::Run;
using test::as;
using test::largest_difference;
namespace layers = cape::layers;
namespace optim = cape::optim;

namespace {

using Stored = std::map<std::string, std::vector<double>>;

struct Case {
  std::string name;
  double rate, decay = 0, l2 = 0; ///< l2: added to the gradient
  optim::AdamOptions options = {};
};

const std::vector<std::string> tensors = {"W1", "b1", "W2", "b2"};

std::string step_name(int step) { return (step < 10 ? "step0" : "step") + std::to_string(step); }

// The parameters of the network in one vector, as the optimiser takes them.
std::vector<double> network_at(const Stored& stored, const std::string& name) {
  std::vector<double> all;
  for (const std::string& tensor : tensors) {
    const std::vector<double>& values = stored.at(name + tensor);
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

// The mean squared error of Linear(8, 3)(GELU(Linear(5, 8)(X))), and its gradient.
template <class T>
double network_loss(const Stored& stored, const std::vector<T>& p, std::vector<T>& gradient) {
  Run run;
  const std::vector<T> x = as<T>(stored.at("mlp.X")), target = as<T>(stored.at("mlp.Y"));
  const auto part = [](auto& all, std::size_t first, std::size_t n) {
    return std::span(all).subspan(first, n);
  };
  std::ranges::fill(gradient, T(0));
  std::vector<T> hidden(16 * 8), active(16 * 8), y(16 * 3), d_y(16 * 3), d_active(16 * 8);
  layers::linear<T>(x, 16, part(p, 0, 40), part(p, 40, 8), hidden, run);
  layers::activate<T>(layers::Activation::gelu, hidden, active, run);
  layers::linear<T>(active, 16, part(p, 48, 24), part(p, 72, 3), y, run);
  const double loss =
      layers::square_loss<T>(y, target, std::vector<std::uint8_t>(16 * 3, 1), 1, d_y);
  layers::linear_backward<T>(active, 16, part(p, 48, 24), d_y, d_active, part(gradient, 48, 24),
                             part(gradient, 72, 3), run);
  layers::activate_backward<T>(layers::Activation::gelu, hidden, d_active, d_active, run);
  layers::linear_backward<T>(x, 16, part(p, 0, 40), d_active, {}, part(gradient, 0, 40),
                             part(gradient, 40, 8), run);
  return loss;
}

template <class T>
void quadratic_gradient(const Stored& stored, const std::vector<T>& x, std::vector<T>& gradient) {
  const std::vector<T> a = as<T>(stored.at("quad.A")), b = as<T>(stored.at("quad.b"));
  for (std::size_t i = 0; i < 6; ++i) {
    gradient[i] = -b[i];
    for (std::size_t j = 0; j < 6; ++j) gradient[i] += a[6 * i + j] * x[j];
  }
}

// The largest difference of parameters and losses along 50 steps.
template <class T>
double follow(const Stored& stored, const Case& c) {
  Run run;
  double worst = 0;
  for (const std::string problem : {"quad", "mlp"}) {
    const bool quadratic = problem == "quad";
    std::vector<T> p = as<T>(quadratic ? stored.at("quad.x0") : network_at(stored, "mlp."));
    std::vector<T> gradient(p.size());
    optim::Adam<T> adam(std::ssize(p), c.options);
    for (int step = 1; step <= 50; ++step) {
      if (quadratic)
        quadratic_gradient(stored, p, gradient);
      else
        worst =
            std::max(worst, std::fabs(network_loss(stored, p, gradient) -
                                      stored.at(c.name + ".mlp.losses")[std::size_t(step - 1)]));
      for (std::size_t i = 0; i < p.size(); ++i) gradient[i] += static_cast<T>(c.l2) * p[i];
      adam.step(p, gradient, c.rate, run, {.l1 = 0, .decay = c.decay});
      const std::string name = c.name + "." + problem + "." + step_name(step);
      if (step != 1 && step % 10 != 0) continue;
      worst = std::max(worst, largest_difference(p, quadratic ? stored.at(name)
                                                              : network_at(stored, name + ".")));
    }
  }
  return worst;
}

} // namespace

BOOST_AUTO_TEST_CASE(adam_goes_where_pytorchs_goes) {
  const Stored stored = test::read_parity("optim/trajectories.safetensors");
  for (const Case& c : {Case{.name = "adamw", .rate = 0.01, .decay = 0.01},
                        {.name = "adamw_wd0", .rate = 0.003},
                        {.name = "adamw_big",
                         .rate = 0.05,
                         .decay = 0.1,
                         .options = {.beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-6}},
                        {.name = "adam", .rate = 0.01},
                        {.name = "adam_l2", .rate = 0.001, .l2 = 5e-4}}) {
    const double worst = follow<double>(stored, c);
    BOOST_TEST_MESSAGE(c.name << ": " << worst);
    BOOST_TEST_CONTEXT(c.name) BOOST_TEST(worst < 1e-12);
  }
  const double worst = follow<float>(stored, {.name = "adamw.f32", .rate = 0.01, .decay = 0.01});
  BOOST_TEST_MESSAGE("adamw, float: " << worst);
  BOOST_TEST(worst < 1e-5);
}

BOOST_AUTO_TEST_CASE(gradients_are_clipped_as_pytorchs_are) {
  const Stored stored = test::read_parity("optim/clip_and_lr.f64.safetensors");
  const auto both = [&](const std::string& name) {
    std::vector<double> all = stored.at(name + "g0");
    const std::vector<double>& more = stored.at(name + "g1");
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  Run run;
  for (const double largest : {1.0, 100.0}) {
    std::vector<double> g = both("clip.");
    const std::string name = largest == 1 ? "clip.norm1." : "clip.norm100.";
    const double length = optim::clip_norm<double>(g, largest, run);
    BOOST_TEST(std::fabs(length - stored.at(name + "total")[0]) < 1e-14 * length);
    // PyTorch divides by the length + 1e-6, after which the longest is a bit shorter than asked.
    BOOST_TEST(largest_difference(g, both(name)) <= 1e-6 * largest / length);
  }
  std::vector<double> g = both("clip.");
  optim::clip_value<double>(g, 1, run);
  BOOST_TEST(largest_difference(g, both("clip.value1.")) == 0);
}

BOOST_AUTO_TEST_CASE(gears_halves_its_rate_after_every_epoch) {
  const Stored stored = test::read_parity("optim/clip_and_lr.f64.safetensors");
  const optim::StepSchedule rate(1, 0.5);
  std::vector<double> ours;
  for (std::int64_t epoch = 0; epoch < 20; ++epoch) ours.push_back(1e-3 * rate(epoch));
  BOOST_TEST(largest_difference(ours, stored.at("gears_lr.epoch1..20")) < 1e-18);
}

int main(int argc, char* argv[]) {
  if (test::data_missing("parity")) return 77;
  return boost::unit_test::unit_test_main([] { return true; }, argc, argv);
}
