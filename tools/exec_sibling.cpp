#include "tools/exec_sibling.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "framework/core/error.h"

namespace precast::tools {

void exec_precast_train(const std::string& name, const std::vector<std::string>& args) {
  const std::filesystem::path program =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / "precast-train";
  std::vector<std::string> all = {program.string(), name};
  all.insert(all.end(), args.begin(), args.end());
  std::vector<char*> argv;
  for (std::string& arg : all) argv.push_back(arg.data());
  argv.push_back(nullptr);
  // libgomp's threads otherwise spin while they wait, and a second busy process on the same cores
  // makes training six times slower (48 against 321 img/s, ResNet-18 at 24 px, 2 cores). Whoever
  // sets the variable decides.
  ::setenv("OMP_WAIT_POLICY", "PASSIVE", /*overwrite=*/0);
  ::execv(program.c_str(), argv.data());
  const int reason = errno;
  std::string message = fmt::format("cannot start {}: {}", program.string(), std::strerror(reason));
  if (reason == ENOENT) {
    message += fmt::format(
        ". '{}' needs libtorch: run ./tools/setup and build with -DPRECAST_TORCH=ON", name);
  }
  throw DeviceError(message);
}

}  // namespace precast::tools
