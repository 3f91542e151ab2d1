// Transformers over features. A model is a raw vector in R: the bytes of its safetensors file.
#include "cells.hpp"

using namespace capeomics;

namespace {

using Model = Handle<cape_model, cape_model_free>;

void load(Model &out, const Rcpp::RawVector &bytes, const Options &options) {
  check(cape_model_load(out.out(), bytes.begin(), bytes.size(), options.get()));
}

Rcpp::RawVector save(const Model &model, const Options &options) {
  int64_t size = 0;
  check(cape_model_save_size(&size, model.get(), options.get()));
  Rcpp::RawVector bytes = Rcpp::no_init(static_cast<R_xlen_t>(size));
  check(cape_model_save(bytes.begin(), size, model.get(), options.get()));
  return bytes;
}

std::vector<const char *> texts(const Rcpp::CharacterVector &given) {
  std::vector<const char *> out;
  for (R_xlen_t i = 0; i < given.size(); ++i)
    out.push_back(CHAR(STRING_ELT(given, i)));
  return out;
}

cape_model_info describe(const Model &model) {
  cape_model_info info{};
  info.struct_size = sizeof info;
  check(cape_model_describe(&info, model.get()));
  return info;
}

// What a training by step(out, from, cells, checkpoint, options) gives.
template <class Step>
Rcpp::List train(const Rcpp::RawVector &start, const Rcpp::RObject &values,
                 const Rcpp::CharacterVector &settings, SEXP progress,
                 const Rcpp::Nullable<Rcpp::Environment> &store, Step step) {
  Options options(settings, progress);
  Model from, model;
  load(from, start, options);
  const Cells cells(values);
  Checkpoint checkpoint(store, options);
  checkpoint.check_or_keep(
      step(model.out(), from.get(), cells.get(), checkpoint.get(), options.get()));
  const cape_model_info info = describe(model);
  arma::mat history(static_cast<arma::uword>(info.n_epochs), 4);
  check(cape_model_history(history.memptr(), info.n_epochs, 4, model.get()));
  return Rcpp::List::create(Rcpp::_["model"] = save(model, options),
                            Rcpp::_["history"] = history,
                            Rcpp::_["best_epoch"] = static_cast<int>(info.best_epoch));
}

// n names of a model, which read(name, i) gives.
template <class Read> Rcpp::CharacterVector names_of(int64_t n, Read read) {
  Rcpp::CharacterVector out(static_cast<R_xlen_t>(n));
  for (R_xlen_t i = 0; i < out.size(); ++i) {
    const char *name = nullptr;
    check(read(&name, i));
    out[i] = Rf_mkCharCE(name, CE_UTF8);
  }
  return out;
}

// The values of all options of models and their training, by key.
Rcpp::List option_values(const cape_options *options) {
  std::vector<std::string> keys;
  std::vector<Rcpp::RObject> values;
  for (std::size_t i = 0; i < cape_option_count(); ++i) {
    cape_option_desc d{};
    d.struct_size = sizeof d;
    check(cape_option_info(&d, i));
    const std::string key = d.key, type = d.type;
    if (key.compare(0, 6, "model.") != 0 && key.compare(0, 9, "pretrain.") != 0 &&
        key.compare(0, 9, "finetune.") != 0)
      continue;
    keys.push_back(key);
    if (type == "double") {
      double value = 0;
      check(cape_options_get_f64(&value, options, d.key));
      values.push_back(Rcpp::wrap(value));
    } else if (type == "integer") {
      int64_t value = 0;
      check(cape_options_get_i64(&value, options, d.key));
      values.push_back(Rcpp::wrap(static_cast<int>(value)));
    } else if (type == "logical") {
      int value = 0;
      check(cape_options_get_bool(&value, options, d.key));
      values.push_back(Rcpp::wrap(value != 0));
    } else {
      const char *value = nullptr;
      check(cape_options_get_str(&value, options, d.key));
      values.push_back(Rcpp::wrap(value));
    }
  }
  Rcpp::List out(values.begin(), values.end());
  out.names() = keys;
  return out;
}

} // namespace

// The values of a preset's options, by key.
// [[Rcpp::export(rng = false)]]
Rcpp::List core_preset(const std::string &name) {
  Handle<cape_options, cape_options_free> options;
  check(cape_options_new(options.out()));
  check(cape_options_set_preset(options.get(), name.c_str()));
  return option_values(options.get());
}

// A model before training, as bytes. positions: features x columns, or NULL.
// [[Rcpp::export(rng = false)]]
Rcpp::RawVector core_model_new(const Rcpp::CharacterVector &features,
                               const Rcpp::Nullable<Rcpp::NumericMatrix> &positions,
                               const Rcpp::CharacterVector &settings) {
  Options options(settings, R_NilValue);
  const std::vector<const char *> names = texts(features);
  Rcpp::NumericMatrix given;
  cape_matrix_view view{};
  if (positions.isNotNull()) {
    given = Rcpp::NumericMatrix(positions.get());
    view = CAPE_MATRIX_VIEW(given.begin(), given.nrow(), given.ncol());
  }
  Model model;
  check(cape_model_new(model.out(), names.data(), static_cast<int64_t>(names.size()),
                       positions.isNull() ? nullptr : &view, options.get()));
  return save(model, options);
}

// [[Rcpp::export(rng = false)]]
Rcpp::List core_model_pretrain(const Rcpp::RawVector &start, const Rcpp::RObject &values,
                               const Rcpp::CharacterVector &settings, SEXP progress,
                               const Rcpp::Nullable<Rcpp::Environment> &store) {
  return train(start, values, settings, progress, store, cape_model_pretrain);
}

// values as in core_model_pretrain(); targets: cells x 1 classes, from 0, or cells x names.
// [[Rcpp::export(rng = false)]]
Rcpp::List core_model_finetune(const Rcpp::RawVector &start, const Rcpp::RObject &values,
                               const std::string &kind, const Rcpp::CharacterVector &names,
                               const arma::mat &targets, const Rcpp::CharacterVector &settings,
                               SEXP progress, const Rcpp::Nullable<Rcpp::Environment> &store) {
  const std::vector<const char *> told = texts(names);
  const cape_matrix_view known =
      CAPE_MATRIX_VIEW(targets.memptr(), static_cast<int64_t>(targets.n_rows),
                       static_cast<int64_t>(targets.n_cols));
  const cape_targets given{sizeof given, kind.c_str(), told.data(),
                           static_cast<int64_t>(told.size()), &known};
  return train(start, values, settings, progress, store,
               [&](cape_model **out, const cape_model *from, const cape_cells *cells,
                   cape_checkpoint *checkpoint, const cape_options *options) {
                 return cape_model_finetune(out, from, cells, &given, checkpoint, options);
               });
}

// cells x what the model tells.
// [[Rcpp::export(rng = false)]]
arma::mat core_model_tell(const Rcpp::RawVector &bytes, const Rcpp::RObject &values,
                          const Rcpp::CharacterVector &settings, SEXP progress) {
  Options options(settings, progress);
  Model model;
  load(model, bytes, options);
  const Cells cells(values);
  arma::mat out(static_cast<arma::uword>(cells.n_cells()),
                static_cast<arma::uword>(describe(model).n_targets));
  check(cape_model_tell(out.memptr(), static_cast<int64_t>(out.n_rows),
                        static_cast<int64_t>(out.n_cols), model.get(), cells.get(),
                        options.get()));
  return out;
}

// A model of the state of scGPT or scBERT, as bytes of our own.
// [[Rcpp::export(rng = false)]]
Rcpp::RawVector core_model_load_state(const Rcpp::RawVector &state, const std::string &format,
                                      const Rcpp::CharacterVector &vocabulary,
                                      const Rcpp::CharacterVector &settings) {
  Options options(settings, R_NilValue);
  const std::vector<const char *> names = texts(vocabulary);
  Model model;
  const auto load = format == "scgpt" ? cape_model_load_scgpt : cape_model_load_scbert;
  check(load(model.out(), state.begin(), state.size(), names.data(),
             static_cast<int64_t>(names.size()), options.get()));
  return save(model, options);
}

// What a model is: names of features and of what it tells, options, numbers.
// [[Rcpp::export(rng = false)]]
Rcpp::List core_model_describe(const Rcpp::RawVector &bytes) {
  Options options;
  Model model;
  load(model, bytes, options);
  const cape_model_info info = describe(model);
  const Rcpp::CharacterVector features = names_of(info.n_features, [&](const char **out, int64_t i) {
    return cape_model_feature(out, model.get(), i);
  });
  const Rcpp::CharacterVector targets = names_of(info.n_targets, [&](const char **out, int64_t i) {
    return cape_model_target(out, model.get(), i);
  });
  Handle<cape_options, cape_options_free> own;
  check(cape_options_new(own.out()));
  check(cape_model_get_options(own.get(), model.get()));
  return Rcpp::List::create(Rcpp::_["features"] = features,
                            Rcpp::_["targets"] = targets,
                            Rcpp::_["target_kind"] = info.target_kind,
                            Rcpp::_["options"] = option_values(own.get()),
                            Rcpp::_["n_parameters"] = static_cast<double>(info.n_parameters),
                            Rcpp::_["n_position_columns"] =
                                static_cast<double>(info.n_position_columns));
}

// cells x width.
// [[Rcpp::export(rng = false)]]
arma::mat core_model_embed_cells(const Rcpp::RawVector &bytes, const Rcpp::RObject &values,
                                 const std::string &pooling, const Rcpp::CharacterVector &settings,
                                 SEXP progress) {
  Options options(settings, progress);
  Model model;
  load(model, bytes, options);
  const Cells cells(values);
  arma::mat out(static_cast<arma::uword>(cells.n_cells()),
                static_cast<arma::uword>(describe(model).width));
  check(cape_model_embed_cells(out.memptr(), static_cast<int64_t>(out.n_rows),
                               static_cast<int64_t>(out.n_cols), model.get(), cells.get(),
                               pooling.c_str(), options.get()));
  return out;
}

// features x width.
// [[Rcpp::export(rng = false)]]
arma::mat core_model_embed_features(const Rcpp::RawVector &bytes, const Rcpp::RObject &values,
                                    const Rcpp::CharacterVector &settings, SEXP progress) {
  Options options(settings, progress);
  Model model;
  load(model, bytes, options);
  const Cells cells(values);
  arma::mat out(static_cast<arma::uword>(cells.n_features()),
                static_cast<arma::uword>(describe(model).width));
  check(cape_model_embed_features(out.memptr(), static_cast<int64_t>(out.n_rows),
                                  static_cast<int64_t>(out.n_cols), model.get(), cells.get(),
                                  options.get()));
  return out;
}

// (features + 1) x features; block from 0, or -1.
// [[Rcpp::export(rng = false)]]
arma::mat core_model_attention(const Rcpp::RawVector &bytes, const Rcpp::RObject &values, int block,
                               const Rcpp::CharacterVector &settings, SEXP progress) {
  Options options(settings, progress);
  Model model;
  load(model, bytes, options);
  const Cells cells(values);
  const auto n = static_cast<arma::uword>(cells.n_features());
  arma::mat out(n + 1, n);
  check(cape_model_attention(out.memptr(), static_cast<int64_t>(out.n_rows),
                             static_cast<int64_t>(out.n_cols), model.get(), cells.get(), block,
                             options.get()));
  return out;
}

// [[Rcpp::export(rng = false)]]
Rcpp::NumericVector core_model_hidden_loss(const Rcpp::RawVector &bytes,
                                           const Rcpp::RObject &values,
                                           const Rcpp::CharacterVector &settings, SEXP progress) {
  Options options(settings, progress);
  Model model;
  load(model, bytes, options);
  const Cells cells(values);
  double loss = 0, relative = 0;
  check(cape_model_hidden_loss(&loss, &relative, model.get(), cells.get(), options.get()));
  return Rcpp::NumericVector::create(Rcpp::_["loss"] = loss, Rcpp::_["relative"] = relative);
}

// [[Rcpp::export(rng = false)]]
Rcpp::NumericVector core_model_memory(const Rcpp::RawVector &bytes,
                                      const Rcpp::CharacterVector &settings) {
  Options options(settings, R_NilValue);
  Model model;
  load(model, bytes, options);
  double training = 0, embedding = 0;
  check(cape_model_memory(&training, &embedding, model.get(), options.get()));
  return Rcpp::NumericVector::create(Rcpp::_["pretrain"] = training, Rcpp::_["embed"] = embedding);
}
