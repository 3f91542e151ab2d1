// Sorting that can be interrupted: a sort of millions of elements takes longer than a callback may
// be left waiting. Include it after importing cape.core.
#pragma once

namespace cape {

/// std::sort, polling the run between pieces of 2^15 elements. Elements that are neither less than
/// the other keep their order if they stand in different pieces, and may lose it inside of one.
template <class T, class Less>
void sort_in_pieces(std::vector<T>& values, Less less, Run& run) {
  constexpr std::size_t piece = std::size_t{1} << 15;
  const std::size_t n = values.size();
  const auto end_of = [n](std::size_t first, std::size_t length) {
    return std::min(n, first + length);
  };
  for (std::size_t first = 0; first < n; first += piece) {
    run.poll();
    std::sort(values.data() + first, values.data() + end_of(first, piece), less);
  }
  if (n <= piece) return;
  std::vector<T> merged(n);
  for (std::size_t width = piece; width < n; width *= 2) {
    for (std::size_t first = 0; first < n; first += 2 * width) {
      const std::size_t middle = end_of(first, width), last = end_of(first, 2 * width);
      for (std::size_t out = first, i = first, j = middle; out < last; ++out) {
        if (out % piece == 0) run.poll();
        const bool right = i == middle || (j < last && less(values[j], values[i]));
        merged[out] = values[right ? j++ : i++];
      }
    }
    values.swap(merged);
  }
}

} // namespace cape
