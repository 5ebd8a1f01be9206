#pragma once

#include <string>
#include <vector>

namespace precast::tools {

/// Replaces this process with `precast-train NAME args...`, from the folder of this program. Limits
/// how long libgomp's threads spin, unless OMP_WAIT_POLICY or GOMP_SPINCOUNT is set.
/// @param name one or two words.
/// @throws DeviceError if the program does not exist (in a build without libtorch) or does not
/// start.
[[noreturn]] void exec_precast_train(const std::string& name, const std::vector<std::string>& args);

/// Whether precast-train exists in the folder of this program.
[[nodiscard]] bool has_precast_train();

}  // namespace precast::tools
