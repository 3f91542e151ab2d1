/* Trainings whose processes are killed (kill -9), each at a random moment of its twentieth, go on
 * from their checkpoint files to the same bits. */
#ifdef __linux__
#define _POSIX_C_SOURCE 200809L
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

enum { CELLS = 400, FEATURES = 12, WIDTH = 16, EPOCHS = 30, KILLS = 20 };

static char file[] = "/tmp/cape-killed-XXXXXX", new_file[sizeof file + 4];

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
  CHECK(fwrite(data, 1, (size_t)bytes, f) == (size_t)bytes);
  CHECK(fclose(f) == 0);
  CHECK(rename(new_file, file) == 0);
}

/* At every step, so that many moments are within a write. */
static int save(const cape_progress* progress, void* ctx) {
  const cape_checkpoint* checkpoint = ctx;
  int64_t bytes = 0, epochs = 0;
  (void)progress;
  CHECK_OK(cape_checkpoint_size(&bytes, &epochs, checkpoint));
  if (epochs == 0) return 0;
  void* state = malloc((size_t)bytes);
  CHECK_OK(cape_checkpoint_save(state, bytes, checkpoint));
  write_file(state, bytes);
  free(state);
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

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A training in a process of its own, killed after so many seconds. Whether that was before its end. */
static int killed_after(double seconds) {
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    int64_t bytes = 0;
    free(trained(&bytes));
    _exit(n_failed);
  }
  const struct timespec wait = {(time_t)seconds, (long)(1e9 * (seconds - (double)(time_t)seconds))};
  nanosleep(&wait, NULL);
  kill(child, SIGKILL);
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
  return WIFSIGNALED(status);
}

int main(void) {
  const int made = mkstemp(file);
  CHECK(made >= 0);
  close(made);
  snprintf(new_file, sizeof new_file, "%s.new", file);
  int64_t bytes = 0, resumed_bytes = 0;
  unlink(file);
  const double begin = now();
  unsigned char* whole = trained(&bytes);
  const double seconds = now() - begin;
  if (n_failed > 0) return 1;

  srand((unsigned)getpid());
  int killed = 0, went_on = 0;
  for (int i = 0; i < KILLS; ++i) {
    unlink(file);
    const double after = seconds * (i + (double)rand() / RAND_MAX) / KILLS;
    killed += killed_after(after);
    went_on += access(file, R_OK) == 0;
    unsigned char* resumed = trained(&resumed_bytes);
    if (resumed_bytes != bytes || memcmp(resumed, whole, (size_t)bytes) != 0) {
      fprintf(stderr, "killed after %g of %g s: another model\n", after, seconds);
      ++n_failed;
    }
    free(resumed);
  }
  printf("%d of %d trainings of %.2f s were killed, %d had a checkpoint\n", killed, KILLS, seconds,
         went_on);
  CHECK(killed >= KILLS / 2 && went_on >= KILLS / 2);
  free(whole);
  unlink(file);
  unlink(new_file);
  return n_failed != 0;
}
#else
int main(void) { return 0; }
#endif
