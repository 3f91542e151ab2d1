module;
#include "internal/message.hpp"
#include "simd/vector_math.hpp"
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>
module cape.core;

namespace cape {

struct Journal::Book {
  mutable std::mutex lock;
  std::vector<Entry> entries;
  std::unordered_map<std::uint64_t, double> value;
};

Journal::Journal() : book_(std::make_unique<Book>()) {}
Journal::~Journal() = default;

Journal::Journal(const Journal& other) : Journal() {
  const std::lock_guard guard(other.book_->lock);
  book_->entries = other.book_->entries;
  book_->value = other.book_->value;
}

Journal& Journal::operator=(const Journal& other) {
  Journal copy(other);
  book_.swap(copy.book_);
  return *this;
}

std::optional<double> Journal::find(std::uint64_t key) const {
  const std::lock_guard guard(book_->lock);
  const auto found = book_->value.find(key);
  if (found == book_->value.end()) return std::nullopt;
  return found->second;
}

// Without memory for the one there is not the other either.
void Journal::add(std::uint64_t key, double value) {
  const std::lock_guard guard(book_->lock);
  if (book_->value.contains(key)) return;
  book_->entries.push_back({key, value});
  try {
    book_->value.emplace(key, value);
  } catch (...) {
    book_->entries.pop_back();
    throw;
  }
}

std::int64_t Journal::size() const {
  const std::lock_guard guard(book_->lock);
  return std::ssize(book_->entries);
}

std::vector<Journal::Entry> Journal::first(std::int64_t count) const {
  const std::lock_guard guard(book_->lock);
  return {book_->entries.begin(),
          book_->entries.begin() + std::min(count, std::ssize(book_->entries))};
}

void Checkpoint::claim(std::uint64_t id, std::string_view same) {
  const std::string instructions =
      "BLAS kernel " + blas_info().kernel + ", SIMD target " + simd::target();
  const std::uint64_t here = hash(build_id()), kernels_here = hash(instructions);
  if (epoch > 0) {
    const auto refuse = [](const std::string& why) {
      throw Error(Status::invalid_argument,
                  "checkpoint is that of a fit " + why + "; this one must start without it");
    };
    if (build != here)
      refuse("by another build of CAPE than this one (" + std::string(build_id()) +
             "), whose numbers may differ");
    if (kernels != kernels_here)
      refuse("with other instructions than those in use here (" + instructions +
             "), which round otherwise");
    if (fit != id) refuse("of another " + std::string(same));
  } else {
    journal = {};
  }
  fit = id;
  build = here;
  kernels = kernels_here;
}

void Checkpoint::check(std::int64_t expected) const {
  if (std::ssize(values) != expected)
    throw Error(Status::invalid_argument, message("checkpoint is damaged: it has ", values.size(),
                                                  " values, but this fit needs ", expected));
  if (!std::ranges::all_of(values, [](double v) { return std::isfinite(v); }))
    throw Error(Status::invalid_argument,
                "checkpoint is damaged: it has values that are not finite");
}

} // namespace cape
