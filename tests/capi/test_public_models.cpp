// States of scGPT and scBERT through the C interface: the vectors of cells that their code gave
// (data/parity), and what is no state.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "check.h"
#include "parity.hpp"

namespace {

using Load = decltype(&cape_model_load_scgpt);

cape_options* options_for(const char* preset, std::int64_t heads, const char* values,
                          const char* positions) {
  cape_options* o = nullptr;
  CHECK_OK(cape_options_new(&o));
  CHECK_OK(cape_options_set_preset(o, preset));
  CHECK_OK(cape_options_set_i64(o, "model.heads", heads));
  CHECK_OK(cape_options_set_str(o, "model.values", values));
  CHECK_OK(cape_options_set_str(o, "model.positions", positions));
  CHECK_OK(cape_options_set_bool(o, "model.zeros", 1));
  return o;
}

struct Names {
  explicit Names(std::vector<std::string> all) : text(std::move(all)) {
    for (const std::string& name : text) pointer.push_back(name.c_str());
  }
  std::vector<std::string> text;
  std::vector<const char*> pointer;
};

Names scgpt_names() {
  std::vector<std::string> names = {"<pad>", "<cls>", "<eoc>"};
  while (names.size() < 40) names.push_back("g" + std::to_string(names.size()));
  return Names(names);
}

Names scbert_names() {
  std::vector<std::string> names;
  while (names.size() < 30) names.push_back("g" + std::to_string(names.size()));
  return Names(names);
}

// Vectors of cells, row-major, by their <cls>; values: cells x features, row-major.
std::vector<double> embed(const cape_model* model, const std::vector<double>& values,
                          std::int64_t features, std::int64_t width, const cape_options* o) {
  const auto cells = std::int64_t(values.size()) / features;
  const cape_matrix_view view = CAPE_ROW_MATRIX_VIEW(values.data(), cells, features);
  cape_cells table{};
  table.struct_size = sizeof table;
  table.dense = &view;
  std::vector<double> by_column(std::size_t(cells * width)), rows;
  CHECK_OK(cape_model_embed_cells(by_column.data(), cells, width, model, &table, "cls", o));
  for (std::int64_t i = 0; i < cells; ++i)
    for (std::int64_t j = 0; j < width; ++j) rows.push_back(by_column[std::size_t(j * cells + i)]);
  return rows;
}

void scgpt_gives_the_vectors_of_cells_that_its_code_gave() {
  const std::string file = test::read_parity_bytes("scgpt_torch_post/weights.safetensors");
  const auto in = test::read_parity("scgpt_torch_post/inputs.safetensors");
  const auto expected = test::read_parity("scgpt_torch_post/io.f64.safetensors");
  const Names names = scgpt_names();
  cape_options* o = options_for("scgpt", 4, "continuous", "trained"); // given in bins
  cape_model* model = nullptr;
  CHECK_OK(cape_model_load_scgpt(&model, file.data(), std::int64_t(file.size()),
                                 names.pointer.data(), 40, o));
  cape_model_info info{};
  info.struct_size = sizeof info;
  CHECK_OK(cape_model_describe(&info, model));
  CHECK(info.n_features == 37 && info.width == 32 && info.heads == 4 && info.blocks == 2);
  const char* name = nullptr;
  CHECK_OK(cape_model_feature(&name, model, 0));
  CHECK(std::strcmp(name, "g3") == 0);
  std::vector<double> values(3 * 37, NAN); // the mask's -1 among them
  for (std::size_t i = 0; i < 36; ++i)
    if (const auto gene = std::size_t(in.at("in.gene_ids")[i]); gene >= 3)
      values[i / 12 * 37 + gene - 3] = in.at("in.values")[i];
  CHECK(test::largest_difference(embed(model, values, 37, 32, o), expected.at("out.cell_emb")) <=
        1e-5);
  cape_model_free(model);
  cape_options_free(o);
}

void scbert_makes_a_model_that_computes() {
  const std::string file = test::read_parity_bytes("scbert_performer/weights.safetensors");
  const Names names = scbert_names();
  for (const char* positions : {"fixed", "trained"}) {
    cape_options* o = options_for("scbert", 3, "fixed_bins", positions);
    cape_model* model = nullptr;
    CHECK_OK(cape_model_load_scbert(&model, file.data(), std::int64_t(file.size()),
                                    names.pointer.data(), 30, o));
    cape_model_info info{};
    info.struct_size = sizeof info;
    CHECK_OK(cape_model_describe(&info, model));
    CHECK(info.n_features == 30 && info.width == 24 && info.heads == 3 && info.blocks == 2);
    CHECK(info.n_position_columns == (std::string(positions) == "fixed" ? 24 : 0));
    // Bin b is that of the value 2^b - 1.
    std::vector<double> values(2 * 30);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::exp2(double(i % 5)) - 1;
    for (const double v : embed(model, values, 30, 24, o)) CHECK(std::isfinite(v));
    cape_model_free(model);
    cape_options_free(o);
  }
}

void what_is_no_state_is_refused(const char* file_name, Load load, const Names& names,
                                 cape_options* o) {
  const std::string file = test::read_parity_bytes(file_name);
  const auto size = std::int64_t(file.size()), n = std::int64_t(names.text.size());
  const char* const* all = names.pointer.data();
  cape_model* model = nullptr;
  for (std::int64_t at = 0; at < size; at += 1 + size / 50)
    CHECK_STATUS(load(&model, file.data(), at, all, n, o), CAPE_BAD_FORMAT);
  CHECK_ERROR(load(&model, file.data(), size, all, n - 1, o), CAPE_BAD_FORMAT, "has the shape [");
  CHECK_ERROR(load(&model, file.data(), size, all, 0, o),
              load == cape_model_load_scgpt ? CAPE_INVALID_ARGUMENT : CAPE_BAD_FORMAT,
              load == cape_model_load_scgpt ? "no \"<cls>\"" : "has the shape [");
  std::vector<const char*> other = names.pointer;
  other[5] = other[6];
  CHECK_ERROR(load(&model, file.data(), size, other.data(), n, o), CAPE_INVALID_ARGUMENT,
              "two features are called");
  other[5] = nullptr;
  CHECK_NULL(load(&model, file.data(), size, other.data(), n, o), "names[5]");
  other[5] = "\xff";
  CHECK_STATUS(load(&model, file.data(), size, other.data(), n, o), CAPE_INVALID_ARGUMENT);
  CHECK_ERROR(load(&model, file.data(), size, all, -1, o), CAPE_INVALID_ARGUMENT, "n_names");
  CHECK_NULL(load(&model, nullptr, size, all, n, o), "bytes");
  CHECK_NULL(load(&model, file.data(), size, nullptr, n, o), "names");
  CHECK_NULL(load(&model, file.data(), size, all, n, nullptr), "options");
  CHECK_NULL(load(nullptr, file.data(), size, all, n, o), "out");
  CHECK_OK(cape_options_set_i64(o, "model.heads", 5));
  CHECK_ERROR(load(&model, file.data(), size, all, n, o), CAPE_INVALID_ARGUMENT, "model.heads");
  CHECK(model == nullptr);
  cape_options_free(o);
}

void a_state_of_other_code_is_none() {
  const std::string file = test::read_parity_bytes("scbert_performer/weights.safetensors");
  const Names names = scgpt_names();
  cape_options* o = options_for("scgpt", 4, "continuous", "trained");
  cape_model* model = nullptr;
  CHECK_ERROR(cape_model_load_scgpt(&model, file.data(), std::int64_t(file.size()),
                                    names.pointer.data(), 40, o),
              CAPE_BAD_FORMAT, "these tensors are no state of scGPT");
  CHECK_ERROR(cape_model_load(&model, file.data(), std::int64_t(file.size()), o), CAPE_BAD_FORMAT,
              "these tensors are no model");
  const std::string batches = test::read_parity_bytes("scgpt_torch_batch/weights.safetensors");
  CHECK_ERROR(cape_model_load_scgpt(&model, batches.data(), std::int64_t(batches.size()),
                                    names.pointer.data(), 40, o),
              CAPE_UNSUPPORTED, "embeddings of batches");
  cape_options_free(o);
  o = options_for("scbert", 3, "fixed_bins", "rotary");
  CHECK_ERROR(cape_model_load_scbert(&model, file.data(), std::int64_t(file.size()),
                                     names.pointer.data(), 30, o),
              CAPE_INVALID_ARGUMENT, "must be fixed or trained");
  cape_options_free(o);
}

} // namespace

int main() {
  if (test::data_missing("parity")) return 77;
  scgpt_gives_the_vectors_of_cells_that_its_code_gave();
  scbert_makes_a_model_that_computes();
  what_is_no_state_is_refused("scgpt_torch_post/weights.safetensors", cape_model_load_scgpt,
                              scgpt_names(), options_for("scgpt", 4, "continuous", "trained"));
  what_is_no_state_is_refused("scbert_performer/weights.safetensors", cape_model_load_scbert,
                              scbert_names(), options_for("scbert", 3, "fixed_bins", "fixed"));
  a_state_of_other_code_is_none();
  return n_failed != 0;
}
