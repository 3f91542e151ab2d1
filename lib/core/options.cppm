// The description of options: their keys, ranges and documentation.
module;
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>
#include <variant>
#include <vector>
export module cape.core:options;

export namespace cape {

/// An option with a closed set of named values, bound to the field of an options struct.
struct Choice {
  std::vector<std::string_view> names;
  std::function<std::int32_t()> get;
  std::function<void(std::int32_t)> set;
};

/// One option: its key ("dag.lambda"), the field it is bound to, the range, what it does, and the
/// equation or section of the paper (or of docs/method.md) that it comes from. The default is
/// whatever the field of a newly made struct holds: there is no second place for it.
struct OptionField {
  std::string_view name;
  std::variant<double*, std::int64_t*, bool*, Choice> value;
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  bool open_min = false;  ///< min itself is not allowed
  bool open_max = false;  ///< max itself is not allowed
  bool automatic = false; ///< NaN (double) or -1 (integer) means: chosen by the stage, see doc
  std::string_view doc;
  std::string_view source;
};
using OptionFields = std::vector<OptionField>;

/// Bind an enum field. The enumerators must be 0, 1, 2, ... in the order of the names.
template <class Enum>
Choice choice(Enum& field, std::initializer_list<std::string_view> names) {
  return {names, [&field] { return static_cast<std::int32_t>(field); },
          [&field](std::int32_t i) { field = static_cast<Enum>(i); }};
}

/// Throw Error(invalid_argument) naming the first option that is out of its range, its value and
/// the range.
void check_options(const OptionFields& fields);
/// Write the value that the text says into the option: one of option_text(), in the C locale
/// whatever the process's is. Error(invalid_argument) naming the option, the text and what is
/// allowed, if the text is of another type (the option is as it was) or out of the range.
void set_option(const OptionField& field, std::string_view text);
/// "[0, 1)" and the like, or the names of a choice; for messages and documentation.
std::string option_range(const OptionField& field);
/// The present value as text: "0.02", "nan", "100", "true", or the name of the choice. Numbers are
/// in the shortest form that reads back the same.
std::string option_text(const OptionField& field);
/// "double", "integer", "logical" or "choice".
std::string_view option_type(const OptionField& field);

} // namespace cape
