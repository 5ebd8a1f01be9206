#include "data/image/luma.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <vector>

#include "data/image/normalize.h"
#include "data/image/pixel_format.h"
#include "framework/core/rng.h"
#include "tests/support/simd_targets.h"

namespace precast::data {
namespace {

/// The corners of the RGB cube, then random pixels.
std::vector<std::uint8_t> some_pixels(std::size_t pixels) {
  RandomStream random(5, 0, pixels, RandomUse::test);
  std::vector<std::uint8_t> rgb;
  for (std::size_t corner = 0; corner < 8; ++corner)
    for (std::size_t c = 0; c < 3; ++c)
      rgb.push_back((corner >> c & 1) != 0 ? std::uint8_t{255} : std::uint8_t{0});
  while (rgb.size() < 3 * pixels) rgb.push_back(static_cast<std::uint8_t>(random.below(256)));
  rgb.resize(3 * pixels);
  return rgb;
}

/// The formula of Pillow's L24 (src/libImaging/Convert.c) and of libjpeg's rgb_gray_convert.
std::uint8_t expected_luma(const std::uint8_t* p) {
  return static_cast<std::uint8_t>((p[0] * 19595 + p[1] * 38470 + p[2] * 7471 + 0x8000) >> 16);
}

TEST(Luma, IsPillowsAndLibjpegsOnEveryTarget) {
  for (const std::size_t pixels :
       {std::size_t{0}, std::size_t{1}, std::size_t{7}, std::size_t{64}, std::size_t{1001}}) {
    const std::vector<std::uint8_t> rgb = some_pixels(pixels);
    test::for_each_simd_target([&](const char* target) {
      std::vector<std::uint8_t> grey(pixels), in_place = rgb, spread = rgb;
      luma_of(rgb.data(), pixels, grey.data());
      luma_of(in_place.data(), pixels, in_place.data());
      replace_with_luma(spread.data(), pixels);
      for (std::size_t p = 0; p < pixels; ++p) {
        const std::uint8_t expected = expected_luma(rgb.data() + 3 * p);
        ASSERT_EQ(grey[p], expected) << target << " " << p;
        ASSERT_EQ(in_place[p], expected) << target << " " << p;
        for (std::size_t c = 0; c < 3; ++c) ASSERT_EQ(spread[3 * p + c], expected) << target;
      }
    });
  }
}

TEST(Luma, GreyPixelsKeepTheirValue) {
  std::vector<std::uint8_t> rgb;
  for (int value = 0; value < 256; ++value)
    rgb.insert(rgb.end(), 3, static_cast<std::uint8_t>(value));
  std::vector<std::uint8_t> grey(256), spread = rgb;
  luma_of(rgb.data(), 256, grey.data());
  replace_with_luma(spread.data(), 256);
  for (std::size_t value = 0; value < 256; ++value) EXPECT_EQ(grey[value], value);
  EXPECT_EQ(spread, rgb);
}

TEST(OneChannel, IsWrittenAsTheFirstOfThree) {
  const NormalizeOptions of_three = {.mean = {117.04, 1, 2}, .std = {57.52, 3, 4}};
  const Normalize three(of_three);
  const Normalize one({.mean = {117.04}, .std = {57.52}});
  for (const int width : {1, 5, 31, 64, 1100}) {
    Image rgb(2, width);
    std::vector<std::uint8_t> grey;
    for (std::size_t p = 0; p < rgb.pixels.size() / 3; ++p) {
      grey.push_back(static_cast<std::uint8_t>(p * 37 >> 2));
      rgb.pixels[3 * p] = grey.back();
    }
    const ImageView grey_view{grey.data(), 2, width, width};
    for (const bool channels_first : {false, true}) {
      test::for_each_simd_target([&](const char* target) {
        const PixelFormat all{ElementType::f32, false, &three};
        const PixelFormat only{ElementType::f32, channels_first, &one, 1};
        ASSERT_EQ(only.image_bytes(2, width), 4 * grey.size());
        std::vector<float> from_rgb(rgb.pixels.size()), from_grey(grey.size());
        write_pixels(rgb.view(), all, reinterpret_cast<std::byte*>(from_rgb.data()));
        write_pixels(grey_view, only, reinterpret_cast<std::byte*>(from_grey.data()));
        for (std::size_t p = 0; p < grey.size(); ++p)
          ASSERT_EQ(std::bit_cast<std::uint32_t>(from_grey[p]),
                    std::bit_cast<std::uint32_t>(from_rgb[3 * p]))
              << target << " " << p;
      });
      std::vector<std::uint8_t> bytes(grey.size());
      write_pixels(grey_view, {.channels_first = channels_first, .channels = 1},
                   reinterpret_cast<std::byte*>(bytes.data()));
      EXPECT_EQ(bytes, grey);
    }
  }
}

}  // namespace
}  // namespace precast::data
