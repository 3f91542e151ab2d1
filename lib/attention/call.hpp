// What the implementation units of cape.attention share; included in their purview.
#pragma once

namespace cape {

// ---------------------------------------------------------------------------------------- tensors

// A length x heads*head_dim tensor for every element of the batch, its rows `stride` apart.
template <class T>
struct Tensor {
  T* data;
  std::int64_t batch, length, heads, head_dim, stride;

  T* row(std::int64_t b, std::int64_t i, std::int64_t h) const {
    return data + (b * length + i) * stride + h * head_dim;
  }
};

// A tensor of queries or keys; stride 0: without gaps.
template <class T, class U>
Tensor<U> queries(const AttentionInput<T>& in, U* data, std::int64_t stride = 0) {
  const std::int64_t width = in.heads * in.head_dim;
  return {data, in.batch, in.q_length, in.heads, in.head_dim, stride == 0 ? width : stride};
}
template <class T, class U>
Tensor<U> keys(const AttentionInput<T>& in, U* data, std::int64_t stride = 0) {
  const std::int64_t width = in.heads * in.head_dim;
  return {data, in.batch, in.k_length, in.heads, in.head_dim, stride == 0 ? width : stride};
}

template <class T>
Tensor<const T> q_of(const AttentionInput<T>& in) {
  return queries(in, in.q, in.q_stride);
}
template <class T>
Tensor<const T> k_of(const AttentionInput<T>& in) {
  return keys(in, in.k, in.k_stride);
}
template <class T>
Tensor<const T> v_of(const AttentionInput<T>& in) {
  return keys(in, in.v, in.v_stride);
}
template <class T, class U>
Tensor<U> outputs(const AttentionInput<T>& in, U* data) {
  return queries(in, data, in.out_stride);
}

// Elements of a tensor without gaps.
template <class T>
std::int64_t q_size(const AttentionInput<T>& in) {
  return in.batch * in.q_length * in.heads * in.head_dim;
}
template <class T>
std::int64_t k_size(const AttentionInput<T>& in) {
  return in.batch * in.k_length * in.heads * in.head_dim;
}

template <class T>
bool has_angles(const AttentionInput<T>& in) {
  return in.q_angles != nullptr || in.k_angles != nullptr;
}

template <class T>
std::int64_t angle_count(const AttentionInput<T>& in, std::int64_t length) {
  return checked_size(length, in.angle_heads * in.head_dim / 2, "angles");
}

template <class T>
bool is_key(const AttentionInput<T>& in, std::int64_t b, std::int64_t j) {
  return in.key_mask == nullptr || in.key_mask[b * in.k_length + j] != 0;
}

// Numbers of the keys that are not padding.
template <class T>
std::vector<std::int64_t> key_rows(const AttentionInput<T>& in, std::int64_t b) {
  std::vector<std::int64_t> rows;
  for (std::int64_t j = 0; j < in.k_length; ++j)
    if (is_key(in, b, j)) rows.push_back(j);
  return rows;
}

template <class T>
T scale_of(const AttentionInput<T>& in) {
  return std::isnan(in.scale) ? T(1) / std::sqrt(static_cast<T>(in.head_dim)) : in.scale;
}

constexpr std::int64_t round_up(std::int64_t n, std::int64_t unit) {
  return (n + unit - 1) / unit * unit;
}

// ------------------------------------------------------------------------------------ validation

inline void check_at_least(std::int64_t value, std::int64_t least, const char* name) {
  if (value < least)
    throw Error(Status::invalid_argument,
                message(name, " is ", value, "; it must be at least ", least));
}

inline void check_pointer(const void* pointer, std::int64_t size, const char* name) {
  if (pointer == nullptr && size > 0)
    throw Error(Status::invalid_argument,
                message(name, " is null; it must hold ", size, " elements"));
}

template <class T>
void check_sizes(const AttentionInput<T>& in) {
  check_at_least(in.batch, 0, "batch");
  check_at_least(in.heads, 1, "heads");
  check_at_least(in.q_length, 0, "q_length");
  check_at_least(in.k_length, 0, "k_length");
  check_at_least(in.head_dim, 1, "head_dim");
  // One by one too, as the rest of a product may be 0.
  for (const auto& [size, name] :
       {std::pair(in.q_length, "q_length"), std::pair(in.k_length, "k_length")})
    checked_size(size, 1, name);
  checked_size(in.batch, in.heads, "batch x heads");
  const std::int64_t width = checked_size(in.heads, in.head_dim, "heads x head_dim");
  checked_size(checked_size(in.batch, in.q_length, "batch x q_length"), width, "q");
  checked_size(checked_size(in.batch, in.k_length, "batch x k_length"), width, "k");
}

// Sizes and pointers; `values` says whether v is read.
template <class T>
void check_shapes(const AttentionInput<T>& in, bool values) {
  check_sizes(in);
  const std::int64_t width = checked_size(in.heads, in.head_dim, "heads x head_dim");
  const std::int64_t q_rows = checked_size(in.batch, in.q_length, "batch x q_length");
  const std::int64_t k_rows = checked_size(in.batch, in.k_length, "batch x k_length");
  const auto check_stride = [&](std::int64_t stride, std::int64_t rows, const char* name) {
    if (stride != 0 && stride < width)
      throw Error(Status::invalid_argument,
                  message(name, " is ", stride,
                          "; it must be 0 (no gaps) or at least heads x head_dim, which is ",
                          width));
    checked_size(rows, stride, name);
  };
  check_stride(in.q_stride, q_rows, "q_stride");
  check_stride(in.k_stride, k_rows, "k_stride");
  check_stride(in.v_stride, k_rows, "v_stride");
  check_stride(in.out_stride, q_rows, "out_stride");
  check_pointer(in.q, checked_size(q_rows, width, "q"), "q");
  check_pointer(in.k, checked_size(k_rows, width, "k"), "k");
  if (values) check_pointer(in.v, k_rows * width, "v");
  if (has_angles(in)) {
    if (in.head_dim % 2 != 0)
      throw Error(Status::dim_mismatch,
                  message("head_dim is ", in.head_dim,
                          " but angles turn pairs of elements: it must be even, here ",
                          in.head_dim - 1, " or ", in.head_dim + 1));
    if (in.angle_heads != 1 && in.angle_heads != in.heads)
      throw Error(Status::dim_mismatch, message("angle_heads is ", in.angle_heads,
                                                "; it must be 1 or heads, which is ", in.heads));
    check_pointer(in.q_angles, angle_count(in, in.q_length), "q_angles");
    check_pointer(in.k_angles, angle_count(in, in.k_length), "k_angles");
  }
  if (in.bias != nullptr && in.bias_heads != 1 && in.bias_heads != in.heads)
    throw Error(Status::dim_mismatch, message("bias_heads is ", in.bias_heads,
                                              "; it must be 1 or heads, which is ", in.heads));
  if (std::isinf(in.scale))
    throw Error(Status::invalid_argument,
                "scale is infinite; it must be finite, or NaN for the default");
}

template <class T>
T checked_magnitude(const T* x, std::int64_t size, const char* name) {
  const T largest = size > 0 ? simd::max_abs(x, size) : 0;
  if (std::isinf(largest))
    throw Error(Status::invalid_argument, message(name, " has a value that is not finite"));
  return largest;
}

template <class T>
T checked_magnitude(const Tensor<const T>& x, const char* name) {
  const std::int64_t rows = x.batch * x.length, width = x.heads * x.head_dim;
  if (x.stride == width) return checked_magnitude(x.data, rows * width, name);
  T largest = 0;
  for (std::int64_t i = 0; i < rows; ++i)
    largest = std::max(largest, checked_magnitude(x.data + i * x.stride, width, name));
  return largest;
}

// The largest magnitude of the keys or values that are not padding.
template <class T>
T checked_key_magnitude(const AttentionInput<T>& in, const Tensor<const T>& x, const char* name) {
  if (in.key_mask == nullptr) return checked_magnitude(x, name);
  T largest = 0;
  for (std::int64_t b = 0; b < in.batch; ++b)
    for (std::int64_t j = 0; j < in.k_length; ++j)
      if (is_key(in, b, j))
        largest =
            std::max(largest, checked_magnitude(x.row(b, j, 0), in.heads * in.head_dim, name));
  return largest;
}

template <class T>
void check_bias(const AttentionInput<T>& in) {
  if (in.bias == nullptr) return;
  const std::int64_t rows = checked_size(in.bias_heads, in.q_length, "bias_heads x q_length");
  const std::int64_t size = checked_size(rows, in.k_length, "bias");
  constexpr T most = std::numeric_limits<T>::max() / 8;
  int bad = 0;
  for (std::int64_t i = 0; i < size; ++i) bad |= static_cast<int>(!(in.bias[i] <= most));
  if (bad != 0)
    throw Error(Status::invalid_argument,
                "bias has a value that is neither finite nor minus infinity, or is too large");
}

// Finite, and small enough that no score can overflow.
template <class T>
void check_scored_values(const AttentionInput<T>& in) {
  const double q = static_cast<double>(checked_magnitude(q_of(in), "q"));
  const double k = static_cast<double>(checked_key_magnitude(in, k_of(in), "k"));
  if (has_angles(in)) {
    checked_magnitude(in.q_angles, angle_count(in, in.q_length), "q_angles");
    checked_magnitude(in.k_angles, angle_count(in, in.k_length), "k_angles");
  }
  check_bias(in);
  constexpr auto most = static_cast<double>(std::numeric_limits<T>::max());
  const double scale = std::fabs(static_cast<double>(scale_of(in)));
  if (!(2 * scale <= most)) // the kernel takes powers of 2
    throw Error(Status::invalid_argument,
                message("scale is ", in.scale, "; its magnitude must be at most ", most / 2));
  // Twice for the rotation, twice for the difference of two scores, twice for powers of 2.
  const double reach = 8.0 * static_cast<double>(in.head_dim) * scale * q * std::max(k, 1.0);
  // What is turned may be twice as large before a small scale makes it smaller.
  if (!(reach <= most) || (has_angles(in) && std::max(q, k) > most / 2))
    throw Error(Status::invalid_argument, message("the largest magnitudes, ", q, " in q and ", k,
                                                  " in k, are too large: scores could overflow"));
}

template <class T>
void check_values(const AttentionInput<T>& in) {
  check_scored_values(in);
  const double v = static_cast<double>(checked_key_magnitude(in, v_of(in), "v"));
  // The weights of the forward kernel are up to 2^8.
  if (256 * v * static_cast<double>(in.k_length) >
      static_cast<double>(std::numeric_limits<T>::max()))
    throw Error(Status::invalid_argument, message("the largest magnitude in v, ", v,
                                                  ", is too large: sums over keys could overflow"));
}

template <class T>
void check_gradient(const AttentionInput<T>& in, const AttentionGradient<T>& gradient) {
  if ((gradient.q_angles != nullptr || gradient.k_angles != nullptr) && !has_angles(in))
    throw Error(Status::invalid_argument,
                "a gradient of angles is asked for but there are no angles");
  if (gradient.q_angles != nullptr)
    check_pointer(gradient.q, q_size(in), "gradient.q, on which q_angles rests,");
  if (gradient.k_angles != nullptr)
    check_pointer(gradient.k, k_size(in), "gradient.k, on which k_angles rests,");
}

template <class T>
void check_result(const T* gradient, std::int64_t size, const char* name) {
  if (gradient != nullptr && size > 0 && std::isinf(simd::max_abs(gradient, size)))
    throw Error(Status::invalid_argument,
                message(name, " overflows: the values in d_out or out are too large"));
}

// --------------------------------------------------------------------------------------- rotation

// The rotations of the queries or of the keys; without angles they leave vectors as they are. Sines
// and cosines are kept only if several heads or elements of the batch share them.
template <class T>
class Rotation {
public:
  Rotation(const AttentionInput<T>& in, const T* angles, std::int64_t length, Run& run)
      : angles_(angles), head_dim_(in.head_dim), pairs_(in.head_dim / 2), heads_(in.angle_heads) {
    if (!has_angles(in) || in.batch * in.heads == in.angle_heads) return;
    const std::int64_t columns = heads_ * pairs_;
    cosine_.resize(static_cast<std::size_t>(length * columns));
    sine_.resize(cosine_.size());
    constexpr std::int64_t rows = 64;
    run.parallel_for((length + rows - 1) / rows, [&](std::int64_t block) {
      const std::int64_t first = block * rows * columns;
      simd::sin_cos(angles_ + first, sine_.data() + first, cosine_.data() + first,
                    std::min(rows, length - block * rows) * columns);
    });
  }

  // to = factor R(direction phi) from for head h of row i; direction is 1 or -1.
  void turn(std::int64_t i, std::int64_t h, T direction, T factor, const T* from, T* to) const {
    turn_first(head_dim_, i, h, direction, factor, from, to);
  }

  // The same for the first n elements only.
  void turn_first(std::int64_t elements, std::int64_t i, std::int64_t h, T direction, T factor,
                  const T* from, T* to) const {
    if (angles_ == nullptr) {
      std::transform(from, from + elements, to, [&](T x) { return factor * x; });
      return;
    }
    const std::int64_t first = (i * heads_ + (heads_ == 1 ? 0 : h)) * pairs_;
    if (!cosine_.empty()) {
      simd::turn(from, cosine_.data() + first, sine_.data() + first, factor, direction * factor,
                 elements / 2, to);
      return;
    }
    constexpr std::int64_t few = 64;
    T cosine[few], sine[few];
    for (std::int64_t t = 0; t < elements / 2; t += few) {
      const std::int64_t n = std::min(few, elements / 2 - t);
      simd::sin_cos(angles_ + first + t, sine, cosine, n);
      simd::turn(from + 2 * t, cosine, sine, factor, direction * factor, n, to + 2 * t);
    }
  }

private:
  const T* angles_;
  std::int64_t head_dim_, pairs_, heads_;
  std::vector<T> cosine_, sine_;
};

// ------------------------------------------------------------------------------------------ tiles

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

// Ask for the row of a head that is so many rows ahead: rows of a head are too far apart for the
// CPU to foresee which comes next.
inline constexpr std::int64_t rows_ahead = 8;
template <class T>
void prefetch(const Tensor<const T>& x, std::int64_t b, std::int64_t i, std::int64_t h) {
  if (i >= x.length) return;
  const T* row = x.row(b, i, h);
  for (std::int64_t c = 0; c < x.head_dim; c += static_cast<std::int64_t>(64 / sizeof(T)))
    __builtin_prefetch(row + c);
}

// Row i of a left factor in strips.
template <class T>
void pack_strip_row(const simd::Columns& size, std::int64_t i, const T* row, std::int64_t columns,
                    T* strips) {
  constexpr std::int64_t strip = simd::strip_rows;
  const std::int64_t panels = round_up(columns, size.panel) / size.panel;
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

template <class T>
constexpr T log2_e = T(1.44269504088896340735992468100189214L);
template <class T>
constexpr T ln_2 = T(0.693147180559945309417232121458176568L);

// What the heads of one call share.
template <class T>
struct Call {
  Call(const AttentionInput<T>& input, Run& r)
      : in(input), run(r), tiling(input.head_dim), turn_q(input, input.q_angles, input.q_length, r),
        turn_k(input, input.k_angles, input.k_length, r) {}

  const AttentionInput<T>& in;
  Run& run;
  Tiling<T> tiling;
  Rotation<T> turn_q, turn_k;
};

// Forward, threads take whole heads if there are several for each of them; otherwise they share out
// the tiles of a head.
template <class T>
bool whole_heads(const AttentionInput<T>& in, std::int64_t threads) {
  return threads == 1 || in.batch * in.heads >= 4 * threads;
}

// Queries of a tile forward: all tiles are about as large, and if threads share them out, there are
// several for each.
template <class T>
std::int64_t tile_rows(const AttentionInput<T>& in, const Tiling<T>& tiling, std::int64_t threads) {
  const std::int64_t length = std::max(in.q_length, std::int64_t{1}), least = 8 * simd::strip_rows;
  const std::int64_t share = whole_heads(in, threads) ? length : length / (4 * threads);
  const std::int64_t most = std::min(tiling.rows, std::max(share, least));
  const std::int64_t tiles = (length + most - 1) / most;
  return round_up((length + tiles - 1) / tiles, simd::strip_rows);
}

template <class T>
void check_workspace(const AttentionInput<T>& in, double bytes) {
  check_memory(bytes, message("attention of ", in.q_length, " queries to ", in.k_length, " keys"));
}

// What is summed over the rows of a head is summed in so many parts, so that there is work for
// several threads. Their number depends on the shape alone, and so does every sum.
template <class T>
std::int64_t parts_of_head(const AttentionInput<T>& in, std::int64_t length) {
  constexpr std::int64_t tasks = 8, least = 512;
  const std::int64_t heads = std::max(in.batch * in.heads, std::int64_t{1});
  return std::clamp(std::min((tasks + heads - 1) / heads, length / least), std::int64_t{1}, tasks);
}

// body(b, h) for every head, where make() gives a body for a thread: one that keeps its buffers
// from head to head. Threads take some heads each, unless heads are cut in parts, which then share
// the threads.
template <class T, class F>
void for_heads(const AttentionInput<T>& in, Run& run, F make) {
  const std::int64_t heads = in.batch * in.heads, threads = run.threads();
  const bool in_parts = parts_of_head(in, std::max(in.q_length, in.k_length)) > 1;
  const std::int64_t tasks = in_parts || threads == 1 ? 1 : std::min(heads, 8 * threads);
  run.parallel_for(tasks, [&](std::int64_t task) {
    auto body = make();
    for (std::int64_t bh = heads * task / tasks; bh < heads * (task + 1) / tasks; ++bh)
      body(bh / in.heads, bh % in.heads);
  });
}

} // namespace cape
