// The peak of a piece of work's memory, in a process of its own; with <cstdio>, <functional>,
// <string>, <sys/wait.h>, <unistd.h>, <fstream> and <vector> included before.
#pragma once

namespace test {

/// A field of /proc/self/status that is in kB, in bytes: VmRSS, VmHWM (its peak).
inline double memory_field(const std::string& name) {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(name + ":")) return 1024 * std::stod(line.substr(name.size() + 1));
  return 0;
}

/// Threads and the linear algebra take room once, whatever is computed: here, on each.
inline void warm_up(cape::Run& run) {
  constexpr std::int64_t rows = 4096, width = 512;
  const std::vector<float> x(rows * width), weight(width * width);
  std::vector<float> y(x.size()), d(weight.size());
  cape::layers::linear<float>(x, rows, weight, {}, y, run);
  cape::layers::linear_backward<float>(x, rows, weight, y, {}, d, {}, run);
}

/// Bytes that the work which prepare() gives adds to the memory of a process. prepare() makes what
/// is there before. -1: the process failed. To be called before there are threads.
inline double peak_of(const std::function<std::function<void(cape::Run&)>()>& prepare,
                      int threads) {
  int ends[2];
  if (pipe(ends) != 0) return -1;
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) return -1;
  if (child == 0) {
    double bytes = -1;
    try {
      const std::function<void(cape::Run&)> work = prepare();
      cape::Run run(1, threads);
      warm_up(run);
      const double before = memory_field("VmRSS");
      work(run);
      bytes = memory_field("VmHWM") - before;
    } catch (const std::exception& e) {
      std::fprintf(stderr, "%s\n", e.what());
    }
    const auto written = write(ends[1], &bytes, sizeof bytes);
    _exit(written == sizeof bytes ? 0 : 1);
  }
  close(ends[1]);
  double bytes = -1;
  if (read(ends[0], &bytes, sizeof bytes) != sizeof bytes) bytes = -1;
  close(ends[0]);
  waitpid(child, nullptr, 0);
  return bytes;
}

} // namespace test
