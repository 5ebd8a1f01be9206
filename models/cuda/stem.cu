#include "models/cuda/activation.cuh"
#include "models/cuda/stem.h"

namespace precast::models {
namespace {

/// Pixels of a thread, loaded before the first one is written.
constexpr int kStemPixels = 4;

template <typename T, int kChannels>
__global__ void stem_kernel(std::int64_t pixels, const T* __restrict__ x,
                            Pack<T, kStemChannels>* y) {
  const std::int64_t first =
      static_cast<std::int64_t>(blockIdx.x) * kStemPixels * kThreads + threadIdx.x;
  Pack<T, kStemChannels> out[kStemPixels];
  PRECAST_UNROLL
  for (int u = 0; u < kStemPixels; ++u) {
    const std::int64_t pixel = first + u * kThreads;
    PRECAST_UNROLL
    for (int c = 0; c < kStemChannels; ++c) {
      round_to(0, out[u].values[c]);
      if (c < kChannels && pixel < pixels) out[u].values[c] = x[pixel * kChannels + c];
    }
  }
  PRECAST_UNROLL
  for (int u = 0; u < kStemPixels; ++u)
    if (first + u * kThreads < pixels) y[first + u * kThreads] = out[u];
}

template <typename T, int kChannels>
void launch_stem(const StemShape& shape, const StemInput& call, cudaStream_t stream) {
  constexpr int kBlock = kStemPixels * kThreads;
  PRECAST_LAUNCH((stem_kernel<T, kChannels>),
                 static_cast<unsigned>((shape.pixels + kBlock - 1) / kBlock), kThreads, 0, stream,
                 shape.pixels, static_cast<const T*>(call.x),
                 static_cast<Pack<T, kStemChannels>*>(call.y));
}

}  // namespace

void stem_input(const StemShape& shape, const StemInput& call, cudaStream_t stream) {
  for_pack(shape.type, 1, [&]<typename T, int V>(T) {
    constexpr decltype(&launch_stem<T, 1>) kLaunches[] = {launch_stem<T, 1>, launch_stem<T, 2>,
                                                          launch_stem<T, 3>};
    kLaunches[shape.channels - 1](shape, call, stream);
  });
}

}  // namespace precast::models
