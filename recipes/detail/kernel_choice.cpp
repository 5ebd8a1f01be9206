#include "recipes/detail/kernel_choice.h"

namespace precast::recipes::detail {

void KernelChoice::options(Schema& schema) {
  schema
      .add("kernels", &kernels,
           "kernels on a GPU. reference: libtorch's ops; fused: precast's kernels; auto: reference")
      .choices({"auto", "reference", "fused"});
}

}  // namespace precast::recipes::detail
