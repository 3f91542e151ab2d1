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

} // namespace

Digraph graph_to_embed(const Dag& dag, const EmbedOptions& options) {
  return options.coverage == Coverage::support ? covered_graph(dag) : dag.graph;
}

Fit fit(const MatrixView& x, const Options& options, Run& run, const Prior& prior,
        FitCheckpoint* checkpoint) {
  check_all(options);
  Dag dag = learn_dag(x, options.dag, run, prior, checkpoint ? &checkpoint->dag : nullptr);
  const Digraph graph = graph_to_embed(dag, options.embed);
  Embedding embedding = checkpoint ? embed_dag(graph, options.embed, run, checkpoint->embedding)
                                   : embed_dag(graph, options.embed, run);
  Matrix angles = angles_of(embedding, options);
  return {std::move(dag), std::move(embedding), std::move(angles)};
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
