#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "framework/core/system.h"

namespace precast::tools {

/// The properties of a machine that determine measured speeds.
struct CpuFacts {
  /// The name of the CPU model.
  std::string processor;
  /// Cores that this process may use.
  int cores = 1;
  /// SIMD levels (Highway's targets, such as "AVX3" or "AVX2") that this CPU has and precast was
  /// compiled for, best first. Kernels use the first one, except for those that exclude it.
  std::vector<std::string> simd;
  CacheSizes caches;

  /// The level that most kernels use; "none" if `simd` is empty.
  [[nodiscard]] std::string simd_in_use() const { return simd.empty() ? "none" : simd.front(); }
};

/// The CpuFacts of this machine.
[[nodiscard]] CpuFacts cpu_facts();

/// {processor, cores, simd: the level in use, caches_kib: {l1d, l2, l3}}; an unknown size is null.
[[nodiscard]] nlohmann::ordered_json cpu_json(const CpuFacts& cpu);

/// One line: "2 cores of AMD EPYC, SIMD AVX3 (AVX-512), caches L1d 32 KiB, L2 1 MiB, L3 32 MiB".
[[nodiscard]] std::string cpu_text(const CpuFacts& cpu);

}  // namespace precast::tools
