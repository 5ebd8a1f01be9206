#pragma once

#include <cstddef>
#include <cstdint>

#include "models/cuda/activation.h"
#include "models/cuda/batch_norm_tiling.h"

// The bytes of GPU memory that the kernels of this folder read and write, from the sizes of their
// arrays: each byte that a launch reads counts once, and so does each that it writes; a call counts
// the sum of its launches. kernel_bench divides these numbers by times, the cost model of a
// training step (tools/bench/cost) divides them by the rate of copies, and kernel_bytes_test
// compares them with counted accesses. Includes no header of CUDA or libtorch.

namespace precast::models {

/// Bytes of the ReLU mask that batch_norm_forward() writes if there is a residual: one bit per
/// value of a 16-bit type, in bytes of up to 8 values.
[[nodiscard]] inline std::size_t batch_norm_mask_bytes(const BatchNormShape& shape) {
  return static_cast<std::size_t>(shape.rows) *
         static_cast<std::size_t>(shape.channels / pack_of(shape.type, shape.channels));
}

/// Bytes of device memory that a call uses for partial sums, of two floats each; aligned to 8
/// bytes.
[[nodiscard]] inline std::size_t batch_norm_workspace_bytes(const BatchNormShape& shape) {
  const Tiling tiling = tiling_of(shape, pack_of(shape.type, shape.channels));
  return 2 * sizeof(float) * static_cast<std::size_t>(tiling.chunks) *
         static_cast<std::size_t>(shape.channels);
}

/// For activations of Y bytes of 16-bit values, 3 Y: two reads, one write; with a residual 4 Y +
/// Y/16. Separate ops of batch norm, addition and ReLU move 5 Y (8 Y). Partial sums and parameters
/// are up to 9 % more: most with few rows of 256 or more channels, as at the end of a ResNet.
[[nodiscard]] inline std::size_t batch_norm_forward_bytes(const BatchNormShape& shape,
                                                          bool residual) {
  // Weight, bias, mean and standard deviation are read, the last two written; running statistics
  // are both.
  const std::size_t parameters = 10 * sizeof(float) * static_cast<std::size_t>(shape.channels);
  return (residual ? 4 : 3) * activation_bytes(shape) +
         (residual ? batch_norm_mask_bytes(shape) : 0) + 2 * batch_norm_workspace_bytes(shape) +
         parameters;
}

/// 5 Y: x and dy twice, dx once; with a residual 6 Y + Y/16. A second gradient (dy_fork) is read as
/// often as dy: 2 Y more, with a residual Y. Separate ops move 8 Y (9 Y), and 3 Y for the sum of
/// two gradients. Partial sums and parameters as above.
[[nodiscard]] inline std::size_t batch_norm_backward_bytes(const BatchNormShape& shape,
                                                           bool residual, bool fork = false) {
  const std::size_t passes = (residual ? 6 : 5) + (fork ? (residual ? 1 : 2) : 0);
  // Weight, bias, mean and standard deviation are read twice; the gradients of the first two are
  // written and read.
  const std::size_t parameters = 12 * sizeof(float) * static_cast<std::size_t>(shape.channels);
  return passes * activation_bytes(shape) + (residual ? batch_norm_mask_bytes(shape) : 0) +
         2 * batch_norm_workspace_bytes(shape) + parameters;
}

struct BlurShape {
  std::int64_t images = 0;
  int height = 0;
  int width = 0;
  int channels = 0;
  ActivationType type = ActivationType::f32;
};

/// Of a forward or backward pass. For images of X bytes (N * H * W * C values): 2 X for all pixels,
/// 1.25 X for the even ones, 2.25 X for both. Two separate ops move 3.25 X and add two gradients
/// with 3 X.
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

/// Of a forward or backward pass. For images of X bytes (N * H * W * C values of 16 bits): X + X/4
/// + X/8, and X/4 more with `dy_fork`. torch, with indices of 64 bits, moves 2.25 X and adds the
/// gradients of two consumers with 0.75 X.
[[nodiscard]] inline std::size_t max_pool_bytes(const MaxPoolShape& shape, bool fork = false) {
  const auto pixels = shape.images * shape.height * shape.width * shape.channels;
  return static_cast<std::size_t>(pixels) * bytes_of(shape.type) +
         max_pool_values(shape) * (bytes_of(shape.type) * (fork ? 2 : 1) + 1);
}

}  // namespace precast::models
