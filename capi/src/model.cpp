// Transformers over features.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "handle.hpp"

using namespace cape::capi;

namespace {

// The client's cells; what they are views of outlives the call.
cape::Cells cells_of(const cape_cells* cells) {
  const auto given = read_struct(cells, "cells", cape_cells{});
  const int n = (given.dense != nullptr) + (given.sparse != nullptr) + (given.source != nullptr);
  if (n != 1)
    throw cape::Error(
        cape::Status::invalid_argument,
        cape::message("cells has ", n, " of dense, sparse and source; it must have one"));
  if (given.dense != nullptr) return cape::cells_of(view_of(given.dense, "cells->dense"));
  if (given.sparse != nullptr) return cape::cells_of(view_of(given.sparse, "cells->sparse"));
  const cape_row_source source = checked_source(given.source);
  const int64_t size = cape::checked_size(source.n_rows, source.n_cols, "source");
  const auto read = [rows_of = reader_of(source), columns = source.n_cols,
                     by_column = std::vector<double>()](std::span<const int64_t> numbers,
                                                        double* out) mutable {
    const std::size_t n = numbers.size(), m = static_cast<std::size_t>(columns);
    by_column.resize(n * m);
    rows_of(numbers, by_column.data());
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < m; ++j) out[i * m + j] = by_column[j * n + i];
  };
  return {size < 0 ? 0 : source.n_rows, source.n_cols, read};
}

const cape::Backbone& backbone_of(const cape_model* model) {
  return object(model, "model").backbone;
}

cape::Pooling pooling_of(const char* name) {
  const std::string_view given = text(name, "pooling");
  constexpr std::array<std::string_view, 4> names{"cls", "mean", "max", "cls_mean"};
  const auto at = std::ranges::find(names, given);
  if (at == names.end())
    throw cape::Error(
        cape::Status::invalid_argument,
        cape::message("pooling is \"", given, "\"; it must be cls, mean, max or cls_mean"));
  return static_cast<cape::Pooling>(at - names.begin());
}

// The texts of the client.
std::vector<std::string> texts(const char* const* given, int64_t n, std::string_view name,
                               std::string_view count) {
  std::vector<std::string> out;
  for (const char* one : values(given, n, name, count))
    out.emplace_back(text(one, cape::message(name, "[", out.size(), "]")));
  return out;
}

constexpr std::array<const char*, 3> kinds{"none", "classes", "numbers"}; // as HeadKind

// The client's targets.
cape::Targets targets_of(const cape_targets* targets) {
  const auto given = read_struct(targets, "targets", cape_targets{});
  const std::string_view kind = text(given.kind, "targets->kind");
  const auto at = std::find(kinds.begin() + 1, kinds.end(), kind);
  if (at == kinds.end())
    throw cape::Error(
        cape::Status::invalid_argument,
        cape::message("targets->kind is \"", kind, "\"; it must be classes or numbers"));
  cape::Targets out{static_cast<cape::HeadKind>(at - kinds.begin()),
                    texts(given.names, given.n_names, "targets->names", "targets->n_names"),
                    {}};
  const cape::MatrixView values = view_of(given.values, "targets->values");
  const int64_t columns = *at == std::string_view("classes") ? 1 : given.n_names;
  if (values.cols != columns)
    throw cape::Error(
        cape::Status::dim_mismatch,
        cape::message("targets->values has ", values.cols, " columns; there must be ", columns));
  for (int64_t i = 0; i < values.rows; ++i)
    for (int64_t j = 0; j < columns; ++j) out.values.push_back(values(i, j));
  return out;
}

// The i-th of the model's names of that kind.
void name_of(const char** out, const std::vector<std::string>& names, int64_t i,
             std::string_view kind) {
  if (i < 0 || i >= std::ssize(names))
    throw cape::Error(
        cape::Status::invalid_argument,
        cape::message("i is ", i, "; the model has ", names.size(), " ", kind, ", counted from 0"));
  *out = names[static_cast<std::size_t>(i)].c_str();
}

// Train a model: body(start, cells, checkpoint or null, options, run).
template <class Body>
cape_status train(cape_model** out, const cape_model* start, const cape_cells* cells,
                  cape_checkpoint* checkpoint, const cape_options* options, Body body) noexcept {
  return create(out, options, [&](const cape_options& o) {
    const cape::Backbone& from = object(start, "start").backbone;
    const cape::Cells table = cells_of(cells);
    cape::Checkpoint* state =
        checkpoint == nullptr ? nullptr : &object(checkpoint, "checkpoint").model;
    cape::Run run = make_run(o);
    return body(from, table, state, o.values, run);
  });
}

// A model of the state of public code, which load() makes of its tensors.
template <class Load>
cape_status load_state(cape_model** out, const void* bytes, int64_t n, const char* const* names,
                       int64_t n_names, const cape_options* options, Load load) noexcept {
  return create(out, options, [&](const cape_options& o) {
    const std::span<const std::byte> file =
        values(static_cast<const std::byte*>(bytes), n, "bytes");
    const std::vector<std::string> all = texts(names, n_names, "names", "n_names");
    cape::Run run = make_run(o);
    return load(cape::read_safetensors(file, run), all, o.values.model, run);
  });
}

// The bytes of a model's file.
std::vector<std::byte> file_of(const cape::Backbone& backbone, cape::Run& run) {
  return cape::write_safetensors(cape::to_tensors(backbone, run), run);
}

// Apply a model to cells: body(model, cells, run).
template <class Body>
cape_status apply(const cape_model* model, const cape_cells* cells, const cape_options* options,
                  Body body) noexcept {
  return guard_run(options, [&](cape::Run& run) {
    const cape::Backbone& backbone = backbone_of(model);
    const cape::Cells table = cells_of(cells);
    body(backbone, table, run);
  });
}

} // namespace

cape_status cape_options_set_preset(cape_options* options, const char* preset) {
  return guard([&] {
    cape::Options& values = object(options, "options").values;
    const std::string_view name = text(preset, "preset");
    values.model = cape::backbone_preset(name);
    values.pretrain = cape::pretrain_preset(name);
  });
}

cape_status cape_model_new(cape_model** out, const char* const* features, int64_t n_features,
                           const cape_matrix_view* positions, const cape_options* options) {
  return create(out, options, [&](const cape_options& o) {
    std::vector<std::string> names = texts(features, n_features, "features", "n_features");
    cape::Matrix matrix;
    if (positions != nullptr) matrix = cape::to_matrix(view_of(positions, "positions"));
    cape::Run run = make_run(o);
    return cape::make_backbone(std::move(names), std::move(matrix), o.values.model, run);
  });
}

cape_status cape_model_pretrain(cape_model** out, const cape_model* start, const cape_cells* cells,
                                cape_checkpoint* checkpoint, const cape_options* options) {
  return train(out, start, cells, checkpoint, options,
               [](const auto& from, const auto& table, auto* state, const auto& values, auto& run) {
                 return cape::pretrain(from, table, values.pretrain, run, state);
               });
}

cape_status cape_model_finetune(cape_model** out, const cape_model* start, const cape_cells* cells,
                                const cape_targets* targets, cape_checkpoint* checkpoint,
                                const cape_options* options) {
  return train(
      out, start, cells, checkpoint, options,
      [&](const auto& from, const auto& table, auto* state, const auto& values, auto& run) {
        return cape::finetune(from, table, targets_of(targets), values.finetune, run, state);
      });
}

void cape_model_free(cape_model* model) { release(model); }

cape_status cape_model_describe(cape_model_info* out, const cape_model* model) {
  return guard([&] {
    check_struct_size(required(out, "out").struct_size, sizeof *out, "out");
    const cape_model& m = object(model, "model");
    const cape::BackboneOptions& o = m.backbone.options;
    write_struct(out, cape_model_info{0, std::ssize(m.backbone.features),
                                      std::ssize(m.backbone.parameters), o.width, o.heads, o.blocks,
                                      m.backbone.positions.cols(), std::ssize(m.history),
                                      m.best_epoch, std::ssize(m.backbone.head.names),
                                      kinds[static_cast<std::size_t>(m.backbone.head.kind)]});
  });
}

cape_status cape_model_feature(const char** out, const cape_model* model, int64_t i) {
  clear(out);
  return guard([&] { name_of(&required(out, "out"), backbone_of(model).features, i, "features"); });
}

cape_status cape_model_target(const char** out, const cape_model* model, int64_t i) {
  clear(out);
  return guard(
      [&] { name_of(&required(out, "out"), backbone_of(model).head.names, i, "targets"); });
}

cape_status cape_model_get_options(cape_options* options, const cape_model* model) {
  return guard([&] {
    cape::Options& values = object(options, "options").values;
    values.model = backbone_of(model).options;
  });
}

cape_status cape_model_history(double* out, int64_t n_rows, int64_t n_cols,
                               const cape_model* model) {
  return guard([&] {
    copy_records<4>(
        out, n_rows, n_cols, object(model, "model").history, [](const cape::TrainingEpoch& e) {
          return std::array{static_cast<double>(e.epoch), e.loss, e.validation, e.relative};
        });
  });
}

cape_status cape_model_embed_cells(double* out, int64_t n_rows, int64_t n_cols,
                                   const cape_model* model, const cape_cells* cells,
                                   const char* pooling, const cape_options* options) {
  return apply(model, cells, options, [&](const auto& backbone, const auto& table, auto& run) {
    const cape::Pooling kind = pooling_of(pooling);
    check_output(out, n_rows, n_cols, table.cells, backbone.options.width);
    copy_matrix(out, n_rows, n_cols, cape::embed_cells(backbone, table, kind, run));
  });
}

cape_status cape_model_embed_features(double* out, int64_t n_rows, int64_t n_cols,
                                      const cape_model* model, const cape_cells* cells,
                                      const cape_options* options) {
  return apply(model, cells, options, [&](const auto& backbone, const auto& table, auto& run) {
    check_output(out, n_rows, n_cols, std::ssize(backbone.features), backbone.options.width);
    copy_matrix(out, n_rows, n_cols, cape::embed_features(backbone, table, run));
  });
}

cape_status cape_model_tell(double* out, int64_t n_rows, int64_t n_cols, const cape_model* model,
                            const cape_cells* cells, const cape_options* options) {
  return apply(model, cells, options, [&](const auto& backbone, const auto& table, auto& run) {
    const int64_t names = std::ssize(backbone.head.names);
    if (names > 0) check_output(out, n_rows, n_cols, table.cells, names); // else tell() refuses
    copy_matrix(out, n_rows, n_cols, cape::tell(backbone, table, run));
  });
}

cape_status cape_model_attention(double* out, int64_t n_rows, int64_t n_cols,
                                 const cape_model* model, const cape_cells* cells, int64_t block,
                                 const cape_options* options) {
  return apply(model, cells, options, [&](const auto& backbone, const auto& table, auto& run) {
    const std::int64_t m = std::ssize(backbone.features);
    check_output(out, n_rows, n_cols, m + 1, m);
    copy_matrix(out, n_rows, n_cols, cape::attention_map(backbone, table, block, run));
  });
}

cape_status cape_model_hidden_loss(double* loss_out, double* relative_out, const cape_model* model,
                                   const cape_cells* cells, const cape_options* options) {
  clear(loss_out, relative_out);
  return guard(options, [&](const cape_options& o) {
    required(loss_out, "loss_out");
    required(relative_out, "relative_out");
    const cape::Backbone& backbone = backbone_of(model);
    const cape::Cells table = cells_of(cells);
    cape::Run run = make_run(o);
    const cape::HiddenLoss hidden = cape::hidden_loss(backbone, table, o.values.pretrain, run);
    *loss_out = hidden.loss;
    *relative_out = hidden.relative;
  });
}

cape_status cape_model_memory(double* pretrain_out, double* embed_out, const cape_model* model,
                              const cape_options* options) {
  clear(pretrain_out, embed_out);
  return guard(options, [&](const cape_options& o) {
    const cape::Backbone& backbone = backbone_of(model);
    const int threads = make_run(o).threads();
    if (pretrain_out != nullptr)
      *pretrain_out = cape::pretrain_memory(backbone, o.values.pretrain, threads);
    if (embed_out != nullptr) *embed_out = cape::encode_memory(backbone, threads);
  });
}

cape_status cape_model_save_size(int64_t* bytes_out, const cape_model* model,
                                 const cape_options* options) {
  clear(bytes_out);
  return guard_run(options, [&](cape::Run& run) {
    required(bytes_out, "bytes_out");
    *bytes_out = std::ssize(file_of(backbone_of(model), run));
  });
}

cape_status cape_model_save(void* out, int64_t capacity, const cape_model* model,
                            const cape_options* options) {
  return guard_run(options, [&](cape::Run& run) {
    const std::vector<std::byte> file = file_of(backbone_of(model), run);
    required(static_cast<char*>(out), "out");
    if (capacity < std::ssize(file))
      throw cape::Error(
          cape::Status::dim_mismatch,
          cape::message("capacity is ", capacity, " bytes; the model takes ", file.size()));
    std::memcpy(out, file.data(), file.size());
  });
}

cape_status cape_model_load(cape_model** out, const void* bytes, int64_t n,
                            const cape_options* options) {
  return create_run(out, options, [&](cape::Run& run) {
    const std::span<const std::byte> file =
        values(static_cast<const std::byte*>(bytes), n, "bytes");
    return cape::from_tensors(cape::read_safetensors(file, run), run);
  });
}

cape_status cape_model_load_scgpt(cape_model** out, const void* bytes, int64_t n,
                                  const char* const* names, int64_t n_names,
                                  const cape_options* options) {
  return load_state(out, bytes, n, names, n_names, options, cape::load_scgpt);
}

cape_status cape_model_load_scbert(cape_model** out, const void* bytes, int64_t n,
                                   const char* const* names, int64_t n_names,
                                   const cape_options* options) {
  return load_state(out, bytes, n, names, n_names, options, cape::load_scbert);
}
