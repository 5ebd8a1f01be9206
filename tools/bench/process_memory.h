#pragma once

#include <cstdint>

namespace precast::tools {

/// Memory of this process in bytes; 0 if /proc does not report it.
struct ProcessMemory {
  /// The peak resident size, including pages of mapped files.
  std::uint64_t peak_resident = 0;
  /// Resident now, with shared pages divided among the processes that share them (PSS).
  std::uint64_t proportional = 0;
  /// Resident now and not backed by a file: what this process alone needs.
  std::uint64_t anonymous = 0;
};

[[nodiscard]] ProcessMemory process_memory();

}  // namespace precast::tools
