// Options by key, of every type and as text; sizes of structs; what a fit would need.
#include "fuzz.hpp"

using fuzz::Input;

namespace {

std::string key(Input& in) {
  if (in.one_in(8)) return in.text(40);
  cape_option_desc desc{};
  desc.struct_size = sizeof desc;
  MUST(cape_option_info, &desc,
       static_cast<std::size_t>(in.in(0, static_cast<std::int64_t>(cape_option_count()) - 1)));
  std::string out = desc.key;
  if (in.one_in(16))
    out[static_cast<std::size_t>(in.in(0, static_cast<std::int64_t>(out.size()) - 1))] ^= 1;
  return out;
}

std::string value(Input& in) {
  switch (in.in(0, 2)) {
  case 0: return in.text(24);
  case 1: return std::to_string(in.number());
  default: return std::to_string(in.integer());
  }
}

void get(cape_options* options, const char* name) {
  double real = 0;
  std::int64_t integer = 0;
  int logical = 0;
  const char* choice = nullptr;
  CALL(cape_options_get_f64, &real, options, name);
  CALL(cape_options_get_i64, &integer, options, name);
  CALL(cape_options_get_bool, &logical, options, name);
  if (CALL(cape_options_get_str, &choice, options, name) && *choice == '\0')
    fuzz::fail("cape_options_get_str", "an empty name");
}

// A description of another size is refused or filled as far as it goes.
void describe(Input& in) {
  constexpr std::size_t more = 16;
  std::vector<char> bytes(sizeof(cape_option_desc) + more, 0x55);
  const auto size = static_cast<std::size_t>(in.in(0, sizeof(cape_option_desc) + more));
  std::memcpy(bytes.data(), &size, sizeof size);
  auto* desc = reinterpret_cast<cape_option_desc*>(bytes.data());
  if (!CALL(cape_option_info, desc, static_cast<std::size_t>(in.in(0, 90)))) return;
  for (std::size_t b = size; b < bytes.size(); ++b)
    if (bytes[b] != 0x55) fuzz::fail("cape_option_info", "wrote behind the struct");
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input in(data, size);
  cape_options* options = nullptr;
  MUST(cape_options_new, &options);
  for (int i = 0; i < 12 && !in.at_end(); ++i) {
    const std::string name = key(in);
    switch (in.in(0, 9)) {
    case 0: CALL(cape_options_set_f64, options, name.c_str(), in.number()); break;
    case 1: CALL(cape_options_set_i64, options, name.c_str(), in.integer()); break;
    case 2:
      CALL(cape_options_set_bool, options, name.c_str(), static_cast<int>(in.integer()));
      break;
    case 3: CALL(cape_options_set_str, options, name.c_str(), value(in).c_str()); break;
    case 4: get(options, name.c_str()); break;
    case 5: {
      cape_options* clone = nullptr;
      MUST(cape_options_clone, &clone, options);
      cape_options_free(options);
      options = clone;
      break;
    }
    case 6: describe(in); break;
    case 7: {
      double need[2] = {};
      const std::int64_t rows = in.integer(), cols = in.integer();
      FINITE(need, cape_estimate, &need[0], &need[1], rows, cols, options);
      break;
    }
    default: CALL(cape_options_set_text, options, name.c_str(), value(in).c_str());
    }
  }
  cape_options_free(options);
  return 0;
}
