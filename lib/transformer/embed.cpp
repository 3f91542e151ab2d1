module;
#include "internal/message.hpp"
#include "internal/sizes.hpp"
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <new>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <typeinfo>
#include <variant>
#include <vector>
module cape.transformer;
import cape.attention;
#include "transformer/network.hpp"
#include "transformer/tokens.hpp"

namespace cape {
namespace {

// body(cell, its first token, tokens, rows of all tokens) for all cells, some at a time.
template <class F>
void for_encoded(const Backbone& backbone, const Cells& cells, bool zeros, Run& run, F body) {
  if (cells.features != std::ssize(backbone.features))
    throw Error(Status::dim_mismatch,
                message("the cells have ", cells.features, " features; the model has ",
                        backbone.features.size()));
  check_memory(encode_memory(backbone), message("a cell of ", cells.features, " features"));
  Network<float> network(backbone);
  if (std::ssize(backbone.parameters) != network.slots().size)
    throw Error(Status::dim_mismatch,
                message("the model has ", backbone.parameters.size(),
                        " parameters; its options say ", network.slots().size));
  const std::int64_t some = cells_at_once(cells.features);
  std::vector<double> values;
  std::vector<std::int64_t> numbers;
  for (std::int64_t first = 0; first < cells.cells; first += some) {
    run.report({"encode", first, cells.cells});
    numbers.resize(at(std::min(some, cells.cells - first)));
    std::iota(numbers.begin(), numbers.end(), first);
    values.resize(at(std::ssize(numbers) * cells.features));
    cells.read(numbers, values.data());
    const Tokens tokens = tokenize(values, cells.features, backbone.options, zeros);
    const std::span<const float> rows =
        network.forward(backbone.parameters, tokens, -1, false, run);
    if (!std::ranges::all_of(rows, [](float v) { return std::isfinite(v); }))
      throw Error(Status::invalid_argument,
                  "the model's rows are not finite: its parameters or the values are too large");
    for (std::int64_t c = 0; c < tokens.cells(); ++c) body(first + c, c, tokens, rows);
  }
  run.report({"encode", cells.cells, cells.cells});
}

} // namespace

Matrix embed_cells(const Backbone& backbone, const Cells& cells, Pooling pooling, bool zeros,
                   Run& run) {
  const std::int64_t width = backbone.options.width;
  Matrix out(cells.cells, width, run);
  for_encoded(backbone, cells, zeros, run,
              [&](std::int64_t cell, std::int64_t c, const Tokens& t, std::span<const float> rows) {
                const std::int64_t cls = t.start[at(c)], end = t.start[at(c + 1)];
                for (std::int64_t j = 0; j < width; ++j) {
                  const auto value = [&](std::int64_t token) {
                    return static_cast<double>(rows[at(token * width + j)]);
                  };
                  double& to = out(cell, j);
                  if (pooling == Pooling::cls)
                    to = value(cls);
                  else if (cls + 1 < end) {
                    to = pooling == Pooling::mean ? 0 : value(cls + 1);
                    for (std::int64_t i = cls + 1; i < end; ++i)
                      to = pooling == Pooling::mean
                               ? to + value(i) / static_cast<double>(end - cls - 1)
                               : std::max(to, value(i));
                  }
                }
              });
  return out;
}

Matrix embed_features(const Backbone& backbone, const Cells& cells, bool zeros, Run& run) {
  const std::int64_t width = backbone.options.width, m = std::ssize(backbone.features);
  Matrix out(m, width, run);
  std::vector<double> count(at(m));
  for_encoded(backbone, cells, zeros, run,
              [&](std::int64_t, std::int64_t c, const Tokens& t, std::span<const float> rows) {
                for (std::int64_t i = t.start[at(c)] + 1; i < t.start[at(c + 1)]; ++i) {
                  const std::int32_t f = t.feature[at(i)];
                  ++count[at(f)];
                  for (std::int64_t j = 0; j < width; ++j)
                    out(f, j) += static_cast<double>(rows[at(i * width + j)]);
                }
              });
  for (std::int64_t f = 0; f < m; ++f)
    for (std::int64_t j = 0; j < width; ++j)
      out(f, j) =
          count[at(f)] > 0 ? out(f, j) / count[at(f)] : std::numeric_limits<double>::quiet_NaN();
  return out;
}

} // namespace cape
