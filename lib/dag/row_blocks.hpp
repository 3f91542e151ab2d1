// A table's rows in blocks, that are looked at one after the other.
#pragma once

namespace cape::sem {

/// Calls look(rows) for consecutive blocks of all rows, whose numbers are `rows`.
template <class Look>
void for_blocks(std::int64_t rows, std::int64_t columns, Look look) {
  constexpr std::int64_t block_values = 1 << 20;
  const std::int64_t length =
      std::min(rows, std::max<std::int64_t>(block_values / columns, 256));
  std::vector<std::int64_t> numbers;
  for (std::int64_t first = 0; first < rows; first += length) {
    numbers.resize(static_cast<std::size_t>(std::min(length, rows - first)));
    std::iota(numbers.begin(), numbers.end(), first);
    look(numbers);
  }
}

} // namespace cape::sem
