#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>

#include "tests/support/noise.h"

namespace precast::test {

/// [shape] float32 on the CPU, filled with noise(stream, i) * scale in row-major order.
inline at::Tensor noise_tensor(std::uint32_t stream, at::IntArrayRef shape, double scale = 1) {
  at::Tensor tensor = at::empty(shape);
  float* values = tensor.mutable_data_ptr<float>();
  for (std::int64_t i = 0; i < tensor.numel(); ++i)
    values[i] = static_cast<float>(noise(stream, static_cast<std::uint32_t>(i)) * scale);
  return tensor;
}

}  // namespace precast::test
