// Where an interrupted fit can go on, and its form outside of memory: the tag, three 64-bit numbers
// and the values, as they are in memory (little-endian on all supported machines).
#include <cstddef>
#include <cstring>
#include <string>

#include "handle.hpp"

using namespace cape::capi;

namespace {

constexpr char tag[8] = {'C', 'A', 'P', 'E', 'C', 'P', '0', '1'};

struct Header {
  char tag[8];
  std::uint64_t fit;
  std::int64_t epoch, n_values;
};

std::size_t size_of(const cape::Checkpoint& c) {
  return sizeof(Header) + c.values.size() * sizeof(double);
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
    const cape::Checkpoint& c = object(checkpoint, "checkpoint").state;
    *bytes_out = static_cast<int64_t>(size_of(c));
    *epochs_out = c.epoch;
  });
}

cape_status cape_checkpoint_save(void* out, int64_t capacity, const cape_checkpoint* checkpoint) {
  return guard([&] {
    required(static_cast<char*>(out), "out");
    const cape::Checkpoint& c = object(checkpoint, "checkpoint").state;
    if (capacity < static_cast<int64_t>(size_of(c)))
      throw cape::Error(cape::Status::dim_mismatch,
                        "capacity is " + std::to_string(capacity) + "; the checkpoint has " +
                            std::to_string(size_of(c)) + " bytes");
    Header header{{}, c.fit, c.epoch, static_cast<std::int64_t>(c.values.size())};
    std::memcpy(header.tag, tag, sizeof tag);
    std::memcpy(out, &header, sizeof header);
    if (!c.values.empty())
      std::memcpy(static_cast<char*>(out) + sizeof header, c.values.data(),
                  c.values.size() * sizeof(double));
  });
}

cape_status cape_checkpoint_load(cape_checkpoint** out, const void* bytes, int64_t n) {
  clear(out);
  return guard([&] {
    required(out, "out");
    required(static_cast<const char*>(bytes), "bytes");
    Header header{};
    if (n >= static_cast<int64_t>(sizeof header)) std::memcpy(&header, bytes, sizeof header);
    const std::int64_t length = n - static_cast<int64_t>(sizeof header);
    if (std::memcmp(header.tag, tag, sizeof tag) != 0 || header.n_values < 0 ||
        header.epoch < 0 || length % static_cast<int64_t>(sizeof(double)) != 0 ||
        header.n_values != length / static_cast<int64_t>(sizeof(double)))
      throw cape::Error(cape::Status::bad_format,
                        "bytes are not a checkpoint, or not a whole one (n is " +
                            std::to_string(n) + ")");
    cape_checkpoint loaded;
    loaded.state = {header.fit, header.epoch,
                    std::vector<double>(static_cast<std::size_t>(header.n_values))};
    if (length > 0)
      std::memcpy(loaded.state.values.data(), static_cast<const char*>(bytes) + sizeof header,
                  static_cast<std::size_t>(length));
    *out = new cape_checkpoint(loaded);
  });
}
