// cape.dag:knowledge: what is known before the graph is learned.
module;
#include <cstdint>
#include <vector>
export module cape.dag:knowledge;
import cape.core;
import cape.graph;

export namespace cape {

/// What is known of the graph before it is learned. Columns are given by their numbers; an empty
/// member says nothing. Only the ends of an edge are looked at.
struct Knowledge {
  /// In the graph whatever the data say; without a cycle. Here and below an edge may be given twice
  std::vector<Edge> required;
  std::vector<Edge> forbidden; ///< never in the graph
  /// Of every column: no edge runs from a later tier to an earlier one. Negative: any tier
  std::vector<std::int64_t> tier;
  std::vector<std::int64_t> roots;      ///< columns without causes
  std::vector<std::int64_t> leaves;     ///< columns without effects
  std::vector<std::int64_t> regulators; ///< only these have effects
  Matrix penalty;                       ///< M x M factors (>= 0, finite) of lambda
  /// Edges with the weights that the descent starts from, signed, in the units of Dag::weights:
  /// those of an earlier fit. A hint that saves epochs (docs/method.md), not a constraint
  std::vector<Edge> start;
};

/// An intervention: in this row the column was set from outside, so that its own equation does not
/// hold there. What it does to others still counts, also of a column that was set in every row.
struct Perturbation {
  std::int64_t row = 0, column = 0;
};
/// What is known of the rows of a table; an empty member says nothing.
struct Design {
  /// Of every row, >= 0 and finite; only ratios matter. Equal ones say nothing; of 0, or of less
  /// than 1e-308 of the largest: the row counts for nothing, and its values are not looked at
  std::vector<double> weight;
  /// The batch of every row: columns are centred within each, so that batches may differ in level
  std::vector<std::int64_t> batch;
  /// Rows x K, finite: what may drive the columns from outside (age, the phase of the cell cycle).
  /// Of every column what a linear regression on them explains, within batches, is taken out
  Matrix covariates;
  std::vector<Perturbation> perturbed;
  /// Interventions that were aimed at the column, whatever they did to its value (a gene that is
  /// knocked out may keep its mRNA): its equation still holds. The indicator of these rows is a
  /// cause of its own, of the column and of all that the column may be a cause of; its effects
  /// are those of the column in the result. Not beside dag.rank
  std::vector<Perturbation> targeted;
};

/// All that is known before: of the graph, and of the rows of its table.
struct Prior {
  Knowledge knowledge;
  Design design;
};

} // namespace cape
