#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "data/plugin.h"
#include "framework/core/config/schema.h"
#include "tools/cli/arguments.h"

namespace precast::tools {

/// One part, as text and as JSON.
struct ListedPart {
  std::string name;
  std::string help;
  /// One human-readable line per option.
  std::string option_lines;
  /// Name and default of each option.
  nlohmann::ordered_json options = nlohmann::ordered_json::object();
};

struct ListedKind {
  /// Plural: "models".
  std::string kind;
  std::vector<ListedPart> parts;
};

/// The command-line name of the sources' option `key`, without the leading dashes: `class-column`
/// for `class_column`, and `class-names` for `classes`.
[[nodiscard]] std::string source_option_name(std::string key);

/// The parts of a registry. Options are listed if a part declares them and its factory takes no
/// arguments.
template <typename Registry>
[[nodiscard]] ListedKind list_parts(const Registry& registry) {
  ListedKind all{registry.kind() + (registry.kind().ends_with('s') ? "es" : "s"), {}};
  for (const auto& entry : registry.entries()) {
    ListedPart part{entry.name, entry.help, "", nlohmann::ordered_json::object()};
    if constexpr (requires { entry.factory()->options(std::declval<Schema&>()); }) {
      const auto made = entry.factory();
      Schema schema;
      made->options(schema);
      part.option_lines = schema.help("    ");
      part.options = schema.values();
    }
    all.parts.push_back(std::move(part));
  }
  return all;
}

/// Orders, crops, transforms, label transforms, fields, sources, and the other parts of a pipeline.
[[nodiscard]] std::vector<ListedKind> list_data_parts(const data::DataParts& parts);

/// The command line of `precast list`.
[[nodiscard]] Arguments list_arguments();
/// Prints the parts that the command line selects. @throws ConfigError for an unknown kind
void print_parts(const Arguments& arguments, std::vector<ListedKind> kinds);

/// `precast list` without precast-train: only the parts of the data library.
int run_list_data(const std::vector<std::string>& args);

}  // namespace precast::tools
