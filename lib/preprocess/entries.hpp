// In the purview of cape.preprocess: the stored entries of a sparse view, and what a count becomes.
#pragma once

namespace cape {

// body(row, column, value) for every stored entry, columns (rows) in order; `between` runs before
// each column (row). Whatever the layout, the entries of one column come in the order of rows and
// those of one row in the order of columns, so that sums over either have the same bits.
template <class F, class G>
void for_entries(const SparseView& x, F body, G between) {
  const bool by_column = x.layout == Layout::col_major;
  for (std::int64_t o = 0; o < x.outer(); ++o) {
    between();
    for (std::int64_t e = x.offsets[o]; e < x.offsets[o + 1]; ++e) {
      const std::int64_t inner = x.indices[e];
      if (by_column)
        body(inner, o, x.values[e]);
      else
        body(o, inner, x.values[e]);
    }
  }
}

// How a count enters the sums of its cell.
inline void add_count(CellSums& sums, std::int64_t cell, double count) {
  if (!std::isnan(count)) sums.library_size[at(cell)] += count;
  sums.detected[at(cell)] += count > 0;
}

inline double scaled(double count, const Transform& how, std::int64_t cell) {
  return (how.factor.empty() ? count : count * how.factor[at(cell)]) + 0.0;
}

// How cell number `cell` of a block makes a value of a count; what is not finite stays as it is,
// and -0 becomes 0, as where zeros are not stored.
inline double transformed(double count, const Transform& how, std::int64_t cell) {
  if (!std::isfinite(count)) return count;
  const double x = scaled(count, how, cell);
  if (how.logarithm == Logarithm::none) return x;
  return how.logarithm == Logarithm::natural ? std::log1p(x) : std::log1p(x) / std::log(2.0);
}

} // namespace cape
