#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "data/plugin.h"
#include "framework/core/config/schema.h"
#include "tools/cli/arguments.h"

namespace precast::tools {

/// One part, ready for both forms of the list.
struct ListedPart {
  std::string name;
  std::string help;
  /// One line an option, as people read them.
  std::string option_lines;
  /// Name and default of each option.
  nlohmann::ordered_json options = nlohmann::ordered_json::object();
};

struct ListedKind {
  /// Plural: "models".
  std::string kind;
  std::vector<ListedPart> parts;
};

/// The parts of a registry; options of those that declare them without being given anything.
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

/// Orders, crops, transforms, transforms of labels, fields, sources, and what else a pipeline may
/// hold.
[[nodiscard]] std::vector<ListedKind> list_data_parts(const data::DataParts& parts);

/// The command line of `precast list`.
[[nodiscard]] Arguments list_arguments();
/// Prints what the arguments ask for. @throws ConfigError for a kind that is not there
void print_parts(const Arguments& arguments, std::vector<ListedKind> kinds);

/// `precast list` in a build without libtorch: the parts of data alone.
int run_list_data(const std::vector<std::string>& args);

}  // namespace precast::tools
