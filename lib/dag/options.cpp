module;
#include <cstdint>
#include <new>
#include <typeinfo>
#include <utility>
#include <vector>
module cape.dag;

namespace cape {

OptionFields fields(DagOptions& o) {
  constexpr double many = 1e9;
  OptionFields all;
  const auto add = [&](OptionField field) { all.push_back(std::move(field)); };
  add({.name = "dag.sem",
       .value = choice(o.sem, {"mlp", "linear", "paper", "literal"}),
       .doc =
           "Structural equation model. mlp: an MLP for every effect with a weight for every edge; "
           "linear: x = xA + z; paper: one shared f whose scale the Jacobian holds; literal: the "
           "paper's objective word for word, which collapses to the empty graph",
       .source = "eq_enc, eq_dec; docs/method.md"});
  add({.name = "dag.constraint",
       .value = choice(o.constraint, {"expm", "logdet"}),
       .doc = "Smooth acyclicity measure h(A): tr exp(A o A) - M, or -log det(I - A o A)",
       .source = "eq_OptDAG"});
  add({.name = "dag.refine",
       .value = choice(o.refine, {"automatic", "never", "always"}),
       .doc = "Decide the edges by held-out regressions along the learned order instead of by the "
              "threshold. automatic: for up to 5000 columns with variance, with sem mlp and, if not "
              "standardized, linear",
       .source = "docs/method.md"});
  add({.name = "dag.standardize",
       .value = &o.standardize,
       .doc =
           "Scale columns to unit variance and use the likelihood of unequal variances; the result "
           "then does not depend on the columns' units",
       .source = "docs/method.md"});
  add({.name = "dag.missing",
       .value = choice(o.missing, {"fail", "mask"}),
       .doc = "NaN in the table. fail: an error; mask: drawn from its distribution given the rest of "
              "its row, by chained equations; right where what is missing is so at random given what "
              "is there",
       .source = "docs/method.md"});
  add({.name = "dag.precision",
       .value = choice(o.precision, {"automatic", "double", "float"}),
       .doc = "Numbers that training computes with. automatic: float for sem mlp, which alone can, "
              "else double",
       .source = "docs/performance.md"});
  add({.name = "dag.lambda",
       .value = &o.lambda,
       .min = 0,
       .automatic = true,
       .doc = "L1 weight on the edges. Automatic: 1 for literal, else 0.45 sqrt(log M / N) for M "
              "columns "
              "with variance and N rows, but at least 0.02 for mlp, 0.05 for linear and paper",
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
       .doc = "Edges whose |weight| is at most this are pruned; not used when the graph is refined. "
              "Automatic: 0.2, or, where refine is automatic and there are more columns than it "
              "takes, the one that agrees best with held-out tests of 60 columns",
       .source = "sec_DAG, tau"});
  add({.name = "dag.candidates",
       .value = &o.candidates,
       .min = 1,
       .max = many,
       .automatic = true,
       .doc =
           "Columns that may be causes of an effect, chosen by association before learning (sem "
           "mlp): cost and memory of learning then grow with M times this. Automatic: all columns",
       .source = "docs/method.md"});
  add({.name = "dag.rank",
       .value = &o.rank,
       .min = 0,
       .max = many,
       .doc = "r > 0: the weights are UV' with U and V of r columns each (paper: 40), for graphs with "
              "few causes (sem linear). 0: a weight for every edge",
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
       .doc = "The fit has converged when h(A) is at most this. Automatic: 1e-5 M for M columns with "
              "variance, at least 1e-4",
       .source = "eq_OptDAG"});
  add({.name = "dag.refine_t",
       .value = &o.refine_t,
       .min = 0,
       .automatic = true,
       .doc = "Refinement: a parent stays when leaving it out raises the held-out error by this t. "
              "Automatic: 3.04 - 200 / N for N rows, but at least 1",
       .source = "docs/method.md"});
  add({.name = "dag.refine_window",
       .value = &o.refine_window,
       .min = 0,
       .max = many,
       .automatic = true,
       .doc = "Refinement: positions to either side that the search for the order tries. Automatic: "
              "none beyond 100 columns, else all for sem linear and 3 for mlp",
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

} // namespace cape
