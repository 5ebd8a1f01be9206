#include "data/resample/resize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "framework/core/rng.h"

namespace precast::data {
namespace {

Image noise(int height, int width, std::uint64_t seed) {
  Image image(height, width);
  RandomStream random(seed, 0, 0, RandomUse::test);
  for (std::uint8_t& value : image.pixels) value = static_cast<std::uint8_t>(random.below(256));
  return image;
}

/// What one output pixel is made of along one axis, straight from the definition of OpenCV's
/// INTER_AREA.
struct Tap {
  int source;
  double weight;
};

std::vector<Tap> area_taps(int d, int source, int outputs) {
  const double scale = static_cast<double>(source) / outputs;
  std::vector<Tap> taps;
  for (int s = 0; s < source; ++s) {
    const double covered =
        std::min<double>(s + 1, (d + 1) * scale) - std::max<double>(s, d * scale);
    if (covered > 1e-3) taps.push_back({s, covered / scale});
  }
  return taps;
}

std::vector<Tap> bilinear_taps(int d, int source, int outputs) {
  const double scale = static_cast<double>(source) / outputs;
  const int s = static_cast<int>(std::floor(d * scale));
  double fraction = (d + 1) - (s + 1) / scale;
  fraction = fraction <= 0 ? 0 : fraction - std::floor(fraction);
  if (s >= source - 1) return {{source - 1, 1.0}};
  return {{s, 1 - fraction}, {s + 1, fraction}};
}

double reference_pixel(const Image& in, int y, int x, int c, int out_height, int out_width) {
  const bool shrinks = out_height <= in.height && out_width <= in.width;
  const auto taps = shrinks ? area_taps : bilinear_taps;
  double sum = 0;
  for (const Tap& row : taps(y, in.height, out_height)) {
    for (const Tap& column : taps(x, in.width, out_width)) {
      sum += row.weight * column.weight * in.view().row(row.source)[3 * column.source + c];
    }
  }
  return sum;
}

int largest_difference(const Image& in, const Image& out) {
  double worst = 0;
  for (int y = 0; y < out.height; ++y) {
    for (int x = 0; x < out.width; ++x) {
      for (int c = 0; c < 3; ++c) {
        const double expected = std::round(reference_pixel(in, y, x, c, out.height, out.width));
        worst = std::max(worst, std::abs(expected - out.view().row(y)[3 * x + c]));
      }
    }
  }
  return static_cast<int>(worst);
}

TEST(AreaResizerTest, FollowsTheDefinitionForAllKindsOfScale) {
  AreaResizer resizer;
  const int sizes[][4] = {{64, 64, 32, 32}, {64, 48, 20, 31}, {37, 53, 36, 52},
                          {20, 30, 32, 32}, {20, 60, 32, 32}, {1, 1, 5, 5},
                          {1, 40, 1, 7},    {90, 90, 32, 90}, {7, 7, 7, 7},
                          {200, 3, 32, 32}, {33, 65, 32, 64}, {512, 340, 160, 160}};
  for (const auto& [in_height, in_width, out_height, out_width] : sizes) {
    const Image in = noise(in_height, in_width, 3);
    Image out(out_height, out_width);
    resizer.resize(in.view(), out.pixels.data(), out_height, out_width);
    EXPECT_LE(largest_difference(in, out), 1)
        << in_height << "x" << in_width << " -> " << out_height << "x" << out_width;
  }
}

TEST(AreaResizerTest, SameSizeIsACopy) {
  const Image in = noise(31, 17, 4);
  Image out(31, 17);
  AreaResizer().resize(in.view(), out.pixels.data(), 31, 17);
  EXPECT_EQ(out.pixels, in.pixels);
}

TEST(AreaResizerTest, FlipIsTheMirrorImageExactly) {
  AreaResizer resizer;
  for (const int side : {16, 40, 41}) {
    const Image in = noise(41, 41, 5);
    Image plain(side, side), flipped(side, side);
    resizer.resize(in.view(), plain.pixels.data(), side, side);
    resizer.resize(in.view(), flipped.pixels.data(), side, side, true);
    for (int y = 0; y < side; ++y) {
      for (int x = 0; x < side; ++x) {
        for (int c = 0; c < 3; ++c) {
          ASSERT_EQ(flipped.view().row(y)[3 * x + c], plain.view().row(y)[3 * (side - 1 - x) + c]);
        }
      }
    }
  }
}

TEST(AreaResizerTest, ConstantImagesStayConstant) {
  AreaResizer resizer;
  for (const int level : {0, 1, 127, 254, 255}) {
    Image in(61, 47);
    std::ranges::fill(in.pixels, static_cast<std::uint8_t>(level));
    for (const int side : {7, 30, 47, 100}) {
      Image out(side, side);
      resizer.resize(in.view(), out.pixels.data(), side, side);
      EXPECT_TRUE(std::ranges::all_of(out.pixels, [&](std::uint8_t value) {
        return std::abs(value - level) <= 1;
      })) << side;
    }
  }
}

TEST(AreaResizerTest, ReadsAWindowOfALargerImage) {
  const Image large = noise(50, 60, 6);
  Image window(20, 24);
  for (int y = 0; y < 20; ++y) {
    std::copy_n(large.view().row(y + 11) + 3 * 13, 24 * 3, window.pixels.begin() + y * 24 * 3);
  }
  const ImageView view{large.view().row(11) + 3 * 13, 20, 24, large.view().stride};
  Image from_view(16, 16), from_copy(16, 16);
  AreaResizer resizer;
  resizer.resize(view, from_view.pixels.data(), 16, 16);
  resizer.resize(window.view(), from_copy.pixels.data(), 16, 16);
  EXPECT_EQ(from_view.pixels, from_copy.pixels);
}

}  // namespace
}  // namespace precast::data
