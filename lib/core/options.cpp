module;
#include "internal/message.hpp"
#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <variant>
module cape.core;

namespace cape {
namespace {

// Independent of the process's locale, as the text must be that set_option() reads.
std::string number(double value) {
  char text[32];
  char* end = text;
  double back = 0;
  for (int digits = 6; digits <= 17; ++digits) { // the first form that reads back the same
    end = std::to_chars(text, text + sizeof text, value, std::chars_format::general, digits).ptr;
    std::from_chars(text, end, back);
    if (back == value || value != value) break;
  }
  return std::string(text, end);
}

// All of the text as a number, in the C locale whatever the process's is.
template <class T>
bool parse(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

// Write the text into the option; false if the text is not of the option's type.
struct Assign {
  std::string_view text;

  bool operator()(double* slot) const { return parse(text, *slot); }
  bool operator()(std::int64_t* slot) const { return parse(text, *slot); }
  bool operator()(bool* slot) const {
    *slot = text == "true";
    return text == "true" || text == "false";
  }
  bool operator()(const Choice& choice) const {
    for (std::size_t i = 0; i < choice.names.size(); ++i)
      if (choice.names[i] == text) {
        choice.set(static_cast<std::int32_t>(i));
        return true;
      }
    return false;
  }
};

} // namespace

std::string option_text(const OptionField& field) {
  struct Text {
    std::string operator()(const double* value) const { return number(*value); }
    std::string operator()(const std::int64_t* value) const { return std::to_string(*value); }
    std::string operator()(const bool* value) const { return *value ? "true" : "false"; }
    std::string operator()(const Choice& choice) const {
      return std::string(choice.names[static_cast<std::size_t>(choice.get())]);
    }
  };
  return std::visit(Text{}, field.value);
}

void set_option(const OptionField& field, std::string_view text) {
  if (!std::visit(Assign{text}, field.value))
    throw Error(Status::invalid_argument,
                message(field.name, " is \"", text, "\"; it must be ",
                        std::holds_alternative<double*>(field.value)         ? "a number in "
                        : std::holds_alternative<std::int64_t*>(field.value) ? "an integer in "
                                                                             : "",
                        option_range(field)));
  check_options({field});
}

std::string_view option_type(const OptionField& field) {
  static constexpr std::string_view names[] = {"double", "integer", "logical", "choice"};
  return names[field.value.index()];
}

std::string option_range(const OptionField& field) {
  if (const auto* c = std::get_if<Choice>(&field.value)) {
    std::string text = "one of";
    for (std::size_t i = 0; i < c->names.size(); ++i)
      text += (i ? ", \"" : " \"") + std::string(c->names[i]) + "\"";
    return text;
  }
  if (std::holds_alternative<bool*>(field.value)) return "true or false";
  const bool below = std::isinf(field.min), above = std::isinf(field.max);
  std::string text = std::string(below || field.open_min ? "(" : "[") +
                     (below ? "-inf" : number(field.min)) + ", " +
                     (above ? "inf" : number(field.max)) + (above || field.open_max ? ")" : "]");
  if (field.automatic)
    text += std::holds_alternative<double*>(field.value) ? ", or NaN for the automatic choice"
                                                         : ", or -1 for the automatic choice";
  return text;
}

void check_options(const OptionFields& fields) {
  for (const OptionField& f : fields) {
    double value = 0;
    if (const auto* d = std::get_if<double*>(&f.value)) {
      value = **d;
      if (f.automatic && std::isnan(value)) continue;
    } else if (const auto* n = std::get_if<std::int64_t*>(&f.value)) {
      value = static_cast<double>(**n);
      if (f.automatic && **n == -1) continue;
    } else if (const auto* c = std::get_if<Choice>(&f.value)) {
      const std::int32_t i = c->get();
      if (i < 0 || i >= static_cast<std::int32_t>(c->names.size()))
        throw Error(Status::invalid_argument,
                    message(f.name, " has the value number ", i, "; it must be ", option_range(f)));
      continue;
    } else {
      continue;
    }
    const bool ok = std::isfinite(value) && (f.open_min ? value > f.min : value >= f.min) &&
                    (f.open_max ? value < f.max : value <= f.max);
    if (!ok)
      throw Error(Status::invalid_argument, std::string(f.name) + " is " + number(value) +
                                                "; it must lie in " + option_range(f));
  }
}

} // namespace cape
