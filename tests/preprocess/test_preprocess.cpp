#define BOOST_TEST_MODULE preprocess
#include <boost/test/unit_test.hpp>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <utility>
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
    double sum = 0; // over all features, kept or not
    for (std::int64_t j = 0; j < counts.cols(); ++j) sum += counts(r.cells[at(i)], j);
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
  BOOST_TEST((r.library_size == std::vector<double>{3, 9, 13}));
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
    BOOST_TEST(has(refusal(m), {"counts has 2", "cell 1, feature 2"}));
    for (const Layout layout : {Layout::col_major, Layout::row_major})
      BOOST_TEST(has(refusal(sparse(m, layout).view()), {"counts has 2", "cell 1, feature 2"}));
  }
  const Matrix huge = matrix({{1e308, 1e308}, {1, 1}});
  const auto call = [&] { cape::preprocess(huge, no_filter, run); };
  BOOST_TEST(has(error_of(Status::invalid_argument, call), {"cell 0", "overflow"}));
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
  BOOST_TEST(has(refusal(matrix({{1, nan_value}, {2, 3}}), 1), {"column 1"}));
}

// ------------------------------------------------------------------------------ blocks of cells

namespace {

using cape::FeatureScan;
using cape::FeatureSummary;
using cape::Logarithm;
using cape::Transform;

// These rows of a matrix.
Matrix rows_of(const Matrix& m, std::int64_t first, std::int64_t count) {
  Matrix out(count, m.cols());
  for (std::int64_t j = 0; j < m.cols(); ++j)
    for (std::int64_t i = 0; i < count; ++i) out(i, j) = m(first + i, j);
  return out;
}

std::vector<FeatureSummary> scanned(const Matrix& m, std::int64_t width, int form,
                                    const std::vector<double>& factor = {},
                                    Logarithm logarithm = Logarithm::none) {
  FeatureScan scan(m.cols());
  for (std::int64_t first = 0; first < m.rows(); first += width) {
    const std::int64_t count = std::min(width, m.rows() - first);
    const Matrix block = rows_of(m, first, count);
    Transform how{.logarithm = logarithm};
    if (!factor.empty()) how.factor = std::span(factor).subspan(at(first), at(count));
    if (form == 0) scan.add(block.view(), how);
    if (form == 1) scan.add(sparse(block, Layout::row_major).view(), how);
    if (form == 2) scan.add(sparse(block, Layout::col_major, true).view(), how);
    if (form == 3) { // the same by rows
      std::vector<double> by_row(at(block.size()));
      for (std::int64_t i = 0; i < count; ++i)
        for (std::int64_t j = 0; j < m.cols(); ++j) by_row[at(i * m.cols() + j)] = block(i, j);
      scan.add(cape::MatrixView{by_row.data(), count, m.cols(), m.cols(), Layout::row_major}, how);
    }
  }
  return scan.summaries();
}

bool same(const FeatureSummary& a, const FeatureSummary& b) {
  return a.count == b.count && a.detected == b.detected && a.missing == b.missing &&
         a.infinite == b.infinite && a.fractional == b.fractional && a.smallest == b.smallest &&
         a.largest == b.largest && a.variance == b.variance;
}

} // namespace

BOOST_AUTO_TEST_CASE(summaries_by_hand) {
  const auto all = scanned(matrix({{1, 0.1, nan_value, nan_value, 4, -1},
                                   {2, 0.1, 7, nan_value, infinity, 0},
                                   {6, 0.1, nan_value, nan_value, 8, 0}}),
                           3, 0);
  // Column 0: mean 3, deviations -2, -1, 3: sum of squares 14. Column 4: 4 and 8. Column 5: mean
  // -1/3.
  const FeatureSummary expected[] = {
      {.count = 3, .detected = 3, .smallest = 1, .largest = 6, .variance = 7},
      {.count = 3, .detected = 3, .fractional = 3, .smallest = 0.1, .largest = 0.1},
      {.count = 1, .detected = 1, .missing = 2, .smallest = 7, .largest = 7},
      {.missing = 3},
      {.count = 2, .detected = 2, .infinite = 1, .smallest = 4, .largest = 8, .variance = 8},
      {.count = 3, .smallest = -1, .variance = 1.0 / 3}};
  for (std::size_t j = 0; j < 6; ++j) BOOST_TEST(same(all[j], expected[j]), j);
}

BOOST_AUTO_TEST_CASE(variances_do_not_cancel_and_do_not_depend_on_the_blocks) {
  cape::Rng rng(43);
  for (const double offset : {0.0, 1.0, -1e6, 1e9, 1e12}) {
    Matrix m(211, 4);
    for (std::int64_t i = 0; i < m.size(); ++i)
      m.data()[i] = i % 7 == 3 && offset == 0 ? 0 : offset + rng.normal();
    const auto whole = scanned(m, 211, 0);
    for (std::int64_t j = 0; j < 4; ++j)
      BOOST_TEST(std::fabs(whole[at(j)].variance / variance(column(m, j)) - 1) <
                     1e-12 + 1e-30 * offset * offset,
                 offset);
    for (const std::int64_t width : {1, 2, 50, 211})
      for (int form = 0; form < 4; ++form) {
        const auto parts = scanned(m, width, form);
        for (std::size_t j = 0; j < 4; ++j) BOOST_TEST(same(parts[j], whole[j]));
      }
  }
  const auto constant = scanned(matrix({{1e8 + 0.1}, {1e8 + 0.1}, {1e8 + 0.1}}), 3, 0);
  BOOST_TEST(constant[0].variance == 0);
  BOOST_TEST(scanned(matrix({{1e200}, {-1e200}}), 1, 0)[0].variance == infinity);
}

BOOST_AUTO_TEST_CASE(variances_within_groups_are_pooled) {
  const Matrix m = matrix({{1, 5}, {3, 5}, {101, 9}, {102, 9}, {106, 9}, {50, 7}});
  FeatureScan scan(2);
  for (const auto& [first, count] : {std::pair{0, 2}, {2, 3}, {5, 1}}) {
    scan.add(rows_of(m, first, count), {});
    scan.end_group();
  }
  const auto found = scan.summaries();
  BOOST_TEST(found[0].variance == (2.0 + 14.0) / (1 + 2)); // a group of one says nothing
  BOOST_TEST(found[1].variance == 0);
  BOOST_TEST(found[1].count == 6);
  BOOST_TEST((found[1].smallest == 5 && found[1].largest == 9));
}

BOOST_AUTO_TEST_CASE(a_scan_looks_at_the_chosen_features_after_the_transformation) {
  cape::Rng rng(44);
  const Matrix counts = random_counts(rng, 30, 12);
  const auto sums = cape::cell_sums(counts);
  const std::vector<double> factor = cape::cell_factors(sums.library_size, {}, 100);
  const std::vector<std::int64_t> chosen{7, 0, 3};
  FeatureScan scan(12, chosen);
  scan.add(sparse(counts, Layout::row_major).view(), {factor, Logarithm::binary});
  const auto some = scan.summaries();
  std::vector<double> values(30 * 3), dense(30 * 3);
  transformed_rows(sparse(counts, Layout::col_major).view(), {factor, Logarithm::binary}, chosen,
            values.data());
  transformed_rows(counts, {factor, Logarithm::binary}, chosen, dense.data());
  BOOST_TEST(values == dense, boost::test_tools::per_element());
  for (std::size_t k = 0; k < 3; ++k) {
    std::vector<double> column;
    for (std::int64_t i = 0; i < 30; ++i) {
      const double scaled = counts(i, chosen[k]) / sums.library_size[at(i)] * 100;
      column.push_back(std::log2(1 + (sums.library_size[at(i)] > 0 ? scaled : 0)));
      BOOST_TEST(std::fabs(values[at(i) * 3 + k] - column.back()) < 1e-13);
    }
    BOOST_TEST(std::fabs(some[k].variance - variance(column)) < 1e-12);
  }
  const std::vector<std::int64_t> none; // is not all
  FeatureScan nothing(12, none);
  nothing.add(counts, {factor, Logarithm::binary});
  BOOST_TEST(nothing.summaries().empty());
  double untouched = 7;
  transformed_rows(counts, {factor, Logarithm::binary}, none, &untouched);
  BOOST_TEST(untouched == 7);
  std::vector<double> stored;
  const SparseMatrix by_cell = sparse(counts, Layout::row_major);
  stored.resize(by_cell.values.size());
  transformed_stored(by_cell.view(), {factor, Logarithm::natural}, stored.data());
  for (std::int64_t i = 0, e = 0; i < 30; ++i)
    for (; e < by_cell.offsets[at(i) + 1]; ++e)
      BOOST_TEST(stored[at(e)] == std::log1p(by_cell.values[at(e)] * factor[at(i)]));
}

BOOST_AUTO_TEST_CASE(cells_have_sums_and_factors) {
  const Matrix m = matrix({{1, 0, 2}, {0, 0, 0}, {nan_value, -1, 4}});
  for (int form = 0; form < 3; ++form) {
    const auto sums = form == 0 ? cape::cell_sums(m)
                                : cape::cell_sums(sparse(m, form == 1 ? Layout::row_major
                                                                      : Layout::col_major)
                                                      .view());
    BOOST_TEST((sums.library_size == std::vector<double>{3, 0, 3}));
    BOOST_TEST((sums.detected == std::vector<std::int64_t>{2, 0, 1}));
  }
  const std::vector<double> sizes{4, 0, 10}, own{0.5, nan_value, 1.5};
  BOOST_TEST((cape::cell_factors(sizes, {}, 100) == std::vector<double>{25, 0, 10}));
  BOOST_TEST((cape::cell_factors(sizes, own, 100) == std::vector<double>{2, 0, 1 / 1.5}));
}

BOOST_AUTO_TEST_CASE(what_is_finite_stays_finite_or_nothing_is_written) {
  const Matrix m = matrix({{1, nan_value}, {infinity, -3}});
  const std::vector<double> one{1, 1}, huge{1e308, 1}, none{0, 0}, wrong{1, infinity};
  const std::vector<std::int64_t> first{0};
  const auto invalid = Status::invalid_argument;
  using test::fails_with;
  for (const Layout layout : {Layout::row_major, Layout::col_major}) {
    const SparseMatrix s = sparse(m, layout);
    double out[4] = {7, 7, 7, 7};
    BOOST_TEST(fails_with(invalid, "cells has the value -3, which is -3 after", [&] {
      transformed_rows(s.view(), {one, Logarithm::natural}, out);
    }));
    BOOST_TEST(fails_with(invalid, "factor is inf for cell 1",
                          [&] { transformed_rows(s.view(), {.factor = wrong}, out); }));
    BOOST_TEST((out[0] == 7 && out[3] == 7));
    // A feature that is not looked at may have any value, and what is not finite stays.
    transformed_rows(s.view(), {none, Logarithm::binary}, first, out);
    BOOST_TEST((out[0] == 0 && out[1] == infinity));
    FeatureScan scan(2);
    BOOST_TEST(fails_with(invalid, "-3 after", [&] {
      scan.add(s.view(), {one, Logarithm::natural});
    }));
    BOOST_TEST(scan.summaries()[0].count == 0);
    scan.add(s.view(), {.factor = one});
    BOOST_TEST((scan.summaries()[0].infinite == 1 && scan.summaries()[1].missing == 1));
    const Matrix large = matrix({{10, 0}, {0, 0}});
    BOOST_TEST(fails_with(invalid, "10, which times 1e+308 is beyond", [&] {
      transformed_stored(sparse(large, layout).view(), {.factor = huge}, out);
    }));
  }
}

BOOST_AUTO_TEST_CASE(bad_blocks_are_refused) {
  const Matrix m = matrix({{1, 2}, {3, 4}});
  const std::vector<double> sizes{1, 2}, short_one{1}, zero{0, 1};
  const std::vector<std::int64_t> out_of_range{0, 2}, twice{1, 1};
  double out[4];
  using test::fails_with;
  const auto invalid = Status::invalid_argument;
  BOOST_TEST(fails_with(invalid, "lie in [0, 2)", [&] { FeatureScan(2, out_of_range); }));
  BOOST_TEST(fails_with(invalid, "twice", [&] { FeatureScan(2, twice); }));
  BOOST_TEST(fails_with(invalid, "columns", [&] { FeatureScan(-1); }));
  BOOST_TEST(fails_with(invalid, "twice", [&] { transformed_rows(m, {}, twice, out); }));
  BOOST_TEST(fails_with(Status::dim_mismatch, "factor has 1",
                        [&] { transformed_rows(m, {.factor = short_one}, {}, out); }));
  BOOST_TEST(fails_with(invalid, "logarithm", [&] {
    transformed_rows(m, {.logarithm = static_cast<Logarithm>(3)}, {}, out);
  }));
  FeatureScan three(3);
  BOOST_TEST(fails_with(Status::dim_mismatch, "2 features", [&] { three.add(m.view(), {}); }));
  BOOST_TEST(fails_with(Status::dim_mismatch, "size_factor",
                        [&] { cape::cell_factors(sizes, short_one, 1); }));
  BOOST_TEST(fails_with(invalid, "size_factor is 0", [&] { cape::cell_factors(sizes, zero, 1); }));
  for (const double target : {0.0, -1.0, infinity, nan_value})
    BOOST_TEST(fails_with(invalid, "target_sum", [&] { cape::cell_factors(sizes, {}, target); }));
  const std::vector<double> tiny{1e-310, 1};
  BOOST_TEST(
      fails_with(invalid, "library size is 1e-310", [&] { cape::cell_factors(tiny, {}, 1e4); }));
  for (const double size : {-1.0, nan_value}) {
    const std::vector<double> wrong{1, size};
    BOOST_TEST(fails_with(invalid, "for cell 1 (", [&] { cape::cell_factors(wrong, {}, 1); }));
  }
  const std::vector<double> unknown{1, nan_value};
  BOOST_TEST(fails_with(invalid, "NaN", [&] { cape::most_variable(unknown, 1); }));
  BOOST_TEST(fails_with(invalid, "n is 3", [&] { cape::most_variable(sizes, 3); }));
}
