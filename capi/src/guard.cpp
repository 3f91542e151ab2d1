#include <algorithm>
#include <exception>
#include <new>
#include <stdexcept>

#include "guard.hpp"

namespace cape::capi {
namespace {

// Of a fixed size: keeping a message needs no memory, and threads and unloading need no destructor.
thread_local ErrorText last_error;

void keep(std::string_view message) noexcept { copy_text(last_error, message); }

} // namespace

void copy_text(std::span<char> out, std::string_view text) noexcept {
  if (out.empty()) return;
  const std::size_t length = std::min(text.size(), out.size() - 1);
  std::memcpy(out.data(), text.data(), length);
  out[length] = '\0';
}

void forget_error() noexcept { last_error[0] = '\0'; }

cape_status record_exception() noexcept {
  try {
    throw;
  } catch (const Error& error) {
    keep(error.what());
    return static_cast<cape_status>(error.code());
  } catch (const std::bad_alloc&) {
    keep("out of memory");
    return CAPE_OUT_OF_MEMORY;
  } catch (const std::length_error&) { // what a container says to a size that no memory could hold
    keep("out of memory: a result would be larger than any memory");
    return CAPE_OUT_OF_MEMORY;
  } catch (const std::exception& error) {
    keep(error.what());
    return CAPE_INTERNAL;
  } catch (...) {
    keep("an exception of unknown type");
    return CAPE_INTERNAL;
  }
}

std::vector<Edge> edges_of(const std::int64_t* from, const std::int64_t* to, std::int64_t n,
                           std::string_view n_name) {
  const auto causes = values(from, n, "from", n_name), effects = values(to, n, "to", n_name);
  std::vector<Edge> edges(causes.size());
  for (std::size_t e = 0; e < edges.size(); ++e) edges[e] = {causes[e], effects[e], 1};
  return edges;
}

std::vector<Edge> edges_of(const std::int64_t* from, const std::int64_t* to, const double* weight,
                           std::int64_t n, std::string_view n_name) {
  std::vector<Edge> edges = edges_of(from, to, n, n_name);
  const auto weights = values(weight, n, "weight", n_name);
  for (std::size_t e = 0; e < edges.size(); ++e) edges[e].weight = weights[e];
  return edges;
}

void check_length(std::int64_t given, std::int64_t right, std::string_view name) {
  if (given != right)
    throw Error(Status::dim_mismatch, std::string(name) + " is " + std::to_string(given) +
                                          "; it must be " + std::to_string(right));
}

void check_sizes(std::int64_t n_rows, std::int64_t n_cols, std::int64_t right_rows,
                 std::int64_t right_cols) {
  if (n_rows != right_rows || n_cols != right_cols)
    throw Error(Status::dim_mismatch, "out is " + std::to_string(n_rows) + " x " +
                                          std::to_string(n_cols) + "; it must be " +
                                          std::to_string(right_rows) + " x " +
                                          std::to_string(right_cols));
}

void check_output(const double* out, std::int64_t n_rows, std::int64_t n_cols,
                  std::int64_t right_rows, std::int64_t right_cols) {
  check_sizes(n_rows, n_cols, right_rows, right_cols);
  if (n_rows > 0 && n_cols > 0) required(out, "out");
}

void copy_matrix(double* out, std::int64_t n_rows, std::int64_t n_cols, const Matrix& values) {
  check_output(out, n_rows, n_cols, values.rows(), values.cols());
  if (!values.empty())
    std::memcpy(out, values.data(), static_cast<std::size_t>(values.size()) * sizeof(double));
}

std::vector<double> row_of(const MatrixView& matrix, std::int64_t i) {
  std::vector<double> row(static_cast<std::size_t>(matrix.cols));
  for (std::int64_t j = 0; j < matrix.cols; ++j) row[static_cast<std::size_t>(j)] = matrix(i, j);
  return row;
}

const char* warning_of(const std::vector<std::string>& warnings, std::int64_t index,
                       std::string_view name) {
  if (index < 0 || index >= static_cast<std::int64_t>(warnings.size()))
    throw Error(Status::invalid_argument, message("index is ", index, "; ", name, " has ",
                                                  warnings.size(), " warnings, counted from 0"));
  return warnings[static_cast<std::size_t>(index)].c_str();
}

void check_struct_size(std::size_t given, std::size_t ours, std::string_view name) {
  if (given > ours)
    throw Error(
        Status::unsupported,
        std::string(name) + "->struct_size is " + std::to_string(given) + " but " +
            std::to_string(ours) +
            " in this library, which is older than the header that the caller was built with");
  if (given < sizeof(std::size_t) || given % sizeof(std::size_t) != 0)
    throw Error(Status::invalid_argument,
                message(name, "->struct_size is ", given, "; set it to sizeof the struct"));
}

} // namespace cape::capi

const char* cape_last_error(void) { return cape::capi::last_error.data(); }
