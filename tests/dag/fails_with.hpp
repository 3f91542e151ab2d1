// Include after `import cape;`.
#pragma once

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

} // namespace test
