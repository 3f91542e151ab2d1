// A program outside the tree: simulate, fit, compare.
#include <cstdio>

import cape;

int main() {
  cape::Run run(/*seed=*/1);
  const cape::Digraph truth = cape::simulate_dag(6, {}, run.seed());
  const cape::Matrix x = cape::simulate_data(truth, 200, {}, run.seed());

  cape::Options options;
  options.dag.epochs = 5;
  options.dag.refine = cape::Refine::never;
  options.embed.dims = 4;
  options.embed.epochs = 20;
  const cape::Fit fit = cape::fit(x, options, run);
  const cape::GraphMetrics metrics = cape::compare_graphs(fit.dag.graph, truth);

  std::printf("structural Hamming distance %lld\n", static_cast<long long>(metrics.shd));
  return cape::is_acyclic(fit.dag.graph) && fit.angles.rows() == 6 ? 0 : 1;
}
