#define BOOST_TEST_MODULE pipeline_options
#include <boost/test/unit_test.hpp>
#include <clocale>
#include <cmath>
#include <set>
#include <string>
#include <string_view>
#include <variant>

import cape;

namespace {

bool mentions(const cape::Error& error, std::string_view text) {
  return std::string_view(error.what()).find(text) != std::string_view::npos;
}

} // namespace

BOOST_AUTO_TEST_CASE(every_option_has_a_key_of_its_own_under_its_stage_a_text_and_a_source) {
  cape::Options options;
  std::set<std::string_view> keys, stages;
  for (const cape::OptionField& field : fields(options)) {
    BOOST_TEST_INFO(field.name);
    BOOST_TEST(keys.insert(field.name).second);
    stages.insert(field.name.substr(0, field.name.find('.')));
    BOOST_TEST(!field.doc.empty());
    BOOST_TEST(!field.source.empty());
    BOOST_TEST(field.doc.find('\n') == field.doc.npos); // it is printed in a table
  }
  const std::set<std::string_view> expected{"run",      "preprocess", "dag",
                                            "embed",    "rotary",     "simulate",
                                            "model",    "pretrain",   "finetune"};
  BOOST_TEST((stages == expected));
}

BOOST_AUTO_TEST_CASE(defaults_are_in_range_and_survive_the_way_through_text) {
  cape::Options options;
  const cape::OptionFields registry = fields(options);
  BOOST_CHECK_NO_THROW(check_options(registry));
  for (const cape::OptionField& field : registry) {
    const std::string text = option_text(field);
    set_option(options, field.name, text);
    BOOST_TEST(option_text(field) == text);
  }
}

BOOST_AUTO_TEST_CASE(text_sets_a_value_of_each_type) {
  cape::Options options;
  set_option(options, "dag.lambda", "0.125");
  BOOST_TEST(options.dag.lambda == 0.125);
  set_option(options, "dag.lambda", "nan");
  BOOST_TEST(std::isnan(options.dag.lambda));
  set_option(options, "dag.h_tolerance", "1e-9");
  BOOST_TEST(options.dag.h_tolerance == 1e-9);
  set_option(options, "embed.epochs", "-1"); // automatic
  BOOST_TEST(options.embed.epochs == -1);
  set_option(options, "dag.standardize", "true");
  BOOST_TEST(options.dag.standardize);
  set_option(options, "simulate.noise", "gumbel");
  BOOST_TEST((options.data.noise == cape::Noise::gumbel));
  set_option(options, "run.seed", "9007199254740992");
  BOOST_TEST(options.run.seed == 9007199254740992);
}

BOOST_AUTO_TEST_CASE(numbers_are_read_in_the_c_locale_whatever_the_process_uses) {
  const char* const previous = std::setlocale(LC_NUMERIC, nullptr);
  const std::string restore = previous;
  if (std::setlocale(LC_NUMERIC, "de_DE.UTF-8") == nullptr)
    BOOST_TEST_MESSAGE("no locale with a decimal comma here");
  cape::Options options;
  set_option(options, "dag.threshold", "0.25");
  BOOST_TEST(options.dag.threshold == 0.25);
  std::setlocale(LC_NUMERIC, restore.c_str());
}

BOOST_AUTO_TEST_CASE(a_wrong_text_changes_nothing_and_the_error_names_key_value_and_range) {
  cape::Options options;
  options.dag.l2 = 0.5;
  for (const char* bad : {"", "x", "0.1x", " 0.1", "-0.1", "inf", "nan", "1,5"}) {
    BOOST_TEST_INFO(bad);
    BOOST_CHECK_EXCEPTION(set_option(options, "dag.l2", bad), cape::Error,
                          [&](const cape::Error& error) {
                            return error.code() == cape::Status::invalid_argument &&
                                   mentions(error, "dag.l2") && mentions(error, "[0, ");
                          });
  }
  for (const char* bad : {"1.0", "1e2", "99999999999999999999", "0"})
    BOOST_CHECK_THROW(set_option(options, "dag.epochs", bad), cape::Error);
  BOOST_CHECK_EXCEPTION(
      set_option(options, "dag.sem", "Linear"), cape::Error,
      [](const cape::Error& e) { return mentions(e, "Linear") && mentions(e, "\"linear\""); });
  BOOST_CHECK_THROW(set_option(options, "dag.standardize", "TRUE"), cape::Error);
  BOOST_TEST(options.dag.l2 == 0.5);
  BOOST_TEST(options.dag.epochs == cape::DagOptions().epochs);
}

BOOST_AUTO_TEST_CASE(an_unknown_key_is_answered_with_the_keys_of_its_stage_or_the_stages) {
  cape::Options options;
  BOOST_CHECK_EXCEPTION(set_option(options, "embed.dim", "3"), cape::Error,
                        [](const cape::Error& e) {
                          return mentions(e, "\"embed.dim\"") && mentions(e, "embed.dims") &&
                                 !mentions(e, "dag.lambda");
                        });
  BOOST_CHECK_EXCEPTION(set_option(options, "lambda", "3"), cape::Error, [](const cape::Error& e) {
    return mentions(e, "dag.") && mentions(e, "preprocess.");
  });
}
