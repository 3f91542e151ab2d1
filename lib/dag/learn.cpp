module;
#include "internal/arma.hpp"
#include "internal/message.hpp"
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iomanip>
#include <limits>
#include <memory>
#include <new>
#include <numeric>
#include <span>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>
module cape.dag;

namespace cape {
namespace {

constexpr std::int64_t min_rows = 10, min_columns = 2;
constexpr std::int64_t most_refined = 5000; // columns: the time of the tests grows with them

// Whether regressions can tell the order of the columns.
bool identifiable(const DagOptions& options) {
  return options.sem == Sem::mlp || (options.sem == Sem::linear && !options.standardize);
}

// ------------------------------------------------------------------------------------------ table

// A difference of two such values is finite.
constexpr double largest_value = 1e300;

std::string value_text(double v) {
  if (std::isnan(v)) return "NaN";
  return std::isinf(v) ? v > 0 ? "Inf" : "-Inf" : message(v);
}

// Of these rows: infinity always fails, NaN unless it is masked. Whether any value is missing.
bool check_values(const MatrixView& x, std::span<const std::int64_t> rows, Missing missing) {
  bool any_missing = false;
  std::int64_t count = 0, row = 0, column = 0;
  for (std::int64_t j = 0; j < x.cols; ++j)
    for (const std::int64_t i : rows) {
      if (std::fabs(x(i, j)) <= largest_value) continue;
      const bool gap = std::isnan(x(i, j)) && missing == Missing::mask;
      any_missing |= gap;
      if (!gap && count++ == 0) row = i, column = j;
    }
  if (count > 0)
    throw Error(Status::invalid_argument,
                message("x has ", count, " value(s) that are not finite, or beyond ", largest_value,
                        "; the first is ", value_text(x(row, column)), " at row ", row + 1, ", column ",
                        column + 1, " (counted from 1)",
                        missing == Missing::mask ? "; only NaN can stand for a missing value" : ""));
  return any_missing;
}

std::vector<std::int64_t> all_rows(const MatrixView& x) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(x.rows));
  std::iota(rows.begin(), rows.end(), std::int64_t{0});
  return rows;
}

// The same source, whose values are looked at when they are read.
RowSource checked(const RowSource& source) {
  return {source.rows, source.columns,
          [&source](std::span<const std::int64_t> numbers, double* out) {
            source.read(numbers, out);
            const double* value = out;
            for (std::int64_t j = 0; j < source.columns; ++j)
              for (const std::int64_t row : numbers)
                if (const double v = *value++; !(std::fabs(v) <= largest_value))
                  throw Error(Status::invalid_argument,
                              message("x has a value that is not finite, or beyond ", largest_value,
                                      ": ", value_text(v), " at row ", row + 1, ", column ", j + 1,
                                      " (counted from 1)"));
          }};
}

// ------------------------------------------------------------------------------------------ result

// The largest of the M^2 correlations that are there by chance grows as sqrt(log M / N); below some
// thousand rows it is what the L1 term has to hold down.
double automatic_lambda(Sem sem, std::int64_t rows, std::int64_t features) {
  const double chance =
      std::sqrt(std::log(static_cast<double>(features)) / static_cast<double>(rows));
  switch (sem) {
  case Sem::linear:
  case Sem::paper: return std::max(0.05, 0.45 * chance);
  case Sem::literal: return 1;
  case Sem::mlp: break;
  }
  return std::max(0.02, 0.45 * chance);
}

// Entry (c, j) of a packed matrix belongs to column causes(c, j); without causes it is full.
std::int64_t cause(const sem::Causes& causes, std::int64_t c, std::int64_t j) {
  return causes.empty() ? c : causes(c, j);
}
Matrix pack(const EdgeFactors& known, const sem::Causes& causes, std::int64_t inputs,
            std::int64_t features) {
  if (known.empty()) return {};
  Matrix packed(inputs, features);
  for (std::int64_t j = 0; j < features; ++j) {
    const std::vector<double> factor = known.causes_of(j);
    for (std::int64_t c = 0; c < inputs; ++c)
      packed(c, j) = factor[static_cast<std::size_t>(cause(causes, c, j))];
  }
  return packed;
}

// Back to the numbers of the caller's columns; what was left out is 0.
SparseMatrix scatter(const std::vector<Edge>& edges, const std::vector<std::int64_t>& columns,
                     std::int64_t size, Run& run) {
  std::vector<std::vector<std::pair<std::int32_t, double>>> entries(static_cast<std::size_t>(size));
  for (const Edge& e : edges)
    entries[static_cast<std::size_t>(columns[static_cast<std::size_t>(e.to)])].emplace_back(
        columns[static_cast<std::size_t>(e.from)], e.weight);
  SparseMatrix out;
  out.rows = out.cols = size;
  out.offsets.push_back(0);
  for (auto& column : entries) {
    run.poll();
    std::ranges::sort(column);
    for (const auto& [row, value] : column) {
      out.indices.push_back(row);
      out.values.push_back(value);
    }
    out.offsets.push_back(std::ssize(out.values));
  }
  return out;
}

// The refinement of few columns.
TestedGraph search_and_test(const sem::Table& table, const EdgeFactors& known,
                            const SparseMatrix& weights, const DagOptions& options, Run& run,
                            Journal* journal) {
  const std::int64_t m = table.features();
  Matrix strength = to_matrix(weights);
  for (double& value : std::span(strength.data(), static_cast<std::size_t>(strength.size())))
    value = std::fabs(value);
  const Matrix read = table.values().empty() ? table.spaced_rows(table.rows(), run) : Matrix();
  Refinement refined =
      refine(read.empty() ? table.values() : read, table.missing(), strength, pack(known, {}, m, m),
             options.standardize, options, run, journal);
  TestedGraph result{{std::move(refined.kept), {}}, std::move(refined.order)};
  for (std::int64_t j = 0; j < m; ++j)
    for (std::int64_t i = 0; i < m; ++i)
      if (const double t = refined.statistic(i, j); t != 0)
        result.edges.tested.push_back({i, j, t});
  return result;
}

void keep_refined(const TestedGraph& tested, const std::vector<std::int64_t>& columns, Dag& dag,
                  Run& run) {
  const auto column = [&](std::int64_t feature) {
    return columns[static_cast<std::size_t>(feature)];
  };
  const std::vector<Edge>& kept = tested.edges.kept;
  dag.refined = true;
  dag.statistic = scatter(tested.edges.tested, columns, dag.weights.rows, run);
  std::vector<Edge> edges;
  dag.effective_threshold =
      kept.empty() ? dag.threshold : std::numeric_limits<double>::infinity();
  for (const Edge& e : kept) {
    edges.push_back(kept_edge(dag, column(e.from), column(e.to)));
    dag.effective_threshold = std::min(dag.effective_threshold, std::fabs(edges.back().weight));
  }
  dag.graph = Digraph(dag.weights.rows, std::move(edges));
  dag.order.clear();
  for (const std::int64_t node : tested.order) dag.order.push_back(column(node));
  dag.order.insert(dag.order.end(), dag.constant.begin(), dag.constant.end());
}

std::string number(double v) { return message(std::setprecision(3), v); }

void warn(const DagOptions& options, std::int64_t rows, bool not_refined,
          const std::vector<std::int64_t>& exogenous, Dag& dag) {
  const auto say = [&dag](std::string sentence) { dag.warnings.push_back(std::move(sentence)); };
  constexpr std::size_t shown = 5;
  const std::int64_t features = dag.graph.size() - std::ssize(dag.constant);
  const auto say_columns = [&](const std::vector<std::int64_t>& columns, const std::string& what) {
    if (columns.empty()) return;
    std::string list;
    for (std::size_t i = 0; i < std::min(shown, columns.size()); ++i)
      list += (i ? ", " : "") + std::to_string(columns[i] + 1);
    say(std::to_string(columns.size()) + " column(s) " + what + ": " + list +
        (columns.size() > shown ? ", ..." : "") + " (counted from 1).");
  };
  say_columns(dag.constant, "without variance are isolated in the result");
  say_columns(exogenous, "have no causes in the result, but those required, as their own equations hold "
                         "in fewer than 10 rows or only where they do not vary");
  if (!dag.collinear.empty()) {
    std::string list;
    for (std::size_t i = 0; i < std::min(shown, dag.collinear.size()); ++i)
      list += (i ? ", " : "") + std::to_string(dag.collinear[i].from + 1) + " and " +
              std::to_string(dag.collinear[i].to + 1);
    say(std::to_string(dag.collinear.size()) +
        " pair(s) of columns are exactly collinear, so the direction between them is arbitrary: " +
        list + (dag.collinear.size() > shown ? ", ..." : "") + " (counted from 1).");
  }
  if (options.sem == Sem::literal)
    say("The literal objective of the paper does not fix the scale of f and collapses to the empty "
        "graph; use sem mlp, linear or paper to learn a graph.");
  if (not_refined)
    say("The graph was not refined because values are perturbed or weighted.");
  if (!dag.converged)
    say("h(A) ended at " + number(dag.h) + ", above h_tolerance " +
        number(sem::h_tolerance(options, features)) +
        ": more epochs may bring it down, and so may standardize where columns differ in scale; "
        "the graph returned is acyclic all the same.");
  const double m = static_cast<double>(features);
  const double edges = static_cast<double>(dag.graph.edges().size());
  const std::string knobs =
      dag.refined
          ? "lambda (" + number(dag.lambda) + ") or refine_t (" +
                number(refinement_t(options, rows)) + ")"
          : "lambda (" + number(dag.lambda) + ") or threshold (" + number(dag.threshold) + ")";
  if (edges == 0)
    say("The graph has no edges: the columns look independent, or " + knobs + " is too high.");
  else if (edges > 0.25 * m * (m - 1))
    say("More than half of all pairs of columns are joined: " + knobs + " may be too low.");
}

// A required edge cannot be honoured in a column without variance.
void check_required(const Dag& dag) {
  for (const Edge& e : dag.required)
    for (const std::int64_t j : {e.from, e.to})
      if (std::ranges::find(dag.constant, j) != dag.constant.end())
        throw Error(Status::invalid_argument,
                    "column " + std::to_string(j + 1) +
                        " (counted from 1) has a required edge but no variance");
}

// The edges to start from, by input and effect: those between features of the table that the effect
// can have.
std::vector<Edge> starting_edges(const Knowledge& knowledge, const sem::Table& table,
                                 const sem::Causes& causes, std::int64_t columns) {
  const std::vector<Edge> between =
      edges_between(knowledge.start, places(columns, table.columns()));
  if (causes.empty()) return between;
  std::vector<Edge> edges;
  for (const Edge& e : between) {
    const std::int64_t *first = causes.column(e.to), *last = first + causes.rows();
    if (const std::int64_t* c = std::lower_bound(first, last, e.from); c != last && *c == e.from)
      edges.push_back({c - first, e.to, e.weight});
  }
  return edges;
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
  text += " " + std::to_string(hash(std::vector<double>(missing.data(), missing.data() + missing.size())));
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
  sem::in_float(options); // may refuse
  sem::check_low_rank(columns, knowledge, options);
  if (rows < min_rows || columns < min_columns)
    throw Error(Status::invalid_argument,
                "x needs at least 2 features with variance and 10 observations; got " +
                    std::to_string(columns) + " and " + std::to_string(rows));
  check(knowledge, columns);
}

std::string task(std::int64_t rows, std::int64_t columns) {
  return "learning a graph of " + std::to_string(columns) + " features from " +
         std::to_string(rows) + " observations";
}

// weight: that of the table.
Dag learn(const sem::Table& table, const Matrix& weight, const Knowledge& knowledge,
          const DagOptions& options, Run& run, Checkpoint* checkpoint) {
  const std::int64_t n = table.rows(), m = table.features(), columns = table.source_columns();
  const bool in_memory = !table.values().empty();
  Dag dag;
  sem::check_low_rank(m, knowledge, options); // again: constant columns do not count
  dag.required = distinct(knowledge.required);
  dag.center = table.center();
  dag.scale = table.scale();
  dag.constant = table.constant();
  check_required(dag);
  const std::vector<std::int64_t>& exogenous = table.exogenous();
  if (options.rank > 0 && !exogenous.empty())
    throw Error(Status::invalid_argument,
                message("the equation of column ", exogenous.front() + 1,
                        " (counted from 1) holds in fewer than 10 rows or only where it does not "
                        "vary, so that it can have no causes; dag.rank is ",
                        options.rank, " and must be 0 for that"));
  const EdgeFactors known(knowledge, columns, table.columns(), exogenous);
  dag.collinear = table.collinear_pairs(run);
  dag.lambda = std::isnan(options.lambda) ? automatic_lambda(options.sem, n, m) : options.lambda;

  const std::int64_t inputs = sem::input_count(m, options);
  sem::Causes causes;
  if (inputs < m)
    causes = in_memory ? sem::screen(table.values(), known, inputs, run)
                       : sem::screen(table.spaced_rows(sem::screened_rows(n, m), run), known,
                                     inputs, run);
  const Matrix factor = pack(known, causes, inputs, m);
  const std::vector<Edge> start = starting_edges(knowledge, table, causes, columns);
  if (checkpoint)
    checkpoint->claim(fit_id(table, weight, causes, factor, start, options, run.seed()),
                      "table, knowledge, options or seed");
  sem::Fit fit = sem::train(table, causes, dag.lambda, factor, start, options, run, checkpoint);
  Journal* journal = checkpoint ? &checkpoint->journal : nullptr;
  dag.history = std::move(fit.history);
  dag.h = fit.h;
  dag.converged = fit.h <= sem::h_tolerance(options, m);
  dag.weights = scatter(entries(fit.edges.weights), table.columns(), columns, run);
  dag.sign = scatter(entries(fit.edges.sign), table.columns(), columns, run);

  std::vector<std::int64_t> visit = table.columns();
  visit.insert(visit.end(), dag.constant.begin(), dag.constant.end());
  if (tests_sample(options, m) && weight.empty())
    dag.suggestion = suggest_threshold(table, entries(dag.weights), options, run, journal);
  cut(dag, dag.suggestion.effects > 0 ? dag.suggestion.threshold : plain_threshold(options), visit,
      run);

  const bool wanted_refinement = refines(options, m);
  if (wanted_refinement && weight.empty()) {
    const bool searches = searches_order(options, m);
    if (searches) check_memory(16 * static_cast<double>(n) * static_cast<double>(m), task(n, m));
    keep_refined(searches ? search_and_test(table, known, fit.edges.weights, options, run, journal)
                          : test_graph(table, entries(dag.weights), known, options, run, journal),
                 table.columns(), dag, run);
  }
  warn(options, n, wanted_refinement && !dag.refined, exogenous, dag);
  return dag;
}

} // namespace

RowSource rows_of(const MatrixView& x) {
  return {x.rows, x.cols, [x](std::span<const std::int64_t> numbers, double* out) {
            for (std::int64_t j = 0; j < x.cols; ++j)
              for (const std::int64_t row : numbers) *out++ = x(row, j);
          }};
}

bool refines(const DagOptions& options, std::int64_t columns) {
  return options.refine == Refine::always ||
         (options.refine == Refine::automatic && identifiable(options) && columns <= most_refined);
}

bool tests_sample(const DagOptions& options, std::int64_t columns) {
  return options.refine == Refine::automatic && identifiable(options) && columns > most_refined &&
         std::isnan(options.threshold);
}

Dag learn_dag(const MatrixView& x, const DagOptions& options, Run& run) {
  return learn_dag(x, {}, {}, options, run);
}

Dag learn_dag(const MatrixView& x, const Knowledge& knowledge, const Design& design,
              const DagOptions& options, Run& run) {
  return learn_dag(x, knowledge, design, options, run, nullptr);
}

Dag learn_dag(const MatrixView& x, const Knowledge& knowledge, const Design& design,
              const DagOptions& options, Run& run, Checkpoint& checkpoint) {
  return learn_dag(x, knowledge, design, options, run, &checkpoint);
}

Dag learn_dag(const MatrixView& x_in, const Knowledge& knowledge, const Design& design_in,
              const DagOptions& options, Run& run, Checkpoint* checkpoint) {
  check_view(x_in, "x");
  check_request(x_in.rows, x_in.cols, knowledge, options);
  check_memory(learn_dag_memory(x_in.rows, x_in.cols, options), task(x_in.rows, x_in.cols));
  check(design_in, x_in.rows, x_in.cols);
  const std::vector<std::int64_t> rows = counted_rows(x_in, design_in, options.missing);
  const bool any_missing = check_values(x_in, rows, options.missing);
  const bool all = std::ssize(rows) == x_in.rows;
  const Matrix some = all ? Matrix() : of_rows(x_in, rows);
  const MatrixView given = all ? x_in : MatrixView(some);
  const Design design = of_rows(design_in, rows);
  Matrix weight = equation_weights(given.rows, given.cols, design);
  drop_equations(given, design, weight);
  const Matrix centered = design.batch.empty() ? Matrix() : center_batches(given, design);
  const MatrixView x = design.batch.empty() ? given : MatrixView(centered);
  const RowSource source = rows_of(x);
  sem::Table table(source, weight, options.standardize, true, run);
  if (any_missing) table.impute(design, options, run);
  return learn(table, weight, knowledge, options, run, checkpoint);
}

namespace {

Dag learn_rows(const RowSource& source, const Knowledge& knowledge, const DagOptions& options,
               Run& run, Checkpoint* checkpoint) {
  checked_size(source.rows, source.columns, "source");
  check_request(source.rows, source.columns, knowledge, options);
  if (!source.read) throw Error(Status::invalid_argument, "source has no function that reads rows");
  check_memory(learn_dag_memory(source.rows, source.columns, options) -
                   table_bytes(source.rows, source.columns),
               task(source.rows, source.columns));
  const RowSource safe = checked(source);
  const Matrix equal;
  return learn(sem::Table(safe, equal, options.standardize, false, run), equal, knowledge, options,
               run, checkpoint);
}

} // namespace

Dag learn_dag(const RowSource& source, const Knowledge& knowledge, const DagOptions& options,
              Run& run) {
  return learn_rows(source, knowledge, options, run, nullptr);
}

Dag learn_dag(const RowSource& source, const Knowledge& knowledge, const DagOptions& options,
              Run& run, Checkpoint& checkpoint) {
  return learn_rows(source, knowledge, options, run, &checkpoint);
}

// ------------------------------------------------------------------------------------- objective

std::int64_t dag_parameter_count(std::int64_t features, const DagOptions& options_in) {
  DagOptions options = options_in;
  check_options(fields(options));
  sem::in_float(options);
  if (features < 1)
    throw Error(Status::invalid_argument,
                "features is " + std::to_string(features) + "; it must be at least 1");
  sem::check_low_rank(features, {}, options);
  const std::int64_t inputs = sem::input_count(features, options);
  sem::Causes causes;
  if (inputs < features) causes = sem::Causes(inputs, features);
  return sem::make_model<double>(features, std::move(causes), options)->shape().parameters;
}

namespace {

template <class T>
double loss_in(const Matrix& x, const Matrix& weight, sem::Causes causes,
               std::span<const double> parameters, double rho, double alpha,
               const DagOptions& options, Run& run, std::vector<double>* gradient) {
  const auto in_t = [](const auto& values) {
    return std::vector<T>(values.data(), values.data() + values.size());
  };
  const std::vector<T> table = in_t(x), weights = in_t(weight), p = in_t(parameters);
  const auto model = sem::make_model<T>(x.cols(), std::move(causes), options);
  sem::Objective<T> objective(*model, options.constraint);
  if (std::isinf(objective.constraint(p.data(), run)))
    throw Error(Status::invalid_argument,
                "the edge weights are outside the domain of the log-det form of h");
  std::vector<T> slope(p.size());
  const sem::Loss loss =
      objective({table.data(), weights.empty() ? nullptr : weights.data(), x.rows()}, p.data(),
                {options.lambda, options.l2, rho, alpha}, slope.data(), run);
  const auto check = [](bool finite) {
    if (!finite)
      throw Error(Status::invalid_argument,
                  "the loss or its gradient leaves the range of the numbers that it is computed in; "
                  "scale x or the parameters");
  };
  check(std::isfinite(loss.total));
  if (!gradient) return loss.total;
  check(std::ranges::all_of(slope, [](T v) { return std::isfinite(v); }));
  gradient->assign(slope.begin(), slope.end());
  const sem::Shrinkage shrinkage = objective.shrinkage(p.data());
  std::size_t e = 0;
  for (const double factor : shrinkage.factor)
    for (const std::size_t end = e + static_cast<std::size_t>(shrinkage.length); e < end; ++e)
      (*gradient)[e] += options.lambda * factor * ((p[e] > 0) - (p[e] < 0));
  return loss.total;
}

} // namespace

double dag_loss(const MatrixView& x, std::span<const double> parameters, double rho, double alpha,
                const DagOptions& options_in, std::vector<double>* gradient) {
  DagOptions options = options_in;
  const std::int64_t size = dag_parameter_count(x.cols, options);
  check_view(x, "x");
  const bool any_missing = check_values(x, all_rows(x), options.missing);
  if (x.rows < 1) throw Error(Status::invalid_argument, "x has no rows");
  if (std::ssize(parameters) != size)
    throw Error(Status::dim_mismatch, "parameters has " + std::to_string(parameters.size()) +
                                          " values; this model has " + std::to_string(size));
  check_finite({parameters.data(), size, 1, size}, "parameters");

  Matrix values = to_matrix(x), weight(any_missing ? x.rows : 0, any_missing ? x.cols : 0);
  if (any_missing)
    for (std::int64_t e = 0; e < values.size(); ++e) {
      const bool missing = std::isnan(values.data()[e]);
      weight.data()[e] = missing ? 0 : 1;
      if (missing) values.data()[e] = 0;
    }
  Run run;
  const std::int64_t inputs = sem::input_count(x.cols, options);
  sem::Causes causes;
  if (inputs < x.cols) causes = sem::screen(values, EdgeFactors(), inputs, run);
  if (std::isnan(options.lambda)) options.lambda = automatic_lambda(options.sem, x.rows, x.cols);
  const bool single = options.precision == Precision::float32 && sem::in_float(options);
  return (single ? loss_in<float> : loss_in<double>)(values, weight, std::move(causes), parameters,
                                                     rho, alpha, options, run, gradient);
}

} // namespace cape
