#pragma once

#include <cstdint>

namespace precast::tools {

/// Memory of this process in bytes; 0 if /proc does not report it.
struct ProcessMemory {
  /// The peak resident size, including pages of mapped files.
  std::uint64_t peak_resident = 0;
  /// Resident now, with shared pages divided among the processes that share them (PSS).
  std::uint64_t proportional = 0;
  /// The part of `proportional` that no file backs (Pss_Anon): what this process alone needs. Pages
  /// that processes share after a fork count once in the sum over these processes. Before Linux
  /// 5.4, this is Anonymous, which counts them once per process. tools/peers measures other loaders
  /// in the same way.
  std::uint64_t anonymous = 0;
};

[[nodiscard]] ProcessMemory process_memory();

}  // namespace precast::tools
