#pragma once

#include <string>

#include "framework/core/config/schema.h"

namespace precast::recipes::detail {

/// The option `kernels` of a part. `reference`: libtorch's ops; `fused`: precast's kernels where
/// they support the tensors. `auto` is `reference`.
struct KernelChoice {
  std::string kernels = "auto";

  void options(Schema& schema);
  [[nodiscard]] bool fused() const { return kernels == "fused"; }
};

}  // namespace precast::recipes::detail
