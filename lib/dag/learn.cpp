module;
#include "internal/message.hpp"
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <new>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <typeinfo>
#include <utility>
#include <variant>
#include <vector>
module cape.dag;
#include "dag/adaptive_penalty.hpp"
#include "dag/augmented_lagrangian.hpp"
#include "dag/bags.hpp"
#include "dag/contexts.hpp"
#include "dag/covariates.hpp"
#include "dag/cost.hpp"
#include "dag/edge_factors.hpp"
#include "dag/edge_lists.hpp"
#include "dag/false_discovery.hpp"
#include "dag/low_rank.hpp"
#include "dag/options.hpp"
#include "dag/order_search.hpp"
#include "dag/partner_tests.hpp"
#include "dag/partners.hpp"
#include "dag/prior.hpp"
#include "dag/pruning.hpp"
#include "dag/row_design.hpp"
#include "dag/row_source.hpp"
#include "dag/screening.hpp"
#include "dag/support.hpp"
#include "dag/threshold.hpp"
#include "dag/warnings.hpp"

namespace cape {
namespace {

constexpr std::int64_t min_rows = 10, min_columns = 2;
constexpr double least_strength = 0.01; ///< of an edge that is there

// The refinement of few columns.
TestedGraph refine_by_search(const sem::Table& table, const EdgeFactors& known,
                             const SparseMatrix& weights, const DagOptions& options, Run& run,
                             Journal* journal) {
  const std::int64_t m = table.features();
  Matrix strength = to_matrix(weights);
  for (double& value : std::span(strength.data(), static_cast<std::size_t>(strength.size())))
    value = std::fabs(value);
  const Matrix read = table.values().empty() ? table.spaced_rows(table.rows(), run) : Matrix();
  return refine(read.empty() ? table.values() : read, table.missing(), strength,
                factor_matrix(known, {}, m, m), options.standardize, options, run, journal);
}

void keep_refined(const TestedGraph& tested, const std::vector<std::int64_t>& columns, Dag& dag,
                  Run& run) {
  const auto column = [&](std::int64_t feature) {
    return columns[static_cast<std::size_t>(feature)];
  };
  const std::vector<Edge>& kept = tested.edges.kept;
  dag.refined = true;
  std::vector<Edge> statistic = tested.edges.tested;
  std::erase_if(statistic, [](const Edge& e) { return e.weight == 0; });
  dag.statistic = scatter(statistic, columns, dag.weights.rows, run);
  std::map<std::pair<std::int64_t, std::int64_t>, double> strength;
  for (const Edge& e : tested.edges.strength) strength[{e.from, e.to}] = e.weight;
  const Pairs required = pairs_of(dag.required);
  std::vector<Edge> edges;
  dag.effective_threshold = kept.empty() ? dag.threshold : std::numeric_limits<double>::infinity();
  for (const Edge& e : kept) {
    const double sign = dag.sign(column(e.from), column(e.to));
    const bool is_required = required.contains({column(e.from), column(e.to)});
    const double size =
        std::max(strength.at({e.from, e.to}),
                 is_required ? std::max(dag.threshold, least_strength) : least_strength);
    edges.push_back({column(e.from), column(e.to), sign < 0 ? -size : size});
    dag.effective_threshold = std::min(dag.effective_threshold, std::fabs(edges.back().weight));
  }
  dag.graph = Digraph(dag.weights.rows, std::move(edges));
  dag.order.clear();
  for (const std::int64_t node : tested.order) dag.order.push_back(column(node));
  dag.order.insert(dag.order.end(), dag.constant.begin(), dag.constant.end());
}

// The weights that the tests look at: not what no bag found.
SparseMatrix testable(SparseMatrix weights, const sem::BaggedModel& bagged) {
  if (bagged.share.empty()) return weights;
  for (std::int64_t j = 0; j < weights.cols; ++j)
    for (auto e = static_cast<std::size_t>(weights.offsets[static_cast<std::size_t>(j)]);
         e < static_cast<std::size_t>(weights.offsets[static_cast<std::size_t>(j) + 1]); ++e)
      if (bagged.share(weights.indices[e], j) == 0) weights.values[e] = 0;
  return weights;
}

// A required edge cannot be honoured in a column without variance.
void check_required(const Dag& dag) {
  for (const Edge& e : dag.required)
    for (const std::int64_t j : {e.from, e.to})
      if (std::ranges::find(dag.constant, j) != dag.constant.end())
        throw Error(Status::invalid_argument,
                    "column " + std::to_string(j) +
                        " (counted from 0) has a required edge but no variance");
}

// The edges to start from, by input and effect: those between features of the table that the effect
// can have.
std::vector<Edge> starting_edges(const Knowledge& knowledge, const sem::Table& table,
                                 const sem::Causes& causes, std::int64_t columns) {
  const std::vector<Edge> between =
      edges_between(knowledge.start, inverse_numbering(columns, table.columns()));
  if (causes.empty()) return between;
  std::vector<Edge> edges;
  for (const Edge& e : between) {
    const std::int64_t *first = causes.column(e.to), *last = first + causes.rows();
    if (const std::int64_t* c = std::lower_bound(first, last, e.from); c != last && *c == e.from)
      edges.push_back({c - first, e.to, e.weight});
  }
  return edges;
}

// What lambda counts for every cause of every effect: what is known, and what these rows show.
// Models that are not made of edge weights, or are the paper's word for word, take none of the
// latter.
Matrix penalty_factors(const sem::Table& table, std::span<const std::int64_t> rows,
                       const sem::Causes& causes, const Matrix& known, const DagOptions& options,
                       Run& run) {
  if (options.rank > 0 || options.sem == Sem::literal) return known;
  Matrix factor = sem::adaptive_factors(table, rows, causes, run);
  if (!known.empty())
    std::transform(known.data(), known.data() + known.size(), factor.data(), factor.data(),
                   std::multiplies<>());
  return factor;
}

// Of all that the training depends on.
std::uint64_t fit_id(const sem::Table& table, const Matrix& weight, const sem::Causes& causes,
                     const Matrix& factor, const std::vector<Edge>& start, DagOptions options,
                     std::uint64_t seed) {
  std::string text = std::to_string(seed) + " " + std::to_string(table.content());
  for (std::int64_t c = 0; c < causes.size(); ++c) text += " " + std::to_string(causes.data()[c]);
  for (const Matrix* m : {&weight, &factor}) {
    const std::span values(m->data(), static_cast<std::size_t>(m->size()));
    text += " " + std::to_string(m->rows()) + " " + std::to_string(hash(values));
  }
  const sem::Mask& missing = table.missing();
  text += " " + std::to_string(
                    hash(std::vector<double>(missing.data(), missing.data() + missing.size())));
  for (const Edge& e : start)
    text += " " + std::to_string(e.from) + " " + std::to_string(e.to) + " " +
            std::to_string(hash(std::span(&e.weight, 1)));
  for (const OptionField& field : fields(options)) text += " " + option_text(field);
  return hash(text);
}

// What does not depend on the data: before anything is read.
void check_request(std::int64_t rows, std::int64_t columns, const Knowledge& knowledge,
                   DagOptions options) {
  check_options(fields(options));
  trains_in_float(options); // may refuse
  sem::check_low_rank(columns, knowledge, options);
  if (rows < min_rows || columns < min_columns)
    throw Error(Status::invalid_argument,
                "x needs at least 2 features with variance and 10 observations; got " +
                    std::to_string(columns) + " and " + std::to_string(rows));
  check_knowledge(knowledge, columns);
}

std::string task(std::int64_t rows, std::int64_t columns) {
  return "learning a graph of " + std::to_string(columns) + " features from " +
         std::to_string(rows) + " observations";
}

// weight: that of the table. target: of its last columns, see with_contexts().
Dag learn(const sem::Table& table, const Matrix& weight, const Knowledge& knowledge,
          std::span<const std::int64_t> target, const DagOptions& options, Run& run,
          Checkpoint* checkpoint) {
  const std::int64_t n = table.rows(), m = table.features(), columns = table.source_columns();
  const bool in_memory = !table.values().empty();
  Dag dag;
  sem::check_low_rank(m, knowledge, options); // again: constant columns do not count
  dag.required = distinct(knowledge.required);
  dag.center = table.center();
  dag.scale = table.scale();
  dag.deviation = table.deviation();
  dag.constant = table.constant();
  check_required(dag);
  const std::vector<std::int64_t>& exogenous = table.exogenous();
  if (options.rank > 0 && !exogenous.empty())
    throw Error(Status::invalid_argument,
                message("the equation of column ", exogenous.front(),
                        " (counted from 0) holds in fewer than 10 rows or only where it does not "
                        "vary, so that it can have no causes; dag.rank is ",
                        options.rank, " and must be 0 for that"));
  const EdgeFactors known(knowledge, columns, table.columns(), exogenous);
  dag.collinear = table.collinear_pairs(run);
  const std::int64_t inputs = inputs_of_effect(options, m);
  sem::Causes causes;
  if (inputs < m)
    causes = in_memory ? sem::screen(table.values(), known, inputs, run)
                       : sem::screen(table.spaced_rows(sem::screened_rows(n, m), run), known,
                                     inputs, run);
  const Matrix factor = factor_matrix(known, causes, inputs, m);
  const std::vector<Edge> start = starting_edges(knowledge, table, causes, columns);
  if (checkpoint)
    checkpoint->claim(fit_id(table, weight, causes, factor, start, options, run.seed()),
                      "table, knowledge, options or seed");
  const std::int64_t bags = sem::bag_count(options, n, m);
  DagOptions fitted = options;
  if (bags > 0) fitted.epochs = sem::bag_epochs(options);
  dag.lambda = lambda_of(options, bags > 0 ? sem::bag_rows(n) : n, m);
  const sem::Training train = [&](std::span<const std::int64_t> rows, Run& own,
                                  const sem::Place& place) {
    return sem::train(table, rows, causes, dag.lambda,
                      penalty_factors(table, rows, causes, factor, options, own), start, fitted,
                      own, place);
  };
  sem::BaggedModel bagged;
  if (bags > 0) {
    bagged = sem::train_bags(table, bags, options, train, run, checkpoint);
  } else {
    std::vector<std::int64_t> all(static_cast<std::size_t>(n));
    std::iota(all.begin(), all.end(), std::int64_t{0});
    bagged.mean = train(all, run, {checkpoint});
  }
  sem::TrainedModel& trained = bagged.mean;
  Journal* journal = checkpoint ? &checkpoint->journal : nullptr;
  dag.history = std::move(trained.history);
  dag.h = trained.h;
  dag.converged = trained.h <= h_tolerance_of(options, m);
  dag.weights = scatter(edges_of(trained.edges.weights), table.columns(), columns, run);
  dag.sign = scatter(edges_of(trained.edges.sign), table.columns(), columns, run);
  dag.support = scatter(edges_of(sem::support_of(trained.edges.weights, table, known, run)),
                        table.columns(), columns, run);
  dag.partners =
      scatter(sem::partners_of(table, causes, known, run), table.columns(), columns, run);
  dag.bags = bags;
  if (bags > 0) dag.bag_share = scatter(edges_of(bagged.share), table.columns(), columns, run);

  std::vector<std::int64_t> visit = table.columns();
  visit.insert(visit.end(), dag.constant.begin(), dag.constant.end());
  if (tests_sample(options, m) && weight.empty())
    dag.suggestion = suggest_threshold(table, edges_of(dag.weights), options, run, journal);
  set_pruned_graph(dag,
                   dag.suggestion.effects > 0 ? dag.suggestion.threshold : threshold_of(options),
                   visit, run);

  const bool wanted_refinement = refines(options, m);
  if (wanted_refinement && weight.empty()) {
    const bool searches = searches_order(options, n, m);
    if (searches) check_memory(16 * static_cast<double>(n) * static_cast<double>(m), task(n, m));
    const SparseMatrix tested_weights = testable(trained.edges.weights, bagged);
    TestedGraph tested =
        searches
            ? refine_by_search(table, known, tested_weights, options, run, journal)
            : refine_along_weights(
                  table, edges_of(scatter(edges_of(tested_weights), table.columns(), columns, run)),
                  known, options, run, journal);
    if (options.refine_fdr < 1) {
      Discoveries found =
          limit_false_discoveries(tested.edges.kept, options.refine_fdr, table, known, run);
      tested.edges.kept = std::move(found.kept);
      dag.false_discovery_rate = found.false_share;
      dag.tested_pairs = found.pairs;
    }
    keep_refined(tested, table.columns(), dag, run);
  }
  if (!target.empty()) dag = without_contexts(std::move(dag), target, run);
  add_warnings(options, n, wanted_refinement && !dag.refined, exogenous, dag);
  return dag;
}

Dag learn(const MatrixView& x_in, const Prior& prior, std::span<const std::int64_t> target,
          const DagOptions& options, Run& run, Checkpoint* checkpoint) {
  check_memory(learn_dag_memory(x_in.rows, x_in.cols, options), task(x_in.rows, x_in.cols));
  const std::vector<std::int64_t> rows = counted_rows(x_in, prior.design, options.missing);
  const bool any_missing = check_values(x_in, rows, options.missing);
  const bool all = std::ssize(rows) == x_in.rows;
  const Matrix some = all ? Matrix() : rows_of(x_in, rows);
  const MatrixView given = all ? x_in : MatrixView(some);
  const Design design = design_of_rows(prior.design, rows);
  Matrix weight = equation_weights(given.rows, given.cols, design);
  drop_equations(given, design, weight);
  Matrix adjusted;
  if (!design.batch.empty() || !design.covariates.empty())
    adjusted = center_batches(given, weight, design);
  if (!design.covariates.empty()) take_out_covariates(adjusted, weight, design, run);
  const MatrixView x = adjusted.empty() ? given : MatrixView(adjusted);
  const RowSource source = source_of(x);
  sem::Table table(source, weight, options.standardize, true, run);
  if (any_missing) table.impute(design, options, run);
  return learn(table, weight, prior.knowledge, target, options, run, checkpoint);
}

} // namespace

Dag learn_dag(const MatrixView& x, const DagOptions& options, Run& run, const Prior& prior,
              Checkpoint* checkpoint) {
  check_view(x, "x");
  check_request(x.rows, x.cols, prior.knowledge, options);
  check_design(prior.design, x.rows, x.cols);
  if (prior.design.targeted.empty()) return learn(x, prior, {}, options, run, checkpoint);
  if (options.rank > 0)
    throw Error(Status::invalid_argument, message("dag.rank is ", options.rank,
                                                  "; with targets of interventions it must be 0"));
  const WithContexts wide = with_contexts(x, prior);
  return learn(wide.x, wide.prior, wide.target, options, run, checkpoint);
}

Dag learn_dag(const RowSource& source, const DagOptions& options, Run& run,
              const Knowledge& knowledge, Checkpoint* checkpoint) {
  checked_size(source.rows, source.columns, "source");
  check_request(source.rows, source.columns, knowledge, options);
  if (!source.read) throw Error(Status::invalid_argument, "source has no function that reads rows");
  check_memory(learn_dag_memory(source.rows, source.columns, options) -
                   table_bytes(source.rows, source.columns),
               task(source.rows, source.columns));
  const RowSource safe = checked(source);
  const Matrix equal;
  return learn(sem::Table(safe, equal, options.standardize, false, run), equal, knowledge, {},
               options, run, checkpoint);
}

} // namespace cape
