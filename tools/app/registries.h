#pragma once

#include "data/plugin.h"
#include "framework/api/plugin.h"
#include "tools/plugins/plugin_file.h"

namespace precast::tools {

/// All parts that recipes and commands can name.
struct Registries : TrainParts, data::DataParts {};

/// The parts that come with precast.
[[nodiscard]] Registries make_registries();

/// Whether the architecture is one of precast's networks, which need no test. False for `layers`,
/// whose network the recipe describes.
[[nodiscard]] bool is_built_in(const std::string& arch);

/// Adds the parts of a plug-in of kind `train` or `data`. @throws DeviceError if it was built for a
/// different libtorch; the errors of PluginFile; ConfigError if a name is taken.
void add_plugin(const PluginFile& file, Registries& registries);

}  // namespace precast::tools
