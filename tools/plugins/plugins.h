#pragma once

#include <boost/program_options/options_description.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "data/plugin.h"
#include "framework/core/config/schema.h"
#include "tools/cli/arguments.h"
#include "tools/plugins/plugin_file.h"

namespace precast::tools {

/// The parts of the data library, to which plug-ins can add parts.
[[nodiscard]] data::DataParts make_data_parts();

/// Adds the parts of a data plug-in.
/// @throws the errors of PluginFile, and ConfigError if a name is taken.
void add_data_plugin(const PluginFile& file, data::DataParts& parts);

/// A file that the key `plugins` lists.
struct PluginPath {
  /// The path as it was given.
  std::string name;
  std::filesystem::path path;
};

/// The files that a recipe's key `plugins` lists; the last override replaces the list. Paths in a
/// recipe are relative to its folder, paths on the command line to the current folder.
/// @param recipe the parsed recipe; of kind null if there is none.
[[nodiscard]] std::vector<PluginPath> plugin_paths(const ConfigNode& recipe,
                                                   const std::vector<Override>& overrides,
                                                   Diagnostics& diagnostics);

/// Reads the plug-ins in plugin_paths().
/// @throws the errors of PluginFile
[[nodiscard]] std::vector<PluginFile> open_plugins(const ConfigNode& recipe,
                                                   const std::vector<Override>& overrides,
                                                   Diagnostics& diagnostics);

/// Adds `--plugin FILE.so`, which may be given several times, for commands without a recipe.
void add_plugin_option(boost::program_options::options_description& options);
[[nodiscard]] std::vector<PluginFile> open_plugins(const Arguments& arguments);
/// The files of --plugin on a command line that has not been parsed yet.
[[nodiscard]] std::vector<PluginFile> open_plugins(const std::vector<std::string>& args);

/// Adds the parts of the data plug-ins, for torch-free commands. Skips plug-ins that only
/// precast-train can load.
void add_data_plugins(const std::vector<PluginFile>& files, data::DataParts& parts);

}  // namespace precast::tools
