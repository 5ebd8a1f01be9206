#pragma once

#include <memory>
#include <string>
#include <vector>

#include "framework/api/grad_sync.h"
#include "framework/api/model.h"
#include "framework/core/export.h"
#include "framework/distributed/process_group.h"

namespace precast::distributed {

/// How the ranks compute the same update. tensorpack's multi-GPU benchmark compares these modes.
enum class VariableUpdate {
  /// Every rank updates its own copy of the parameters with averaged gradients. The gradients are
  /// all-reduced in buckets while the backward pass still runs (PyTorch DDP: Li et al., VLDB 2020;
  /// c10d::Reducer).
  replicated,
  /// Like `replicated`, but all gradients are sent in one message after the backward pass. This is
  /// the baseline for measuring the benefit of the overlap.
  allreduce_after_backward,
  /// Only rank 0 receives the averaged gradients and updates the parameters, which it then sends to
  /// the other ranks.
  parameter_server,
};

/// The element type in which gradients are sent; ignored with parameter_server. In half precision,
/// messages are smaller, but the sums are less accurate, because the additions are in half
/// precision too.
enum class GradCompression { none, fp16, bf16 };

struct GradSyncOptions {
  VariableUpdate update = VariableUpdate::replicated;
  GradCompression compression = GradCompression::none;
  /// For `replicated`: the size of a bucket in bytes. The first bucket is smaller, so that sending
  /// starts early.
  std::size_t bucket_bytes = 25 << 20;
  std::size_t first_bucket_bytes = 1 << 20;
  /// For each parameter, the rank that updates it and then sends it to the other ranks (see
  /// shard_parameters()). If empty, every rank updates all parameters. Ignored with
  /// parameter_server, because rank 0 then updates all parameters.
  std::vector<int> owners{};
};

/// The reason why a CUDA graph cannot contain the exchange of gradients, as a clause; empty if it
/// can. A graph can contain `allreduce_after_backward` over NCCL 2.9.6 or later. It cannot contain
/// `parameter_server`, because the ranks do different work, or c10d's Reducer (`replicated`): the
/// Reducer's hooks belong to the stream on which it was constructed, but a graph records a
/// different stream.
[[nodiscard]] PRECAST_API std::string graph_obstacle(VariableUpdate update, at::Device device,
                                                     Transport transport);

/// Creates the GradSync for `options.update`. Its check_backward() throws Error if a parameter that
/// requires a gradient has none, even in a group of one rank. With `replicated`, it also throws if
/// the step's last backward pass did not compute the gradients of all `parameters`. After this
/// check, Method::on_backward() may drop gradients, if it drops the same ones on all ranks. The
/// gradients of the previous step must have been removed, not set to 0.
/// @param group must outlive the result. @param parameters in the same order on all ranks, on their
/// final device and in their final layout.
[[nodiscard]] PRECAST_API std::unique_ptr<GradSync> make_grad_sync(
    ProcessGroup& group, const std::vector<NamedTensor>& parameters,
    const GradSyncOptions& options);

/// Assigns each parameter to one rank for ZeRO stage 1 (Rajbhandari et al., SC 2020), in which a
/// rank's optimiser stores only the state of the parameters that this rank updates. Starts with the
/// largest parameter, and always chooses the rank that has the fewest elements so far.
/// @return the rank of each parameter, in the order of `parameters`
[[nodiscard]] PRECAST_API std::vector<int> shard_parameters(
    const std::vector<NamedTensor>& parameters, int world);

}  // namespace precast::distributed
