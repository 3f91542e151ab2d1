module;
#include <cstdint>
#include <functional>
#include <iterator>
#include <string>
#include <string_view>
#include <variant>
module cape.pipeline;

namespace cape {
namespace {

std::string quoted(std::string_view text) { return "\"" + std::string(text) + "\""; }

std::string_view stage_of(std::string_view key) { return key.substr(0, key.find('.') + 1); }

} // namespace

OptionFields fields(RunOptions& options) {
  return {
      {.name = "run.seed",
       .value = &options.seed,
       .min = 0,
       .max = 9007199254740992.0,
       .doc = "Seed of the random numbers: same seed, same result, for any number of threads.",
       .source = "docs/architecture.md"},
      {.name = "run.threads",
       .value = &options.threads,
       .min = 1,
       .max = 1024,
       .doc = "Threads that may work at once; the results do not depend on it.",
       .source = "docs/architecture.md"},
  };
}

OptionFields fields(Options& options) {
  OptionFields all;
  const auto append = [&all](OptionFields stage) {
    all.insert(all.end(), std::make_move_iterator(stage.begin()),
               std::make_move_iterator(stage.end()));
  };
  append(fields(options.run));
  append(fields(options.preprocess));
  append(fields(options.dag));
  append(fields(options.embed));
  append(fields(options.rotary));
  append(fields(options.graph));
  append(fields(options.data));
  append(fields(options.model));
  append(fields(options.pretrain));
  append(fields(options.finetune));
  return all;
}

const OptionField& find_option(const OptionFields& fields, std::string_view key) {
  for (const OptionField& field : fields)
    if (field.name == key) return field;

  // Name the options of the stage that was meant, or else the stages.
  std::string same_stage, stages;
  for (const OptionField& field : fields) {
    const std::string_view stage = stage_of(field.name);
    if (stage == stage_of(key)) same_stage += " " + std::string(field.name);
    if (!stages.ends_with(stage)) stages += " " + std::string(stage);
  }
  throw Error(Status::invalid_argument,
              "there is no option " + quoted(key) +
                  (same_stage.empty() ? "; keys begin with one of:" + stages
                                      : "; there are:" + same_stage));
}

void set_option(Options& options, std::string_view key, std::string_view value) {
  Options changed = options;
  const OptionFields all = fields(changed);
  set_option(find_option(all, key), value);
  options = changed;
}

} // namespace cape
