module;
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <new>
#include <string>
#include <typeinfo>
#include <utility>
#include <variant>
module cape.dag;
#include "dag/options.hpp"

namespace cape {

OptionFields fields(DagOptions& o) {
  constexpr double many = 1e9;
  OptionFields all;
  const auto add = [&](OptionField field) { all.push_back(std::move(field)); };
  add({.name = "dag.sem",
       .value = choice(o.sem, {"mlp", "linear", "paper", "literal"}),
       .doc = "Structural equation model. mlp: an MLP for every effect with a weight for every "
              "edge; linear: x = xA + z; paper: one shared f whose scale the Jacobian holds; "
              "literal: the paper's objective word for word, which collapses to the empty graph",
       .source = "eq_enc, eq_dec; docs/method.md"});
  add({.name = "dag.constraint",
       .value = choice(o.constraint, {"expm", "logdet"}),
       .doc = "Smooth acyclicity measure h(A): tr exp(A o A) - M, or -log det(I - A o A)",
       .source = "eq_OptDAG"});
  add({.name = "dag.refine",
       .value = choice(o.refine, {"automatic", "never", "always"}),
       .doc = "Decide the edges by held-out regressions along the learned order instead of by the "
              "threshold. automatic: for up to 5000 columns with variance, with sem mlp and, if "
              "not standardized, linear",
       .source = "docs/method.md"});
  add({.name = "dag.standardize",
       .value = &o.standardize,
       .doc = "Scale columns to unit variance and use the likelihood of unequal variances; the "
              "result then does not depend on the columns' units",
       .source = "docs/method.md"});
  add({.name = "dag.missing",
       .value = choice(o.missing, {"fail", "mask"}),
       .doc = "NaN in the table. fail: an error; mask: drawn from its distribution given the rest "
              "of its row, by chained equations; right where what is missing is so at random "
              "given what is there",
       .source = "docs/method.md"});
  add({.name = "dag.precision",
       .value = choice(o.precision, {"automatic", "double", "float"}),
       .doc = "Numbers that training computes with. automatic: float for sem mlp, which alone "
              "can, else double",
       .source = "docs/performance.md"});
  add({.name = "dag.lambda",
       .value = &o.lambda,
       .min = 0,
       .automatic = true,
       .doc = "L1 weight on the edges. Automatic: 1 for literal, else 0.45 sqrt(log M / N) for M "
              "columns with variance and N rows, but at least 0.02 for mlp, 0.05 for linear and "
              "paper",
       .source = "eq_OptDAG, lambda_s"});
  add({.name = "dag.l2",
       .value = &o.l2,
       .min = 0,
       .doc = "Ridge on the weights of the MLPs (sem mlp)",
       .source = "docs/method.md"});
  add({.name = "dag.threshold",
       .value = &o.threshold,
       .min = 0,
       .automatic = true,
       .doc = "Edges whose |weight| is at most this are pruned; not used when the graph is "
              "refined. Automatic: 0.2, or, where refine is automatic and there are more columns "
              "than it takes, the one that agrees best with held-out tests of 60 columns",
       .source = "sec_DAG, tau"});
  add({.name = "dag.candidates",
       .value = &o.candidates,
       .min = 1,
       .max = many,
       .automatic = true,
       .doc = "Columns that may be causes of an effect, chosen by association before learning "
              "(sem mlp): cost and memory of learning then grow with M times this. Automatic: all "
              "columns",
       .source = "docs/method.md"});
  add({.name = "dag.rank",
       .value = &o.rank,
       .min = 0,
       .max = many,
       .doc = "r > 0: the weights are UV' with U and V of r columns each (paper: 40), for graphs "
              "with few causes (sem linear). 0: a weight for every edge",
       .source = "supp_complexity; docs/method.md"});
  add({.name = "dag.hidden",
       .value = &o.hidden,
       .min = 1,
       .max = 4096,
       .doc = "Hidden units of the MLP of an effect (sem mlp)",
       .source = "docs/method.md"});
  add({.name = "dag.epochs",
       .value = &o.epochs,
       .min = 1,
       .max = many,
       .doc = "Epochs of the augmented Lagrangian",
       .source = "supp_imple"});
  add({.name = "dag.batch_size",
       .value = &o.batch_size,
       .min = 1,
       .max = many,
       .doc = "Observations in a step of the optimiser",
       .source = "supp_imple"});
  add({.name = "dag.learning_rate",
       .value = &o.learning_rate,
       .min = 0,
       .open_min = true,
       .doc = "Highest learning rate of AdamW; falls to 2 % of it along a cosine",
       .source = "docs/method.md"});
  add({.name = "dag.rho_growth",
       .value = &o.rho_growth,
       .min = 1,
       .doc = "Factor of the penalty rho, applied every rho_interval epochs unless h fell to a "
              "quarter",
       .source = "eq_lossdag; docs/method.md"});
  add({.name = "dag.rho_interval",
       .value = &o.rho_interval,
       .min = 1,
       .max = many,
       .automatic = true,
       .doc = "Epochs between updates of alpha and rho. Automatic: a twentieth of the epochs",
       .source = "eq_lossdag; docs/method.md"});
  add({.name = "dag.rho_max",
       .value = &o.rho_max,
       .min = 1,
       .doc = "Largest penalty rho",
       .source = "eq_lossdag"});
  add({.name = "dag.h_tolerance",
       .value = &o.h_tolerance,
       .min = 0,
       .automatic = true,
       .doc = "The fit has converged when h(A) is at most this. Automatic: 1e-5 M for M columns "
              "with variance, at least 1e-4",
       .source = "eq_OptDAG"});
  add({.name = "dag.bags",
       .value = &o.bags,
       .min = 0,
       .max = 1000,
       .automatic = true,
       .doc = "Fits to 80 % of the rows, with 30 % of the epochs, whose mean is taken; 0: one to "
              "all rows. Automatic: 10 where there are up to 500 columns and less than twice as "
              "many rows, else none",
       .source = "docs/method.md"});
  add({.name = "dag.refine_t",
       .value = &o.refine_t,
       .min = 0,
       .automatic = true,
       .doc = "Refinement: a parent stays when leaving it out raises the held-out error by this "
              "t. Automatic: 3.04 - 200 / N for N rows, but at least 1",
       .source = "docs/method.md"});
  add({.name = "dag.refine_fdr",
       .value = &o.refine_fdr,
       .min = 0,
       .max = 1,
       .doc = "The refined graph loses its least certain edges until at most this share of the "
              "rest is expected to join what is not joined, given the number of pairs; 1: it "
              "loses none",
       .source = "docs/method.md"});
  add({.name = "dag.refine_window",
       .value = &o.refine_window,
       .min = 0,
       .max = many,
       .automatic = true,
       .doc = "Refinement: positions to either side that the search for the order tries. "
              "Automatic: none beyond 100 columns or with less than twice as many rows, else all "
              "for sem linear and 3 for mlp",
       .source = "docs/method.md"});
  add({.name = "dag.refine_hidden",
       .value = &o.refine_hidden,
       .min = 1,
       .max = 4096,
       .doc = "Refinement: hidden units of a regression (not for sem linear)",
       .source = "docs/method.md"});
  add({.name = "dag.refine_epochs",
       .value = &o.refine_epochs,
       .min = 1,
       .max = many,
       .doc = "Refinement: epochs of a regression (not for sem linear)",
       .source = "docs/method.md"});
  return all;
}

// -------------------------------------------------------------------------------------- automatic

// The largest of the M^2 correlations that are there by chance grows as sqrt(log M / N); below some
// thousand rows it is what the L1 term has to hold down.
double lambda_of(const DagOptions& options, std::int64_t rows, std::int64_t features) {
  if (!std::isnan(options.lambda)) return options.lambda;
  const double chance =
      std::sqrt(std::log(static_cast<double>(features)) / static_cast<double>(rows));
  switch (options.sem) {
  case Sem::linear:
  case Sem::paper: return std::max(0.05, 0.45 * chance);
  case Sem::literal: return 1;
  case Sem::mlp: break;
  }
  return std::max(0.02, 0.45 * chance);
}

// The cycles that the steps of the weights close are as many as there are columns.
double h_tolerance_of(const DagOptions& options, std::int64_t features) {
  if (!std::isnan(options.h_tolerance)) return options.h_tolerance;
  return 1e-5 * static_cast<double>(std::max<std::int64_t>(10, features));
}

double threshold_of(const DagOptions& options) {
  return std::isnan(options.threshold) ? automatic_threshold : options.threshold;
}

double refine_t_of(const DagOptions& options, std::int64_t rows) {
  if (!std::isnan(options.refine_t)) return options.refine_t;
  return std::max(1.0, 3.04 - 200 / static_cast<double>(rows));
}

// Regressions on few rows are short of them, and more folds leave them more: nine tenths instead of
// half. The cost stays below that of 5,000 rows in two folds.
std::int64_t refinement_folds(std::int64_t rows) {
  return std::clamp<std::int64_t>(1 + 5000 / rows, 2, 10);
}

std::int64_t inputs_of_effect(const DagOptions& options, std::int64_t features) {
  if (options.sem != Sem::mlp || options.candidates < 0 || options.candidates >= features - 1)
    return features;
  if (options.constraint == Constraint::logdet)
    throw Error(Status::invalid_argument,
                "dag.candidates is " + std::to_string(options.candidates) +
                    ", below the number of other columns; with dag.constraint logdet, which needs "
                    "all pairs, it must not be");
  return options.candidates;
}

bool trains_in_float(const DagOptions& options) {
  if (options.precision == Precision::float32 && options.sem != Sem::mlp)
    throw Error(Status::invalid_argument,
                "dag.precision is float; only dag.sem mlp can be trained in it");
  return options.sem == Sem::mlp && options.precision != Precision::float64;
}

namespace {

constexpr std::int64_t most_refined = 5000; // columns: the time of the tests grows with them

// Whether regressions can tell the order of the columns.
bool identifiable(const DagOptions& options) {
  return options.sem == Sem::mlp || (options.sem == Sem::linear && !options.standardize);
}

} // namespace

bool refines(const DagOptions& options, std::int64_t columns) {
  return options.refine == Refine::always ||
         (options.refine == Refine::automatic && identifiable(options) && columns <= most_refined);
}

bool tests_sample(const DagOptions& options, std::int64_t columns) {
  return options.refine == Refine::automatic && identifiable(options) && columns > most_refined &&
         std::isnan(options.threshold);
}

bool searches_order(const DagOptions& options, std::int64_t rows, std::int64_t columns) {
  constexpr std::int64_t limit = 100; // it takes a minute or two there
  // With fewer rows the search finds no better order than that of the weights (docs/method.md).
  return (columns <= limit && rows >= 2 * columns) || options.refine_window > 0;
}

std::int64_t search_window(const DagOptions& options, std::int64_t columns) {
  if (options.refine_window >= 0) return options.refine_window;
  return options.sem == Sem::linear ? columns : 3;
}

std::int64_t most_partners(Sem sem) { return sem == Sem::linear ? 30 : 10; }

} // namespace cape
