#pragma once

#include <memory>

#include "framework/api/metric.h"
#include "recipes/detail/kernel_choice.h"

namespace precast::recipes {

struct TopKOptions : detail::KernelChoice {
  /// At least 1. If there are at most k classes, every sample is correct.
  std::int64_t k = 1;

  void options(Schema& schema);
};

/// The fraction of samples whose class is among the `k` largest logits, "top_K". Logits are [N,
/// classes]; the first target contains classes, [N] int64. count() throws std::logic_error for
/// other shapes. The order of equal logits is not defined, as in torch.topk. With `kernels: fused`,
/// detail::fused_top_k() counts if it supports the tensors; among equal logits, the lower class
/// then comes first.
[[nodiscard]] std::unique_ptr<Metric> make_top_k(const TopKOptions& options);

}  // namespace precast::recipes
