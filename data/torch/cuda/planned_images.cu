#include "data/loader/image_plan.h"
#include "data/resample/axis.h"
#include "data/resample/kernels.h"
#include "data/torch/cuda/planned_images.h"
#include "framework/core/cuda_values.cuh"

namespace precast::data {
namespace {

constexpr int kThreads = 128;
constexpr int kChannels = 3;
/// The result of source_index() for a position without a source pixel.
constexpr int kNone = -1;

constexpr int kBlendBits = 11;
static_assert(1 << kBlendBits == kBlendOne);

struct Colour {
  std::uint8_t values[kChannels];
};

/// The tables of a plan, in device memory.
struct Tables {
  const std::int32_t* start_of_columns;
  const std::int32_t* start_of_rows;
  const std::uint16_t* column_weights;
  const std::uint16_t* row_weights;
  const std::uint16_t* rounding;
};

__device__ __forceinline__ Tables tables_at(const std::byte* at, const ImagePlan& plan) {
  const ImagePlanTables tables = tables_of_plan(static_cast<std::size_t>(plan.side),
                                                static_cast<std::size_t>(plan.column_taps),
                                                static_cast<std::size_t>(plan.row_taps));
  return {reinterpret_cast<const std::int32_t*>(at + tables.start_of_columns),
          reinterpret_cast<const std::int32_t*>(at + tables.start_of_rows),
          reinterpret_cast<const std::uint16_t*>(at + tables.column_weights),
          reinterpret_cast<const std::uint16_t*>(at + tables.row_weights),
          reinterpret_cast<const std::uint16_t*>(at + tables.rounding)};
}

__device__ __forceinline__ int clamped(int value, int size) {
  return value < 0 ? 0 : value < size ? value : size - 1;
}

/// Returns the row of the resized image that becomes output row y, or kNone.
__device__ __forceinline__ int resized_row(const ImagePlan& plan, int y) {
  for (int i = plan.edits - 1; i >= 0 && y != kNone; --i) {
    const PixelEdit& edit = plan.edit[i];
    if (edit.kind == PixelEdit::Kind::shift) {
      y = source_index(y + edit.row, plan.side, edit.border);
    } else if (edit.kind == PixelEdit::Kind::vertical_flip) {
      y = plan.side - 1 - y;
    }
  }
  return y;
}

/// Returns the column of the resized image whose pixel becomes output pixel (y, x). If an edit sets
/// the pixel to a colour, returns kNone and sets `colour`.
__device__ __forceinline__ int resized_column(const ImagePlan& plan, int y, int x, Colour& colour) {
  for (int i = plan.edits - 1; i >= 0; --i) {
    const PixelEdit& edit = plan.edit[i];
    bool fills = false;
    switch (edit.kind) {
      case PixelEdit::Kind::shift:
        y = source_index(y + edit.row, plan.side, edit.border);
        x = source_index(x + edit.column, plan.side, edit.border);
        fills = y == kNone || x == kNone;
        break;
      case PixelEdit::Kind::fill:
        fills = y >= edit.row && y < edit.row + edit.height && x >= edit.column &&
                x < edit.column + edit.width;
        break;
      case PixelEdit::Kind::horizontal_flip:
        x = plan.side - 1 - x;
        break;
      case PixelEdit::Kind::vertical_flip:
        y = plan.side - 1 - y;
        break;
      default:
        break;
    }
    if (fills) {
      for (int c = 0; c < kChannels; ++c) colour.values[c] = edit.colour[c];
      return kNone;
    }
  }
  return x;
}

/// One row of a resized image.
class ResizedRow {
 public:
  /// @param pixels the first pixel of the crop. @param stride bytes from row to row.
  __device__ ResizedRow(const ImagePlan& plan, const Tables& tables, const std::uint8_t* pixels,
                        std::size_t stride, int row, std::int16_t* sums)
      : plan_(plan), tables_(tables), pixels_(pixels), stride_(stride), row_(row), sums_(sums) {}

  /// Computes the weighted sums of the source rows, as data::convolve_rows() does on a CPU. Call
  /// from all threads of the block, then call __syncthreads().
  __device__ void convolve_rows() const {
    const int taps = plan_.row_taps;
    const std::uint16_t* const weights = tables_.row_weights + row_ * taps;
    const std::uint8_t* const first =
        pixels_ + static_cast<std::size_t>(tables_.start_of_rows[row_]) * stride_;
    for (int i = static_cast<int>(threadIdx.x); i < plan_.width * kChannels;
         i += static_cast<int>(blockDim.x)) {
      int sum = tables_.rounding[row_];
      for (int t = 0; t < taps; ++t)
        sum += weights[t] * first[static_cast<std::size_t>(t) * stride_ + i] >> 8;
      sums_[i] = static_cast<std::int16_t>(sum);
    }
  }

  /// Returns the pixel in column x.
  __device__ Colour pixel(int x) const { return plan_.two_taps != 0 ? blend(x) : convolve(x); }

 private:
  /// Computes the pixel as blend_columns() and blend_rows() do.
  __device__ Colour blend(int x) const {
    const int left = tables_.start_of_columns[x];
    const std::size_t columns[2] = {
        static_cast<std::size_t>(left) * kChannels,
        static_cast<std::size_t>(clamped(left + 1, plan_.width)) * kChannels};
    const int upper = tables_.start_of_rows[row_];
    const std::uint16_t* const by_column = tables_.column_weights + 2 * x;
    const std::uint16_t* const by_row = tables_.row_weights + 2 * row_;
    Colour colour{};
    for (int c = 0; c < kChannels; ++c) {
      int sum = 0;
      for (int r = 0; r < 2; ++r) {
        const std::uint8_t* const line =
            pixels_ + static_cast<std::size_t>(clamped(upper + r, plan_.height)) * stride_ + c;
        const int blended = by_column[0] * line[columns[0]] + by_column[1] * line[columns[1]];
        sum += by_row[r] * (blended >> (kBlendBits - kSumBits)) >> 16;
      }
      colour.values[c] = static_cast<std::uint8_t>((sum + 2) >> 2);
    }
    return colour;
  }

  /// Computes the pixel as convolve_columns() does.
  __device__ Colour convolve(int x) const {
    const int taps = plan_.column_taps;
    const std::uint16_t* const weights = tables_.column_weights + x * taps;
    const std::int16_t* const sums = sums_ + tables_.start_of_columns[x] * kChannels;
    Colour colour{};
    for (int c = 0; c < kChannels; ++c) {
      int sum = 1 << (kSumBits + kColumnWeightBits - 1);
      for (int t = 0; t < taps; ++t) sum += weights[t] * sums[t * kChannels + c];
      colour.values[c] = static_cast<std::uint8_t>(sum >> (kSumBits + kColumnWeightBits));
    }
    return colour;
  }

  const ImagePlan& plan_;
  const Tables& tables_;
  const std::uint8_t* pixels_;
  std::size_t stride_;
  int row_;
  std::int16_t* sums_;
};

/// A block computes row blockIdx.x of image blockIdx.y.
template <typename Out>
__global__ void planned_images_kernel(StoredImages stored, PlannedImages batch,
                                      NormalizeConstants constants, Out* __restrict__ out) {
  PRECAST_DYNAMIC_SHARED(sums, std::int16_t);
  const std::byte* const at = batch.plans + blockIdx.y * batch.plan_bytes;
  const ImagePlan& plan = *reinterpret_cast<const ImagePlan*>(at);
  const Tables tables = tables_at(at, plan);
  const std::size_t stride = static_cast<std::size_t>(stored.widths[plan.sample]) * kChannels;
  const std::uint8_t* const crop = stored.pixels + stored.offsets[plan.sample] +
                                   static_cast<std::size_t>(plan.row) * stride +
                                   static_cast<std::size_t>(plan.column) * kChannels;
  const int y = static_cast<int>(blockIdx.x);
  const int row = resized_row(plan, y);
  const ResizedRow resized(plan, tables, crop, stride, row, sums);
  // The condition is the same for all threads of the block.
  if (row != kNone && plan.two_taps == 0) {
    resized.convolve_rows();
    __syncthreads();
  }
  Out* const line =
      out + (static_cast<std::size_t>(blockIdx.y) * static_cast<std::size_t>(plan.side) +
             static_cast<std::size_t>(y)) *
                static_cast<std::size_t>(plan.side) * kChannels;
  for (int x = static_cast<int>(threadIdx.x); x < plan.side; x += static_cast<int>(blockDim.x)) {
    Colour colour{};
    const int column = resized_column(plan, y, x, colour);
    if (column != kNone) colour = resized.pixel(column);
    PRECAST_UNROLL
    for (int c = 0; c < kChannels; ++c) {
      round_to((static_cast<float>(colour.values[c]) - constants.mean[c]) / constants.std[c],
               line[x * kChannels + c]);
    }
  }
}

template <typename Out>
void launch(const StoredImages& stored, PlannedImages batch, const NormalizeConstants& constants,
            void* out, cudaStream_t stream) {
  const std::size_t shared =
      static_cast<std::size_t>(stored.max_width) * kChannels * sizeof(std::int16_t);
  const std::size_t values =
      static_cast<std::size_t>(batch.side) * static_cast<std::size_t>(batch.side) * kChannels;
  auto* at = static_cast<Out*>(out);
  for (int left = batch.count; left > 0; left -= batch.per_launch) {
    const int count = left < batch.per_launch ? left : batch.per_launch;
    const dim3 grid(static_cast<unsigned>(batch.side), static_cast<unsigned>(count));
    PRECAST_LAUNCH(planned_images_kernel<Out>, grid, kThreads, shared, stream, stored, batch,
                   constants, at);
    batch.plans += static_cast<std::size_t>(count) * batch.plan_bytes;
    at += static_cast<std::size_t>(count) * values;
  }
}

}  // namespace

void make_planned_images(const StoredImages& stored, const PlannedImages& batch,
                         const NormalizeConstants& constants, PixelType type, void* out,
                         cudaStream_t stream) {
  switch (type) {
    case PixelType::f32:
      return launch<float>(stored, batch, constants, out, stream);
    case PixelType::f16:
      return launch<__half>(stored, batch, constants, out, stream);
    case PixelType::bf16:
      return launch<__nv_bfloat16>(stored, batch, constants, out, stream);
  }
}

}  // namespace precast::data
