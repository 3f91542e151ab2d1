// Cross-fitted regressions, which the refinement compares and missing values are drawn from.
#pragma once

namespace cape {

// A regression of one column on a set of others, given in rising order.
struct Family {
  std::int64_t node;
  std::vector<std::int64_t> parents;
  auto operator<=>(const Family&) const = default;
};

// Cross-fitted regressions over the columns of one table. All of them share the folds and the order
// of the minibatches, and the initial weight of an input is a function of seed, target and that
// input alone: differences between two regressions then come from their inputs.
class Regressions {
public:
  Regressions(const MatrixView& x, const DagOptions& options, Run& run);

  /// A fitted family. Predictions are of the standardized target, held_out those of every row, in
  /// the order of row(), by a fit to the other folds.
  struct Fit {
    std::vector<double> held_out;
    std::vector<simd::NodeRegression> networks; ///< of every fold, or
    std::vector<arma::vec> slopes;              ///< likewise, the constant last
  };
  Fit fit(const Family& family) const;
  /// Of its target, standardized, in the order of row().
  std::vector<double> residuals(const Family& family, const Fit& fit) const;
  /// What it predicts, standardized, from other rows of the table's columns: the mean of the fits
  /// to all folds.
  std::vector<double> predict(const Family& family, const Fit& fit, const MatrixView& others) const;
  /// A standardized value in the units of the data.
  double value(std::int64_t j, double standardized) const;
  /// Squared errors in the units of the data, in the order of row().
  std::vector<double> squared_error(const Family& family) const;
  /// Stands for a piece of work on a column and others, by their contents: in another part of the
  /// table they have other numbers.
  std::uint64_t key(std::string_view work, const Family& family) const;
  /// Which row of the table the i-th squared error belongs to.
  inline std::int64_t row(std::int64_t i) const { return row_[static_cast<std::size_t>(i)]; }

private:
  /// The rows of a fold are first(fold) .. first(fold + 1) - 1.
  inline std::int64_t first(std::int64_t fold) const {
    return (fold * rows_ + folds_ - 1) / folds_;
  }
  inline std::int64_t size(std::int64_t fold) const { return first(fold + 1) - first(fold); }
  inline const float* column(std::int64_t j) const { return scaled_.data() + j * rows_; }
  void initialize(simd::NodeRegression& net, const Family& family, std::int64_t fold) const;
  /// On all rows but those of a fold.
  void train(simd::NodeRegression& net, const float* table, const float* target,
             std::int64_t fold) const;
  arma::mat products(std::int64_t fold) const;
  Family sorted(Family family) const;
  Fit fit_networks(const Family& family) const;
  Fit fit_least_squares(const Family& family) const;

  std::int64_t rows_, folds_, hidden_, epochs_;
  Run& run_;
  std::vector<std::int64_t> row_; // a random order; folds are parts of it
  std::vector<float> scaled_;     // columns of mean 0 and variance 1, in that order
  std::vector<double> mean_, variance_;
  std::vector<std::uint64_t> id_; // a column is known by its content, not by its number
  std::vector<arma::mat> products_; // linear: X'X of the columns and the constant 1, of the
                                    // rows outside each fold
};

/// Error(invalid_argument) unless columns can be regressed on each other: x is finite with at least
/// 10 rows, and no column is constant.
void check_observations(const MatrixView& x, const DagOptions& options);

} // namespace cape
