// Attention over 20000 features must not form the 20000 x 20000 scores (cases.md, C4): in a process
// of its own, so that the peak of its memory is that of the call.
#define BOOST_TEST_MODULE attention_memory
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstdint>
#include <string>
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
  const double said = cape::attention_workspace(in, 2).forward / (1 << 20);
  BOOST_TEST(said < 2 * 16);
  BOOST_TEST(grown < said + 4); // threads take some too; the scores alone would be 1600
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

BOOST_AUTO_TEST_CASE(what_cannot_fit_is_refused_before_it_is_allocated) {
  const float x = 0;
  float y = 0;
  const std::int64_t length = std::int64_t{1} << 45;
  const cape::AttentionInput<float> in{
      .q_length = length, .k_length = length, .head_dim = 1, .q = &x, .k = &x, .v = &x};
  cape::Run run;
  const auto refused = [](const cape::Error& e) {
    return e.code() == cape::Status::out_of_memory &&
           std::string(e.what()).find("MB") != std::string::npos;
  };
  BOOST_CHECK_EXCEPTION(cape::attention_forward(in, &y, nullptr, run), cape::Error, refused);
  BOOST_CHECK_EXCEPTION(cape::attention_backward(in, &x, &x, &x, {.v = &y}, run), cape::Error,
                        refused);
}

BOOST_AUTO_TEST_CASE(a_workspace_of_sizes_out_of_range_is_refused) {
  const auto workspace = [](std::int64_t heads, std::int64_t head_dim, int threads) {
    return cape::attention_workspace(
        cape::AttentionInput<double>{
            .heads = heads, .q_length = 9, .k_length = 9, .head_dim = head_dim},
        threads);
  };
  BOOST_CHECK_NO_THROW(workspace(1, 1, 1));
  BOOST_CHECK_THROW(workspace(0, 1, 1), cape::Error);
  BOOST_CHECK_THROW(workspace(1, 0, 1), cape::Error);
  BOOST_CHECK_THROW(workspace(1, 1, 0), cape::Error);
}
