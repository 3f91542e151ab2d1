// The text of an error message from its parts (std::format is not in every supported library).
#pragma once
#include <locale>
#include <sstream>
#include <string>

namespace cape {

template <class... Parts>
std::string message(const Parts&... parts) {
  std::ostringstream out;
  out.imbue(std::locale::classic());
  (out << ... << parts);
  return out.str();
}

} // namespace cape
