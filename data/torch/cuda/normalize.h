#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace precast::data {

struct NormalizeConstants {
  float mean[3];
  float std[3];
};

enum class PixelType { f32, f16, bf16 };

/// (pixel - mean[c]) / std[c] on the device; the CPU reference is Normalize
/// (data/image/normalize.h): equal bit for bit in float32, and to it rounded to nearest even
/// in the others. Images are mirrored before, on the host, where it costs nothing beside the
/// resize. Asynchronous on `stream`.
/// @param in  [pixels, 3] uint8, device memory, aligned to 4 bytes.
/// @param out [pixels, 3] of type `type`, device memory, aligned to 16 bytes.
void normalize(const std::uint8_t* in, std::size_t pixels, const NormalizeConstants& constants,
               PixelType type, void* out, cudaStream_t stream);

}  // namespace precast::data
