module;
#include "internal/message.hpp"
#include "internal/sizes.hpp"
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_set>
#include <utility>
#include <vector>
module cape.tensors;

namespace cape {

static_assert(std::endian::native == std::endian::little, "numbers of the format, as in memory");

namespace {

using nlohmann::json;

constexpr std::size_t length_bytes = 8;
constexpr std::uint64_t largest_header = 100'000'000; // as the format's own library
constexpr std::int64_t piece = std::int64_t{1} << 20; // values between two polls

template <class... Parts>
[[noreturn]] void damaged(const Parts&... parts) {
  throw Error(Status::bad_format, message("file is no whole safetensors file: ", parts...));
}

// A name for a message, as JSON writes it, which can show any bytes; not too long.
std::string shown(std::string_view name) {
  constexpr std::size_t longest = 100;
  return json(name.substr(0, longest)).dump(-1, ' ', false, json::error_handler_t::replace) +
         (name.size() > longest ? "..." : "");
}

// The numbers that a shape has; none if they are too many for an int64.
std::optional<std::int64_t> product(std::span<const std::int64_t> shape) {
  std::int64_t n = 1;
  for (const std::int64_t side : shape) {
    if (side != 0 && n > std::numeric_limits<std::int64_t>::max() / side) return std::nullopt;
    n *= side;
  }
  return n;
}

// ---------------------------------------------------------------------------------------- types

bool convert(float stored, float& value) {
  value = stored;
  return true;
}

bool convert(double stored, float& value) {
  if (std::isfinite(stored) && std::fabs(stored) > std::numeric_limits<float>::max()) return false;
  value = static_cast<float>(stored);
  return true;
}

bool convert(std::int64_t stored, float& value) {
  const auto bits = static_cast<std::uint64_t>(stored), size = stored < 0 ? -bits : bits;
  value = static_cast<float>(stored);
  return size == 0 || size >> std::countr_zero(size) >> std::numeric_limits<float>::digits == 0;
}

bool convert(bool stored, float& value) {
  value = stored;
  return true;
}

struct Half {
  std::uint16_t bits;
};
bool convert(Half stored, float& value) {
  const std::uint32_t sign = (stored.bits & 0x8000u) << 16, exponent = (stored.bits >> 10) & 31u,
                      fraction = stored.bits & 1023u;
  std::uint32_t bits = sign;
  if (exponent == 0) // a multiple of 2^-24, which is not small for a float
    bits |= std::bit_cast<std::uint32_t>(static_cast<float>(fraction) * 0x1p-24f);
  else if (exponent == 31)
    bits |= 0x7f800000u | fraction << 13;
  else
    bits |= (exponent + 127 - 15) << 23 | fraction << 13;
  value = std::bit_cast<float>(bits);
  return true;
}

struct Brain {
  std::uint16_t bits;
};
bool convert(Brain stored, float& value) {
  value = std::bit_cast<float>(std::uint32_t{stored.bits} << 16);
  return true;
}

template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
template <>
bool load(const std::byte* from) {
  return *from != std::byte{0}; // a bool has no other values than two
}

// Converts until a value that no float stands for; how many it has converted.
template <class T>
std::int64_t convert_all(const std::byte* from, std::span<float> to) {
  for (std::size_t i = 0; i < to.size(); ++i)
    if (!convert(load<T>(from + i * sizeof(T)), to[i])) return static_cast<std::int64_t>(i);
  return std::ssize(to);
}

struct Type {
  std::string_view name;
  std::int64_t size; ///< in bytes
  std::int64_t (*convert)(const std::byte*, std::span<float>);
};
constexpr Type types[] = {
    {"F32", 4, convert_all<float>},        {"F16", 2, convert_all<Half>},
    {"BF16", 2, convert_all<Brain>},       {"F64", 8, convert_all<double>},
    {"I64", 8, convert_all<std::int64_t>}, {"BOOL", 1, convert_all<bool>},
};

// --------------------------------------------------------------------------------------- header

struct Entry {
  std::string name;
  std::optional<std::string> type;
  std::optional<std::vector<std::int64_t>> shape, offsets;
};

struct Header {
  std::vector<Entry> entries;
  std::vector<std::pair<std::string, std::string>> metadata;
};

// Takes in the header's JSON value by value, so that no nesting, however deep, is ever followed:
// the first value that the format does not have there ends it.
class HeaderReader final : public nlohmann::json_sax<json> {
public:
  HeaderReader(Header& header, Run& run) : header_(header), run_(run) {}

  bool start_object(std::size_t) override {
    if (level_ == Level::outside)
      level_ = Level::header;
    else if (level_ == Level::header && key_ == "__metadata__")
      level_ = Level::metadata;
    else if (level_ == Level::header) {
      level_ = Level::tensor;
      header_.entries.push_back({.name = key_, .type = {}, .shape = {}, .offsets = {}});
    } else
      refuse();
    return true;
  }

  bool key(std::string& name) override {
    run_.poll();
    key_ = name;
    if (level_ == Level::header && !names_.insert(key_).second)
      damaged(shown(key_), " is given twice");
    if (level_ == Level::metadata && !keys_.insert(key_).second)
      damaged("metadata ", shown(key_), " is given twice");
    return true;
  }

  bool string(std::string& text) override {
    if (level_ == Level::metadata)
      header_.metadata.emplace_back(key_, text);
    else if (level_ == Level::tensor && key_ == "dtype")
      set(entry().type, text);
    else
      refuse();
    return true;
  }

  bool start_array(std::size_t) override {
    if (level_ == Level::tensor && key_ == "shape")
      set(entry().shape, {});
    else if (level_ == Level::tensor && key_ == "data_offsets")
      set(entry().offsets, {});
    else
      refuse();
    level_ = Level::array;
    return true;
  }

  bool number_unsigned(std::uint64_t n) override {
    if (level_ != Level::array || n > std::numeric_limits<std::int64_t>::max()) refuse();
    auto& numbers = key_ == "shape" ? *entry().shape : *entry().offsets;
    numbers.push_back(static_cast<std::int64_t>(n));
    return true;
  }

  bool end_array() override {
    level_ = Level::tensor;
    if (key_ == "data_offsets" && entry().offsets->size() != 2) refuse();
    return true;
  }

  bool end_object() override {
    if (level_ == Level::tensor && !(entry().type && entry().shape && entry().offsets))
      damaged("tensor ", shown(entry().name), " needs dtype, shape and data_offsets");
    level_ = level_ == Level::header ? Level::outside : Level::header;
    return true;
  }

  bool null() override { refuse(); }
  bool boolean(bool) override { refuse(); }
  bool number_integer(std::int64_t) override { refuse(); }
  bool number_float(double, const std::string&) override { refuse(); }
  bool binary(json::binary_t&) override { refuse(); } // JSON has none

  bool parse_error(std::size_t position, const std::string&, const json::exception&) override {
    damaged("its header is not JSON in UTF-8, at byte ", position);
  }

private:
  enum class Level { outside, header, metadata, tensor, array };

  Entry& entry() { return header_.entries.back(); }

  template <class T>
  void set(std::optional<T>& field, const T& value) {
    if (field) damaged(shown(key_), " of tensor ", shown(entry().name), " is given twice");
    field = value;
  }

  [[noreturn]] void refuse() {
    if (level_ == Level::outside) damaged("its header is no JSON object");
    if (level_ == Level::header) damaged(shown(key_), " must be an object");
    if (level_ == Level::metadata) damaged("metadata ", shown(key_), " must be a text");
    damaged(shown(key_), " of tensor ", shown(entry().name),
            key_ == "dtype"          ? " must be a text"
            : key_ == "shape"        ? " must be an array of whole numbers, each in [0, 2^63)"
            : key_ == "data_offsets" ? " must be an array of two whole numbers, each in [0, 2^63)"
                                     : " is none of dtype, shape and data_offsets");
  }

  Header& header_;
  Run& run_;
  Level level_ = Level::outside;
  std::string key_; ///< the last one
  std::unordered_set<std::string> names_, keys_;
};

Header read_header(std::span<const std::byte> bytes, Run& run) {
  const auto* text = reinterpret_cast<const char*>(bytes.data());
  // The parser would take a mark of the byte order before the object, and a zero for the end.
  if (bytes.empty() || *text != '{') damaged("its header does not begin with {");
  if (std::memchr(text, 0, bytes.size()) != nullptr) damaged("its header has a zero byte");
  Header header;
  HeaderReader reader(header, run);
  json::sax_parse(text, text + bytes.size(), &reader);
  return header;
}

// ------------------------------------------------------------------------------------------ data

// Where an entry's numbers stand.
struct Place {
  const Entry* entry;
  const Type* type;
  std::int64_t begin, end; ///< in bytes from the beginning of the data
  std::int64_t count;      ///< of numbers
};

Place place_of(const Entry& entry, std::int64_t data_bytes) {
  const std::string name = "tensor " + shown(entry.name);
  const std::int64_t begin = entry.offsets->front(), end = entry.offsets->back();
  if (begin > end) damaged(name, " begins at byte ", begin, " and ends before, at ", end);
  if (end > data_bytes)
    damaged(name, " ends at byte ", end, ", but there are ", data_bytes, " bytes of numbers");
  const auto* type = std::ranges::find(types, *entry.type, &Type::name);
  if (type == std::end(types))
    throw Error(Status::unsupported, name + " has the type " + shown(*entry.type) +
                                         "; it must be F32, F16, BF16, F64, I64 or BOOL");
  const auto count = product(*entry.shape);
  if (!count) damaged("the shape of ", name, " has a product beyond 2^63");
  if ((end - begin) % type->size != 0 || (end - begin) / type->size != *count)
    damaged(name, " has a shape of ", *count, " numbers of ", type->size, " bytes, but a place of ",
            end - begin, " bytes");
  return {&entry, type, begin, end, *count};
}

// In the order of their numbers, which leave no byte out and share none.
std::vector<Place> places_of(std::span<const Entry> entries, std::int64_t data_bytes) {
  std::vector<Place> places;
  places.reserve(entries.size());
  for (const Entry& entry : entries) places.push_back(place_of(entry, data_bytes));
  std::ranges::sort(places, {}, [](const Place& p) { return std::tuple(p.begin, p.end, p.entry); });
  std::int64_t end = 0;
  for (std::size_t i = 0; i < places.size(); end = places[i++].end)
    if (places[i].begin < end)
      damaged("tensors ", shown(places[i - 1].entry->name), " and ", shown(places[i].entry->name),
              " overlap");
    else if (places[i].begin > end)
      damaged("bytes ", end, " to ", places[i].begin - 1, " of its numbers belong to no tensor");
  if (end != data_bytes) damaged("the last ", data_bytes - end, " bytes belong to no tensor");
  return places;
}

std::vector<float> read_values(const Place& place, const std::byte* data, Run& run) {
  std::vector<float> values;
  resize(values, place.count, run);
  for (std::int64_t first = 0; first < place.count; first += piece) {
    run.poll();
    const std::int64_t n = std::min(piece, place.count - first);
    const std::int64_t converted = place.type->convert(
        data + place.begin + first * place.type->size, std::span(values).subspan(at(first), at(n)));
    if (converted < n)
      throw Error(Status::unsupported,
                  message("tensor ", shown(place.entry->name), " of type ", place.type->name,
                          " has a value that no float stands for: number ", first + converted,
                          ", counted from 0"));
  }
  return values;
}

// --------------------------------------------------------------------------------------- writing

// A text as JSON writes it.
std::string to_json(const std::string& text, std::string_view what) {
  try {
    return json(text).dump();
  } catch (const json::type_error&) {
    throw Error(Status::invalid_argument, message(what, " ", shown(text), " is not UTF-8"));
  }
}

std::string header_of(const Tensors& tensors, std::span<const Tensor* const> order) {
  std::string header = "{";
  const auto separate = [&header] {
    if (header.back() != '{') header += ',';
  };
  if (!tensors.metadata.empty()) {
    header += "\"__metadata__\":{";
    std::set<std::string_view> keys;
    for (const auto& [key, text] : tensors.metadata) {
      if (!keys.insert(key).second)
        throw Error(Status::invalid_argument, "metadata have " + shown(key) + " twice");
      separate();
      header +=
          to_json(key, "a key of the metadata") + ":" + to_json(text, "a text of the metadata");
    }
    header += '}';
  }
  std::int64_t begin = 0;
  for (const Tensor* tensor : order) {
    separate();
    header += to_json(tensor->name, "the name") + ":{\"dtype\":\"F32\",\"shape\":[";
    for (std::size_t i = 0; i < tensor->shape.size(); ++i)
      header += (i == 0 ? "" : ",") + std::to_string(tensor->shape[i]);
    const std::int64_t end = begin + 4 * std::ssize(tensor->values);
    header += "],\"data_offsets\":[" + std::to_string(begin) + "," + std::to_string(end) + "]}";
    begin = end;
  }
  header += '}';
  header.resize(at(round_up(std::ssize(header), length_bytes)), ' '); // so that numbers are aligned
  return header;
}

void check(const Tensor& tensor) {
  const std::string name = "tensor " + shown(tensor.name);
  if (tensor.name == "__metadata__")
    throw Error(Status::invalid_argument,
                name + " has a name that the format keeps for its metadata");
  for (const std::int64_t side : tensor.shape)
    if (side < 0)
      throw Error(Status::invalid_argument,
                  message(name, " has a side of ", side, "; none may be negative"));
  const auto count = product(tensor.shape);
  if (!count || *count != std::ssize(tensor.values))
    throw Error(Status::dim_mismatch,
                message(name, " has ", tensor.values.size(), " values, but a shape of ",
                        count ? message(*count) : "more than 2^63"));
}

void append(std::vector<std::byte>& out, std::span<const std::byte> bytes, Run& run) {
  for (std::size_t first = 0; first < bytes.size(); first += 4 * piece) {
    run.poll();
    const auto part = bytes.subspan(first, std::min<std::size_t>(4 * piece, bytes.size() - first));
    out.insert(out.end(), part.begin(), part.end());
  }
}

} // namespace

const Tensor* Tensors::find(std::string_view name) const {
  const auto found = std::ranges::find(all, name, &Tensor::name);
  return found == all.end() ? nullptr : &*found;
}

const std::string* Tensors::find_metadata(std::string_view key) const {
  const auto found = std::ranges::find(metadata, key, &std::pair<std::string, std::string>::first);
  return found == metadata.end() ? nullptr : &found->second;
}

Tensors read_safetensors(std::span<const std::byte> file, Run& run) {
  if (file.size() < length_bytes)
    damaged("it has ", file.size(), " bytes, and the length of its header alone takes 8");
  const auto length = load<std::uint64_t>(file.data());
  const auto rest = file.subspan(length_bytes);
  if (length > largest_header)
    damaged("a header of ", length, " bytes, more than the ", largest_header, " that it may have");
  if (length > rest.size())
    damaged("a header of ", length, " bytes, of which there are ", rest.size());
  Header header = read_header(rest.first(length), run);
  const auto data = rest.subspan(length);
  const std::vector<Place> places = places_of(header.entries, std::ssize(data));
  double count = 0;
  for (const Place& place : places) count += static_cast<double>(place.count);
  check_memory(sizeof(float) * count, "the tensors of the file");
  Tensors tensors{.all = {}, .metadata = std::move(header.metadata)};
  tensors.all.reserve(places.size());
  for (const Place& place : places)
    tensors.all.push_back(
        {place.entry->name, *place.entry->shape, read_values(place, data.data(), run)});
  return tensors;
}

std::vector<std::byte> write_safetensors(const Tensors& tensors, Run& run) {
  // The format's library puts larger types first, and then goes by name; here is one type alone.
  std::vector<const Tensor*> order;
  order.reserve(tensors.all.size());
  double bytes = 0;
  for (const Tensor& tensor : tensors.all) {
    check(tensor);
    order.push_back(&tensor);
    bytes += static_cast<double>(sizeof(float) * tensor.values.size());
  }
  std::ranges::sort(order, {}, &Tensor::name);
  const auto twice = std::ranges::adjacent_find(order, {}, &Tensor::name);
  if (twice != order.end())
    throw Error(Status::invalid_argument, "there are two tensors " + shown((*twice)->name));
  const std::string header = header_of(tensors, order);
  if (header.size() > largest_header)
    throw Error(Status::invalid_argument,
                message("names, shapes and metadata take ", header.size(), " bytes; at most ",
                        largest_header, " are allowed"));
  check_memory(bytes, "the file of the tensors");
  std::vector<std::byte> out;
  out.reserve(length_bytes + header.size() + static_cast<std::size_t>(bytes));
  const std::uint64_t length = header.size();
  append(out, std::as_bytes(std::span(&length, 1)), run);
  append(out, std::as_bytes(std::span(header)), run);
  for (const Tensor* tensor : order) append(out, std::as_bytes(std::span(tensor->values)), run);
  return out;
}

} // namespace cape
