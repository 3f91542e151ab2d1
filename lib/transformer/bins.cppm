// Values in bins: what a model is told of a value where it has an embedding for each bin, or takes
// the number of the bin as the value.
module;
#include <cstdint>
#include <span>
#include <vector>
export module cape.transformer:bins;
import cape.core;

export namespace cape {

/// Where a value goes that several bins have the same claim to: into one of them, drawn uniformly,
/// or into the lowest, always.
enum class Ties : std::int32_t { drawn, lowest };

/// The bin of a missing value (NaN): none.
inline constexpr std::int32_t no_bin = -1;

/// The bins of one cell's values by their quantiles within the cell, as scGPT's: 0 is in bin 0, and
/// the other values in bins 1 .. n_bins - 1, by the n_bins - 1 quantiles of levels 0, 1 / (n_bins -
/// 2), .., 1 of these other values, interpolated linearly. A value is in the bin of the highest
/// quantile that it reaches; where it equals several, in any bin of theirs. A cell whose values are
/// all equal has ties alone. Quantiles are compared by their ranks, without rounding, so that the
/// bins are those of any increasing function of the values that keeps 0. (A cell of zeros has bin 0
/// alone; negative values are values like others. NaN is in no bin and in no quantile.)
///
/// draws: one number in [0, 1) for each value, which says where it goes in a tie (scGPT's own,
/// given here, give its bins); empty: into the lowest bin. Without draws, or with those of
/// tie_draws(), the order of the values does not matter, and zeros may be left out.
///
/// n_bins is in [2, 65536]. Error(invalid_argument) for another, for an infinite value and for
/// draws out of range; Error(dim_mismatch) for another number of draws. O(n log n) for n values.
template <class T>
std::vector<std::int32_t> quantile_bins(std::span<const T> values, std::int64_t n_bins,
                                        std::span<const double> draws = {});

/// Numbers in (0, 1) for the ties of a cell, one for each feature: a function of the seed, of what
/// the cell is and of what the feature is, such as the hash() of their names, and of nothing else:
/// neither the order of cells or features nor the presence of others matters. O(features).
std::vector<double> tie_draws(std::uint64_t seed, std::uint64_t cell,
                              std::span<const std::uint64_t> features);

/// The bins of scBERT, which are the same for all cells: min(log2(1 + x), largest) without its
/// fraction, so that [0, 1) is in bin 0, [1, 3) in bin 1, [3, 7) in bin 2, and all from 2^largest -
/// 1 on in bin `largest`, exactly. x: counts, normalised or not, not logarithms; NaN is in no bin.
/// largest is in [1, 52]. Error(invalid_argument) for another, and for a value that is negative or
/// infinite. O(n largest).
template <class T>
std::vector<std::int32_t> logarithmic_bins(std::span<const T> values, std::int32_t largest = 5);

} // namespace cape
