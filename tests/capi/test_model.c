/* Transformers over features: made, trained, applied, and asked in wrong ways. */
#include "check.h"

enum { CELLS = 30, FEATURES = 6, WIDTH = 16 };

static const char* const names[FEATURES] = {"a", "b", "c", "d", "\xc3\xa9", "f"};
static double values[CELLS * FEATURES], angles[FEATURES * 4];
static const cape_matrix_view table = CAPE_ROW_MATRIX_VIEW(values, CELLS, FEATURES);
static const cape_matrix_view positions = CAPE_ROW_MATRIX_VIEW(angles, FEATURES, 4);
static cape_cells dense = {sizeof(cape_cells), &table, NULL, NULL};

static int read_rows(double* out, const int64_t* rows, int64_t n, void* ctx) {
  for (int64_t j = 0; j < FEATURES; ++j)
    for (int64_t r = 0; r < n; ++r) out[j * n + r] = values[rows[r] * FEATURES + j];
  return ctx == NULL ? 0 : 1; /* gives up if it is told to */
}

static cape_options* small(void) {
  cape_options* o = NULL;
  CHECK_OK(cape_options_new(&o));
  CHECK_OK(cape_options_set_preset(o, "small"));
  CHECK_OK(cape_options_set_i64(o, "model.width", WIDTH));
  CHECK_OK(cape_options_set_i64(o, "model.feed_forward", 16));
  CHECK_OK(cape_options_set_i64(o, "pretrain.epochs", 3));
  CHECK_OK(cape_options_set_i64(o, "pretrain.batch_cells", 8));
  return o;
}

static int cancel_later(const cape_progress* p, void* ctx) {
  (void)p;
  return --*(int*)ctx < 0;
}

int main(void) {
  uint64_t state = 3;
  for (int i = 0; i < CELLS * FEATURES; ++i) values[i] = noise(&state);
  for (int i = 0; i < FEATURES * 4; ++i) angles[i] = 0.2 * noise(&state);
  values[7] = NAN; /* missing */
  cape_options* o = small();

  cape_model *start = NULL, *model = NULL, *again = NULL, *streamed = NULL;
  CHECK_OK(cape_model_new(&start, names, FEATURES, &positions, o));
  cape_model_info info = {.struct_size = sizeof info};
  CHECK_OK(cape_model_describe(&info, start));
  CHECK(info.n_features == FEATURES && info.width == WIDTH && info.n_position_columns == 4);
  CHECK(info.n_epochs == 0 && info.n_parameters > 0);
  const char* name = NULL;
  CHECK_OK(cape_model_feature(&name, start, 4));
  CHECK(strcmp(name, "\xc3\xa9") == 0);
  CHECK_ERROR(cape_model_feature(&name, start, FEATURES), CAPE_INVALID_ARGUMENT, "i is 6");

  CHECK_OK(cape_model_pretrain(&model, start, &dense, NULL, o));
  CHECK_OK(cape_model_describe(&info, model));
  CHECK(info.n_epochs == 3 && info.best_epoch >= 1 && info.best_epoch <= 3);
  double history[3 * 4];
  CHECK_OK(cape_model_history(history, 3, 4, model));
  for (int i = 0; i < 12; ++i) CHECK(isfinite(history[i]));

  /* Rows from elsewhere, and after an interruption: the same bits. */
  cape_row_source source = {sizeof source, CELLS, FEATURES, read_rows, NULL};
  const cape_cells rows = {sizeof rows, NULL, NULL, &source};
  CHECK_OK(cape_model_pretrain(&streamed, start, &rows, NULL, o));
  cape_checkpoint* checkpoint = NULL;
  CHECK_OK(cape_checkpoint_new(&checkpoint));
  int left = 1;
  CHECK_OK(cape_options_set_progress(o, cancel_later, &left));
  const cape_status cut = cape_model_pretrain(&again, start, &dense, checkpoint, o);
  CHECK(cut == CAPE_CANCELLED || cut == CAPE_OK);
  cape_model_free(again);
  CHECK_OK(cape_options_set_progress(o, NULL, NULL));
  int64_t bytes = 0, epochs = 0;
  CHECK_OK(cape_checkpoint_size(&bytes, &epochs, checkpoint));
  unsigned char* kept = malloc((size_t)bytes);
  CHECK_OK(cape_checkpoint_save(kept, bytes, checkpoint));
  cape_checkpoint_free(checkpoint);
  CHECK_OK(cape_checkpoint_load(&checkpoint, kept, bytes));
  free(kept);
  CHECK_OK(cape_model_pretrain(&again, start, &dense, checkpoint, o));
  cape_checkpoint_free(checkpoint);
  double cells[CELLS * WIDTH], others[CELLS * WIDTH];
  CHECK_OK(cape_model_embed_cells(cells, CELLS, WIDTH, model, &dense, "cls", o));
  CHECK_OK(cape_model_embed_cells(others, CELLS, WIDTH, streamed, &rows, "cls", o));
  CHECK(memcmp(cells, others, sizeof cells) == 0);
  CHECK_OK(cape_model_embed_cells(others, CELLS, WIDTH, again, &dense, "cls", o));
  CHECK(memcmp(cells, others, sizeof cells) == 0);
  CHECK_OK(cape_model_embed_cells(others, CELLS, WIDTH, model, &dense, "mean", o));
  CHECK(memcmp(cells, others, sizeof cells) != 0);
  for (int i = 0; i < CELLS * WIDTH; ++i) CHECK(isfinite(cells[i]) && isfinite(others[i]));

  double vectors[FEATURES * WIDTH], map[(FEATURES + 1) * FEATURES];
  CHECK_OK(cape_model_embed_features(vectors, FEATURES, WIDTH, model, &dense, o));
  for (int i = 0; i < FEATURES * WIDTH; ++i) CHECK(isfinite(vectors[i]));
  CHECK_OK(cape_model_attention(map, FEATURES + 1, FEATURES, model, &dense, -1, o));
  for (int i = 0; i <= FEATURES; ++i) {
    double sum = 0;
    for (int j = 0; j < FEATURES; ++j) sum += map[j * (FEATURES + 1) + i];
    CHECK(sum > 0 && sum <= 1 + 1e-2); /* missing values shift means a little */
  }
  double loss = 0, relative = 0;
  CHECK_OK(cape_model_hidden_loss(&loss, &relative, model, &dense, o));
  CHECK(loss > 0 && relative > 0.1 && relative < 3); /* there is nothing to learn in noise */
  CHECK_NULL(cape_model_hidden_loss(NULL, &relative, model, &dense, o), "loss_out");
  double training = 0, embedding = 0;
  CHECK_OK(cape_model_memory(&training, &embedding, model, o));
  CHECK(training > 0 && embedding > 0);
  cape_options* of_model = NULL;
  CHECK_OK(cape_options_new(&of_model));
  CHECK_OK(cape_model_get_options(of_model, model));
  int64_t width = 0;
  CHECK_OK(cape_options_get_i64(&width, of_model, "model.width"));
  CHECK(width == WIDTH);

  /* There and back, to the bit; damaged files are refused. */
  int64_t size = 0;
  CHECK_OK(cape_model_save_size(&size, model, NULL));
  unsigned char* file = malloc((size_t)size + 1);
  file[size] = 0x5a;
  CHECK_OK(cape_model_save(file, size, model, NULL));
  CHECK(file[size] == 0x5a);
  CHECK_ERROR(cape_model_save(file, size - 1, model, NULL), CAPE_DIM_MISMATCH, "capacity");
  cape_model* loaded = NULL;
  CHECK_OK(cape_model_load(&loaded, file, size, NULL));
  CHECK_OK(cape_model_embed_cells(others, CELLS, WIDTH, loaded, &dense, "cls", o));
  CHECK(memcmp(cells, others, sizeof cells) == 0);
  CHECK_OK(cape_model_feature(&name, loaded, 4));
  CHECK(strcmp(name, "\xc3\xa9") == 0);
  cape_model_free(loaded);
  for (int64_t at = 0; at < size; at += 1 + size / 100) {
    CHECK_STATUS(cape_model_load(&loaded, file, at, NULL), CAPE_BAD_FORMAT);
    CHECK(loaded == NULL);
  }
  for (int64_t at = 8; at < 200; at += 7) { /* in the header */
    file[at] ^= 0x10;
    const cape_status status = cape_model_load(&loaded, file, size, NULL);
    CHECK(status == CAPE_BAD_FORMAT || status == CAPE_UNSUPPORTED || status == CAPE_OK);
    cape_model_free(loaded);
    file[at] ^= 0x10;
  }
  CHECK_NULL(cape_model_load(&loaded, NULL, 8, NULL), "bytes");
  free(file);

  /* What is wrong is told, and nothing is written. */
  cape_model* none = NULL;
  CHECK_ERROR(cape_options_set_preset(o, "bert"), CAPE_INVALID_ARGUMENT, "preset is \"bert\"");
  CHECK_NULL(cape_options_set_preset(o, NULL), "preset");
  const char* const twice[2] = {"a", "a"};
  const char* const lost[2] = {"a", NULL};
  CHECK_ERROR(cape_model_new(&none, twice, 2, NULL, o), CAPE_INVALID_ARGUMENT, "called \"a\"");
  CHECK_NULL(cape_model_new(&none, lost, 2, NULL, o), "features[1]");
  CHECK_ERROR(cape_model_new(&none, names, FEATURES, NULL, o), CAPE_DIM_MISMATCH, "positions");
  CHECK_ERROR(cape_model_new(&none, names, -1, NULL, o), CAPE_INVALID_ARGUMENT, "n_features");
  CHECK(none == NULL);
  cape_cells both = {sizeof both, &table, NULL, &source}, neither = {sizeof both, NULL, NULL, NULL};
  CHECK_ERROR(cape_model_pretrain(&none, start, &both, NULL, o), CAPE_INVALID_ARGUMENT,
              "cells has 2");
  CHECK_ERROR(cape_model_pretrain(&none, start, &neither, NULL, o), CAPE_INVALID_ARGUMENT,
              "cells has 0");
  CHECK_NULL(cape_model_pretrain(&none, start, NULL, NULL, o), "cells");
  CHECK_NULL(cape_model_pretrain(&none, NULL, &dense, NULL, o), "start");
  source.ctx = &source;
  CHECK_STATUS(cape_model_pretrain(&none, start, &rows, NULL, o), CAPE_IO);
  CHECK_ERROR(cape_model_embed_cells(cells, CELLS, WIDTH, model, &dense, "sum", o),
              CAPE_INVALID_ARGUMENT, "pooling is \"sum\"");
  CHECK_STATUS(cape_model_embed_cells(cells, CELLS, WIDTH + 1, model, &dense, "cls", o),
               CAPE_DIM_MISMATCH);
  CHECK_NULL(cape_model_embed_cells(NULL, CELLS, WIDTH, model, &dense, "cls", o), "out");
  CHECK_ERROR(cape_model_attention(map, FEATURES + 1, FEATURES, model, &dense, 2, o),
              CAPE_INVALID_ARGUMENT, "block is 2");
  CHECK_STATUS(cape_model_history(history, 2, 4, model), CAPE_DIM_MISMATCH);

  cape_model_free(start);
  cape_model_free(model);
  cape_model_free(again);
  cape_model_free(streamed);
  cape_model_free(NULL);
  cape_options_free(o);
  cape_options_free(of_model);
  return n_failed != 0;
}
