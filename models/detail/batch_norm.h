#pragma once

#include <torch/nn/modules/batchnorm.h>

#include "framework/api/communicator.h"
#include "framework/core/export.h"

namespace precast::models::detail {

/// Batch normalisation of [N, C, H, W]; with `ranks`, the statistics of a training step are
/// computed over the batches of all ranks (SyncBatchNorm of torch and apex; Peng et al., MegDet,
/// CVPR 2018). Names, parameters and buffers are those of torch::nn::BatchNorm2d.
class PRECAST_API BatchNorm2dImpl : public torch::nn::BatchNorm2dImpl {
 public:
  /// @param ranks null: statistics of each rank's own batch. Borrowed.
  explicit BatchNorm2dImpl(std::int64_t channels, Communicator* ranks = nullptr)
      : torch::nn::BatchNorm2dImpl(channels), ranks_(ranks) {}
  at::Tensor forward(const at::Tensor& input);

 private:
  Communicator* ranks_;
};
TORCH_MODULE(BatchNorm2d);

}  // namespace precast::models::detail
