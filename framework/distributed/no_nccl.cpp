#include "framework/core/error.h"
#include "framework/distributed/c10d_parts.h"

namespace precast::distributed {

void add_nccl(c10d::ProcessGroup& /*group*/, const c10::intrusive_ptr<c10d::Store>& /*store*/,
              const GroupOptions& /*options*/) {
  throw DeviceError(
      "ranks: this build has no NCCL. Build on a machine with nvcc (./tools/setup, then "
      "-DPRECAST_CUDA=ON), "
      "or train on CPUs with --training.device=cpu");
}

int nccl_version() {
  return 0;
}

}  // namespace precast::distributed
