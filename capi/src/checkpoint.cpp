// Where an interrupted fit can go on, and its form outside of memory: the tag, and for Step I and
// Step II three 64-bit numbers and the values, as they are in memory (little-endian on all
// supported machines).
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "handle.hpp"

using namespace cape::capi;

namespace {

constexpr char tag[8] = {'C', 'A', 'P', 'E', 'C', 'P', '0', '2'};

// Before the values of a step.
struct Header {
  std::uint64_t fit;
  std::int64_t epoch, n_values;
};

std::size_t size_of(const cape::Checkpoint& c) {
  return sizeof(Header) + c.values.size() * sizeof(double);
}

std::size_t size_of(const cape::FitCheckpoint& c) {
  return sizeof tag + size_of(c.dag) + size_of(c.embedding);
}

char* write(const cape::Checkpoint& c, char* out) {
  const Header header{c.fit, c.epoch, static_cast<std::int64_t>(c.values.size())};
  std::memcpy(out, &header, sizeof header);
  if (!c.values.empty())
    std::memcpy(out + sizeof header, c.values.data(), c.values.size() * sizeof(double));
  return out + size_of(c);
}

// Takes the bytes of a step from the front; false if they are not there.
bool read(std::span<const char>& bytes, cape::Checkpoint& c) {
  Header header{};
  if (bytes.size() < sizeof header) return false;
  std::memcpy(&header, bytes.data(), sizeof header);
  bytes = bytes.subspan(sizeof header);
  const auto most = static_cast<std::int64_t>(bytes.size() / sizeof(double));
  if (header.n_values < 0 || header.n_values > most || header.epoch < 0 ||
      header.epoch > header.n_values)
    return false;
  c = {header.fit, header.epoch, std::vector<double>(static_cast<std::size_t>(header.n_values))};
  const std::size_t length = c.values.size() * sizeof(double);
  if (length > 0) std::memcpy(c.values.data(), bytes.data(), length);
  bytes = bytes.subspan(length);
  return true;
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
    const cape::FitCheckpoint& c = object(checkpoint, "checkpoint").state;
    *bytes_out = static_cast<int64_t>(size_of(c));
    *epochs_out = c.dag.epoch + c.embedding.epoch;
  });
}

cape_status cape_checkpoint_save(void* out, int64_t capacity, const cape_checkpoint* checkpoint) {
  return guard([&] {
    required(static_cast<char*>(out), "out");
    const cape::FitCheckpoint& c = object(checkpoint, "checkpoint").state;
    if (capacity < static_cast<int64_t>(size_of(c)))
      throw cape::Error(cape::Status::dim_mismatch, "capacity is " + std::to_string(capacity) +
                                                        "; the checkpoint has " +
                                                        std::to_string(size_of(c)) + " bytes");
    char* to = static_cast<char*>(out);
    std::memcpy(to, tag, sizeof tag);
    write(c.embedding, write(c.dag, to + sizeof tag));
  });
}

cape_status cape_checkpoint_load(cape_checkpoint** out, const void* bytes, int64_t n) {
  clear(out);
  return guard([&] {
    required(out, "out");
    const char* from = &required(static_cast<const char*>(bytes), "bytes");
    std::span<const char> rest(from, static_cast<std::size_t>(std::max<int64_t>(n, 0)));
    cape_checkpoint loaded;
    bool whole = rest.size() >= sizeof tag && std::memcmp(from, tag, sizeof tag) == 0;
    if (whole) {
      rest = rest.subspan(sizeof tag);
      whole = read(rest, loaded.state.dag) && read(rest, loaded.state.embedding) && rest.empty();
    }
    if (!whole)
      throw cape::Error(cape::Status::bad_format,
                        "bytes are not a checkpoint, or not a whole one (n is " +
                            std::to_string(n) + ")");
    *out = new cape_checkpoint(std::move(loaded));
  });
}
