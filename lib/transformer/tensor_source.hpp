// Tensors that a model is made of, taken one by one.
#pragma once

namespace cape {

/// Of a shape that is expected: a side of any length, from 1.
inline constexpr std::int64_t any_side = -1;

/// Tensors by name, each taken once. Errors are bad_format and name the tensor, behind what the
/// tensors are not.
class TensorSource {
public:
  TensorSource(const Tensors& tensors, std::string_view wrong, Run& run);

  bool has(std::string_view name) const;

  /// Rows and columns of a tensor, which is not taken; one each at least.
  std::pair<std::int64_t, std::int64_t> sides(std::string_view name) const;

  /// The tensor, which is finite and of this shape.
  const Tensor& take(std::string_view name, const std::vector<std::int64_t>& shape);

  /// Error unless all have been taken, but for those whose name `aside` accepts.
  void check_empty(const std::function<bool(std::string_view)>& aside = {}) const;

  template <class... Parts>
  [[noreturn]] void refuse(const Parts&... parts) const {
    throw Error(Status::bad_format, message(wrong_, ": ", parts...));
  }

private:
  const Tensor& look(std::string_view name) const;
  void check_shape(const Tensor& tensor, const std::vector<std::int64_t>& shape) const;

  std::string_view wrong_;
  Run& run_;
  std::map<std::string_view, const Tensor*> by_name_; ///< sorted, for the same message each time
};

/// Whether all numbers are finite.
bool all_finite(std::span<const float> values, Run& run);

} // namespace cape
