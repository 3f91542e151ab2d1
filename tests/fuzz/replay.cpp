// Runs a fuzzer on stored inputs, without libFuzzer: replay FILE_OR_DIRECTORY..., and on COUNT
// inputs of a generator: replay --generate COUNT, with a third argument the number of the first.
#include "fuzz.hpp"

#include <filesystem>
#include <fstream>

namespace {

std::int64_t n_inputs;

void run(const std::vector<std::uint8_t>& input) {
  LLVMFuzzerTestOneInput(input.data(), input.size());
  ++n_inputs;
}

void run_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  run({std::istreambuf_iterator<char>(in), {}});
}

std::vector<std::uint8_t> generated(std::uint64_t number) {
  std::uint64_t state = number * 2862933555777941757u + 3037000493u;
  const auto next = [&state] {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 33;
  };
  std::vector<std::uint8_t> input(next() % 700);
  for (std::uint8_t& b : input) b = static_cast<std::uint8_t>(next());
  return input;
}

} // namespace

int main(int argc, char** argv) {
  if (argc >= 3 && std::strcmp(argv[1], "--generate") == 0) {
    const std::uint64_t first = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 0;
    const std::uint64_t count = std::strtoull(argv[2], nullptr, 10);
    for (std::uint64_t i = first; i < first + count; ++i) run(generated(i));
  } else {
    for (int i = 1; i < argc; ++i)
      if (std::filesystem::is_directory(argv[i]))
        for (const auto& entry : std::filesystem::directory_iterator(argv[i])) run_file(entry);
      else
        run_file(argv[i]);
  }
  std::printf("%lld inputs\n", static_cast<long long>(n_inputs));
  return n_inputs == 0;
}
