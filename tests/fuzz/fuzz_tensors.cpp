// Files of tensors, by the C++ interface: any bytes, and files of tensors with a part changed. A
// file is refused for a reason that is said, or is read, and then written and read again to the
// same bytes.
#include "fuzz.hpp"

#include <cstddef>
import cape;

using cape::Tensors;
using fuzz::Input;
using fuzz::must;

namespace {

std::string write(const Tensors& tensors) {
  cape::Run run;
  const auto file = cape::write_safetensors(tensors, run);
  return {reinterpret_cast<const char*>(file.data()), file.size()};
}

Tensors read(const std::string& file) {
  cape::Run run;
  // Of the size of its content, so that reading beyond it is seen.
  const std::vector<char> bytes(file.begin(), file.end());
  return cape::read_safetensors(std::as_bytes(std::span(bytes)), run);
}

// What reads must not depend on what wrote it.
void use(const std::string& file) {
  Tensors tensors;
  try {
    tensors = read(file);
  } catch (const cape::Error& error) {
    must(error.code() == cape::Status::bad_format || error.code() == cape::Status::unsupported,
         "another error than of the file");
    must(std::strlen(error.what()) > 20, "an error without a text");
    return;
  }
  for (const auto& tensor : tensors.all) {
    std::int64_t count = 1;
    for (const std::int64_t side : tensor.shape) count *= side;
    must(count == std::ssize(tensor.values), "a shape of other values");
  }
  const std::string again = write(tensors);
  must(write(read(again)) == again, "other bytes at the second time");
}

std::string text(Input& in) {
  static constexpr const char* pieces[] = {"a",  "weight", "__metadata__", "",
                                           "\"", "\\",     "\n",           "\u03b2"};
  return in.one_in(8) ? in.text(8) : in.one_of(pieces);
}

// Tensors that may be written, mostly.
Tensors tensors_of(Input& in) {
  Tensors tensors;
  for (std::int64_t i = in.in(0, 4); i > 0; --i) {
    cape::Tensor tensor{text(in), {}, {}};
    std::int64_t count = 1;
    for (std::int64_t rank = in.in(0, 3); rank > 0; --rank) {
      tensor.shape.push_back(in.in(0, 3));
      count *= tensor.shape.back();
    }
    for (; count > 0; --count) tensor.values.push_back(static_cast<float>(in.ordinary()));
    if (in.one_in(32)) tensor.shape.push_back(in.integer());
    tensors.all.push_back(std::move(tensor));
  }
  for (std::int64_t i = in.in(0, 2); i > 0; --i) {
    std::string key = text(in);
    tensors.metadata.emplace_back(std::move(key), text(in));
  }
  return tensors;
}

// With some of its bytes others, as a reader of JSON would have them, and a length that fits again.
std::string changed(Input& in, std::string file) {
  static constexpr const char* pieces[] = {"0",
                                           "1",
                                           "-1",
                                           "9223372036854775807",
                                           "18446744073709551615",
                                           "4294967296",
                                           "1e5",
                                           "[",
                                           "]",
                                           "{",
                                           "}",
                                           ",",
                                           ":",
                                           "\"",
                                           "{}",
                                           "[]",
                                           "null",
                                           "true",
                                           " ",
                                           "\\ud800",
                                           "\"F64\"",
                                           "F16",
                                           "BF16",
                                           "BOOL",
                                           "I64",
                                           "dtype",
                                           "shape",
                                           "data_offsets"};
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), 8);
  for (std::int64_t i = in.in(0, 4); i > 0; --i) {
    const auto at = static_cast<std::size_t>(8 + in.in(0, static_cast<std::int64_t>(length)));
    const std::size_t removed = std::min<std::size_t>(in.bits(1) % 6, 8 + length - at);
    const std::string piece = in.one_in(8) ? in.text(3) : in.one_of(pieces);
    file.replace(at, removed, piece);
    length += piece.size() - removed;
  }
  if (in.one_in(8)) file.resize(file.size() - std::min<std::size_t>(in.bits(1), file.size()));
  if (in.one_in(8)) file += in.text(9);
  if (in.one_in(16)) length = in.bits();
  if (file.size() >= 8) std::memcpy(file.data(), &length, 8);
  return file;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input in(data, size);
  if (in.one_in(4)) {
    use({reinterpret_cast<const char*>(data) + 1, size > 0 ? size - 1 : 0});
    return 0;
  }
  if (in.one_in(3)) { // a header, whose length fits
    const std::string header(reinterpret_cast<const char*>(data), size);
    const std::uint64_t length = size - std::min<std::size_t>(size, in.bits(1));
    use(std::string(reinterpret_cast<const char*>(&length), 8) + header);
    return 0;
  }
  std::string file;
  try {
    file = write(tensors_of(in));
  } catch (const cape::Error& error) {
    must(error.code() == cape::Status::invalid_argument ||
             error.code() == cape::Status::dim_mismatch,
         "another error than of the tensors");
    return 0;
  }
  use(file);
  use(changed(in, file));
  return 0;
}
