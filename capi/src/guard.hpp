// The guard around every entry point of the C interface, and the tests of its arguments.
#pragma once
#include "cape/cape.h"
#include "internal/message.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

import cape;

namespace cape::capi {

using ErrorText = std::array<char, 4096>;

/// The text, or as much of it as there is room for, with a zero at its end.
void copy_text(std::span<char> out, std::string_view text) noexcept;

/// Keep the message of the exception in flight for cape_last_error() and return its status.
cape_status record_exception() noexcept;

/// cape_last_error() has nothing to say.
void forget_error() noexcept;

/// Run the body of an entry point; whatever it throws becomes a status.
template <class Body>
cape_status guard(Body&& body) noexcept {
  try {
    body();
    forget_error(); // after the body: its callbacks may have made calls of their own
    return CAPE_OK;
  } catch (...) {
    return record_exception();
  }
}

/// Throw Error(invalid_argument) if the pointer is null.
template <class T>
T& required(T* pointer, std::string_view name) {
  if (pointer == nullptr)
    throw Error(Status::invalid_argument, std::string(name) + " is NULL; it must not be");
  return *pointer;
}

/// The caller's n values. Error(invalid_argument) if n is negative, or data null without being
/// empty.
template <class T>
std::span<const T> values(const T* data, std::int64_t n, std::string_view name,
                          std::string_view n_name = "n") {
  const std::int64_t size = checked_size(n, 1, n_name);
  if (size > 0) required(data, name);
  return {data, static_cast<std::size_t>(size)};
}

/// The same, copied.
template <class T>
std::vector<T> copied_values(const T* data, std::int64_t n, std::string_view name,
                             std::string_view n_name = "n") {
  const std::span<const T> given = values(data, n, name, n_name);
  return {given.begin(), given.end()};
}

/// The caller's n edges, of weight 1 or, if `weight` is given, of those.
std::vector<Edge> edges_of(const std::int64_t* from, const std::int64_t* to, std::int64_t n,
                           std::string_view n_name = "n");
std::vector<Edge> edges_of(const std::int64_t* from, const std::int64_t* to, const double* weight,
                           std::int64_t n, std::string_view n_name = "n");

/// Zero the outputs that are single values, so that they are so when the call fails.
template <class... T>
void clear(T*... out) {
  ((out != nullptr ? void(*out = T{}) : void()), ...);
}

/// Throw Error(dim_mismatch) unless the length that the caller passes is the right one.
void check_length(std::int64_t given, std::int64_t right, std::string_view name);

/// The same for both dimensions of a matrix.
void check_sizes(std::int64_t n_rows, std::int64_t n_cols, std::int64_t right_rows,
                 std::int64_t right_cols);

/// The same, and out not null if it has elements.
void check_output(const double* out, std::int64_t n_rows, std::int64_t n_cols,
                  std::int64_t right_rows, std::int64_t right_cols);

/// The same for a vector, and out not null if it has elements: before the work whose result goes
/// there.
template <class T>
void check_output(const T* out, std::int64_t n, std::int64_t right) {
  check_length(n, right, "n");
  if (n > 0) required(out, "out");
}

/// Copy values to the caller's n elements, after check_length.
template <class Values, class T>
void copy_vector(T* out, std::int64_t n, const Values& values, std::string_view name) {
  check_length(n, static_cast<std::int64_t>(values.size()), "n");
  if (n > 0) std::memcpy(&required(out, name), values.data(), values.size() * sizeof(T));
}

/// Copy a matrix to the caller's, after check_output.
void copy_matrix(double* out, std::int64_t n_rows, std::int64_t n_cols, const Matrix& values);

/// Copy one row of N numbers per record, numbers(record), to the caller's matrix.
template <std::size_t N, class Record, class Numbers>
void copy_records(double* out, std::int64_t n_rows, std::int64_t n_cols,
                  const std::vector<Record>& records, Numbers numbers) {
  Matrix table(static_cast<std::int64_t>(records.size()), N);
  for (std::int64_t i = 0; i < table.rows(); ++i) {
    const std::array<double, N> row = numbers(records[static_cast<std::size_t>(i)]);
    for (std::int64_t j = 0; j < table.cols(); ++j) table(i, j) = row[static_cast<std::size_t>(j)];
  }
  copy_matrix(out, n_rows, n_cols, table);
}

/// Row i of a matrix.
std::vector<double> row_of(const MatrixView& matrix, std::int64_t i);

/// f(), whose errors name the row of the caller's matrices that it is about.
template <class F>
auto in_row(std::int64_t row, F f) {
  try {
    return f();
  } catch (const Error& error) {
    throw Error(error.code(), message("row ", row, " (counted from 0): ", error.what()));
  }
}

/// The warning of that number, whose text lives as long as `warnings`.
const char* warning_of(const std::vector<std::string>& warnings, std::int64_t index,
                       std::string_view name);

/// Throw Error(unsupported) for a struct of a newer client, Error(invalid_argument) for a size that
/// does not even hold struct_size, or cuts a field: all are of 8 bytes, or two of 4.
void check_struct_size(std::size_t given, std::size_t ours, std::string_view name);

/// The client's struct, which may be shorter than ours: fields that it lacks come from `defaults`.
template <class T>
T read_struct(const T* in, std::string_view name, const T& defaults) {
  const std::size_t size = required(in, name).struct_size;
  check_struct_size(size, sizeof(T), name);
  T out = defaults;
  std::memcpy(&out, in, size);
  return out;
}

/// Fill the client's struct as far as the client knows its fields.
template <class T>
void write_struct(T* out, T values) {
  values.struct_size = out->struct_size;
  std::memcpy(out, &values, values.struct_size);
}

} // namespace cape::capi
