#include <fmt/core.h>
#include <hwy/highway.h>
#include <jpeglib.h>
#include <link.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <chrono>
#include <fstream>

#include "framework/core/system.h"
#include "framework/process/child_process.h"
#include "tools/cli/cpu.h"
#include "tools/cli/version.h"
#include "tools/doctor/doctor.h"

namespace precast::tools {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

#define PRECAST_TEXT_OF(x) #x
#define PRECAST_TEXT(x) PRECAST_TEXT_OF(x)

#ifdef __clang__
constexpr const char* kCompiler = __VERSION__;  // begins with the compiler's name
#else
constexpr const char* kCompiler = "g++ " __VERSION__;
#endif

/// The file of a library loaded in this process; empty if it is not loaded.
std::string loaded_file(const std::string& stem) {
  std::pair<std::string, std::string> search{stem, ""};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* data) {
        auto& [name, found] = *static_cast<std::pair<std::string, std::string>*>(data);
        const fs::path path(info->dlpi_name);
        if (!path.filename().string().starts_with(name)) return 0;
        found = fs::exists(path) ? fs::canonical(path).string() : path.string();
        return 1;
      },
      &search);
  return search.second;
}

Json simd_facts() {
  const CpuFacts cpu = cpu_facts();
  return {{"in_use", cpu.simd_in_use()}, {"usable", cpu.simd}};
}

Json library_facts() {
  const std::string jpeg = loaded_file("libjpeg.so");
  return {{"libjpeg-turbo",
           {{"build", PRECAST_TEXT(LIBJPEG_TURBO_VERSION)},
            {"run", jpeg.empty() ? "linked into precast" : jpeg}}},
          {"highway", fmt::format("{}.{}.{}", HWY_MAJOR, HWY_MINOR, HWY_PATCH)},
          {"simd", simd_facts()}};
}

/// The value of `key` in a file of `key<separator>value` lines, without quotes.
std::string value_in(const fs::path& path, const std::string& key, char separator) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const std::size_t end = line.find(separator);
    if (end == std::string::npos || !line.starts_with(key)) continue;
    const std::size_t first = line.find_first_not_of(" \"", end + 1);
    const std::size_t last = line.find_last_not_of(" \"");
    return first == std::string::npos ? "" : line.substr(first, last - first + 1);
  }
  return "unknown";
}

Json shm_facts() {
  struct statvfs shm {};
  if (statvfs("/dev/shm", &shm) != 0) return {{"shm_bytes", nullptr}, {"shm_free_bytes", nullptr}};
  return {{"shm_bytes", shm.f_blocks * shm.f_frsize},
          {"shm_free_bytes", shm.f_bavail * shm.f_frsize}};
}

Json machine_facts() {
  utsname system{};
  uname(&system);
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  const CgroupLimits limits = cgroup_limits();
  const CpuFacts cpu = cpu_facts();
  Json facts = {{"system", value_in("/etc/os-release", "PRETTY_NAME", '=')},
                {"kernel", system.release},
                {"cpu", cpu.processor},
                {"caches_kib", cpu_json(cpu).at("caches_kib")},
                {"cores_online", sysconf(_SC_NPROCESSORS_ONLN)},
                {"cores_usable", cpu.cores},
                {"memory_bytes", meminfo_bytes("MemTotal").value_or(0)},
                {"memory_available_bytes", meminfo_bytes("MemAvailable").value_or(0)},
                {"memory_limit_bytes", memory_limit_bytes()}};
  facts["cgroup"] = {{"version", limits.version},
                     {"cpus", limits.cpus ? Json(*limits.cpus) : Json()},
                     {"memory_bytes", limits.memory_bytes ? Json(*limits.memory_bytes) : Json()}};
  facts.update(shm_facts());
  facts["open_files"] = files.rlim_cur;
  facts["open_files_most"] = files.rlim_max;
  return facts;
}

/// Reads the version from the driver itself, because a machine may have a driver but no libtorch.
Json nvidia_facts() {
  std::ifstream file("/proc/driver/nvidia/version");
  std::string line;
  if (!std::getline(file, line)) return nullptr;
  return {{"driver", line}};
}

Json torch_facts(const fs::path& binaries) {
  const fs::path train = binaries / "precast-train";
  if (!fs::exists(train)) return {{"missing", train.string() + " does not exist"}};
  // The timeout is long, because the first start reads gigabytes of libraries. Without a timeout, a
  // driver that hangs would block this command.
  const ChildResult child =
      run_child({train.string(), "versions", "--json"}, std::chrono::seconds(120));
  if (child.timed_out) return {{"error", "no response within 120 s"}};
  if (child.exit_code != 0) {
    return {{"error", fmt::format("exit code {}: {}", child.exit_code, child.errors)}};
  }
  Json response = Json::parse(child.output, nullptr, /*allow_exceptions=*/false);
  if (!response.is_object()) return {{"error", "expected JSON, got: " + child.output}};
  return response;
}

}  // namespace

Json gather_facts(const fs::path& binaries) {
  return {{"precast", {{"version", kVersion}, {"compiler", kCompiler}}},
          {"libraries", library_facts()},
          {"machine", machine_facts()},
          {"nvidia", nvidia_facts()},
          {"torch", torch_facts(binaries)}};
}

}  // namespace precast::tools
