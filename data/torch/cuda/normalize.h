#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

namespace precast::data {

/// Value i uses the constants at index i mod 3.
struct NormalizeConstants {
  float mean[3];
  float std[3];
};

enum class PixelType { f32, f16, bf16 };

/// Bytes of GPU memory that normalize() reads and writes.
[[nodiscard]] constexpr std::size_t normalize_bytes(std::size_t values, PixelType type) {
  return values * (1 + (type == PixelType::f32 ? sizeof(float) : 2));
}

/// Computes (pixel - mean[c]) / std[c] on the device. The CPU reference is Normalize
/// (data/image/normalize.h): float32 results are bitwise identical; results of other types are
/// these, rounded to nearest even. Images are mirrored earlier, on the host, where the resize does
/// it at no cost. Asynchronous on `stream`.
/// @param in [values] uint8, device memory, aligned to 4 bytes: pixels with three interleaved
/// channels, or with one channel, for which the three constants must be equal.
/// @param out [values] of type `type`, device memory, aligned to 16 bytes.
void normalize(const std::uint8_t* in, std::size_t values, const NormalizeConstants& constants,
               PixelType type, void* out, cudaStream_t stream);

}  // namespace precast::data
