#include "tools/bench/process_memory.h"

#include <fstream>
#include <limits>
#include <string>

namespace precast::tools {
namespace {

/// Returns the number after `name` in bytes, from a file with lines such as `name: 123 kB`; 0 if
/// there is no such line.
std::uint64_t bytes_in(const char* path, const std::string& name) {
  std::ifstream file(path);
  for (std::string word; file >> word; file.ignore(std::numeric_limits<int>::max(), '\n')) {
    std::uint64_t kilobytes = 0;
    if (word == name + ":" && file >> kilobytes) return kilobytes * 1024;
  }
  return 0;
}

}  // namespace

ProcessMemory process_memory() {
  constexpr const char* kSums = "/proc/self/smaps_rollup";
  const std::uint64_t anonymous = bytes_in(kSums, "Pss_Anon");
  return {.peak_resident = bytes_in("/proc/self/status", "VmHWM"),
          .proportional = bytes_in(kSums, "Pss"),
          // Linux before 5.4 has no Pss_Anon; Anonymous counts shared pages in full.
          .anonymous = anonymous > 0 ? anonymous : bytes_in(kSums, "Anonymous")};
}

}  // namespace precast::tools
