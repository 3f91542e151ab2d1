// Reading NumPy's files. Include after `import cape;`.
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>

namespace test {

// A matrix of float64 or int64 in NumPy's format, version 1.
inline cape::Matrix read_npy(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  const std::string file{std::istreambuf_iterator<char>(in), {}};
  if (file.compare(0, 6, "\x93NUMPY") != 0) throw std::runtime_error("not npy: " + path.string());
  const std::size_t length =
      static_cast<unsigned char>(file[8]) + 256u * static_cast<unsigned char>(file[9]);
  const std::string header = file.substr(10, length);
  long rows = 0, cols = 0;
  const std::size_t shape = header.find("'shape': (");
  if (std::sscanf(header.c_str() + shape, "'shape': (%ld, %ld)", &rows, &cols) != 2)
    throw std::runtime_error("no matrix: " + path.string());
  const bool fortran = header.find("'fortran_order': True") != std::string::npos;
  const bool integer = header.find("<i8") != std::string::npos;
  if (!integer && header.find("<f8") == std::string::npos)
    throw std::runtime_error("type of " + path.string());
  cape::Matrix a(rows, cols);
  for (long i = 0; i < rows; ++i)
    for (long j = 0; j < cols; ++j) {
      const long at = fortran ? j * rows + i : i * cols + j;
      const char* bytes = file.data() + 10 + length + 8 * at;
      std::int64_t whole;
      std::memcpy(&whole, bytes, 8);
      std::memcpy(&a(i, j), bytes, 8);
      if (integer) a(i, j) = static_cast<double>(whole);
    }
  return a;
}

} // namespace test
