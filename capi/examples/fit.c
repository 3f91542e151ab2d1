/* fit.c: learn a causal graph from a table and print its edges.
 *   cc fit.c $(pkg-config --cflags --libs cape) -o fit && ./fit table.csv
 * table.csv: a line with the names of the columns, then one line of numbers per observation. */
#include <cape/cape.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char** argv) {
  static char header[1 << 20], line[1 << 20], *names[4096], *at, *end;
  double* x = NULL; /* n x m, row by row */
  int64_t n = 0, m = 0, from[4096], to[4096];
  double weight[4096];
  FILE* file = argc == 2 ? fopen(argv[1], "r") : NULL;
  if (!file || !fgets(header, sizeof header, file)) return fprintf(stderr, "no table\n"), 2;
  for (char* name = strtok(header, ",\r\n"); name && m < 4096; name = strtok(NULL, ",\r\n"))
    names[m++] = name;
  for (; (at = fgets(line, sizeof line, file)) != NULL; ++n) {
    x = realloc(x, (size_t)((n + 1) * m) * sizeof *x);
    for (int64_t j = 0; j < m; ++j, at = end + (*end == ','))
      if ((x[n * m + j] = strtod(at, &end)), end == at)
        return fprintf(stderr, "line %d, column %d: no number\n", (int)n + 2, (int)j + 1), 2;
  }
  fclose(file);
  cape_matrix_view table = CAPE_ROW_MATRIX_VIEW(x, n, m);
  cape_options* options = NULL;
  cape_result* result = NULL;
  const cape_dag* dag = NULL;
  cape_dag_info info = {.struct_size = sizeof info};
  if (cape_options_new(&options) || cape_fit(&result, &table, options) ||
      cape_result_dag(&dag, result) || cape_dag_describe(&info, dag) ||
      cape_dag_edges(from, to, weight, 4096, dag))
    return fprintf(stderr, "%s\n", cape_last_error()), 1;
  for (int64_t e = 0; e < info.n_edges; ++e)
    printf("%s -> %s %.3f\n", names[from[e]], names[to[e]], weight[e]);
  cape_result_free(result), cape_options_free(options), free(x);
}
