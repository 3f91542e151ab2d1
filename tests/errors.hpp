// What a call throws. Include after `import cape;`.
#pragma once
#include <algorithm>
#include <functional>
#include <initializer_list>
#include <string>

namespace test {

/// Whether the call throws a cape::Error of that status whose message has that part.
inline bool fails_with(cape::Status status, const std::string& part,
                       const std::function<void()>& call) {
  try {
    call();
  } catch (const cape::Error& e) {
    BOOST_TEST_MESSAGE(e.what());
    return e.code() == status && std::string(e.what()).find(part) != std::string::npos;
  }
  return false;
}

inline bool fails_with(cape::Status status, const std::function<void()>& call) {
  return fails_with(status, "", call);
}

/// The message of the cape::Error with this status that the call throws; empty if it throws none.
inline std::string error_of(cape::Status status, const std::function<void()>& call) {
  try {
    call();
  } catch (const cape::Error& e) {
    BOOST_TEST(std::string(cape::status_name(e.code())) == std::string(cape::status_name(status)));
    return e.what();
  }
  return "";
}

inline bool has(const std::string& text, std::initializer_list<const char*> parts) {
  return std::ranges::all_of(
      parts, [&](const char* part) { return text.find(part) != std::string::npos; });
}

} // namespace test
