#include "tools/bench/kernels/batch_norm_case.h"
#include "tools/bench/kernels/image_cases.h"
#include "tools/bench/kernels/kernel_case.h"
#include "tools/bench/kernels/logits_cases.h"
#include "tools/bench/kernels/normalize_case.h"
#include "tools/bench/kernels/planned_images_case.h"
#include "tools/bench/kernels/sgd_cases.h"

namespace precast::tools {

std::span<const KernelEntry> kernel_list() {
  using data::PixelType;
  using models::ActivationType;
  static constexpr KernelEntry kKernels[] = {
      {"normalize_f32", [] { return normalize_case(PixelType::f32); }},
      {"normalize_f16", [] { return normalize_case(PixelType::f16); }},
      {"normalize_bf16", [] { return normalize_case(PixelType::bf16); }},
      {"planned_images_f32", [] { return planned_images_case(PixelType::f32); }},
      {"planned_images_f16", [] { return planned_images_case(PixelType::f16); }},
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
      {"dual_norm_forward_f16", [] { return dual_norm_forward_case(ActivationType::f16); }},
      {"dual_norm_backward_f16", [] { return dual_norm_backward_case(ActivationType::f16); }},
      {"max_pool_forward_f16", [] { return max_pool_forward_case(ActivationType::f16); }},
      {"max_pool_backward_f16", [] { return max_pool_backward_case(ActivationType::f16); }},
      {"norm_pool_forward_f16", [] { return norm_pool_forward_case(ActivationType::f16); }},
      {"norm_pool_backward_f16", [] { return norm_pool_backward_case(ActivationType::f16); }},
      {"blur_forward_f16", [] { return blur_forward_case(ActivationType::f16); }},
      {"blur_backward_f16", [] { return blur_backward_case(ActivationType::f16); }},
      {"stem_f16", [] { return stem_case(ActivationType::f16); }},
      {"sgd_f32", [] { return sgd_case(FloatType::f32); }},
      {"sgd_f16", [] { return sgd_case(FloatType::f16); }},
      {"gradient_norm_f32", [] { return gradient_norm_case(FloatType::f32); }},
      {"gradient_norm_f16", [] { return gradient_norm_case(FloatType::f16); }},
      {"cross_entropy_loss_f16",
       [] { return cross_entropy_case(FloatType::f16, /*gradient=*/false); }},
      {"cross_entropy_f16", [] { return cross_entropy_case(FloatType::f16, /*gradient=*/true); }},
      {"cross_entropy_bf16", [] { return cross_entropy_case(FloatType::bf16, /*gradient=*/true); }},
      {"top_k_f16", [] { return top_k_case(FloatType::f16); }},
      {"top_k_bf16", [] { return top_k_case(FloatType::bf16); }},
  };
  return kKernels;
}

}  // namespace precast::tools
