// DGEMM 1500^3 on one thread with the kernel that the library chooses when the user has set
// nothing, against OpenBLAS told by OPENBLAS_CORETYPE what to use. Every row is a child process of
// this program, since the kernel is chosen when it is loaded; the rows take turns, the best time
// counts.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>
import cape;

namespace {

struct Row {
  std::string setting; // of OPENBLAS_CORETYPE; empty: not set
  std::string kernel = "";
  double rate = 0;
};

// Run this program again with that setting and keep its rate if it is the best so far.
void run_child(const char* program, Row& row) {
  const std::string command = "env -u OPENBLAS_CORETYPE -u OPENBLAS_L2_SIZE " +
                              (row.setting.empty() ? "" : "OPENBLAS_CORETYPE=" + row.setting) +
                              " '" + program + "' --child 2>/dev/null";
  std::FILE* child = popen(command.c_str(), "r");
  if (child == nullptr) return;
  char kernel[64] = "";
  double rate = 0;
  if (std::fscanf(child, "%63s %lf", kernel, &rate) == 2) {
    row.kernel = kernel;
    row.rate = std::max(row.rate, rate);
  }
  pclose(child); // a kernel that the CPU cannot run ends its child and counts as 0
}

} // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "--child") == 0) {
    std::printf("%s %.3f\n", cape::blas_info().kernel.c_str(), cape::blas_rate(1500));
    return 0;
  }
  std::vector<Row> rows{{""}, {"Haswell"}, {"SkylakeX"}, {"Zen"}};
  for (int turn = 0; turn < 3; ++turn)
    for (Row& row : rows) run_child(argv[0], row);
  std::printf("DGEMM 1500^3, 1 thread\n%-18s %-12s %8s\n", "OPENBLAS_CORETYPE", "kernel", "GF/s");
  double best = 0;
  for (const Row& row : rows) {
    std::printf("%-18s %-12s %8.1f\n", row.setting.empty() ? "(not set)" : row.setting.c_str(),
                row.kernel.c_str(), row.rate);
    if (!row.setting.empty()) best = std::max(best, row.rate);
  }
  std::printf("ratio of the library's own choice to the best: %.3f\n", rows[0].rate / best);
}
