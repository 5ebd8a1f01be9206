#include "tools/list.h"

#include <fmt/core.h>

#include <boost/program_options.hpp>
#include <nlohmann/json.hpp>

#include "data/transforms/pipeline.h"
#include "framework/core/error.h"
#include "framework/core/suggest.h"
#include "tools/arguments.h"
#include "tools/plugins.h"
#include "tools/registries.h"

namespace precast::tools {
namespace {

namespace po = boost::program_options;
using nlohmann::ordered_json;

/// One part, ready for both forms of the list.
struct Part {
  std::string name;
  std::string help;
  /// One line an option, as people read them.
  std::string option_lines;
  /// Name and default of each option.
  ordered_json options = ordered_json::object();
};

struct PartsOfKind {
  /// Plural: "models".
  std::string kind;
  std::vector<Part> parts;
};

template <typename Registry>
PartsOfKind parts_of(const Registry& registry) {
  PartsOfKind all{registry.kind() + (registry.kind().ends_with('s') ? "es" : "s"), {}};
  for (const auto& entry : registry.entries()) {
    Part part{entry.name, entry.help, "", ordered_json::object()};
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

/// What else a pipeline may hold.
PartsOfKind stages() {
  PartsOfKind all{"stages", {}};
  for (const data::StageHelp& stage : data::pipeline_stages())
    all.parts.push_back({stage.name, stage.help, stage.options, ordered_json::object()});
  return all;
}

std::vector<PartsOfKind> all_parts(const Registries& registries) {
  std::vector<PartsOfKind> all;
  const auto list = [&](const auto&... registry) { (all.push_back(parts_of(registry)), ...); };
  list(registries.models, registries.methods, registries.losses, registries.optimizers,
       registries.schedules, registries.orders, registries.pipeline.crops,
       registries.pipeline.transforms, registries.pipeline.labels, registries.fields);
  all.push_back(stages());
  return all;
}

void print(const PartsOfKind& all) {
  fmt::print("{}\n", all.kind);
  for (const Part& part : all.parts)
    fmt::print("  {:<20} {}\n{}", part.name, part.help, part.option_lines);
  fmt::print("\n");
}

void print_json(const std::vector<PartsOfKind>& kinds) {
  ordered_json report = ordered_json::object();
  for (const PartsOfKind& all : kinds) {
    auto parts = ordered_json::array();
    for (const Part& part : all.parts)
      parts.push_back({{"name", part.name}, {"help", part.help}, {"options", part.options}});
    report[all.kind] = parts;
  }
  fmt::print("{}\n", report.dump(2));
}

}  // namespace

int run_list(const std::vector<std::string>& args) {
  Arguments arguments("list [KIND] [--plugin FILE.so ...]",
                      "Everything that a recipe can name, with options and defaults.");
  arguments.optional_positional("KIND", "models, methods, transforms, orders ...: only these");
  add_plugin_option(arguments.options());
  arguments.options().add_options()("json", "print the list as JSON");
  if (!arguments.parse(args)) return 0;
  Registries registries = make_registries();
  for (const PluginFile& file : open_plugins(arguments)) add_plugin(file, registries);
  std::vector<PartsOfKind> kinds = all_parts(registries);
  if (arguments.has("KIND")) {
    std::vector<std::string> names;
    for (const PartsOfKind& all : kinds) names.push_back(all.kind);
    const std::string wanted = arguments.text("KIND");
    std::erase_if(kinds, [&](const PartsOfKind& all) { return all.kind != wanted; });
    if (kinds.empty())
      throw ConfigError(
          fmt::format("list: nothing is called '{}'. {}", wanted, suggest(wanted, names)));
  }
  if (arguments.has("json")) {
    print_json(kinds);
  } else {
    for (const PartsOfKind& all : kinds) print(all);
  }
  return 0;
}

}  // namespace precast::tools
