#include "models/cuda/activation.cuh"
#include "models/cuda/blur.h"

namespace precast::models {
namespace {

/// Number of result rows that a thread computes in sequence, so that it reads an input row once
/// instead of three times.
constexpr int kStripRows = 8;

/// How the images are divided between threads. Each thread computes the pixels of one column in a
/// strip of rows. Consecutive threads compute consecutive channels, then the next column, the next
/// strip and the next image.
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

/// The input of the blur: with kAll, all pixels; with kEven, pixels at even rows and columns, and
/// zeros in between; with both, their sum.
template <typename T, int V, bool kAll, bool kEven>
struct Pixels {
  const Pack<T, V>* all;
  const Pack<T, V>* even;
};

/// The results that a thread computes: one column of a strip, for one pack of channels.
struct Strip {
  int group;
  int column;
  std::int64_t image;
  int first_row;
  int end_row;
  bool outside;
  __device__ explicit Strip(const Strips& strips) {
    // Unsigned 32-bit, because 64-bit division is slow.
    const unsigned thread = blockIdx.x * kThreads + threadIdx.x;
    const auto groups = static_cast<unsigned>(strips.groups);
    const auto columns = static_cast<unsigned>(strips.columns);
    const auto count = static_cast<unsigned>(strips.count);
    outside = thread >= strips.threads;
    group = static_cast<int>(thread % groups);
    column = static_cast<int>(thread / groups % columns);
    const unsigned strip = thread / groups / columns;
    image = strip / count;
    first_row = static_cast<int>(strip % count) * kStripRows;
    end_row = first_row + kStripRows < strips.rows ? first_row + kStripRows : strips.rows;
  }
};

/// Reads the pixels of a column and of its two neighbours.
template <typename T, int V, bool kAll, bool kEven>
struct RowReader {
  struct Row {
    Pack<T, V> all[3], even[3];
  };
  Pixels<T, V, kAll, kEven> x;
  /// Index of the left neighbour in row 0; outside the image if the column is 0.
  std::int64_t first;
  /// Index in `x.even`, in row 0, of the column itself if it is even, otherwise of its left
  /// neighbour.
  std::int64_t first_even;
  int height, row_step, even_row_step, pixel_step;
  bool inside[3], is_even[3];
  __device__ RowReader(const Strips& strips, const Strip& strip,
                       const Pixels<T, V, kAll, kEven>& pixels, int column)
      : x(pixels),
        height(strips.height),
        row_step(strips.width * strips.groups),
        even_row_step((strips.width + 1) / 2 * strips.groups),
        pixel_step(strips.groups) {
    first = strip.image * height * row_step + (column - 1) * pixel_step + strip.group;
    first_even =
        strip.image * ((height + 1) / 2) * even_row_step + column / 2 * pixel_step + strip.group;
    PRECAST_UNROLL
    for (int j = 0; j < 3; ++j) {
      const int from = column + j - 1;
      inside[j] = from >= 0 && from < strips.width;
      is_even[j] = inside[j] && from % 2 == 0;
    }
  }
  /// Pixels outside the image keep their value, 0.
  __device__ void load(int row, Row& to) const {
    if (row < 0 || row >= height) return;
    if constexpr (kAll) {
      const std::int64_t at = first + static_cast<std::int64_t>(row) * row_step;
      PRECAST_UNROLL
      for (int j = 0; j < 3; ++j)
        if (inside[j]) to.all[j] = x.all[at + j * pixel_step];
    }
    if constexpr (kEven) {
      if (row % 2 != 0) return;
      const std::int64_t at = first_even + static_cast<std::int64_t>(row / 2) * even_row_step;
      PRECAST_UNROLL
      for (int j = 0; j < 3; ++j)
        if (is_even[j]) to.even[j] = x.even[at + j / 2 * pixel_step];
    }
  }
  /// left + 2 * centre + right
  __device__ static void sum(const Row& row, float (&sums)[V]) {
    PRECAST_UNROLL
    for (int v = 0; v < V; ++v) {
      sums[v] = 0;
      PRECAST_UNROLL
      for (int j = 0; j < 3; ++j) {
        const float factor = j == 1 ? 2 : 1;
        if constexpr (kAll) sums[v] += factor * to_float(row.all[j].values[v]);
        if constexpr (kEven) sums[v] += factor * to_float(row.even[j].values[v]);
      }
    }
  }
};

/// Writes one result: (above + 2 * centre + below) / 16.
/// @param y_even a second copy of the results at even rows and columns; may be nullptr.
template <typename T, int V>
__device__ __forceinline__ void write(const Strips& strips, const Strip& strip, int row,
                                      const float (&above)[V], const float (&centre)[V],
                                      const float (&below)[V], Pack<T, V>* y, Pack<T, V>* y_even) {
  Pack<T, V> out;
  PRECAST_UNROLL
  for (int v = 0; v < V; ++v)
    round_to((above[v] + 2 * centre[v] + below[v]) * (1.0F / 16), out.values[v]);
  const std::int64_t line = strip.image * strips.rows + row;
  y[(line * strips.columns + strip.column) * strips.groups + strip.group] = out;
  if (y_even == nullptr || row % 2 != 0 || strip.column % 2 != 0) return;
  const std::int64_t even_line = strip.image * ((strips.rows + 1) / 2) + row / 2;
  y_even[(even_line * ((strips.columns + 1) / 2) + strip.column / 2) * strips.groups +
         strip.group] = out;
}

/// Blurs all pixels.
template <typename T, int V, bool kAll, bool kEven>
__global__ PRECAST_BOUNDS(kThreads, kAll&& kEven ? 2 : 3) void blur_kernel(
    Strips strips, Pixels<T, V, kAll, kEven> x, Pack<T, V>* y, Pack<T, V>* y_even) {
  using Reader = RowReader<T, V, kAll, kEven>;
  const Strip strip(strips);
  if (strip.outside) return;
  const Reader reader(strips, strip, x, strip.column);
  float above[V], centre[V];
  typename Reader::Row before[2] = {}, in[2] = {};
  reader.load(strip.first_row - 1, before[0]);
  reader.load(strip.first_row, before[1]);
  reader.load(strip.first_row + 1, in[0]);
  reader.load(strip.first_row + 2, in[1]);
  reader.sum(before[0], above);
  reader.sum(before[1], centre);
  for (int row = strip.first_row; row < strip.end_row; row += 2) {
    // The next rows are loaded before these are used, because loading a row takes longer than
    // summing it.
    typename Reader::Row next[2] = {};
    if (row + 2 < strip.end_row) {
      reader.load(row + 3, next[0]);
      reader.load(row + 4, next[1]);
    }
    float below[2][V];
    reader.sum(in[0], below[0]);
    write(strips, strip, row, above, centre, below[0], y, y_even);
    if (row + 1 >= strip.end_row) break;
    reader.sum(in[1], below[1]);
    write(strips, strip, row + 1, centre, below[0], below[1], y, y_even);
    PRECAST_UNROLL
    for (int v = 0; v < V; ++v) {
      above[v] = below[0][v];
      centre[v] = below[1][v];
    }
    in[0] = next[0];
    in[1] = next[1];
  }
}

/// Blurs only the pixels at even rows and columns.
template <typename T, int V>
__global__ PRECAST_BOUNDS(kThreads, 3) void even_blur_kernel(Strips strips,
                                                             Pixels<T, V, true, false> x,
                                                             Pack<T, V>* y) {
  using Reader = RowReader<T, V, true, false>;
  const Strip strip(strips);
  if (strip.outside) return;
  const Reader reader(strips, strip, x, 2 * strip.column);
  float above[V];
  typename Reader::Row first = {}, in[2] = {};
  reader.load(2 * strip.first_row - 1, first);
  reader.load(2 * strip.first_row, in[0]);
  reader.load(2 * strip.first_row + 1, in[1]);
  reader.sum(first, above);
  for (int row = strip.first_row; row < strip.end_row; ++row) {
    typename Reader::Row next[2] = {};
    if (row + 1 < strip.end_row) {
      reader.load(2 * row + 2, next[0]);
      reader.load(2 * row + 3, next[1]);
    }
    float centre[V], below[V];
    reader.sum(in[0], centre);
    reader.sum(in[1], below);
    write<T, V>(strips, strip, row, above, centre, below, y, nullptr);
    PRECAST_UNROLL
    for (int v = 0; v < V; ++v) above[v] = below[v];
    in[0] = next[0];
    in[1] = next[1];
  }
}

Strips strips_of(const BlurShape& shape, int pack, int stride) {
  Strips strips{};
  strips.height = shape.height;
  strips.width = shape.width;
  strips.groups = shape.channels / pack;
  strips.rows = (shape.height + stride - 1) / stride;
  strips.columns = (shape.width + stride - 1) / stride;
  strips.count = (strips.rows + kStripRows - 1) / kStripRows;
  strips.threads =
      static_cast<unsigned>(shape.images * strips.count * strips.columns * strips.groups);
  return strips;
}

unsigned blocks_of(const Strips& strips) {
  return strips.threads / kThreads + (strips.threads % kThreads != 0 ? 1 : 0);
}

/// Calls run.operator()<T, V>(T{}) with half a pack, so that more loads are in flight.
template <typename Run>
void for_half_pack(const BlurShape& shape, Run run) {
  for_pack(shape.type, shape.channels,
           [&]<typename T, int P>(T zero) { run.template operator()<T, half_pack(P)>(zero); });
}

template <bool kAll, bool kEven>
void launch(const BlurShape& shape, const void* all, const void* even, void* y, void* y_even,
            cudaStream_t stream) {
  for_half_pack(shape, [&]<typename T, int V>(T) {
    const Strips strips = strips_of(shape, V, 1);
    const Pixels<T, V, kAll, kEven> x{static_cast<const Pack<T, V>*>(all),
                                      static_cast<const Pack<T, V>*>(even)};
    PRECAST_LAUNCH((blur_kernel<T, V, kAll, kEven>), blocks_of(strips), kThreads, 0, stream, strips,
                   x, static_cast<Pack<T, V>*>(y), static_cast<Pack<T, V>*>(y_even));
  });
}

}  // namespace

void blur_forward(const BlurShape& shape, const BlurForward& call, cudaStream_t stream) {
  if (call.y != nullptr)
    return launch<true, false>(shape, call.x, nullptr, call.y, call.y_even, stream);
  for_half_pack(shape, [&]<typename T, int V>(T) {
    const Strips strips = strips_of(shape, V, 2);
    const Pixels<T, V, true, false> x{static_cast<const Pack<T, V>*>(call.x), nullptr};
    PRECAST_LAUNCH((even_blur_kernel<T, V>), blocks_of(strips), kThreads, 0, stream, strips, x,
                   static_cast<Pack<T, V>*>(call.y_even));
  });
}

void blur_backward(const BlurShape& shape, const BlurBackward& call, cudaStream_t stream) {
  // The filter is symmetric, so the gradient of x is the blurred gradient of y.
  if (call.dy_even == nullptr)
    return launch<true, false>(shape, call.dy, nullptr, call.dx, nullptr, stream);
  if (call.dy == nullptr)
    return launch<false, true>(shape, nullptr, call.dy_even, call.dx, nullptr, stream);
  launch<true, true>(shape, call.dy, call.dy_even, call.dx, nullptr, stream);
}

}  // namespace precast::models
