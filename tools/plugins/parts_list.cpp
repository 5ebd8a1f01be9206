#include "tools/plugins/parts_list.h"

#include <fmt/core.h>

#include <algorithm>

#include "data/transforms/pipeline.h"
#include "framework/core/error.h"
#include "framework/core/suggest.h"
#include "tools/cli/json_output.h"
#include "tools/cli/shared_options.h"
#include "tools/plugins/plugins.h"

namespace precast::tools {
namespace {

using nlohmann::ordered_json;

/// Prints parts with the same options together, followed by a single list of their options.
void print(const ListedKind& all) {
  fmt::print("{}\n", all.kind);
  constexpr std::size_t kMinNameWidth = 20;
  std::size_t width = kMinNameWidth;
  for (const ListedPart& part : all.parts) width = std::max(width, part.name.size());
  std::vector<bool> printed(all.parts.size());
  for (std::size_t first = 0; first < all.parts.size(); ++first) {
    if (printed[first]) continue;
    const std::string& options = all.parts[first].option_lines;
    for (std::size_t i = first; i < all.parts.size(); ++i) {
      if (i != first && (options.empty() || all.parts[i].option_lines != options)) continue;
      fmt::print("  {:<{}} {}\n", all.parts[i].name, width, all.parts[i].help);
      printed[i] = true;
    }
    fmt::print("{}", options);
  }
  fmt::print("\n");
}

void print_as_json(const std::vector<ListedKind>& kinds) {
  ordered_json report = ordered_json::object();
  for (const ListedKind& all : kinds) {
    auto parts = ordered_json::array();
    for (const ListedPart& part : all.parts)
      parts.push_back({{"name", part.name}, {"help", part.help}, {"options", part.options}});
    report[all.kind] = parts;
  }
  print_json(report);
}

/// The sources, with their options as on the command line.
ListedKind list_sources(const data::SourceRegistry& sources) {
  ListedKind all{"sources", {}};
  for (const auto& entry : sources.entries()) {
    const auto made = entry.factory();
    Schema keys;
    made->options(keys);
    Schema options;
    for (const Schema::KeyHelp& key : keys.keys())
      options.add_renamed(source_option_name(key.name), keys, key.name);
    all.parts.push_back({entry.name, entry.help, options.help("    --"), options.values()});
  }
  return all;
}

}  // namespace

std::string source_option_name(std::string key) {
  // In other commands, `--classes` chooses samples by their labels.
  if (key == "classes") return "class-names";
  std::ranges::replace(key, '_', '-');
  return key;
}

std::vector<ListedKind> list_data_parts(const data::DataParts& parts) {
  ListedKind stages{"stages", {}};
  for (const data::StageHelp& stage : data::pipeline_stages())
    stages.parts.push_back({stage.name, stage.help, stage.options, ordered_json::object()});
  return {list_parts(parts.orders),
          list_parts(parts.pipeline.crops),
          list_parts(parts.pipeline.transforms),
          list_parts(parts.pipeline.labels),
          list_parts(parts.fields),
          list_sources(parts.sources),
          stages};
}

Arguments list_arguments() {
  Arguments arguments("list [KIND] [options]",
                      "Lists the parts that recipes and commands can name, with their options and "
                      "defaults.");
  arguments.optional_positional("KIND",
                                "kind of part to list, such as models or transforms; default: all");
  add_plugin_option(arguments.options());
  arguments.options().add_options()("json", kJsonHelp);
  arguments.example("precast list transforms");
  arguments.exit_codes({6});
  return arguments;
}

void print_parts(const Arguments& arguments, std::vector<ListedKind> kinds) {
  if (arguments.has("KIND")) {
    std::vector<std::string> names;
    for (const ListedKind& all : kinds) names.push_back(all.kind);
    const std::string wanted = arguments.text("KIND");
    std::erase_if(kinds, [&](const ListedKind& all) { return all.kind != wanted; });
    if (kinds.empty())
      throw ConfigError(fmt::format("list: expected a kind of part, got '{}'. {}", wanted,
                                    suggest(wanted, names)));
  }
  if (arguments.has("json")) {
    print_as_json(kinds);
  } else {
    for (const ListedKind& all : kinds) print(all);
  }
}

int run_list_data(const std::vector<std::string>& args) {
  Arguments arguments = list_arguments();
  if (!arguments.parse(args)) return 0;
  data::DataParts parts = make_data_parts();
  for (const PluginFile& file : open_plugins(arguments)) {
    if (file.kind() != PluginKind::data)
      throw DeviceError(
          fmt::format("plug-in {}: expected a plug-in for data, got a plug-in that needs libtorch, "
                      "which this precast was built without. Build precast with -DPRECAST_TORCH=ON",
                      file.path().string()));
    add_data_plugin(file, parts);
  }
  print_parts(arguments, list_data_parts(parts));
  return 0;
}

}  // namespace precast::tools
