#include "models/cuda/activation.cuh"
#include "models/cuda/stem.h"

namespace precast::models {
namespace {

/// Number of pixels per thread. A thread loads all of them before it writes the first one.
constexpr int kStemPixels = 4;

template <typename T>
__global__ void stem_kernel(std::int64_t pixels, const T* __restrict__ x,
                            Pack<T, kPaddedChannels>* y) {
  const std::int64_t first =
      static_cast<std::int64_t>(blockIdx.x) * kStemPixels * kThreads + threadIdx.x;
  Pack<T, kPaddedChannels> out[kStemPixels];
  PRECAST_UNROLL
  for (int u = 0; u < kStemPixels; ++u) {
    const std::int64_t pixel = first + u * kThreads;
    PRECAST_UNROLL
    for (int c = 0; c < kPaddedChannels; ++c) {
      round_to(0, out[u].values[c]);
      if (c < kImageChannels && pixel < pixels) out[u].values[c] = x[pixel * kImageChannels + c];
    }
  }
  PRECAST_UNROLL
  for (int u = 0; u < kStemPixels; ++u)
    if (first + u * kThreads < pixels) y[first + u * kThreads] = out[u];
}

}  // namespace

void stem_input(const StemShape& shape, const StemInput& call, cudaStream_t stream) {
  for_pack(shape.type, 1, [&]<typename T, int V>(T) {
    constexpr int kBlock = kStemPixels * kThreads;
    PRECAST_LAUNCH(stem_kernel<T>, static_cast<unsigned>((shape.pixels + kBlock - 1) / kBlock),
                   kThreads, 0, stream, shape.pixels, static_cast<const T*>(call.x),
                   static_cast<Pack<T, kPaddedChannels>*>(call.y));
  });
}

}  // namespace precast::models
