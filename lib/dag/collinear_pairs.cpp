module;
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <new>
#include <numeric>
#include <span>
#include <typeinfo>
#include <utility>
#include <variant>
#include <vector>
module cape.dag;
#include "dag/row_blocks.hpp"
#include "dag/table.hpp"

namespace cape::sem {

// Columns x_i and x_j of length 1 with 1 - |r| < 1e-10 are apart, or x_i and -x_j are, by less than
// 1.5e-5, and so their projections on a random direction by 1.5e-5 times a normal number at most:
// only neighbours among the sizes of the projections need to be compared. O(N M + M log M) where
// few are collinear.
std::vector<Edge> Table::collinear_pairs(Run& run) const {
  constexpr double collinear = 1e-10, near = 1.5e-4;
  struct Column {
    double squares = 0, projection = 0;
    std::int64_t feature = 0;
  };
  std::vector<Column> columns(columns_.size());
  Rng rng(0, {hash("dag.collinear")});
  // Of unit variance, so that no square overflows.
  const auto for_prepared = [&](auto look) {
    for_blocks(source_.rows, source_.columns, [&](const std::vector<std::int64_t>& rows) {
      Matrix block = read<double>(rows, run);
      run.parallel_for(features(), [&](std::int64_t c) {
        const auto j = static_cast<std::size_t>(columns_[static_cast<std::size_t>(c)]);
        const double deviation = deviation_[j] / scale_[j];
        for (std::int64_t i = 0; i < block.rows(); ++i) block(i, c) /= deviation;
      });
      look(block);
    });
  };
  for_prepared([&](const Matrix& block) {
    std::vector<double> direction(static_cast<std::size_t>(block.rows()));
    for (double& v : direction) v = rng.normal();
    run.parallel_for(features(), [&](std::int64_t c) {
      Column& column = columns[static_cast<std::size_t>(c)];
      const double *x = block.column(c), *end = x + block.rows();
      column.squares = std::inner_product(x, end, x, column.squares);
      column.projection = std::inner_product(x, end, direction.data(), column.projection);
    });
  });
  for (std::size_t c = 0; c < columns.size(); ++c) {
    columns[c].projection = std::fabs(columns[c].projection) / std::sqrt(columns[c].squares);
    columns[c].feature = static_cast<std::int64_t>(c);
  }
  std::ranges::sort(columns, {},
                    [](const Column& c) { return std::pair(c.projection, c.feature); });

  struct Pair {
    const Column *a, *b;
    double product = 0;
  };
  std::vector<Pair> near_pairs;
  for (auto a = columns.begin(); a != columns.end(); ++a, run.poll())
    for (auto b = a + 1; b != columns.end() && b->projection - a->projection < near; ++b)
      near_pairs.push_back({&*a, &*b});
  if (near_pairs.empty()) return {};
  for_prepared([&](const Matrix& block) {
    run.parallel_for(std::ssize(near_pairs), [&](std::int64_t p) {
      Pair& pair = near_pairs[static_cast<std::size_t>(p)];
      const double* x = block.column(pair.a->feature);
      pair.product =
          std::inner_product(x, x + block.rows(), block.column(pair.b->feature), pair.product);
    });
  });
  std::vector<Edge> pairs;
  for (const Pair& p : near_pairs) {
    const double r = p.product / (std::sqrt(p.a->squares) * std::sqrt(p.b->squares));
    if (1 - std::fabs(r) >= collinear) continue;
    const auto [from, to] = std::minmax(columns_[static_cast<std::size_t>(p.a->feature)],
                                        columns_[static_cast<std::size_t>(p.b->feature)]);
    pairs.push_back({from, to, r > 0 ? 1.0 : -1.0});
  }
  std::ranges::sort(pairs, {}, [](const Edge& e) { return std::pair(e.from, e.to); });
  return pairs;
}

} // namespace cape::sem
