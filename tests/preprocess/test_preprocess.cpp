#define BOOST_TEST_MODULE preprocess
#include <boost/test/unit_test.hpp>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <numeric>
#include <string>
#include <variant>
#include <vector>
import cape;
#include "errors.hpp"

namespace {

using cape::Layout;
using cape::Matrix;
using cape::PreprocessOptions;
using cape::SparseMatrix;
using cape::Status;
using test::error_of;
using test::has;
constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan_value = std::numeric_limits<double>::quiet_NaN();

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

Matrix matrix(std::initializer_list<std::initializer_list<double>> rows) {
  Matrix m(std::ssize(rows), rows.size() > 0 ? std::ssize(*rows.begin()) : 0);
  std::int64_t i = 0;
  for (const auto& row : rows) {
    std::int64_t j = 0;
    for (const double value : row) m(i, j++) = value;
    ++i;
  }
  return m;
}

SparseMatrix sparse(const Matrix& m, Layout layout, bool keep_zeros = false) {
  SparseMatrix s;
  s.rows = m.rows();
  s.cols = m.cols();
  s.layout = layout;
  s.offsets.push_back(0);
  const bool by_column = layout == Layout::col_major;
  for (std::int64_t o = 0; o < (by_column ? m.cols() : m.rows()); ++o) {
    for (std::int64_t i = 0; i < (by_column ? m.rows() : m.cols()); ++i) {
      const double value = by_column ? m(i, o) : m(o, i);
      if (value == 0 && !keep_zeros) continue;
      s.values.push_back(value);
      s.indices.push_back(static_cast<std::int32_t>(i));
    }
    s.offsets.push_back(std::ssize(s.values));
  }
  return s;
}

Matrix random_counts(cape::Rng& rng, std::int64_t rows, std::int64_t cols) {
  Matrix m(rows, cols);
  for (std::int64_t i = 0; i < rows; ++i) {
    const double depth = i % 7 == 0 ? 0.05 : rng.uniform(0.2, 2);
    for (std::int64_t j = 0; j < cols; ++j)
      m(i, j) = static_cast<double>(
          rng.negative_binomial(depth * static_cast<double>(j + 1) / static_cast<double>(cols), 1));
  }
  return m;
}

double variance(const std::vector<double>& x) {
  const auto n = static_cast<long double>(x.size());
  long double mean = 0, square = 0;
  for (const double value : x) mean += value / n;
  for (const double value : x) square += (value - mean) * (value - mean);
  return static_cast<double>(square / (n - 1));
}

std::vector<double> column(const Matrix& m, std::int64_t j) {
  return {m.column(j), m.column(j) + m.rows()};
}

// supp_preprocess step by step, on the dense matrix.
cape::Preprocessed reference(const Matrix& counts, const PreprocessOptions& o) {
  cape::Preprocessed r;
  for (std::int64_t i = 0; i < counts.rows(); ++i) {
    std::int64_t detected = 0;
    for (std::int64_t j = 0; j < counts.cols(); ++j) detected += counts(i, j) > 0;
    if (detected >= o.min_features) r.cells.push_back(i);
  }
  for (std::int64_t j = 0; j < counts.cols(); ++j) {
    std::int64_t cells = 0;
    for (const std::int64_t i : r.cells) cells += counts(i, j) > 0;
    if (cells >= o.min_cells) r.features.push_back(j);
  }
  Matrix x(std::ssize(r.cells), std::ssize(r.features));
  for (std::int64_t i = 0; i < x.rows(); ++i) {
    double sum = 0;
    for (const std::int64_t j : r.features) sum += counts(r.cells[at(i)], j);
    r.library_size.push_back(sum);
    for (std::int64_t j = 0; j < x.cols(); ++j) {
      double value = counts(r.cells[at(i)], r.features[at(j)]);
      if (o.normalize && sum > 0) value *= o.target_sum / sum;
      x(i, j) = o.log1p ? std::log(1 + value) : value;
    }
  }
  std::vector<std::int64_t> order(at(x.cols()));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  if (o.n_variable > 0 && o.n_variable < x.cols()) {
    std::vector<double> v;
    for (std::int64_t j = 0; j < x.cols(); ++j) v.push_back(variance(column(x, j)));
    std::ranges::sort(order, [&](std::int64_t a, std::int64_t b) {
      return v[at(a)] != v[at(b)] ? v[at(a)] > v[at(b)] : a < b;
    });
    order.resize(at(o.n_variable));
    std::ranges::sort(order);
  }
  r.x = Matrix(x.rows(), std::ssize(order));
  std::vector<std::int64_t> kept;
  for (std::int64_t j = 0; j < r.x.cols(); ++j) {
    kept.push_back(r.features[at(order[at(j)])]);
    std::copy_n(x.column(order[at(j)]), x.rows(), r.x.column(j));
  }
  r.features = kept;
  return r;
}

bool close(const Matrix& a, const Matrix& b) {
  if (a.rows() != b.rows() || a.cols() != b.cols()) return false;
  for (std::int64_t i = 0; i < a.size(); ++i)
    if (!(std::fabs(a.data()[i] - b.data()[i]) <= 1e-13 * (1 + std::fabs(b.data()[i]))))
      return false;
  return true;
}

bool same(const cape::Preprocessed& a, const cape::Preprocessed& b) {
  return a.x == b.x && a.cells == b.cells && a.features == b.features &&
         a.library_size == b.library_size;
}

constexpr PreprocessOptions no_filter{.min_features = 0, .min_cells = 0};

} // namespace

BOOST_AUTO_TEST_CASE(two_cells_by_hand) {
  // Cell sums 4 and 5; to a sum of 10: (2.5, 7.5, 0) and (0, 2, 8).
  cape::Run run;
  PreprocessOptions o = no_filter;
  o.target_sum = 10;
  const auto r = cape::preprocess(matrix({{1, 3, 0}, {0, 1, 4}}), o, run);
  const Matrix expected =
      matrix({{std::log(3.5), std::log(8.5), 0}, {0, std::log(3), std::log(9)}});
  BOOST_TEST(close(r.x, expected));
  BOOST_TEST((r.library_size == std::vector<double>{4, 5}));
  BOOST_TEST((r.cells == std::vector<std::int64_t>{0, 1}));
  BOOST_TEST((r.features == std::vector<std::int64_t>{0, 1, 2}));
}

BOOST_AUTO_TEST_CASE(cells_are_filtered_before_features) {
  // Cell 2 has one feature and goes; without it feature 0 is detected in one cell only and goes.
  cape::Run run;
  const Matrix counts = matrix({{0, 2, 1}, {3, 1, 5}, {4, 0, 0}, {0, 6, 7}});
  const PreprocessOptions o{.min_features = 2, .min_cells = 2, .normalize = false, .log1p = false};
  const auto r = cape::preprocess(counts, o, run);
  BOOST_TEST((r.cells == std::vector<std::int64_t>{0, 1, 3}));
  BOOST_TEST((r.features == std::vector<std::int64_t>{1, 2}));
  BOOST_TEST((r.x == matrix({{2, 1}, {1, 5}, {6, 7}})));
  BOOST_TEST((r.library_size == std::vector<double>{3, 6, 13}));
}

BOOST_AUTO_TEST_CASE(every_form_of_the_counts_agrees_with_the_dense_definition) {
  cape::Rng rng(41);
  const Matrix counts = random_counts(rng, 60, 40);
  cape::Run run;
  for (const bool normalize : {true, false})
    for (const bool log1p : {true, false})
      for (const std::int64_t n_variable : {0, 2, 7, 1000})
        for (const std::int64_t least : {0, 3, 12}) {
          const PreprocessOptions o{.min_features = least,
                                    .min_cells = least,
                                    .normalize = normalize,
                                    .target_sum = 100,
                                    .log1p = log1p,
                                    .n_variable = n_variable};
          const auto expected = reference(counts, o);
          const auto r = cape::preprocess(counts, o, run);
          BOOST_TEST(close(r.x, expected.x));
          BOOST_TEST((r.cells == expected.cells && r.features == expected.features));
          BOOST_TEST((r.library_size == expected.library_size));
          for (const Layout layout : {Layout::col_major, Layout::row_major})
            for (const bool zeros : {false, true})
              BOOST_TEST(same(r, cape::preprocess(sparse(counts, layout, zeros).view(), o, run)));
        }
}

BOOST_AUTO_TEST_CASE(normalised_cells_have_the_target_sum_and_empty_cells_stay_zero) {
  cape::Rng rng(42);
  Matrix counts = random_counts(rng, 20, 10);
  for (std::int64_t j = 0; j < 10; ++j) counts(3, j) = 0;
  PreprocessOptions o = no_filter;
  o.log1p = false;
  cape::Run run;
  const auto r = cape::preprocess(counts, o, run);
  for (std::int64_t i = 0; i < 20; ++i) {
    double sum = 0;
    for (std::int64_t j = 0; j < 10; ++j) sum += r.x(i, j);
    BOOST_TEST(std::fabs(sum - (r.library_size[at(i)] > 0 ? 1e4 : 0)) < 1e-9);
  }
  BOOST_TEST(r.library_size[3] == 0.0);
}

BOOST_AUTO_TEST_CASE(a_huge_grid_with_one_entry_stays_sparse) {
  // cases.md D6: 2.5e9 places, a single count.
  const std::int64_t n = 50000;
  SparseMatrix s{{7}, {123}, std::vector<std::int64_t>(at(n + 1), 0), n, n, Layout::row_major};
  for (std::int64_t i = 401; i <= n; ++i) s.offsets[at(i)] = 1;
  cape::Run run;
  PreprocessOptions o = no_filter;
  o.n_variable = 2;
  const auto r = cape::preprocess(s.view(), o, run);
  BOOST_TEST(r.x.rows() == n);
  BOOST_TEST((r.features == std::vector<std::int64_t>{0, 123})); // the rest are ties at 0
  BOOST_TEST(r.x(400, 1) == std::log1p(1e4));
  BOOST_TEST(std::accumulate(r.x.data(), r.x.data() + r.x.size(), 0.0) == r.x(400, 1));
  const auto with_defaults = [&] { cape::preprocess(s.view(), PreprocessOptions{}, run); };
  BOOST_TEST(has(error_of(Status::invalid_argument, with_defaults), {"0 of 50000 cells", "200"}));
}

BOOST_AUTO_TEST_CASE(too_few_cells_or_features_are_refused_with_the_numbers) {
  cape::Run run;
  const auto refusal = [&](const Matrix& m) {
    return error_of(Status::invalid_argument, [&] { cape::preprocess(m, no_filter, run); });
  };
  BOOST_TEST(has(refusal(Matrix(0, 5)), {"0 of 0 cells", "5 of 5 features"}));
  BOOST_TEST(has(refusal(Matrix(5, 0)), {"5 of 5 cells", "0 of 0 features"}));
  BOOST_TEST(has(refusal(Matrix(0, 0)), {"at least 2"}));
  BOOST_TEST(has(refusal(matrix({{1, 2, 3}})), {"1 of 1 cells"}));
  BOOST_TEST(has(refusal(matrix({{1}, {2}})), {"1 of 1 features"}));
}

BOOST_AUTO_TEST_CASE(bad_counts_are_refused_with_their_place) {
  cape::Run run;
  for (const double bad : {-1.0, nan_value, infinity, -infinity}) {
    Matrix m = matrix({{1, 2, 3, 4}, {5, 0, 7, 8}, {1, 1, 1, 1}});
    m(1, 2) = m(2, 3) = bad;
    const auto refusal = [&](auto&& counts) {
      return error_of(Status::invalid_argument, [&] { cape::preprocess(counts, no_filter, run); });
    };
    BOOST_TEST(has(refusal(m), {"counts has 2", "cell 2, feature 3"}));
    for (const Layout layout : {Layout::col_major, Layout::row_major})
      BOOST_TEST(has(refusal(sparse(m, layout).view()), {"counts has 2", "cell 2, feature 3"}));
  }
  const Matrix huge = matrix({{1e308, 1e308}, {1, 1}});
  const auto call = [&] { cape::preprocess(huge, no_filter, run); };
  BOOST_TEST(has(error_of(Status::invalid_argument, call), {"cell 1", "overflow"}));
}

BOOST_AUTO_TEST_CASE(broken_views_are_refused) {
  cape::Run run;
  const cape::MatrixView huge{nullptr, 3000000000, 3000000000, 3000000000, Layout::col_major};
  const auto refusal = [&](auto&& counts) {
    return error_of(Status::invalid_argument, [&] { cape::preprocess(counts, no_filter, run); });
  };
  BOOST_TEST(has(refusal(huge), {"counts", "3000000000"}));
  SparseMatrix s = sparse(matrix({{1, 2}, {3, 4}}), Layout::col_major);
  s.indices[0] = 9;
  BOOST_TEST(has(refusal(s.view()), {"counts", "9"}));
}

BOOST_AUTO_TEST_CASE(options_have_their_keys_and_ranges) {
  PreprocessOptions o;
  std::vector<std::string> names;
  for (const auto& field : cape::fields(o)) names.emplace_back(field.name);
  const std::vector<std::string> expected{"preprocess.min_features", "preprocess.min_cells",
                                          "preprocess.normalize",    "preprocess.target_sum",
                                          "preprocess.log1p",        "preprocess.n_variable"};
  BOOST_TEST(names == expected, boost::test_tools::per_element());
  cape::Run run;
  const Matrix counts = matrix({{1, 2}, {3, 4}});
  const auto refusal = [&](auto change) {
    PreprocessOptions bad = no_filter;
    change(bad);
    return error_of(Status::invalid_argument, [&] { cape::preprocess(counts, bad, run); });
  };
  using O = PreprocessOptions;
  BOOST_TEST(has(refusal([](O& b) { b.min_features = -1; }), {"preprocess.min_features is -1"}));
  BOOST_TEST(has(refusal([](O& b) { b.min_cells = -2; }), {"preprocess.min_cells is -2"}));
  BOOST_TEST(has(refusal([](O& b) { b.target_sum = 0; }), {"preprocess.target_sum is 0"}));
  BOOST_TEST(has(refusal([](O& b) { b.target_sum = nan_value; }), {"preprocess.target_sum"}));
  BOOST_TEST(has(refusal([](O& b) { b.n_variable = -1; }), {"preprocess.n_variable is -1"}));
}

BOOST_AUTO_TEST_CASE(a_run_can_be_cancelled) {
  cape::Run run(1, 1, [](const cape::Progress&) { return false; });
  const auto call = [&] { cape::preprocess(matrix({{1, 2}, {3, 4}}), no_filter, run); };
  BOOST_TEST(has(error_of(Status::cancelled, call), {"cancelled"}));
}

BOOST_AUTO_TEST_CASE(most_variable_columns_and_their_ties) {
  // Variances 0, 1, 4, 1, 0 (n-1, by hand).
  const Matrix m = matrix({{5, 1, 0, -1, 0}, {5, 2, 2, 0, 0}, {5, 3, 4, 1, 0}});
  using Columns = std::vector<std::int64_t>;
  for (const Columns& expected : {Columns{}, Columns{2}, Columns{1, 2}, Columns{1, 2, 3},
                                  Columns{0, 1, 2, 3}, Columns{0, 1, 2, 3, 4}}) {
    const std::int64_t n = std::ssize(expected);
    BOOST_TEST(cape::most_variable(m, n) == expected);
    for (const Layout layout : {Layout::col_major, Layout::row_major})
      BOOST_TEST(cape::most_variable(sparse(m, layout).view(), n) == expected);
  }
  const auto refusal = [](const Matrix& x, std::int64_t n) {
    return error_of(Status::invalid_argument, [&] { cape::most_variable(x, n); });
  };
  BOOST_TEST(has(refusal(m, 6), {"6", "5"}));
  BOOST_TEST(has(refusal(m, -1), {"-1"}));
  BOOST_TEST(has(refusal(matrix({{1, nan_value}, {2, 3}}), 1), {"column 2"}));
}

BOOST_AUTO_TEST_CASE(moments_by_hand_and_against_the_definition) {
  const auto hand = cape::column_moments(matrix({{1, 0.1, nan_value, nan_value, 4},
                                                 {2, 0.1, 7, nan_value, nan_value},
                                                 {6, 0.1, nan_value, nan_value, 8}}));
  // Column 1: mean 3, deviations -2, -1, 3: sum of squares 14, sd sqrt(7). Column 5: 4 and 8.
  const std::vector<double> mean{3, 0.1, 7, 0, 6}, sd{std::sqrt(7.0), 0, 0, 0, std::sqrt(8.0)};
  BOOST_TEST(hand.mean == mean, boost::test_tools::per_element());
  BOOST_TEST(hand.sd == sd, boost::test_tools::per_element());

  cape::Rng rng(43);
  Matrix m(500, 3);
  for (std::int64_t i = 0; i < m.size(); ++i) m.data()[i] = 1e6 + rng.normal();
  const auto moments = cape::column_moments(m);
  for (std::int64_t j = 0; j < 3; ++j)
    BOOST_TEST(std::fabs(moments.sd[at(j)] / std::sqrt(variance(column(m, j))) - 1) < 1e-12);
}

BOOST_AUTO_TEST_CASE(a_constant_column_has_sd_exactly_zero) {
  Matrix m(777, 1);
  for (std::int64_t i = 0; i < 777; ++i) m(i, 0) = 0.1;
  const auto moments = cape::column_moments(m);
  BOOST_TEST(moments.mean[0] == 0.1);
  BOOST_TEST(moments.sd[0] == 0.0);
}

BOOST_AUTO_TEST_CASE(moments_that_are_not_finite_are_refused) {
  const auto refusal = [](const Matrix& m) {
    return error_of(Status::invalid_argument, [&] { cape::column_moments(m); });
  };
  BOOST_TEST(has(refusal(matrix({{1, infinity}, {2, 3}})), {"column 2"}));
  BOOST_TEST(has(refusal(matrix({{infinity}, {infinity}})), {"column 1"}));
  BOOST_TEST(has(refusal(matrix({{1e300}, {-1e300}})), {"column 1"}));
}
