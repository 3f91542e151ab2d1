module;
#include <cstdint>
#include <functional>
#include <new>
#include <typeinfo>
#include <utility>
#include <variant>
module cape.pipeline;

namespace cape {
namespace {

// Before Step I spends minutes, find out whether Step III will refuse its options.
void check_all(Options options) { check_options(fields(options)); }

Matrix angles_of(const Embedding& embedding, const Options& options) {
  return rotary_angles(embedding.poincare, options.rotary.scale);
}

Fit put_together(Dag dag, Embedding embedding, const Options& options) {
  Matrix angles = angles_of(embedding, options);
  return {std::move(dag), std::move(embedding), std::move(angles)};
}

} // namespace

Fit fit(const MatrixView& x, const Options& options, Run& run) {
  return fit(x, {}, {}, options, run);
}

Fit fit(const MatrixView& x, const Knowledge& knowledge, const Design& design,
        const Options& options, Run& run) {
  check_all(options);
  Dag dag = learn_dag(x, knowledge, design, options.dag, run);
  Embedding embedding = embed_dag(dag.graph, options.embed, run);
  return put_together(std::move(dag), std::move(embedding), options);
}

Fit fit(const MatrixView& x, const Knowledge& knowledge, const Design& design,
        const Options& options, Run& run, FitCheckpoint& checkpoint) {
  check_all(options);
  Dag dag = learn_dag(x, knowledge, design, options.dag, run, checkpoint.dag);
  Embedding embedding = embed_dag(dag.graph, options.embed, run, checkpoint.embedding);
  return put_together(std::move(dag), std::move(embedding), options);
}

CountsFit fit_counts(const SparseView& counts, const Options& options, Run& run) {
  check_all(options);
  CountsFit out{};
  out.data = preprocess(counts, options.preprocess, run);
  out.fit = fit(out.data.x, options, run);
  return out;
}

GraphFit fit_graph(const Digraph& graph, const Options& options, Run& run) {
  check_all(options);
  GraphFit out{};
  out.embedding = embed_dag(graph, options.embed, run);
  out.angles = angles_of(out.embedding, options);
  return out;
}

} // namespace cape
