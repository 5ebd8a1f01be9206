#include "tools/bench/kernels/batch_norm_case.h"
#include "tools/bench/kernels/kernel_case.h"
#include "tools/bench/kernels/normalize_case.h"

namespace precast::tools {

std::span<const KernelEntry> kernel_list() {
  using data::PixelType;
  using models::ActivationType;
  static constexpr KernelEntry kKernels[] = {
      {"normalize_f32", [] { return normalize_case(PixelType::f32); }},
      {"normalize_f16", [] { return normalize_case(PixelType::f16); }},
      {"normalize_bf16", [] { return normalize_case(PixelType::bf16); }},
      {"batch_norm_forward_f16",
       [] { return batch_norm_forward_case(ActivationType::f16, /*residual=*/false); }},
      {"batch_norm_forward_residual_f16",
       [] { return batch_norm_forward_case(ActivationType::f16, /*residual=*/true); }},
      {"batch_norm_backward_f16",
       [] { return batch_norm_backward_case(ActivationType::f16, /*residual=*/false); }},
      {"batch_norm_backward_residual_f16",
       [] { return batch_norm_backward_case(ActivationType::f16, /*residual=*/true); }},
      {"batch_norm_forward_bf16",
       [] { return batch_norm_forward_case(ActivationType::bf16, /*residual=*/false); }},
      {"batch_norm_forward_residual_bf16",
       [] { return batch_norm_forward_case(ActivationType::bf16, /*residual=*/true); }},
      {"batch_norm_backward_bf16",
       [] { return batch_norm_backward_case(ActivationType::bf16, /*residual=*/false); }},
      {"batch_norm_backward_residual_bf16",
       [] { return batch_norm_backward_case(ActivationType::bf16, /*residual=*/true); }},
  };
  return kKernels;
}

}  // namespace precast::tools
