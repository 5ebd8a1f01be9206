#include "tools/commands/chosen_fields.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>

#include "framework/core/error.h"
#include "framework/core/suggest.h"

namespace precast::tools {

std::map<std::string, std::vector<std::string>> kept_columns(
    const std::vector<std::string>& choices) {
  std::map<std::string, std::string> kinds;
  for (const std::string& choice : choices) {
    const std::size_t equals = choice.find('=');
    if (equals != std::string::npos) kinds[choice.substr(0, equals)] = choice.substr(equals + 1);
  }
  std::map<std::string, std::vector<std::string>> columns;
  for (const auto& [name, kind] : kinds) {
    if (kind == "bytes") columns["texts"].push_back(name);
    if (kind == "json") columns["documents"].push_back(name);
  }
  return columns;
}

std::vector<data::SourceField> choose_fields(const std::vector<std::string>& choices,
                                             std::vector<data::SourceField> fields,
                                             const data::FieldRegistry& registry) {
  for (const std::string& choice : choices) {
    const std::size_t equals = choice.find('=');
    const std::string name = choice.substr(0, equals);
    const std::string kind = equals == std::string::npos ? "" : choice.substr(equals + 1);
    const auto field = std::ranges::find_if(fields, [&](const data::SourceField& known) {
      return name == known.name || (!name.empty() && name == known.full_name);
    });
    if (field == fields.end()) {
      std::vector<std::string> names;
      for (const data::SourceField& known : fields)
        names.push_back(known.full_name.empty() ? known.name : known.full_name);
      throw ConfigError(fmt::format("--field-kind: expected a field of SOURCE, got '{}'. {}", name,
                                    suggest(name, names)));
    }
    if (!registry.contains(kind)) throw ConfigError("--field-kind: " + registry.unknown(kind));
    field->type = kind;
  }
  return fields;
}

std::string class_field_of(const data::Source& source,
                           const std::vector<data::SourceField>& fields) {
  if (source.class_names().empty()) return {};
  const std::string& name = source.class_field();
  const auto own = std::ranges::find_if(source.fields(), [&](const data::SourceField& field) {
    return name.empty() ? field.type == "int" : field.name == name;
  });
  if (own == source.fields().end()) return {};
  const data::SourceField& chosen =
      fields.at(static_cast<std::size_t>(own - source.fields().begin()));
  return chosen.type == "int" ? chosen.name : "";
}

void print_chosen_fields(const data::Source& source, const std::vector<data::SourceField>& fields) {
  std::vector<std::string> renamed;
  for (const data::SourceField& field : fields) {
    if (!field.chosen_from.empty())
      renamed.push_back(fmt::format("'{}' from '{}'", field.name, field.chosen_from));
  }
  if (!renamed.empty()) fmt::print("fields: {}\n", fmt::join(renamed, ", "));

  const auto none = fields.end();
  const auto first = [&](const char* type) {
    return std::ranges::find(fields, type, &data::SourceField::type);
  };
  const auto number = first("int");
  if (!source.class_field().empty()) {
    const std::string classes = class_field_of(source, fields);
    if (classes.empty()) return;
    fmt::print("classes: the values of field '{}'\n", classes);
    if (number->name == classes) return;
    fmt::print(stderr,
               "note: by default, recipes train on the first int field, '{0}'. To train on the "
               "classes, set data.targets: {1}\n",
               number->name, classes);
    return;
  }
  if (std::ranges::count(fields, "int", &data::SourceField::type) > 1) {
    fmt::print(
        "labels: field '{}', the first of several int fields; recipes select another one "
        "with data.targets\n",
        number->name);
  }
  if (first("image") == none || number != none || first("ndarray") != none) return;
  if (const auto text = first("bytes"); text != none) {
    fmt::print(
        stderr,
        "note: no field has labels. If the strings in '{0}' are classes, use --class-column {0}\n",
        text->name);
  }
}

}  // namespace precast::tools
