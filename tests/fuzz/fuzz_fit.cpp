// Small fits with what is known before and options of any kind, from memory and from a row source,
// and embeddings of graphs that the caller brings.
#include "look.hpp"

using fuzz::Input;

namespace {

cape_options* options_of(Input& in) {
  static constexpr const char* settings[][2] = {{"dag.sem", "linear"},
                                                {"dag.sem", "paper"},
                                                {"dag.sem", "literal"},
                                                {"dag.constraint", "logdet"},
                                                {"dag.refine", "always"},
                                                {"dag.refine", "never"},
                                                {"dag.standardize", "true"},
                                                {"dag.missing", "mask"},
                                                {"dag.precision", "double"},
                                                {"dag.precision", "float"},
                                                {"dag.lambda", "0"},
                                                {"dag.lambda", "1e300"},
                                                {"dag.l2", "1e300"},
                                                {"dag.threshold", "0"},
                                                {"dag.threshold", "1e308"},
                                                {"dag.candidates", "1"},
                                                {"dag.candidates", "1000000"},
                                                {"dag.rank", "1"},
                                                {"dag.rank", "1000000000"},
                                                {"dag.batch_size", "1"},
                                                {"dag.batch_size", "1000000000"},
                                                {"dag.learning_rate", "1e300"},
                                                {"dag.learning_rate", "1e-300"},
                                                {"dag.rho_growth", "1e300"},
                                                {"dag.rho_interval", "1"},
                                                {"dag.rho_max", "1e308"},
                                                {"dag.h_tolerance", "0"},
                                                {"dag.refine_t", "0"},
                                                {"dag.refine_t", "1e308"},
                                                {"dag.refine_window", "1000000000"},
                                                {"dag.refine_window", "0"},
                                                {"embed.objective", "literal"},
                                                {"embed.objective", "effect"},
                                                {"embed.objective", "symmetric"},
                                                {"embed.optimizer", "rsgd"},
                                                {"embed.space", "euclidean"},
                                                {"embed.hop_cost", "0"},
                                                {"embed.hop_cost", "100"},
                                                {"embed.soft_temperature", "0.01"},
                                                {"embed.soft_temperature", "1000"},
                                                {"embed.temperature", "0.01"},
                                                {"embed.temperature", "100"},
                                                {"embed.rank_weight", "1000"},
                                                {"embed.rank_temperature", "0.0001"},
                                                {"embed.level_weight", "1000"},
                                                {"embed.level_spread", "10"},
                                                {"embed.generality_weight", "1000"},
                                                {"embed.restart", "0.999999"},
                                                {"embed.restart", "0.01"},
                                                {"embed.k_hop", "1000"},
                                                {"embed.tolerance", "1"},
                                                {"embed.learning_rate", "1e6"},
                                                {"embed.negatives", "1"},
                                                {"embed.negatives", "40"},
                                                {"embed.positives", "1"},
                                                {"embed.positives", "10000"},
                                                {"embed.max_radius", "30"},
                                                {"embed.max_radius", "1e-300"},
                                                {"embed.start", "random"},
                                                {"embed.start", "scaling"},
                                                {"embed.burn_in", "10000000"},
                                                {"rotary.scale", "1e308"},
                                                {"rotary.scale", "5e-324"},
                                                {"run.seed", "9007199254740992"},
                                                {"run.threads", "2"}};
  cape_options* o = nullptr;
  MUST(cape_options_new, &o);
  const auto set = [o](const char* key, const char* value) {
    MUST(cape_options_set_text, o, key, value);
  };
  set("dag.epochs", in.flip() ? "1" : "3");
  set("dag.hidden", "2");
  set("dag.refine_epochs", "1");
  set("dag.refine_hidden", "2");
  set("embed.epochs", in.flip() ? "2" : "6");
  set("embed.dims", in.flip() ? "1" : "3");
  for (std::int64_t i = in.in(0, 3); i > 0; --i) {
    const auto& setting = in.one_of(settings);
    set(setting[0], setting[1]);
  }
  return o;
}

void own_graph(Input& in, const cape_options* options) {
  const std::int64_t n = in.in(0, 9), e = in.in(0, 16);
  std::vector<std::int64_t> from = in.indices(e, n), to(from);
  for (std::size_t i = 0; i < to.size(); ++i)
    to[i] = n > 1 && from[i] >= 0 ? (from[i] % n + 1 + static_cast<std::int64_t>(i) % (n - 1)) % n
                                  : in.integer();
  const std::vector<double> weight = in.numbers(e);
  cape_dag* dag = nullptr;
  if (!CALL(cape_dag_from_edges, &dag, n, from.data(), to.data(), weight.data(), e)) return;
  fuzz::look(dag);
  cape_embedding* embedding = nullptr;
  if (CALL(cape_embedding_fit, &embedding, dag, options)) {
    const cape_embedding_info info = fuzz::look(embedding);
    std::vector<double> angles(static_cast<std::size_t>(n * info.n_dims));
    FINITE(angles, cape_rotary_angles, angles.data(), n, info.n_dims, embedding,
           in.flip() ? 0.5 : in.number());
  }
  cape_embedding_free(embedding);
  std::vector<double> rank(static_cast<std::size_t>(n)), data(static_cast<std::size_t>(4 * n));
  if (CALL(cape_pagerank, rank.data(), n, dag, 0.15) && n > 0) {
    double sum = 0;
    for (const double v : rank) sum += v;
    if (!(std::fabs(sum - 1) < 1e-6)) fuzz::fail("cape_pagerank", "the sum is not 1");
  }
  FINITE(data, cape_simulate_data, data.data(), 4, n, dag, options);
  cape_dag_free(dag);
}

std::vector<double> table(Input& in, std::int64_t n, std::int64_t m) {
  std::vector<double> x(static_cast<std::size_t>(n * m));
  std::uint64_t state = in.bits(4);
  for (double& v : x) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    v = static_cast<double>(state >> 11) / 4503599627370496.0 - 1;
  }
  const std::int64_t kind = in.in(0, 9);
  for (std::int64_t j = 1; j < m; ++j)
    for (std::int64_t i = 0; i < n; ++i) {
      double& v = x[static_cast<std::size_t>(j * n + i)];
      switch (kind) {
      case 1: v = x[static_cast<std::size_t>(i)]; break;
      case 2: v = 3; break;
      case 3: v *= 1e150; break;
      case 4: v *= 1e-200; break;
      case 5: v = v > 0; break;
      case 6: v *= j == 1 ? 1e8 : 1; break;
      default: v += x[static_cast<std::size_t>((j - 1) * n + i)];
      }
    }
  for (std::int64_t i = in.in(0, 3); i > 0; --i)
    x[static_cast<std::size_t>(in.in(0, std::ssize(x) - 1))] = in.number();
  return x;
}

void know(Input& in, cape_prior* prior, std::int64_t n, std::int64_t m) {
  const std::int64_t count = in.in(0, 4);
  const auto a = in.indices(count, m), b = in.indices(count, m);
  const auto shares = [&in](std::int64_t size) {
    std::vector<double> out(static_cast<std::size_t>(size));
    for (double& v : out)
      v = in.one_in(16) ? in.number() : static_cast<double>(in.in(0, 255)) / 255;
    return out;
  };
  switch (in.in(0, 12)) {
  case 0: CALL(cape_prior_require, prior, a.data(), b.data(), count); break;
  case 1: CALL(cape_prior_forbid, prior, a.data(), b.data(), count); break;
  case 2: CALL(cape_prior_tiers, prior, in.indices(m, 3).data(), m); break;
  case 3: CALL(cape_prior_roots, prior, a.data(), count); break;
  case 4: CALL(cape_prior_leaves, prior, a.data(), count); break;
  case 5: CALL(cape_prior_regulators, prior, a.data(), count); break;
  case 6: {
    const std::vector<double> factor = shares(m * m);
    const cape_matrix_view view = CAPE_MATRIX_VIEW(factor.data(), m, m);
    CALL(cape_prior_penalty, prior, &view);
    break;
  }
  case 7: CALL(cape_prior_start, prior, a.data(), b.data(), in.numbers(count).data(), count); break;
  case 8: CALL(cape_prior_row_weights, prior, shares(n).data(), n); break;
  case 9: CALL(cape_prior_batches, prior, in.indices(n, 2).data(), n); break;
  case 10: CALL(cape_prior_perturb, prior, in.indices(count, n).data(), a.data(), count); break;
  case 11: {
    const std::int64_t k = in.in(1, 3);
    const std::vector<double> values = in.one_in(4) ? in.numbers(n * k) : shares(n * k);
    const cape_matrix_view view = CAPE_MATRIX_VIEW(values.data(), n, k);
    CALL(cape_prior_covariates, prior, &view);
    break;
  }
  default: CALL(cape_prior_require, prior, nullptr, nullptr, in.in(-1, 2));
  }
}

struct Source {
  const std::vector<double>& x;
  std::int64_t rows, columns, calls_left; ///< -1: any number
};

int read_rows(double* out, const std::int64_t* rows, std::int64_t n, void* context) {
  auto& source = *static_cast<Source*>(context);
  if (source.calls_left >= 0 && source.calls_left-- == 0) return 1;
  for (std::int64_t j = 0; j < source.columns; ++j)
    for (std::int64_t i = 0; i < n; ++i) {
      if (rows[i] < 0 || rows[i] >= source.rows)
        fuzz::fail("source.read", "a row that there is not");
      out[j * n + i] = source.x[static_cast<std::size_t>(j * source.rows + rows[i])];
    }
  return 0;
}

void fit(Input& in, const cape_options* options) {
  const std::int64_t n = in.in(8, 16), m = in.in(1, 5);
  const std::vector<double> x = table(in, n, m);
  const cape_matrix_view view = CAPE_MATRIX_VIEW(x.data(), n, m);
  cape_prior* prior = nullptr;
  MUST(cape_prior_new, &prior);
  for (std::int64_t i = in.in(0, 3); i > 0; --i) know(in, prior, n, m);
  if (in.one_in(4)) {
    Source source{x, n, m, in.one_in(6) ? in.in(0, 20) : -1};
    const cape_row_source rows{sizeof rows, n, m, read_rows, &source};
    cape_dag* dag = nullptr;
    if (CALL(cape_dag_learn_rows, &dag, &rows, prior, options)) fuzz::look(dag);
    cape_dag_free(dag);
  } else {
    cape_result* result = nullptr;
    if (CALL(cape_fit_with, &result, &view, prior, options)) {
      fuzz::look(result);
      const cape_dag* dag = nullptr;
      MUST(cape_result_dag, &dag, result);
      cape_threshold_suggestion suggestion{};
      suggestion.struct_size = sizeof suggestion;
      if (in.flip() && CALL(cape_dag_suggest_threshold, &suggestion, dag, &view, options) &&
          !std::isfinite(suggestion.threshold))
        fuzz::fail("cape_dag_suggest_threshold", "a threshold that is not finite");
    }
    cape_result_free(result);
  }
  cape_prior_free(prior);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input in(data, size);
  cape_options* options = options_of(in);
  if (in.one_in(3))
    own_graph(in, options);
  else
    fit(in, options);
  cape_options_free(options);
  return 0;
}
