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

} // namespace

Fit fit(const MatrixView& x, const Options& options, Run& run) {
  return fit(x, {}, {}, options, run);
}

Fit fit(const MatrixView& x, const Knowledge& knowledge, const Design& design,
        const Options& options, Run& run) {
  check_all(options);
  Fit out{};
  out.dag = learn_dag(x, knowledge, design, options.dag, run);
  GraphFit rest = embed(out.dag.graph, options, run);
  out.embedding = std::move(rest.embedding);
  out.angles = std::move(rest.angles);
  return out;
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
