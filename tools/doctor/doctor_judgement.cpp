#include <fmt/core.h>

#include <cstdint>
#include <sstream>

#include "framework/core/format.h"
#include "tools/doctor/doctor.h"

namespace precast::tools {
namespace {

using Json = nlohmann::ordered_json;
using Findings = std::vector<Finding>;

constexpr std::string_view kRebuild =
    "run ./tools/setup, then build again in a fresh folder (rm -r build)";

/// The value at `path` ("machine/cgroup/cpus"), or null.
Json at(const Json& facts, const std::string& path) {
  const Json::json_pointer pointer("/" + path);
  return facts.contains(pointer) ? facts.at(pointer) : Json();
}

/// "13.0" -> 13000, "9.19.0.56" -> 9019: major and minor as one number.
int major_minor(const std::string& version) {
  std::istringstream text(version);
  int major = 0;
  int minor = 0;
  char dot = 0;
  text >> major >> dot >> minor;
  return major * 1000 + minor;
}

void judge_cores(const Json& facts, Findings& findings) {
  const Json usable = at(facts, "machine/cores_usable");
  const Json online = at(facts, "machine/cores_online");
  if (usable.is_number() && online.is_number() && usable.get<int>() * 2 <= online.get<int>()) {
    findings.push_back({false,
                        fmt::format("this process can use only {} of the machine's {} cores",
                                    usable.get<int>(), online.get<int>()),
                        "raise the limit that taskset, docker --cpus, Slurm --cpus-per-task or "
                        "Kubernetes has set"});
  }
}

void judge_memory(const Json& facts, Findings& findings) {
  const Json memory = at(facts, "machine/memory_limit_bytes");
  if (memory.is_number() && memory.get<double>() > 0 && memory.get<double>() < 2e9) {
    findings.push_back(
        {false,
         fmt::format("this process can use only {} of memory; training needs at least 2 GB",
                     format_bytes(memory.get<double>())),
         "raise the container's limit (docker --memory, Slurm --mem), or use a "
         "larger machine"});
  }
  const Json::json_pointer shm_pointer("/machine/shm_bytes");
  if (!facts.contains(shm_pointer)) return;
  // Null: there is no /dev/shm.
  const Json& shm = facts.at(shm_pointer);
  if (shm.is_null() || shm.get<double>() < 256e6) {
    const std::string size = shm.is_null() ? "/dev/shm does not exist"
                                           : "/dev/shm has " + format_bytes(shm.get<double>());
    findings.push_back({false,
                        size + ", expected at least 256 MB: the GPUs of one host exchange "
                               "gradients through it",
                        "start the container with --shm-size=1g (or --ipc=host)"});
  }
}

void judge_open_files(const Json& facts, Findings& findings) {
  const Json files = at(facts, "machine/open_files");
  if (files.is_number() && files.get<std::uint64_t>() < 1024) {
    findings.push_back({false,
                        fmt::format("a process may open only {} files", files.get<std::uint64_t>()),
                        "run ulimit -n 4096"});
  }
}

void judge_simd(const Json& facts, Findings& findings) {
  const Json level = at(facts, "libraries/simd/in_use");
  if (!level.is_string()) return;
  const auto name = level.get<std::string>();
  if (name == "none" || name == "SCALAR" || name == "EMU128" || name == "SSE2" || name == "SSSE3") {
    findings.push_back({false,
                        fmt::format("the CPU supports only SIMD level {}; resizing is slow", name),
                        "on a virtual machine, choose the host's CPU type; AVX2 or newer is fast"});
  }
}

void judge_gpu_versions(const Json& facts, Findings& findings) {
  const Json known_driver = at(facts, "torch/cuda/driver");
  const Json known_cuda = at(facts, "torch/cuda/run");
  if (!known_driver.is_string() || !known_cuda.is_string()) return;
  const auto driver = known_driver.get<std::string>();
  const auto cuda = known_cuda.get<std::string>();
  if (major_minor(driver) == 0) {
    findings.push_back({false, "no NVIDIA driver is loaded; training runs on the CPU",
                        "install driver 580 or newer; start containers with --gpus all"});
    return;
  }
  if (major_minor(driver) / 1000 < major_minor(cuda) / 1000) {
    findings.push_back(
        {true,
         fmt::format("the NVIDIA driver supports CUDA up to {}, libtorch needs {}", driver, cuda),
         "install driver 580 or newer"});
    return;
  }
  if (const Json devices = at(facts, "torch/devices"); devices.is_array() && devices.empty()) {
    findings.push_back({false, "an NVIDIA driver is loaded, but no GPU is visible",
                        "check nvidia-smi and CUDA_VISIBLE_DEVICES"});
  }
}

void judge_pair(const Json& facts, const std::string& name, Findings& findings) {
  const Json build = at(facts, "torch/" + name + "/build");
  const Json run = at(facts, "torch/" + name + "/run");
  if (!build.is_string() || !run.is_string() || build == run) return;
  findings.push_back({major_minor(build) != major_minor(run),
                      fmt::format("{} is {} at run time, but {} at build time", name,
                                  run.get<std::string>(), build.get<std::string>()),
                      "if '.venv/bin/python -m pip list' shows two versions, uninstall one; then " +
                          std::string(kRebuild)});
}

void judge_torch(const Json& facts, Findings& findings) {
  if (const Json missing = at(facts, "torch/missing"); missing.is_string()) {
    findings.push_back(
        {false,
         fmt::format("train, eval and predict are not available: {}", missing.get<std::string>()),
         "build with libtorch: ./tools/setup, then cmake with -DPRECAST_TORCH=ON"});
    return;
  }
  if (const Json error = at(facts, "torch/error"); error.is_string()) {
    findings.push_back({true,
                        fmt::format("precast-train does not start: {}", error.get<std::string>()),
                        std::string(kRebuild)});
    return;
  }
  for (const char* name : {"torch", "cuda", "cudnn", "nccl"}) judge_pair(facts, name, findings);
  if (at(facts, "torch/cuda").is_object()) {
    judge_gpu_versions(facts, findings);
  } else if (at(facts, "nvidia").is_object()) {
    findings.push_back({false, "an NVIDIA driver is loaded, but precast was built without CUDA",
                        "install the CUDA 13 toolkit (nvcc), then " + std::string(kRebuild)});
  }
}

}  // namespace

Findings diagnose(const Json& facts) {
  Findings findings;
  judge_torch(facts, findings);
  judge_cores(facts, findings);
  judge_memory(facts, findings);
  judge_open_files(facts, findings);
  judge_simd(facts, findings);
  return findings;
}

}  // namespace precast::tools
