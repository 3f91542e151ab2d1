module;
#include "internal/message.hpp"
#include <algorithm>
#include <cstdint>
#include <new>
#include <numeric>
#include <span>
#include <string_view>
#include <typeinfo>
#include <vector>
module cape.optim;

namespace cape::optim {
// GCC 14 crashes on a member whose imported class it has not completed before.
static_assert(sizeof(Rng) > 0 && sizeof(std::vector<std::int64_t>) > 0);

namespace {

// Room for a batch.
std::vector<std::int64_t> places(std::int64_t rows, std::int64_t batch) {
  if (rows < 1 || batch < 1)
    throw Error(Status::invalid_argument,
                message("minibatches of ", batch, " of ", rows, " rows; both must be at least 1"));
  return std::vector<std::int64_t>(
      static_cast<std::size_t>(checked_size(batch, 1, "minibatches")));
}

} // namespace

Minibatches::Minibatches(std::int64_t rows, std::int64_t batch, std::uint64_t seed,
                         std::string_view purpose)
    : rows_(rows), seed_(seed), purpose_(hash(purpose)), batch_(places(rows, batch)) {}

void Minibatches::begin_pass() {
  order_ = Rng(seed_, {purpose_, pass_++}).permutation(rows_);
  position_ = 0;
}

std::span<const std::int64_t> Minibatches::next() {
  for (std::int64_t& row : batch_) {
    if (position_ == order_.size()) begin_pass();
    row = order_[position_++];
  }
  return batch_;
}

void Minibatches::skip(std::int64_t batches) {
  const std::int64_t read = checked_size(batches, std::ssize(batch_), "batches");
  pass_ = static_cast<std::uint64_t>(read / rows_);
  begin_pass();
  position_ = static_cast<std::size_t>(read % rows_);
}

StridedMinibatches::StridedMinibatches(std::int64_t rows, std::int64_t batch, Rng rng)
    : rows_(rows), rng_(rng), batch_(places(rows, batch)) {}

std::span<const std::int64_t> StridedMinibatches::next() {
  for (std::int64_t& row : batch_) {
    if (left_-- == 0) {
      left_ = rows_ - 1;
      position_ = rng_.integer(rows_);
      do stride_ = 1 + rng_.integer(rows_);
      while (std::gcd(stride_, rows_) != 1);
    }
    row = position_;
    position_ += stride_;
    if (position_ >= rows_) position_ -= rows_;
  }
  return batch_;
}

} // namespace cape::optim
