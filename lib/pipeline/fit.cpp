module;
#include <cstdint>
#include <new>
#include <typeinfo>
#include <utility>
module cape.pipeline;

namespace cape {
namespace {

// Before Step I spends minutes, find out whether Step III will refuse its options.
void check_all(Options options) { check_options(fields(options)); }

GraphFit embed(const Digraph& graph, const Options& options, Run& run) {
  GraphFit out{};
  out.embedding = embed_dag(graph, options.embed, run);
  out.angles = rotary_angles(out.embedding.poincare, options.rotary.scale);
  return out;
}

Fit position(Dag dag, const Options& options, Run& run) {
  GraphFit rest = embed(dag.graph, options, run);
  return {std::move(dag), std::move(rest.embedding), std::move(rest.angles)};
}

} // namespace

Fit fit(const MatrixView& x, const Options& options, Run& run) {
  return fit(x, {}, {}, options, run);
}

Fit fit(const MatrixView& x, const Knowledge& knowledge, const Design& design,
        const Options& options, Run& run) {
  check_all(options);
  return position(learn_dag(x, knowledge, design, options.dag, run), options, run);
}

Fit fit(const MatrixView& x, const Knowledge& knowledge, const Design& design,
        const Options& options, Run& run, Checkpoint& checkpoint) {
  check_all(options);
  return position(learn_dag(x, knowledge, design, options.dag, run, checkpoint), options, run);
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
  return embed(graph, options, run);
}

} // namespace cape
