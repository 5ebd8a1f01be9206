#include "tools/bench/kernels/batch_norm_case.h"

#include <fmt/core.h>

#include "models/cuda/dual_norm.h"

namespace precast::tools {
namespace {

using models::ActivationType;
using models::BatchNormShape;

constexpr int kImages = 256;
constexpr int kSizePx = 56;
constexpr int kChannels = 256;

/// The memory of a forward and a backward pass.
struct Buffers {
  BatchNormShape shape;
  std::size_t bytes;
  std::shared_ptr<void> x, residual, y, dy, fork, dx, d_residual, mask, workspace;
  /// [8, channels] float32: weight, bias, mean, inv_std, d_weight, d_bias, running statistics
  std::shared_ptr<void> channels;

  explicit Buffers(ActivationType type)
      : shape{std::int64_t{kImages} * kSizePx * kSizePx, kChannels, type},
        bytes(activation_bytes(shape)),
        x(gpu_memory(bytes)),
        residual(gpu_memory(bytes)),
        y(gpu_memory(bytes)),
        dy(gpu_memory(bytes)),
        fork(gpu_memory(bytes)),
        dx(gpu_memory(bytes)),
        d_residual(gpu_memory(bytes)),
        mask(gpu_memory(batch_norm_mask_bytes(shape))),
        workspace(gpu_memory(batch_norm_workspace_bytes(shape))),
        channels(gpu_memory(8 * kChannels * sizeof(float))) {}

  [[nodiscard]] float* row(int index) const {
    return static_cast<float*>(channels.get()) + std::size_t{kChannels} * index;
  }
};

std::string describe(ActivationType type, bool residual) {
  return fmt::format("{} x {} x {} x {}, {}-bit floats{}", kImages, kSizePx, kSizePx, kChannels,
                     type == ActivationType::f32 ? 32 : 16, residual ? ", with a residual" : "");
}

}  // namespace

KernelCase batch_norm_forward_case(ActivationType type, bool residual) {
  const Buffers buffers(type);
  const std::size_t moved = batch_norm_forward_bytes(buffers.shape, residual);
  return {describe(type, residual), moved, [=](cudaStream_t stream) {
            models::batch_norm_forward(buffers.shape,
                                       {.x = buffers.x.get(),
                                        .residual = residual ? buffers.residual.get() : nullptr,
                                        .weight = buffers.row(0),
                                        .bias = buffers.row(1),
                                        .running_mean = buffers.row(6),
                                        .running_var = buffers.row(7),
                                        .y = buffers.y.get(),
                                        .mean = buffers.row(2),
                                        .inv_std = buffers.row(3),
                                        .mask = static_cast<std::uint8_t*>(buffers.mask.get()),
                                        .workspace = buffers.workspace.get()},
                                       stream);
          }};
}

KernelCase batch_norm_backward_case(ActivationType type, bool residual) {
  const Buffers buffers(type);
  // In a ResNet, two ops read the sum of a block and its shortcut: the gradients of both are added.
  const std::size_t moved = batch_norm_backward_bytes(buffers.shape, residual, residual);
  return {describe(type, residual) + (residual ? " and a fork" : ""), moved,
          [=](cudaStream_t stream) {
            models::batch_norm_backward(
                buffers.shape,
                {.x = buffers.x.get(),
                 .dy = buffers.dy.get(),
                 .dy_fork = residual ? buffers.fork.get() : nullptr,
                 .weight = buffers.row(0),
                 .bias = buffers.row(1),
                 .mean = buffers.row(2),
                 .inv_std = buffers.row(3),
                 .mask = residual ? static_cast<const std::uint8_t*>(buffers.mask.get()) : nullptr,
                 .dx = buffers.dx.get(),
                 .d_residual = residual ? buffers.d_residual.get() : nullptr,
                 .d_weight = buffers.row(4),
                 .d_bias = buffers.row(5),
                 .workspace = buffers.workspace.get()},
                stream);
          }};
}

KernelCase dual_norm_forward_case(ActivationType type) {
  const Buffers buffers(type), shortcut(type);
  return {describe(type, false) + ", two norms", dual_norm_forward_bytes(buffers.shape),
          [=](cudaStream_t stream) {
            const auto side = [](const Buffers& of) {
              return models::BatchNormForward{.x = of.x.get(),
                                              .weight = of.row(0),
                                              .bias = of.row(1),
                                              .running_mean = of.row(6),
                                              .running_var = of.row(7),
                                              .mean = of.row(2),
                                              .inv_std = of.row(3),
                                              .workspace = of.workspace.get()};
            };
            models::DualNormForward call{side(buffers), side(shortcut)};
            call.norm.y = buffers.y.get();
            call.norm.mask = static_cast<std::uint8_t*>(buffers.mask.get());
            dual_norm_forward(buffers.shape, call, stream);
          }};
}

KernelCase dual_norm_backward_case(ActivationType type) {
  const Buffers buffers(type), shortcut(type);
  return {describe(type, false) + ", two norms, with a fork",
          dual_norm_backward_bytes(buffers.shape, /*fork=*/true), [=](cudaStream_t stream) {
            const auto side = [](const Buffers& of) {
              return models::BatchNormBackward{.x = of.x.get(),
                                               .weight = of.row(0),
                                               .bias = of.row(1),
                                               .mean = of.row(2),
                                               .inv_std = of.row(3),
                                               .dx = of.dx.get(),
                                               .d_weight = of.row(4),
                                               .d_bias = of.row(5),
                                               .workspace = of.workspace.get()};
            };
            models::DualNormBackward call{side(buffers), side(shortcut)};
            call.norm.dy = buffers.dy.get();
            call.norm.dy_fork = buffers.fork.get();
            call.norm.mask = static_cast<const std::uint8_t*>(buffers.mask.get());
            call.norm.d_residual = buffers.d_residual.get();
            dual_norm_backward(buffers.shape, call, stream);
          }};
}

}  // namespace precast::tools
