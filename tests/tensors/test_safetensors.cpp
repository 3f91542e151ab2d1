// Files of tensors: as the format describes them byte by byte, as another reader sees them, and how
// those that are not in order are refused.
#define BOOST_TEST_MODULE safetensors
#include <boost/test/unit_test.hpp>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>
import cape;

#include "errors.hpp"
#include "parity.hpp"

using cape::Run;
using cape::Status;
using cape::Tensor;
using cape::Tensors;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

Tensors read(const std::string& file) {
  Run run;
  return cape::read_safetensors(std::as_bytes(std::span(file)), run);
}

std::string write(const Tensors& tensors) {
  Run run;
  const std::vector<std::byte> file = cape::write_safetensors(tensors, run);
  return {reinterpret_cast<const char*>(file.data()), file.size()};
}

template <class T>
std::string bytes(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

// A file of this header, whose length is as said or as it is.
std::string file_of(const std::string& header, const std::string& data, std::uint64_t length) {
  return bytes(std::vector{length}) + header + data;
}
std::string file_of(const std::string& header, const std::string& data = "") {
  return file_of(header, data, header.size());
}

// Of one tensor "t".
template <class T>
std::string file_of(const std::string& type, const std::vector<T>& values) {
  return file_of("{\"t\":{\"dtype\":\"" + type + "\",\"shape\":[" + std::to_string(values.size()) +
                     "],\"data_offsets\":[0," + std::to_string(values.size() * sizeof(T)) + "]}}",
                 bytes(values));
}
template <class T>
std::vector<float> values_of(const std::string& type, const std::vector<T>& values) {
  return read(file_of(type, values)).find("t")->values;
}

// Bits, so that NaN is equal to itself and 0 is not to -0.
std::vector<std::uint32_t> bits(const std::vector<float>& values) {
  std::vector<std::uint32_t> out;
  for (const float v : values) out.push_back(std::bit_cast<std::uint32_t>(v));
  return out;
}

bool same(const Tensor& a, const Tensor& b) {
  return a.name == b.name && a.shape == b.shape && bits(a.values) == bits(b.values);
}

std::string entry(const std::string& type, const std::string& shape, const std::string& offsets) {
  return R"({"dtype":")" + type + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
}

// What reading the file says when it refuses it as no whole file.
std::string refusal(const std::string& file) {
  return test::error_of(Status::bad_format, [&] { read(file); });
}
std::string refusal_of(const std::string& header, std::size_t data = 0) {
  return refusal(file_of(header, std::string(data, '\0')));
}

Tensors example() {
  return {.all = {{"encoder.weight", {2, 3}, {1, -2, 0.5f, 1e-40f, -0.0f, 3e38f}},
                  {"empty", {0, 7}, {}},
                  {"a number", {}, {42}},
                  {"Gen \u03b2 \"x\"\n\u0001", {1, 1, 1}, {infinity}},
                  {"", {2}, {std::numeric_limits<float>::quiet_NaN(), -infinity}}},
          .metadata = {{"version", "0.1.0"}, {"caf\u00e9", ""}, {"config", "{\"width\": 512}\n"}}};
}

} // namespace

BOOST_AUTO_TEST_SUITE(files)

// Each byte by the description of the format.
BOOST_AUTO_TEST_CASE(a_file_is_what_the_format_describes_byte_by_byte) {
  const Tensors tensors{.all = {{"b", {2, 1}, {1, -2}}, {"a", {}, {0.5f}}},
                        .metadata = {{"k", "v"}}};
  const std::string header = R"({"__metadata__":{"k":"v"},)"
                             R"("a":{"dtype":"F32","shape":[],"data_offsets":[0,4]},)"
                             R"("b":{"dtype":"F32","shape":[2,1],"data_offsets":[4,12]}})";
  BOOST_TEST(header.size() == 134u);
  const std::string file("\x88\0\0\0\0\0\0\0", 8); // 136: the next multiple of 8
  const std::string data("\0\0\0\x3f\0\0\x80\x3f\0\0\0\xc0", 12);
  const std::string right = file + header + std::string(2, ' ') + data;
  BOOST_TEST(write(tensors) == right);
  const Tensors again = read(right);
  BOOST_REQUIRE(again.all.size() == 2u);
  BOOST_TEST(same(again.all[0], tensors.all[1]));
  BOOST_TEST(same(again.all[1], tensors.all[0]));
  BOOST_TEST((again.metadata == tensors.metadata));
}

BOOST_AUTO_TEST_CASE(what_is_written_is_read_to_the_bit) {
  const Tensors tensors = example();
  const std::string file = write(tensors);
  const Tensors again = read(file);
  BOOST_TEST(again.all.size() == tensors.all.size());
  BOOST_TEST((again.metadata == tensors.metadata));
  for (const Tensor& tensor : tensors.all) {
    const Tensor* found = again.find(tensor.name);
    BOOST_REQUIRE(found != nullptr);
    BOOST_TEST(same(*found, tensor));
  }
  BOOST_TEST(write(again) == file);
  BOOST_TEST(file.size() % 4 == 0u);
  BOOST_TEST(again.find("none") == nullptr);
  BOOST_TEST(*again.find_metadata("version") == "0.1.0");
  BOOST_TEST(again.find_metadata("none") == nullptr);
}

BOOST_AUTO_TEST_CASE(the_order_of_tensors_changes_no_byte) {
  Tensors tensors = example();
  const std::string file = write(tensors);
  std::swap(tensors.all[0], tensors.all[3]);
  std::swap(tensors.all[1], tensors.all[4]);
  BOOST_TEST(write(tensors) == file);
}

BOOST_AUTO_TEST_CASE(nothing_is_a_file_too) {
  BOOST_TEST(write({}) == file_of("{}      "));
  for (const char* header : {"{}", "{} ", "{\"__metadata__\":{}}", "{\n\t}"}) {
    const Tensors none = read(file_of(header));
    BOOST_TEST(none.all.empty());
    BOOST_TEST(none.metadata.empty());
  }
}

BOOST_AUTO_TEST_CASE(tensors_come_in_the_order_of_their_numbers) {
  const Tensors tensors = read(file_of("{\"z\":" + entry("F32", "[1]", "[4,8]") +
                                           ",\"e\":" + entry("F32", "[0]", "[4,4]") +
                                           ",\"y\":" + entry("F32", "[1]", "[0,4]") + "}",
                                       bytes(std::vector<float>{1, 2})));
  BOOST_REQUIRE(tensors.all.size() == 3u);
  BOOST_TEST(tensors.all[0].name == "y");
  BOOST_TEST(tensors.all[1].name == "e");
  BOOST_TEST(tensors.all[2].name == "z");
  BOOST_TEST(tensors.all[2].values.at(0) == 2);
}

BOOST_AUTO_TEST_CASE(reading_and_writing_can_be_cancelled) {
  const Tensors tensors = example();
  const std::string file = write(tensors);
  for (const bool reading : {true, false}) {
    Run run(1, 1, [](const cape::Progress&) { return false; }, std::chrono::milliseconds(0));
    BOOST_TEST(test::fails_with(Status::cancelled, [&] {
      if (reading)
        cape::read_safetensors(std::as_bytes(std::span(file)), run);
      else
        cape::write_safetensors(tensors, run);
    }));
  }
}

// Python's reader.py opens this one, and says what it should hold.
BOOST_AUTO_TEST_CASE(a_file_for_another_reader) {
  const auto& suite = boost::unit_test::framework::master_test_suite();
  if (suite.argc < 2) return;
  Tensors tensors{.all = {{"empty", {0, 3}, {}}, {"\u03b2", {2, 3}, {0, 1, 2, 3, 4, 5}}},
                  .metadata = {{"format", "caf\u00e9 \"1\""}}};
  for (int i = 0; i < 300; ++i)
    tensors.all.push_back({"t" + std::to_string(i), {i}, std::vector<float>(std::size_t(i), 0.5f)});
  std::ofstream(suite.argv[1], std::ios::binary) << write(tensors);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(types)

// All 65,536, by what their bits mean.
BOOST_AUTO_TEST_CASE(every_half_is_the_same_number_as_a_float) {
  std::vector<std::uint16_t> stored(65536);
  for (std::size_t i = 0; i < stored.size(); ++i) stored[i] = static_cast<std::uint16_t>(i);
  const std::vector<float> values = values_of("F16", stored);
  for (std::size_t i = 0; i < stored.size(); ++i) {
    const int exponent = (stored[i] >> 10) & 31, fraction = stored[i] & 1023;
    double right =
        exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 15 - 10);
    if (exponent == 31) right = infinity;
    if (stored[i] >= 0x8000) right = -right;
    if (exponent == 31 && fraction != 0)
      BOOST_REQUIRE(std::isnan(values[i]));
    else
      BOOST_REQUIRE(bits({values[i]}) == bits({static_cast<float>(right)}));
  }
}

BOOST_AUTO_TEST_CASE(brain_floats_are_the_upper_half_of_a_float) {
  const std::vector<float> values =
      values_of<std::uint16_t>("BF16", {0x3f80, 0xc000, 0x3fc0, 0x7f80, 0x8000, 0x0001, 0x7fc0});
  BOOST_TEST(values[0] == 1);
  BOOST_TEST(values[1] == -2);
  BOOST_TEST(values[2] == 1.5f);
  BOOST_TEST(values[3] == infinity);
  BOOST_TEST(std::signbit(values[4]));
  BOOST_TEST(values[5] == std::ldexp(1.0f, -133));
  BOOST_TEST(std::isnan(values[6]));
}

BOOST_AUTO_TEST_CASE(floats_are_as_they_are) {
  const std::vector<float> stored{1, -0.0f, 1e-45f, infinity, std::bit_cast<float>(0x7fa00001u)};
  BOOST_TEST((bits(values_of("F32", stored)) == bits(stored)));
}

BOOST_AUTO_TEST_CASE(doubles_are_rounded_to_the_nearest_float) {
  const std::vector<float> values =
      values_of<double>("F64", {0.1, 1 + 0x1p-25, 1 + 0x1.8p-24, 1e-300, -infinity, NAN});
  BOOST_TEST(values[0] == 0.1f);
  BOOST_TEST(values[1] == 1);
  BOOST_TEST(values[2] == 1 + 0x1p-23f);
  BOOST_TEST(values[3] == 0);
  BOOST_TEST(values[4] == -infinity);
  BOOST_TEST(std::isnan(values[5]));
  BOOST_TEST(test::has(
      test::error_of(Status::unsupported, [] { values_of<double>("F64", {0, 1, -1e39}); }),
      {"\"t\"", "F64", "number 2"}));
}

BOOST_AUTO_TEST_CASE(integers_must_be_exact) {
  constexpr std::int64_t two_24 = 1 << 24, least = std::numeric_limits<std::int64_t>::min();
  const std::vector<std::int64_t> exact{0,       1,          -1,    two_24 - 1,
                                        -two_24, two_24 + 2, least, 1LL << 62};
  const std::vector<float> values = values_of("I64", exact);
  for (std::size_t i = 0; i < exact.size(); ++i)
    BOOST_TEST(static_cast<double>(values[i]) == static_cast<double>(exact[i]));
  for (const std::int64_t inexact :
       {two_24 + 1, -two_24 - 1, least + 1, std::numeric_limits<std::int64_t>::max()})
    BOOST_TEST(test::has(
        test::error_of(Status::unsupported, [&] { values_of<std::int64_t>("I64", {0, inexact}); }),
        {"\"t\"", "I64", "number 1"}));
}

BOOST_AUTO_TEST_CASE(booleans_are_zero_and_one) {
  BOOST_TEST((values_of<std::uint8_t>("BOOL", {0, 1, 1, 0}) == std::vector<float>{0, 1, 1, 0}));
}

BOOST_AUTO_TEST_CASE(other_types_are_named_when_they_are_refused) {
  for (const char* type : {"F8_E4M3", "F8_E5M2", "I32", "U8", "f32", "", "C64"})
    BOOST_TEST(
        test::has(test::error_of(Status::unsupported, [&] { values_of<std::uint32_t>(type, {1}); }),
                  {"\"t\"", type, "F32, F16, BF16, F64, I64 or BOOL"}));
}

// More values than are converted between two polls.
BOOST_AUTO_TEST_CASE(long_tensors_are_read_in_pieces) {
  std::vector<std::int64_t> stored((1 << 20) + 3);
  for (std::size_t i = 0; i < stored.size(); ++i) stored[i] = static_cast<std::int64_t>(i);
  const std::vector<float> values = values_of("I64", stored);
  BOOST_TEST(values.size() == stored.size());
  for (std::size_t i = 0; i < values.size(); ++i) BOOST_REQUIRE(values[i] == float(i));
  stored.back() = (1 << 24) + 1;
  BOOST_TEST(
      test::fails_with(Status::unsupported, "number 1048578", [&] { values_of("I64", stored); }));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(refused)

// At every length there is an error, and never another than that of a damaged file.
BOOST_AUTO_TEST_CASE(files_that_were_cut_off) {
  const std::string file = write(example());
  for (std::size_t length = 0; length < file.size(); ++length)
    BOOST_REQUIRE(!refusal(file.substr(0, length)).empty());
  BOOST_TEST(test::has(refusal(""), {"0 bytes"}));
  BOOST_TEST(test::has(refusal(file.substr(0, 20)), {"of which there are 12"}));
  BOOST_TEST(test::has(refusal(file + '\0'), {"the last 1 bytes belong to no tensor"}));
}

BOOST_AUTO_TEST_CASE(headers_of_a_length_that_cannot_be) {
  BOOST_TEST(test::has(refusal(file_of("{}", "", 3)), {"header of 3 bytes", "are 2"}));
  BOOST_TEST(test::has(refusal(file_of("{}", "", 100'000'001)), {"100000001", "100000000"}));
  BOOST_TEST(test::has(refusal(file_of("{}", "", ~0ull)), {"18446744073709551615"}));
  BOOST_TEST(test::has(refusal(file_of("", "", 0)), {"does not begin with {"}));
  BOOST_TEST(test::has(refusal(file_of("{}", "", 1)), {"not JSON"})); // of "{"
}

BOOST_AUTO_TEST_CASE(headers_that_are_not_json) {
  for (const char* header :
       {"{", "{]", "{}{}", "{},", "{\"a\"}", "{\"a\":}", "{'a':1}", "{\"__metadata__\":{},}",
        "{\"\xff\":{}}", "{\"\xc0\x80\":{}}", "{\"\xed\xa0\x80\":{}}", "{\"a\\ud800\":{}}",
        "{\"a\nb\":{}}", "{/**/}", "{\"a\":{\"shape\":[1e999]}}", "{\"a\":{\"shape\":[01]}}",
        "{\"a\":{\"shape\":[NaN]}}"})
    BOOST_TEST(test::has(refusal_of(header), {"not JSON in UTF-8, at byte"}), header);
  for (const char* header : {"[]", " {}", "1", "null", "\xef\xbb\xbf{}", "\"a\""})
    BOOST_TEST(test::has(refusal_of(header), {"does not begin with {"}), header);
  // A parser could take a zero for the end, and never see what comes behind.
  BOOST_TEST(test::has(refusal(file_of(std::string("{}\0]", 4))), {"zero byte"}));
}

BOOST_AUTO_TEST_CASE(headers_of_another_form) {
  const auto a = [](const std::string& value) { return refusal_of("{\"a\":" + value + "}"); };
  for (const char* value : {"1", "-1", "1.5", "true", "null", "\"x\"", "[]"})
    BOOST_TEST(test::has(a(value), {"\"a\" must be an object"}), value);
  for (const char* value : {"{}", R"({"dtype":"F32"})", R"({"dtype":"F32","shape":[0]})",
                            R"({"shape":[0],"data_offsets":[0,0]})"})
    BOOST_TEST(test::has(a(value), {"tensor \"a\" needs dtype, shape and data_offsets"}), value);
  for (const char* value : {"1", "null", "[]", "{}", "[\"F32\"]"})
    BOOST_TEST(test::has(a(R"({"dtype":)" + std::string(value) + "}"),
                         {"\"dtype\" of tensor \"a\" must be a text"}),
               value);
  for (const char* value :
       {"1", "\"1\"", "{}", "[-1]", "[-0]", "[1.0]", "[1e2]", "[null]", "[true]", "[\"1\"]",
        "[[1]]", "[{}]", "[9223372036854775808]", "[99999999999999999999]"})
    BOOST_TEST(test::has(a(R"({"shape":)" + std::string(value) + "}"),
                         {"\"shape\" of tensor \"a\" must be an array of whole numbers"}),
               value);
  for (const char* value : {"0", "[]", "[0]", "[0,1,2]", "[-1,0]", "[0,[]]", "[0,0.5]"})
    BOOST_TEST(test::has(a(R"({"data_offsets":)" + std::string(value) + "}"),
                         {"\"data_offsets\" of tensor \"a\" must be an array of two"}),
               value);
  for (const char* value : {"1", "{}", "[]", "null"})
    BOOST_TEST(test::has(a(R"({"size":)" + std::string(value) + "}"),
                         {"\"size\" of tensor \"a\" is none of dtype"}),
               value);
  for (const char* value : {"1", "null", "[]", "\"x\""})
    BOOST_TEST(test::has(refusal_of(R"({"__metadata__":)" + std::string(value) + "}"),
                         {"\"__metadata__\" must be an object"}),
               value);
  for (const char* value : {"1", "null", "[]", "{}"})
    BOOST_TEST(test::has(refusal_of(R"({"__metadata__":{"k":)" + std::string(value) + "}}"),
                         {"metadata \"k\" must be a text"}),
               value);
}

BOOST_AUTO_TEST_CASE(names_that_are_given_twice) {
  const std::string none = entry("F32", "[0]", "[0,0]");
  BOOST_TEST(test::has(refusal_of("{\"a\":" + none + ",\"b\":" + none + ",\"a\":" + none + "}"),
                       {"\"a\" is given twice"}));
  BOOST_TEST(test::has(refusal_of("{\"a\":" + none + ",\"\\u0061\":" + none + "}"),
                       {"\"a\" is given twice"})); // the same name, written otherwise
  BOOST_TEST(test::has(refusal_of(R"({"__metadata__":{},"__metadata__":{}})"),
                       {"\"__metadata__\" is given twice"}));
  BOOST_TEST(test::has(refusal_of(R"({"__metadata__":{"k":"","l":"","k":""}})"),
                       {"metadata \"k\" is given twice"}));
  for (const char* field : {R"("dtype":"F32")", R"("shape":[])", R"("data_offsets":[0,0])"})
    BOOST_TEST(test::has(refusal_of("{\"a\":{" + std::string(field) + "," + field + "}}"),
                         {"of tensor \"a\" is given twice"}),
               field);
}

BOOST_AUTO_TEST_CASE(places_that_overlap_or_leave_bytes_out) {
  const auto two = [](const char* first, const char* second, std::size_t data) {
    return refusal_of("{\"a\":" + entry("F32", "[2]", first) +
                          ",\"b\":" + entry("F32", "[2]", second) + "}",
                      data);
  };
  BOOST_TEST(two("[0,8]", "[8,16]", 16) == "");
  BOOST_TEST(test::has(two("[0,8]", "[4,12]", 16), {"\"a\" and \"b\" overlap"}));
  BOOST_TEST(test::has(two("[0,8]", "[0,8]", 8), {"\"a\" and \"b\" overlap"}));
  BOOST_TEST(test::has(two("[0,8]", "[9,17]", 17), {"bytes 8 to 8"}));
  BOOST_TEST(test::has(two("[16,24]", "[4,12]", 24), {"bytes 0 to 3"}));
  BOOST_TEST(test::has(two("[0,8]", "[8,16]", 17), {"the last 1 bytes"}));
  BOOST_TEST(test::has(two("[0,8]", "[8,16]", 15), {"\"b\" ends at byte 16", "15 bytes"}));
  BOOST_TEST(
      test::has(two("[8,0]", "[8,16]", 16), {"\"a\" begins at byte 8 and ends before, at 0"}));
}

BOOST_AUTO_TEST_CASE(shapes_that_do_not_fit_their_bytes) {
  const auto one = [](const char* type, const char* shape, const char* offsets, std::size_t data) {
    return refusal_of("{\"a\":" + entry(type, shape, offsets) + "}", data);
  };
  BOOST_TEST(one("F32", "[2,3]", "[0,24]", 24) == "");
  BOOST_TEST(
      test::has(one("F32", "[2,3]", "[0,20]", 20), {"\"a\"", "6 numbers of 4 bytes", "20 bytes"}));
  BOOST_TEST(test::has(one("F32", "[]", "[0,0]", 0), {"1 numbers of 4 bytes", "0 bytes"}));
  BOOST_TEST(test::has(one("F64", "[1]", "[0,4]", 4), {"1 numbers of 8 bytes"}));
  BOOST_TEST(test::has(one("F16", "[1]", "[0,3]", 3), {"1 numbers of 2 bytes"}));
  for (const char* shape :
       {"[4294967296,4294967296]", "[9223372036854775807,2]", "[4611686018427387904,4,0]"})
    BOOST_TEST(test::has(one("F32", shape, "[0,0]", 0), {"\"a\"", "beyond 2^63"}), shape);
  // 2^62 numbers of 4 bytes: their bytes would be 0 again.
  BOOST_TEST(
      test::has(one("F32", "[4611686018427387904]", "[0,0]", 0), {"4611686018427387904 numbers"}));
  BOOST_TEST(one("F32", "[0,9223372036854775807]", "[0,0]", 0) == "");
}

// Of a depth that a reader that follows it would not come back from.
BOOST_AUTO_TEST_CASE(headers_of_any_depth) {
  for (const char* open : {"{\"a\":", "[", "{\"shape\":["}) {
    std::string deep = "{\"a\":";
    for (int i = 0; i < 1'000'000; ++i) deep += open;
    BOOST_TEST(!refusal_of(deep).empty());
  }
  BOOST_TEST(!refusal_of("{\"a\":{\"shape\":" + std::string(1'000'000, '[') + "}}").empty());
}

BOOST_AUTO_TEST_CASE(names_in_messages_are_short_and_can_be_shown) {
  const std::string name(1000, 'x');
  BOOST_TEST(refusal_of("{\"" + name + "\":1}").size() < 200u);
  BOOST_TEST(test::has(refusal_of("{\"a\\u0000\\n\":1}"), {"\"a\\u0000\\n\""}));
  std::string umlauts; // cut inside of a character
  for (int i = 0; i < 100; ++i) umlauts += "\u00fc";
  BOOST_TEST(test::has(refusal_of("{\"x" + umlauts + "\":1}"), {"\u00fc\ufffd\"..."}));
}

BOOST_AUTO_TEST_CASE(tensors_that_no_file_can_hold) {
  const auto error = [](Status status, const Tensors& tensors) {
    return test::error_of(status, [&] { write(tensors); });
  };
  const Tensor a{"a", {1}, {1}};
  BOOST_TEST(test::has(error(Status::invalid_argument, {{a, a}, {}}), {"two tensors \"a\""}));
  BOOST_TEST(test::has(error(Status::invalid_argument, {{{"__metadata__", {1}, {1}}}, {}}),
                       {"\"__metadata__\"", "keeps"}));
  BOOST_TEST(test::has(error(Status::invalid_argument, {{{"a", {-1, -1}, {1}}}, {}}),
                       {"\"a\"", "side of -1"}));
  BOOST_TEST(test::has(error(Status::dim_mismatch, {{{"a", {2, 3}, {1}}}, {}}),
                       {"\"a\" has 1 values", "shape of 6"}));
  BOOST_TEST(test::has(error(Status::dim_mismatch, {{{"a", {1LL << 40, 1LL << 40}, {1}}}, {}}),
                       {"more than 2^63"}));
  for (const char* wrong : {"\xff", "a\xc3", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80"}) {
    BOOST_TEST(
        test::has(error(Status::invalid_argument, {{{wrong, {1}, {1}}}, {}}), {"not UTF-8"}));
    BOOST_TEST(test::has(error(Status::invalid_argument, {{}, {{wrong, "text"}}}), {"not UTF-8"}));
    BOOST_TEST(test::has(error(Status::invalid_argument, {{}, {{"key", wrong}}}), {"not UTF-8"}));
  }
  BOOST_TEST(
      test::has(error(Status::invalid_argument, {{}, {{"k", "1"}, {"k", "2"}}}), {"\"k\" twice"}));
  BOOST_TEST(
      test::has(error(Status::invalid_argument, {{}, {{"k", std::string(100'000'000, 'x')}}}),
                {"at most 100000000"}));
}

BOOST_AUTO_TEST_SUITE_END()

// Each file that another program wrote, as another reader reads it.
BOOST_AUTO_TEST_CASE(reference_files) {
  if (test::data_missing("parity")) return;
  int files = 0, tensors = 0;
  const std::filesystem::path folder = test::data_directory() / "parity";
  for (const auto& file : std::filesystem::recursive_directory_iterator(folder)) {
    if (file.path().extension() != ".safetensors") continue;
    std::ifstream in(file.path(), std::ios::binary);
    const Tensors ours = read({std::istreambuf_iterator<char>(in), {}});
    const auto right = test::read_parity(std::filesystem::relative(file.path(), folder).string());
    ++files;
    BOOST_TEST(ours.all.size() == right.size());
    for (const auto& [name, values] : right) {
      const Tensor* tensor = ours.find(name);
      BOOST_REQUIRE(tensor != nullptr);
      BOOST_TEST((bits(tensor->values) == bits(test::as<float>(values))));
      ++tensors;
    }
    const Tensors again = read(write(ours));
    for (const Tensor& tensor : ours.all) BOOST_TEST(same(*again.find(tensor.name), tensor));
    BOOST_TEST((again.metadata == ours.metadata));
  }
  BOOST_TEST_MESSAGE(files << " files with " << tensors << " tensors");
  BOOST_TEST(files > 0);
}
