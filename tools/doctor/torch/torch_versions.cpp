#include "tools/doctor/torch/torch_versions.h"

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <torch/headeronly/version.h>

#include <cstdio>

#include "framework/core/error.h"
#include "framework/core/system.h"
#include "tools/cli/arguments.h"
#include "tools/cli/shared_options.h"

namespace precast::tools {

std::string torch_version() {
  // No function of libtorch returns its version, but its build settings contain it:
  // "..., TORCH_VERSION=2.11.0, ...".
  const std::string settings = at::show_config();
  const std::string key = "TORCH_VERSION=";
  const std::size_t begin = settings.find(key);
  if (begin == std::string::npos) return "unknown";
  const std::size_t value = begin + key.size();
  return settings.substr(value, settings.find_first_of(", \n", value) - value);
}

std::string device_name(at::Device device) {
  if (device.is_cpu()) return processor_name();
  const nlohmann::ordered_json devices = cuda_versions().at("devices");
  return devices.at(static_cast<std::size_t>(device.index())).at("name").get<std::string>();
}

int run_versions(const std::vector<std::string>& args) {
  Arguments arguments("versions [options]",
                      "Prints the versions of libtorch and of the libraries that it uses.");
  arguments.options().add_options()("json", kJsonHelp);
  arguments.example("precast-train versions --json");
  if (!arguments.parse(args)) return static_cast<int>(ExitCode::done);
  nlohmann::ordered_json versions = {
      {"torch", {{"build", TORCH_VERSION}, {"run", torch_version()}}},
      {"cpu_capability", at::get_cpu_capability()},
      {"threads", at::get_num_threads()},
  };
  versions.update(cuda_versions());
  std::puts(versions.dump(2).c_str());
  return static_cast<int>(ExitCode::done);
}

}  // namespace precast::tools
