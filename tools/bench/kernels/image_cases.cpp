#include "tools/bench/kernels/image_cases.h"

#include <fmt/core.h>

#include "models/cuda/blur.h"
#include "models/cuda/max_pool.h"
#include "models/cuda/norm_pool.h"
#include "models/cuda/stem.h"

namespace precast::tools {
namespace {

using models::ActivationType;

constexpr int kImages = 1024;
constexpr int kImagePx = 160;
/// Side of the activations after the first convolution, and after the max pool.
constexpr int kStemPx = 80, kPooledPx = 40;
constexpr int kChannels = 64;

models::MaxPoolShape pool_shape(ActivationType type) {
  return {kImages, kStemPx, kStemPx, kChannels, type};
}

models::BlurShape blur_shape(ActivationType type) {
  return {kImages, kPooledPx, kPooledPx, kChannels, type};
}

std::string describe(int side, int channels, ActivationType type) {
  return fmt::format("{} x {} x {} x {}, {}-bit floats", kImages, side, side, channels,
                     8 * bytes_of(type));
}

std::shared_ptr<void> activations(int side, ActivationType type) {
  return gpu_memory(static_cast<std::size_t>(kImages) * static_cast<std::size_t>(side * side) *
                    kChannels * bytes_of(type));
}

}  // namespace

KernelCase max_pool_forward_case(ActivationType type) {
  const std::shared_ptr<void> x = activations(kStemPx, type), y = activations(kStemPx / 2, type),
                              argmax = gpu_memory(max_pool_values(pool_shape(type)));
  return {describe(kStemPx, kChannels, type), max_pool_bytes(pool_shape(type)),
          [=](cudaStream_t stream) {
            max_pool_forward(
                pool_shape(type),
                {.x = x.get(), .y = y.get(), .argmax = static_cast<std::uint8_t*>(argmax.get())},
                stream);
          }};
}

KernelCase max_pool_backward_case(ActivationType type) {
  const std::shared_ptr<void> dx = activations(kStemPx, type), dy = activations(kStemPx / 2, type),
                              fork = activations(kStemPx / 2, type),
                              argmax = gpu_memory(max_pool_values(pool_shape(type)));
  return {describe(kStemPx, kChannels, type), max_pool_bytes(pool_shape(type), /*fork=*/true),
          [=](cudaStream_t stream) {
            max_pool_backward(pool_shape(type),
                              {.dy = dy.get(),
                               .dy_fork = fork.get(),
                               .argmax = static_cast<const std::uint8_t*>(argmax.get()),
                               .dx = dx.get()},
                              stream);
          }};
}

namespace {

/// The memory of a batch norm with a max pool, forward and backward.
struct NormPool {
  models::MaxPoolShape shape;
  std::shared_ptr<void> x, dx, y, dy, fork, largest, argmax, workspace;
  /// [8, channels] float32: weight, bias, mean, inv_std, d_weight, d_bias, running statistics
  std::shared_ptr<void> channels = gpu_memory(8 * kChannels * sizeof(float));

  explicit NormPool(ActivationType type)
      : shape(pool_shape(type)),
        x(activations(kStemPx, type)),
        dx(activations(kStemPx, type)),
        y(activations(kStemPx / 2, type)),
        dy(activations(kStemPx / 2, type)),
        fork(activations(kStemPx / 2, type)),
        largest(activations(kStemPx / 2, type)),
        argmax(gpu_memory(max_pool_values(shape))),
        workspace(gpu_memory(batch_norm_workspace_bytes(norm_shape(shape)))) {}
  [[nodiscard]] float* row(int index) const {
    return static_cast<float*>(channels.get()) + std::size_t{kChannels} * index;
  }
};

}  // namespace

KernelCase norm_pool_forward_case(ActivationType type) {
  const NormPool memory(type);
  return {describe(kStemPx, kChannels, type), norm_pool_forward_bytes(memory.shape),
          [=](cudaStream_t stream) {
            norm_pool_forward(memory.shape,
                              {.norm = {.x = memory.x.get(),
                                        .weight = memory.row(0),
                                        .bias = memory.row(1),
                                        .running_mean = memory.row(6),
                                        .running_var = memory.row(7),
                                        .y = memory.y.get(),
                                        .mean = memory.row(2),
                                        .inv_std = memory.row(3),
                                        .workspace = memory.workspace.get()},
                               .largest = memory.largest.get(),
                               .argmax = static_cast<std::uint8_t*>(memory.argmax.get())},
                              stream);
          }};
}

KernelCase norm_pool_backward_case(ActivationType type) {
  const NormPool memory(type);
  return {describe(kStemPx, kChannels, type), norm_pool_backward_bytes(memory.shape, true),
          [=](cudaStream_t stream) {
            norm_pool_backward(memory.shape,
                               {.norm = {.x = memory.x.get(),
                                         .dy = memory.dy.get(),
                                         .dy_fork = memory.fork.get(),
                                         .weight = memory.row(0),
                                         .bias = memory.row(1),
                                         .mean = memory.row(2),
                                         .inv_std = memory.row(3),
                                         .dx = memory.dx.get(),
                                         .d_weight = memory.row(4),
                                         .d_bias = memory.row(5),
                                         .workspace = memory.workspace.get()},
                                .largest = memory.largest.get(),
                                .argmax = static_cast<const std::uint8_t*>(memory.argmax.get())},
                               stream);
          }};
}

KernelCase blur_forward_case(ActivationType type) {
  const std::shared_ptr<void> x = activations(kPooledPx, type), y = activations(kPooledPx, type),
                              even = activations(kPooledPx / 2, type);
  return {describe(kPooledPx, kChannels, type), blur_bytes(blur_shape(type), true, true),
          [=](cudaStream_t stream) {
            blur_forward(blur_shape(type), {.x = x.get(), .y = y.get(), .y_even = even.get()},
                         stream);
          }};
}

KernelCase blur_backward_case(ActivationType type) {
  const std::shared_ptr<void> dx = activations(kPooledPx, type), dy = activations(kPooledPx, type),
                              even = activations(kPooledPx / 2, type);
  return {describe(kPooledPx, kChannels, type), blur_bytes(blur_shape(type), true, true),
          [=](cudaStream_t stream) {
            blur_backward(blur_shape(type), {.dy = dy.get(), .dy_even = even.get(), .dx = dx.get()},
                          stream);
          }};
}

KernelCase stem_case(ActivationType type) {
  const models::StemShape shape{std::int64_t{kImages} * kImagePx * kImagePx, type};
  const std::size_t written = stem_bytes(shape) / 7 * 4;
  const std::shared_ptr<void> x = gpu_memory(stem_bytes(shape) - written), y = gpu_memory(written);
  return {describe(kImagePx, 3, type), stem_bytes(shape),
          [=](cudaStream_t stream) { stem_input(shape, {.x = x.get(), .y = y.get()}, stream); }};
}

}  // namespace precast::tools
