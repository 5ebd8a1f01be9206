#include "tools/cli/cpu.h"

#include <fmt/format.h>
#include <hwy/highway.h>

#include <nlohmann/json.hpp>

#include "framework/core/format.h"

namespace precast::tools {
namespace {

std::string size_text(std::int64_t kib) {
  if (kib == 0) return "unknown";
  return kib % 1024 == 0 ? fmt::format("{} MiB", kib / 1024) : fmt::format("{} KiB", kib);
}

}  // namespace

CpuFacts cpu_facts() {
  CpuFacts cpu = {
      .processor = processor_name(), .cores = usable_cores(), .simd = {}, .caches = cache_sizes()};
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets())
    cpu.simd.emplace_back(hwy::TargetName(target));
  return cpu;
}

nlohmann::ordered_json cpu_json(const CpuFacts& cpu) {
  const auto size = [](std::int64_t kib) {
    return kib == 0 ? nlohmann::ordered_json() : nlohmann::ordered_json(kib);
  };
  return {{"processor", cpu.processor},
          {"cores", cpu.cores},
          {"simd", cpu.simd_in_use()},
          {"caches_kib",
           {{"l1d", size(cpu.caches.l1d_kib)},
            {"l2", size(cpu.caches.l2_kib)},
            {"l3", size(cpu.caches.l3_kib)}}}};
}

std::string cpu_text(const CpuFacts& cpu) {
  const std::string simd = cpu.simd_in_use();
  return fmt::format("{} of {}, SIMD {}{}, caches L1d {}, L2 {}, L3 {}",
                     format_count(static_cast<std::uint64_t>(cpu.cores), "core"), cpu.processor,
                     simd, simd.starts_with("AVX3") ? " (AVX-512)" : "",
                     size_text(cpu.caches.l1d_kib), size_text(cpu.caches.l2_kib),
                     size_text(cpu.caches.l3_kib));
}

}  // namespace precast::tools
