/* Graphs, embeddings and results that are saved and loaded again. */
#include "check.h"

enum { N_DIMS = 4 };

typedef struct {
  unsigned char* bytes;
  int64_t n;
} saved;

#define SAVED(kind)                                                                               \
  static saved save_##kind(const cape_##kind* h) {                                                \
    saved s = {NULL, 0};                                                                          \
    CHECK_OK(cape_##kind##_save_size(&s.n, h));                                                   \
    s.bytes = malloc((size_t)s.n + 1);                                                            \
    s.bytes[s.n] = 0x5a;                                                                          \
    CHECK_OK(cape_##kind##_save(s.bytes, s.n, h));                                                \
    CHECK(s.bytes[s.n] == 0x5a);                                                                  \
    CHECK_ERROR(cape_##kind##_save(s.bytes, s.n - 1, h), CAPE_DIM_MISMATCH, "capacity");          \
    return s;                                                                                     \
  }                                                                                               \
  /* Loads what was saved: it is saved as the same bytes. Damaged ones are refused. */            \
  static void there_and_back_##kind(const cape_##kind* h) {                                       \
    saved s = save_##kind(h);                                                                     \
    cape_##kind* loaded = NULL;                                                                   \
    CHECK_OK(cape_##kind##_load(&loaded, s.bytes, s.n));                                          \
    saved again = save_##kind(loaded);                                                            \
    CHECK(again.n == s.n && memcmp(again.bytes, s.bytes, (size_t)s.n) == 0);                      \
    cape_##kind##_free(loaded);                                                                   \
    for (int64_t at = 0; at < s.n; at += 1 + s.n / 400) {                                         \
      s.bytes[at] ^= 0x10;                                                                        \
      CHECK_STATUS(cape_##kind##_load(&loaded, s.bytes, s.n), CAPE_BAD_FORMAT);                   \
      CHECK(loaded == NULL);                                                                      \
      s.bytes[at] ^= 0x10;                                                                        \
      CHECK_STATUS(cape_##kind##_load(&loaded, s.bytes, at), CAPE_BAD_FORMAT);                    \
    }                                                                                             \
    CHECK_STATUS(cape_##kind##_load(&loaded, s.bytes, s.n + 1), CAPE_BAD_FORMAT);                 \
    CHECK_STATUS(cape_##kind##_load(&loaded, s.bytes, -1), CAPE_BAD_FORMAT);                      \
    CHECK_NULL(cape_##kind##_load(&loaded, NULL, 8), "bytes");                                    \
    CHECK_NULL(cape_##kind##_load(NULL, s.bytes, s.n), "out");                                    \
    CHECK_NULL(cape_##kind##_save(NULL, s.n, h), "out");                                          \
    CHECK_NULL(cape_##kind##_save_size(NULL, h), "bytes_out");                                    \
    CHECK_NULL(cape_##kind##_save(s.bytes, s.n, NULL), #kind);                                    \
    free(again.bytes);                                                                            \
    free(s.bytes);                                                                                \
  }
SAVED(dag)
SAVED(embedding)
SAVED(result)

static double x[N_ROWS * N_COLS];
static const cape_matrix_view table = CAPE_MATRIX_VIEW(x, N_ROWS, N_COLS);

/* What can be asked of a learned graph is answered alike. */
static void same_dag(const cape_dag* a, const cape_dag* b) {
  cape_dag_info ia = {.struct_size = sizeof ia}, ib = {.struct_size = sizeof ib};
  CHECK_OK(cape_dag_describe(&ia, a));
  CHECK_OK(cape_dag_describe(&ib, b));
  CHECK(ib.learned == 1 && ia.n_edges == ib.n_edges && ia.h == ib.h && ia.lambda == ib.lambda);
  CHECK(ia.converged == ib.converged && ia.refined == ib.refined && ia.n_warnings == ib.n_warnings);
  double va[N_COLS * N_COLS], vb[N_COLS * N_COLS];
  CHECK_OK(cape_dag_weights(va, N_COLS, N_COLS, a));
  CHECK_OK(cape_dag_weights(vb, N_COLS, N_COLS, b));
  CHECK(memcmp(va, vb, sizeof va) == 0);
  CHECK_OK(cape_dag_statistic(va, N_COLS, N_COLS, a));
  CHECK_OK(cape_dag_statistic(vb, N_COLS, N_COLS, b));
  CHECK(memcmp(va, vb, sizeof va) == 0);
  int64_t oa[N_COLS], ob[N_COLS];
  CHECK_OK(cape_dag_order(oa, N_COLS, a));
  CHECK_OK(cape_dag_order(ob, N_COLS, b));
  CHECK(memcmp(oa, ob, sizeof oa) == 0);
  const char *wa = NULL, *wb = NULL;
  for (int64_t i = 0; i < ia.n_warnings; ++i) {
    CHECK_OK(cape_dag_warning(&wa, a, i));
    CHECK_OK(cape_dag_warning(&wb, b, i));
    CHECK(strcmp(wa, wb) == 0);
  }
  /* Pruning needs the weights before it. */
  cape_dag *pa = NULL, *pb = NULL;
  CHECK_OK(cape_dag_prune(&pa, a, 0.05, NULL));
  CHECK_OK(cape_dag_prune(&pb, b, 0.05, NULL));
  CHECK_OK(cape_dag_adjacency(va, N_COLS, N_COLS, pa));
  CHECK_OK(cape_dag_adjacency(vb, N_COLS, N_COLS, pb));
  CHECK(memcmp(va, vb, sizeof va) == 0);
  cape_dag_free(pa);
  cape_dag_free(pb);
}

int main(void) {
  fill_chain(x);
  cape_options* o = quick_options();
  CHECK_OK(cape_options_set_str(o, "dag.refine", "always"));
  CHECK_OK(cape_options_set_i64(o, "embed.dims", N_DIMS));
  cape_result* result = NULL;
  const cape_dag* dag = NULL;
  const cape_embedding* embedding = NULL;
  CHECK_OK(cape_fit(&result, &table, o));
  CHECK_OK(cape_result_dag(&dag, result));
  CHECK_OK(cape_result_embedding(&embedding, result));
  there_and_back_result(result);
  there_and_back_dag(dag);
  there_and_back_embedding(embedding);

  saved s = save_result(result);
  cape_result* loaded = NULL;
  CHECK_OK(cape_result_load(&loaded, s.bytes, s.n));
  const cape_dag* loaded_dag = NULL;
  const cape_embedding* loaded_embedding = NULL;
  CHECK_OK(cape_result_dag(&loaded_dag, loaded));
  CHECK_OK(cape_result_embedding(&loaded_embedding, loaded));
  same_dag(dag, loaded_dag);
  double a[N_COLS * N_DIMS], b[N_COLS * N_DIMS], rows[N_COLS * N_DIMS];
  float rows_f32[N_COLS * N_DIMS];
  CHECK_OK(cape_result_angles(a, N_COLS, N_DIMS, result));
  CHECK_OK(cape_result_angles(b, N_COLS, N_DIMS, loaded));
  CHECK(memcmp(a, b, sizeof a) == 0);
  CHECK_OK(cape_embedding_nodes(a, NULL, NULL, N_COLS, embedding));
  CHECK_OK(cape_embedding_nodes(b, NULL, NULL, N_COLS, loaded_embedding));
  CHECK(memcmp(a, b, N_COLS * sizeof *a) == 0);

  /* The rows of the angles, as attention takes them. */
  CHECK_OK(cape_result_angles(a, N_COLS, N_DIMS, result));
  CHECK_OK(cape_result_angles_by_row(rows, N_COLS, N_DIMS, result));
  CHECK_OK(cape_result_angles_by_row_f32(rows_f32, N_COLS, N_DIMS, result));
  for (int i = 0; i < N_COLS; ++i)
    for (int j = 0; j < N_DIMS; ++j) {
      CHECK(rows[i * N_DIMS + j] == a[j * N_COLS + i]);
      CHECK(rows_f32[i * N_DIMS + j] == (float)a[j * N_COLS + i]);
    }
  CHECK_STATUS(cape_result_angles_by_row(rows, N_DIMS, N_COLS + 1, result), CAPE_DIM_MISMATCH);
  CHECK_NULL(cape_result_angles_by_row(NULL, N_COLS, N_DIMS, result), "out");
  CHECK_NULL(cape_result_angles_by_row_f32(rows_f32, N_COLS, N_DIMS, NULL), "result");

  /* Bytes of one kind are not those of another; that of a graph that the caller brought. */
  cape_dag* none = NULL;
  CHECK_ERROR(cape_dag_load(&none, s.bytes, s.n), CAPE_BAD_FORMAT, "graph");
  const int64_t from[] = {0, 1, 2}, to[] = {1, 2, 0};
  const double weight[] = {1e300, -5e-324, 0.1};
  cape_dag *cycle = NULL, *empty = NULL;
  CHECK_OK(cape_dag_from_edges(&cycle, 5, from, to, weight, 3));
  there_and_back_dag(cycle);
  CHECK_OK(cape_dag_from_edges(&empty, 0, NULL, NULL, NULL, 0));
  there_and_back_dag(empty);
  cape_dag_free(cycle);
  cape_dag_free(empty);
  free(s.bytes);
  cape_result_free(loaded);
  cape_result_free(result);
  cape_options_free(o);
  return n_failed != 0;
}
