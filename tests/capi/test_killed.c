/* Trainings whose processes are killed (kill -9), each at a random call of its progress function,
 * go on from their checkpoint files to the same bits. Calls are counted, not timed, so that a slow
 * machine is tested as a fast one is. */
#ifdef __linux__
#define _XOPEN_SOURCE 700
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum { CELLS = 400, FEATURES = 12, WIDTH = 16, EPOCHS = 30, KILLS = 20 };

/* Where a call of the progress function ends the process. */
enum place { BEFORE_WRITE, WITHIN_WRITE, AFTER_WRITE, PLACES };

static char file[4096], new_file[sizeof file + 4];
static int64_t n_calls = 0, last_call = INT64_MAX;
static enum place place = BEFORE_WRITE;

static void die_at(enum place here) {
  if (n_calls == last_call && here == place) kill(getpid(), SIGKILL);
}

static void* read_file(const char* name, int64_t* bytes) {
  FILE* f = fopen(name, "rb");
  if (f == NULL) return NULL;
  CHECK(fseek(f, 0, SEEK_END) == 0);
  *bytes = ftell(f);
  rewind(f);
  void* out = malloc((size_t)*bytes + 1);
  CHECK(fread(out, 1, (size_t)*bytes, f) == (size_t)*bytes);
  fclose(f);
  return out;
}

/* The new file takes the place of the old one once it is whole. */
static void write_file(const void* data, int64_t bytes) {
  FILE* f = fopen(new_file, "wb");
  CHECK(f != NULL);
  const size_t half = (size_t)bytes / 2;
  CHECK(fwrite(data, 1, half, f) == half && fflush(f) == 0);
  die_at(WITHIN_WRITE);
  CHECK(fwrite((const char*)data + half, 1, (size_t)bytes - half, f) == (size_t)bytes - half);
  CHECK(fclose(f) == 0);
  CHECK(rename(new_file, file) == 0);
}

/* Saves at every call once an epoch is done. */
static int save(const cape_progress* progress, void* ctx) {
  const cape_checkpoint* checkpoint = ctx;
  int64_t bytes = 0, epochs = 0;
  (void)progress;
  ++n_calls;
  die_at(BEFORE_WRITE);
  CHECK_OK(cape_checkpoint_size(&bytes, &epochs, checkpoint));
  if (epochs > 0) {
    void* state = malloc((size_t)bytes);
    CHECK_OK(cape_checkpoint_save(state, bytes, checkpoint));
    write_file(state, bytes);
    free(state);
  }
  die_at(AFTER_WRITE);
  return 0;
}

/* The bytes of the model, from the checkpoint in the file if there is one. */
static unsigned char* trained(int64_t* bytes) {
  static const char* const names[FEATURES] = {"a", "b", "c", "d", "e", "f",
                                              "g", "h", "i", "j", "k", "l"};
  static double values[CELLS * FEATURES];
  uint64_t state = 3;
  for (int i = 0; i < CELLS * FEATURES; ++i) values[i] = noise(&state);
  const cape_matrix_view table = CAPE_ROW_MATRIX_VIEW(values, CELLS, FEATURES);
  const cape_cells cells = {sizeof cells, &table, NULL, NULL};
  cape_options* o = NULL;
  CHECK_OK(cape_options_new(&o));
  CHECK_OK(cape_options_set_i64(o, "model.width", WIDTH));
  CHECK_OK(cape_options_set_str(o, "model.positions", "trained"));
  CHECK_OK(cape_options_set_i64(o, "pretrain.epochs", EPOCHS));
  CHECK_OK(cape_options_set_i64(o, "pretrain.patience", EPOCHS));
  cape_model *start = NULL, *model = NULL;
  CHECK_OK(cape_model_new(&start, names, FEATURES, NULL, o));
  cape_checkpoint* checkpoint = NULL;
  int64_t kept = 0;
  void* before = read_file(file, &kept);
  if (before != NULL && kept > 0) {
    CHECK_OK(cape_checkpoint_load(&checkpoint, before, kept));
  } else {
    CHECK_OK(cape_checkpoint_new(&checkpoint));
  }
  free(before);
  CHECK_OK(cape_options_set_progress(o, save, checkpoint));
  CHECK_OK(cape_model_pretrain(&model, start, &cells, checkpoint, o));
  CHECK_OK(cape_model_save_size(bytes, model, o));
  unsigned char* out = malloc((size_t)*bytes);
  CHECK_OK(cape_model_save(out, *bytes, model, o));
  cape_checkpoint_free(checkpoint);
  cape_model_free(model);
  cape_model_free(start);
  cape_options_free(o);
  return out;
}

/* A training in a process of its own that kills itself at that call and place, from no checkpoint.
 * False if it came to its end before: calls are made at most so often a second, which makes more of
 * them in a slower run, and before the first checkpoint there is no write to be within. */
static int killed_at(int64_t call, enum place where) {
  unlink(file);
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    n_calls = 0;
    last_call = call;
    place = where;
    int64_t bytes = 0;
    free(trained(&bytes));
    _exit(n_failed);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) == 0);
  return WIFSIGNALED(status);
}

int main(void) {
  const char* folder = getenv("TMPDIR");
  const int length = snprintf(file, sizeof file, "%s/cape-killed-XXXXXX",
                              folder != NULL && *folder != '\0' ? folder : P_tmpdir);
  CHECK(length > 0 && (size_t)length < sizeof file);
  const int made = mkstemp(file);
  CHECK(made >= 0);
  close(made);
  snprintf(new_file, sizeof new_file, "%s.new", file);
  unlink(file);
  int64_t bytes = 0, resumed_bytes = 0;
  unsigned char* whole = trained(&bytes);
  const int64_t calls = n_calls;
  CHECK(calls > 0);
  if (n_failed > 0) return 1;

  srand((unsigned)getpid());
  int went_on = 0, kills = 0;
  for (int attempt = 0; attempt < 10 * KILLS && kills < KILLS; ++attempt) {
    const int64_t call = 1 + rand() % calls;
    const enum place where = rand() % PLACES;
    if (!killed_at(call, where)) continue;
    ++kills;
    went_on += access(file, R_OK) == 0;
    unsigned char* resumed = trained(&resumed_bytes);
    if (resumed_bytes != bytes || memcmp(resumed, whole, (size_t)bytes) != 0) {
      fprintf(stderr, "killed at call %lld of %lld, place %d: another model\n", (long long)call,
              (long long)calls, (int)where);
      ++n_failed;
    }
    free(resumed);
  }
  printf("%d trainings of %lld calls were killed, %d had a checkpoint\n", kills, (long long)calls,
         went_on);
  CHECK(kills == KILLS && went_on > 0);
  free(whole);
  unlink(file);
  unlink(new_file);
  return n_failed != 0;
}
#else
int main(void) { return 0; }
#endif
