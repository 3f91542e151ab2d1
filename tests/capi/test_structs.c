/* struct_size: an older client has fewer fields, a newer one is refused. */
#include "check.h"
#include <stddef.h>

/* Up to and with this field. */
#define SIZE_WITH(type, field) (offsetof(type, field) + sizeof(((type*)0)->field))

static void inputs(void) {
  double x[N_ROWS * N_COLS];
  fill_chain(x);
  cape_options* o = quick_options();
  cape_dag *full = NULL, *older = NULL;
  cape_matrix_view view = CAPE_MATRIX_VIEW(x, N_ROWS, N_COLS);
  CHECK_OK(cape_dag_learn(&full, &view, o));

  view.struct_size = SIZE_WITH(cape_matrix_view, ld); /* knows no layout: column-major */
  view.layout = CAPE_ROW_MAJOR;
  CHECK_OK(cape_dag_learn(&older, &view, o));
  double a[16], b[16];
  CHECK_OK(cape_dag_weights(a, N_COLS, N_COLS, full));
  CHECK_OK(cape_dag_weights(b, N_COLS, N_COLS, older));
  CHECK(memcmp(a, b, sizeof a) == 0);
  cape_dag_free(full);
  cape_dag_free(older);

  view.struct_size = sizeof view + 8;
  CHECK_ERROR(cape_dag_learn(&older, &view, o), CAPE_UNSUPPORTED, "struct_size");
  const size_t cut[] = {0, 4, sizeof(size_t) + 1, sizeof view - 4, sizeof view - 1};
  for (size_t i = 0; i < sizeof cut / sizeof *cut; ++i) {
    view.struct_size = cut[i];
    CHECK_ERROR(cape_dag_learn(&older, &view, o), CAPE_INVALID_ARGUMENT, "struct_size");
  }
  view.struct_size = sizeof view;
  view.reserved = 1; /* what a later version may mean by it is not ignored */
  CHECK_ERROR(cape_dag_learn(&older, &view, o), CAPE_UNSUPPORTED, "reserved");

  cape_table* table = NULL;
  cape_sparse_view sparse = {.struct_size = sizeof sparse + 8};
  CHECK_ERROR(cape_preprocess_sparse(&table, &sparse, o), CAPE_UNSUPPORTED, "struct_size");
  sparse.struct_size = sizeof sparse;
  sparse.reserved = -1;
  CHECK_ERROR(cape_preprocess_sparse(&table, &sparse, o), CAPE_UNSUPPORTED, "reserved");
  sparse.struct_size = 0;
  CHECK_ERROR(cape_preprocess_sparse(&table, &sparse, o), CAPE_INVALID_ARGUMENT, "struct_size");

  /* A client that knows neither angle_heads nor scale gets theirs by default. */
  const double q[] = {1, 2}, v[] = {3, 4, 5, 6};
  const double k[] = {1, 0, 0, 1};
  double expected[2] = {0}, got[2] = {0};
  cape_attention_shape shape = CAPE_ATTENTION_SHAPE(1, 1, 1, 2, 2);
  CHECK_OK(cape_attention(expected, NULL, &shape, q, k, v, NULL, NULL, NULL, NULL));
  shape.struct_size = SIZE_WITH(cape_attention_shape, head_dim);
  shape.angle_heads = -1;
  shape.scale = 1e9;
  CHECK_OK(cape_attention(got, NULL, &shape, q, k, v, NULL, NULL, NULL, NULL));
  CHECK(memcmp(expected, got, sizeof got) == 0);
  shape.struct_size = sizeof shape + 1;
  CHECK_ERROR(cape_attention(got, NULL, &shape, q, k, v, NULL, NULL, NULL, NULL), CAPE_UNSUPPORTED,
              "struct_size");
  cape_options_free(o);
}

/* Whether the bytes from `known` on still are what they were filled with. */
static int rest_is(const void* object, size_t known, size_t size, unsigned char fill) {
  const unsigned char* bytes = object;
  for (size_t i = known; i < size; ++i)
    if (bytes[i] != fill) return 0;
  return 1;
}

/* call fills `object`: all of it, the part that an older client knows, nothing for a newer one. */
#define CHECK_OUTPUT(type, last_known, call)                                    \
  do {                                                                          \
    type object, all;                                                           \
    memset(&object, 0xA5, sizeof object);                                       \
    object.struct_size = sizeof object;                                         \
    CHECK_OK(call);                                                             \
    CHECK(object.struct_size == sizeof object);                                 \
    all = object;                                                               \
    memset(&object, 0xA5, sizeof object);                                       \
    object.struct_size = SIZE_WITH(type, last_known);                           \
    CHECK_OK(call);                                                             \
    CHECK(object.struct_size == SIZE_WITH(type, last_known));                   \
    CHECK(memcmp((char*)&object + sizeof(size_t), (char*)&all + sizeof(size_t), \
                 SIZE_WITH(type, last_known) - sizeof(size_t)) == 0);           \
    CHECK(rest_is(&object, SIZE_WITH(type, last_known), sizeof object, 0xA5));  \
    object.struct_size = sizeof object + 8;                                     \
    CHECK_ERROR(call, CAPE_UNSUPPORTED, "struct_size");                         \
    object.struct_size = 0;                                                     \
    CHECK_ERROR(call, CAPE_INVALID_ARGUMENT, "struct_size");                    \
    object.struct_size = SIZE_WITH(type, last_known) - 4;                       \
    CHECK_ERROR(call, CAPE_INVALID_ARGUMENT, "struct_size");                    \
    CHECK(rest_is(&object, SIZE_WITH(type, last_known), sizeof object, 0xA5));  \
  } while (0)

static void outputs(void) {
  double x[N_ROWS * N_COLS];
  fill_chain(x);
  const cape_matrix_view view = CAPE_MATRIX_VIEW(x, N_ROWS, N_COLS);
  cape_options* o = quick_options();
  cape_result* result = NULL;
  const cape_dag* dag = NULL;
  const cape_embedding* embedding = NULL;
  CHECK_OK(cape_fit(&result, &view, o));
  CHECK_OK(cape_result_dag(&dag, result));
  CHECK_OK(cape_result_embedding(&embedding, result));
  CHECK_OUTPUT(cape_option_desc, type, cape_option_info(&object, 0));
  CHECK_OUTPUT(cape_dag_info, n_edges, cape_dag_describe(&object, dag));
  CHECK_OUTPUT(cape_embedding_info, n_dims, cape_embedding_describe(&object, embedding));
  CHECK_OUTPUT(cape_graph_metrics, correct, cape_compare_graphs(&object, dag, dag));
  cape_result_free(result);
  cape_options_free(o);
}

int main(void) {
  inputs();
  outputs();
  return n_failed != 0;
}
