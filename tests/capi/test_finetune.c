/* Models that tell something of cells: fine-tuned, applied, saved, and asked in wrong ways. */
#include "check.h"

enum { CELLS = 60, FEATURES = 5, CLASSES = 2, NUMBERS = 2 };

static const char* const names[FEATURES] = {"a", "b", "c", "d", "e"};
static const char* const sorts[CLASSES] = {"low", "h\xc3\xb6her"};
static const char* const measures[NUMBERS] = {"sum", "age"};
static double values[CELLS * FEATURES], sort[CELLS], measured[CELLS * NUMBERS];
static const cape_matrix_view table = CAPE_ROW_MATRIX_VIEW(values, CELLS, FEATURES);
static const cape_matrix_view of_sort = CAPE_ROW_MATRIX_VIEW(sort, CELLS, 1);
static const cape_matrix_view of_measured = CAPE_ROW_MATRIX_VIEW(measured, CELLS, NUMBERS);
static const cape_cells cells = {sizeof cells, &table, NULL, NULL};
static const cape_targets classes = {sizeof classes, "classes", sorts, CLASSES, &of_sort};
static const cape_targets numbers = {sizeof numbers, "numbers", measures, NUMBERS, &of_measured};

static int stop_after(const cape_progress* p, void* ctx) {
  (void)p;
  return --*(int*)ctx < 0;
}

int main(void) {
  /* A cell is of the second class where the first feature is above 0; the first number is twice
   * the second feature, far from 0 and on a scale of its own. */
  uint64_t state = 11;
  for (int i = 0; i < CELLS * FEATURES; ++i) values[i] = noise(&state);
  for (int i = 0; i < CELLS; ++i) {
    sort[i] = values[i * FEATURES] > 0;
    measured[i * NUMBERS] = 1e4 + 200 * values[i * FEATURES + 1];
    measured[i * NUMBERS + 1] = noise(&state);
  }
  sort[3] = NAN; /* not known */
  measured[4] = NAN;

  cape_options* o = NULL;
  CHECK_OK(cape_options_new(&o));
  CHECK_OK(cape_options_set_i64(o, "model.width", 16));
  CHECK_OK(cape_options_set_i64(o, "model.feed_forward", 16));
  CHECK_OK(cape_options_set_i64(o, "model.blocks", 1));
  CHECK_OK(cape_options_set_str(o, "model.positions", "trained"));
  CHECK_OK(cape_options_set_f64(o, "model.dropout", 0));
  CHECK_OK(cape_options_set_i64(o, "finetune.epochs", 60));
  CHECK_OK(cape_options_set_f64(o, "finetune.learning_rate", 1e-2));
  CHECK_OK(cape_options_set_i64(o, "finetune.batch_cells", 8));
  cape_model *start = NULL, *model = NULL, *other = NULL;
  CHECK_OK(cape_model_new(&start, names, FEATURES, NULL, o));
  cape_model_info info = {.struct_size = sizeof info};
  CHECK_OK(cape_model_describe(&info, start));
  CHECK(info.n_targets == 0 && strcmp(info.target_kind, "none") == 0);
  double told[CELLS * CLASSES], again[CELLS * CLASSES];
  CHECK_ERROR(cape_model_tell(told, CELLS, CLASSES, start, &cells, o), CAPE_UNSUPPORTED, "fine-tuned");

  /* Classes: probabilities, of which the larger is right. */
  CHECK_OK(cape_model_finetune(&model, start, &cells, &classes, NULL, o));
  CHECK_OK(cape_model_describe(&info, model));
  CHECK(info.n_targets == CLASSES && strcmp(info.target_kind, "classes") == 0);
  CHECK(info.n_epochs >= 1 && info.best_epoch >= 1);
  const char* name = NULL;
  CHECK_OK(cape_model_target(&name, model, 1));
  CHECK(strcmp(name, sorts[1]) == 0);
  CHECK_ERROR(cape_model_target(&name, model, 2), CAPE_INVALID_ARGUMENT, "2 targets");
  CHECK(name == NULL);
  CHECK_OK(cape_model_tell(told, CELLS, CLASSES, model, &cells, o));
  int right = 0;
  for (int i = 0; i < CELLS; ++i) {
    CHECK(fabs(told[i] + told[CELLS + i] - 1) < 1e-6);
    right += (told[CELLS + i] > told[i]) == (values[i * FEATURES] > 0);
  }
  CHECK(right >= CELLS - 4);
  CHECK_ERROR(cape_model_tell(told, CELLS, 1, model, &cells, o), CAPE_DIM_MISMATCH, "60 x 2");

  /* Through a file, and after interruptions: the same bits. */
  int64_t size = 0;
  CHECK_OK(cape_model_save_size(&size, model, NULL));
  unsigned char* file = malloc((size_t)size);
  CHECK_OK(cape_model_save(file, size, model, NULL));
  CHECK_OK(cape_model_load(&other, file, size, NULL));
  free(file);
  CHECK_OK(cape_model_tell(again, CELLS, CLASSES, other, &cells, o));
  CHECK(memcmp(told, again, sizeof told) == 0);
  cape_model_free(other);
  cape_checkpoint* checkpoint = NULL;
  CHECK_OK(cape_checkpoint_new(&checkpoint));
  int left = 3, interruptions = 0;
  CHECK_OK(cape_options_set_progress(o, stop_after, &left));
  while (cape_model_finetune(&other, start, &cells, &classes, checkpoint, o) == CAPE_CANCELLED) {
    left = 3 + ++interruptions;
    CHECK(other == NULL);
  }
  CHECK_OK(cape_options_set_progress(o, NULL, NULL));
  CHECK_OK(cape_model_tell(again, CELLS, CLASSES, other, &cells, o));
  CHECK(memcmp(told, again, sizeof told) == 0);
  cape_model_free(other);
  /* The state of this training is not that of another. */
  CHECK_STATUS(cape_model_finetune(&other, start, &cells, &numbers, checkpoint, o),
               CAPE_INVALID_ARGUMENT);
  cape_checkpoint_free(checkpoint);

  /* Numbers, in their units; the head alone from a model that tells something else. */
  CHECK_OK(cape_model_finetune(&other, model, &cells, &numbers, NULL, o));
  CHECK_OK(cape_model_describe(&info, other));
  CHECK(info.n_targets == NUMBERS && strcmp(info.target_kind, "numbers") == 0);
  double measures_told[CELLS * NUMBERS];
  CHECK_OK(cape_model_tell(measures_told, CELLS, NUMBERS, other, &cells, o));
  double error = 0, spread = 0;
  for (int i = 0; i < CELLS; ++i) {
    const double true_one = 200 * values[i * FEATURES + 1];
    error += pow(measures_told[i] - 1e4 - true_one, 2);
    spread += true_one * true_one;
  }
  CHECK(error < 0.3 * spread);
  cape_model_free(other);

  /* Wrong targets. */
  other = NULL;
  cape_targets wrong = classes;
  wrong.kind = "class";
  CHECK_ERROR(cape_model_finetune(&other, start, &cells, &wrong, NULL, o), CAPE_INVALID_ARGUMENT,
              "targets->kind is \"class\"");
  wrong.kind = NULL;
  CHECK_NULL(cape_model_finetune(&other, start, &cells, &wrong, NULL, o), "targets->kind");
  wrong = classes;
  wrong.values = NULL;
  CHECK_NULL(cape_model_finetune(&other, start, &cells, &wrong, NULL, o), "targets->values");
  wrong = classes;
  wrong.values = &of_measured;
  CHECK_ERROR(cape_model_finetune(&other, start, &cells, &wrong, NULL, o), CAPE_DIM_MISMATCH,
              "2 columns");
  wrong = numbers;
  wrong.values = &of_sort;
  CHECK_ERROR(cape_model_finetune(&other, start, &cells, &wrong, NULL, o), CAPE_DIM_MISMATCH,
              "1 columns");
  wrong = classes;
  wrong.n_names = 1;
  CHECK_STATUS(cape_model_finetune(&other, start, &cells, &wrong, NULL, o), CAPE_INVALID_ARGUMENT);
  wrong = classes;
  wrong.struct_size = 0;
  CHECK_STATUS(cape_model_finetune(&other, start, &cells, &wrong, NULL, o), CAPE_INVALID_ARGUMENT);
  const cape_matrix_view few = CAPE_ROW_MATRIX_VIEW(sort, CELLS - 1, 1);
  wrong = classes;
  wrong.values = &few;
  CHECK_ERROR(cape_model_finetune(&other, start, &cells, &wrong, NULL, o), CAPE_DIM_MISMATCH, "59");
  sort[5] = 2;
  CHECK_ERROR(cape_model_finetune(&other, start, &cells, &classes, NULL, o), CAPE_INVALID_ARGUMENT,
              "target 5");
  for (int i = 0; i < CELLS; ++i) sort[i] = 1;
  CHECK_ERROR(cape_model_finetune(&other, start, &cells, &classes, NULL, o), CAPE_INVALID_ARGUMENT,
              "\"low\" has no cell");
  for (int i = 0; i < CELLS; ++i) sort[i] = NAN;
  CHECK_STATUS(cape_model_finetune(&other, start, &cells, &classes, NULL, o),
               CAPE_INVALID_ARGUMENT);
  CHECK_NULL(cape_model_finetune(&other, start, &cells, NULL, NULL, o), "targets");
  CHECK_NULL(cape_model_finetune(NULL, start, &cells, &classes, NULL, o), "out");
  CHECK_NULL(cape_model_tell(NULL, CELLS, CLASSES, model, &cells, o), "out");
  CHECK_ERROR(cape_options_set_i64(o, "finetune.blocks", -2), CAPE_INVALID_ARGUMENT,
              "finetune.blocks");
  CHECK(other == NULL);

  cape_model_free(start);
  cape_model_free(model);
  cape_options_free(o);
  return n_failed != 0;
}
