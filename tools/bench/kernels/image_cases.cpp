#include "tools/bench/kernels/image_cases.h"

#include <fmt/core.h>

#include "models/cuda/blur.h"
#include "models/cuda/max_pool.h"
#include "models/cuda/stem.h"

namespace precast::tools {
namespace {

using models::ActivationType;

constexpr int kImages = 1024;
constexpr int kImagePx = 160;
/// After the first convolution, and after the max pool.
constexpr int kPooledPx = 80, kBlurredPx = 40;
constexpr int kChannels = 64;

models::MaxPoolShape pool_shape(ActivationType type) {
  return {kImages, kPooledPx, kPooledPx, kChannels, type};
}

models::BlurShape blur_shape(ActivationType type) {
  return {kImages, kBlurredPx, kBlurredPx, kChannels, type};
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
  const std::shared_ptr<void> x = activations(kPooledPx, type),
                              y = activations(kPooledPx / 2, type),
                              argmax = gpu_memory(max_pool_values(pool_shape(type)));
  return {describe(kPooledPx, kChannels, type), max_pool_bytes(pool_shape(type)),
          [=](cudaStream_t stream) {
            max_pool_forward(
                pool_shape(type),
                {.x = x.get(), .y = y.get(), .argmax = static_cast<std::uint8_t*>(argmax.get())},
                stream);
          }};
}

KernelCase max_pool_backward_case(ActivationType type) {
  const std::shared_ptr<void> dx = activations(kPooledPx, type),
                              dy = activations(kPooledPx / 2, type),
                              fork = activations(kPooledPx / 2, type),
                              argmax = gpu_memory(max_pool_values(pool_shape(type)));
  return {describe(kPooledPx, kChannels, type), max_pool_bytes(pool_shape(type), /*fork=*/true),
          [=](cudaStream_t stream) {
            max_pool_backward(pool_shape(type),
                              {.dy = dy.get(),
                               .dy_fork = fork.get(),
                               .argmax = static_cast<const std::uint8_t*>(argmax.get()),
                               .dx = dx.get()},
                              stream);
          }};
}

KernelCase blur_forward_case(ActivationType type) {
  const std::shared_ptr<void> x = activations(kBlurredPx, type), y = activations(kBlurredPx, type),
                              even = activations(kBlurredPx / 2, type);
  return {describe(kBlurredPx, kChannels, type), blur_bytes(blur_shape(type), true, true),
          [=](cudaStream_t stream) {
            blur_forward(blur_shape(type), {.x = x.get(), .y = y.get(), .y_even = even.get()},
                         stream);
          }};
}

KernelCase blur_backward_case(ActivationType type) {
  const std::shared_ptr<void> dx = activations(kBlurredPx, type),
                              dy = activations(kBlurredPx, type),
                              even = activations(kBlurredPx / 2, type);
  return {describe(kBlurredPx, kChannels, type), blur_bytes(blur_shape(type), true, true),
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
