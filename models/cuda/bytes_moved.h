#pragma once

#include <cstddef>
#include <cstdint>

#include "models/cuda/activation.h"
#include "models/cuda/batch_norm_tiling.h"

// The bytes of GPU memory that the kernels of this folder read and write, computed from the sizes
// of their arrays. In each launch, a byte counts once if it is read and once if it is written; the
// bytes of a call are the sum over its launches. kernel_bench divides these numbers by times, the
// cost model of a training step (tools/bench/cost) divides them by the bandwidth of copies, and
// kernel_bytes_test compares them with counted accesses. Includes no header of CUDA or libtorch.

namespace precast::models {

/// Bytes of the ReLU mask, which dual_norm_forward() writes, and batch_norm_forward() if there are
/// a residual and a ReLU: one byte for each pack of pack_of() values, with one bit per value. For
/// 16-bit types and a multiple of 8 channels, each byte covers 8 values.
[[nodiscard]] inline std::size_t batch_norm_mask_bytes(const BatchNormShape& shape) {
  return static_cast<std::size_t>(shape.rows) *
         static_cast<std::size_t>(shape.channels / pack_of(shape.type, shape.channels));
}

/// Size of the device memory in which a call stores its partial sums, two floats each. It must be
/// aligned to 8 bytes.
[[nodiscard]] inline std::size_t batch_norm_workspace_bytes(const BatchNormShape& shape) {
  const Tiling tiling = tiling_of(shape, half_pack(pack_of(shape.type, shape.channels)));
  return 2 * sizeof(float) * static_cast<std::size_t>(tiling.chunks) *
         static_cast<std::size_t>(shape.channels);
}

/// Bytes moved by batch_norm_forward(). For activations of Y bytes (16-bit values), they are 3 Y:
/// two reads and one write; with a residual, 4 Y + Y/16. Separate ops for batch norm, addition and
/// ReLU move 5 Y (8 Y with a residual). Partial sums and parameters increase this by up to 9 %; the
/// increase is largest for few rows of 256 or more channels, as at the end of a ResNet.
[[nodiscard]] inline std::size_t batch_norm_forward_bytes(const BatchNormShape& shape,
                                                          bool residual) {
  // Weight, bias, mean and standard deviation are read; the last two are also written. Running
  // statistics are read and written.
  const std::size_t parameters = 10 * sizeof(float) * static_cast<std::size_t>(shape.channels);
  return (residual ? 4 : 3) * activation_bytes(shape) +
         (residual ? batch_norm_mask_bytes(shape) : 0) + 2 * batch_norm_workspace_bytes(shape) +
         parameters;
}

/// Bytes moved by batch_norm_backward(), with Y as above: 5 Y (x and dy read twice, dx written
/// once); with a residual, 6 Y + Y/16. A second gradient (dy_fork) is read as often as dy and adds
/// 2 Y, or Y with a residual. Separate ops move 8 Y, and 3 Y more to add two gradients. Partial
/// sums and parameters increase these numbers, as above.
[[nodiscard]] inline std::size_t batch_norm_backward_bytes(const BatchNormShape& shape,
                                                           bool residual, bool fork = false) {
  const std::size_t passes = (residual ? 6 : 5) + (fork ? (residual ? 1 : 2) : 0);
  // Weight, bias, mean and standard deviation are read twice; the gradients of weight and bias are
  // written and read.
  const std::size_t parameters = 12 * sizeof(float) * static_cast<std::size_t>(shape.channels);
  return passes * activation_bytes(shape) + (residual ? batch_norm_mask_bytes(shape) : 0) +
         2 * batch_norm_workspace_bytes(shape) + parameters;
}

/// Bytes moved by dual_norm_forward(), with Y as above: 5 Y + Y/16. Partial sums and parameters
/// increase this by up to 11 %. Two calls of batch_norm_forward() move 7 Y + Y/16.
[[nodiscard]] inline std::size_t dual_norm_forward_bytes(const BatchNormShape& shape) {
  const std::size_t parameters = 20 * sizeof(float) * static_cast<std::size_t>(shape.channels);
  return 5 * activation_bytes(shape) + batch_norm_mask_bytes(shape) +
         4 * batch_norm_workspace_bytes(shape) + parameters;
}

/// Bytes moved by dual_norm_backward(), with Y as above: 9 Y + Y/16. Two calls of
/// batch_norm_backward() move 11 Y + Y/16. With dy_fork, both move Y more.
[[nodiscard]] inline std::size_t dual_norm_backward_bytes(const BatchNormShape& shape,
                                                          bool fork = false) {
  // For each norm, the kernel of the sums reads mean and standard deviation, two gradients are
  // written, and the last kernel reads all of these and the weight.
  const std::size_t parameters = 18 * sizeof(float) * static_cast<std::size_t>(shape.channels);
  return (fork ? 10 : 9) * activation_bytes(shape) + batch_norm_mask_bytes(shape) +
         4 * batch_norm_workspace_bytes(shape) + parameters;
}

struct BlurShape {
  std::int64_t images = 0;
  int height = 0;
  int width = 0;
  int channels = 0;
  ActivationType type = ActivationType::f32;
};

/// Bytes moved by blur_forward() or blur_backward(). For images of X bytes (N * H * W * C values):
/// 2 X for all pixels, 1.25 X for the pixels at even rows and columns, 2.25 X for both results. Two
/// separate ops move 3.25 X, and 3 X more to add their gradients.
[[nodiscard]] inline std::size_t blur_bytes(const BlurShape& shape, bool all, bool even) {
  const auto pixels = [&](int height, int width) {
    return static_cast<std::size_t>(shape.images * height * width * shape.channels) *
           bytes_of(shape.type);
  };
  return pixels(shape.height, shape.width) * (all ? 2 : 1) +
         (even ? pixels((shape.height + 1) / 2, (shape.width + 1) / 2) : 0);
}

struct MaxPoolShape {
  std::int64_t images = 0;
  int height = 0;
  int width = 0;
  int channels = 0;
  ActivationType type = ActivationType::f32;
};

/// Number of values of the result; `argmax` has one byte for each.
[[nodiscard]] inline std::size_t max_pool_values(const MaxPoolShape& shape) {
  return static_cast<std::size_t>(shape.images * ((shape.height + 1) / 2) *
                                  ((shape.width + 1) / 2) * shape.channels);
}

/// Bytes moved by max_pool_forward() or max_pool_backward(). For images of X bytes (N * H * W * C
/// values of 16 bits): X + X/4 + X/8, and X/4 more with `dy_fork`. torch, whose indices have 64
/// bits, moves 2.25 X, and 0.75 X more to add the gradients of two consumers.
[[nodiscard]] inline std::size_t max_pool_bytes(const MaxPoolShape& shape, bool fork = false) {
  const auto pixels = shape.images * shape.height * shape.width * shape.channels;
  return static_cast<std::size_t>(pixels) * bytes_of(shape.type) +
         max_pool_values(shape) * (bytes_of(shape.type) * (fork ? 2 : 1) + 1);
}

/// The shape of the matrix [rows, channels] that the batch norm before the pool normalises.
[[nodiscard]] inline BatchNormShape norm_shape(const MaxPoolShape& shape) {
  return {shape.images * shape.height * shape.width, shape.channels, shape.type};
}
/// The shape of the matrix [rows, channels] of the pool's results.
[[nodiscard]] inline BatchNormShape pooled_norm_shape(const MaxPoolShape& shape) {
  return {shape.images * ((shape.height + 1) / 2) * ((shape.width + 1) / 2), shape.channels,
          shape.type};
}

/// Bytes moved by norm_pool_forward(). For images of X bytes (16-bit values): 2.625 X. Batch norm
/// and max pool in two calls move 4.375 X.
[[nodiscard]] inline std::size_t norm_pool_forward_bytes(const MaxPoolShape& shape) {
  const BatchNormShape norm = norm_shape(shape);
  const std::size_t parameters = 10 * sizeof(float) * static_cast<std::size_t>(shape.channels);
  return 2 * activation_bytes(norm) + max_pool_values(shape) * (2 * bytes_of(shape.type) + 1) +
         2 * batch_norm_workspace_bytes(norm) + parameters;
}

/// Bytes moved by norm_pool_backward(), with X as above: 2.875 X, and 0.5 X more with `dy_fork`.
/// Max pool and batch norm in two calls move 6.375 X, and 0.25 X more with `dy_fork`.
[[nodiscard]] inline std::size_t norm_pool_backward_bytes(const MaxPoolShape& shape,
                                                          bool fork = false) {
  const std::size_t parameters = 12 * sizeof(float) * static_cast<std::size_t>(shape.channels);
  return 2 * activation_bytes(norm_shape(shape)) +
         max_pool_values(shape) * (bytes_of(shape.type) * (fork ? 5 : 3) + 1) +
         2 * batch_norm_workspace_bytes(pooled_norm_shape(shape)) + parameters;
}

struct StemShape {
  /// N * H * W
  std::int64_t pixels = 0;
  ActivationType type = ActivationType::f32;
};

/// Channels of the images, and of stem_input()'s result.
constexpr int kImageChannels = 3;
constexpr int kPaddedChannels = 4;

/// Bytes moved by stem_input(): 2.33 X for images of X bytes.
[[nodiscard]] inline std::size_t stem_bytes(const StemShape& shape) {
  return static_cast<std::size_t>(shape.pixels * (kImageChannels + kPaddedChannels)) *
         bytes_of(shape.type);
}

}  // namespace precast::models
