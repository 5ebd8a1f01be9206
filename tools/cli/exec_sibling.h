#pragma once

#include <string>
#include <vector>

namespace precast::tools {

/// Replaces this process by `precast-train NAME args...`, which lies beside this program. Lets
/// libgomp's threads spin for a short while only, unless OMP_WAIT_POLICY or GOMP_SPINCOUNT is set.
/// @throws DeviceError if it is not there (a build without libtorch) or does not start.
[[noreturn]] void exec_precast_train(const std::string& name, const std::vector<std::string>& args);

/// Whether it is there.
[[nodiscard]] bool has_precast_train();

}  // namespace precast::tools
