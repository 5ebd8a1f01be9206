#include "data/resample/column_tables.h"

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <cstring>

namespace precast::data {
namespace {

/// The largest distance, in source pixels, between the first pixels of two outputs that share a
/// window. A pixel has 3 bytes, and each output reads a pair of pixels (6 bytes).
constexpr int kWindowReach = (ColumnBlend::kWindow - 6) / 3;

/// Whether outputs that are `distance` apart always fit one window.
bool fits_window(const std::vector<Blend>& outputs, int source, std::size_t distance) {
  // Taps outside refer to the edge pixel.
  const auto start = [&](std::size_t i) { return std::clamp(outputs[i].start, 0, source - 1); };
  for (std::size_t i = distance; i < outputs.size(); ++i) {
    if (std::abs(start(i) - start(i - distance)) > kWindowReach) return false;
  }
  return true;
}

/// For one output: its first byte in the row, and the weights of the pixel there and of the next
/// one.
struct Pair {
  int byte;
  std::uint32_t weights;
};

/// Moves the pair inside the source, where the edge pixel gets the weight of both.
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
  // Eight values belong to at most four pixels, four values to two.
  columns.wide_windows =
      !paired && fits_window(outputs, source, 3) && fits_window(outputs, source, 2);
  const std::size_t values = outputs.size() * 3;
  columns.groups.resize((values + ColumnBlend::Group::kValues - 1) / ColumnBlend::Group::kValues);

  const auto pair_of = [&](std::size_t value) {
    const std::size_t pixel = std::min(value / 3, outputs.size() - 1);
    Pair pair = inside(outputs[pixel], source);
    if (paired) pair.byte = static_cast<int>(pixel) * 6;
    return pair;
  };
  const int last_window = paired ? INT_MAX : source * 3 - ColumnBlend::kWindow;
  std::size_t first_of_group = 0;
  for (ColumnBlend::Group& group : columns.groups) {
    for (std::size_t quarter = 0; quarter < 4; ++quarter) {
      const std::size_t first = first_of_group + quarter % 2 * 8 + quarter / 2 * 4;
      const std::size_t begin = columns.wide_windows ? first / 8 * 8 : first;
      const std::size_t end = columns.wide_windows ? begin + 8 : begin + 4;
      const int window = std::min({pair_of(begin).byte, pair_of(end - 1).byte, last_window});
      group.window[quarter] = window;
      for (std::size_t v = 0; v < 4; ++v) {
        const Pair pair = pair_of(first + v);
        const auto byte = static_cast<std::uint32_t>(pair.byte - window) +
                          static_cast<std::uint32_t>((first + v) % 3);
        group.shuffle[quarter * 4 + v] = 0x80008000U | byte | (byte + 3) << 16;
        group.weight[quarter * 4 + v] = pair.weights;
      }
    }
    first_of_group += ColumnBlend::Group::kValues;
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
  columns.pairs = static_cast<std::size_t>(axis.taps + 1) / 2;
  columns.start.assign(columns.groups * ColumnWeights::kGroup, 0);
  columns.weights.assign(columns.groups * columns.pairs, {});
  std::vector<std::uint16_t> fixed(columns.pairs * 2, 0);
  for (std::size_t pixel = 0; pixel < outputs; ++pixel) {
    columns.start[pixel] = axis.start[pixel] * 3;
    axis.quantize(static_cast<int>(pixel), 1 << kColumnWeightBits, fixed.data());
    ColumnWeights::Pair* pairs = columns.weights.data() + pixel / 8 * columns.pairs;
    for (std::size_t pair = 0; pair < columns.pairs; ++pair) {
      std::fill_n(pairs[pair].weight + pixel % 4 * 8 + pixel / 4 % 2 * 4, 4,
                  fixed[2 * pair] | std::uint32_t{fixed[2 * pair + 1]} << 16);
    }
  }
}

}  // namespace precast::data
