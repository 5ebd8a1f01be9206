// On every instruction set, tests the colour conversion (16 values of Y, with every Cb and Cr) and
// the decoding of regions as planes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <variant>
#include <vector>

#include "data/decode/jpeg_decoder.h"
#include "data/decode/pixel_kernels.h"
#include "tests/data/decode/synthetic_jpeg.h"
#include "tests/support/simd_targets.h"

namespace precast::data {
namespace {

using test::copy_of;
using test::encode;
using test::SyntheticJpeg;

using Pixels = std::vector<std::uint8_t>;

/// Converts YCbCr to RGB as libjpeg's jdcolor.c does, with factors of 16 fractional bits.
Pixels convert_by_libjpeg(const Pixels& y, const Pixels& cb, const Pixels& cr) {
  Pixels rgb;
  const auto put = [&](int value) {
    rgb.push_back(static_cast<std::uint8_t>(std::clamp(value, 0, 255)));
  };
  for (std::size_t i = 0; i < y.size(); ++i) {
    const int blue = cb[i] - 128, red = cr[i] - 128;
    put(y[i] + ((91881 * red + 32768) >> 16));
    put(y[i] + ((-22554 * blue + 32768 - 46802 * red) >> 16));
    put(y[i] + ((116130 * blue + 32768) >> 16));
  }
  return rgb;
}

TEST(ColourKernels, EveryColourIsThatOfLibjpeg) {
  constexpr std::size_t kCount = 65'536;
  for (int luma = 0; luma < 256; luma += 17) {
    Pixels y(kCount + kKernelSlack, static_cast<std::uint8_t>(luma)), cb(y), cr(y);
    for (std::size_t i = 0; i < kCount; ++i) {
      cb[i] = static_cast<std::uint8_t>(i % 256);
      cr[i] = static_cast<std::uint8_t>(i / 256);
    }
    Pixels expected = convert_by_libjpeg(y, cb, cr);
    expected.resize(3 * kCount);
    const std::size_t targets = test::for_each_simd_target([&](const char* target) {
      SCOPED_TRACE(target);
      Pixels rgb(3 * kCount + kKernelSlack);
      ycc_to_rgb(y.data(), cb.data(), cr.data(), kCount, rgb.data());
      rgb.resize(3 * kCount);
      ASSERT_EQ(rgb, expected) << luma;
      Pixels planes[3];
      for (Pixels& plane : planes) plane.resize(kCount + kKernelSlack);
      ycc_to_planes(y.data(), cb.data(), cr.data(), kCount,
                    {planes[0].data(), planes[1].data(), planes[2].data()});
      for (std::size_t i = 0; i < 3 * kCount; ++i)
        ASSERT_EQ(planes[i % 3][i / 3], expected[i]) << luma << " " << i;
    });
    if (luma == 0) RecordProperty("targets", static_cast<int>(targets));
  }
}

/// Decodes with and without checkpoints. libjpeg decodes the progressive JPEG, so the pixels of
/// this image are interleaved instead of planar.
TEST(DecodedPlanes, HaveThePixelsOfDecode) {
  for (const SyntheticJpeg& kind :
       {SyntheticJpeg{.height = 129, .width = 195},
        SyntheticJpeg{.height = 97, .width = 130, .rows = 1},
        SyntheticJpeg{.height = 97, .width = 130, .columns = 1, .rows = 1},
        SyntheticJpeg{.height = 61, .width = 67, .columns = 0},
        SyntheticJpeg{.height = 61, .width = 67, .progressive = true}}) {
    const std::vector<std::byte> jpeg = encode(kind);
    test::for_each_simd_target([&](const char* target) {
      SCOPED_TRACE(target);
      JpegDecoder decoder, other;
      std::vector<std::uint64_t> points, same_points;
      for (int trial = 0; trial < 20; ++trial) {
        const Rect region = test::region_of(kind, trial);
        const Pixels expected =
            copy_of(decoder.decode(jpeg, kind.height, kind.width, region, 3, points));
        ASSERT_EQ(
            copy_of(other.decode_planes(jpeg, kind.height, kind.width, region, 3, same_points)),
            expected)
            << trial;
        ASSERT_EQ(points, same_points);
        ASSERT_EQ(copy_of(other.decode_planes(jpeg, kind.height, kind.width, region)), expected)
            << trial;
        const DecodedPixels pixels =
            other.decode_planes(jpeg, kind.height, kind.width, region, {3, points});
        ASSERT_EQ(copy_of(pixels), expected) << trial;
        ASSERT_EQ(std::holds_alternative<PlanarView>(pixels), !kind.progressive);
      }
    });
  }
}

}  // namespace
}  // namespace precast::data
