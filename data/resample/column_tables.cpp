#include "data/resample/column_tables.h"

#include <algorithm>
#include <cstring>

namespace precast::data {
namespace {

/// Source pixels between two taps' starts that a window still holds: 3 bytes each and 6 for a pair.
constexpr int kWindowReach = (ColumnBlend::kWindow - 6) / 3;

/// Whether outputs that are `distance` apart always fit one window.
bool fits_window(const std::vector<Blend>& outputs, int source, std::size_t distance) {
  // Taps outside stand for the edge.
  const auto start = [&](std::size_t i) { return std::clamp(outputs[i].start, 0, source - 1); };
  for (std::size_t i = distance; i < outputs.size(); ++i) {
    if (std::abs(start(i) - start(i - distance)) > kWindowReach) return false;
  }
  return true;
}

/// Of an output in the row: its first byte, and the weights of the pixel there and the next.
struct Pair {
  int byte;
  std::uint32_t weights;
};

/// Moved inside the source, where the edge's pixel has the weight of both.
Pair inside(const Blend& blend, int source) {
  if (blend.start < 0) return {0, kBlendOne};
  if (blend.start < source - 1) {
    return {blend.start * 3, static_cast<std::uint32_t>(blend.first) |
                                 static_cast<std::uint32_t>(blend.second) << 16};
  }
  return {std::max(source - 2, 0) * 3, std::uint32_t{kBlendOne} << 16};
}

}  // namespace

bool plan_column_blend(const std::vector<Blend>& outputs, int source, ColumnBlend& columns) {
  const bool paired = source * 3 < ColumnBlend::kWindow || !fits_window(outputs, source, 1);
  // Eight values are of at most four pixels, four values of two.
  columns.wide_windows =
      !paired && fits_window(outputs, source, 3) && fits_window(outputs, source, 2);
  columns.groups = (outputs.size() * 3 + ColumnBlend::kGroup - 1) / ColumnBlend::kGroup;
  columns.window.resize(columns.groups * 4);
  columns.shuffle.resize(columns.groups * 16);
  columns.weight.resize(columns.groups * 16);

  const auto last = outputs.size() - 1;
  const auto pair_of = [&](std::size_t pixel) {
    Pair pair = inside(outputs[pixel], source);
    if (paired) pair.byte = static_cast<int>(pixel) * 6;
    return pair;
  };
  const int last_window = source * 3 - ColumnBlend::kWindow;
  for (std::size_t quarter = 0; quarter < columns.groups * 4; ++quarter) {
    // Quarters 0 1 2 3 of a group begin at its values 0, 8, 4, 12.
    const std::size_t group = quarter / 4 * 16;
    const std::size_t first = group + quarter % 2 * 8 + quarter / 2 % 2 * 4;
    const std::size_t window_first = columns.wide_windows ? first / 8 * 8 : first;
    const std::size_t window_values = columns.wide_windows ? 8 : 4;
    const int low = pair_of(std::min(window_first / 3, last)).byte;
    const int high = pair_of(std::min((window_first + window_values - 1) / 3, last)).byte;
    int window = std::min(low, high);
    if (!paired) window = std::min(window, last_window);
    columns.window[quarter] = window;
    for (std::size_t v = 0; v < 4; ++v) {
      const std::size_t pixel = std::min((first + v) / 3, last);
      const Pair pair = pair_of(pixel);
      const auto byte = static_cast<std::uint32_t>(pair.byte - window) +
                        static_cast<std::uint32_t>((first + v) % 3);
      columns.shuffle[quarter * 4 + v] = 0x80008000U | byte | (byte + 3) << 16;
      columns.weight[quarter * 4 + v] = pair.weights;
    }
  }
  return paired;
}

void pair_pixels(const std::uint8_t* row, int source, const std::vector<Blend>& outputs,
                 std::uint8_t* out) {
  for (const Blend& blend : outputs) {
    const int byte = inside(blend, source).byte;
    std::memcpy(out, row + byte, 3);
    std::memcpy(out + 3, row + (source > 1 ? byte + 3 : byte), 3);
    out += 6;
  }
}

void plan_column_weights(const WeightedAxis& axis, ColumnWeights& columns) {
  const std::size_t outputs = axis.start.size();
  columns.groups = (outputs + ColumnWeights::kGroup - 1) / ColumnWeights::kGroup;
  columns.pairs = (axis.taps + 1) / 2;
  const auto pairs = static_cast<std::size_t>(columns.pairs);
  columns.start.assign(columns.groups * ColumnWeights::kGroup, 0);
  columns.weight.assign(columns.groups * pairs * 32, 0);
  std::vector<std::uint16_t> fixed(pairs * 2, 0);
  for (std::size_t pixel = 0; pixel < outputs; ++pixel) {
    columns.start[pixel] = axis.start[pixel] * 3;
    axis.quantize(static_cast<int>(pixel), 1 << kColumnWeightBits, fixed.data());
    std::uint32_t* weight =
        columns.weight.data() + pixel / 8 * pairs * 32 + pixel % 4 * 8 + pixel / 4 % 2 * 4;
    for (std::size_t pair = 0; pair < pairs; ++pair) {
      const std::uint32_t both = fixed[2 * pair] | std::uint32_t{fixed[2 * pair + 1]} << 16;
      std::fill_n(weight + pair * 32, 4, both);
    }
  }
}

}  // namespace precast::data
