// The road from counts to a table, in parts: sums of cells, factors, transformation, scans and
// choices of features. Blocks of any form, cut anywhere, give the same bits.
#include "matrix.hpp"

using fuzz::Input;
using fuzz::Matrix;

namespace {

using Numbers = std::vector<double>;
using Places = std::vector<std::int64_t>;

std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

bool same(const Numbers& a, const Numbers& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0);
}

// Some cells in all forms that they have, and how they become values.
struct Cells {
  std::int64_t n, m;
  Numbers by_row, by_column, stored;
  std::vector<std::int32_t> columns;
  Places offsets = {0};
  Numbers factors;
  bool scaled;
  std::int32_t logarithm;
  Places chosen; ///< features
  bool all;

  Cells(Input& in, std::int64_t cells, std::int64_t features) : n(cells), m(features) {
    by_row = in.numbers(n * m);
    const bool signs = in.one_in(4), whole = in.flip();
    for (double& v : by_row) {
      if (in.one_in(3)) v = 0;
      if (!signs) v = std::fabs(v);
      if (whole) v = std::round(v);
    }
    scaled = in.flip();
    factors = in.numbers(n);
    if (in.flip())
      for (double& f : factors) f = std::fabs(f);
    logarithm = in.one_in(16) ? static_cast<std::int32_t>(in.integer())
                              : static_cast<std::int32_t>(in.in(0, 2));
    all = in.flip();
    for (std::int64_t j = 0; j < m; ++j)
      if (in.flip()) chosen.push_back(j);
    if (in.flip()) std::reverse(chosen.begin(), chosen.end());
    if (in.one_in(24)) chosen.push_back(in.integer());
    all = all || chosen.empty();
    by_column.resize(by_row.size());
    for (std::int64_t i = 0; i < n; ++i) {
      for (std::int64_t j = 0; j < m; ++j) {
        const double v = by_row[size(i * m + j)];
        by_column[size(j * n + i)] = v;
        if (v == 0) continue;
        stored.push_back(v);
        columns.push_back(static_cast<std::int32_t>(j));
      }
      offsets.push_back(std::ssize(stored));
    }
  }
  static const double* at(const Numbers& values, std::int64_t i) {
    return values.empty() ? nullptr : values.data() + i;
  }
  /// Of `count` cells from `first`.
  cape_matrix_view rows(std::int64_t first, std::int64_t count) const {
    return CAPE_ROW_MATRIX_VIEW(at(by_row, first * m), count, m);
  }
  cape_matrix_view cols(std::int64_t first, std::int64_t count) const {
    return {sizeof(cape_matrix_view), at(by_column, first), count, m, n, CAPE_COL_MAJOR, 0};
  }
  const double* factor(std::int64_t first = 0) const {
    return scaled ? at(factors, first) : nullptr;
  }
  const std::int64_t* features() const { return all ? nullptr : chosen.data(); }
  std::int64_t width() const { return all ? m : std::ssize(chosen); }
};

// The same cells from `first` on as a sparse block.
struct SparseBlock {
  Places offsets;
  cape_sparse_view view;

  SparseBlock(const Cells& c, std::int64_t first, std::int64_t count) {
    const std::int64_t start = c.offsets[size(first)];
    for (std::int64_t i = 0; i <= count; ++i) offsets.push_back(c.offsets[size(first + i)] - start);
    view = CAPE_SPARSE_VIEW(c.stored.data() + start, c.columns.data() + start, offsets.data(),
                            count, c.m, CAPE_ROW_MAJOR);
  }
};

void sums(const Cells& c) {
  const cape_matrix_view rows = c.rows(0, c.n), cols = c.cols(0, c.n);
  const SparseBlock sparse(c, 0, c.n);
  Numbers a(size(c.n)), b(a), s(a);
  Places detected(size(c.n)), others(detected);
  MUST(cape_cell_sums, a.data(), detected.data(), c.n, &rows);
  MUST(cape_cell_sums, b.data(), others.data(), c.n, &cols);
  MUST(cape_cell_sums_sparse, s.data(), nullptr, c.n, &sparse.view);
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto values = std::span(c.by_row).subspan(i * size(c.m), size(c.m));
    if (std::isnan(a[i]) && std::ranges::none_of(values, [](double v) { return std::isinf(v); }))
      fuzz::fail("cape_cell_sums", "a sum that is NaN, of numbers");
  }
  if (!same(a, b) || !same(a, s) || detected != others)
    fuzz::fail("cape_cell_sums", "depends on the form");
}

// What is finite becomes finite, or the call fails.
void transformed(const Cells& c) {
  const cape_matrix_view rows = c.rows(0, c.n), cols = c.cols(0, c.n);
  const SparseBlock sparse(c, 0, c.n);
  Numbers a(size(c.n * c.width()), -7), b(a), s(a), stored(c.stored.size(), -7);
  const Numbers untouched = a;
  const bool done = CALL(cape_transform_by_row, a.data(), c.n, c.width(), &rows, c.factor(),
                         c.logarithm, c.features());
  if (!done && !same(a, untouched)) fuzz::fail("cape_transform_by_row", "failed and wrote");
  if (done != CALL(cape_transform_by_row, b.data(), c.n, c.width(), &cols, c.factor(), c.logarithm,
                   c.features()) ||
      done != CALL(cape_transform_by_row_sparse, s.data(), c.n, c.width(), &sparse.view, c.factor(),
                   c.logarithm, c.features()) ||
      !same(a, b) || !same(a, s))
    fuzz::fail("cape_transform_by_row", "depends on the form");
  for (std::int64_t i = 0; done && i < c.n; ++i)
    for (std::int64_t k = 0; k < c.width(); ++k) {
      const double from = c.by_row[size(i * c.m + (c.all ? k : c.chosen[size(k)]))],
                   to = a[size(i * c.width() + k)];
      if (std::isfinite(from) != std::isfinite(to) || std::isnan(from) != std::isnan(to))
        fuzz::fail("cape_transform_by_row", "a number that is not finite, with CAPE_OK");
    }
  if (CALL(cape_transform_stored, stored.data(), std::ssize(stored), &sparse.view, c.factor(),
           c.logarithm))
    for (std::size_t e = 0; e < stored.size(); ++e)
      if (std::isfinite(stored[e]) != std::isfinite(c.stored[e]))
        fuzz::fail("cape_transform_stored", "a number that is not finite, with CAPE_OK");
}

// The summaries of the cells, which come in these blocks, each in a form of its own.
Numbers scanned(const Cells& c, const Places& cuts, const std::vector<int>& forms, bool groups,
                bool& done) {
  cape_scan* scan = nullptr;
  Numbers out(size(8 * c.width()), -7);
  done = CALL(cape_scan_new, &scan, c.m, c.features(), std::ssize(c.chosen));
  for (std::size_t b = 0; done && b + 1 < cuts.size(); ++b) {
    const std::int64_t first = cuts[b], count = cuts[b + 1] - first;
    const cape_matrix_view dense = forms[b] == 0 ? c.rows(first, count) : c.cols(first, count);
    const SparseBlock sparse(c, first, count);
    done = forms[b] == 2
               ? CALL(cape_scan_add_sparse, scan, &sparse.view, c.factor(first), c.logarithm)
               : CALL(cape_scan_add, scan, &dense, c.factor(first), c.logarithm);
    if (groups) MUST(cape_scan_end_group, scan);
  }
  if (done) MUST(cape_scan_summary, out.data(), c.width(), 8, scan);
  cape_scan_free(scan);
  return out;
}

void check_summaries(Input& in, const Cells& c, const Numbers& out) {
  const std::int64_t w = c.width();
  const auto column = [&](std::int64_t k) { return std::span(out).subspan(size(k * w), size(w)); };
  for (std::int64_t k = 0; k < 7; ++k) fuzz::finite(column(k), "cape_scan_summary");
  for (std::size_t f = 0; f < size(w); ++f) {
    const double finite = column(0)[f], variance = column(7)[f];
    if (finite + column(2)[f] + column(3)[f] != static_cast<double>(c.n))
      fuzz::fail("cape_scan_summary", "counts do not add up");
    if (column(1)[f] > finite || column(4)[f] > finite || column(5)[f] > column(6)[f])
      fuzz::fail("cape_scan_summary", "counts or range");
    if (!(variance >= 0)) fuzz::fail("cape_scan_summary", "a variance that is none");
    if (column(5)[f] == column(6)[f] && variance != 0)
      fuzz::fail("cape_scan_summary", "a constant varies");
  }
  Places best(size(in.in(0, w)));
  MUST(cape_largest_variances, best.data(), std::ssize(best), column(7).data(), w);
  for (std::size_t k = 0; k < best.size(); ++k)
    if (best[k] < 0 || best[k] >= w || (k > 0 && best[k] <= best[k - 1]))
      fuzz::fail("cape_largest_variances", "not rising, or out of range");
}

void scans(Input& in, const Cells& c) {
  Places cuts = {0};
  do cuts.push_back(in.at_end() ? c.n : in.in(cuts.back(), c.n));
  while (cuts.back() < c.n);
  std::vector<int> forms, others;
  for (std::size_t b = 0; b < cuts.size(); ++b) {
    forms.push_back(static_cast<int>(in.in(0, 2)));
    others.push_back(static_cast<int>(in.in(0, 2)));
  }
  bool whole = false, cut = false;
  const Numbers at_once = scanned(c, {0, c.n}, forms, false, whole);
  const Numbers in_parts = scanned(c, cuts, others, false, cut);
  if (whole != cut || (whole && !same(at_once, in_parts)))
    fuzz::fail("cape_scan_add", "depends on the blocks");
  if (whole) check_summaries(in, c, at_once);
  const Numbers grouped = scanned(c, cuts, others, true, cut);
  if (cut) check_summaries(in, c, grouped);
}

void factors(Input& in, std::int64_t n) {
  Numbers sizes = in.numbers(n), own = in.numbers(n), out(size(n), -7);
  if (!in.one_in(4))
    for (double& v : sizes) v = std::fabs(v);
  if (!in.one_in(4))
    for (double& v : own) v = std::fabs(v);
  const double target = in.one_in(4) ? in.number() : 1e4;
  FINITE(out, cape_cell_factors, out.data(), n, sizes.data(), in.flip() ? own.data() : nullptr,
         target);
  Places chosen(128);
  CALL(cape_largest_variances, chosen.data(), in.one_in(8) ? in.integer() : in.in(0, n),
       sizes.data(), n);
}

// Views, sizes and numbers of features of any kind.
void wrong(Input& in, std::int64_t n, std::int64_t m) {
  const Matrix cells(in, n, m);
  const fuzz::Sparse sparse(in, n, m, true);
  const Numbers factor = in.numbers(16);
  const Places features = in.indices(m, m);
  Numbers out(1024, -7), sizes(128); // enough for rows and columns of any number below 100
  const std::int64_t rows = in.one_in(8) ? in.integer() : n,
                     width = in.one_in(8) ? in.integer() : m;
  const auto logarithm = static_cast<std::int32_t>(in.in(-1, 3));
  const std::int64_t* chosen = in.flip() ? features.data() : nullptr;
  // A factor has as many numbers as the view has rows, whatever that says.
  const double* f = in.flip() && cells.view.n_rows <= 16 && n <= 16 ? factor.data() : nullptr;
  CALL(cape_cell_sums, sizes.data(), nullptr, rows, &cells.view);
  CALL(cape_cell_sums_sparse, sizes.data(), nullptr, rows, &sparse.view);
  if (width <= m || chosen == nullptr) {
    CALL(cape_transform_by_row, out.data(), rows, width, &cells.view, f, logarithm, chosen);
    CALL(cape_transform_by_row_sparse, out.data(), rows, width, &sparse.view, f, logarithm, chosen);
  }
  static constexpr std::int64_t impossible[] = {std::numeric_limits<std::int64_t>::min(), -1,
                                                std::numeric_limits<std::int64_t>::max()};
  cape_scan* scan = nullptr;
  if (CALL(cape_scan_new, &scan, in.one_in(8) ? in.one_of(impossible) : in.in(0, 6), chosen, m)) {
    Numbers before(1024, -7), after(before);
    const bool fits = CALL(cape_scan_summary, before.data(), m, 8, scan);
    const bool dense = CALL(cape_scan_add, scan, &cells.view, f, logarithm);
    if (!dense && fits) {
      MUST(cape_scan_summary, after.data(), m, 8, scan);
      if (!same(before, after)) fuzz::fail("cape_scan_add", "failed and changed the scan");
    }
    CALL(cape_scan_add_sparse, scan, &sparse.view, f, logarithm);
    CALL(cape_scan_summary, after.data(), rows, width == m ? 8 : width, scan);
  }
  cape_scan_free(scan);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  Input in(data, bytes);
  const std::int64_t kind = in.in(0, 4), n = in.in(0, 6), m = in.in(0, 5);
  switch (kind) {
  case 0: sums(Cells(in, n, m)); break;
  case 1: transformed(Cells(in, n, m)); break;
  case 2: scans(in, Cells(in, n, m)); break;
  case 3: factors(in, n); break;
  default: wrong(in, n, m);
  }
  return 0;
}
