#include "models/cuda/activation.cuh"
#include "models/cuda/blur.h"

namespace precast::models {
namespace {

/// Number of result rows that a thread computes in sequence, so that it reads an input row once
/// instead of three times.
constexpr int kStripRows = 8;

/// How the images are divided between threads: blockIdx.x is a strip of rows of an image,
/// blockIdx.y a part of the strip. Consecutive threads of a block compute consecutive channels,
/// then the next column.
struct Strips {
  /// Size of the images.
  int height;
  int width;
  /// Packs per pixel.
  int groups;
  /// Size of the results.
  int rows;
  int columns;
  /// Strips per image.
  int count;
};

/// The input of the blur: `all` pixels, only pixels at `even` rows and columns with zeros in
/// between, or the sum of both.
template <typename T, int V>
struct Pixels {
  const Pack<T, V>* all;
  const Pack<T, V>* even;

  __device__ void add(const Strips& strips, std::int64_t image, int row, int column, int group,
                      float factor, float (&sum)[V]) const {
    if (column < 0 || column >= strips.width) return;
    if (all != nullptr) {
      const std::int64_t line = image * strips.height + row;
      const Pack<T, V> pack = all[(line * strips.width + column) * strips.groups + group];
      PRECAST_UNROLL
      for (int v = 0; v < V; ++v) sum[v] += factor * to_float(pack.values[v]);
    }
    if (even != nullptr && row % 2 == 0 && column % 2 == 0) {
      const std::int64_t line = image * ((strips.height + 1) / 2) + row / 2;
      const std::int64_t pixel = line * ((strips.width + 1) / 2) + column / 2;
      const Pack<T, V> pack = even[pixel * strips.groups + group];
      PRECAST_UNROLL
      for (int v = 0; v < V; ++v) sum[v] += factor * to_float(pack.values[v]);
    }
  }

  /// The row's pixel with its neighbours: left + 2 * centre + right.
  __device__ void sum_row(const Strips& strips, std::int64_t image, int row, int column, int group,
                          float (&sum)[V]) const {
    PRECAST_UNROLL
    for (int v = 0; v < V; ++v) sum[v] = 0;
    if (row < 0 || row >= strips.height) return;
    add(strips, image, row, column - 1, group, 1, sum);
    add(strips, image, row, column, group, 2, sum);
    add(strips, image, row, column + 1, group, 1, sum);
  }
};

/// Blurs the pixels at multiples of kStride.
/// @param y_even a second copy of the results at even rows and columns; only for stride 1; may be
/// nullptr.
template <typename T, int V, int kStride>
__global__ void blur_kernel(Strips strips, Pixels<T, V> x, Pack<T, V>* y, Pack<T, V>* y_even) {
  const int place = static_cast<int>(blockIdx.y) * kThreads + static_cast<int>(threadIdx.x);
  if (place >= strips.columns * strips.groups) return;
  const int column = place / strips.groups;
  const int group = place % strips.groups;
  const std::int64_t image = blockIdx.x / static_cast<unsigned>(strips.count);
  const int first = static_cast<int>(blockIdx.x % static_cast<unsigned>(strips.count)) * kStripRows;
  const int end = first + kStripRows < strips.rows ? first + kStripRows : strips.rows;
  float above[V], centre[V], below[V];
  x.sum_row(strips, image, kStride * first - 1, kStride * column, group, above);
  for (int row = first; row < end; ++row) {
    if (kStride > 1 || row == first)
      x.sum_row(strips, image, kStride * row, kStride * column, group, centre);
    x.sum_row(strips, image, kStride * row + 1, kStride * column, group, below);
    Pack<T, V> out;
    PRECAST_UNROLL
    for (int v = 0; v < V; ++v) {
      round_to((above[v] + 2 * centre[v] + below[v]) * (1.0F / 16), out.values[v]);
      if (kStride == 1) {
        above[v] = centre[v];
        centre[v] = below[v];
      } else {
        above[v] = below[v];
      }
    }
    const std::int64_t line = image * strips.rows + row;
    y[(line * strips.columns + column) * strips.groups + group] = out;
    if (kStride > 1 || y_even == nullptr || row % 2 != 0 || column % 2 != 0) continue;
    const std::int64_t even_line = image * ((strips.rows + 1) / 2) + row / 2;
    y_even[(even_line * ((strips.columns + 1) / 2) + column / 2) * strips.groups + group] = out;
  }
}

template <typename T, int V, int kStride>
void launch(const BlurShape& shape, const Pixels<T, V>& x, void* y, void* y_even,
            cudaStream_t stream) {
  Strips strips{};
  strips.height = shape.height;
  strips.width = shape.width;
  strips.groups = shape.channels / V;
  strips.rows = (shape.height + kStride - 1) / kStride;
  strips.columns = (shape.width + kStride - 1) / kStride;
  strips.count = (strips.rows + kStripRows - 1) / kStripRows;
  const dim3 grid(
      static_cast<unsigned>(shape.images * strips.count),
      static_cast<unsigned>((strips.columns * strips.groups + kThreads - 1) / kThreads));
  PRECAST_LAUNCH((blur_kernel<T, V, kStride>), grid, kThreads, 0, stream, strips, x,
                 static_cast<Pack<T, V>*>(y), static_cast<Pack<T, V>*>(y_even));
}

}  // namespace

void blur_forward(const BlurShape& shape, const BlurForward& call, cudaStream_t stream) {
  for_pack(shape.type, shape.channels, [&]<typename T, int V>(T) {
    const Pixels<T, V> x{static_cast<const Pack<T, V>*>(call.x), nullptr};
    if (call.y != nullptr)
      launch<T, V, 1>(shape, x, call.y, call.y_even, stream);
    else
      launch<T, V, 2>(shape, x, call.y_even, nullptr, stream);
  });
}

void blur_backward(const BlurShape& shape, const BlurBackward& call, cudaStream_t stream) {
  for_pack(shape.type, shape.channels, [&]<typename T, int V>(T) {
    // The filter is symmetric, so the gradient of x is the blurred gradient of y.
    const Pixels<T, V> dy{static_cast<const Pack<T, V>*>(call.dy),
                          static_cast<const Pack<T, V>*>(call.dy_even)};
    launch<T, V, 1>(shape, dy, call.dx, nullptr, stream);
  });
}

}  // namespace precast::models
