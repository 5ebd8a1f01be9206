#include "tools/cli/field_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/program_options/value_semantic.hpp>
#include <cstdint>
#include <utility>

#include "framework/core/error.h"
#include "tools/cli/recipe_arguments.h"

namespace precast::tools {
namespace {

/// An option of a kind of field, as declared by the kind.
struct FieldOption {
  std::string type;
  Schema::KeyHelp key;
  /// Its name on the command line.
  [[nodiscard]] std::string name() const { return fmt::format("{}.{}", type, key.name); }
  [[nodiscard]] std::string help() const { return fmt::format("{} ({})", key.help, key.type); }
};

std::vector<FieldOption> all_options(const data::FieldRegistry& fields) {
  std::vector<FieldOption> all;
  for (const auto& entry : fields.entries()) {
    const auto part = entry.factory();
    Schema schema;
    part->options(schema);
    for (Schema::KeyHelp& key : schema.keys()) all.push_back({entry.name, std::move(key)});
  }
  return all;
}

/// @throws ConfigError for values that do not fit the kind's options or have no effect.
void check_values(const data::FieldRegistry::Entry& kind, const ConfigNode& values) {
  const auto part = kind.factory();
  Schema schema;
  part->options(schema);
  Diagnostics diagnostics;
  schema.apply(values, diagnostics, "--" + kind.name);
  if (diagnostics.errors().empty()) part->check(schema, "--" + kind.name, diagnostics);
  diagnostics.throw_if_errors();
}

/// Removes the quotes that JSON puts around strings.
std::string plain(const std::string& json) {
  return json.starts_with('"') ? json.substr(1, json.size() - 2) : json;
}

}  // namespace

void add_field_options(boost::program_options::options_description& options,
                       const data::FieldRegistry& fields, const std::string& image_mode) {
  for (const FieldOption& option : all_options(fields)) {
    const bool is_mode = option.name() == "image.mode" && !image_mode.empty();
    auto* value = boost::program_options::value<std::string>()->default_value(
        is_mode ? image_mode : plain(option.key.value));
    if (option.key.is_switch) value->implicit_value("true");
    if (option.key.type.starts_with("integer")) value->value_name("N");
    if (option.key.type.starts_with("number")) value->value_name("NUMBER");
    options.add_options()(option.name().c_str(), value, option.help().c_str());
  }
}

std::string field_option_help(const data::FieldRegistry& fields, std::string_view name) {
  for (const FieldOption& option : all_options(fields))
    if (option.name() == name) return option.help();
  require(false, "a kind of field has the option");
  return {};
}

data::FieldOptions field_options(const Arguments& arguments, const data::FieldRegistry& fields) {
  data::FieldOptions options;
  options.seed = static_cast<std::uint64_t>(integer(arguments, "seed", 0, INT64_MAX));
  for (const FieldOption& option : all_options(fields)) {
    ConfigNode& part = options.parts[option.type];
    part.kind = ConfigNode::Kind::map;
    // The field's own default counts as not given, so that it cannot contradict another option.
    if (!arguments.given(option.name()) && arguments.text(option.name()) == plain(option.key.value))
      continue;
    part.entries.push_back(
        {option.key.name,
         {},
         ConfigNode::from_text(arguments.text(option.name()), {kCommandLine, 0, 0})});
  }
  // Reports wrong options before a large source is listed.
  for (const auto& entry : fields.entries()) check_values(entry, options.parts[entry.name]);
  (void)data::make_field(fields, "image", options);
  return options;
}

std::string given_field_option(const Arguments& arguments, const data::FieldRegistry& fields) {
  for (const FieldOption& option : all_options(fields))
    if (arguments.given(option.name())) return option.name();
  return {};
}

void check_field_options(const Arguments& arguments, const data::FieldRegistry& registry,
                         const std::vector<data::SourceField>& fields) {
  for (const FieldOption& option : all_options(registry)) {
    if (!arguments.given(option.name()) ||
        std::ranges::count(fields, option.type, &data::SourceField::type) > 0)
      continue;
    std::vector<std::string> kinds;
    for (const data::SourceField& field : fields) kinds.push_back(field.name + "=" + field.type);
    throw ConfigError(fmt::format("--{}: expected a field that is written as {}, got {}",
                                  option.name(), option.type, fmt::join(kinds, ", ")));
  }
}

}  // namespace precast::tools
