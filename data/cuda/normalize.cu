#include <cuda_fp16.h>

#include "data/cuda/normalize.h"

namespace precast::data {
namespace {

constexpr int kThreads = 256;

__device__ void store(float* out, float value) {
  *out = value;
}
__device__ void store(__half* out, float value) {
  *out = __float2half_rn(value);
}

/// One thread makes four pixels: twelve bytes in, three aligned 32-bit loads.
template <typename Out>
__global__ void normalize_kernel(const std::uint8_t* __restrict__ in, std::size_t pixels,
                                 NormalizeConstants constants, Out* __restrict__ out) {
  const std::size_t first = (static_cast<std::size_t>(blockIdx.x) * blockDim.x + threadIdx.x) * 4;
  if (first >= pixels) return;
  const std::size_t values = (pixels - first < 4 ? pixels - first : 4) * 3;
  std::uint8_t bytes[12];
  if (values == 12) {
    const auto* words = reinterpret_cast<const std::uint32_t*>(in + first * 3);
    for (int w = 0; w < 3; ++w) reinterpret_cast<std::uint32_t*>(bytes)[w] = words[w];
  } else {
    for (std::size_t v = 0; v < values; ++v) bytes[v] = in[first * 3 + v];
  }
  for (std::size_t v = 0; v < values; ++v) {
    const int channel = static_cast<int>(v % 3);
    store(out + first * 3 + v,
          (static_cast<float>(bytes[v]) - constants.mean[channel]) / constants.std[channel]);
  }
}

template <typename Out>
void launch(const std::uint8_t* in, std::size_t pixels, const NormalizeConstants& constants,
            Out* out, cudaStream_t stream) {
  if (pixels == 0) return;
  const std::size_t threads = (pixels + 3) / 4;
  const auto blocks = static_cast<unsigned>((threads + kThreads - 1) / kThreads);
  normalize_kernel<<<blocks, kThreads, 0, stream>>>(in, pixels, constants, out);
}

}  // namespace

void normalize_to_f32(const std::uint8_t* in, std::size_t pixels,
                      const NormalizeConstants& constants, float* out, cudaStream_t stream) {
  launch(in, pixels, constants, out, stream);
}

void normalize_to_f16(const std::uint8_t* in, std::size_t pixels,
                      const NormalizeConstants& constants, void* out, cudaStream_t stream) {
  launch(in, pixels, constants, static_cast<__half*>(out), stream);
}

}  // namespace precast::data
