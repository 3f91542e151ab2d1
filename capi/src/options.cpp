// Options: the registry of the core, by key.
#include <cstddef>
#include <string>
#include <variant>
#include <vector>

#include "handle.hpp"

using namespace cape::capi;

namespace {

// The registry with its defaults, as texts that stay.
struct Description {
  std::string key, type, default_value, range, doc, source;
  std::vector<std::string> choices;
};

std::vector<Description> describe() {
  cape::Options defaults;
  std::vector<Description> out;
  for (const cape::OptionField& field : fields(defaults)) {
    Description d{std::string(field.name),
                  std::string(option_type(field)),
                  option_text(field),
                  option_range(field),
                  std::string(field.doc),
                  std::string(field.source),
                  {}};
    if (const auto* choice = std::get_if<cape::Choice>(&field.value))
      d.choices.assign(choice->names.begin(), choice->names.end());
    out.push_back(std::move(d));
  }
  return out;
}

const std::vector<Description>& registry() {
  static const std::vector<Description> descriptions = describe();
  return descriptions;
}

// The slot of an option; Error(invalid_argument) if the option is of another type than T.
template <class T>
const T& slot(const cape::OptionField& field) {
  if (const T* value = std::get_if<T>(&field.value)) return *value;
  throw cape::Error(cape::Status::invalid_argument, std::string(field.name) + " is of type " +
                                                        std::string(option_type(field)) +
                                                        "; use the function for that type");
}

template <class T>
cape_status set(cape_options* options, const char* key, T value) noexcept {
  return guard([&] {
    cape::Options& current = object(options, "options").values;
    cape::Options changed = current;
    const cape::OptionFields all = fields(changed);
    const cape::OptionField& field = find_option(all, text(key, "key"));
    *slot<T*>(field) = value;
    cape::check_options({field});
    current = changed;
  });
}

// Call use(field) with the option's entry in the registry of the handle.
template <class Use>
void with_option(const cape_options* options, const char* key, Use&& use) {
  cape::Options copy = object(options, "options").values; // entries are bound to a mutable struct
  const cape::OptionFields all = fields(copy);
  use(find_option(all, text(key, "key")));
}

template <class T, class Out>
cape_status get(Out* out, const cape_options* options, const char* key) noexcept {
  clear(out);
  return guard([&] {
    required(out, "out");
    with_option(options, key, [&](const cape::OptionField& field) { *out = *slot<T*>(field); });
  });
}

} // namespace

cape_status cape_options_new(cape_options** out) {
  return create(out, [] { return cape_options{}; });
}

void cape_options_free(cape_options* options) { release(options); }

cape_status cape_options_clone(cape_options** out, const cape_options* options) {
  return create(out, [&] {
    cape_options copy = object(options, "options");
    copy.calls = std::make_shared<Calls>();
    return copy;
  });
}

// Nothing but the flag is touched, so that a signal handler may call it.
void cape_options_cancel(cape_options* options, int cancel) {
  if (options != nullptr && options->tag == cape_options::tag_value)
    options->calls->cancelled = cancel != 0;
}

cape_status cape_options_error(char* out, int64_t capacity, const cape_options* options) {
  return guard([&] {
    if (capacity < 1)
      throw cape::Error(cape::Status::dim_mismatch,
                        cape::message("capacity is ", capacity, "; it must be at least 1"));
    required(out, "out");
    Calls& calls = *object(options, "options").calls;
    const std::lock_guard lock(calls.lock);
    copy_text({out, static_cast<std::size_t>(capacity)}, calls.error.data());
  });
}

cape_status cape_options_set_f64(cape_options* options, const char* key, double value) {
  return set(options, key, value);
}

cape_status cape_options_set_i64(cape_options* options, const char* key, int64_t value) {
  return set<std::int64_t>(options, key, value);
}

cape_status cape_options_set_bool(cape_options* options, const char* key, int value) {
  return set(options, key, value != 0);
}

cape_status cape_options_set_str(cape_options* options, const char* key, const char* value) {
  return guard([&] {
    with_option(options, key, [](const cape::OptionField& field) { slot<cape::Choice>(field); });
    set_option(options->values, key, text(value, "value"));
  });
}

cape_status cape_options_set_text(cape_options* options, const char* key, const char* value) {
  return guard([&] {
    set_option(object(options, "options").values, text(key, "key"), text(value, "value"));
  });
}

cape_status cape_options_get_f64(double* out, const cape_options* options, const char* key) {
  return get<double>(out, options, key);
}

cape_status cape_options_get_i64(int64_t* out, const cape_options* options, const char* key) {
  return get<std::int64_t>(out, options, key);
}

cape_status cape_options_get_bool(int* out, const cape_options* options, const char* key) {
  return get<bool>(out, options, key);
}

cape_status cape_options_get_str(const char** out, const cape_options* options, const char* key) {
  clear(out);
  return guard([&] {
    required(out, "out");
    with_option(options, key, [&](const cape::OptionField& field) {
      const auto chosen = static_cast<std::size_t>(slot<cape::Choice>(field).get());
      for (const Description& d : registry())
        if (d.key == field.name) *out = d.choices[chosen].c_str();
    });
  });
}

size_t cape_option_count(void) {
  size_t count = 0;
  guard([&] { count = registry().size(); });
  return count;
}

cape_status cape_option_info(cape_option_desc* out, size_t index) {
  return guard([&] {
    check_struct_size(required(out, "out").struct_size, sizeof *out, "out");
    if (index >= registry().size())
      throw cape::Error(cape::Status::invalid_argument, "index is " + std::to_string(index) +
                                                            "; it must be below " +
                                                            std::to_string(registry().size()));
    const Description& d = registry()[index];
    write_struct(out, {0, d.key.c_str(), d.type.c_str(), d.default_value.c_str(), d.range.c_str(),
                       d.doc.c_str(), d.source.c_str()});
  });
}

cape_status cape_options_set_progress(cape_options* options, cape_progress_fn fn, void* ctx) {
  return guard([&] {
    cape_options& target = object(options, "options");
    target.progress = fn;
    target.progress_context = ctx;
  });
}
