// The data that some tests compare with: under CAPE_TEST_DATA, or beside the project.
#pragma once
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>
#include <zlib.h>

namespace test {

inline std::filesystem::path data_directory() {
  const char* path = std::getenv("CAPE_TEST_DATA");
  return path != nullptr ? path : CAPE_SOURCE_DIR "/../shared/data";
}

/// For main(): true, with a message, if a directory of the data is not there.
inline bool data_missing(const std::string& directory) {
  if (std::filesystem::is_directory(data_directory() / directory)) return false;
  std::cout << "skipped: no " << (data_directory() / directory).string()
            << " (set CAPE_TEST_DATA)\n";
  return true;
}

/// A file, plain or gzip-compressed.
inline std::string read_text(const std::filesystem::path& path) {
  const gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) throw std::runtime_error("cannot open " + path.string());
  std::string text(1 << 16, '\0'), all;
  for (int n; (n = gzread(file, text.data(), unsigned(text.size()))) > 0;)
    all.append(text, 0, std::size_t(n));
  gzclose(file);
  return all;
}

/// The rows of a comma-separated file of numbers without a header, plain or gzip-compressed.
inline std::vector<std::vector<double>> read_numbers(const std::filesystem::path& path) {
  std::vector<std::vector<double>> rows;
  std::istringstream lines(read_text(path));
  for (std::string line, cell; std::getline(lines, line);) {
    std::istringstream cells(line);
    rows.emplace_back();
    while (std::getline(cells, cell, ',')) rows.back().push_back(std::stod(cell));
  }
  return rows;
}

} // namespace test
