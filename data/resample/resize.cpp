#include "data/resample/resize.h"

#include <hwy/cache_control.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include "data/resample/axis.h"
#include "data/resample/column_tables.h"
#include "data/resample/kernels.h"
#include "data/resample/plane_kernels.h"
#include "data/resample/resize_plan.h"
#include "data/resample/row_sink.h"
#include "framework/core/error.h"

namespace precast::data {
namespace {

std::size_t chunk_count(std::size_t values) {
  return hwy::DivCeil(values, std::size(RowChunk().value));
}

/// Number of rows to prefetch ahead. The CPU's hardware prefetcher does not do this, because the
/// rows of a crop are far apart.
constexpr int kRowsAhead = 8;

void prefetch_row(const ImageView& in, int y) {
  constexpr std::ptrdiff_t kLine = kCacheLine;
  if (y >= in.height) return;
  const std::uint8_t* row = in.row(y);
  const std::ptrdiff_t last = std::ptrdiff_t{in.width} * 3 - 1;
  for (std::ptrdiff_t at = 0; at < last; at += kLine) hwy::Prefetch(row + at);
  hwy::Prefetch(row + last);
  // GCC 12 assumes that a function that only prefetches has no effect, and removes calls to it.
  asm volatile("");
}

}  // namespace

struct Resizer::Scratch : ResizePlan {
  ColumnBlend column_blend;
  std::vector<std::uint8_t> pairs;
  std::array<std::vector<RowChunk>, 2> blended;

  ColumnWeights column_weights;
  std::vector<std::uint16_t> row_weights;
  std::vector<const std::uint8_t*> rows;
  std::vector<RowChunk> sums;
  std::vector<float> float_sums;

  RowSink::Memory finished;

  /// For pixels in planes: the weights, three rows of outputs, and the source as interleaved
  /// pixels.
  PlaneWeights plane_weights;
  std::vector<std::uint8_t> plane_rows;
  std::vector<std::uint8_t> interleaved;

  void blend(const ImageView& in, int out_height, RowSink& sink);
  void convolve(const ImageView& in, int out_height, RowSink& sink);
  void convolve(const PlanarView& in, int out_height, int out_width, RowSink& sink);
  ImageView interleave(const PlanarView& in);
  void convolve_in_float(const ImageView& in, int out_height, int out_width, RowSink& sink);
};

void Resizer::Scratch::blend(const ImageView& in, int out_height, RowSink& sink) {
  const bool paired = plan_column_blend(x_blends, in.width, column_blend);
  const std::size_t values = hwy::RoundUpTo(column_blend.values(), kRowMultiple);
  if (paired) pairs.resize(x_blends.size() * 6 + ColumnBlend::kWindow);
  for (auto& row : blended) row.resize(chunk_count(values));

  // The two source rows of an output are neighbours, so one is even and one is odd. The last row of
  // each parity is stored, and the following outputs can use it again.
  std::array<int, 2> cached_row = {-1, -1};
  const auto blended_row = [&](int y) {
    y = std::clamp(y, 0, in.height - 1);
    const auto parity = static_cast<std::size_t>(y % 2);
    if (cached_row[parity] != y) {
      cached_row[parity] = y;
      prefetch_row(in, y + kRowsAhead);
      const std::uint8_t* row = in.row(y);
      if (paired) {
        pair_pixels(row, in.width, x_blends, pairs.data());
        row = pairs.data();
      }
      blend_columns(row, column_blend, blended[parity].data()->value);
    }
    return blended[parity].data()->value;
  };
  for (int y = 0; y < out_height; ++y) {
    const Blend& row_blend = y_blends[static_cast<std::size_t>(y)];
    const std::int16_t* upper = blended_row(row_blend.start);
    const std::int16_t* lower = blended_row(row_blend.start + 1);
    blend_rows(upper, lower, row_blend.first, row_blend.second, values, sink.row(y, values));
    sink.finish(y);
  }
}

void Resizer::Scratch::convolve(const ImageView& in, int out_height, RowSink& sink) {
  plan_column_weights(x_axis, column_weights);
  const std::size_t in_values = static_cast<std::size_t>(in.width) * 3;
  const std::size_t out_values = column_weights.groups * ColumnWeights::kGroup * 3;
  // Includes the values that convolve_columns reads past the end.
  sums.resize(chunk_count(in_values + 16));
  rows.resize(static_cast<std::size_t>(y_axis.taps));
  row_weights.resize(static_cast<std::size_t>(y_axis.taps));
  int next_prefetch = kRowsAhead;
  for (int d = 0; d < out_height; ++d) {
    const int used = y_axis.quantize(d, 1 << kRowWeightBits, row_weights.data());
    const int first_row = y_axis.start[static_cast<std::size_t>(d)];
    for (int t = 0; t < y_axis.taps; ++t) {
      rows[static_cast<std::size_t>(t)] = in.row(first_row + t);
    }
    for (; next_prefetch <= first_row + y_axis.taps + kRowsAhead; ++next_prefetch) {
      prefetch_row(in, next_prefetch);
    }
    // Truncation makes each product half a unit too small on average; `used / 2` corrects this.
    convolve_rows(rows.data(), row_weights.data(), y_axis.taps, used / 2, in_values,
                  sums.data()->value);
    convolve_columns(sums.data()->value, column_weights, sink.row(d, out_values + 4));
    sink.finish(d);
  }
}

void Resizer::Scratch::convolve_in_float(const ImageView& in, int out_height, int out_width,
                                         RowSink& sink) {
  const std::size_t in_values = static_cast<std::size_t>(in.width) * 3;
  for (int d = 0; d < out_height; ++d) {
    float_sums.assign(in_values, 0.0F);
    const std::ptrdiff_t first_weight = std::ptrdiff_t{d} * y_axis.taps;
    for (int t = 0; t < y_axis.taps; ++t) {
      const std::uint8_t* row = in.row(y_axis.start[static_cast<std::size_t>(d)] + t);
      const float weight = y_axis.weight[static_cast<std::size_t>(first_weight + t)];
      for (std::size_t i = 0; i < in_values; ++i) {
        float_sums[i] += weight * static_cast<float>(row[i]);
      }
    }
    std::uint8_t* out = sink.row(d, static_cast<std::size_t>(out_width) * 3);
    for (int v = 0; v < out_width * 3; ++v) {
      const float* from = float_sums.data() +
                          std::ptrdiff_t{3} * x_axis.start[static_cast<std::size_t>(v / 3)] + v % 3;
      const float* weight = x_axis.weight.data() + std::ptrdiff_t{v / 3} * x_axis.taps;
      float sum = 0;
      for (int t = 0; t < x_axis.taps; ++t) sum += weight[t] * from[std::ptrdiff_t{3} * t];
      out[v] = static_cast<std::uint8_t>(std::clamp(std::lrintf(sum), 0L, 255L));
    }
    sink.finish(d);
  }
}

void Resizer::Scratch::convolve(const PlanarView& in, int out_height, int out_width,
                                RowSink& sink) {
  plane_weights.plan(x_axis);
  const auto taps = static_cast<std::size_t>(y_axis.taps);
  const auto in_width = static_cast<std::size_t>(in.width);
  const auto width = static_cast<std::size_t>(out_width);
  const std::size_t chunks = chunk_count(plane_weights.sums_row_values(in.width));
  const std::size_t row_bytes = plane_weights.bytes_written();
  sums.resize(3 * chunks);
  plane_rows.resize(3 * row_bytes);
  rows.resize(taps);
  row_weights.resize(taps);
  std::array<const std::int16_t*, 3> sum_rows{};
  std::array<std::uint8_t*, 3> out_rows{};
  for (std::size_t c = 0; c < 3; ++c) {
    sum_rows[c] = sums[c * chunks].value;
    out_rows[c] = plane_rows.data() + c * row_bytes;
  }
  for (int d = 0; d < out_height; ++d) {
    const int used = y_axis.quantize(d, 1 << kRowWeightBits, row_weights.data());
    const int first_row = y_axis.start[static_cast<std::size_t>(d)];
    for (std::size_t c = 0; c < 3; ++c) {
      for (std::size_t t = 0; t < taps; ++t) rows[t] = in.row(c, first_row + static_cast<int>(t));
      convolve_rows(rows.data(), row_weights.data(), y_axis.taps, used / 2, in_width,
                    sums[c * chunks].value);
    }
    convolve_plane_columns(sum_rows.data(), plane_weights, out_rows.data());
    interleave_planes(out_rows.data(), width, sink.row(d, 3 * width));
    sink.finish(d);
  }
}

ImageView Resizer::Scratch::interleave(const PlanarView& in) {
  const auto width = static_cast<std::size_t>(in.width);
  interleaved.resize(static_cast<std::size_t>(in.height) * width * 3);
  for (int y = 0; y < in.height; ++y) {
    const std::array<const std::uint8_t*, 3> planes = {in.row(0, y), in.row(1, y), in.row(2, y)};
    interleave_planes(planes.data(), width,
                      interleaved.data() + static_cast<std::size_t>(y) * width * 3);
  }
  return {interleaved.data(), in.height, in.width, std::ptrdiff_t{in.width} * 3};
}

Resizer::Resizer() : scratch_(std::make_unique<Scratch>()) {}
Resizer::~Resizer() = default;
Resizer::Resizer(Resizer&&) noexcept = default;
Resizer& Resizer::operator=(Resizer&&) noexcept = default;

void Resizer::resize(const ImageView& in, int out_height, int out_width, bool flip,
                     ResizeFilter filter, const PixelFormat& format, std::byte* out) {
  require(in.height > 0 && in.width > 0 && out_height > 0 && out_width > 0,
          "images have at least one pixel before and after resizing");
  if (in.height == out_height && in.width == out_width && !flip) {
    return write_pixels(in, format, out);
  }
  Scratch& scratch = *scratch_;
  for (int y = 0; y < kRowsAhead; ++y) prefetch_row(in, y);  // while the plans are made
  RowSink sink(out_height, out_width, format, scratch.finished, out);
  switch (scratch.plan(in.height, in.width, out_height, out_width, flip, filter)) {
    case ResizePlan::Method::blend:
      return scratch.blend(in, out_height, sink);
    case ResizePlan::Method::convolve:
      return scratch.convolve(in, out_height, sink);
    case ResizePlan::Method::convolve_in_float:
      return scratch.convolve_in_float(in, out_height, out_width, sink);
  }
}

bool Resizer::prefers_planes(int height, int width, int out_height, int out_width,
                             ResizeFilter filter) {
  // Keeps the number of taps below ResizePlan::kMaxFixedTaps.
  constexpr int kMaxReduction = 4;
  if (height > kMaxReduction * out_height || width > kMaxReduction * out_width) return false;
  if (height == out_height && width == out_width) return false;
  // With two taps, interleaving the outputs takes more time than is saved by not interleaving the
  // source.
  if (has_two_taps(height, width, out_height, out_width, filter)) return false;
  return plane_layout().outputs > 4 || width <= out_width * 3 / 2;
}

void Resizer::resize(const PlanarView& in, int out_height, int out_width, bool flip,
                     ResizeFilter filter, const PixelFormat& format, std::byte* out) {
  require(in.height > 0 && in.width > 0 && out_height > 0 && out_width > 0,
          "images have at least one pixel before and after resizing");
  Scratch& scratch = *scratch_;
  const bool copied = in.height == out_height && in.width == out_width && !flip;
  if (!copied && scratch.plan(in.height, in.width, out_height, out_width, flip, filter) ==
                     ResizePlan::Method::convolve) {
    RowSink sink(out_height, out_width, format, scratch.finished, out);
    return scratch.convolve(in, out_height, out_width, sink);
  }
  resize(scratch.interleave(in), out_height, out_width, flip, filter, format, out);
}

}  // namespace precast::data
