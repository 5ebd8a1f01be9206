#pragma once

#include <torch/nn/modules/batchnorm.h>

#include "framework/api/communicator.h"
#include "framework/core/export.h"

namespace precast::models::detail {

/// Batch normalisation of [N, C, H, W]; with `ranks`, the statistics of a training step are
/// computed over the batches of all ranks (SyncBatchNorm of torch and apex; Peng et al., MegDet,
/// CVPR 2018); with `ghost_batch_size`, over chunks of the rank's own batch (ghost batch norm;
/// Hoffer et al., NeurIPS 2017), as Composer's GhostBatchNorm: ceil(N / size) chunks of nearly
/// equal size, each of which moves the running statistics by momentum / chunks. Composer counts
/// chunks in num_batches_tracked, this class batches. Names, parameters and buffers are those of
/// torch::nn::BatchNorm2d.
class PRECAST_API BatchNorm2dImpl : public torch::nn::BatchNorm2dImpl {
 public:
  /// @param ranks null: statistics of each rank's own batch. Borrowed.
  /// @param ghost_batch_size samples per chunk; 0: one chunk. Has no effect with `ranks`.
  explicit BatchNorm2dImpl(std::int64_t channels, Communicator* ranks = nullptr,
                           std::int64_t ghost_batch_size = 0)
      : torch::nn::BatchNorm2dImpl(channels), ranks_(ranks), ghost_batch_size_(ghost_batch_size) {}
  at::Tensor forward(const at::Tensor& input);

 private:
  [[nodiscard]] at::Tensor normalize_chunks(const at::Tensor& input, std::int64_t chunks) const;

  Communicator* ranks_;
  std::int64_t ghost_batch_size_;
};
TORCH_MODULE(BatchNorm2d);

}  // namespace precast::models::detail
