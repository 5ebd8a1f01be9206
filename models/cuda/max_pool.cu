#include "models/cuda/activation.cuh"
#include "models/cuda/max_pool.h"

namespace precast::models {
namespace {

/// How the images are divided between threads: consecutive threads compute consecutive channels,
/// then the next column, the next row and the next image.
struct Windows {
  int height;
  int width;
  /// Packs per pixel.
  int groups;
  /// Size of the result.
  int rows;
  int columns;
  /// Packs of all results.
  unsigned count;
};

Windows windows_of(const MaxPoolShape& shape, int pack) {
  return {shape.height,
          shape.width,
          shape.channels / pack,
          (shape.height + 1) / 2,
          (shape.width + 1) / 2,
          static_cast<unsigned>(max_pool_values(shape) / static_cast<unsigned>(pack))};
}

unsigned blocks_of(const Windows& windows) {
  return windows.count / kThreads + (windows.count % kThreads != 0 ? 1 : 0);
}

/// The window, and the pack of its channels, that a thread computes.
struct Window {
  std::int64_t image;
  int row;
  int column;
  int group;
  /// Whether the thread is beyond the last window.
  bool outside;
  __device__ explicit Window(const Windows& windows) {
    // Unsigned 32-bit, because 64-bit division is slow.
    const unsigned index = blockIdx.x * kThreads + threadIdx.x;
    const auto groups = static_cast<unsigned>(windows.groups);
    const auto columns = static_cast<unsigned>(windows.columns);
    const auto rows = static_cast<unsigned>(windows.rows);
    outside = index >= windows.count;
    group = static_cast<int>(index % groups);
    column = static_cast<int>(index / groups % columns);
    row = static_cast<int>(index / groups / columns % rows);
    image = index / groups / columns / rows;
  }
};

template <typename T, int V>
__global__ void max_kernel(Windows windows, const Pack<T, V>* __restrict__ x, Pack<T, V>* y,
                           Pack<std::uint8_t, V>* argmax) {
  const Window window(windows);
  if (window.outside) return;
  float largest[V];
  Pack<T, V> out;
  Pack<std::uint8_t, V> at;
  bool first = true;
  PRECAST_UNROLL
  for (int index = 0; index < 9; ++index) {
    const int row = 2 * window.row + index / 3 - 1;
    const int column = 2 * window.column + index % 3 - 1;
    if (row < 0 || row >= windows.height || column < 0 || column >= windows.width) continue;
    const std::int64_t line = window.image * windows.height + row;
    const Pack<T, V> in = x[(line * windows.width + column) * windows.groups + window.group];
    PRECAST_UNROLL
    for (int v = 0; v < V; ++v) {
      const float value = to_float(in.values[v]);
      const bool is_nan = value != value;
      if (!first && !(value > largest[v]) && !is_nan) continue;
      largest[v] = value;
      out.values[v] = in.values[v];
      at.values[v] = static_cast<std::uint8_t>(index);
    }
    first = false;
  }
  const std::int64_t line = window.image * windows.rows + window.row;
  const std::int64_t to = (line * windows.columns + window.column) * windows.groups + window.group;
  y[to] = out;
  argmax[to] = at;
}

/// Computes the gradients of the 2 x 2 pixels (2 row + a, 2 column + b). The windows that contain
/// them are (row + i, column + j), for a, b, i, j in {0, 1}.
template <typename T, int V>
__global__ void max_gradient_kernel(Windows windows, const Pack<T, V>* __restrict__ dy,
                                    const Pack<T, V>* __restrict__ fork,
                                    const Pack<std::uint8_t, V>* __restrict__ argmax,
                                    Pack<T, V>* dx) {
  const Window window(windows);
  if (window.outside) return;
  float sums[2][2][V] = {};
  PRECAST_UNROLL
  for (int i = 0; i < 2; ++i) {
    PRECAST_UNROLL
    for (int j = 0; j < 2; ++j) {
      if (window.row + i >= windows.rows || window.column + j >= windows.columns) continue;
      const std::int64_t line = window.image * windows.rows + window.row + i;
      const std::int64_t from =
          (line * windows.columns + window.column + j) * windows.groups + window.group;
      const Pack<T, V> first = dy[from];
      Pack<T, V> second{};
      if (fork != nullptr) second = fork[from];
      const Pack<std::uint8_t, V> at = argmax[from];
      PRECAST_UNROLL
      for (int a = i; a < 2; ++a) {
        PRECAST_UNROLL
        for (int b = j; b < 2; ++b) {
          const int index = 3 * (a - 2 * i + 1) + (b - 2 * j + 1);
          PRECAST_UNROLL
          for (int v = 0; v < V; ++v) {
            if (at.values[v] != index) continue;
            sums[a][b][v] += to_float(first.values[v]);
            if (fork != nullptr) sums[a][b][v] += to_float(second.values[v]);
          }
        }
      }
    }
  }
  PRECAST_UNROLL
  for (int a = 0; a < 2; ++a) {
    PRECAST_UNROLL
    for (int b = 0; b < 2; ++b) {
      const int row = 2 * window.row + a;
      const int column = 2 * window.column + b;
      if (row >= windows.height || column >= windows.width) continue;
      Pack<T, V> out;
      PRECAST_UNROLL
      for (int v = 0; v < V; ++v) round_to(sums[a][b][v], out.values[v]);
      const std::int64_t line = window.image * windows.height + row;
      dx[(line * windows.width + column) * windows.groups + window.group] = out;
    }
  }
}

}  // namespace

void max_pool_forward(const MaxPoolShape& shape, const MaxPoolForward& call, cudaStream_t stream) {
  for_pack(shape.type, shape.channels, [&]<typename T, int V>(T) {
    const Windows windows = windows_of(shape, V);
    PRECAST_LAUNCH((max_kernel<T, V>), blocks_of(windows), kThreads, 0, stream, windows,
                   static_cast<const Pack<T, V>*>(call.x), static_cast<Pack<T, V>*>(call.y),
                   reinterpret_cast<Pack<std::uint8_t, V>*>(call.argmax));
  });
}

void max_pool_backward(const MaxPoolShape& shape, const MaxPoolBackward& call,
                       cudaStream_t stream) {
  for_pack(shape.type, shape.channels, [&]<typename T, int V>(T) {
    const Windows windows = windows_of(shape, V);
    PRECAST_LAUNCH((max_gradient_kernel<T, V>), blocks_of(windows), kThreads, 0, stream, windows,
                   static_cast<const Pack<T, V>*>(call.dy),
                   static_cast<const Pack<T, V>*>(call.dy_fork),
                   reinterpret_cast<const Pack<std::uint8_t, V>*>(call.argmax),
                   static_cast<Pack<T, V>*>(call.dx));
  });
}

}  // namespace precast::models
