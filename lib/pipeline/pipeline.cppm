// cape.pipeline: preprocess, Step I, II and III in one call, and the registry of all their options.
module;
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>
export module cape.pipeline;
import cape.core;
import cape.graph;
import cape.simulate;
import cape.preprocess;
import cape.dag;
import cape.hyperbolic;
import cape.rotary;
import cape.transformer;

export namespace cape {

/// Seed and threads, for callers that keep everything in one set of options.
struct RunOptions {
  std::int64_t seed = 1;
  std::int64_t threads = 1;
};
OptionFields fields(RunOptions& options);

/// The options of every stage.
struct Options {
  RunOptions run;
  PreprocessOptions preprocess;
  DagOptions dag;
  EmbedOptions embed;
  RotaryOptions rotary;
  GraphOptions graph; ///< simulation of a graph
  DataOptions data;   ///< simulation of data
  BackboneOptions model;
  PretrainOptions pretrain;
  FinetuneOptions finetune;
};
/// The registry: all options, in pipeline order ("run.", "preprocess.", "dag.", "embed.",
/// "rotary.", "simulate.", "model.", "pretrain.", "finetune."). Bound to `options`, which must
/// outlive it.
OptionFields fields(Options& options);

/// The entry of a registry with this key. Error(invalid_argument) naming the key and the keys that
/// there are.
const OptionField& find_option(const OptionFields& fields, std::string_view key);

/// Set an option by its key from text ("0.02", "true", "linear", "nan" for automatic). Error
/// (invalid_argument) naming the key, the value and what would be right; `options` is then
/// unchanged.
void set_option(Options& options, std::string_view key, std::string_view value);

/// What Step II embeds of what Step I has learned: its graph, or covered_graph(), as
/// options.coverage asks for.
Digraph graph_to_embed(const Dag& dag, const EmbedOptions& options);

/// Everything that a run gives.
struct Fit {
  Dag dag;
  Embedding embedding;
  Matrix angles; ///< M x d
};

/// Where an interrupted fit() can go on: in Step I, or after it in Step II.
struct FitCheckpoint {
  Checkpoint dag, embedding;
};

/// Steps I to III on a table of observations x features, with what is known before, as learn_dag()
/// and embed_dag() take it and with their errors. All options are checked before the work begins;
/// seed and threads are those of `run`, here and below, and not of options.run. checkpoint: null,
/// or where the fit goes on and what it keeps up to date, see learn_dag() and embed_dag().
Fit fit(const MatrixView& x, const Options& options, Run& run, const Prior& prior = {},
        FitCheckpoint* checkpoint = nullptr);

/// Preprocess, then Steps I to III.
struct CountsFit {
  Preprocessed data;
  Fit fit;
};
CountsFit fit_counts(const SparseView& counts, const Options& options, Run& run);

/// Steps II and III on a graph that the user brings.
struct GraphFit {
  Embedding embedding;
  Matrix angles;
};
GraphFit fit_graph(const Digraph& graph, const Options& options, Run& run);

/// What a fit of n observations x m features will need. Seconds are a rough figure for one thread
/// of a present CPU, from the flop counts; bytes are the largest working set, the table included.
struct Estimate {
  double bytes = 0;
  double seconds = 0;
};
Estimate estimate(std::int64_t n, std::int64_t m, const Options& options);

} // namespace cape
