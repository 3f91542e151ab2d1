/* A program in C outside the tree. */
#include <cape/cape.h>
#include <stdio.h>
#include <string.h>

int main(void) {
  const int64_t from[] = {0, 1}, to[] = {1, 2};
  const double weight[] = {1, 1};
  double rank[3];
  cape_dag* dag = NULL;
  if (cape_abi_version() != CAPE_ABI_VERSION || cape_self_test() != CAPE_OK ||
      cape_dag_from_edges(&dag, 3, from, to, weight, 2) != CAPE_OK ||
      cape_pagerank(rank, 3, dag, 0.15) != CAPE_OK) {
    fprintf(stderr, "%s\n", cape_last_error());
    return 1;
  }
  cape_dag_free(dag);
  printf("%s\nPageRank of a chain: %.6f %.6f %.6f\n", cape_build_info(), rank[0], rank[1], rank[2]);
  return strcmp(cape_blas_kernel(), cape_blas_best_kernel()) != 0 ||
         !(rank[0] > rank[1] && rank[1] > rank[2]);
}
