#pragma once

#include <torch/nn/modules/batchnorm.h>

#include <string>

#include "framework/api/communicator.h"
#include "framework/core/export.h"
#include "models/detail/fused_norm.h"
#include "models/detail/max_pool.h"

namespace precast::models::detail {

/// Batch normalisation of [N, C, H, W]. With `ranks`, a training step computes the statistics over
/// the batches of all ranks (SyncBatchNorm of torch and apex; Peng et al., MegDet, CVPR 2018). With
/// `ghost_batch_size`, it computes them over chunks of the rank's own batch (ghost batch norm;
/// Hoffer et al., NeurIPS 2017), like Composer's GhostBatchNorm: at::chunk() splits the batch into
/// at most ceil(N / size) chunks, of which the last may be smaller. Each of n chunks updates the
/// running statistics with momentum / n. num_batches_tracked counts batches, whereas Composer
/// counts chunks. Names, parameters and buffers are those of torch::nn::BatchNorm2d.
class PRECAST_API BatchNorm2dImpl : public torch::nn::BatchNorm2dImpl {
 public:
  /// @param ranks null: each rank normalises its batch separately. Borrowed.
  /// @param ghost_batch_size samples per chunk; 0: one chunk. Has no effect with `ranks`.
  explicit BatchNorm2dImpl(std::int64_t channels, Communicator* ranks = nullptr,
                           std::int64_t ghost_batch_size = 0)
      : torch::nn::BatchNorm2dImpl(channels), ranks_(ranks), ghost_batch_size_(ghost_batch_size) {}
  /// Uses the kernels of fused_norm.h after fuse(), in training mode and if can_fuse(input);
  /// otherwise libtorch's.
  at::Tensor forward(const at::Tensor& input);
  /// Computes relu(forward(input) + residual): with fused kernels, if forward() would use them, as
  /// one op; otherwise with separate ops.
  /// @param residual has input's shape; undefined: nothing is added.
  at::Tensor forward_relu(const at::Tensor& input, const at::Tensor& residual = {}) {
    return forward_relu_fork(input, residual).y;
  }
  /// forward_relu() for two consumers. The two tensors may be the same.
  Forked forward_relu_fork(const at::Tensor& input, const at::Tensor& residual = {});
  /// Computes relu(forward(input) + norm(shortcut)) for two consumers, as one op if both norms use
  /// fused kernels.
  Forked forward_relu_fork(const at::Tensor& input, const at::Tensor& shortcut,
                           BatchNorm2dImpl& norm);
  /// Computes pool(relu(forward(input))), as one op if both use fused kernels.
  Forked forward_relu_pool(const at::Tensor& input, MaxPool2d pool);

  /// Lets the norm use the fused kernels. Has no effect with `ranks` or with ghost batches.
  void fuse();
  /// Why the norm never uses the fused kernels; empty: in training, it uses them if
  /// can_fuse(input) and its weights are float32.
  [[nodiscard]] const std::string& unfused_reason() const { return unfused_reason_; }

 private:
  [[nodiscard]] bool fuses(const at::Tensor& input) const;
  [[nodiscard]] FusedNorm fused_norm_of(bool relu) const;
  void count_batch();
  [[nodiscard]] at::Tensor normalize_chunks(const at::Tensor& input, std::int64_t chunks) const;

  Communicator* ranks_;
  std::int64_t ghost_batch_size_;
  std::string unfused_reason_ = "not requested";
};
TORCH_MODULE(BatchNorm2d);

}  // namespace precast::models::detail
