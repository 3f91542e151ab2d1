// The table of Step I: read once or step by step, and what has to be known of its columns before.
module;
#include "internal/message.hpp"
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <new>
#include <numeric>
#include <span>
#include <string>
#include <typeinfo>
#include <utility>
#include <variant>
#include <vector>
module cape.dag;
#include "dag/missing_values.hpp"
#include "dag/range.hpp"
#include "dag/row_blocks.hpp"
#include "dag/row_design.hpp"
#include "dag/row_source.hpp"
#include "dag/table.hpp"

namespace cape::sem {
// GCC 14 crashes on a member whose imported class it has not completed before.
static_assert(sizeof(Matrix) > 0 && sizeof(std::vector<double>) > 0 &&
              sizeof(std::vector<std::int64_t>) > 0);

namespace {

constexpr std::int64_t min_columns = 2;

// Standardised values are kept to 2^-20 of a standard deviation. Rescaling a column changes their
// last bits; without them every step of the fit is the same, and so is the result.
double to_grid(double v) { return std::nearbyint(v * 0x1p20) * 0x1p-20; }

} // namespace

// Of the observed values by their weight, or of all alike in a column without an equation; divided
// by the largest first so that no square overflows.
struct Table::Moments : Range {
  std::int64_t count = 0;
  double total = 0; ///< of the weights
  double sum = 0;   ///< of the present pass
  double mean = 0;
  bool exogenous = false;
};

Table::Table(const RowSource& source, const Matrix& weight, bool standardize, bool keep, Run& run)
    : source_(source), weight_(weight), standardize_(standardize) {
  if (keep) values_ = whole(run);
  find_moments(run);
  std::vector<std::int64_t> varying;
  for (std::int64_t j = 0; j < source.columns; ++j)
    if (!std::ranges::binary_search(constant_, j)) varying.push_back(j);
  if (std::ssize(varying) < min_columns)
    throw Error(Status::invalid_argument,
                message("x needs at least 2 features with variance and 10 observations; got ",
                        varying.size(), " and ", source.rows));
  columns_ = varying;
  if (keep) prepare_values(run);
  sort_by_content(run);
  if (keep) arrange_values(run);
}

// Tables in memory are read once, which transposes those that come by rows; what follows works in
// this copy.
Matrix Table::whole(Run& run) const {
  Matrix all(source_.rows, source_.columns, run);
  for_blocks(source_.rows, source_.columns, [&](const std::vector<std::int64_t>& rows) {
    const Matrix block = raw(rows);
    run.parallel_for(source_.columns, [&](std::int64_t j) {
      std::copy_n(block.column(j), block.rows(), all.column(j) + rows.front());
    });
  });
  return all;
}

// Four passes: the range, the mean, the rounding of the first sum, the squares.
void Table::find_moments(Run& run) {
  const std::int64_t m = source_.columns;
  std::vector<Moments> moments(static_cast<std::size_t>(m));
  const auto pass = [&](auto look) {
    for_blocks(source_.rows, m, [&](const std::vector<std::int64_t>& rows) {
      const Matrix block = values_.empty() ? raw(rows) : Matrix();
      run.parallel_for(m, [&](std::int64_t j) {
        const double* x = values_.empty() ? block.column(j) : values_.column(j) + rows.front();
        const double* weight = weight_.empty() ? nullptr : weight_.column(j) + rows.front();
        for (std::size_t i = 0; i < rows.size(); ++i)
          if (!std::isnan(x[i]))
            look(moments[static_cast<std::size_t>(j)], x[i], weight ? weight[i] : 1);
      });
    });
  };
  pass([](Moments& m_j, double v, double w) {
    m_j.add(v);
    m_j.total += w;
    ++m_j.count;
  });
  constexpr double largest = 1e300; // differences are finite
  for (std::int64_t j = 0; j < m; ++j)
    if (const Moments& m_j = moments[static_cast<std::size_t>(j)];
        m_j.count > 0 && m_j.size() > largest)
      throw Error(Status::invalid_argument,
                  message("x has values beyond ", largest, " in column ", j, " (counted from 0)"));
  for (Moments& m_j : moments) {
    m_j.exogenous = m_j.total == 0 && !m_j.constant();
    if (m_j.exogenous) m_j.total = static_cast<double>(m_j.count);
  }
  const auto add = [&](auto term) {
    for (Moments& m_j : moments) m_j.sum = 0;
    pass([&](Moments& m_j, double v, double w) {
      m_j.sum += (m_j.exogenous ? 1 : w) * term(m_j, v / m_j.size());
    });
  };
  add([](const Moments&, double v) { return v; });
  for (Moments& m_j : moments) m_j.mean = m_j.sum / m_j.total;
  add([](const Moments& m_j, double v) { return v - m_j.mean; });
  for (Moments& m_j : moments) m_j.mean += m_j.sum / m_j.total;
  add([](const Moments& m_j, double v) { return (v - m_j.mean) * (v - m_j.mean); });
  for (std::int64_t j = 0; j < m; ++j) {
    const Moments& m_j = moments[static_cast<std::size_t>(j)];
    const double sd = std::sqrt(m_j.sum / m_j.total) * m_j.size();
    const bool constant = m_j.constant();
    if (constant) constant_.push_back(j);
    if (m_j.exogenous) exogenous_.push_back(j);
    center_.push_back(m_j.count == 0 ? 0 : constant ? m_j.low : m_j.mean * m_j.size());
    deviation_.push_back(constant || !(sd > 0) ? 1.0 : sd);
    scale_.push_back(standardize_ ? deviation_.back() : 1.0);
  }
}

void Table::prepare_values(Run& run) {
  for_blocks(source_.rows, source_.columns, [&](const std::vector<std::int64_t>& rows) {
    run.parallel_for(features(), [&](std::int64_t c) {
      const std::int64_t j = columns_[static_cast<std::size_t>(c)];
      double* x = values_.column(j) + rows.front();
      for (std::size_t i = 0; i < rows.size(); ++i) x[i] = prepared_value(x[i], j);
    });
  });
}

void Table::sort_by_content(Run& run) {
  std::vector<ValueHash> content(columns_.size());
  for_blocks(source_.rows, source_.columns, [&](const std::vector<std::int64_t>& rows) {
    const Matrix block = values_.empty() ? prepared<double>(rows, run) : Matrix();
    run.parallel_for(features(), [&](std::int64_t c) {
      const auto at = static_cast<std::size_t>(c);
      const double* x =
          values_.empty() ? block.column(c) : values_.column(columns_[at]) + rows.front();
      content[at].add({x, rows.size()});
    });
  });
  std::vector<std::pair<std::uint64_t, std::int64_t>> keys;
  for (std::size_t c = 0; c < columns_.size(); ++c)
    keys.emplace_back(content[c].value(), columns_[c]);
  std::ranges::sort(keys);
  std::string text = std::to_string(source_.rows);
  for (std::size_t c = 0; c < keys.size(); ++c) {
    columns_[c] = keys[c].second;
    text += " " + std::to_string(keys[c].first);
  }
  content_ = hash(text);
}

// From the source's columns to those in order of content, in place: column c gets what was column
// from[c], which is where swaps with earlier ones have put it.
void Table::arrange_values(Run& run) {
  std::vector<std::int64_t> from = columns_;
  from.insert(from.end(), constant_.begin(), constant_.end());
  for (std::int64_t c = 0; c < std::ssize(from); ++c) {
    run.poll();
    std::int64_t at = from[static_cast<std::size_t>(c)];
    while (at < c) at = from[static_cast<std::size_t>(at)];
    if (at != c)
      std::swap_ranges(values_.column(c), values_.column(c) + values_.rows(), values_.column(at));
  }
  values_.keep_columns(features());
}

double Table::prepared_value(double x, std::int64_t column) const {
  const auto j = static_cast<std::size_t>(column);
  const double v = std::isnan(x) ? 0 : (x - center_[j]) / scale_[j];
  return standardize_ ? to_grid(v) : v;
}

Matrix Table::raw(std::span<const std::int64_t> rows) const {
  Matrix block(std::ssize(rows), source_.columns);
  source_.read(rows, block.data());
  return block;
}

template <class T>
BasicMatrix<T> Table::prepared(std::span<const std::int64_t> rows, Run& run) const {
  const Matrix block = raw(rows);
  BasicMatrix<T> out(std::ssize(rows), features());
  run.parallel_for(features(), [&](std::int64_t c) {
    const std::int64_t j = columns_[static_cast<std::size_t>(c)];
    for (std::int64_t i = 0; i < out.rows(); ++i)
      out(i, c) = static_cast<T>(prepared_value(block(i, j), j));
  });
  return out;
}

template <class T>
BasicMatrix<T> Table::read(std::span<const std::int64_t> rows, Run& run) const {
  return values_.empty() ? prepared<T>(rows, run) : gather<T>(values_, rows, {}, run);
}

template <class T>
BasicMatrix<T> Table::read_weights(std::span<const std::int64_t> rows, Run& run) const {
  return weight_.empty() ? BasicMatrix<T>() : gather<T>(weight_, rows, columns_, run);
}

// Some rows of a matrix, and of its columns those given, or all.
template <class T>
BasicMatrix<T> Table::gather(const Matrix& from, std::span<const std::int64_t> rows,
                             std::span<const std::int64_t> columns, Run& run) const {
  BasicMatrix<T> out(std::ssize(rows), features());
  constexpr std::int64_t block = 32; // columns that are one task
  run.parallel_for((features() + block - 1) / block, [&](std::int64_t b) {
    for (std::int64_t c = b * block; c < std::min(features(), (b + 1) * block); ++c) {
      const double* x = from.column(columns.empty() ? c : columns[static_cast<std::size_t>(c)]);
      for (std::size_t r = 0; r < rows.size(); ++r) out.column(c)[r] = static_cast<T>(x[rows[r]]);
    }
  });
  return out;
}

Matrix Table::spaced_rows(std::int64_t count, Run& run) const {
  return read<double>(spaced_rows_of(source_.rows, count), run);
}

Matrix Table::spaced_rows(std::int64_t count, std::span<const std::int64_t> features,
                          Run& run) const {
  Matrix out(count, std::ssize(features));
  for_blocks(count, source_.columns, [&](const std::vector<std::int64_t>& numbers) {
    std::vector<std::int64_t> rows;
    for (const std::int64_t r : numbers) rows.push_back(spaced_row(r, source_.rows, count));
    const Matrix block = read<double>(rows, run);
    for (std::size_t f = 0; f < features.size(); ++f)
      std::copy_n(block.column(features[f]), block.rows(),
                  out.column(static_cast<std::int64_t>(f)) + numbers.front());
  });
  return out;
}

void Table::impute(const Design& design, const DagOptions& options, Run& run) {
  missing_ = Mask(rows(), features());
  bool any = false;
  for_blocks(rows(), source_.columns, [&](const std::vector<std::int64_t>& numbers) {
    const Matrix block = raw(numbers);
    for (std::int64_t c = 0; c < features(); ++c)
      for (std::int64_t i = 0; i < block.rows(); ++i) {
        const bool gap = std::isnan(block(i, columns_[static_cast<std::size_t>(c)]));
        missing_(numbers.front() + i, c) = gap;
        any |= gap;
      }
  });
  if (!any) {
    missing_ = {};
    return;
  }
  const auto gaps = [this](std::int64_t c) {
    return std::count(missing_.column(c), missing_.column(c) + rows(), std::int8_t{1});
  };
  for (std::int64_t c = 0; c < features(); ++c)
    if (rows() - gaps(c) < least_rows) exogenous_.push_back(columns_[static_cast<std::size_t>(c)]);
  std::ranges::sort(exogenous_);
  exogenous_.erase(std::ranges::unique(exogenous_).begin(), exogenous_.end());
  const auto centred_together = rows_by_batch(design, rows());
  const bool batches = !design.batch.empty();
  std::vector<std::int64_t> all(static_cast<std::size_t>(rows()));
  std::iota(all.begin(), all.end(), std::int64_t{0});
  const Matrix weight = read_weights<double>(all, run);
  draw_missing(values_, missing_, weight, options, run);
  // By the weights by which they were centred.
  run.parallel_for(features(), [&](std::int64_t c) {
    if (gaps(c) == 0) return;
    const auto j = static_cast<std::size_t>(columns_[static_cast<std::size_t>(c)]);
    for (const auto& [batch, group] : centred_together) {
      const std::vector<double> w =
          centering_weights(group, c, weight, batches ? design : Design());
      double sum = 0, total = 0;
      for (std::size_t r = 0; r < group.size(); ++r) {
        sum += w[r] * values_(group[r], c);
        total += w[r];
      }
      for (const std::int64_t i : group) values_(i, c) -= sum / total;
      if (!batches) center_[j] += sum / total * scale_[j];
    }
  });
}

Mask Table::spaced_missing(std::int64_t count, std::span<const std::int64_t> features) const {
  if (missing_.empty()) return {};
  Mask out(count, std::ssize(features));
  for (std::int64_t f = 0; f < out.cols(); ++f)
    for (std::int64_t r = 0; r < count; ++r)
      out(r, f) = missing_(spaced_row(r, rows(), count), features[static_cast<std::size_t>(f)]);
  return out;
}

template BasicMatrix<float> Table::read(std::span<const std::int64_t>, Run&) const;
template BasicMatrix<double> Table::read(std::span<const std::int64_t>, Run&) const;
template BasicMatrix<float> Table::read_weights(std::span<const std::int64_t>, Run&) const;
template BasicMatrix<double> Table::read_weights(std::span<const std::int64_t>, Run&) const;

} // namespace cape::sem
