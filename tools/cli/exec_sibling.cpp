#include "tools/cli/exec_sibling.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>

#include "framework/core/error.h"

namespace precast::tools {
namespace {

std::filesystem::path precast_train() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "precast-train";
}

}  // namespace

bool has_precast_train() {
  return std::filesystem::exists(precast_train());
}

void exec_precast_train(const std::string& name, const std::vector<std::string>& args) {
  const std::filesystem::path program = precast_train();
  std::vector<std::string> all = {program.string()};
  std::istringstream words(name);
  for (std::string word; words >> word;) all.push_back(word);
  all.insert(all.end(), args.begin(), args.end());
  std::vector<char*> argv;
  for (std::string& arg : all) argv.push_back(arg.data());
  argv.push_back(nullptr);
  // How long libgomp's threads spin before they sleep. ResNet-18 at 32 px on 2 cores, alone and
  // next to another busy process: 565 and 159 img/s with libgomp's default of 300,000 rounds, 459
  // and 284 without spinning (OMP_WAIT_POLICY=PASSIVE), 555 and 234 with 3,000 rounds. A user's
  // setting of either variable takes precedence.
  if (std::getenv("OMP_WAIT_POLICY") == nullptr)
    ::setenv("GOMP_SPINCOUNT", "3000", /*overwrite=*/0);
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
