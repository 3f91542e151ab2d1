module;
#include "internal/message.hpp"
#include "internal/sizes.hpp"
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <typeinfo>
#include <variant>
#include <vector>
module cape.transformer;
import cape.attention;
#include "transformer/cell_head.hpp"
#include "transformer/network.hpp"
#include "transformer/tokens.hpp"

namespace cape {
namespace {

// body(first cell, tokens, rows of all tokens, network) for all cells, some at a time.
template <class F>
void for_batches(const Backbone& backbone, const Cells& cells, bool keep, Run& run, F body) {
  check_features(cells, backbone);
  check_memory(encode_memory(backbone, run.threads(), keep),
               message("a cell of ", cells.features, " features"));
  Network<float> network(backbone);
  check_parameters(backbone.parameters.size(), network.slots());
  for_cells(cells, all_cells(cells), run, [&](std::span<const double> values, std::int64_t first) {
    run.report({"encode", first, cells.cells});
    const Tokens tokens = tokenize(values, cells.features, backbone.options);
    const std::span<const float> rows = network.forward(backbone.parameters, tokens, -1, keep, run);
    if (!std::ranges::all_of(rows, [](float v) { return std::isfinite(v); }))
      throw Error(Status::invalid_argument,
                  "the model's rows are not finite: its parameters or the values are too large");
    body(first, tokens, rows, network);
  });
  run.report({"encode", cells.cells, cells.cells});
}

// body(cell, its number among the tokens, tokens, rows of all tokens) for all cells.
template <class F>
void for_encoded(const Backbone& backbone, const Cells& cells, Run& run, F body) {
  for_batches(backbone, cells, false, run,
              [&](std::int64_t first, const Tokens& tokens, std::span<const float> rows,
                  const Network<float>&) {
                for (std::int64_t c = 0; c < tokens.cells(); ++c) body(first + c, c, tokens, rows);
              });
}

} // namespace

Matrix embed_cells(const Backbone& backbone, const Cells& cells, Pooling pooling, Run& run) {
  CellVectors<float> vectors(pooling);
  const std::int64_t width = vectors.width(backbone.options.width);
  Matrix out(cells.cells, width, run);
  for_batches(backbone, cells, false, run,
              [&](std::int64_t first, const Tokens& tokens, std::span<const float> rows,
                  const Network<float>&) {
                const std::span<const float> of_cells = vectors(rows, tokens);
                for (std::int64_t c = 0; c < tokens.cells(); ++c)
                  for (std::int64_t j = 0; j < width; ++j)
                    out(first + c, j) = static_cast<double>(of_cells[at(c * width + j)]);
              });
  return out;
}

Matrix tell(const Backbone& backbone, const Cells& cells, Run& run) {
  const Head& head = backbone.head;
  if (head.kind == HeadKind::none)
    throw Error(Status::unsupported,
                "the model tells nothing of cells; it has to be fine-tuned first");
  const Slots slots = checked_slots(backbone);
  check_parameters(backbone.parameters.size(), slots);
  CellHead<float> layers(backbone, slots);
  const std::int64_t names = std::ssize(head.names);
  Matrix out(cells.cells, names, run);
  for_batches(backbone, cells, false, run,
              [&](std::int64_t first, const Tokens& tokens, std::span<const float> rows,
                  const Network<float>&) {
                const std::span<const float> told =
                    layers.forward(backbone.parameters, rows, tokens, -1, run);
                for (std::int64_t c = 0; c < tokens.cells(); ++c) {
                  const std::span<const float> of_cell = told.subspan(at(c * names), at(names));
                  const auto top = static_cast<double>(*std::ranges::max_element(of_cell));
                  double sum = 0;
                  for (std::int64_t j = 0; j < names; ++j) {
                    const auto v = static_cast<double>(of_cell[at(j)]);
                    if (!std::isfinite(v))
                      throw Error(Status::invalid_argument,
                                  "what the model tells is not finite: its "
                                  "parameters or the values are too large");
                    if (head.kind == HeadKind::classes)
                      sum += out(first + c, j) = std::exp(v - top);
                    else
                      out(first + c, j) = head.mean[at(j)] + head.sd[at(j)] * v;
                  }
                  if (head.kind == HeadKind::classes)
                    for (std::int64_t j = 0; j < names; ++j) out(first + c, j) /= sum;
                }
              });
  return out;
}

Matrix embed_features(const Backbone& backbone, const Cells& cells, Run& run) {
  const std::int64_t width = backbone.options.width, m = std::ssize(backbone.features);
  Matrix out(m, width, run);
  std::vector<double> count(at(m));
  for_encoded(backbone, cells, run,
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

Matrix attention_map(const Backbone& backbone, const Cells& cells, std::int64_t block, Run& run) {
  const std::int64_t blocks = backbone.options.blocks, m = std::ssize(backbone.features);
  if (block < -1 || block >= blocks)
    throw Error(Status::invalid_argument, message("block is ", block, "; the model has ", blocks,
                                                  ", counted from 0, and -1 stands for all"));
  if (backbone.options.attention != AttentionKind::exact)
    throw Error(Status::unsupported, "linear attention has no weights to tell of");
  check_memory(16.0 * static_cast<double>(m + 1) * static_cast<double>(m) +
                   4.0 * static_cast<double>(backbone.options.heads) * static_cast<double>(m + 1) *
                       static_cast<double>(m + 1),
               message("a map of ", m, " features"));
  Matrix sum(m + 1, m, run), count(m + 1, m, run);
  const std::int64_t first_block = block < 0 ? 0 : block, end = block < 0 ? blocks : block + 1;
  for_batches(
      backbone, cells, true, run,
      [&](std::int64_t, const Tokens& t, std::span<const float>, const Network<float>& network) {
        const auto row_of = [&](std::int64_t token) {
          return t.feature[at(token)] < 0 ? m : std::int64_t{t.feature[at(token)]};
        };
        for (std::int64_t b = first_block; b < end; ++b)
          network.for_weights(
              b,
              [&](std::int64_t cell, std::int64_t, std::span<const float> weights) {
                run.poll();
                const std::int64_t first = t.start[at(cell)],
                                   length = t.start[at(cell + 1)] - first;
                for (std::int64_t i = 0; i < length; ++i)
                  for (std::int64_t j = 1; j < length; ++j) {
                    sum(row_of(first + i), row_of(first + j)) +=
                        static_cast<double>(weights[at(i * length + j)]);
                    ++count(row_of(first + i), row_of(first + j));
                  }
              },
              run);
      });
  for (std::int64_t i = 0; i < sum.size(); ++i)
    if (count.data()[i] > 0) sum.data()[i] /= count.data()[i];
  return sum;
}

} // namespace cape
