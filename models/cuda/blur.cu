#include "models/cuda/activation.cuh"
#include "models/cuda/blur.h"

namespace precast::models {
namespace {

/// Number of result rows that a thread computes in sequence, so that it reads an input row once
/// instead of three times.
constexpr int kStripRows = 8;

/// How the images are divided between threads, each of which computes the pixels of a strip of rows
/// that are in one column: consecutive threads compute consecutive channels, then the next column,
/// the next strip and the next image.
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
  unsigned threads;
};

/// The input of the blur: `all` pixels; with kEven, also pixels at `even` rows and columns with
/// zeros in between, to which `all` pixels are added unless `all` is null.
template <typename T, int V, bool kEven>
struct Pixels {
  const Pack<T, V>* all;
  const Pack<T, V>* even;

  __device__ void add(const Strips& strips, std::int64_t image, int row, int column, int group,
                      float factor, float (&sum)[V]) const {
    if (column < 0 || column >= strips.width) return;
    if (!kEven || all != nullptr) {
      const std::int64_t line = image * strips.height + row;
      const Pack<T, V> pack = all[(line * strips.width + column) * strips.groups + group];
      PRECAST_UNROLL
      for (int v = 0; v < V; ++v) sum[v] += factor * to_float(pack.values[v]);
    }
    if (kEven && row % 2 == 0 && column % 2 == 0) {
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
template <typename T, int V, bool kEven, int kStride>
__global__ void blur_kernel(Strips strips, Pixels<T, V, kEven> x, Pack<T, V>* y,
                            Pack<T, V>* y_even) {
  // Without a sign and in 32 bits, because divisions of 64 bits take long.
  const unsigned thread = blockIdx.x * kThreads + threadIdx.x;
  if (thread >= strips.threads) return;
  const auto groups = static_cast<unsigned>(strips.groups);
  const auto columns = static_cast<unsigned>(strips.columns);
  const auto count = static_cast<unsigned>(strips.count);
  const int group = static_cast<int>(thread % groups);
  const int column = static_cast<int>(thread / groups % columns);
  const unsigned strip = thread / groups / columns;
  const std::int64_t image = strip / count;
  const int first = static_cast<int>(strip % count) * kStripRows;
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

template <int kStride, typename T, int V, bool kEven>
void launch(const BlurShape& shape, const Pixels<T, V, kEven>& x, void* y, void* y_even,
            cudaStream_t stream) {
  Strips strips{};
  strips.height = shape.height;
  strips.width = shape.width;
  strips.groups = shape.channels / V;
  strips.rows = (shape.height + kStride - 1) / kStride;
  strips.columns = (shape.width + kStride - 1) / kStride;
  strips.count = (strips.rows + kStripRows - 1) / kStripRows;
  strips.threads =
      static_cast<unsigned>(shape.images * strips.count * strips.columns * strips.groups);
  const unsigned blocks = strips.threads / kThreads + (strips.threads % kThreads != 0 ? 1 : 0);
  PRECAST_LAUNCH((blur_kernel<T, V, kEven, kStride>), blocks, kThreads, 0, stream, strips, x,
                 static_cast<Pack<T, V>*>(y), static_cast<Pack<T, V>*>(y_even));
}

}  // namespace

void blur_forward(const BlurShape& shape, const BlurForward& call, cudaStream_t stream) {
  for_pack(shape.type, shape.channels, [&]<typename T, int V>(T) {
    const Pixels<T, V, false> x{static_cast<const Pack<T, V>*>(call.x), nullptr};
    if (call.y != nullptr)
      launch<1>(shape, x, call.y, call.y_even, stream);
    else
      launch<2>(shape, x, call.y_even, nullptr, stream);
  });
}

void blur_backward(const BlurShape& shape, const BlurBackward& call, cudaStream_t stream) {
  for_pack(shape.type, shape.channels, [&]<typename T, int V>(T) {
    // The filter is symmetric, so the gradient of x is the blurred gradient of y.
    const auto* const all = static_cast<const Pack<T, V>*>(call.dy);
    const auto* const even = static_cast<const Pack<T, V>*>(call.dy_even);
    if (even == nullptr)
      launch<1>(shape, Pixels<T, V, false>{all, nullptr}, call.dx, nullptr, stream);
    else
      launch<1>(shape, Pixels<T, V, true>{all, even}, call.dx, nullptr, stream);
  });
}

}  // namespace precast::models
