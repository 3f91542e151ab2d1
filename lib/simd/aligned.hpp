// Memory for kernels, which starts at a cache line.
#pragma once
#include <hwy/aligned_allocator.h>

#include <algorithm>
#include <cstdint>
#include <new>

namespace cape::simd {

/// So many numbers, not initialised. std::bad_alloc if there is no room.
template <class T>
class Aligned {
public:
  explicit Aligned(std::int64_t size = 0) : size_(size) {
    if (size == 0) return; // Highway refuses it
    data_ = hwy::AllocateAligned<T>(static_cast<std::size_t>(size));
    if (data_ == nullptr) throw std::bad_alloc();
  }
  T* data() { return data_.get(); }
  const T* data() const { return data_.get(); }
  void fill(T value) { std::fill_n(data(), size_, value); }

private:
  std::int64_t size_;
  hwy::AlignedFreeUniquePtr<T[]> data_;
};

} // namespace cape::simd
