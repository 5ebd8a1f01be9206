#include "tools/plugins/plugins.h"

#include <fmt/format.h>

#include <boost/program_options/value_semantic.hpp>
#include <exception>
#include <new>

#include "framework/core/error.h"
#include "tools/cli/recipe_arguments.h"
#include "tools/plugins/data_guards.h"

namespace precast::tools {

void rethrow_from_plugin(const std::string& what, ExitCode otherwise) {
  std::string text = "it threw something that is not a std::exception";
  ExitCode code = otherwise;
  try {
    throw;
  } catch (const Error& error) {
    text = error.what();
    if (error.exit_code() != ExitCode::failed) code = error.exit_code();
  } catch (const std::bad_alloc&) {
    throw;  // its type determines the exit code
  } catch (const std::exception& error) {
    text = error.what();
  } catch (...) {  // keeps the text above
  }
  text = fmt::format("{}: {}", what, text);
  // Code that reads recipes collects errors of this type.
  if (code == ExitCode::usage) throw ConfigError(text);
  throw Error(text, code);
}

data::DataParts make_data_parts() {
  data::DataParts parts;
  data::register_transforms(parts.pipeline);
  data::register_orders(parts.orders);
  data::register_fields(parts.fields);
  data::register_sources(parts.sources);
  return parts;
}

void add_data_plugin(const PluginFile& file, data::DataParts& parts) {
  data::DataParts added;
  file.add_parts(&added);
  const std::string& name = file.path().string();
  adopt<DataGuards>(parts.pipeline.crops, added.pipeline.crops, name);
  adopt<DataGuards>(parts.pipeline.transforms, added.pipeline.transforms, name);
  adopt<DataGuards>(parts.pipeline.labels, added.pipeline.labels, name);
  adopt<DataGuards>(parts.orders, added.orders, name);
  adopt<DataGuards>(parts.fields, added.fields, name);
  for (std::size_t i = 0; i < added.sources.entries().size(); ++i) {
    const auto& entry = added.sources.entries()[i];
    parts.sources.add_part(
        entry.name, entry.help, added.sources.recognizer(i),
        plugin_part<DataGuards>(entry.factory, new_part(parts.sources, entry.name, name)));
  }
}

std::vector<PluginPath> plugin_paths(const ConfigNode& recipe,
                                     const std::vector<Override>& overrides,
                                     Diagnostics& diagnostics) {
  const ConfigNode* list = recipe.find("plugins");
  for (const Override& override : overrides) {
    if (override.key == "plugins") list = &override.value;
  }
  std::vector<PluginPath> files;
  if (list == nullptr || list->kind == ConfigNode::Kind::null) return files;
  if (list->kind != ConfigNode::Kind::list) {
    diagnostics.error(
        list->origin, "plugins",
        fmt::format("expected a list of files, such as [my_model.so], got {}", list->text()));
    return files;
  }
  for (const ConfigNode& item : list->items) {
    if (item.kind != ConfigNode::Kind::scalar) {
      diagnostics.error(item.origin, "plugins",
                        fmt::format("expected the path of a file, got {}", item.text()));
      continue;
    }
    const bool in_file = item.origin.line > 0 && item.origin.source != kCommandLine;
    const std::filesystem::path folder =
        in_file ? std::filesystem::path(item.origin.source).parent_path() : "";
    files.push_back({item.scalar, folder / item.scalar});
  }
  return files;
}

std::vector<PluginFile> open_plugins(const ConfigNode& recipe,
                                     const std::vector<Override>& overrides,
                                     Diagnostics& diagnostics) {
  std::vector<PluginFile> files;
  for (const PluginPath& plugin : plugin_paths(recipe, overrides, diagnostics))
    files.emplace_back(plugin.path);
  return files;
}

void add_plugin_option(boost::program_options::options_description& options) {
  options.add_options()(
      "plugin",
      boost::program_options::value<std::vector<std::string>>()->composing()->value_name("FILE"),
      "plug-in to load; may be given several times");
}

std::vector<PluginFile> open_plugins(const Arguments& arguments) {
  std::vector<PluginFile> files;
  if (!arguments.has("plugin")) return files;
  for (const std::string& path : arguments.get<std::vector<std::string>>("plugin"))
    files.emplace_back(path);
  return files;
}

std::vector<PluginFile> open_plugins(const std::vector<std::string>& args) {
  constexpr std::string_view kOption = "--plugin";
  std::vector<PluginFile> files;
  for (std::size_t i = 0; i < args.size() && args[i] != "--"; ++i) {
    if (args[i] == kOption && i + 1 < args.size()) files.emplace_back(args[i + 1]);
    if (args[i].starts_with("--plugin=")) files.emplace_back(args[i].substr(kOption.size() + 1));
  }
  return files;
}

void add_data_plugins(const std::vector<PluginFile>& files, data::DataParts& parts) {
  for (const PluginFile& file : files) {
    if (file.kind() == PluginKind::data) add_data_plugin(file, parts);
  }
}

}  // namespace precast::tools
