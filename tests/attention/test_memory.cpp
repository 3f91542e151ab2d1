// Attention over 20000 features must not form the 20000 x 20000 scores (cases.md, C4): in a process
// of its own, so that the peak of its memory is that of the call.
#define BOOST_TEST_MODULE attention_memory
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstdint>
#include <sys/resource.h>
#include <vector>
import cape;

namespace {

double peak_megabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024; // kilobytes on Linux
}

} // namespace

BOOST_AUTO_TEST_CASE(memory_is_linear_in_the_number_of_features) {
  const std::int64_t length = 20000, head_dim = 64;
  std::vector<float> x(length * head_dim), angles(length * head_dim / 2), out(x.size());
  cape::Rng rng(1);
  for (float& value : x) value = static_cast<float>(rng.uniform(-1, 1));
  for (float& value : angles) value = static_cast<float>(rng.uniform(-0.7, 0.7));
  const cape::AttentionInput<float> in{.q_length = length,
                                       .k_length = length,
                                       .head_dim = head_dim,
                                       .q = x.data(),
                                       .k = x.data(),
                                       .v = x.data(),
                                       .q_angles = angles.data(),
                                       .k_angles = angles.data()};
  cape::Run run(1, 2);
  const double before = peak_megabytes();
  cape::attention_forward(in, out.data(), nullptr, run);
  const double grown = peak_megabytes() - before;
  BOOST_TEST_MESSAGE("peak memory grew by " << grown << " MB");
  BOOST_TEST(grown < 80); // the scores alone would be 1600 MB
  // Row 0 against the definition, from the scores of one query.
  cape::AttentionInput<float> one = in;
  one.q_length = 1;
  std::vector<float> scores(length);
  cape::attention_scores(one, scores.data(), run);
  double sum = 0, mean = 0;
  for (std::size_t j = 0; j < scores.size(); ++j) {
    const double weight = std::exp(static_cast<double>(scores[j]));
    sum += weight;
    mean += weight * static_cast<double>(x[j * head_dim]);
  }
  BOOST_TEST(std::fabs(static_cast<double>(out[0]) - mean / sum) < 1e-5);
}
