// Numbers of public code in the safetensors format (data/parity), in double. Include after
// `import cape;`.
#pragma once
#include "data.hpp"
#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace test {

inline std::string read_parity_bytes(const std::string& file) {
  const std::filesystem::path path = data_directory() / "parity" / file;
  std::ifstream in(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(in), {}};
  if (bytes.size() < 8) throw std::runtime_error("cannot read " + path.string());
  return bytes;
}

/// The tensors of a file by name, row-major, whatever their type.
inline std::map<std::string, std::vector<double>> read_parity(const std::string& file) {
  const std::string bytes = read_parity_bytes(file);
  std::uint64_t length;
  std::memcpy(&length, bytes.data(), 8);
  const auto header = nlohmann::json::parse(bytes.substr(8, length));
  std::map<std::string, std::vector<double>> tensors;
  for (const auto& [name, about] : header.items()) {
    if (name == "__metadata__") continue;
    const std::string type = about.at("dtype");
    const std::size_t first = about.at("data_offsets").at(0), end = about.at("data_offsets").at(1);
    const char* data = bytes.data() + 8 + length + first;
    std::vector<double>& values = tensors[name];
    const auto read = [&](auto example) {
      for (std::size_t i = 0; i < (end - first) / sizeof(example); ++i) {
        std::memcpy(&example, data + i * sizeof(example), sizeof(example));
        values.push_back(static_cast<double>(example));
      }
    };
    if (type == "F64")
      read(double{});
    else if (type == "F32")
      read(float{});
    else if (type == "I64")
      read(std::int64_t{});
    else if (type == "BOOL")
      read(std::uint8_t{});
    else
      throw std::runtime_error(type + " in " + file);
  }
  return tensors;
}

/// The largest |x - expected|; infinity if their numbers differ or any is NaN.
template <class T>
double largest_difference(const std::vector<T>& x, const std::vector<double>& expected) {
  if (x.size() != expected.size()) return INFINITY;
  double largest = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double difference = std::fabs(static_cast<double>(x[i]) - expected[i]);
    if (!(difference <= largest)) largest = std::isnan(difference) ? INFINITY : difference;
  }
  return largest;
}

/// The same of double values given in another type.
template <class T>
std::vector<T> as(const std::vector<double>& values) {
  return {values.begin(), values.end()};
}

} // namespace test
