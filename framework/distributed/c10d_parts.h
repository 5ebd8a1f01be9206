#pragma once

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "framework/distributed/process_group.h"

namespace precast::distributed {

/// The objects that a ProcessGroup consists of. Only the sources of this folder include this
/// header, because c10d's interfaces change between releases.
struct ProcessGroup::Parts {
  GroupOptions options;
  c10::intrusive_ptr<c10d::Store> store;
  /// The group for tensors on the run's device.
  c10::intrusive_ptr<c10d::ProcessGroup> data;
  /// The group for strings and single numbers, which always uses Gloo; the same object as `data` if
  /// `data` uses Gloo, too.
  c10::intrusive_ptr<c10d::ProcessGroup> control;
  /// Whether `data` sends a GPU's tensors through Gloo.
  [[nodiscard]] bool gloo_on_gpu() const { return options.device.is_cuda() && data == control; }
};

/// Adds NCCL to `group` (nccl.cpp). In a build without NCCL (no_nccl.cpp), always throws an error
/// that says how to build with NCCL.
/// @throws DeviceError if there is no GPU or no NCCL
void add_nccl(c10d::ProcessGroup& group, const c10::intrusive_ptr<c10d::Store>& store,
              const GroupOptions& options);

/// The version of NCCL in NCCL's own encoding, such as 22703 for 2.27.3; 0 in a build without NCCL.
[[nodiscard]] int nccl_version();

}  // namespace precast::distributed
