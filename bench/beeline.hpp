// Reading the tables of BEELINE (A. Pratapa et al., Nature Methods 17, 2020). Include after
// `import cape;` and data.hpp.
#pragma once
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace test {

struct Expression {
  std::vector<std::string> genes;
  cape::Matrix x; ///< cells x genes
};

/// Genes x cells with a header and the genes' names, plain or gzip-compressed.
inline Expression read_expression(const std::filesystem::path& path) {
  std::istringstream lines(read_text(path));
  std::string line, cell;
  std::getline(lines, line);
  std::vector<std::string> genes;
  std::vector<std::vector<double>> values;
  while (std::getline(lines, line)) {
    std::istringstream cells(line);
    std::getline(cells, cell, ',');
    genes.push_back(cell);
    values.emplace_back();
    while (std::getline(cells, cell, ',')) values.back().push_back(std::stod(cell));
  }
  Expression table{genes, cape::Matrix(std::ssize(values.at(0)), std::ssize(values))};
  for (std::size_t j = 0; j < values.size(); ++j)
    std::ranges::copy(values[j], table.x.column(static_cast<std::int64_t>(j)));
  return table;
}

/// Pairs of names with a header: regulator, target, sign. Self-regulation is left out.
inline cape::Digraph read_network(const std::filesystem::path& path,
                                  const std::vector<std::string>& genes) {
  const auto number = [&](const std::string& gene) {
    const auto at = std::ranges::find(genes, gene);
    if (at == genes.end()) throw std::runtime_error("no gene " + gene + " for " + path.string());
    return at - genes.begin();
  };
  const auto m = static_cast<std::int64_t>(genes.size());
  cape::Matrix a(m, m);
  std::istringstream lines(read_text(path));
  std::string line, from, to;
  std::getline(lines, line);
  while (std::getline(lines, line)) {
    std::istringstream cells(line);
    std::getline(cells, from, ',');
    std::getline(cells, to, ',');
    if (from != to) a(number(from), number(to)) = 1;
  }
  return cape::Digraph::from_adjacency(a);
}

} // namespace test
