#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "framework/core/export.h"
#include "models/cuda/batch_norm.h"
#include "models/cuda/blur.h"
#include "models/cuda/dual_norm.h"
#include "models/cuda/max_pool.h"
#include "models/cuda/norm_pool.h"
#include "models/cuda/stem.h"
#include "models/detail/fused_norm.h"

namespace precast::models::detail {

/// In builds with CUDA: the functions of models/cuda for one type of device (GPU or, in tests, the
/// host). `on` is any tensor of the call; it determines the device and its stream.
struct FusedKernels {
  template <typename Shape, typename Call>
  using Launch = void (*)(const at::Tensor& on, const Shape& shape, const Call& call);

  bool (*supports)(const at::Tensor& x);
  std::size_t (*norm_mask_bytes)(const BatchNormShape& shape);
  std::size_t (*norm_workspace_bytes)(const BatchNormShape& shape);
  Launch<BatchNormShape, BatchNormForward> norm_forward;
  Launch<BatchNormShape, BatchNormBackward> norm_backward;
  Launch<BlurShape, BlurForward> blur_forward;
  Launch<BlurShape, BlurBackward> blur_backward;
  Launch<MaxPoolShape, MaxPoolForward> max_pool_forward;
  Launch<MaxPoolShape, MaxPoolBackward> max_pool_backward;
  Launch<MaxPoolShape, NormPoolForward> norm_pool_forward;
  Launch<MaxPoolShape, NormPoolBackward> norm_pool_backward;
  Launch<BatchNormShape, DualNormForward> dual_norm_forward;
  Launch<BatchNormShape, DualNormBackward> dual_norm_backward;
  Launch<StemShape, StemInput> stem_input;
};

/// The kernels for GPUs.
[[nodiscard]] PRECAST_API const FusedKernels* gpu_kernels();

/// The kernels that the fused ops call: gpu_kernels(), unless a test has replaced them.
[[nodiscard]] PRECAST_API const FusedKernels* fused_kernels();
/// Replaces the kernels, in tests that run kernels on the host or count calls. Not thread-safe.
/// `kernels` is borrowed.
PRECAST_API void set_fused_kernels(const FusedKernels* kernels);

// Functions that the ops share.

[[nodiscard]] ActivationType activation_type(at::ScalarType type);
[[nodiscard]] BatchNormShape norm_shape(const at::Tensor& x);
/// @param sizes [N, C, H, W]
[[nodiscard]] MaxPoolShape max_pool_shape(at::IntArrayRef sizes, at::ScalarType type);
/// Uninitialised results of a max pool with stride 2, [N, C, (H + 1) / 2, (W + 1) / 2],
/// channels-last, with this dtype.
[[nodiscard]] at::Tensor empty_pooled(const at::Tensor& x, at::ScalarType type);
/// The data of norm.num_batches_tracked; nullptr if it is undefined.
[[nodiscard]] std::int64_t* counter_of(const FusedNorm& norm);
/// Uninitialised memory on x's device.
[[nodiscard]] at::Tensor bytes_like(const at::Tensor& x, std::size_t bytes);
/// `tensor` in the form that kernels read: with this dtype, channels-last, aligned to 16 bytes.
[[nodiscard]] at::Tensor to_kernel_format(const at::Tensor& tensor, at::ScalarType type);
/// The data of to_kernel_format(tensor, type), which `holder` keeps alive; nullptr for an undefined
/// tensor.
[[nodiscard]] const void* optional_data(const at::Tensor& tensor, at::ScalarType type,
                                        at::Tensor& holder);

/// Call it in every backward(): fused ops have no second derivative. @throws std::logic_error in a
/// second differentiation
void require_first_derivative();
/// Another tensor with the same memory, which autograd treats as a separate result of the op.
[[nodiscard]] at::Tensor fork_of(const at::Tensor& tensor);
/// The gradients of a tensor and its fork, which are to be added. If only one of them is defined,
/// it is the first of the pair.
[[nodiscard]] std::pair<at::Tensor, at::Tensor> fork_gradients(
    const std::vector<at::Tensor>& gradients);

}  // namespace precast::models::detail
