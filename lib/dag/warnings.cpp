module;
#include "internal/message.hpp"
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <iomanip>
#include <new>
#include <string>
#include <typeinfo>
#include <utility>
#include <variant>
#include <vector>
module cape.dag;
#include "dag/options.hpp"
#include "dag/warnings.hpp"

namespace cape {
namespace {

std::string number(double v) { return message(std::setprecision(3), v); }

// Of the bags that join the ends of an edge of the graph, the part that has it the other way; 0 if
// none does.
double reversed_in_bags(const Dag& dag) {
  double same = 0, other = 0;
  for (const Edge& e : dag.graph.edges()) {
    same += dag.bag_share(e.from, e.to);
    other += dag.bag_share(e.to, e.from);
  }
  return other > 0 ? other / (same + other) : 0;
}

} // namespace

void add_warnings(const DagOptions& options, std::int64_t rows, bool not_refined,
                  const std::vector<std::int64_t>& exogenous, Dag& dag) {
  const auto say = [&dag](std::string sentence) { dag.warnings.push_back(std::move(sentence)); };
  constexpr std::size_t shown = 5;
  const std::int64_t features = dag.graph.size() - std::ssize(dag.constant);
  const auto say_columns = [&](const std::vector<std::int64_t>& columns, const std::string& what) {
    if (columns.empty()) return;
    std::string list;
    for (std::size_t i = 0; i < std::min(shown, columns.size()); ++i)
      list += (i ? ", " : "") + std::to_string(columns[i]);
    say(std::to_string(columns.size()) + " column(s) " + what + ": " + list +
        (columns.size() > shown ? ", ..." : "") + " (counted from 0).");
  };
  say_columns(dag.constant, "without variance are isolated in the result");
  say_columns(exogenous,
              "have no causes in the result, but those required, as their own equations hold "
              "in fewer than 10 rows or only where they do not vary");
  if (!dag.collinear.empty()) {
    std::string list;
    for (std::size_t i = 0; i < std::min(shown, dag.collinear.size()); ++i)
      list += (i ? ", " : "") + std::to_string(dag.collinear[i].from) + " and " +
              std::to_string(dag.collinear[i].to);
    say(std::to_string(dag.collinear.size()) +
        " pair(s) of columns are exactly collinear, so the direction between them is arbitrary: " +
        list + (dag.collinear.size() > shown ? ", ..." : "") + " (counted from 0).");
  }
  if (options.sem == Sem::literal)
    say("The literal objective of the paper does not fix the scale of f and collapses to the empty "
        "graph; use sem mlp, linear or paper to learn a graph.");
  if (not_refined) say("The graph was not refined because values are perturbed or weighted.");
  if (!dag.converged)
    say("h(A) ended at " + number(dag.h) + ", above h_tolerance " +
        number(h_tolerance_of(options, features)) +
        ": more epochs may bring it down, and so may standardize where columns differ in scale; "
        "the graph returned is acyclic all the same.");
  constexpr double many_reversed = 0.2; // half is chance
  if (const double reversed = dag.bags > 0 ? reversed_in_bags(dag) : 0; reversed > many_reversed)
    say("The rows are too few to tell directions: of the fits to parts of the rows that join the "
        "ends of "
        "an edge of the graph, " +
        number(100 * reversed) +
        " % have it the other way. The support of pairs, without directions, is what to read.");
  constexpr double one_sided = 0.4, sure = 2.6; // one in a hundred random orders
  if (const VarianceOrder order = variance_order(dag.graph, dag.deviation);
      !options.standardize && order.deviation > 0 &&
      std::fabs(order.rising - 0.5) >= std::max(one_sided, sure * order.deviation)) {
    const bool up = order.rising > 0.5;
    say(number(100 * (up ? order.rising : 1 - order.rising)) +
        " % of the edges run from the column of " +
        (up ? "less variance to that of more" : "more variance to that of less") +
        " (in random orders 50 %, standard deviation " + number(100 * order.deviation) +
        "): directions may be those of the units. With standardize they do not depend on units.");
  }
  const double m = static_cast<double>(features);
  const double edges = static_cast<double>(dag.graph.edges().size());
  const std::string knobs = dag.refined ? "lambda (" + number(dag.lambda) + ") or refine_t (" +
                                              number(refine_t_of(options, rows)) + ")"
                                        : "lambda (" + number(dag.lambda) + ") or threshold (" +
                                              number(dag.threshold) + ")";
  if (edges == 0)
    say("The graph has no edges: the columns look independent, or " +
        (dag.refined && options.refine_fdr < 1
             ? "the rows are too few for the " + std::to_string(dag.tested_pairs) +
                   " pairs that were tested, or "
             : "") +
        knobs + " is too high.");
  else if (edges > 0.25 * m * (m - 1))
    say("More than half of all pairs of columns are joined: " + knobs + " may be too low.");
}

} // namespace cape
