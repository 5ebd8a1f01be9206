#include "tools/bench/kernels/kernel_case.h"
#include "tools/bench/kernels/normalize_case.h"

namespace precast::tools {

std::span<const KernelEntry> kernel_list() {
  using data::PixelType;
  static constexpr KernelEntry kKernels[] = {
      {"normalize_f32", [] { return normalize_case(PixelType::f32); }},
      {"normalize_f16", [] { return normalize_case(PixelType::f16); }},
      {"normalize_bf16", [] { return normalize_case(PixelType::bf16); }},
  };
  return kKernels;
}

}  // namespace precast::tools
