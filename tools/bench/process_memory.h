#pragma once

#include <cstdint>

namespace precast::tools {

/// Memory of this process in bytes; 0 where /proc does not tell.
struct ProcessMemory {
  /// The most that was resident at once, pages of mapped files included.
  std::uint64_t peak_resident = 0;
  /// Resident now, pages shared with other processes divided among them (PSS).
  std::uint64_t proportional = 0;
  /// Resident now and in no file: what this process alone needs.
  std::uint64_t anonymous = 0;
};

[[nodiscard]] ProcessMemory process_memory();

}  // namespace precast::tools
