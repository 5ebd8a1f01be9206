#include "data/resample/column_tables.h"

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <cstring>

namespace precast::data {
namespace {

constexpr int kChannels = 3;

/// Whether the taps of outputs that are up to `distance` apart always fit into one window.
bool fits_window(const std::vector<Blend>& outputs, int source, std::size_t distance) {
  // The largest distance between the first taps of two outputs, in source pixels, that fits into a
  // window.
  constexpr int kReach = (ColumnBlend::kWindow - 2 * kChannels) / kChannels;
  // Taps outside the source refer to the edge pixel.
  const auto start = [&](std::size_t i) { return std::clamp(outputs[i].start, 0, source - 1); };
  distance = std::min(distance, outputs.size() - 1);
  for (std::size_t i = distance; i < outputs.size(); ++i) {
    if (std::abs(start(i) - start(i - distance)) > kReach) return false;
  }
  return true;
}

/// The two source pixels of an output: the first one's offset in the row, in bytes, and both
/// weights (the first one's in the lower 16 bits).
struct Pair {
  int byte;
  std::uint32_t weights;
};

/// Moves the pair inside the source if necessary; the edge pixel then has both weights.
Pair clamped_pair(const Blend& blend, int source) {
  if (blend.start < 0) return {0, kBlendOne};
  if (blend.start < source - 1) {
    return {blend.start * kChannels, static_cast<std::uint32_t>(blend.first) |
                                         static_cast<std::uint32_t>(blend.second) << 16};
  }
  return {std::max(source - 2, 0) * kChannels, std::uint32_t{kBlendOne} << 16};
}

/// @return false if the weights of an output do not add up to kBlendOne.
bool plan_lerps(const std::vector<Blend>& outputs, int source,
                std::vector<ColumnBlend::Lerp>& lerps) {
  lerps.clear();
  for (const Blend& blend : outputs) {
    const Pair pair = clamped_pair(blend, source);
    const auto first = static_cast<int>(pair.weights & 0xFFFFU);
    const auto second = static_cast<int>(pair.weights >> 16);
    if (first + second != kBlendOne) return false;
    const auto fraction = static_cast<std::int16_t>(-32 * std::min(first, second));
    if (first >= second) {
      lerps.push_back({pair.byte, pair.byte + kChannels, fraction});
    } else {
      lerps.push_back({pair.byte + kChannels, pair.byte, fraction});
    }
  }
  return true;
}

/// Fills columns.lines. @return false if lines cannot be used, or are not faster on this CPU.
bool plan_lines(const std::vector<Blend>& outputs, int source, ColumnBlend& columns) {
  using Line = ColumnBlend::Line;
  columns.lines.clear();
  const int last_window = source * kChannels - Line::kWindow;
  if (!prefers_lines() || last_window < 0 || !plan_lerps(outputs, source, columns.lerps))
    return false;
  const std::vector<ColumnBlend::Lerp>& lerps = columns.lerps;
  const std::size_t values = lerps.size() * kChannels;
  std::size_t pixel = 0;
  int channel = 0;
  for (std::size_t first = 0; first < values; first += Line::kValues) {
    const std::size_t last = std::min(first + Line::kValues, values) - 1;
    const ColumnBlend::Lerp& other = lerps[last / kChannels];
    const int window = std::min(
        {lerps[pixel].nearer, lerps[pixel].farther, other.nearer, other.farther, last_window});
    Line& line = columns.lines.emplace_back();
    line.window = window;
    int reach = 0;
    for (std::size_t v = 0; v <= last - first; ++v) {
      const ColumnBlend::Lerp& lerp = lerps[pixel];
      const int farther = lerp.farther - window + channel;
      const int nearer = lerp.nearer - window + channel;
      reach = std::max({reach, farther, nearer});
      line.indices[2 * v] = static_cast<std::uint8_t>(farther);
      line.indices[2 * v + 1] = static_cast<std::uint8_t>(nearer);
      line.fraction[v] = lerp.fraction;
      if (++channel == kChannels) {
        channel = 0;
        ++pixel;
      }
    }
    if (reach >= Line::kWindow) {
      columns.lines.clear();
      return false;
    }
  }
  return true;
}

}  // namespace

bool plan_column_blend(const std::vector<Blend>& outputs, int source, ColumnBlend& columns) {
  if (plan_lines(outputs, source, columns)) return false;
  // Four values belong to at most two output pixels, and eight values to at most four.
  const bool paired = source * kChannels < ColumnBlend::kWindow || !fits_window(outputs, source, 1);
  columns.wide_windows = !paired && fits_window(outputs, source, 3);
  const std::size_t values = outputs.size() * kChannels;
  columns.groups.resize((values + ColumnBlend::Group::kValues - 1) / ColumnBlend::Group::kValues);

  const auto pair_of = [&](std::size_t value) {
    const std::size_t pixel = std::min(value / kChannels, outputs.size() - 1);
    Pair pair = clamped_pair(outputs[pixel], source);
    if (paired) pair.byte = static_cast<int>(pixel) * 6;
    return pair;
  };
  const int last_window = paired ? INT_MAX : source * kChannels - ColumnBlend::kWindow;
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
                          static_cast<std::uint32_t>((first + v) % kChannels);
        group.shuffle[quarter * 4 + v] =
            0x80008000U | byte | (byte + std::uint32_t{kChannels}) << 16;
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
    const int byte = clamped_pair(blend, source).byte;
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
