// The form of objects outside of memory: their parts one after the other, numbers as they are in
// memory (little-endian on all supported machines), what has a length after it. In front of all are
// a tag of eight characters and a hash of what follows.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "handle.hpp"

namespace cape::capi {

/// Writes parts to memory or, without any, counts their bytes.
class Writer {
public:
  explicit Writer(char* out) : out_(out) {}

  template <class... Parts>
  void operator()(const Parts&... parts) {
    (put(parts), ...);
  }
  std::size_t size() const noexcept { return size_; }

private:
  void copy(const void* from, std::size_t n) {
    if (out_ != nullptr && n > 0) std::memcpy(out_ + size_, from, n);
    size_ += n;
  }
  template <class T>
  requires std::is_arithmetic_v<T>
  void put(const T& value) {
    if constexpr (std::is_same_v<T, bool>)
      put(std::int64_t{value});
    else
      copy(&value, sizeof value);
  }
  void put(const std::string& text) {
    put(static_cast<std::int64_t>(text.size()));
    copy(text.data(), text.size());
  }
  template <class T>
  void put(const std::vector<T>& values) {
    put(static_cast<std::int64_t>(values.size()));
    if constexpr (std::is_trivially_copyable_v<T>)
      copy(values.data(), values.size() * sizeof(T));
    else
      for (const T& value : values) put(value);
  }
  void put(const Matrix& m) {
    (*this)(m.rows(), m.cols());
    copy(m.data(), static_cast<std::size_t>(m.size()) * sizeof(double));
  }
  void put(const SparseMatrix& m) { (*this)(m.rows, m.cols, m.offsets, m.indices, m.values); }
  void put(const Digraph& graph) { (*this)(graph.size(), graph.edges()); }

  char* out_;
  std::size_t size_ = 0;
};

/// Reads what a Writer has written. Error(bad_format) if that is not what the bytes hold.
class Reader {
public:
  explicit Reader(std::span<const char> bytes) : rest_(bytes) {}

  template <class... Parts>
  void operator()(Parts&... parts) {
    (take(parts), ...);
  }
  bool at_end() const noexcept { return rest_.empty(); }

private:
  [[noreturn]] static void refuse() { throw Error(Status::bad_format, "they end too early"); }
  void copy(void* to, std::size_t n) {
    if (n > rest_.size()) refuse();
    if (n > 0) std::memcpy(to, rest_.data(), n);
    rest_ = rest_.subspan(n);
  }
  // How many of such a size follow: never more than there are bytes for.
  std::size_t count(std::size_t size_of_one) {
    std::int64_t n = 0;
    take(n);
    if (n < 0 || static_cast<std::size_t>(n) > rest_.size() / size_of_one) refuse();
    return static_cast<std::size_t>(n);
  }
  template <class T>
  requires std::is_arithmetic_v<T>
  void take(T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      std::int64_t number = 0;
      take(number);
      value = number != 0;
    } else {
      copy(&value, sizeof value);
    }
  }
  void take(std::string& text) {
    text.resize(count(1));
    copy(text.data(), text.size());
  }
  template <class T>
  void take(std::vector<T>& values) {
    if constexpr (std::is_trivially_copyable_v<T>) {
      values.resize(count(sizeof(T)));
      copy(values.data(), values.size() * sizeof(T));
    } else {
      values.resize(count(sizeof(std::int64_t)));
      for (T& value : values) take(value);
    }
  }
  void take(Matrix& m) {
    std::int64_t rows = 0, cols = 0;
    (*this)(rows, cols);
    if (static_cast<std::size_t>(checked_size(rows, cols, "a matrix")) >
        rest_.size() / sizeof(double))
      refuse();
    m = Matrix(rows, cols);
    copy(m.data(), static_cast<std::size_t>(m.size()) * sizeof(double));
  }
  void take(SparseMatrix& m) {
    (*this)(m.rows, m.cols, m.offsets, m.indices, m.values);
    if (m.rows < 0 || m.cols < 0 || m.indices.size() != m.values.size() ||
        (!m.empty() && static_cast<std::int64_t>(m.offsets.size()) - 1 != m.cols) ||
        (!m.empty() && m.offsets.back() != static_cast<std::int64_t>(m.values.size())))
      throw Error(Status::bad_format, "a sparse matrix does not fit together");
    if (m.empty()) return;
    check_view(m, "a sparse matrix");
    check_finite(m, "a sparse matrix");
  }
  void take(Digraph& graph) {
    std::int64_t nodes = 0;
    std::vector<Edge> edges;
    (*this)(nodes, edges);
    graph = Digraph(nodes, std::move(edges));
  }

  std::span<const char> rest_;
};

inline constexpr std::size_t front_size = 8 + sizeof(std::uint64_t);

/// The bytes of write(writer) with their front.
template <class Write>
std::int64_t saved_size(Write write) {
  Writer counting(nullptr);
  write(counting);
  return static_cast<std::int64_t>(front_size + counting.size());
}

/// Save to the caller's bytes. Error(dim_mismatch) if they are too few.
template <class Write>
void save(void* out, std::int64_t capacity, std::string_view tag, Write write) {
  const std::int64_t bytes = saved_size(write);
  if (capacity < bytes)
    throw Error(Status::dim_mismatch,
                message("capacity is ", capacity, "; ", bytes, " bytes are saved"));
  char* to = &required(static_cast<char*>(out), "out");
  Writer writer(to + front_size);
  write(writer);
  const std::uint64_t sum = hash(std::string_view(to + front_size, writer.size()));
  std::memcpy(to, tag.data(), 8);
  std::memcpy(to + 8, &sum, sizeof sum);
}

/// And back: read(reader), which may throw what constructors do. Error(bad_format) unless the bytes
/// are whole, of this tag, and as they were saved.
template <class Read>
void load(const void* bytes, std::int64_t n, std::string_view tag, std::string_view what,
          Read read) {
  const char* from = &required(static_cast<const char*>(bytes), "bytes");
  const auto refuse = [&](const std::string& why) {
    throw Error(Status::bad_format,
                message("bytes are not ", what, " that was saved (n is ", n, "): ", why));
  };
  if (n < static_cast<std::int64_t>(front_size)) refuse("they are too few");
  if (std::memcmp(from, tag.data(), 8) != 0) refuse("they begin otherwise");
  const std::string_view rest(from + front_size, static_cast<std::size_t>(n) - front_size);
  std::uint64_t sum = 0;
  std::memcpy(&sum, from + 8, sizeof sum);
  if (sum != hash(rest)) refuse("they are damaged, or not all");
  Reader reader({rest.data(), rest.size()});
  try {
    read(reader);
  } catch (const Error& error) {
    if (error.code() == Status::out_of_memory) throw;
    refuse(error.what());
  }
  if (!reader.at_end()) refuse("they go on after its end");
}

} // namespace cape::capi
