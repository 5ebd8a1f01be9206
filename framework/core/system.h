#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "framework/core/export.h"

namespace precast {

/// The limits of this process's control groups, which containers and batch systems set. Groups are
/// nested, so each limit is the smallest one from the process's group up to the root of the mount.
struct CgroupLimits {
  /// "v1", "v2", "v1+v2" (hybrid), or "none".
  std::string version = "none";
  /// CPU time per unit of wall-clock time; 1.5 means one and a half cores. Empty if there is no
  /// limit.
  std::optional<double> cpus;
  /// Empty if there is no limit.
  std::optional<std::uint64_t> memory_bytes;
};

/// Reads `root`/proc/self/cgroup and the limit files under `root`/sys/fs/cgroup, versions 1 and 2.
/// A file that cannot be read counts as no limit. @param root the root of the file system; tests
/// use a different folder.
[[nodiscard]] PRECAST_API CgroupLimits cgroup_limits(const std::filesystem::path& root = "/");

/// How many threads can run at the same time: the number of cores on which this process may run
/// (affinity: taskset, Slurm, cpusets) or, if it is lower, the CPU quota of its control group,
/// rounded up. At least 1. std::thread::hardware_concurrency() ignores quotas.
[[nodiscard]] PRECAST_API int usable_cores(const std::filesystem::path& root = "/");

/// The name of this host; empty if it is not known.
[[nodiscard]] PRECAST_API std::optional<std::string> host_name();

/// The processor's model name from `root`/proc/cpuinfo; "unknown" if the file has none.
[[nodiscard]] PRECAST_API std::string processor_name(const std::filesystem::path& root = "/");

/// Sizes of a core's data caches in KiB; 0 if the cache does not exist or its size is unknown.
struct CacheSizes {
  std::int64_t l1d_kib = 0;
  std::int64_t l2_kib = 0;
  std::int64_t l3_kib = 0;
  bool operator==(const CacheSizes&) const = default;
};

/// The caches of the first core, from `root`/sys/devices/system/cpu/cpu0/cache. A cache that
/// several cores share counts with its full size.
[[nodiscard]] PRECAST_API CacheSizes cache_sizes(const std::filesystem::path& root = "/");

/// Bytes of memory that this process may use: the machine's memory (MemTotal) or, if it is lower,
/// the limit of the process's control group. 0 if neither can be read.
[[nodiscard]] PRECAST_API std::uint64_t memory_limit_bytes(const std::filesystem::path& root = "/");

/// Bytes of the first core's largest cache for data, of any level; 0 if none can be read. Does not
/// use sysconf(), because on some AMD CPUs, glibc 2.36 returns the caches of the whole socket.
[[nodiscard]] PRECAST_API std::uint64_t last_level_cache_bytes(
    const std::filesystem::path& root = "/");

/// A field of `root`/proc/meminfo, such as "MemTotal" or "MemAvailable", in bytes. Empty if it does
/// not exist.
[[nodiscard]] PRECAST_API std::optional<std::uint64_t> meminfo_bytes(
    const std::string& field, const std::filesystem::path& root = "/");

}  // namespace precast
