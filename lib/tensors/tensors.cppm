// cape.tensors: named tensors, and the bytes of a safetensors file, the format in which weights of
// models are exchanged (https://github.com/huggingface/safetensors): a header of JSON with name,
// type, shape and place of each tensor and a map of texts, then the numbers. Bytes in, bytes out:
// no file is opened here, and nothing of what is read is ever run.
module;
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>
export module cape.tensors;
import cape.core;

export namespace cape {

/// Numbers in rows: the last index runs fastest. A shape without dimensions is that of one number.
struct Tensor {
  std::string name;                ///< UTF-8
  std::vector<std::int64_t> shape; ///< none negative
  std::vector<float> values;       ///< as many as the product of the shape
};

struct Tensors {
  std::vector<Tensor> all;                                   ///< no two of one name
  std::vector<std::pair<std::string, std::string>> metadata; ///< key and text, UTF-8; keys differ

  /// The tensor of that name, and the text of that key; null if there is none. O(number of them).
  const Tensor* find(std::string_view name) const;
  const std::string* find_metadata(std::string_view key) const;
};

/// The tensors of a file, in the order of their numbers there. Types: F32, F16 and BF16 as they are
/// (also infinities and NaN, which are for the caller to judge), F64 rounded to the nearest float,
/// I64 where a float holds each value exactly, BOOL as 0 and 1.
/// Error(unsupported) naming the tensor for any other type, and for a value of F64 or I64 beyond
/// what is said. Error(bad_format) with what and where, for any file that is not whole and in
/// order: shorter than it says, a header above 100 MB or not JSON of the right form, a name given
/// twice, places that overlap or leave bytes between or behind them or lie beyond the end, a shape
/// that does not fit its bytes or overflows. O(bytes), after the header has been checked whole;
/// memory is that of the header and of the result.
Tensors read_safetensors(std::span<const std::byte> file, Run& run);

/// The file of these tensors, all of type F32 and sorted by name, as the format's own library does.
/// The same tensors in another order give the same bytes; metadata keep their order.
/// Error(invalid_argument) for names and metadata that are not UTF-8 or given twice, a tensor named
/// "__metadata__", a negative side, a header above 100 MB; Error(dim_mismatch) for a shape that
/// does not fit its values. O(bytes + number of tensors x log).
std::vector<std::byte> write_safetensors(const Tensors& tensors, Run& run);

} // namespace cape
