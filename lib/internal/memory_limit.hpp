// How much memory this process may have: less than the machine's in a container, a batch job, or
// under ulimit.
#pragma once
#include <algorithm>
#include <fstream>
#include <limits>
#include <locale>
#include <string>
#include <sys/resource.h>
#include <unistd.h>

namespace cape {

/// The first number of a file; infinity if there is none ("max", or no such file).
inline double number_in(const std::string& file) {
  std::ifstream in(file);
  in.imbue(std::locale::classic());
  double value = 0;
  return in >> value ? value : std::numeric_limits<double>::infinity();
}

/// The least memory limit of the control groups that the file `groups` (/proc/self/cgroup) lists
/// and of those above them, mounted at `mount`; infinity without one. Both versions: a line is
/// "0::/path" (2) or "9:cpu,memory:/path" (1). In a container the path may be one that only the
/// host sees: the mount itself is looked at too.
inline double control_group_limit(const std::string& groups, const std::string& mount) {
  double limit = std::numeric_limits<double>::infinity();
  std::ifstream in(groups);
  for (std::string line; std::getline(in, line);) {
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    if (line.find('/', second) != second + 1) continue;
    const bool unified = controllers == ",,";
    if (!unified && controllers.find(",memory,") == std::string::npos) continue;
    const std::string root = unified ? mount : mount + "/memory";
    const char* file = unified ? "/memory.max" : "/memory.limit_in_bytes";
    for (std::string path = line.substr(second + 1); !path.empty();
         path.erase(path.find_last_of('/')))
      limit = std::min(limit, number_in(root + path + file));
    limit = std::min(limit, number_in(root + file));
  }
  return limit;
}

/// What is left of the limit of address space (ulimit -v); infinity without one.
inline double address_space_left() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return std::numeric_limits<double>::infinity();
  const double pages = number_in("/proc/self/statm"); // the whole address space comes first
  const double used = pages * static_cast<double>(sysconf(_SC_PAGESIZE));
  return std::max(0.0, static_cast<double>(limit.rlim_cur) - used);
}

/// Bytes that this process could have at most.
inline double memory_limit() {
  static const double of_machine = std::min(
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE)),
      control_group_limit("/proc/self/cgroup", "/sys/fs/cgroup"));
  return std::min(of_machine, address_space_left());
}

} // namespace cape
