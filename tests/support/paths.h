#pragma once

#include <string>

namespace precast::test {

/// Absolute paths of this checkout and this build. They are functions instead of macros, so that
/// compiled tests are the same in every checkout, and ccache can share them.
/// @{
[[nodiscard]] std::string source_dir();
[[nodiscard]] std::string build_dir();
/// The folder of the built programs.
[[nodiscard]] std::string bin_dir();
/// tests/golden, or the folder in the environment variable PRECAST_GOLDEN_DIR, for programs that
/// were copied to another machine.
[[nodiscard]] std::string golden_dir();
/// The folder of the plug-ins that tests load.
[[nodiscard]] std::string test_plugin_dir();
/// @}

}  // namespace precast::test
