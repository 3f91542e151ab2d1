// The tiles that products are cut in, and how rows are packed for them.
#pragma once

namespace cape {

// Bytes of this CPU's first and second cache, or usual ones.
struct Caches {
  std::int64_t first = 32 << 10, second = 256 << 10;

  inline Caches() {
#ifdef _SC_LEVEL1_DCACHE_SIZE
    if (const long size = sysconf(_SC_LEVEL1_DCACHE_SIZE); size > 0) first = size;
    if (const long size = sysconf(_SC_LEVEL2_CACHE_SIZE); size > 0) second = size;
#endif
  }
};

// The sizes of tiles. No result depends on them but for where in the sum over keys a block ends.
template <class T>
struct Tiling {
  explicit Tiling(std::int64_t head_dim)
      : columns(simd::attention_columns<T>()), strip_width(round_up(head_dim, columns.panel)),
        width(round_up(head_dim, columns.vector)) {
    constexpr auto element = static_cast<std::int64_t>(sizeof(T));
    const Caches caches;
    // A panel of the values of a block takes two thirds of the first cache.
    const std::int64_t fit_block =
        caches.first * 2 / 3 / (std::min(width, columns.panel) * element);
    block = std::max(columns.panel, fit_block / columns.panel * columns.panel);
    // A tile with its queries, weights and sums takes a quarter of the second.
    const std::int64_t fit = caches.second / 4 / ((strip_width + block + width) * element);
    rows = std::max(fit / simd::strip_rows, std::int64_t{8}) * simd::strip_rows;
    // A block of keys with its weights and gradients takes half of the second.
    const std::int64_t fit_keys =
        caches.second / 2 / ((2 * strip_width + 2 * block + 3 * width) * element);
    keys = std::max(fit_keys / simd::strip_rows, std::int64_t{8}) * simd::strip_rows;
  }

  simd::Columns columns;
  std::int64_t strip_width; // head_dim up to a panel
  std::int64_t width;       // head_dim up to a vector
  std::int64_t block;       // keys forward, queries backward: side by side
  std::int64_t rows;        // queries forward, at most: in strips
  std::int64_t keys;        // keys backward: in strips
};

// Row i of a left factor in strips.
template <class T>
void pack_strip_row(const simd::Columns& size, std::int64_t i, const T* row, std::int64_t columns,
                    T* strips) {
  constexpr std::int64_t strip = simd::strip_rows;
  const std::int64_t panels = ceil_div(columns, size.panel);
  for (std::int64_t p = 0; p < panels; ++p)
    std::copy_n(row + p * size.panel, std::min(size.panel, columns - p * size.panel),
                strips + ((i / strip * panels + p) * strip + i % strip) * size.panel);
}

// Row i of a matrix with room for n rows: for each panel of columns n x panel, the last narrower if
// its columns are fewer vectors.
template <class T>
void pack_row(const simd::Columns& size, std::int64_t i, std::int64_t n, const T* row,
              std::int64_t columns, T* to) {
  for (std::int64_t c = 0; c < columns; c += size.panel) {
    const std::int64_t some = std::min(size.panel, columns - c);
    std::copy_n(row + c, some, to + c * n + i * round_up(some, size.vector));
  }
}

} // namespace cape
