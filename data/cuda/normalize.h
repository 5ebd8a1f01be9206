#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace precast::data {

/// (pixel - mean[c]) / std[c] on the device; the CPU reference is Normalize
/// (data/transforms/normalize.h), equal bit for bit in float32. Asynchronous on `stream`.
struct NormalizeConstants {
  float mean[3];
  float std[3];
};

/// @param in  [pixels, 3] uint8, device memory. @param out [pixels, 3] float32 or IEEE float16,
/// device memory.
void normalize_to_f32(const std::uint8_t* in, std::size_t pixels,
                      const NormalizeConstants& constants, float* out, cudaStream_t stream);
void normalize_to_f16(const std::uint8_t* in, std::size_t pixels,
                      const NormalizeConstants& constants, void* out, cudaStream_t stream);

}  // namespace precast::data
