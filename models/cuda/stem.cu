#include "models/cuda/activation.cuh"
#include "models/cuda/stem.h"

namespace precast::models {
namespace {

/// Sizes of the result; each thread writes one of its pixels.
struct StemGrid {
  unsigned pixels;
  unsigned rows;
  unsigned columns;
};

template <typename T, int kChannels>
__global__ void stem_kernel(StemGrid grid, const T* __restrict__ x, void* y) {
  constexpr unsigned kBefore = 2;
  constexpr int kPack = 16 / sizeof(T), kPacks = kStemChannels / kPack;
  const unsigned pixel = blockIdx.x * kThreads + threadIdx.x;
  if (pixel >= grid.pixels) return;
  const unsigned line = pixel / grid.columns;
  const unsigned column = pixel % grid.columns - kBefore, row = line % grid.rows - kBefore;
  const unsigned rows = grid.rows - kStemBorder, columns = grid.columns - kStemBorder;
  T out[kStemChannels];
  PRECAST_UNROLL
  for (int v = 0; v < kStemChannels; ++v) round_to(0, out[v]);
  // Above the first row, `row` is a large number.
  if (row < rows && column < columns) {
    const std::int64_t first =
        (static_cast<std::int64_t>(line / grid.rows) * 2 * rows + 2 * row) * 2 * columns +
        2 * column;
    PRECAST_UNROLL
    for (int place = 0; place < 4; ++place) {
      const std::int64_t from =
          first + place / 2 * 2 * static_cast<std::int64_t>(columns) + place % 2;
      PRECAST_UNROLL
      for (int c = 0; c < kChannels; ++c) out[4 * place + c] = x[from * kChannels + c];
    }
  }
  auto* const to = static_cast<Pack<T, kPack>*>(y) + static_cast<std::int64_t>(pixel) * kPacks;
  PRECAST_UNROLL
  for (int p = 0; p < kPacks; ++p) {
    Pack<T, kPack> pack;
    PRECAST_UNROLL
    for (int v = 0; v < kPack; ++v) pack.values[v] = out[p * kPack + v];
    to[p] = pack;
  }
}

template <typename T, int kChannels>
void launch_stem(const StemGrid& grid, const StemInput& call, cudaStream_t stream) {
  PRECAST_LAUNCH((stem_kernel<T, kChannels>), (grid.pixels + kThreads - 1) / kThreads, kThreads, 0,
                 stream, grid, static_cast<const T*>(call.x), call.y);
}

}  // namespace

void stem_input(const StemShape& shape, const StemInput& call, cudaStream_t stream) {
  const auto rows = static_cast<unsigned>(shape.height / 2 + kStemBorder);
  const auto columns = static_cast<unsigned>(shape.width / 2 + kStemBorder);
  const StemGrid grid{static_cast<unsigned>(shape.images) * rows * columns, rows, columns};
  for_pack(shape.type, 1, [&]<typename T, int V>(T) {
    constexpr decltype(&launch_stem<T, 1>) kLaunches[] = {launch_stem<T, 1>, launch_stem<T, 2>,
                                                          launch_stem<T, 3>, launch_stem<T, 4>};
    kLaunches[shape.channels - 1](grid, call, stream);
  });
}

}  // namespace precast::models
