// What is known of the graph, as factors of lambda.
#pragma once
#include "dag/causes.hpp"

namespace cape {

/// Infinite where there can be no edge, 0 where there must be one. Answers by effect, so that no M
/// x M matrix is needed.
class EdgeFactors {
public:
  /// Nothing is known.
  EdgeFactors() = default;
  /// Of these columns of a table, numbered by their place in the list; some of the table's, the
  /// exogenous ones, have no causes but those required. The knowledge went through
  /// check_knowledge() and outlives this. Error(invalid_argument) for required edges that knowledge
  /// excludes or that have a cycle.
  EdgeFactors(const Knowledge& knowledge, std::int64_t table_columns,
              std::span<const std::int64_t> columns, std::span<const std::int64_t> exogenous);
  inline bool empty() const noexcept { return knowledge_ == nullptr; } ///< all factors are 1
  /// The factors of all causes of an effect. Not of an empty one. O(M).
  std::vector<double> causes_of(std::int64_t effect) const;
  /// Whether a column is a possible effect of this cause, of every column. Not of an empty one. O(M
  /// + forbidden edges).
  std::vector<char> effects_of(std::int64_t cause) const;
  inline const std::vector<Edge>& required() const noexcept { return required_; }

private:
  std::vector<double> allowed_causes_of(std::int64_t effect) const;
  bool goes_backwards(std::size_t cause, std::size_t effect) const;
  void check_required() const;
  const Knowledge* knowledge_ = nullptr;
  std::vector<std::int64_t> columns_, tier_;
  std::vector<char> is_cause_, is_effect_, is_exogenous_;
  std::vector<Edge> forbidden_, required_; ///< by rising effect
};

/// Those of all inputs of all effects: inputs x features; empty if all are 1.
Matrix factor_matrix(const EdgeFactors& known, const sem::Causes& causes, std::int64_t inputs,
                     std::int64_t features);

} // namespace cape
