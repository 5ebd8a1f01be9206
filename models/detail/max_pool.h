#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <cstdint>

#include "framework/core/export.h"
#include "models/detail/fused_norm.h"

namespace precast::models::detail {

/// A module without state that computes at::max_pool2d with square windows.
class PRECAST_API MaxPool2dImpl : public torch::nn::Module {
 public:
  MaxPool2dImpl(std::int64_t kernel, std::int64_t stride, std::int64_t padding)
      : kernel_(kernel), stride_(stride), padding_(padding) {}

  at::Tensor forward(const at::Tensor& x) { return forward_fork(x).y; }
  /// The result for two consumers. The two tensors may be the same.
  Forked forward_fork(const at::Tensor& x);

  /// Uses the kernels of fused_max_pool.h in training if can_fuse(x). Has an effect only for
  /// windows of 3 x 3 with stride 2 and padding 1.
  void fuse() { fused_ = kernel_ == 3 && stride_ == 2 && padding_ == 1; }
  [[nodiscard]] bool is_fused() const { return fused_; }
  /// Whether forward(x) uses these kernels.
  [[nodiscard]] bool fuses(const at::Tensor& x) const {
    return fused_ && is_training() && can_fuse(x);
  }

 private:
  std::int64_t kernel_, stride_, padding_;
  bool fused_ = false;
};
TORCH_MODULE(MaxPool2d);

}  // namespace precast::models::detail
