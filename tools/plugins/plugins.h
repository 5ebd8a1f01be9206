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

/// The parts of the data library, to which plug-ins may add.
[[nodiscard]] data::DataParts make_data_parts();

/// Adds the parts of a data plug-in. @throws as PluginFile, and ConfigError if a name is taken.
void add_data_plugin(const PluginFile& file, data::DataParts& parts);

/// The plug-ins that a recipe's key `plugins` names, the last override counting: files relative to
/// the folder of the recipe, or, given on the command line, to the current one.
/// @param recipe parsed; null where there is none.
[[nodiscard]] std::vector<PluginFile> open_plugins(const ConfigNode& recipe,
                                                   const std::vector<Override>& overrides,
                                                   Diagnostics& diagnostics);

/// `--plugin FILE.so ...`, for commands without a recipe, and the files that it names.
void add_plugin_option(boost::program_options::options_description& options);
[[nodiscard]] std::vector<PluginFile> open_plugins(const Arguments& arguments);
/// Those of --plugin on a command line that is yet to be parsed.
[[nodiscard]] std::vector<PluginFile> open_plugins(const std::vector<std::string>& args);

/// For the torch-free commands: adds those that are data plug-ins; what only precast-train can load
/// is left out.
void add_data_plugins(const std::vector<PluginFile>& files, data::DataParts& parts);

}  // namespace precast::tools
