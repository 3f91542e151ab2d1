// Where an interrupted fit can go on, and its form outside of memory: the tag, a hash of all that
// follows, and for Step I and Step II a header, the values and the journal, as they are in memory
// (little-endian on all supported machines).
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "handle.hpp"

using namespace cape::capi;

namespace {

constexpr char tag[8] = {'C', 'A', 'P', 'E', 'C', 'P', '0', '3'};
constexpr std::size_t front = sizeof tag + sizeof(std::uint64_t);

using Entry = cape::Journal::Entry;
static_assert(sizeof(Entry) == 16);

// Before the values of a step.
struct Header {
  std::uint64_t fit, build, kernels;
  std::int64_t epoch, n_values, n_entries;
};

std::size_t size_of(const cape::Checkpoint& c, std::size_t entries) {
  return sizeof(Header) + c.values.size() * sizeof(double) + entries * sizeof(Entry);
}

// Only Step I has a journal.
std::size_t size_of(const cape_checkpoint& c, std::size_t entries) {
  return front + size_of(c.state.dag, entries) + size_of(c.state.embedding, 0);
}

template <class T>
char* write(const std::vector<T>& values, char* out) {
  if (!values.empty()) std::memcpy(out, values.data(), values.size() * sizeof(T));
  return out + values.size() * sizeof(T);
}

char* write(const cape::Checkpoint& c, const std::vector<Entry>& entries, char* out) {
  const Header header{
      c.fit, c.build, c.kernels, c.epoch, std::ssize(c.values), std::ssize(entries)};
  std::memcpy(out, &header, sizeof header);
  return write(entries, write(c.values, out + sizeof header));
}

// Takes values from the front; false if they are not there.
template <class T>
bool read(std::span<const char>& bytes, std::int64_t count, std::vector<T>& values) {
  if (count < 0 || count > static_cast<std::int64_t>(bytes.size() / sizeof(T))) return false;
  values.resize(static_cast<std::size_t>(count));
  if (count > 0) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  bytes = bytes.subspan(values.size() * sizeof(T));
  return true;
}

bool read(std::span<const char>& bytes, cape::Checkpoint& c) {
  Header header{};
  if (bytes.size() < sizeof header) return false;
  std::memcpy(&header, bytes.data(), sizeof header);
  bytes = bytes.subspan(sizeof header);
  std::vector<Entry> entries;
  if (!read(bytes, header.n_values, c.values) || !read(bytes, header.n_entries, entries) ||
      header.epoch < 0 || header.epoch > header.n_values)
    return false;
  c.fit = header.fit;
  c.build = header.build;
  c.kernels = header.kernels;
  c.epoch = header.epoch;
  for (const Entry& e : entries) {
    if (!std::isfinite(e.value)) return false;
    c.journal.add(e.key, e.value);
  }
  return true;
}

std::uint64_t hash_of(std::span<const char> bytes) {
  return cape::hash(std::string_view(bytes.data(), bytes.size()));
}

} // namespace

cape_status cape_checkpoint_new(cape_checkpoint** out) {
  clear(out);
  return guard([&] {
    required(out, "out");
    *out = new cape_checkpoint;
  });
}

void cape_checkpoint_free(cape_checkpoint* checkpoint) { release(checkpoint); }

cape_status cape_checkpoint_size(int64_t* bytes_out, int64_t* epochs_out,
                                 const cape_checkpoint* checkpoint) {
  clear(bytes_out, epochs_out);
  return guard([&] {
    required(bytes_out, "bytes_out");
    required(epochs_out, "epochs_out");
    const cape_checkpoint& c = object(checkpoint, "checkpoint");
    c.counted = c.state.dag.journal.size();
    *bytes_out = static_cast<int64_t>(size_of(c, static_cast<std::size_t>(c.counted)));
    *epochs_out = c.state.dag.epoch + c.state.embedding.epoch;
  });
}

cape_status cape_checkpoint_save(void* out, int64_t capacity, const cape_checkpoint* checkpoint) {
  return guard([&] {
    required(static_cast<char*>(out), "out");
    const cape_checkpoint& c = object(checkpoint, "checkpoint");
    const std::vector<Entry> entries = c.state.dag.journal.first(c.counted);
    const auto bytes = static_cast<int64_t>(size_of(c, entries.size()));
    if (capacity < bytes)
      throw cape::Error(cape::Status::dim_mismatch, "capacity is " + std::to_string(capacity) +
                                                        "; the checkpoint has " +
                                                        std::to_string(bytes) + " bytes");
    char* to = static_cast<char*>(out);
    const char* end = write(c.state.embedding, {}, write(c.state.dag, entries, to + front));
    const std::uint64_t hash = hash_of({to + front, end});
    std::memcpy(to, tag, sizeof tag);
    std::memcpy(to + sizeof tag, &hash, sizeof hash);
  });
}

cape_status cape_checkpoint_load(cape_checkpoint** out, const void* bytes, int64_t n) {
  clear(out);
  return guard([&] {
    required(out, "out");
    const char* from = &required(static_cast<const char*>(bytes), "bytes");
    std::span<const char> rest(from, static_cast<std::size_t>(std::max<int64_t>(n, 0)));
    auto loaded = std::make_unique<cape_checkpoint>();
    bool whole = rest.size() >= front && std::memcmp(from, tag, sizeof tag) == 0;
    if (whole) {
      std::uint64_t hash = 0;
      std::memcpy(&hash, from + sizeof tag, sizeof hash);
      rest = rest.subspan(front);
      whole = hash == hash_of(rest) && read(rest, loaded->state.dag) &&
              read(rest, loaded->state.embedding) && rest.empty();
    }
    if (!whole)
      throw cape::Error(cape::Status::bad_format,
                        "bytes are not a checkpoint of this version, or not a whole one, or "
                        "damaged (n is " +
                            std::to_string(n) + ")");
    loaded->counted = loaded->state.dag.journal.size();
    *out = loaded.release();
  });
}
