/* dlclose() after calls with two threads: their threads, and the caller's that end later, go on.
 * Usage: test_capi_unload LIBCAPE */
#include <cape/cape.h>
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>

enum { N = 100, M = 4 };
static const char* path;
static double values[N * M];

#define FUNCTION(name) __typeof__(name)* const p_##name = (__typeof__(name)*)dlsym(library, #name)

static int fit(void* library) {
  FUNCTION(cape_options_new);
  FUNCTION(cape_options_set_i64);
  FUNCTION(cape_options_free);
  FUNCTION(cape_fit);
  FUNCTION(cape_result_free);
  const cape_matrix_view x = CAPE_MATRIX_VIEW(values, N, M);
  cape_options* options = NULL;
  cape_result* result = NULL;
  p_cape_options_new(&options);
  p_cape_options_set_i64(options, "dag.epochs", 2);
  p_cape_options_set_i64(options, "embed.epochs", 5);
  p_cape_options_set_i64(options, "embed.dims", 4);
  p_cape_options_set_i64(options, "run.threads", 2);
  const cape_status status = p_cape_fit(&result, &x, options);
  p_cape_result_free(result);
  p_cape_options_free(options);
  return status;
}

static pthread_barrier_t fitted, closed;

static void* fit_and_end_later(void* library) {
  const int status = fit(library);
  pthread_barrier_wait(&fitted);
  pthread_barrier_wait(&closed);
  return status == CAPE_OK ? NULL : library;
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  path = argv[1];
  for (int i = 0; i < N * M; ++i) values[i] = sin(i * i) + (i >= N ? values[i - N] : 0);
  for (int round = 0; round < 5; ++round) {
    void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) return puts(dlerror()), 1;
    if (fit(library) != CAPE_OK) return puts("the fit failed"), 1;
    dlclose(library);
  }
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  pthread_t thread;
  pthread_barrier_init(&fitted, NULL, 2);
  pthread_barrier_init(&closed, NULL, 2);
  pthread_create(&thread, NULL, fit_and_end_later, library);
  pthread_barrier_wait(&fitted);
  dlclose(library);
  pthread_barrier_wait(&closed);
  void* failed = NULL;
  pthread_join(thread, &failed); /* its destructors of thread-local data ran */
  return failed != NULL;
}
