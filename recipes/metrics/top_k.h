#pragma once

#include <memory>

#include "framework/api/metric.h"
#include "recipes/detail/kernel_choice.h"

namespace precast::recipes {

struct TopKOptions : detail::KernelChoice {
  /// At least 1. With fewer classes every sample counts.
  std::int64_t k = 1;

  void options(Schema& schema);
};

/// The fraction of samples whose class is among the `k` largest logits, "top_K". Logits are
/// [N, classes]; the first target holds classes, [N] int64. count() throws std::logic_error for
/// other shapes. Which of equal logits are among the largest is not defined, as in torch.topk. With
/// `kernels: fused`, detail::fused_top_k() counts where it can; of equal logits, the lower class is
/// then the larger one.
[[nodiscard]] std::unique_ptr<Metric> make_top_k(const TopKOptions& options);

}  // namespace precast::recipes
