// The rotations of the queries and keys of a call.
#pragma once
#include "attention/tensors.hpp"

namespace cape {

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
    run.parallel_for(ceil_div(length, rows), [&](std::int64_t block) {
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

} // namespace cape
