#pragma once

#include <memory>

#include "framework/api/metric.h"

namespace precast::recipes {

struct TopKOptions {
  /// At least 1. With fewer classes every sample counts.
  std::int64_t k = 1;

  void options(Schema& schema);
};

/// The fraction of samples whose class is among the `k` largest logits, "top_K". Logits are
/// [N, classes]; the first target holds classes, [N] int64. count() throws std::logic_error for
/// other shapes.
[[nodiscard]] std::unique_ptr<Metric> make_top_k(const TopKOptions& options);

}  // namespace precast::recipes
