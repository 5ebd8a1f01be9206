#include <ATen/Context.h>
#include <fmt/core.h>

#include <torch/csrc/distributed/c10d/NCCLUtils.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupNCCL.hpp>

#include "framework/core/error.h"
#include "framework/distributed/c10d_parts.h"

namespace precast::distributed {

void add_nccl(c10d::ProcessGroup& group, const c10::intrusive_ptr<c10d::Store>& store,
              const GroupOptions& options) {
  if (!at::globalContext().hasCUDA()) {
    throw DeviceError(
        "ranks: expected a GPU for NCCL, got none that libtorch can use. Train on CPUs with "
        "--training.device=cpu, or run precast doctor");
  }
  require(options.device.has_index(), "the GPU of a rank has an index");
  auto nccl = c10d::ProcessGroupNCCL::Options::create();
  nccl->timeout = options.timeout;
  const auto backend = c10::make_intrusive<c10d::ProcessGroupNCCL>(store, options.rank,
                                                                   options.world, std::move(nccl));
  group.setBackend(at::kCUDA, c10d::ProcessGroup::BackendType::NCCL, backend);
  group.setDefaultBackend(c10d::ProcessGroup::BackendType::NCCL);
  // Otherwise, NCCL would create the communicator at the first collective, on a guessed device.
  backend->eagerConnectSingleDevice(options.device);
}

int nccl_version() {
  return c10d::getNcclVersionNumber();
}

}  // namespace precast::distributed
