#include "models/cuda/batch_norm_tiling.cuh"
#include "models/cuda/norm_pool.h"

namespace precast::models {
namespace {

/// How the images are divided between threads: consecutive threads compute consecutive channels,
/// then the next column of windows, the next strip of rows and the next image. Within its strip, a
/// thread goes from row to row and keeps the values that the next row of windows also needs.
struct Strips {
  int height;
  int width;
  /// Packs per pixel.
  int groups;
  /// Rows and columns of pooling windows.
  int rows;
  int columns;
  /// Strips per image.
  int strips;
  /// Number of threads.
  unsigned count;
};

/// Number of rows of windows in a strip.
constexpr int kStripRows = 8;

Strips strips_of(const MaxPoolShape& shape, int pack) {
  Strips all{};
  all.height = shape.height;
  all.width = shape.width;
  all.groups = shape.channels / pack;
  all.rows = (shape.height + 1) / 2;
  all.columns = (shape.width + 1) / 2;
  all.strips = (all.rows + kStripRows - 1) / kStripRows;
  all.count = static_cast<unsigned>(shape.images) *
              static_cast<unsigned>(all.strips * all.columns * all.groups);
  return all;
}

unsigned blocks_of(const Strips& strips) {
  return strips.count / kThreads + (strips.count % kThreads != 0 ? 1 : 0);
}

/// The strip, and the pack of its channels, that a thread computes.
struct Strip {
  std::int64_t image;
  int first_row;
  int end_row;
  int column;
  int group;
  /// Whether the thread is beyond the last strip.
  bool outside;
  __device__ explicit Strip(const Strips& all) {
    // Unsigned 32-bit, because 64-bit division is slow.
    const unsigned index = blockIdx.x * kThreads + threadIdx.x;
    const auto groups = static_cast<unsigned>(all.groups);
    const auto columns = static_cast<unsigned>(all.columns);
    const auto strips = static_cast<unsigned>(all.strips);
    outside = index >= all.count;
    group = static_cast<int>(index % groups);
    column = static_cast<int>(index / groups % columns);
    first_row = static_cast<int>(index / groups / columns % strips) * kStripRows;
    end_row = first_row + kStripRows < all.rows ? first_row + kStripRows : all.rows;
    image = index / groups / columns / strips;
  }
};

/// The maxima of some pixels of a window, for each channel. The value after the norm and the ReLU
/// is largest where x is largest or, if the norm's weight is negative, smallest.
template <int V>
struct Maxima {
  /// x, or -x if the norm's weight is negative.
  float values[V];
  int at[V];
};

/// Replaces a maximum by a larger value. NaN needs no special case here: if any x of a channel is
/// NaN, its mean and all its results are NaN too.
template <int V>
__device__ __forceinline__ void update_max(Maxima<V>& maxima, int v, float value, int at) {
  if (!(value > maxima.values[v])) return;
  maxima.values[v] = value;
  maxima.at[v] = at;
}

/// Reads the pixels (row, 2 column - 1), (row, 2 column) and (row, 2 column + 1).
template <typename T, int V>
struct RowReader {
  const Pack<T, V>* x;
  /// Index of the left pixel in row 0; outside the image if the strip's column is 0.
  std::int64_t first;
  int row_step, pixel_step, height;
  bool inside[3];
  __device__ RowReader(const Strips& all, const Strip& strip, const void* images)
      : x(static_cast<const Pack<T, V>*>(images)),
        row_step(all.width * all.groups),
        pixel_step(all.groups),
        height(all.height) {
    const int left = 2 * strip.column - 1;
    first = strip.image * height * row_step + left * pixel_step + strip.group;
    PRECAST_UNROLL
    for (int j = 0; j < 3; ++j) inside[j] = left + j >= 0 && left + j < all.width;
  }
  __device__ void load(int row, Pack<T, V> (&in)[3]) const {
    if (row < 0 || row >= height) return;
    const std::int64_t at = first + static_cast<std::int64_t>(row) * row_step;
    PRECAST_UNROLL
    for (int j = 0; j < 3; ++j)
      if (inside[j]) in[j] = x[at + j * pixel_step];
  }
  /// @param sign -1 for channels with a negative weight, otherwise 1
  __device__ Maxima<V> maxima(int row, const Pack<T, V> (&in)[3], const float (&sign)[V]) const {
    Maxima<V> all;
    PRECAST_UNROLL
    for (int v = 0; v < V; ++v) {
      all.values[v] = -INFINITY;
      all.at[v] = 0;
    }
    if (row < 0 || row >= height) return all;
    PRECAST_UNROLL
    for (int j = 0; j < 3; ++j) {
      if (!inside[j]) continue;
      PRECAST_UNROLL
      for (int v = 0; v < V; ++v) update_max(all, v, sign[v] * to_float(in[j].values[v]), j);
    }
    return all;
  }
};

template <typename T, int V>
__global__ PRECAST_BOUNDS(kThreads, 3) void norm_pool_kernel(Strips all, NormPoolForward call) {
  const Strip strip(all);
  if (strip.outside) return;
  const RowReader<T, V> reader(all, strip, call.norm.x);
  const Affine<V> norm(call.norm.mean, call.norm.inv_std, call.norm.weight, call.norm.bias,
                       strip.group * V);
  auto* const y = static_cast<Pack<T, V>*>(call.norm.y);
  auto* const largest = static_cast<Pack<T, V>*>(call.largest);
  auto* const argmax = reinterpret_cast<Pack<std::uint8_t, V>*>(call.argmax);
  float sign[V];
  PRECAST_UNROLL
  for (int v = 0; v < V; ++v) sign[v] = norm.scale[v] < 0 ? -1.F : 1.F;
  Pack<T, V> in[2][3] = {}, first[3] = {};
  reader.load(2 * strip.first_row - 1, first);
  reader.load(2 * strip.first_row, in[0]);
  reader.load(2 * strip.first_row + 1, in[1]);
  // The last row of a window is the first row of the next one.
  Maxima<V> above = reader.maxima(2 * strip.first_row - 1, first, sign);
  std::int64_t to =
      ((strip.image * all.rows + strip.first_row) * all.columns + strip.column) * all.groups +
      strip.group;
  for (int row = strip.first_row; row < strip.end_row; ++row) {
    // The next rows are loaded before these are used.
    Pack<T, V> next[2][3] = {};
    if (row + 1 < strip.end_row) {
      reader.load(2 * row + 2, next[0]);
      reader.load(2 * row + 3, next[1]);
    }
    const Maxima<V> middle = reader.maxima(2 * row, in[0], sign);
    const Maxima<V> below = reader.maxima(2 * row + 1, in[1], sign);
    Pack<T, V> out, x;
    Pack<std::uint8_t, V> at;
    PRECAST_UNROLL
    for (int v = 0; v < V; ++v) {
      update_max(above, v, middle.values[v], 3 + middle.at[v]);
      update_max(above, v, below.values[v], 6 + below.at[v]);
      const float largest_x = sign[v] * above.values[v];
      float value = norm(v, largest_x);
      // Not fmaxf, which would turn NaN into 0.
      if (value <= 0) value = 0;
      round_to(value, out.values[v]);
      round_to(largest_x, x.values[v]);
      at.values[v] = static_cast<std::uint8_t>(above.at[v]);
    }
    y[to] = out;
    largest[to] = x;
    argmax[to] = at;
    to += all.columns * all.groups;
    above = below;
    PRECAST_UNROLL
    for (int i = 0; i < 2; ++i) {
      PRECAST_UNROLL
      for (int j = 0; j < 3; ++j) in[i][j] = next[i][j];
    }
  }
}

/// Reads the gradients of the windows (row, column) and (row, column + 1), and the positions of
/// their maxima.
/// @tparam kFork whether there is a second gradient of y
template <typename T, int V, bool kFork>
struct WindowReader {
  struct Row {
    Pack<T, V> dy[2], fork[2];
    Pack<std::uint8_t, V> at[2];
    bool inside[2];
  };
  const Pack<T, V>* dy;
  const Pack<T, V>* fork;
  const Pack<std::uint8_t, V>* argmax;
  /// Index of the strip's window in row 0.
  std::int64_t first;
  int row_step, window_step, rows;
  bool has_next;
  __device__ WindowReader(const Strips& all, const Strip& strip, const NormPoolBackward& call)
      : dy(static_cast<const Pack<T, V>*>(call.norm.dy)),
        fork(static_cast<const Pack<T, V>*>(call.norm.dy_fork)),
        argmax(reinterpret_cast<const Pack<std::uint8_t, V>*>(call.argmax)),
        row_step(all.columns * all.groups),
        window_step(all.groups),
        rows(all.rows),
        has_next(strip.column + 1 < all.columns) {
    first = strip.image * rows * row_step + strip.column * window_step + strip.group;
  }
  __device__ void load(int row, Row& to) const {
    const std::int64_t at = first + static_cast<std::int64_t>(row) * row_step;
    PRECAST_UNROLL
    for (int j = 0; j < 2; ++j) {
      to.inside[j] = row < rows && (j == 0 || has_next);
      if (!to.inside[j]) continue;
      to.dy[j] = dy[at + j * window_step];
      if constexpr (kFork) to.fork[j] = fork[at + j * window_step];
      to.at[j] = argmax[at + j * window_step];
    }
  }
  /// Returns the gradient of window j if its maximum is at `index`, otherwise 0.
  __device__ static float gradient(const Row& row, int j, int v, int index) {
    if (!row.inside[j] || row.at[j].values[v] != index) return 0;
    float sum = to_float(row.dy[j].values[v]);
    if constexpr (kFork) sum += to_float(row.fork[j].values[v]);
    return sum;
  }
};

/// Computes the gradients of the 2 x 2 pixels (2 row + a, 2 column + b). The windows that contain
/// them are (row + i, column + j), for a, b, i, j in {0, 1}.
template <typename T, int V, bool kFork>
__global__ PRECAST_BOUNDS(kThreads, 2) void norm_pool_gradient_kernel(Strips all, float inv_rows,
                                                                      NormPoolBackward call) {
  using Reader = WindowReader<T, V, kFork>;
  const Strip strip(all);
  if (strip.outside) return;
  const Reader reader(all, strip, call);
  const BatchNormBackward& bn = call.norm;
  const auto* const x = static_cast<const Pack<T, V>*>(bn.x);
  auto* const dx = static_cast<Pack<T, V>*>(bn.dx);
  const Affine<V> norm(bn.mean, bn.inv_std, bn.weight, bn.bias, strip.group * V);
  float mean[V], slope[V], offset[V];
  PRECAST_UNROLL
  for (int v = 0; v < V; ++v) {
    const int channel = strip.group * V + v;
    mean[v] = bn.mean[channel];
    slope[v] = bn.inv_std[channel] * bn.d_weight[channel] * inv_rows;
    offset[v] = bn.d_bias[channel] * inv_rows;
  }
  const int row_step = all.width * all.groups;
  const bool has_right = 2 * strip.column + 1 < all.width;
  std::int64_t pixel = (strip.image * all.height + 2 * strip.first_row) * row_step +
                       2 * strip.column * all.groups + strip.group;
  const auto inside = [&](int row, int a, int b) {
    return 2 * row + a < all.height && (b == 0 || has_right);
  };
  const auto load = [&](int row, std::int64_t at, Pack<T, V>(&to)[2][2]) {
    PRECAST_UNROLL
    for (int a = 0; a < 2; ++a) {
      PRECAST_UNROLL
      for (int b = 0; b < 2; ++b)
        if (inside(row, a, b)) to[a][b] = x[at + a * row_step + b * all.groups];
    }
  };
  Pack<T, V> in[2][2] = {};
  typename Reader::Row windows[2] = {};
  reader.load(strip.first_row, windows[0]);
  load(strip.first_row, pixel, in);
  for (int row = strip.first_row; row < strip.end_row; ++row) {
    reader.load(row + 1, windows[1]);
    // The next pixels are loaded before these are used.
    Pack<T, V> next[2][2] = {};
    if (row + 1 < strip.end_row) load(row + 1, pixel + 2 * row_step, next);
    PRECAST_UNROLL
    for (int a = 0; a < 2; ++a) {
      PRECAST_UNROLL
      for (int b = 0; b < 2; ++b) {
        if (!inside(row, a, b)) continue;
        Pack<T, V> out;
        PRECAST_UNROLL
        for (int v = 0; v < V; ++v) {
          float gradient = 0;
          PRECAST_UNROLL
          for (int i = 0; i <= a; ++i) {
            PRECAST_UNROLL
            for (int j = 0; j <= b; ++j)
              gradient += Reader::gradient(windows[i], j, v, 3 * (a - 2 * i + 1) + (b - 2 * j + 1));
          }
          const float value = to_float(in[a][b].values[v]);
          if (!rounds_above_0<T>(norm(v, value))) gradient = 0;
          round_to(norm.scale[v] * (gradient - offset[v] - (value - mean[v]) * slope[v]),
                   out.values[v]);
        }
        dx[pixel + a * row_step + b * all.groups] = out;
      }
    }
    windows[0] = windows[1];
    PRECAST_UNROLL
    for (int a = 0; a < 2; ++a) {
      PRECAST_UNROLL
      for (int b = 0; b < 2; ++b) in[a][b] = next[a][b];
    }
    pixel += 2 * row_step;
  }
}

}  // namespace

void norm_pool_forward(const MaxPoolShape& shape, const NormPoolForward& call,
                       cudaStream_t stream) {
  batch_norm_statistics(norm_shape(shape), call.norm, stream);
  for_pack(shape.type, shape.channels, [&]<typename T, int P>(T) {
    constexpr int V = half_pack(P);
    const Strips strips = strips_of(shape, V);
    PRECAST_LAUNCH((norm_pool_kernel<T, V>), blocks_of(strips), kThreads, 0, stream, strips, call);
  });
}

void norm_pool_backward(const MaxPoolShape& shape, const NormPoolBackward& call,
                        cudaStream_t stream) {
  // Only the maxima have a gradient, so the sums over all pixels are sums over the maxima.
  BatchNormBackward of_maxima = call.norm;
  of_maxima.x = call.largest;
  batch_norm_gradient_sums(pooled_norm_shape(shape), of_maxima, stream);
  for_pack(shape.type, shape.channels, [&]<typename T, int P>(T) {
    constexpr int V = half_pack(P);
    const Strips strips = strips_of(shape, V);
    const float inv_rows = 1 / static_cast<float>(norm_shape(shape).rows);
    if (call.norm.dy_fork != nullptr)
      PRECAST_LAUNCH((norm_pool_gradient_kernel<T, V, true>), blocks_of(strips), kThreads, 0,
                     stream, strips, inv_rows, call);
    else
      PRECAST_LAUNCH((norm_pool_gradient_kernel<T, V, false>), blocks_of(strips), kThreads, 0,
                     stream, strips, inv_rows, call);
  });
}

}  // namespace precast::models
