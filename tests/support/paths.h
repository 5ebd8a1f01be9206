#pragma once

#include <string>

namespace precast::test {

/// Absolute paths of this checkout and this build. Functions instead of macros, so that compiled
/// tests are the same in every checkout, and ccache can use them for all.
/// @{
[[nodiscard]] std::string source_dir();
[[nodiscard]] std::string build_dir();
/// The programs.
[[nodiscard]] std::string bin_dir();
/// tests/golden, or the folder that PRECAST_GOLDEN_DIR names in the environment, for programs that
/// were carried to another machine.
[[nodiscard]] std::string golden_dir();
/// The plug-ins that tests load.
[[nodiscard]] std::string test_plugin_dir();
/// @}

}  // namespace precast::test
