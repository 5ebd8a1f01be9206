#pragma once

#include <string>
#include <vector>

namespace precast::tools {

/// Replaces this process by `precast-train NAME args...`, which lies beside this program. Sets
/// OMP_WAIT_POLICY=PASSIVE where the environment has no such variable.
/// @throws DeviceError if it is not there (a build without libtorch) or does not start.
[[noreturn]] void exec_precast_train(const std::string& name, const std::vector<std::string>& args);

}  // namespace precast::tools
