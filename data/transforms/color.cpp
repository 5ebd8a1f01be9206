#include "data/transforms/color.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "data/transforms/color_kernels.h"

namespace precast::data {
namespace {

using ChannelTables = std::array<ValueTable, 3>;
using Histogram = std::array<std::uint32_t, 256>;

std::uint8_t clamp_to_u8(double value) {
  return static_cast<std::uint8_t>(std::clamp(value, 0.0, 255.0));
}

std::array<Histogram, 3> histograms(const Pixels& image) {
  std::array<Histogram, 3> counts{};
  const std::uint8_t* pixel = image.data;
  for (std::size_t p = 0; p < image.shape.pixels(); ++p, pixel += 3) {
    ++counts[0][pixel[0]];
    ++counts[1][pixel[1]];
    ++counts[2][pixel[2]];
  }
  return counts;
}

void apply_tables(const Pixels& image, const ChannelTables& tables) {
  std::uint8_t* pixel = image.data;
  for (std::size_t p = 0; p < image.shape.pixels(); ++p, pixel += 3) {
    pixel[0] = tables[0][pixel[0]];
    pixel[1] = tables[1][pixel[1]];
    pixel[2] = tables[2][pixel[2]];
  }
}

ValueTable table_of(auto&& value_of) {
  ValueTable table{};
  for (int v = 0; v < 256; ++v) table[static_cast<std::size_t>(v)] = value_of(v);
  return table;
}

ValueTable stretched(const Histogram& counts) {
  int low = 0;
  int high = 255;
  while (low < 255 && counts[static_cast<std::size_t>(low)] == 0) ++low;
  while (high > 0 && counts[static_cast<std::size_t>(high)] == 0) --high;
  if (low >= high) return table_of([](int v) { return static_cast<std::uint8_t>(v); });
  const float scale = static_cast<float>(high - low) * (1.0F / 255.0F);
  return table_of([&](int v) { return clamp_to_u8(static_cast<float>(v - low) / scale); });
}

ValueTable equalized(const Histogram& counts, std::size_t pixels) {
  std::size_t highest = 255;
  while (highest > 0 && counts[highest] == 0) --highest;
  const std::size_t step = (pixels - counts[highest]) / 255;
  if (step == 0) return table_of([](int v) { return static_cast<std::uint8_t>(v); });
  std::size_t below = step / 2;
  ValueTable table{};
  for (std::size_t v = 0; v < 256; ++v) {
    table[v] = static_cast<std::uint8_t>(std::min<std::size_t>(255, below / step));
    below += counts[v];
  }
  table[0] = 0;
  return table;
}

}  // namespace

void apply_table(const Pixels& image, const ValueTable& table) {
  std::uint8_t* const end = image.data + image.shape.values();
  for (std::uint8_t* value = image.data; value != end; ++value) *value = table[*value];
}

void adjust_brightness(const Pixels& image, double factor) {
  apply_table(image, table_of([=](int v) { return clamp_to_u8(factor * v); }));
}

void adjust_contrast(const Pixels& image, double factor) {
  const double mean = static_cast<double>(sum_of_luminance(image.data, image.shape.pixels())) /
                      static_cast<double>(image.shape.pixels());
  apply_table(image,
              table_of([=](int v) { return clamp_to_u8(factor * v + (1 - factor) * mean); }));
}

void adjust_saturation(const Pixels& image, double factor) {
  blend_with_luminance(image.data, image.shape.pixels(), static_cast<float>(factor));
}

void adjust_hue(const Pixels& image, double shift) {
  rotate_hue(image.data, image.shape.pixels(), static_cast<float>(shift));
}

void to_grayscale(const Pixels& image) {
  blend_with_luminance(image.data, image.shape.pixels(), 0.0F);
}

void solarize(const Pixels& image, double threshold) {
  apply_table(image, table_of([=](int v) {
                return static_cast<std::uint8_t>(v >= threshold ? 255 - v : v);
              }));
}

void posterize(const Pixels& image, int bits) {
  if (bits >= 8) return;
  const int mask = (0xFF << (8 - bits)) & 0xFF;
  apply_table(image, table_of([=](int v) { return static_cast<std::uint8_t>(v & mask); }));
}

void autocontrast(const Pixels& image) {
  const auto counts = histograms(image);
  apply_tables(image, {stretched(counts[0]), stretched(counts[1]), stretched(counts[2])});
}

void equalize(const Pixels& image) {
  const auto counts = histograms(image);
  const std::size_t pixels = image.shape.pixels();
  apply_tables(image, {equalized(counts[0], pixels), equalized(counts[1], pixels),
                       equalized(counts[2], pixels)});
}

void adjust_sharpness(const Pixels& image, double factor, std::span<std::byte> scratch) {
  if (image.shape.height <= 2 || image.shape.width <= 2) return;
  std::memcpy(scratch.data(), image.data, image.shape.values());
  const auto* const copy = reinterpret_cast<const std::uint8_t*>(scratch.data());
  const std::ptrdiff_t stride = image.row_values();
  const auto share = static_cast<float>(1.0 - factor);
  for (int y = 1; y + 1 < image.shape.height; ++y) {
    const std::uint8_t* const middle = copy + y * stride;
    const std::uint8_t* const above = middle - stride;
    const std::uint8_t* const below = middle + stride;
    std::uint8_t* const out = image.row(y);
    for (std::ptrdiff_t i = 3; i < stride - 3; ++i) {
      const int sum = above[i - 3] + above[i] + above[i + 3] + middle[i - 3] + 5 * middle[i] +
                      middle[i + 3] + below[i - 3] + below[i] + below[i + 3];
      // Rounds to nearest; thirteenths are never exactly halfway.
      const int smooth = (2 * sum + 13) / 26;
      const float value =
          static_cast<float>(middle[i]) + share * static_cast<float>(smooth - middle[i]);
      out[i] = static_cast<std::uint8_t>(std::min(255.0F, std::max(0.0F, value)));
    }
  }
}

}  // namespace precast::data
