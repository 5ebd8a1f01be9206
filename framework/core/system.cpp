#include "framework/core/system.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <functional>
#include <sstream>
#include <string_view>
#include <system_error>
#include <vector>

namespace precast {
namespace {

namespace fs = std::filesystem;

/// Reads the file as a stream, because files in /proc and /sys do not report their real size.
std::optional<std::string> first_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  return line;
}

std::optional<std::uint64_t> number_in(const fs::path& path) {
  const std::optional<std::string> line = first_line(path);
  if (!line) return std::nullopt;
  std::istringstream text(*line);
  std::uint64_t value = 0;
  if (line->starts_with('-') || !(text >> value)) return std::nullopt;  // "max", -1
  return value;
}

template <typename Value>
void tighten(std::optional<Value>& limit, const std::optional<Value>& candidate) {
  if (candidate && (!limit || *candidate < *limit)) limit = candidate;
}

/// Visits the group's folder and its parents up to `mount`. In a container, `group` may be the path
/// on the host, which does not exist in the container's mount. Therefore, folders that do not exist
/// are skipped, and `mount` itself is always visited.
void walk_up(const fs::path& mount, const std::string& group,
             const std::function<void(const fs::path&)>& visit) {
  fs::path relative = fs::path(group).relative_path().lexically_normal();
  while (!relative.empty() && relative != "." && !relative.string().starts_with("..")) {
    if (fs::exists(mount / relative)) visit(mount / relative);
    relative = relative.parent_path();
  }
  visit(mount);
}

/// cpu.max: "QUOTA PERIOD" in microseconds, or "max PERIOD".
std::optional<double> cpus_v2(const fs::path& folder) {
  std::istringstream text(first_line(folder / "cpu.max").value_or(""));
  double quota_us = 0;
  double period_us = 0;
  if (!(text >> quota_us >> period_us) || quota_us <= 0 || period_us <= 0) return std::nullopt;
  return quota_us / period_us;
}

std::optional<double> cpus_v1(const fs::path& folder) {
  const auto quota_us = number_in(folder / "cpu.cfs_quota_us");
  const auto period_us = number_in(folder / "cpu.cfs_period_us");
  if (!quota_us || !period_us || *quota_us == 0 || *period_us == 0) return std::nullopt;
  return static_cast<double>(*quota_us) / static_cast<double>(*period_us);
}

/// In version 1, the largest multiple of the page size below 2^63 means "no limit".
std::optional<std::uint64_t> memory_v1(const fs::path& folder) {
  const auto limit = number_in(folder / "memory.limit_in_bytes");
  constexpr std::uint64_t kUnlimited = std::uint64_t{1} << 62;
  if (!limit || *limit >= kUnlimited) return std::nullopt;
  return limit;
}

bool list_contains(std::string_view comma_separated, std::string_view item) {
  std::istringstream text{std::string(comma_separated)};
  for (std::string name; std::getline(text, name, ',');) {
    if (name == item) return true;
  }
  return false;
}

/// Applies the limits for one line of /proc/self/cgroup, `id:controllers:path`; in version 2, the
/// id is 0 and `controllers` is empty.
void apply(const fs::path& cgroup, const std::string& controllers, const std::string& group,
           CgroupLimits& limits) {
  if (controllers.empty()) {
    const fs::path hybrid = cgroup / "unified";
    walk_up(fs::exists(hybrid) ? hybrid : cgroup, group, [&](const fs::path& folder) {
      tighten(limits.cpus, cpus_v2(folder));
      tighten(limits.memory_bytes, number_in(folder / "memory.max"));
    });
    return;
  }
  if (list_contains(controllers, "cpu")) {
    // The folder is named after all controllers of the hierarchy, such as `cpu,cpuacct`. There may
    // also be a symbolic link `cpu` to this folder.
    const fs::path joint = cgroup / controllers;
    walk_up(fs::exists(joint) ? joint : cgroup / "cpu", group,
            [&](const fs::path& folder) { tighten(limits.cpus, cpus_v1(folder)); });
  }
  if (list_contains(controllers, "memory")) {
    walk_up(cgroup / "memory", group,
            [&](const fs::path& folder) { tighten(limits.memory_bytes, memory_v1(folder)); });
  }
}

/// A cache's size as the kernel writes it: "32K", "8M". 0 for anything else.
std::int64_t size_in_kib(const std::string& text) {
  std::istringstream stream(text);
  std::int64_t value = 0;
  char unit = 0;
  if (!(stream >> value >> unit) || value < 0) return 0;
  return unit == 'K' ? value : unit == 'M' ? value * 1024 : unit == 'G' ? value * 1024 * 1024 : 0;
}

struct DataCache {
  std::string level;
  std::int64_t kib = 0;
};

/// The caches of the first core, except instruction caches.
std::vector<DataCache> data_caches(const fs::path& root) {
  std::vector<DataCache> caches;
  const fs::path folder = root / "sys/devices/system/cpu/cpu0/cache";
  std::error_code unreadable;
  for (int number = 0; fs::exists(folder / ("index" + std::to_string(number)), unreadable);
       ++number) {
    const fs::path cache = folder / ("index" + std::to_string(number));
    if (first_line(cache / "type") == "Instruction") continue;
    caches.push_back({.level = first_line(cache / "level").value_or(""),
                      .kib = size_in_kib(first_line(cache / "size").value_or(""))});
  }
  return caches;
}

int cores_by_affinity() {
  // Doubles the size until the kernel accepts it: on very large machines, the kernel's set has more
  // than CPU_SETSIZE (1024) bits.
  for (int cores = CPU_SETSIZE; cores <= (1 << 20); cores *= 2) {
    cpu_set_t* set = CPU_ALLOC(static_cast<std::size_t>(cores));
    if (set == nullptr) return 1;
    const std::size_t size = CPU_ALLOC_SIZE(static_cast<std::size_t>(cores));
    const int count = sched_getaffinity(0, size, set) == 0 ? CPU_COUNT_S(size, set) : 0;
    CPU_FREE(set);
    if (count > 0) return count;
  }
  return 1;
}

}  // namespace

CgroupLimits cgroup_limits(const fs::path& root) {
  CgroupLimits limits;
  bool v1 = false;
  bool v2 = false;
  std::ifstream file(root / "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    (controllers.empty() ? v2 : v1) = true;
    apply(root / "sys/fs/cgroup", controllers, line.substr(second + 1), limits);
  }
  if (v1 || v2) limits.version = v1 && v2 ? "v1+v2" : v1 ? "v1" : "v2";
  return limits;
}

int usable_cores(const fs::path& root) {
  const int cores = cores_by_affinity();
  const std::optional<double> quota = cgroup_limits(root).cpus;
  if (!quota || *quota >= cores) return cores;
  return std::max(1, static_cast<int>(std::ceil(*quota)));
}

std::optional<std::string> host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return std::nullopt;
  return name.data();
}

std::string processor_name(const fs::path& root) {
  std::ifstream file(root / "proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t value = line.find(": ");
    if (line.starts_with("model name") && value != std::string::npos) return line.substr(value + 2);
  }
  return "unknown";
}

CacheSizes cache_sizes(const fs::path& root) {
  CacheSizes sizes;
  for (const DataCache& cache : data_caches(root)) {
    if (cache.level == "1") sizes.l1d_kib = cache.kib;
    if (cache.level == "2") sizes.l2_kib = cache.kib;
    if (cache.level == "3") sizes.l3_kib = cache.kib;
  }
  return sizes;
}

std::uint64_t memory_limit_bytes(const fs::path& root) {
  std::optional<std::uint64_t> limit = meminfo_bytes("MemTotal", root);
  tighten(limit, cgroup_limits(root).memory_bytes);
  return limit.value_or(0);
}

std::uint64_t last_level_cache_bytes(const fs::path& root) {
  std::int64_t largest_kib = 0;
  for (const DataCache& cache : data_caches(root)) largest_kib = std::max(largest_kib, cache.kib);
  return static_cast<std::uint64_t>(largest_kib) * 1024;
}

std::optional<std::uint64_t> meminfo_bytes(const std::string& field, const fs::path& root) {
  std::ifstream file(root / "proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(field + ":")) continue;
    std::istringstream text(line.substr(field.size() + 1));
    std::uint64_t kibibytes = 0;
    if (text >> kibibytes) return kibibytes * 1024;
  }
  return std::nullopt;
}

}  // namespace precast
